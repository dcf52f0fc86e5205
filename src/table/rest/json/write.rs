//! Writing entities and tables as JSON at the three levels of metadata.
//!
//! Decides which members an answer has and their order. The engine decides which entities an answer
//! has.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::TYPE_SUFFIX;
use crate::rules::named::named;
use crate::table::rest::locator::write_entity as write_locator;
use crate::table::rules::entity::EntityFields;
use crate::table::rules::key::{PARTITION_KEY, ROW_KEY, TIMESTAMP};
use crate::table::rules::query::Select;
use crate::table::rules::value::{EdmType, ValueRef};
use crate::table::rules::{etag, number};

named! {
    /// How much is said about the data.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub enum MetadataLevel,
    /// The value of `odata=` in a content type.
    name: &'static str {
        None = "nometadata",
        #[default]
        Minimal = "minimalmetadata",
        Full = "fullmetadata",
    }
}

/// The account and URL for the addresses in an answer, and the level of its metadata.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// How much is said about the data.
    pub level: MetadataLevel,
    /// The URL of the service, without a slash at its end.
    pub base: &'a str,
    pub account: &'a str,
}

/// The name of the collection of tables in addresses.
const TABLES: &str = "Tables";

impl Scope<'_> {
    pub fn entity(&self, table: &str, entity: &impl EntityFields, select: &Select) -> String {
        let mut out = Object::start(String::with_capacity(512));
        self.metadata(&mut out, table, "/@Element", select);
        self.entity_members(&mut out, table, entity, select);
        out.finish()
    }

    /// The answer to a query: begun here, filled by [`EntityListWriter::entity`], ended by
    /// [`EntityListWriter::finish`].
    pub fn entities(&self, table: &str, select: Select) -> EntityListWriter {
        let mut out = Object::start(String::with_capacity(4_096));
        self.metadata(&mut out, table, "", &select);
        let out = out.list("value");
        EntityListWriter {
            level: self.level,
            base: self.base.to_owned(),
            account: self.account.to_owned(),
            table: table.to_owned(),
            select,
            out,
            empty: true,
        }
    }

    pub fn table(&self, name: &str) -> String {
        let mut out = Object::start(String::new());
        self.metadata(&mut out, TABLES, "/@Element", &Select::default());
        self.table_members(&mut out, name);
        out.finish()
    }

    /// The tables of a page.
    pub fn tables<'a>(&self, names: impl Iterator<Item = &'a str>) -> String {
        let mut out = Object::start(String::new());
        self.metadata(&mut out, TABLES, "", &Select::default());
        let mut list = out.list("value");
        for (index, name) in names.enumerate() {
            if index > 0 {
                list.push(',');
            }
            let mut item = Object::start(list);
            self.table_members(&mut item, name);
            list = item.finish();
        }
        list.push_str("]}");
        list
    }

    fn metadata(&self, out: &mut Object, of: &str, element: &str, select: &Select) {
        if self.level == MetadataLevel::None {
            return;
        }
        let mut text = format!("{}/$metadata#{of}{element}", self.base);
        if let Some(sent) = select.sent() {
            text.push_str("&$select=");
            text.push_str(sent);
        }
        out.text("odata.metadata", &text);
    }

    fn table_members(&self, out: &mut Object, name: &str) {
        if self.level == MetadataLevel::Full {
            out.text("odata.type", &format!("{}.{TABLES}", self.account));
            out.text("odata.id", &format!("{}/{TABLES}('{name}')", self.base));
            out.text("odata.editLink", &format!("{TABLES}('{name}')"));
        }
        out.text("TableName", name);
    }

    fn entity_members(
        &self,
        out: &mut Object,
        table: &str,
        entity: &impl EntityFields,
        select: &Select,
    ) {
        let mut link = String::new();
        if self.level == MetadataLevel::Full {
            write_locator(table, (entity.partition(), entity.row()), &mut link);
            out.text("odata.type", &format!("{}.{table}", self.account));
            out.text("odata.id", &format!("{}/{link}", self.base));
        }
        if self.level != MetadataLevel::None {
            out.name("odata.etag");
            out.quoted(|out| {
                // The two double quotes of an ETag are the only characters to escape.
                let from = out.len();
                etag::write(entity.timestamp(), out);
                let tag = out.split_off(from);
                out.push_str(&tag.replace('"', "\\\""));
            });
        }
        if self.level == MetadataLevel::Full {
            out.text("odata.editLink", &link);
        }
        if select.has(PARTITION_KEY) {
            out.text(PARTITION_KEY, entity.partition());
        }
        if select.has(ROW_KEY) {
            out.text(ROW_KEY, entity.row());
        }
        if select.has(TIMESTAMP) {
            if self.level == MetadataLevel::Full {
                out.type_of(TIMESTAMP, EdmType::DateTime);
            }
            out.name(TIMESTAMP);
            out.quoted(|out| entity.timestamp().write(out));
        }
        for (name, value) in entity.properties().filter(|(name, _)| select.has(name)) {
            self.property(out, name, value);
        }
    }

    fn property(&self, out: &mut Object, name: &str, value: ValueRef<'_>) {
        let edm_type = value.edm_type();
        let annotated = match value {
            ValueRef::Double(value) => number::word(value).is_some(),
            ValueRef::String(_) | ValueRef::Boolean(_) | ValueRef::Int32(_) => false,
            _ => true,
        };
        if annotated && self.level != MetadataLevel::None {
            out.type_of(name, edm_type);
        }
        out.name(name);
        match value {
            ValueRef::String(text) => out.value(text),
            ValueRef::Boolean(value) => out.0.push_str(if value { "true" } else { "false" }),
            ValueRef::Int32(value) => out.display(value),
            ValueRef::Int64(value) => out.quoted(|out| out.push_str(&value.to_string())),
            ValueRef::Double(value) => match number::word(value) {
                Some(word) => out.value(word),
                None => number::write(value, &mut out.0),
            },
            ValueRef::DateTime(ticks) => out.quoted(|out| ticks.write(out)),
            ValueRef::Guid(guid) => out.quoted(|out| out.push_str(&guid.to_string())),
            ValueRef::Binary(bytes) => out.quoted(|out| STANDARD.encode_string(bytes, out)),
        }
    }
}

