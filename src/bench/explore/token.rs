//! The choices of a run, and the token that writes them down: `A2.B.A!.+16~3ef9`.
//!
//! Decides the form of a token. The digits behind `~` are of the operations that were done, so that
//! the token of another test is told from this one's.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

/// What the scheduler does next.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Choice {
    Start(Arc<str>),
    /// The request of the client is done. Of several that wait at once it is the one of that
    /// number, from 1.
    Do(Arc<str>, u32),
    /// The request is done, and its answer is dropped.
    Drop(Arc<str>, u32),
    /// The clock is advanced by so many milliseconds.
    Advance(u64),
}

impl Choice {
    /// The client whose step it is; none for the clock.
    pub fn client(&self) -> Option<&Arc<str>> {
        match self {
            Self::Start(client) | Self::Do(client, _) | Self::Drop(client, _) => Some(client),
            Self::Advance(_) => None,
        }
    }

    pub fn is_drop(&self) -> bool {
        matches!(self, Self::Drop(..))
    }

    /// The same step with its answer sent.
    #[must_use]
    pub fn sent(&self) -> Self {
        match self {
            Self::Drop(client, nth) => Self::Do(Arc::clone(client), *nth),
            other => other.clone(),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nth = |nth: &u32| if *nth == 1 { String::new() } else { format!("/{nth}") };
        match self {
            Self::Start(client) => write!(f, "^{client}"),
            Self::Do(client, number) => write!(f, "{client}{}", nth(number)),
            Self::Drop(client, number) => write!(f, "{client}{}!", nth(number)),
            Self::Advance(ms) if ms % 1_000 == 0 => write!(f, "+{}", ms / 1_000),
            Self::Advance(ms) => write!(f, "+{ms}ms"),
        }
    }
}

/// The order of a run, and the digits of its operations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Token {
    pub choices: Vec<Choice>,
    pub digits: String,
}

/// Why a text is no token of these clients.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{part}' is no step of the clients {clients}: copy the whole token, as in A2.B.A!~3ef9")]
pub struct BadToken {
    part: String,
    clients: String,
}

/// The digits of a row of operations.
pub fn digits<'a>(labels: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for label in labels {
        hash.update(label);
        hash.update([0]);
    }
    let hash = hash.finalize();
    format!("{:02x}{:02x}", hash[0], hash[1])
}

/// Choices as a token has them: equal ones that follow each other are counted.
pub fn written(choices: &[Choice]) -> String {
    let parts = choices.chunk_by(|one, next| one == next && matches!(one, Choice::Do(..)));
    let parts = parts.map(|same| {
        let part = same[0].to_string();
        match same.len() {
            1 => part,
            // `w1` twice is not `w12`.
            count if part.ends_with(|last: char| last.is_ascii_digit()) => {
                format!("{part}*{count}")
            }
            count => format!("{part}{count}"),
        }
    });
    parts.collect::<Vec<_>>().join(".")
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}~{}", written(&self.choices), self.digits)
    }
}

impl Token {
    /// The most steps of a token: more than a run may have.
    pub const STEPS_MAX: usize = 100_000;

    pub fn read(text: &str, clients: &[Arc<str>]) -> Result<Self, BadToken> {
        let bad = |part: &str| BadToken {
            part: part.chars().take(100).collect(),
            clients: clients.join(", "),
        };
        let (steps, digits) = text.trim().rsplit_once('~').ok_or_else(|| bad(text))?;
        if digits.len() != 4 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(bad(text));
        }
        let mut choices = Vec::new();
        for part in steps.split('.').filter(|part| !part.is_empty()) {
            let (choice, count) = read_part(part, clients).ok_or_else(|| bad(part))?;
            if choices.len() + count > Self::STEPS_MAX {
                return Err(bad(part));
            }
            choices.extend(std::iter::repeat_n(choice, count));
        }
        Ok(Self { choices, digits: digits.to_ascii_lowercase() })
    }
}

/// A part of a token: a choice, and how many times.
fn read_part(part: &str, clients: &[Arc<str>]) -> Option<(Choice, usize)> {
    if let Some(time) = part.strip_prefix('+') {
        let (number, unit) = time.strip_suffix("ms").map_or((time, 1_000), |ms| (ms, 1));
        return Some((Choice::Advance(number.parse::<u64>().ok()?.checked_mul(unit)?), 1));
    }
    if let Some(name) = part.strip_prefix('^') {
        return Some((Choice::Start(Arc::clone(clients.iter().find(|one| ***one == *name)?)), 1));
    }
    // A name may be the beginning of another one.
    let names = clients.iter().filter(|name| part.starts_with(&***name));
    let name = names.max_by_key(|name| name.len())?;
    let mut rest = &part[name.len()..];
    let mut nth = 1;
    if let Some(after) = rest.strip_prefix('/') {
        let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        nth = after[..end].parse().ok().filter(|nth| *nth > 1)?;
        rest = &after[end..];
    }
    if rest == "!" {
        return Some((Choice::Drop(Arc::clone(name), nth), 1));
    }
    let rest = rest.strip_prefix('*').unwrap_or(rest);
    let count = if rest.is_empty() { 1 } else { rest.parse().ok().filter(|count| *count > 0)? };
    Some((Choice::Do(Arc::clone(name), nth), count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written() {
        let clients: Vec<Arc<str>> = ["A", "B", "w1", "w12"].map(Arc::from).into();
        let digits = digits(["Get Blob box/a", "Put Blob box/a"]);
        for steps in [
            "A2.B.A!.+16",
            "w1*2.w12.A/2.A/2!.A/2*3",
            "^A.^B.B.A200",
            "+500ms.+3600",
            "",
            "A!.A!",
            "w12*12",
        ] {
            let text = format!("{steps}~{digits}");
            let token = Token::read(&text, &clients).unwrap();
            assert_eq!(token.to_string(), text);
        }
        for bad in [
            "A2.B",
            "A2~12345",
            "A2~12g4",
            "C~0000",
            "A0~0000",
            "A/1~0000",
            "A!2~0000",
            "+x~0000",
            "^C~0000",
            "A99999999~0000",
            "A-1~0000",
        ] {
            let error = Token::read(bad, &clients).unwrap_err();
            assert!(error.to_string().contains("copy the whole token"), "{bad}");
        }
    }

    #[test]
    fn the_digits_are_of_the_operations_and_their_order() {
        assert_ne!(digits(["a", "b"]), digits(["b", "a"]));
        assert_ne!(digits(["ab", ""]), digits(["a", "b"]));
        assert_eq!(digits(["a"]).len(), 4);
    }
}
