//! Reading an entity or a table's name from the JSON of a request.
//!
//! Decides which values are accepted for a type and which type a value without annotation has.
//! Limits are checked in [`crate::table::rules::entity`]; the operations decide which members they
//! need.

use std::collections::{HashMap, HashSet};
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::TYPE_SUFFIX;
use crate::table::rules::datetime::Ticks;
use crate::table::rules::denial::TableDenial;
use crate::table::rules::entity::Properties;
use crate::table::rules::key::{PARTITION_KEY, ROW_KEY, TIMESTAMP};
use crate::table::rules::number;
use crate::table::rules::value::{EdmType, Value, parse_guid};

/// An entity as a request gives it.
#[derive(Clone, PartialEq, Debug)]
pub struct EntityBody {
    /// The partition key and the row key, as far as they are given. An error if one of them is no
    /// string, which matters only to an insertion: other writes have the keys in their URL.
    pub keys: Result<[Option<String>; 2], TableDenial>,
    /// The properties, those with a null value left out.
    pub properties: Properties,
}

/// Reads an entity. Members that begin with `odata.`, a timestamp and nulls are ignored.
pub fn read_entity(body: &[u8]) -> Result<EntityBody, TableDenial> {
    let Members(members) = parse(body)?;
    let mut types = HashMap::new();
    let mut names = HashSet::new();
    for (name, value) in &members {
        if !names.insert(name.as_str()) {
            return Err(TableDenial::DuplicatePropertiesSpecified(name.clone()));
        }
        if let Some(of) = name.strip_suffix(TYPE_SUFFIX) {
            types.insert(of.to_owned(), annotation(of, value)?);
        }
    }
    let mut keys = [Ok(None), Ok(None)];
    let mut pairs = Vec::with_capacity(members.len() - types.len());
    for (name, raw) in members {
        if name.starts_with("odata.") || name.contains("@odata.") || name == TIMESTAMP {
            continue;
        }
        let edm_type = types.get(&name).copied();
        match name.as_str() {
            PARTITION_KEY => keys[0] = key(&name, raw, edm_type),
            ROW_KEY => keys[1] = key(&name, raw, edm_type),
            _ => {
                if let Some(value) = convert(&name, raw, edm_type)? {
                    pairs.push((name, value));
                }
            }
        }
    }
    let [partition, row] = keys;
    let keys = partition.and_then(|partition| Ok([partition, row?]));
    Ok(EntityBody { keys, properties: Properties::new(pairs) })
}

pub fn read_table_name(body: &[u8]) -> Result<String, TableDenial> {
    let Members(members) = parse(body)?;
    let named = members.into_iter().find(|(name, _)| name == "TableName");
    match named {
        Some((_, Raw::Text(name))) => Ok(name),
        Some(_) => Err(TableDenial::invalid("TableName is not a string")),
        None => Err(TableDenial::invalid("the body has no TableName")),
    }
}

fn parse(body: &[u8]) -> Result<Members, TableDenial> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    serde_json::from_slice(body)
        .map_err(|error| TableDenial::invalid(format!("the body is not a JSON object: {error}")))
}

fn annotation(of: &str, value: &Raw) -> Result<EdmType, TableDenial> {
    let Raw::Text(name) = value else {
        return Err(TableDenial::invalid(format!(
            "the type of '{}' is not a string",
            of.escape_debug()
        )));
    };
    EdmType::named(name).ok_or_else(|| {
        let (of, name) = (of.escape_debug(), name.escape_debug());
        TableDenial::invalid(format!("'{name}', the type of '{of}', is not known"))
    })
}

/// A key is a string; null counts as not given.
fn key(name: &str, raw: Raw, edm_type: Option<EdmType>) -> Result<Option<String>, TableDenial> {
    match (raw, edm_type) {
        (Raw::Null, _) => Ok(None),
        (Raw::Text(text), None | Some(EdmType::String)) => Ok(Some(text)),
        _ => Err(TableDenial::invalid(format!("{name} is not a string"))),
    }
}

