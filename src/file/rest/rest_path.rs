//! Turns the percent-encoded path of a request into a legal path within a share.
//!
//! Decides decoding, splitting and trimming. The operation, and where the share's name ends in the
//! path, are decided in `http/`.

use crate::file::rules::name::{DEPTH_MAX, PATH_UNITS_MAX, check_component, units};
use crate::file::rules::{FileNameError, PathError, SharePath};

/// Reads the part of a request's path that follows the share's name.
///
/// Decoded once, as UTF-8: `%2525` is `%25`, `%2F` separates like `/` (clients send it for nested
/// paths), and `+` is a plus. One slash at either end is dropped. Without
/// `allow_trailing_dot`, dots at the end of each component are trimmed.
pub fn rest_path(raw_path: &str, allow_trailing_dot: bool) -> Result<SharePath, FileNameError> {
    let decoded = percent_decode(raw_path)?;
    let text = decoded.strip_prefix('/').unwrap_or(&decoded);
    let text = text.strip_suffix('/').unwrap_or(text);
    if text.is_empty() {
        return Ok(SharePath::root());
    }
    let mut path = String::with_capacity(text.len());
    for (depth, part) in text.split('/').enumerate() {
        if depth == DEPTH_MAX {
            return Err(FileNameError::TooDeep);
        }
        let name = if allow_trailing_dot { part } else { trim_dots(part)? };
        check_component(name)?;
        if depth > 0 {
            path.push('/');
        }
        path.push_str(name);
    }
    if units(&path) > PATH_UNITS_MAX {
        return Err(FileNameError::PathTooLong);
    }
    SharePath::new(&path).map_err(|error| match error {
        PathError::EmptyComponent => FileNameError::Empty,
        PathError::Dots => FileNameError::OnlyDots(path),
        PathError::Nul => FileNameError::Control(path),
    })
}

fn trim_dots(part: &str) -> Result<&str, FileNameError> {
    let name = part.trim_end_matches('.');
    if name.is_empty() && !part.is_empty() {
        return Err(FileNameError::OnlyDots(part.into()));
    }
    Ok(name)
}

fn percent_decode(raw: &str) -> Result<String, FileNameError> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = tail;
            continue;
        }
        let (&[high, low], tail) = tail.split_first_chunk().ok_or(FileNameError::BadEscape)?;
        bytes.push(hex_digit(high)? << 4 | hex_digit(low)?);
        rest = tail;
    }
    String::from_utf8(bytes).map_err(|_| FileNameError::NotUtf8)
}