/// The answer to a query, while it is written. It owns what it needs, so that another thread can
/// fill it.
pub struct EntityListWriter {
    level: MetadataLevel,
    base: String,
    account: String,
    table: String,
    select: Select,
    out: String,
    empty: bool,
}

impl EntityListWriter {
    pub fn entity(&mut self, entity: &impl EntityFields) {
        if !std::mem::replace(&mut self.empty, false) {
            self.out.push(',');
        }
        let mut item = Object::start(std::mem::take(&mut self.out));
        let scope = Scope { level: self.level, base: &self.base, account: &self.account };
        scope.entity_members(&mut item, &self.table, entity, &self.select);
        self.out = item.finish();
    }

    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// True before the first entity.
    pub fn is_empty(&self) -> bool {
        self.empty
    }

    pub fn finish(mut self) -> String {
        self.out.push_str("]}");
        self.out
    }
}

/// A JSON object, while it is written.
struct Object(String);

impl Object {
    fn start(mut out: String) -> Self {
        out.push('{');
        Self(out)
    }

    /// The name of the next member.
    fn name(&mut self, name: &str) {
        if !self.0.ends_with('{') {
            self.0.push(',');
        }
        self.value(name);
        self.0.push(':');
    }

    fn value(&mut self, text: &str) {
        push_json(&mut self.0, text);
    }

    /// Appends the output of `write` in quotes. The output must need no escaping.
    fn quoted(&mut self, write: impl FnOnce(&mut String)) {
        self.0.push('"');
        write(&mut self.0);
        self.0.push('"');
    }

    fn display(&mut self, value: impl std::fmt::Display) {
        // Writing to a String does not fail.
        let _ = write!(self.0, "{value}");
    }

    fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        self.value(value);
    }

    fn type_of(&mut self, name: &str, edm_type: EdmType) {
        self.name(&format!("{name}{TYPE_SUFFIX}"));
        self.value(edm_type.name());
    }

    fn list(mut self, name: &str) -> String {
        self.name(name);
        self.0.push('[');
        self.0
    }

    fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Appends a JSON string.
