//! Finds the paths a source file names: `a::b::c`, with `use` trees spelled out one by one.
//!
//! Knows how deep in inline modules a path stands and whether that is test code; what a path may
//! name is decided in [`super::arrows`].

use super::tokens::{Token, tokens};

/// A path of at least two segments, or one named by `use`.
#[derive(PartialEq, Eq, Debug)]
pub struct NamedPath<'a> {
    /// The segments, `*` for a glob.
    pub segments: Vec<&'a str>,
    /// The line it stands on, from 1.
    pub line: usize,
    /// How many inline modules (`mod x { }`) of the file surround it.
    pub inline_depth: usize,
    /// One of them is under `#[cfg(test)]`.
    pub in_test: bool,
}

/// Every path of the file, in its order.
pub fn paths(text: &str) -> Vec<NamedPath<'_>> {
    let mut reader = Reader {
        tokens: tokens(text),
        at: 0,
        modules: Vec::new(),
        braces: 0,
        under_cfg_test: false,
        found: Vec::new(),
    };
    reader.read_file();
    reader.found
}

/// An inline module that the reader is in.
struct InlineModule {
    /// How many braces were open before its own.
    outside: usize,
    test: bool,
}

struct Reader<'a> {
    tokens: Vec<(Token<'a>, usize)>,
    at: usize,
    modules: Vec<InlineModule>,
    braces: usize,
    /// A `#[cfg(test)]` stands before the item that comes next.
    under_cfg_test: bool,
    found: Vec<NamedPath<'a>>,
}

impl<'a> Reader<'a> {
    fn token(&self, ahead: usize) -> Option<Token<'a>> {
        self.tokens.get(self.at + ahead).map(|(token, _)| *token)
    }

    fn read_file(&mut self) {
        while let Some(token) = self.token(0) {
            match token {
                Token::Word("mod") if self.token(2) == Some(Token::Mark('{')) => {
                    self.modules
                        .push(InlineModule { outside: self.braces, test: self.under_cfg_test });
                    // The brace itself is counted in the next round.
                    self.at += 2;
                }
                Token::Word("use") => {
                    self.at += 1;
                    self.read_tree(&[], 1);
                }
                Token::Word(_) => self.read_tree(&[], 2),
                Token::Mark('#') => self.read_attribute(),
                Token::Mark(mark) => {
                    self.count_brace(mark);
                    self.at += 1;
                }
                Token::PathSep => self.at += 1,
            }
        }
    }

    fn count_brace(&mut self, mark: char) {
        match mark {
            '{' => self.braces += 1,
            '}' => {
                self.braces = self.braces.saturating_sub(1);
                if self.modules.last().is_some_and(|module| module.outside == self.braces) {
                    self.modules.pop();
                }
            }
            ';' => {}
            _ => return,
        }
        self.under_cfg_test = false;
    }

    /// Notes a `#[cfg(test)]`, also one among other conditions; `not(...)` is taken as no test.
    fn read_attribute(&mut self) {
        self.at += 1;
        if self.token(0) != Some(Token::Mark('[')) || self.token(1) != Some(Token::Word("cfg")) {
            return;
        }
        let rest = self.tokens[self.at..].iter().map(|(token, _)| *token);
        let inside: Vec<_> = rest.take_while(|token| *token != Token::Mark(']')).collect();
        let has = |word| inside.contains(&Token::Word(word));
        self.under_cfg_test |= has("test") && !has("not");
        self.at += inside.len();
    }

    /// Reads the path, or the tree of paths, that begins here; keeps those of `shortest` or more
    /// segments.
    fn read_tree(&mut self, prefix: &[&'a str], shortest: usize) {
        let line = self.tokens.get(self.at).map_or(0, |(_, line)| *line);
        let mut segments = prefix.to_vec();
        if self.token(0) == Some(Token::PathSep) {
            self.at += 1;
        }
        loop {
            match self.token(0) {
                Some(Token::Word(word)) => segments.push(word),
                Some(Token::Mark('*')) if !segments.is_empty() => segments.push("*"),
                Some(Token::Mark('{')) if segments.len() >= shortest.min(1) => {
                    return self.read_group(&segments);
                }
                _ => break,
            }
            self.at += 1;
            if self.token(0) != Some(Token::PathSep) {
                break;
            }
            self.at += 1;
        }
        if segments.len() >= shortest {
            self.found.push(NamedPath {
                segments,
                line,
                inline_depth: self.modules.len(),
                in_test: self.modules.iter().any(|module| module.test),
            });
        }
    }

    fn read_group(&mut self, prefix: &[&'a str]) {
        self.at += 1;
        while let Some(token) = self.token(0) {
            match token {
                Token::Mark('}') => {
                    self.at += 1;
                    return;
                }
                Token::Word("as") => self.at += 2,
                Token::Word(_) | Token::Mark('*' | '{') => self.read_tree(prefix, 1),
                _ => self.at += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(text: &str) -> Vec<String> {
        let named = paths(text);
        named.iter().map(|path| path.segments.join("::")).collect()
    }

    #[test]
    fn use_trees_are_spelled_out() {
        let text = "use crate::{core::{Access, id::*}, store as s};\npub(crate) use log;";
        let expected = ["crate::core::Access", "crate::core::id::*", "crate::store", "log"];
        assert_eq!(joined(text), expected);
        assert_eq!(joined("use {std::fs, std::net};"), ["std::fs", "std::net"]);
    }

    #[test]
    fn paths_in_code_count_and_single_words_do_not() {
        let text = "fn f(x: crate::core::A) -> B { let y = std::fs::read::<u8>(x); y * 2 }";
        assert_eq!(joined(text), ["crate::core::A", "std::fs::read"]);
        assert_eq!(joined("struct Log { log: u8 } // std::fs"), [""; 0]);
    }

    #[test]
    fn inline_modules_give_depth_and_test_code_is_known() {
        let text = "use a::b;\n#[cfg(all(test, unix))]\nmod tests {\n use super::c;\n \
                    mod deep { d::e(); }\n}\n#[cfg(not(test))]\nmod real { f::g(); }\nuse h::i;";
        let seen: Vec<_> = paths(text)
            .into_iter()
            .map(|path| (path.segments[1], path.line, path.inline_depth, path.in_test))
            .collect();
        let expected = [
            ("b", 1, 0, false),
            ("c", 4, 1, true),
            ("e", 5, 2, true),
            ("g", 8, 1, false),
            ("i", 9, 0, false),
        ];
        assert_eq!(seen, expected);
    }
}
