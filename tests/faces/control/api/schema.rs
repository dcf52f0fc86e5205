//! A validator for the schemas of the API: what of JSON Schema they use, and no more.

use serde_json::{Map, Value};

/// What is wrong with a value by a schema of the document; nothing if it fits.
pub fn faults(document: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let Some(schema) = schema.as_object() else { return vec![format!("{at}: no schema")] };
    let mut found = Vec::new();
    for (word, rule) in schema {
        let fault = match word.as_str() {
            "$ref" => {
                let name = rule.as_str().unwrap().rsplit('/').next().unwrap();
                let target = &document["components"]["schemas"][name];
                found.extend(faults(document, target, value, at));
                continue;
            }
            "type" => !is_of_type(rule, value),
            "const" => rule != value,
            "enum" => !rule.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_some_and(|number| number < rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_some_and(|number| number > rule.as_f64().unwrap()),
            "minProperties" => length(value).is_some_and(|size| size < rule.as_u64().unwrap()),
            "maxProperties" => length(value).is_some_and(|size| size > rule.as_u64().unwrap()),
            "maxItems" => {
                value.as_array().is_some_and(|list| list.len() as u64 > rule.as_u64().unwrap())
            }
            "required" => {
                let names = rule.as_array().unwrap();
                value.is_object()
                    && names.iter().any(|name| value.get(name.as_str().unwrap()).is_none())
            }
            "properties" => {
                for (name, inner) in rule.as_object().unwrap() {
                    if let Some(member) = value.get(name) {
                        found.extend(faults(document, inner, member, &format!("{at}.{name}")));
                    }
                }
                continue;
            }
            "additionalProperties" => {
                found.extend(unknown(document, schema, rule, value, at));
                continue;
            }
            "items" => {
                for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                    found.extend(faults(document, rule, item, &format!("{at}[{number}]")));
                }
                continue;
            }
            "oneOf" => {
                let fits = |one: &&Value| faults(document, one, value, at).is_empty();
                rule.as_array().unwrap().iter().filter(fits).count() != 1
            }
            "pattern" => !value.as_str().is_none_or(|text| fits_code(rule.as_str().unwrap(), text)),
            "description" | "default" | "examples" => continue,
            other => panic!("{at}: the word '{other}' is not known here"),
        };
        if fault {
            found.push(format!("{at}: {value} against {word} {rule}"));
        }
    }
    found
}

fn is_of_type(rule: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("no type '{other}'"),
    };
    match rule {
        Value::Array(names) => names.iter().any(|name| is(name.as_str().unwrap())),
        name => is(name.as_str().unwrap()),
    }
}

fn length(value: &Value) -> Option<u64> {
    value.as_object().map(|object| object.len() as u64)
}

/// Faults of members that `properties` does not name.
fn unknown(
    document: &Value,
    schema: &Map<String, Value>,
    rule: &Value,
    value: &Value,
    at: &str,
) -> Vec<String> {
    let named = |name: &str| schema.get("properties").is_some_and(|all| all.get(name).is_some());
    let others = value.as_object().into_iter().flatten().filter(|(name, _)| !named(name));
    let fault = |(name, member): (&String, &Value)| match rule {
        Value::Bool(true) => Vec::new(),
        Value::Bool(false) => vec![format!("{at}: no member '{name}' is known")],
        inner => faults(document, inner, member, &format!("{at}.{name}")),
    };
    others.flat_map(fault).collect()
}

/// The one pattern of bodies: the code of a fault.
fn fits_code(pattern: &str, text: &str) -> bool {
    assert_eq!(pattern, "^[A-Za-z0-9]{1,64}$");
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[test]
fn a_value_that_does_not_fit_is_told() {
    let document = serde_json::json!({ "components": { "schemas": {
        "A": {
            "type": "object", "required": ["n"], "additionalProperties": false,
            "properties": { "n": { "type": ["integer", "null"], "minimum": 1 } },
        },
    } } });
    let schema = serde_json::json!({ "$ref": "#/components/schemas/A" });
    let count = |value: Value| faults(&document, &schema, &value, "").len();
    assert_eq!(count(serde_json::json!({ "n": 1 })), 0);
    assert_eq!(count(serde_json::json!({ "n": null })), 0);
    for wrong in [
        serde_json::json!({ "n": 0 }),
        serde_json::json!({ "n": "1" }),
        serde_json::json!({}),
        serde_json::json!({ "n": 1, "m": 1 }),
        serde_json::json!([]),
    ] {
        assert_eq!(count(wrong.clone()), 1, "{wrong}");
    }
}