pub fn push_json(out: &mut String, text: &str) {
    out.push('"');
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[from..at]);
        if escape.is_empty() {
            // Writing to a String does not fail.
            let _ = write!(out, "\\u{byte:04x}");
        } else {
            out.push_str(escape);
        }
        from = at + 1;
    }
    out.push_str(&text[from..]);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::table::rest::json::read_entity;
    use crate::table::rules::datetime::Ticks;
    use crate::table::rules::entity::Properties;
    use crate::table::rules::value::Value;

    struct Entity(Properties, &'static str, &'static str);

    impl EntityFields for Entity {
        fn partition(&self) -> &str {
            self.1
        }

        fn row(&self) -> &str {
            self.2
        }

        fn timestamp(&self) -> Ticks {
            Ticks::parse("2021-04-08T14:34:34.79Z").unwrap()
        }

        fn properties(&self) -> impl Iterator<Item = (&str, ValueRef<'_>)> {
            self.0.iter()
        }
    }

    fn sample() -> Entity {
        let pairs: Vec<(&str, Value)> = vec![
            ("z", Value::String("a\"\\\n\u{1}ä".into())),
            ("b", Value::Boolean(true)),
            ("i", Value::Int32(-5)),
            ("l", Value::Int64((1 << 53) + 1)),
            ("d", Value::Double(3.0)),
            ("n", Value::Double(f64::NAN)),
            ("t", Value::DateTime(Ticks::parse("2020-01-01").unwrap())),
            ("g", Value::Guid("c0ffee00-1234-5678-9abc-def012345678".parse().unwrap())),
            ("x", Value::Binary(vec![10, 255])),
        ];
        let pairs = pairs.into_iter().map(|(name, value)| (name.to_owned(), value));
        Entity(Properties::new(pairs.collect()), "p\"1", "it's")
    }

    /// A JSON text without the line breaks that only make it readable here.
    fn one_line(text: &str) -> String {
        text.lines().map(str::trim_start).collect()
    }

    fn scope(level: MetadataLevel) -> Scope<'static> {
        Scope { level, base: "http://h:1/acct", account: "acct" }
    }

    #[test]
    fn without_metadata_there_are_values_only_t23() {
        let text = scope(MetadataLevel::None).entity("tab", &sample(), &Select::default());
        assert_eq!(
            text,
            one_line(
                r#"{"PartitionKey":"p\"1","RowKey":"it's",
                 "Timestamp":"2021-04-08T14:34:34.79Z","z":"a\"\\\n\u0001ä","b":true,
                 "i":-5,"l":"9007199254740993","d":3.0,"n":"NaN",
                 "t":"2020-01-01T00:00:00Z","g":"c0ffee00-1234-5678-9abc-def012345678",
                 "x":"Cv8="}"#
            )
        );
    }

    #[test]
    fn minimal_metadata_has_etag_and_types_that_json_cannot_tell_t23() {
        let text = scope(MetadataLevel::Minimal).entity("tab", &sample(), &Select::default());
        assert_eq!(
            text,
            one_line(
                r#"{"odata.metadata":"http://h:1/acct/$metadata#tab/@Element",
                 "odata.etag":"W/\"datetime'2021-04-08T14%3A34%3A34.79Z'\"",
                 "PartitionKey":"p\"1","RowKey":"it's",
                 "Timestamp":"2021-04-08T14:34:34.79Z","z":"a\"\\\n\u0001ä","b":true,
                 "i":-5,"l@odata.type":"Edm.Int64","l":"9007199254740993","d":3.0,
                 "n@odata.type":"Edm.Double","n":"NaN","t@odata.type":"Edm.DateTime",
                 "t":"2020-01-01T00:00:00Z","g@odata.type":"Edm.Guid",
                 "g":"c0ffee00-1234-5678-9abc-def012345678","x@odata.type":"Edm.Binary",
                 "x":"Cv8="}"#
            )
        );
    }

    #[test]
    fn full_metadata_adds_addresses_t23() {
        let select = Select::parse(Some("b,Timestamp")).unwrap();
        let text = scope(MetadataLevel::Full).entity("tab", &sample(), &select);
        assert_eq!(
            text,
            one_line(
                r#"{"odata.metadata":"http://h:1/acct/$metadata#tab/@Element&$select=b,
                 Timestamp","odata.type":"acct.tab",
                 "odata.id":"http://h:1/acct/tab(PartitionKey='p%221',RowKey='it''s')",
                 "odata.etag":"W/\"datetime'2021-04-08T14%3A34%3A34.79Z'\"",
                 "odata.editLink":"tab(PartitionKey='p%221',RowKey='it''s')",
                 "Timestamp@odata.type":"Edm.DateTime",
                 "Timestamp":"2021-04-08T14:34:34.79Z","b":true}"#
            )
        );
    }

    #[test]
    fn a_query_is_a_list_whose_items_have_etags_t2() {
        let (select, scope) = (Select::parse(Some("i")).unwrap(), scope(MetadataLevel::Minimal));
        let mut list = scope.entities("tab", select.clone());
        assert!(list.is_empty());
        list.entity(&sample());
        list.entity(&sample());
        assert_eq!(
            list.finish(),
            one_line(
                r#"{"odata.metadata":"http://h:1/acct/$metadata#tab&$select=i",
                 "value":[{"odata.etag":"W/\"datetime'2021-04-08T14%3A34%3A34.79Z'\"",
                 "i":-5},{"odata.etag":"W/\"datetime'2021-04-08T14%3A34%3A34.79Z'\"",
                 "i":-5}]}"#
            )
        );
        let none = self::scope(MetadataLevel::None);
        assert_eq!(none.entities("tab", select).finish(), r#"{"value":[]}"#);
    }

    #[test]
    fn tables_are_listed_by_name() {
        let minimal = scope(MetadataLevel::Minimal);
        assert_eq!(
            minimal.table("abc"),
            r#"{"odata.metadata":"http://h:1/acct/$metadata#Tables/@Element","TableName":"abc"}"#
        );
        assert_eq!(
            minimal.tables(["abc", "def"].into_iter()),
            one_line(
                r#"{"odata.metadata":"http://h:1/acct/$metadata#Tables",
                 "value":[{"TableName":"abc"},{"TableName":"def"}]}"#
            )
        );
        assert_eq!(
            scope(MetadataLevel::Full).tables(std::iter::once("abc")),
            one_line(
                r#"{"odata.metadata":"http://h:1/acct/$metadata#Tables",
                 "value":[{"odata.type":"acct.Tables",
                 "odata.id":"http://h:1/acct/Tables('abc')",
                 "odata.editLink":"Tables('abc')","TableName":"abc"}]}"#
            )
        );
    }

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            "\\PC{0,20}".prop_map(Value::String),
            any::<bool>().prop_map(Value::Boolean),
            any::<i32>().prop_map(Value::Int32),
            any::<i64>().prop_map(Value::Int64),
            any::<f64>().prop_map(Value::Double),
            (0..2_650_467_743_999_999_999_i64).prop_map(|ticks| Value::DateTime(Ticks(ticks))),
            any::<u128>().prop_map(|bits| Value::Guid(uuid::Uuid::from_u128(bits))),
            prop::collection::vec(any::<u8>(), 0..20).prop_map(Value::Binary),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_equal(values in prop::collection::vec(value(), 0..8)) {
            let pairs = values.into_iter().enumerate().map(|(n, value)| (format!("p{n}"), value));
            let entity = Entity(Properties::new(pairs.collect()), "p\"1", "it's");
            let text = scope(MetadataLevel::Minimal).entity("tab", &entity, &Select::default());
            let read = read_entity(text.as_bytes()).unwrap();
            // NaN differs from itself; its text does not.
            prop_assert_eq!(format!("{:?}", read.properties), format!("{:?}", entity.0));
            prop_assert_eq!(read.keys, Ok(["p\"1", "it's"].map(|key| Some(key.to_owned()))));
        }

        #[test]
        fn every_text_is_escaped_as_json_has_it(text in any::<String>()) {
            let mut out = String::new();
            push_json(&mut out, &text);
            let read: String = serde_json::from_str(&out).unwrap();
            prop_assert_eq!(read, text);
        }
    }
}