fn convert(name: &str, raw: Raw, edm_type: Option<EdmType>) -> Result<Option<Value>, TableDenial> {
    let shown = || name.escape_debug();
    let value = match (edm_type, raw) {
        (_, Raw::Null) => return Ok(None),
        (_, Raw::Nested) => {
            let why = format!("the value of '{}' is an object or an array", shown());
            return Err(TableDenial::invalid(why));
        }
        (None, raw) => inferred(raw),
        (Some(EdmType::DateTime), Raw::Text(text)) => {
            let ticks = Ticks::parse(&text);
            if ticks.is_some_and(|ticks| !ticks.is_storable()) {
                return Err(TableDenial::DateOutOfRange(name.to_owned()));
            }
            ticks.map(Value::DateTime)
        }
        (Some(edm_type), raw) => annotated(edm_type, raw),
    };
    let invalid = || {
        let edm_type = edm_type.map_or("JSON", EdmType::name);
        TableDenial::invalid(format!("the value of '{}' is no {edm_type} value", shown()))
    };
    value.map(Some).ok_or_else(invalid)
}

/// The value of a member without annotation. A string is never a date or a GUID; an integer
/// outside Int32 is a Double.
fn inferred(raw: Raw) -> Option<Value> {
    Some(match raw {
        Raw::Text(text) => Value::String(text),
        Raw::Boolean(value) => Value::Boolean(value),
        Raw::Integer(value) => match i32::try_from(value) {
            Ok(value) => Value::Int32(value),
            Err(_) => Value::Double(as_double(value)),
        },
        Raw::Double(value) => Value::Double(value),
        Raw::Null | Raw::Nested => return None,
    })
}

#[allow(clippy::cast_precision_loss, reason = "a JSON number without annotation is a Double")]
fn as_double(value: i128) -> f64 {
    value as f64
}

/// The value of a member whose type is given; numbers may be strings then.
fn annotated(edm_type: EdmType, raw: Raw) -> Option<Value> {
    Some(match (edm_type, raw) {
        (EdmType::String, Raw::Text(text)) => Value::String(text),
        (EdmType::Boolean, Raw::Boolean(value)) => Value::Boolean(value),
        (EdmType::Boolean, Raw::Text(text)) if text.eq_ignore_ascii_case("true") => {
            Value::Boolean(true)
        }
        (EdmType::Boolean, Raw::Text(text)) if text.eq_ignore_ascii_case("false") => {
            Value::Boolean(false)
        }
        (EdmType::Int32, Raw::Integer(value)) => Value::Int32(value.try_into().ok()?),
        (EdmType::Int32, Raw::Text(text)) => Value::Int32(integer(&text)?.try_into().ok()?),
        (EdmType::Int64, Raw::Integer(value)) => Value::Int64(value.try_into().ok()?),
        (EdmType::Int64, Raw::Text(text)) => Value::Int64(integer(&text)?),
        (EdmType::Double, Raw::Integer(value)) => Value::Double(as_double(value)),
        (EdmType::Double, Raw::Double(value)) => Value::Double(value),
        (EdmType::Double, Raw::Text(text)) => Value::Double(number::parse(&text)?),
        (EdmType::Guid, Raw::Text(text)) => Value::Guid(parse_guid(&text)?),
        (EdmType::Binary, Raw::Text(text)) => Value::Binary(STANDARD.decode(text).ok()?),
        _ => return None,
    })
}

/// Decimal digits with or without a minus: the standard parser would also take a plus.
fn integer(text: &str) -> Option<i64> {
    if text.starts_with('+') { None } else { text.parse().ok() }
}

/// The members of a JSON object in their order, repeated names among them.
struct Members(Vec<(String, Raw)>);

