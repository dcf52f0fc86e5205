//! Tables and entities in URLs: `name`, `name()`, `Tables('name')`,
//! `name(PartitionKey='p',RowKey='r')`.
//!
//! Decides how a path after the account is read and how keys are written into URLs. Names and keys
//! are checked in `name` and `key` of the rules.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::table::rules::denial::TableDenial;
use crate::table::rules::key::{EntityKey, PARTITION_KEY, ROW_KEY};

/// The resource that a path names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Locator {
    Service,
    /// The collection of tables: `Tables`, `Tables()`.
    Tables,
    /// One table in the collection: `Tables('name')`. The name is unchecked.
    TableEntry(String),
    /// The entities of a table: `name`, `name()`. The name is unchecked.
    Table(String),
    /// One entity. Table name and key are unchecked.
    Entity(String, EntityKey),
    /// A transaction: `$batch`.
    Batch,
    /// A path that goes on after the name of a table, which is unchecked: no resource. An account
    /// URL that ends with a table's name makes such paths.
    Beneath(String),
}

/// Characters that stay as they are in a quoted key within a URL.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

impl Locator {
    /// Reads what follows the account in a path, still percent-encoded.
    pub fn parse(path: &str) -> Result<Self, TableDenial> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let segment = path.strip_suffix('/').unwrap_or(path);
        let decoded = percent_decode_str(segment)
            .decode_utf8()
            .map_err(|_| TableDenial::invalid("the path is no UTF-8"))?;
        Self::of_segment(&decoded)
    }

    /// Reads the segment after the account, decoded.
    pub fn of_segment(text: &str) -> Result<Self, TableDenial> {
        if text.is_empty() {
            return Ok(Self::Service);
        }
        if text.eq_ignore_ascii_case("$batch") {
            return Ok(Self::Batch);
        }
        let Some((name, rest)) = text.split_once('(') else {
            return Ok(Self::of_name(text));
        };
        let inner = rest.strip_suffix(')').ok_or_else(|| malformed(text))?;
        if inner.trim().is_empty() {
            return Ok(Self::of_name(name));
        }
        if name.eq_ignore_ascii_case("tables") {
            let (table, after) = quoted(inner.trim()).ok_or_else(|| malformed(text))?;
            return match after {
                "" => Ok(Self::TableEntry(table)),
                _ => Err(malformed(text)),
            };
        }
        let key = read_keys(inner).ok_or_else(|| malformed(text))?;
        Ok(Self::Entity(name.to_owned(), key))
    }

    fn of_name(name: &str) -> Self {
        if name.eq_ignore_ascii_case("tables") {
            Self::Tables
        } else {
            Self::Table(name.to_owned())
        }
    }
}

fn malformed(text: &str) -> TableDenial {
    let shown: String = text.chars().take(128).collect();
    TableDenial::invalid(format!(
        "'{}' does not name an entity: TABLE(PartitionKey='..',RowKey='..')",
        shown.escape_debug()
    ))
}

/// The two keys in either order, each once.
fn read_keys(text: &str) -> Option<EntityKey> {
    let (first, one, rest) = read_pair(text)?;
    let (second, two, rest) = read_pair(rest.trim_start().strip_prefix(',')?)?;
    if !rest.trim().is_empty() {
        return None;
    }
    match (first, second) {
        (PARTITION_KEY, ROW_KEY) => Some(EntityKey { partition: one, row: two }),
        (ROW_KEY, PARTITION_KEY) => Some(EntityKey { partition: two, row: one }),
        _ => None,
    }
}

/// `Name = 'value'` and what follows it.
fn read_pair(text: &str) -> Option<(&str, String, &str)> {
    let (name, rest) = text.split_once('=')?;
    let (value, rest) = quoted(rest.trim_start())?;
    Some((name.trim(), value, rest))
}

/// A quoted text, in which a quote is doubled, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('\'')?;
    let mut value = String::new();
    loop {
        let (before, after) = rest.split_once('\'')?;
        value.push_str(before);
        match after.strip_prefix('\'') {
            Some(after) => {
                value.push('\'');
                rest = after;
            }
            None => return Some((value, after)),
        }
    }
}

/// Appends `name(PartitionKey='p',RowKey='r')` with the keys quoted and percent-encoded.
pub fn write_entity(table: &str, key: (&str, &str), out: &mut String) {
    out.push_str(table);
    out.push_str("(PartitionKey='");
    write_quoted(key.0, out);
    out.push_str("',RowKey='");
    write_quoted(key.1, out);
    out.push_str("')");
}

