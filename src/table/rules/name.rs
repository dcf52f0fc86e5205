//! Table names: which are legal, and when two are the same.
//!
//! Decides which of two refusals an illegal name gets; clients tell them apart by their text. The
//! engine decides whether a table of a name exists.

use std::fmt;

use super::denial::TableDenial;

/// A legal table name. Tables are found without regard to case and shown as they were created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableName(String);

impl TableName {
    /// Checks a name: 3 to 63 letters and digits, a letter first; `tables` is reserved.
    pub fn parse(text: &str) -> Result<Self, TableDenial> {
        if !(3..=63).contains(&text.chars().count()) {
            return Err(TableDenial::NameLengthOutOfRange);
        }
        let legal = text.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && text.as_bytes()[0].is_ascii_alphabetic()
            && !text.eq_ignore_ascii_case("tables");
        if legal { Ok(Self(text.to_owned())) } else { Err(TableDenial::InvalidResourceName) }
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
            assert_eq!(refused, Err(TableDenial::NameLengthOutOfRange), "{short_or_long}");
        }
        for bad in ["a_b", "1ab", "a-b", "tables", "TABLES", "a b", "größe", "$batch"] {
            assert_eq!(TableName::parse(bad), Err(TableDenial::InvalidResourceName), "{bad}");
        }
    }

    #[test]
    fn the_texts_are_those_that_clients_compare() {
        assert_eq!(
            TableDenial::InvalidResourceName.to_string(),
            "The specifed resource name contains invalid characters."
        );
        assert_eq!(
            TableDenial::NameLengthOutOfRange.to_string(),
            "The specified resource name length is not within the permissible limits."
        );
    }

    #[test]
    fn names_of_one_table_fold_to_one_form() {
        assert_eq!(TableName::parse("MyTable").unwrap().folded(), "mytable");
    }
}