/// The value of a member.
enum Raw {
    Null,
    Boolean(bool),
    Integer(i128),
    Double(f64),
    Text(String),
    /// An object or an array.
    Nested,
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::with_capacity(16);
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(MembersVisitor)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct RawVisitor;
        impl<'de> Visitor<'de> for RawVisitor {
            type Value = Raw;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<Raw, E> {
                Ok(Raw::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
                Ok(Raw::Boolean(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
                Ok(Raw::Integer(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
                Ok(Raw::Integer(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
                Ok(Raw::Double(value))
            }

            fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
                Ok(Raw::Text(text.to_owned()))
            }

            fn visit_string<E>(self, text: String) -> Result<Raw, E> {
                Ok(Raw::Text(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Raw::Nested)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Raw::Nested)
            }
        }
        from.deserialize_any(RawVisitor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(body: &str) -> Result<Vec<(String, Value)>, TableDenial> {
        let given = read_entity(body.as_bytes())?;
        let owned =
            given.properties.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(owned.collect())
    }

    fn one(value: &str, edm_type: Option<&str>) -> Result<Option<Value>, TableDenial> {
        let annotation = edm_type.map(|name| format!(r#""p@odata.type":"{name}","#));
        let body = format!(r#"{{{}"p":{value}}}"#, annotation.unwrap_or_default());
        Ok(read(&body)?.pop().map(|(_, value)| value))
    }

    #[test]
    fn a_value_without_annotation_has_the_type_of_its_json_t28() {
        for (json, value) in [
            (r#""2020-01-01T00:00:00Z""#, Value::String("2020-01-01T00:00:00Z".into())),
            ("true", Value::Boolean(true)),
            ("5", Value::Int32(5)),
            ("-2147483648", Value::Int32(i32::MIN)),
            ("2147483648", Value::Double(2_147_483_648.0)),
            ("4294967296", Value::Double(4_294_967_296.0)),
            ("18446744073709551616", Value::Double(18_446_744_073_709_551_616.0)),
            ("5.0", Value::Double(5.0)),
            ("1e3", Value::Double(1000.0)),
        ] {
            assert_eq!(one(json, None), Ok(Some(value)), "{json}");
        }
        assert_eq!(one("null", None), Ok(None));
    }

    #[test]
    fn an_annotated_value_may_be_a_string_t23() {
        let guid = "c0ffee00-1234-5678-9abc-def012345678";
        for (edm_type, json, value) in [
            ("Edm.String", r#""x""#, Value::String("x".into())),
            ("Edm.Boolean", "false", Value::Boolean(false)),
            ("Edm.Boolean", r#""True""#, Value::Boolean(true)),
            ("Edm.Int32", "7", Value::Int32(7)),
            ("Edm.Int32", r#""-7""#, Value::Int32(-7)),
            ("Edm.Int64", "7", Value::Int64(7)),
            ("Edm.Int64", r#""9223372036854775807""#, Value::Int64(i64::MAX)),
            ("Edm.Int64", r#""-9223372036854775808""#, Value::Int64(i64::MIN)),
            ("Edm.Double", "4", Value::Double(4.0)),
            ("Edm.Double", r#""-Infinity""#, Value::Double(f64::NEG_INFINITY)),
            ("Edm.Double", r#""1.2e+24""#, Value::Double(1.2e24)),
            (
                "Edm.Guid",
                &format!("\"{}\"", guid.to_uppercase()),
                Value::Guid(guid.parse().unwrap()),
            ),
            ("Edm.Binary", r#""Cv8=""#, Value::Binary(vec![0x0a, 0xff])),
            (
                "Edm.DateTime",
                r#""2020-01-01""#,
                Value::DateTime(Ticks::parse("2020-01-01").unwrap()),
            ),
        ] {
            assert_eq!(one(json, Some(edm_type)), Ok(Some(value)), "{edm_type} {json}");
        }
        assert_eq!(one("null", Some("Edm.Int64")), Ok(None));
    }

    #[test]
    fn what_does_not_fit_its_type_is_refused_t29() {
        for (edm_type, json) in [
            ("Edm.Decimal", "1"),
            ("Edm.String", "1"),
            ("Edm.Boolean", "1"),
            ("Edm.Int32", "2147483648"),
            ("Edm.Int32", "1.5"),
            ("Edm.Int32", r#""+5""#),
            ("Edm.Int64", r#""9223372036854775808""#),
            ("Edm.Int64", "9223372036854775808"),
            ("Edm.Double", r#""zz""#),
            ("Edm.Guid", r#""x""#),
            ("Edm.Binary", r#""*""#),
            ("Edm.Binary", r#""Cv8""#),
            ("Edm.DateTime", r#""zz""#),
            ("Edm.DateTime", "5"),
        ] {
            let refused = one(json, Some(edm_type));
            assert!(matches!(refused, Err(TableDenial::InvalidInput(_))), "{edm_type} {json}");
        }
        let early = one(r#""1600-01-01T00:00:00Z""#, Some("Edm.DateTime"));
        assert_eq!(early, Err(TableDenial::DateOutOfRange("p".into())));
        for json in ["{}", "[]", "[1,{\"a\":2}]", "1e999"] {
            assert!(matches!(one(json, None), Err(TableDenial::InvalidInput(_))), "{json}");
        }
    }

    #[test]
    fn what_is_no_json_object_is_refused() {
        for body in
            ["", "x", "[]", "5", "null", "{", "{\"a\":}", "{\"a\":1}x", "{\"a\":\"\\ud800\"}"]
        {
            let refused = read_entity(body.as_bytes());
            assert!(matches!(refused, Err(TableDenial::InvalidInput(_))), "{body}");
        }
        assert!(read_entity(b"{\"a\":\"\xff\"}").is_err());
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(matches!(read_entity(deep.as_bytes()), Err(TableDenial::InvalidInput(_))));
    }

    #[test]
    fn keys_are_strings_and_the_services_own_members_are_ignored_t31() {
        let body = r#"{"odata.etag":"x","PartitionKey":"p","PartitionKey@odata.type":"Edm.String",
            "RowKey":"r","Timestamp":null,"Timestamp@odata.type":"Edm.DateTime","x@odata.type":
            "Edm.Int64","b":1,"a":2,"B":3}"#;
        let given = read_entity(body.as_bytes()).unwrap();
        assert_eq!(given.keys, Ok(["p", "r"].map(|key| Some(key.to_owned()))));
        let names: Vec<_> = given.properties.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["b", "a", "B"], "the order stays, names have case");
        let keys = |body: &[u8]| read_entity(body).unwrap().keys;
        assert!(keys(br#"{"PartitionKey":5}"#).is_err());
        assert!(keys(br#"{"RowKey":"r","RowKey@odata.type":"Edm.Guid"}"#).is_err());
        assert_eq!(keys(br#"{"RowKey":null}"#), Ok([None, None]));
    }

    #[test]
    fn a_name_given_twice_is_refused_t30() {
        let refused = read(r#"{"a":1,"b":2,"a":3}"#);
        assert_eq!(refused, Err(TableDenial::DuplicatePropertiesSpecified("a".into())));
    }

    #[test]
    fn a_table_is_named_by_one_member() {
        assert_eq!(read_table_name(br#"{"TableName":"abc","x":1}"#), Ok("abc".into()));
        for body in ["{}", r#"{"TableName":5}"#, "[]", ""] {
            assert!(read_table_name(body.as_bytes()).is_err(), "{body}");
        }
    }

    proptest! {
        #[test]
        fn no_body_panics(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_entity(&body);
            let _ = read_table_name(&body);
        }

        #[test]
        fn no_annotated_text_panics(
            edm_type in prop::sample::select(EdmType::ALL.to_vec()), text in "\\PC{0,30}"
        ) {
            let json = serde_json::to_string(&text).unwrap();
            let _ = one(&json, Some(edm_type.name()));
        }
    }
}
