//! Patterns over paths: `*` is any run without a slash, `**` any run, `?` one byte but a slash.

/// Whether all of `text` fits `glob`. Both are compared as they are: fold them first where case
/// does not matter. Takes time in proportion to their product, whatever the pattern.
pub fn matches(glob: &[u8], text: &[u8]) -> bool {
    // The places in the text that the pattern so far can have come to.
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    let mut rest = glob;
    loop {
        let (token, behind) = match rest {
            [] => return reached[text.len()],
            [b'*', b'*', behind @ ..] => (GlobToken::Run { slashes: true }, behind),
            [b'*', behind @ ..] => (GlobToken::Run { slashes: false }, behind),
            [byte, behind @ ..] => (GlobToken::One(*byte), behind),
        };
        reached = token.step(&reached, text);
        rest = behind;
    }
}

enum GlobToken {
    Run { slashes: bool },
    One(u8),
}

impl GlobToken {
    fn step(&self, reached: &[bool], text: &[u8]) -> Vec<bool> {
        let mut next = vec![false; reached.len()];
        match self {
            Self::Run { slashes } => {
                next[0] = reached[0];
                for (at, byte) in text.iter().enumerate() {
                    let goes_on = next[at] && (*slashes || *byte != b'/');
                    next[at + 1] = reached[at + 1] || goes_on;
                }
            }
            Self::One(wanted) => {
                for (at, byte) in text.iter().enumerate() {
                    let fits = wanted == byte || (*wanted == b'?' && *byte != b'/');
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
        assert!(!fits(&"*a".repeat(50), &"b".repeat(5_000)), "and it ends");
    }
}
