//! User metadata of shares and files: legal names and values, and the limit of the whole.
//!
//! How names compare is decided in [`pairs`]; error codes are decided by REST.

mod pairs;

pub use pairs::Metadata;

/// Bytes of all names and values together.
pub const METADATA_BYTES_MAX: usize = 8 * 1024;

/// Why metadata is refused: one variant per documented code.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MetadataError {
    /// `EmptyMetadataKey`.
    #[error("a metadata name is empty")]
    EmptyName,
    /// `InvalidMetadata`.
    #[error(
        "'{0}' is not a valid metadata name: use letters, digits and '_', not starting with a digit"
    )]
    InvalidName(String),
    /// `InvalidMetadata`: a header could not carry the value.
    #[error("the metadata value of '{0}' holds a control character")]
    InvalidValue(String),
    #[error("the metadata has {0} bytes, names included; {METADATA_BYTES_MAX} are allowed")]
    TooLarge(usize),
}

/// Checks all pairs of one share or file.
pub fn check_metadata<'a>(
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<(), MetadataError> {
    let mut bytes = 0_usize;
    for (name, value) in pairs {
        check_name(name)?;
        if value.contains(char::is_control) {
            return Err(MetadataError::InvalidValue(name.into()));
        }
        bytes = bytes.saturating_add(name.len()).saturating_add(value.len());
    }
    if bytes > METADATA_BYTES_MAX {
        return Err(MetadataError::TooLarge(bytes));
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), MetadataError> {
    let first = name.chars().next().ok_or(MetadataError::EmptyName)?;
    let starts = first == '_' || first.is_alphabetic();
    if !starts || name.contains(|letter: char| letter != '_' && !letter.is_alphanumeric()) {
        return Err(MetadataError::InvalidName(name.into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers() {
        for name in ["a", "_", "_1", "Cat", "a_b2", "größe"] {
            assert_eq!(check_metadata([(name, "")]), Ok(()), "{name}");
        }
        for name in ["1a", "a-b", "a b", "a.b", "\u{b2}", "a\n"] {
            let refused = Err(MetadataError::InvalidName(name.into()));
            assert_eq!(check_metadata([("ok", ""), (name, "")]), refused, "{name}");
        }
        assert_eq!(check_metadata([("", "x")]), Err(MetadataError::EmptyName));
    }

    #[test]
    fn values_are_free_but_for_control_characters() {
        assert_eq!(check_metadata([("a", "any text: ä %20 \"'")]), Ok(()));
        let refused = Err(MetadataError::InvalidValue("a".into()));
        assert_eq!(check_metadata([("a", "two\r\nlines")]), refused);
    }

    #[test]
    fn names_and_values_together_are_held_at_the_bound_and_past_it() {
        let value = "x".repeat(METADATA_BYTES_MAX - 4);
        assert_eq!(check_metadata([("ab", ""), ("cd", &*value)]), Ok(()));
        let past = check_metadata([("ab", "y"), ("cd", &*value)]);
        assert_eq!(past, Err(MetadataError::TooLarge(METADATA_BYTES_MAX + 1)));
        assert_eq!(check_metadata([]), Ok(()));
    }
}
