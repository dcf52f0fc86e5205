//! Names as SMB clients write them: paths with backslashes, and wildcards of a listing. Which
//! names a share takes is decided by the rules of the service.

use super::status::Status;
use crate::file::rules::SharePath;

/// The path of a CREATE, a rename or a link.
///
/// A stream (`name:stream`) and characters that no name has are `OBJECT_NAME_INVALID`, a path that
/// begins with a backslash `INVALID_PARAMETER`, and `.` or `..` within it
/// `OBJECT_PATH_SYNTAX_BAD`.
pub fn path(name: &str) -> Result<SharePath, Status> {
    if name.starts_with('\\') {
        return Err(Status::INVALID_PARAMETER);
    }
    let name = name.strip_suffix('\\').unwrap_or(name);
    if name.split('\\').any(|part| matches!(part, "." | "..")) {
        return Err(Status::OBJECT_PATH_SYNTAX_BAD);
    }
    if name.contains(|c: char| c.is_ascii_control() || "\"*/:<>?|".contains(c)) {
        return Err(Status::OBJECT_NAME_INVALID);
    }
    SharePath::new(&name.replace('\\', "/")).map_err(|_| Status::OBJECT_NAME_INVALID)
}

/// A path as SMB shows it: a backslash, then the components.
pub fn shown(path: &SharePath) -> String {
    format!("\\{}", path.as_str().replace('/', "\\"))
}

/// Whether a name matches a pattern, whatever the case: `*`, `?`, and the forms that DOS clients
/// send for them, `<`, `>` and `"`.
pub fn matches(pattern: &str, name: &str) -> bool {
    let folded = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<Vec<_>>();
    let (pattern, name) = (folded(pattern), folded(name));
    // The name's position to go back to, and the pattern behind the last star.
    let mut star: Option<(usize, usize)> = None;
    let (mut p, mut n) = (0, 0);
    while n < name.len() {
        match pattern.get(p) {
            Some('*' | '<') => {
                star = Some((n, p + 1));
                p += 1;
            }
            Some(one) if is_match(*one, name[n]) => (p, n) = (p + 1, n + 1),
            _ => match star {
                Some((from, behind)) => {
                    star = Some((from + 1, behind));
                    (p, n) = (behind, from + 1);
                }
                None => return false,
            },
        }
    }
    // At the end of the name the DOS forms match nothing.
    pattern[p..].iter().all(|one| matches!(one, '*' | '<' | '>' | '"'))
}

fn is_match(pattern: char, letter: char) -> bool {
    match pattern {
        '?' | '>' => true,
        '"' => letter == '.',
        one => one == letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_backslashes_and_no_stream() {
        assert_eq!(path("a\\b.txt").unwrap().as_str(), "a/b.txt");
        assert_eq!(path("dir\\").unwrap().as_str(), "dir");
        assert!(path("").unwrap().is_root());
        assert_eq!(shown(&path("a\\b").unwrap()), "\\a\\b");
        for (name, status) in [
            ("\\a", Status::INVALID_PARAMETER),
            ("a:stream", Status::OBJECT_NAME_INVALID),
            ("a\\\\b", Status::OBJECT_NAME_INVALID),
            ("a/b", Status::OBJECT_NAME_INVALID),
            ("a*", Status::OBJECT_NAME_INVALID),
            ("a\0", Status::OBJECT_NAME_INVALID),
            ("..\\b", Status::OBJECT_PATH_SYNTAX_BAD),
            ("a\\.", Status::OBJECT_PATH_SYNTAX_BAD),
        ] {
            assert_eq!(path(name), Err(status), "{name:?}");
        }
    }

    #[test]
    fn wildcards_match_in_any_case() {
        for (pattern, name) in [
            ("*", "a"),
            ("*.TXT", "note.txt"),
            ("n?te*", "Note.txt"),
            ("<.txt", "a.b.txt"),
            ("a>>", "a"),
            ("a\"b", "a.b"),
            ("a\"", "a"),
            ("*a*b", "xxaxxabb"),
            ("é", "É"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("", "a"), ("?", ""), ("a?", "a"), ("*.txt", "txt"), ("a", "b")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_cost_no_more_than_pattern_times_name() {
        let pattern = "*a".repeat(2000);
        assert!(!matches(&pattern, &"a".repeat(1999)));
        assert!(!matches(&format!("{pattern}b"), &"a".repeat(4000)));
    }
}
