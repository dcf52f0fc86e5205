//! `$select` and `$top`: which properties a query returns, and how many entities.
//!
//! Decides how both options are read. Filters are in [`super::filter`]; pages are decided by the
//! engine.

use super::denial::TableDenial;

/// Entities of a page.
pub const PAGE_MAX: usize = 1_000;
/// Characters of `$select` that are read.
const SELECT_TEXT_MAX: usize = 64 << 10;

/// The properties that a query returns.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Select {
    /// Sorted; none selects everything.
    names: Option<Vec<String>>,
    sent: String,
}

impl Select {
    /// Reads a comma list. None, a blank list and `*` select everything.
    pub fn parse(text: Option<&str>) -> Result<Self, TableDenial> {
        let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
            return Ok(Self::default());
        };
        if text.len() > SELECT_TEXT_MAX {
            return Err(TableDenial::invalid(format!(
                "$select has {} characters; {SELECT_TEXT_MAX} are allowed",
                text.len()
            )));
        }
        let names = || text.split(',').map(str::trim).filter(|name| !name.is_empty());
        if names().any(|name| name == "*") || names().next().is_none() {
            return Ok(Self::default());
        }
        let mut sorted: Vec<_> = names().map(str::to_owned).collect();
        sorted.sort();
        Ok(Self { names: Some(sorted), sent: text.to_owned() })
    }

    /// True if the property of that name is returned.
    pub fn has(&self, name: &str) -> bool {
        let Some(names) = &self.names else { return true };
        names.binary_search_by(|known| known.as_str().cmp(name)).is_ok()
    }

    /// The list as it was sent, unless it selects everything.
    pub fn sent(&self) -> Option<&str> {
        self.names.as_ref().map(|_| self.sent.as_str())
    }
}

/// The most entities of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Top(pub usize);

impl Top {
    /// Reads `$top`: 0 to 1000; absent means 1000.
    pub fn parse(text: Option<&str>) -> Result<Self, TableDenial> {
        let Some(text) = text else { return Ok(Self(PAGE_MAX)) };
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.then(|| text.parse().ok()).flatten();
        match number {
            Some(number @ 0..=PAGE_MAX) => Ok(Self(number)),
            _ => Err(TableDenial::invalid(format!(
                "$top must be a number from 0 to {PAGE_MAX}, not '{}'",
                text.escape_debug()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_is_a_comma_list_with_case_t51() {
        let select = Select::parse(Some("b, a ,RowKey")).unwrap();
        assert!(select.has("a") && select.has("b") && select.has("RowKey"));
        assert!(!select.has("A") && !select.has("PartitionKey"));
        assert_eq!(select.sent(), Some("b, a ,RowKey"));
        for all in [None, Some(""), Some("  "), Some("*"), Some("a,*"), Some(",")] {
            let select = Select::parse(all).unwrap();
            assert!(select.has("anything") && select.sent().is_none(), "{all:?}");
        }
    }

    #[test]
    fn a_page_has_0_to_1000_entities() {
        assert_eq!(Top::parse(None), Ok(Top(1000)));
        for (text, number) in [("0", 0), ("1", 1), ("1000", 1000)] {
            assert_eq!(Top::parse(Some(text)), Ok(Top(number)));
        }
        for bad in ["", "-1", "1001", "ten", "+5", "1.0", "99999999999999999999999"] {
            assert!(matches!(Top::parse(Some(bad)), Err(TableDenial::InvalidInput(_))), "{bad}");
        }
    }
}
