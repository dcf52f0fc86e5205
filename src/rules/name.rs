//! Names of resources: the rule that containers, queues and shares have in common, and what a
//! refusal says about any name.
//!
//! Decides which of the service's two codes a wrong name gets, its sentence and the hint after it.
//! What else a service asks of its names is decided in the `name` of its own rules.

use std::fmt;
use std::ops::RangeInclusive;

/// The letters of a name of a container, queue, share or table: fewest and most.
pub const RESOURCE_LETTERS: RangeInclusive<usize> = 3..=63;

/// The letters of a name that a hint repeats.
const SHOWN_LETTERS: usize = 80;

/// Why a name is refused. The text is the hint: the name, what is wrong with it, what is allowed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NameError {
    /// `OutOfRangeInput`: too short or too long.
    #[error(
        "{} has {}, {} to {} are allowed",
        Quoted(name), Letters(name), allowed.start(), allowed.end()
    )]
    Length { name: String, allowed: RangeInclusive<usize> },
    /// `InvalidResourceName`: a character that such names do not have.
    #[error("{} has {character:?}, only {allowed} are allowed", Quoted(name))]
    Character { name: String, character: char, allowed: &'static str },
    /// `InvalidResourceName`: characters in an order, or of a number, that such names do not have.
    #[error("{}: {why}", Quoted(name))]
    Form { name: String, why: &'static str },
}

impl NameError {
    /// The service's sentence for such a name.
    pub const fn sentence(&self) -> &'static str {
        match self {
            Self::Length { .. } => {
                "The specified resource name length is not within the permissible limits."
            }
            Self::Character { .. } | Self::Form { .. } => {
                "The specified resource name contains invalid characters."
            }
        }
    }

    /// The message of a refusal: the service's sentence, then the hint.
    pub fn message(&self) -> String {
        format!("{} [latchfs: {self}]", self.sentence())
    }

    pub fn form(name: &str, why: &'static str) -> Self {
        Self::Form { name: name.to_owned(), why }
    }
}

/// A name as a hint repeats it: in quotes, without control characters, and cut if it is long.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = self.0.chars().take(SHOWN_LETTERS).collect();
        let rest = if shown.len() < self.0.len() { "..." } else { "" };
        write!(f, "'{}{rest}'", shown.escape_debug())
    }
}

/// The length of a name as a hint tells it.
struct Letters<'a>(&'a str);

impl fmt::Display for Letters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.chars().count() {
            1 => f.write_str("1 letter"),
            more => write!(f, "{more} letters"),
        }
    }
}

/// Checks the length of a name, in characters.
pub fn check_length(name: &str, allowed: RangeInclusive<usize>) -> Result<(), NameError> {
    if allowed.contains(&name.chars().count()) {
        return Ok(());
    }
    Err(NameError::Length { name: name.to_owned(), allowed })
}

/// Checks that a name has no other character than those of which `is_allowed` is true. `allowed`
/// names them.
pub fn check_characters(
    name: &str,
    allowed: &'static str,
    is_allowed: impl Fn(char) -> bool,
) -> Result<(), NameError> {
    match name.chars().find(|character| !is_allowed(*character)) {
        None => Ok(()),
        Some(character) => Err(NameError::Character { name: name.to_owned(), character, allowed }),
    }
}

/// Checks the name of a container, queue or share: 3 to 63 lower-case letters, digits and hyphens,
/// each hyphen between two of the others.
pub fn check_resource_name(name: &str) -> Result<(), NameError> {
    check_length(name, RESOURCE_LETTERS)?;
    check_characters(
        name,
        "lower-case letters, digits and hyphens",
        |letter| matches!(letter, 'a'..='z' | '0'..='9' | '-'),
    )?;
    if name.split('-').any(str::is_empty) {
        return Err(NameError::form(name, "a hyphen stands between letters or digits"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn legal_names_pass() {
        let longest = "a".repeat(63);
        for name in ["abc", "a-b", "1-2-3", "000", "messages", &longest] {
            assert_eq!(check_resource_name(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn a_hint_tells_what_is_wrong_with_the_name_and_what_is_allowed() {
        let long = "a".repeat(64);
        let characters = "only lower-case letters, digits and hyphens are allowed";
        for (name, length, hint) in [
            ("", true, "'' has 0 letters, 3 to 63 are allowed".to_owned()),
            ("A", true, "'A' has 1 letter, 3 to 63 are allowed".to_owned()),
            ("c1", true, "'c1' has 2 letters, 3 to 63 are allowed".to_owned()),
            (&long, true, format!("'{long}' has 64 letters, 3 to 63 are allowed")),
            ("aBc", false, format!("'aBc' has 'B', {characters}")),
            ("a_b", false, format!("'a_b' has '_', {characters}")),
            ("größe", false, format!("'größe' has 'ö', {characters}")),
            ("a\nb", false, format!("'a\\nb' has '\\n', {characters}")),
            ("-ab", false, "'-ab': a hyphen stands between letters or digits".to_owned()),
            ("ab-", false, "'ab-': a hyphen stands between letters or digits".to_owned()),
            ("a--b", false, "'a--b': a hyphen stands between letters or digits".to_owned()),
        ] {
            let refused = check_resource_name(name).unwrap_err();
            assert_eq!(refused.to_string(), hint);
            assert_eq!(matches!(refused, NameError::Length { .. }), length, "{name}");
        }
    }

    #[test]
    fn a_long_name_is_cut_in_its_hint() {
        let hint = check_resource_name(&"n".repeat(2_000)).unwrap_err().to_string();
        let shown = "n".repeat(SHOWN_LETTERS);
        assert_eq!(hint, format!("'{shown}...' has 2000 letters, 3 to 63 are allowed"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_rule_or_its_hint_panic(name in any::<String>()) {
            let _ = check_resource_name(&name).map_err(|refused| refused.message());
        }
    }
}