fn hex_digit(digit: u8) -> Result<u8, FileNameError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        b'A'..=b'F' => Ok(digit - b'A' + 10),
        _ => Err(FileNameError::BadEscape),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rest(raw: &str) -> Result<String, FileNameError> {
        rest_path(raw, false).map(|path| path.as_str().to_owned())
    }

    #[test]
    fn a_path_is_decoded_once() {
        assert_eq!(rest("/Dir%20A/b"), Ok("Dir A/b".into()));
        assert_eq!(rest("a%2525"), Ok("a%25".into()));
        assert_eq!(rest("a+b%2B"), Ok("a+b+".into()));
        assert_eq!(rest("caf%C3%A9/%f0%9f%98%80"), Ok("café/😀".into()));
        assert_eq!(rest("café"), Ok("café".into()));
    }

    #[test]
    fn an_encoded_slash_separates() {
        assert_eq!(rest("Dir%20A%2Fsub%2ff"), Ok("Dir A/sub/f".into()));
        assert_eq!(rest("a/%2e%2e/b"), Err(FileNameError::OnlyDots("..".into())));
        assert_eq!(rest("a%2F%2Fb"), Err(FileNameError::Empty));
    }

    #[test]
    fn one_slash_at_either_end_is_dropped() {
        assert_eq!(rest("/dir/"), Ok("dir".into()));
        assert_eq!(rest("dir%2F"), Ok("dir".into()));
        assert_eq!(rest("/"), Ok(String::new()));
        assert_eq!(rest(""), Ok(String::new()));
        assert_eq!(rest("dir//"), Err(FileNameError::Empty));
        assert_eq!(rest("//dir"), Err(FileNameError::Empty));
    }

    #[test]
    fn a_broken_escape_is_refused() {
        for raw in ["%", "a%2", "%g0", "%0g", "%+1", "%%20", "%é"] {
            assert_eq!(rest(raw), Err(FileNameError::BadEscape), "{raw}");
        }
    }

    #[test]
    fn bytes_that_are_no_utf8_are_refused() {
        // A stray continuation byte, a cut character, an overlong slash, an unpaired surrogate.
        for raw in ["%80", "%C3", "%C0%AF", "%ED%A0%80"] {
            assert_eq!(rest(raw), Err(FileNameError::NotUtf8), "{raw}");
        }
    }

    #[test]
    fn trailing_dots_are_trimmed_from_each_component_unless_allowed() {
        assert_eq!(rest("dir./a.txt..."), Ok("dir/a.txt".into()));
        let kept = rest_path("dir./a.txt...", true).unwrap();
        assert_eq!(kept.as_str(), "dir./a.txt...");
        assert_eq!(rest("CON."), Err(FileNameError::Reserved("CON".into())));
    }

    #[test]
    fn a_component_of_dots_only_is_refused() {
        for dots in [".", "..", "...", "a/.../b"] {
            assert!(matches!(rest(dots), Err(FileNameError::OnlyDots(_))), "{dots}");
        }
        for dots in [".", "..", "a/../b"] {
            let refused = rest_path(dots, true);
            assert!(matches!(refused, Err(FileNameError::OnlyDots(_))), "{dots}");
        }
        assert_eq!(rest_path("...", true).unwrap().as_str(), "...");
    }

    #[test]
    fn a_component_has_at_most_255_utf16_units() {
        assert!(rest(&"a".repeat(255)).is_ok());
        assert_eq!(rest(&"a".repeat(256)), Err(FileNameError::ComponentTooLong("a".repeat(256))));
        assert!(rest(&"é".repeat(255)).is_ok());
        assert!(rest(&"😀".repeat(127)).is_ok());
        assert!(matches!(rest(&"😀".repeat(128)), Err(FileNameError::ComponentTooLong(_))));
        // Trimmed dots do not count.
        assert!(rest(&format!("{}.", "a".repeat(255))).is_ok());
    }

    #[test]
    fn a_path_has_at_most_2048_utf16_units() {
        // Eight components of 255 and their separators make 2,048.
        let at_limit = format!("{}/", "a".repeat(255)).repeat(8);
        let at_limit = &at_limit[..2048];
        assert_eq!(rest(at_limit).map(|path| path.len()), Ok(2047));
        assert!(rest(&format!("{}/b", &at_limit[..2046])).is_ok());
        assert_eq!(rest(&format!("{}/b", &at_limit[..2047])), Err(FileNameError::PathTooLong));
    }

    #[test]
    fn a_path_has_at_most_250_components() {
        assert!(rest(&"a/".repeat(250)).is_ok());
        assert_eq!(rest(&"a/".repeat(251)), Err(FileNameError::TooDeep));
    }

    #[test]
    fn forbidden_characters_are_refused() {
        for letter in "\"\\:|<>*?".chars() {
            let component = format!("a{letter}b");
            assert_eq!(
                check_component(&component),
                Err(FileNameError::Forbidden { component: component.clone(), character: letter })
            );
        }
        assert!(check_component("a/b").is_err());
        assert!(check_component("a b!#$%&'()+,-.;=@[]^_`{}~").is_ok());
    }

    #[test]
    fn control_characters_are_refused() {
        for raw in ["%00", "a%1F", "%0A", "%7f", "%C2%81"] {
            assert!(matches!(rest(raw), Err(FileNameError::Control(_))), "{raw}");
        }
    }

    #[test]
    fn device_names_are_reserved_in_any_case() {
        for name in ["LPT1", "lpt9", "COM1", "Com9", "PRN", "aux", "Nul", "CON", "clock$"] {
            assert_eq!(check_component(name), Err(FileNameError::Reserved(name.into())));
        }
        for name in ["LPT0", "COM10", "COM", "CON1", "con.txt", "CLOCK", "COMé", "1"] {
            assert_eq!(check_component(name), Ok(()), "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_path_makes_the_rules_panic(text in any::<String>(), dots in any::<bool>()) {
            if let Ok(path) = rest_path(&text, dots) {
                prop_assert!(path.components().all(|name| check_component(name).is_ok()));
            }
        }

        #[test]
        fn escapes_never_panic(text in "[%/.a-fA-F0-9+é]{0,40}", dots in any::<bool>()) {
            if let Ok(path) = rest_path(&text, dots) {
                prop_assert!(!path.as_str().starts_with('/') && !path.as_str().ends_with('/'));
            }
        }
    }
}
