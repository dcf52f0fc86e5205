//! Table names: which are legal, and when two are the same.
//!
//! The texts of refusals are those of [`crate::rules::name`]. The engine decides whether a table of
//! a name exists.

use std::fmt;

use super::denial::TableDenial;
use crate::rules::name::{NameError, RESOURCE_LETTERS, check_characters, check_length};

/// A legal table name. Tables are found without regard to case and shown as they were created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableName(String);

impl TableName {
    /// Checks a name: 3 to 63 letters and digits, a letter first; `tables` is reserved.
    pub fn parse(text: &str) -> Result<Self, TableDenial> {
        check_length(text, RESOURCE_LETTERS)?;
        check_characters(text, "letters and digits", |letter| letter.is_ascii_alphanumeric())?;
        if !text.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            return Err(NameError::form(text, "the name of a table begins with a letter").into());
        }
        if text.eq_ignore_ascii_case("tables") {
            return Err(NameError::form(text, "this is the list of tables").into());
        }
        Ok(Self(text.to_owned()))
    }

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The form that names of one table share.
    pub fn folded(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_letters_and_digits_of_a_bounded_length() {
        let longest = "a".repeat(63);
        for good in ["abc", "A1z", "Table", "tables1", &longest] {
            assert_eq!(TableName::parse(good).unwrap().as_str(), good);
        }
        for short_or_long in ["", "a", "ab", "äö", &"a".repeat(64), "1"] {
            let refused = TableName::parse(short_or_long);
            let length = matches!(refused, Err(TableDenial::Name(NameError::Length { .. })));
            assert!(length, "{short_or_long}: {refused:?}");
        }
        for bad in ["a_b", "1ab", "a-b", "tables", "TABLES", "a b", "größe", "$batch"] {
            let refused = TableName::parse(bad);
            let length = matches!(refused, Err(TableDenial::Name(NameError::Length { .. })));
            assert!(refused.is_err() && !length, "{bad}: {refused:?}");
        }
    }

    #[test]
    fn the_texts_are_those_that_clients_compare() {
        let text = |name: &str| TableName::parse(name).unwrap_err().to_string();
        let characters = "The specifed resource name contains invalid characters. [latchfs: ";
        let length = "The specified resource name length is not within the permissible limits. \
                      [latchfs: ";
        for (name, sentence, hint) in [
            ("ab", length, "'ab' has 2 letters, 3 to 63 are allowed]"),
            ("a_b", characters, "'a_b' has '_', only letters and digits are allowed]"),
            ("1ab", characters, "'1ab': the name of a table begins with a letter]"),
            ("Tables", characters, "'Tables': this is the list of tables]"),
        ] {
            assert_eq!(text(name), format!("{sentence}{hint}"));
        }
    }

    #[test]
    fn names_of_one_table_fold_to_one_form() {
        assert_eq!(TableName::parse("MyTable").unwrap().folded(), "mytable");
    }
}