fn write_quoted(value: &str, out: &mut String) {
    for (index, piece) in value.split('\'').enumerate() {
        if index > 0 {
            // Clients look for the quotes themselves; they stay unescaped.
            out.push_str("''");
        }
        out.extend(utf8_percent_encode(piece, KEPT));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entity(partition: &str, row: &str) -> Locator {
        Locator::Entity("tab".into(), EntityKey::new(partition, row))
    }

    #[test]
    fn paths_name_the_service_tables_and_a_transaction() {
        for (path, locator) in [
            ("", Locator::Service),
            ("/", Locator::Service),
            ("/Tables", Locator::Tables),
            ("/tables()", Locator::Tables),
            ("/Tables('abc')", Locator::TableEntry("abc".into())),
            ("/Tables(%27abc%27)", Locator::TableEntry("abc".into())),
            ("/$batch", Locator::Batch),
            ("/%24batch", Locator::Batch),
            ("/tab", Locator::Table("tab".into())),
            ("/tab()", Locator::Table("tab".into())),
            ("/tab/", Locator::Table("tab".into())),
        ] {
            assert_eq!(Locator::parse(path), Ok(locator), "{path}");
        }
    }

    #[test]
    fn keys_are_read_in_every_spelling_that_clients_send_t33() {
        for (path, partition, row) in [
            ("/tab(PartitionKey='p',RowKey='r')", "p", "r"),
            ("/tab(RowKey='r',PartitionKey='p')", "p", "r"),
            ("/tab( PartitionKey = 'p' , RowKey = 'r' )", "p", "r"),
            ("/tab(PartitionKey='p',RowKey='it%27%27s')", "p", "it's"),
            ("/tab(PartitionKey='p',RowKey='it''s')", "p", "it's"),
            ("/tab(PartitionKey='',RowKey='')", "", ""),
            ("/tab(PartitionKey='''',RowKey='''''')", "'", "''"),
            ("/tab(PartitionKey='%28p%2Cq%29',RowKey='(p,q)')", "(p,q)", "(p,q)"),
            ("/tab(PartitionKey='a%2Fb',RowKey='a+b%25')", "a/b", "a+b%"),
            (
                "/tab(PartitionKey='%C3%A4',RowKey='x%27%27%2C%20RowKey%3D%27%27')",
                "ä",
                "x', RowKey='",
            ),
        ] {
            assert_eq!(Locator::parse(path), Ok(entity(partition, row)), "{path}");
        }
    }

    #[test]
    fn other_keys_are_refused() {
        for path in [
            "/tab(PartitionKey='p')",
            "/tab('p')",
            "/tab(PartitionKey='p',RowKey='r'",
            "/tab(PartitionKey='p',RowKey='r)",
            "/tab(PartitionKey='p',PartitionKey='r')",
            "/tab(PartitionKey='p',RowKey='r',X='y')",
            "/tab(PartitionKey=p,RowKey=r)",
            "/tab(PartitionKey='p'RowKey='r')",
            "/tab(partitionkey='p',rowkey='r')",
            "/tab(PartitionKey='p',RowKey='r')x",
            "/Tables('a'b)",
            "/Tables(abc)",
            "/tab(%FF)",
        ] {
            let refused = Locator::parse(path);
            assert!(matches!(refused, Err(TableDenial::InvalidInput(_))), "{path} {refused:?}");
        }
    }

    #[test]
    fn braces_are_escaped_since_a_client_takes_them_for_an_error() {
        let mut out = String::new();
        write_entity("tab", ("A'aaa\"", "{x}"), &mut out);
        assert_eq!(out, "tab(PartitionKey='A''aaa%22',RowKey='%7Bx%7D')");
    }

    proptest! {
        #[test]
        fn every_key_survives_its_url(partition in "\\PC{0,16}", row in "[-'%()=,a{}/ ]{0,16}") {
            let mut url = "/".to_owned();
            write_entity("tab", (&partition, &row), &mut url);
            prop_assert_eq!(Locator::parse(&url), Ok(entity(&partition, &row)));
        }

        #[test]
        fn no_path_panics(path in "[a'()=,%2F7ZPRK ]{0,60}") {
            let _ = Locator::parse(&path);
        }
    }
}
