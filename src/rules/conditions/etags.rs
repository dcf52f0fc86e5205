//! The value of If-Match and If-None-Match: `*`, or one `ETag`, or several.
//!
//! Decides how the text is read and compared. What a match means is in [`super`].

/// The value of If-Match or If-None-Match.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EtagList {
    /// `*`: any version of an object that exists.
    Any,
    /// The `ETag`s of the header, without their quotes.
    Listed(Vec<String>),
}

impl EtagList {
    /// Reads a header's value. No value is malformed: a text that is not an `ETag` of this server
    /// matches nothing.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        if text == "*" {
            return Self::Any;
        }
        Self::Listed(split(text).map(|etag| unquoted(etag.trim()).to_owned()).collect())
    }

    /// Whether the list has the version `etag`, given with or without quotes.
    pub fn matches(&self, etag: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Listed(etags) => etags.iter().any(|listed| listed == unquoted(etag)),
        }
    }

    /// Whether the header names more than one `ETag`.
    pub fn is_several(&self) -> bool {
        matches!(self, Self::Listed(etags) if etags.len() > 1)
    }
}

/// The parts between commas. A comma within quotes belongs to its `ETag`.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |letter| {
        quoted ^= letter == '"';
        letter == ',' && !quoted
    })
}

/// The text within quotes, or the whole text. A weak `ETag` (`W/"x"`) keeps its form, so it never
/// equals a strong one.
fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_do_not_count_and_the_rest_does() {
        for (header, etag, equal) in [
            ("\"0x8D1\"", "0x8D1", true),
            ("0x8D1", "0x8D1", true),
            ("0x8D1", "\"0x8D1\"", true),
            ("  \"0x8D1\" ", "0x8D1", true),
            ("\"0x8d1\"", "0x8D1", false),
            ("W/\"0x8D1\"", "0x8D1", false),
            ("W/\"x\"", "W/\"x\"", true),
            ("\"garbage\"", "0x8D1", false),
            ("", "0x8D1", false),
            ("\"", "0x8D1", false),
            ("*", "0x8D1", true),
            ("\"*\"", "0x8D1", false),
        ] {
            assert_eq!(EtagList::parse(header).matches(etag), equal, "{header} and {etag}");
        }
    }

    #[test]
    fn several_etags_are_separated_by_commas_outside_quotes() {
        let several = EtagList::parse("\"a\", b,\"c,d\"");
        let listed = ["a", "b", "c,d"].map(str::to_owned).to_vec();
        assert_eq!(several, EtagList::Listed(listed));
        assert!(several.is_several());
        assert!(!EtagList::parse("\"c,d\"").is_several());
        assert!(!EtagList::Any.is_several());
        assert!(EtagList::parse("a,*").matches("*"), "a star in a list is an ETag like any other");
        assert!(!EtagList::parse("a,*").matches("b"));
    }
}
