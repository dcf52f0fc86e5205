//! Patterns over paths: `*` is any run without a slash, `**` any run, `?` one byte but a slash. In
//! other texts a slash is a byte like any other.

/// Whether all of `text` fits `glob`. Both are compared as they are: fold them first where case
/// does not matter. Takes time in proportion to their product, whatever the pattern.
pub fn matches(glob: &[u8], text: &[u8]) -> bool {
    matches_by(glob, text, b'/')
}

/// As [`matches`], for a text that is no path.
pub fn matches_text(glob: &[u8], text: &[u8]) -> bool {
    // No header and no name has this byte.
    matches_by(glob, text, b'\0')
}

fn matches_by(glob: &[u8], text: &[u8], separator: u8) -> bool {
    // The places in the text that the pattern so far can have come to.
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    let mut rest = glob;
    loop {
        let (token, behind) = match rest {
            [] => return reached[text.len()],
            [b'*', b'*', behind @ ..] => (GlobToken::Run { all: true }, behind),
            [b'*', behind @ ..] => (GlobToken::Run { all: false }, behind),
            [byte, behind @ ..] => (GlobToken::One(*byte), behind),
        };
        reached = token.step(&reached, text, separator);
        rest = behind;
    }
}

enum GlobToken {
    Run { all: bool },
    One(u8),
}

impl GlobToken {
    fn step(&self, reached: &[bool], text: &[u8], separator: u8) -> Vec<bool> {
        let mut next = vec![false; reached.len()];
        match self {
            Self::Run { all } => {
                next[0] = reached[0];
                for (at, byte) in text.iter().enumerate() {
                    let goes_on = next[at] && (*all || *byte != separator);
                    next[at + 1] = reached[at + 1] || goes_on;
                }
            }
            Self::One(wanted) => {
                for (at, byte) in text.iter().enumerate() {
                    let fits = wanted == byte || (*wanted == b'?' && *byte != separator);
                    next[at + 1] = reached[at] && fits;
                }
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stop_at_slashes_but_for_two_stars() {
        let fits = |glob: &str, text: &str| matches(glob.as_bytes(), text.as_bytes());
        for (glob, text) in [
            ("", ""),
            ("*", ""),
            ("a*c", "ac"),
            ("a*c", "abcbc"),
            ("*.txt", "a.txt"),
            ("a?c", "abc"),
            ("**", "x/y"),
            ("c/**/z", "c/x/y/z"),
            ("c/*", "c/b"),
        ] {
            assert!(fits(glob, text), "{glob} {text}");
        }
        for (glob, text) in
            [("", "a"), ("?", ""), ("?", "/"), ("a*c", "ab"), ("*", "a/b"), ("c/*", "c/a/b")]
        {
            assert!(!fits(glob, text), "{glob} {text}");
        }
        assert!(matches_text(b"azsdk-* Python/?.*", b"azsdk-blob/12 (a; b) Python/3.11"));
        assert!(!fits(&"*a".repeat(50), &"b".repeat(5_000)), "and it ends");
    }
}
