//! One call: the type of its request, and how that is read from path, query and body.
//!
//! Decides that an unknown parameter is refused: a misspelt one would otherwise be ignored. The
//! values that a call takes are the fields of its type: those that its path names are in the path,
//! the others in the query, or in the body of a POST or a PUT.

use std::fmt;
use std::sync::Arc;

use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, HeaderMap, HeaderValue};
use percent_encoding::percent_decode_str;
use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Number, Value};

use super::failure::ApiFailure;
use super::routes::{ACCOUNT, Param, ParameterKind, Route};
use super::site::Peer;

/// A request of the API. Client and server have one type for it.
pub trait Call: Serialize + DeserializeOwned + JsonSchema + Send + 'static {
    /// Its answer; of one that goes on, the first line.
    type Answer: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
    /// All but GET change something.
    const METHOD: Method;
    /// Its path, with names for the values in it.
    const PATH: &'static str;
}

/// Whether the values of a call that are not in its path are in its body.
pub fn has_body(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT)
}

/// The name in a part of a path, if it is one.
pub fn name_in(part: &str) -> Option<&str> {
    part.strip_prefix('{')?.strip_suffix('}')
}

/// The parts of a call that its handler does not take from the request type.
#[derive(Clone)]
pub struct ApiCall {
    /// The account that is meant; none for the first of the server.
    pub account: Option<String>,
    pub peer: Peer,
    /// The name of the client, if it gave one.
    pub client: Option<Arc<str>>,
    /// The client follows events as they come.
    pub follows: bool,
    /// The last event that the client has had.
    pub last_event: Option<u64>,
}

impl ApiCall {
    pub fn new(peer: Peer, client: Option<Arc<str>>, headers: &HeaderMap) -> Self {
        let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_owned();
        let accept = headers.get(ACCEPT).map(text).unwrap_or_default();
        let follows = accept.split(',').any(|kind| {
            kind.split(';').next().is_some_and(|kind| kind.trim() == "text/event-stream")
        });
        let last_event = headers.get("last-event-id").and_then(|id| text(id).parse().ok());
        Self { account: None, peer, client, follows, last_event }
    }

    /// Reads the values in path and query. Takes the account out.
    pub fn values(
        &mut self,
        route: &Route,
        in_path: Vec<(&str, String)>,
        query: &str,
    ) -> Result<Map<String, Value>, ApiFailure> {
        let mut values = Map::new();
        for (name, value) in in_path {
            let read = match route.in_path(name).map(|param| &param.kind) {
                Some(ParameterKind::Number { .. }) => value.parse::<u64>().map(Value::from),
                _ => Ok(value.as_str().into()),
            };
            let read = read.map_err(|_| format!("'{value}' is no {name}: give its number"))?;
            values.insert(name.to_owned(), read);
        }
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decoded(name)?, decoded(value)?);
            if name == ACCOUNT {
                if self.account.replace(value).is_some() {
                    return Err(ApiFailure::bad(format!("'{name}' is given twice")));
                }
                continue;
            }
            let Some(param) = route.in_query(&name) else {
                return Err(ApiFailure::bad(format!("there is no parameter '{name}' here")));
            };
            let value = param.kind.read(&name, value)?;
            if values.insert(name.clone(), value).is_some() {
                return Err(ApiFailure::bad(format!("'{name}' is given twice")));
            }
        }
        let missing = route
            .params
            .iter()
            .find(|param| param.required && !param.in_path && !values.contains_key(&param.name));
        if let Some(Param { name, about, .. }) = missing {
            return Err(ApiFailure::bad(format!("'{name}' is missing: {about}")));
        }
        Ok(values)
    }
}

/// The fields of a body beside the values in the path; a body that is empty means `{}`.
pub fn with_body(mut values: Map<String, Value>, body: &Bytes) -> Result<Value, ApiFailure> {
    let body: &[u8] = if body.is_empty() { b"{}" } else { body };
    let Unique(mut value) = serde_json::from_slice(body).map_err(wrong)?;
    make_whole(&mut value);
    if let Some((name, number)) = negative(&value) {
        return Err(ApiFailure::bad(format!("'{name}' is {number}: expected 0 or more")));
    }
    let Value::Object(fields) = value else {
        return Err(ApiFailure::bad("the body is not a JSON object"));
    };
    for (name, value) in fields {
        if values.contains_key(&name) {
            return Err(ApiFailure::bad(format!("the body: unknown field `{name}`")));
        }
        values.insert(name, value);
    }
    Ok(values.into())
}

