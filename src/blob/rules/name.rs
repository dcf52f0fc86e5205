//! Names of containers and blobs.
//!
//! Decides which names are legal. Names are compared byte for byte and never folded. REST decides
//! how a name is taken from a URL.

/// Containers with a meaning of their own, legal though they do not follow the rule for names.
pub const ROOT: &str = "$root";
const SYSTEM: [&str; 3] = [ROOT, "$logs", "$web"];

/// Most characters of a blob's name.
pub const BLOB_NAME_MAX: usize = 1_024;
/// Most segments of a blob's name.
pub const SEGMENTS_MAX: usize = 254;

/// Why a name is refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum BlobNameError {
    /// A character, or an order of characters, that names do not have.
    #[error("The specified resource name contains invalid characters.")]
    InvalidCharacters,
    /// Too short or too long.
    #[error("The specified resource name length is not within the permissible limits.")]
    Length,
}

/// A container's name: 3 to 63 lower-case letters, digits and single hyphens, beginning and ending
/// with a letter or digit; or one of the three that start with `$`.
pub fn check_container(name: &str) -> Result<(), BlobNameError> {
    if SYSTEM.contains(&name) {
        return Ok(());
    }
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let legal = name.bytes().all(|byte| plain(byte) || byte == b'-');
    let ends = [name.bytes().next(), name.bytes().last()].into_iter().flatten().all(plain);
    if !legal || !ends || name.contains("--") {
        return Err(BlobNameError::InvalidCharacters);
    }
    if !(3..=63).contains(&name.len()) {
        return Err(BlobNameError::Length);
    }
    Ok(())
}

/// A blob's name: 1 to 1,024 characters in at most 254 segments. A name is not a path: `a//b`,
/// `a/../b` and `/a` are names like any other. Names in `$root` have no slash, because such a URL
/// would name a container.
pub fn check_blob(container: &str, name: &str) -> Result<(), BlobNameError> {
    if !(1..=BLOB_NAME_MAX).contains(&name.chars().count()) {
        return Err(BlobNameError::Length);
    }
    let in_root = container == ROOT && name.contains('/');
    if in_root || name.contains('\0') || name.split('/').count() > SEGMENTS_MAX {
        return Err(BlobNameError::InvalidCharacters);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn container_names_follow_the_rule() {
        let long = "a".repeat(63);
        for name in ["abc", "a-b", "000", "1-2-3", &long, "$root", "$logs", "$web"] {
            assert_eq!(check_container(name), Ok(()), "{name}");
        }
        for name in ["-abc", "abc-", "a--b", "Abc", "a_b", "a.b", "$abc", "a b", "é-é", "a/b"] {
            assert_eq!(check_container(name), Err(BlobNameError::InvalidCharacters), "{name}");
        }
        for name in ["", "ab", &"a".repeat(64)] {
            assert_eq!(check_container(name), Err(BlobNameError::Length), "{name}");
        }
    }

    #[test]
    fn blob_names_are_free_within_their_limits() {
        let long = "é".repeat(BLOB_NAME_MAX);
        let deep = format!("{}x", "a/".repeat(SEGMENTS_MAX - 1));
        for name in
            ["a", "a/b", "a//b", "/a", "A", "a b", ".", "..", "a.", "%2F", "+", &long, &deep]
        {
            assert_eq!(check_blob("abc", name), Ok(()), "{name}");
        }
        assert_eq!(check_blob("abc", ""), Err(BlobNameError::Length));
        assert_eq!(check_blob("abc", &"a".repeat(1_025)), Err(BlobNameError::Length));
        let deeper = "a/".repeat(SEGMENTS_MAX);
        assert_eq!(check_blob("abc", &deeper), Err(BlobNameError::InvalidCharacters));
        assert_eq!(check_blob("abc", "a\0b"), Err(BlobNameError::InvalidCharacters));
    }

    #[test]
    fn names_in_the_root_container_have_no_slash() {
        assert_eq!(check_blob(ROOT, "index.html"), Ok(()));
        assert_eq!(check_blob(ROOT, "a/b"), Err(BlobNameError::InvalidCharacters));
    }
}
