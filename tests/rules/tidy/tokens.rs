//! Reads Rust source as far as the rules need it: words and marks with their lines.
//!
//! Comments, strings, characters and lifetimes are dropped, so that what a text *mentions* never
//! counts as what the code *does*.

/// A piece of source that is neither blank, comment nor literal text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Token<'a> {
    /// An identifier, keyword or number.
    Word(&'a str),
    /// `::`
    PathSep,
    /// Any other single character.
    Mark(char),
}

/// The tokens of `text`, each with its line from 1.
pub fn tokens(text: &str) -> Vec<(Token<'_>, usize)> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let dropped = dropped_length(rest);
        let length = if dropped > 0 {
            dropped
        } else if let Some(word) = word_length(rest) {
            found.push((Token::Word(&rest[..word]), line));
            word
        } else if rest.starts_with("::") {
            found.push((Token::PathSep, line));
            2
        } else {
            found.push((Token::Mark(first), line));
            first.len_utf8()
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    found
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn word_length(rest: &str) -> Option<usize> {
    let length = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
    (length > 0).then_some(length)
}

/// How much at the start of `rest` is blank, comment, literal or lifetime.
fn dropped_length(rest: &str) -> usize {
    if rest.starts_with(char::is_whitespace) {
        return rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
    }
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment_length(rest);
    }
    if rest.starts_with('\'') {
        return quote_length(rest);
    }
    string_length(rest)
}

fn block_comment_length(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// A character literal, or a lifetime: `'x'` closes, `'x` does not.
fn quote_length(rest: &str) -> usize {
    let mut letters = rest.char_indices().skip(1);
    let Some((_, first)) = letters.next() else {
        return rest.len();
    };
    if first == '\\' {
        // The escaped character itself may be a quote.
        letters.next();
        return letters.find(|(_, letter)| *letter == '\'').map_or(rest.len(), |(at, _)| at + 1);
    }
    match letters.next() {
        Some((at, '\'')) => at + 1,
        _ => 1 + word_length(&rest[1..]).unwrap_or(0),
    }
}

/// A string literal with any of its prefixes; 0 if there is none here.
fn string_length(rest: &str) -> usize {
    let prefix = ["br", "cr", "b", "c", "r", ""]
        .into_iter()
        .find(|prefix| rest.starts_with(prefix))
        .unwrap_or("");
    let body = &rest[prefix.len()..];
    if prefix.ends_with('r') {
        let hashes = body.len() - body.trim_start_matches('#').len();
        if !body[hashes..].starts_with('"') {
            return 0;
        }
        let end = format!("\"{}", "#".repeat(hashes));
        let start = prefix.len() + hashes + 1;
        return rest[start..].find(&end).map_or(rest.len(), |at| start + at + end.len());
    }
    if !body.starts_with('"') {
        return 0;
    }
    let mut escaped = false;
    for (at, letter) in body.char_indices().skip(1) {
        match letter {
            '"' if !escaped => return prefix.len() + at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<(&str, usize)> {
        tokens(text)
            .into_iter()
            .filter_map(|(token, line)| match token {
                Token::Word(word) => Some((word, line)),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn comments_and_literals_are_dropped_and_lines_kept() {
        let text =
            "a // b\n/* c /* d */\n e */ f\n\"g \\\" h\" i r#\"j \" k\"# l b\"m\" 'n' '\\'' o";
        assert_eq!(words(text), [("a", 1), ("f", 3), ("i", 4), ("l", 4), ("o", 4)]);
    }

    #[test]
    fn lifetimes_do_not_swallow_what_follows() {
        assert_eq!(words("&'a str '_ x '{' y"), [("str", 1), ("x", 1), ("y", 1)]);
    }

    #[test]
    fn words_that_begin_like_a_string_prefix_stay_words() {
        assert_eq!(
            words("broken crate r bytes"),
            [("broken", 1), ("crate", 1), ("r", 1), ("bytes", 1)]
        );
    }

    #[test]
    fn an_unclosed_literal_ends_with_the_text() {
        for text in ["a \"b", "a r#\"b\"", "a /* b", "a '", "a '\\"] {
            assert_eq!(words(text), [("a", 1)], "{text}");
        }
    }
}
