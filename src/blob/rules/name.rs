//! Names of containers and blobs.
//!
//! Decides which names are legal, and that a backslash is a slash. Apart from that, names are
//! compared byte for byte and never folded. REST decides how a name is taken from a URL.

use std::borrow::Cow;

use crate::rules::name::{NameError, check_length, check_resource_name};

/// Containers with a meaning of their own, legal though they do not follow the rule for names.
pub const ROOT: &str = "$root";
const SYSTEM: [&str; 3] = [ROOT, "$logs", "$web"];

/// Most characters of a blob's name.
pub const BLOB_NAME_MAX: usize = 1_024;
/// Most segments of a blob's name.
pub const SEGMENTS_MAX: usize = 254;

/// A container's name: that of any container, or one of the three that start with `$`.
pub fn check_container(name: &str) -> Result<(), NameError> {
    if SYSTEM.contains(&name) { Ok(()) } else { check_resource_name(name) }
}

/// The name under which a blob is kept: with a slash for each backslash, as the service has it.
/// Programs on Windows make names of paths, and other programs ask for them with slashes.
pub fn kept_name(sent: Cow<'_, str>) -> Cow<'_, str> {
    if sent.contains('\\') { sent.replace('\\', "/").into() } else { sent }
}

/// A blob's name: 1 to 1,024 characters in at most 254 segments. A name is not a path: `a//b`,
/// `a/../b` and `/a` are names like any other. Names in `$root` have no slash, because such a URL
/// would name a container.
pub fn check_blob(container: &str, name: &str) -> Result<(), NameError> {
    check_length(name, 1..=BLOB_NAME_MAX)?;
    let why = if container == ROOT && name.contains('/') {
        "a blob in $root has no slash in its name"
    } else if name.contains('\0') {
        "the name of a blob has no NUL"
    } else if name.split('/').count() > SEGMENTS_MAX {
        "the name of a blob has at most 254 segments"
    } else {
        return Ok(());
    };
    Err(NameError::form(name, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_length(checked: &Result<(), NameError>) -> bool {
        matches!(checked, Err(NameError::Length { .. }))
    }

    fn is_form(checked: &Result<(), NameError>) -> bool {
        matches!(checked, Err(NameError::Character { .. } | NameError::Form { .. }))
    }

    #[test]
    fn container_names_follow_the_rule() {
        let long = "a".repeat(63);
        for name in ["abc", "a-b", "000", "1-2-3", &long, "$root", "$logs", "$web"] {
            assert_eq!(check_container(name), Ok(()), "{name}");
        }
        for name in ["-abc", "abc-", "a--b", "Abc", "a_b", "a.b", "$abc", "a b", "é-é", "a/b"] {
            assert!(is_form(&check_container(name)), "{name}");
        }
        for name in ["", "ab", &"a".repeat(64)] {
            assert!(is_length(&check_container(name)), "{name}");
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
        assert!(is_length(&check_blob("abc", "")));
        assert!(is_length(&check_blob("abc", &"a".repeat(1_025))));
        let deeper = "a/".repeat(SEGMENTS_MAX);
        let said = check_blob("abc", &deeper).unwrap_err().to_string();
        assert!(said.ends_with(&format!("at most {SEGMENTS_MAX} segments")), "{said}");
        assert!(is_form(&check_blob("abc", "a\0b")));
    }

    #[test]
    fn a_backslash_is_kept_as_a_slash() {
        for (sent, kept) in [
            ("dir\\sub\\file.txt", "dir/sub/file.txt"),
            ("dir/sub\\", "dir/sub/"),
            ("\\\\server\\share", "//server/share"),
            ("%5C", "%5C"),
            ("a/b", "a/b"),
            ("", ""),
        ] {
            assert_eq!(kept_name(sent.into()), kept, "{sent}");
        }
    }

    #[test]
    fn names_in_the_root_container_have_no_slash() {
        assert_eq!(check_blob(ROOT, "index.html"), Ok(()));
        assert!(is_form(&check_blob(ROOT, "a/b")));
    }
}