/// The request that these values are.
pub fn read<C: Call>(values: Value) -> Result<C, ApiFailure> {
    serde_json::from_value(values).map_err(wrong)
}

fn wrong(error: serde_json::Error) -> ApiFailure {
    ApiFailure::bad(format!("the body: {error}"))
}

/// A JSON value none of whose objects names a field twice.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Unique;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Unique, E> {
        Ok(Unique(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Unique, A::Error> {
        let mut values = Vec::new();
        while let Some(Unique(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Unique(values.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Unique, A::Error> {
        let mut object = Map::new();
        while let Some((name, Unique(value))) = fields.next_entry::<String, _>()? {
            if object.contains_key(&name) {
                return Err(A::Error::custom(format_args!("'{name}' is given twice")));
            }
            object.insert(name, value);
        }
        Ok(Unique(object.into()))
    }
}

/// The first field that is a negative number: no call takes one, and serde does not name the field.
fn negative(value: &Value) -> Option<(&str, &Number)> {
    match value {
        Value::Object(object) => object.iter().find_map(|(name, value)| match value {
            Value::Number(number) if number.as_f64().is_some_and(|float| float < 0.0) => {
                Some((name.as_str(), number))
            }
            value => negative(value),
        }),
        Value::Array(list) => list.iter().find_map(negative),
        _ => None,
    }
}

/// Makes whole numbers integers: JSON does not tell `33.0` from `33`, and some languages write one
/// for the other.
fn make_whole(value: &mut Value) {
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            if float.fract() == 0.0 && float.abs() < LIMIT {
                // Within the integers that a float has exactly.
                #[expect(clippy::cast_possible_truncation, reason = "it is whole and in range")]
                let whole = float as i64;
                *number = whole.into();
            }
        }
        Value::Array(list) => list.iter_mut().for_each(make_whole),
        Value::Object(object) => object.values_mut().for_each(make_whole),
        _ => {}
    }
}

/// A part of a path or a query as text.
pub fn decoded(text: &str) -> Result<String, ApiFailure> {
    let text = text.replace('+', " ");
    let decoded = percent_decode_str(&text).decode_utf8();
    decoded.map(Into::into).map_err(|_| ApiFailure::bad("the address of the request is not UTF-8"))
}

impl ParameterKind {
    /// The value of a parameter. Refuses one of another kind.
    fn read(&self, name: &str, value: String) -> Result<Value, ApiFailure> {
        match self {
            Self::Text => Ok(value.into()),
            Self::Word(words) if words.contains(&value) => Ok(value.into()),
            Self::Word(words) => {
                let words = words.join(", ");
                Err(ApiFailure::bad(format!("there is no {name} '{value}', only {words}")))
            }
            Self::Flag if matches!(&*value, "true" | "false") => Ok((value == "true").into()),
            Self::Flag => Err(ApiFailure::bad(format!("'{name}' is true or false"))),
            Self::Number { most } => match value.parse::<u64>() {
                Ok(number) if number <= *most => Ok(number.into()),
                _ => Err(ApiFailure::bad(format!("'{name}' is a number from 0 to {most}"))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_field_that_is_given_twice_is_refused_wherever_it_is() {
        let read = |text: &str| serde_json::from_str(text).map(|Unique(value)| value);
        let text = r#"{"a":[null,true,-1,2,0.5,"x",{}],"b":{"a":1}}"#;
        assert_eq!(read(text).unwrap().to_string(), text);
        for text in [r#"{"a":1,"a":2}"#, r#"{"b":[{"a":1,"c":2,"a":1}]}"#] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with("'a' is given twice"), "{error}");
        }
    }

    #[test]
    fn a_negative_number_is_found_with_its_field() {
        let found =
            |value: &Value| negative(value).map(|(name, number)| format!("{name} {number}"));
        assert_eq!(found(&json!({ "a": 0, "b": [{ "c": "-1", "d": -2 }] })).unwrap(), "d -2");
        assert_eq!(found(&json!({ "a": -0.5 })).unwrap(), "a -0.5");
        assert_eq!(found(&json!({ "a": [1, { "b": 2.5 }] })), None);
    }

    #[test]
    fn a_whole_number_is_an_integer_however_it_is_written() {
        let mut value = json!({ "a": [33.0, 1.5, -2.0], "b": { "c": 1e30 }, "d": "1.0" });
        make_whole(&mut value);
        assert_eq!(value, json!({ "a": [33, 1.5, -2], "b": { "c": 1e30 }, "d": "1.0" }));
    }
}
