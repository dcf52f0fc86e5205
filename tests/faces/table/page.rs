//! Tries the tables of `docs/table.md` row by row.

use serde_json::{Value, json};

use super::fixture::{Got, Tables, change, entity, escaped};
use crate::common::pages::{page, rows_of};

/// The rows of the table that follows a heading.
fn rows(heading: &str) -> Vec<Vec<String>> {
    rows_of("docs/table.md", heading)
}

fn plain(cell: &str) -> &str {
    cell.trim_matches('`')
}

/// Asserts that the answer is `204` or `412 Code`, as the page says.
#[track_caller]
fn is_as_said(got: &Got, said: &str, row: &[String]) {
    match said.split_once(' ') {
        Some((status, code)) => {
            let told = (got.status.to_string(), got.code().to_owned());
            assert_eq!(told, (status.to_owned(), code.to_owned()), "{row:?}: {}", got.text());
        }
        None => assert_eq!(got.status.to_string(), said, "{row:?}: {}", got.text()),
    }
}

#[test]
fn a_write_does_what_the_page_says() {
    let tables = Tables::with("tab");
    for (number, row) in rows("What a write does").into_iter().enumerate() {
        let key = format!("r{number}");
        let old = tables.put_row("tab", "p", &key, 1);
        let current = tables.put_row("tab", "p", &key, 2);
        if row[1] == "missing" {
            tables.delete_entity("tab", "p", &key, Some("*")).is(204);
        }
        let url = entity("tab", "p", &key);
        let seen = || {
            let got = tables.get(&url);
            (got.status, got.header("etag").to_owned(), got.text())
        };
        let before = (row[1] == "there").then(seen);
        let tag = match plain(&row[2]) {
            "none" => None,
            "old" => Some(old),
            "current" => Some(current.clone()),
            literal => Some(literal.to_owned()),
        };
        let headers: Vec<_> = tag.iter().map(|tag| ("if-match", tag.as_str())).collect();
        let insert = json!({"PartitionKey": "p", "RowKey": key}).to_string();
        let (target, body) = match row[0].as_str() {
            "POST" => ("/tab", insert.as_str()),
            _ => (url.as_str(), "{}"),
        };
        let got = tables.ask(&row[0], target, &headers, body.as_bytes());
        is_as_said(&got, &row[3], &row);
        // A refusal changes nothing; a change has an ETag of its own, and a deletion none.
        match (got.status, row[0].as_str(), before) {
            (400.., _, Some(before)) => assert_eq!(seen(), before, "{row:?}"),
            (400.., _, None) => assert_eq!(seen().0, 404, "{row:?}"),
            (_, "DELETE", _) => assert_eq!((got.header("etag"), seen().0), ("", 404), "{row:?}"),
            (_, _, _) => {
                assert_eq!(got.header("etag"), seen().1, "{row:?}");
                assert_ne!(got.header("etag"), current, "{row:?}");
            }
        }
    }
}

#[test]
fn a_filter_finds_what_the_page_says() {
    let tables = Tables::with("tab");
    let body = r#"{"PartitionKey":"p","RowKey":"r","i":3,"l@odata.type":"Edm.Int64","l":"5",
        "d":2.5,"s":"it's","b":true,"t@odata.type":"Edm.DateTime","t":"2020-01-01T00:00:00Z"}"#;
    tables.ask("POST", "/tab", &[], body.as_bytes()).is(201);
    for row in rows("Filters") {
        let got = tables.get(&format!("/tab?$filter={}", escaped(plain(&row[0]))));
        match row[1].as_str() {
            "found" | "not found" => {
                let body = got.is(200).json();
                let found = usize::from(row[1] == "found");
                assert_eq!(body["value"].as_array().unwrap().len(), found, "{row:?}");
            }
            refused => is_as_said(&got, refused, &row),
        }
    }
}

/// A cell of the table of values: its type, if it has one, and its JSON.
fn typed(cell: &str) -> (Option<&str>, &str) {
    match cell.split_once(" `") {
        Some((edm_type, json)) => (Some(edm_type), plain(json)),
        None => (None, plain(cell)),
    }
}

#[test]
fn values_come_back_as_the_page_says() {
    let tables = Tables::with("tab");
    for (number, row) in rows("Values").into_iter().enumerate() {
        let (edm_type, value) = typed(&row[0]);
        let annotation = edm_type.map(|name| format!(r#""v@odata.type":"{name}","#));
        let body = format!(
            r#"{{"PartitionKey":"p","RowKey":"{number}",{}"v":{value}}}"#,
            annotation.unwrap_or_default()
        );
        let got = tables.ask("POST", "/tab", &[], body.as_bytes());
        if row[1].starts_with("400") {
            is_as_said(&got, &row[1], &row);
            continue;
        }
        let text = got.is(201).text();
        let (edm_type, value) = typed(&row[1]);
        let said = match edm_type {
            Some(name) => format!(r#","v@odata.type":"{name}","v":{value}}}"#),
            None => format!(r#","v":{value}}}"#),
        };
        assert!(text.ends_with(&said), "{row:?}: {text}");
        assert_eq!(text.contains("v@odata.type"), edm_type.is_some(), "{row:?}");
    }
}

/// Asks for `count` of what a row of the limits counts.
fn of_limit(tables: &Tables, what: &str, count: usize) -> Got {
    let insert = |key: &str, more: Value| {
        let mut body = json!({"PartitionKey": "p", "RowKey": key});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        tables.insert("tab", &body)
    };
    let text = "x".repeat(count);
    match what {
        "characters of a table name" => {
            let body = json!({"TableName": text}).to_string();
            tables.ask("POST", "/Tables", &[], body.as_bytes())
        }
        "UTF-16 units of a key" => insert(&text, json!({})),
        "properties" => {
            let pairs = (0..count).map(|n| (format!("p{n}"), json!(n)));
            insert("properties", Value::Object(pairs.collect()))
        }
        "characters of a property name" => insert("name", json!({text: 1})),
        "UTF-16 units of a string" => insert("string", json!({"s": text})),
        "bytes of a binary value" => {
            use base64::Engine as _;
            let text = base64::engine::general_purpose::STANDARD.encode(text);
            insert("binary", json!({"x@odata.type": "Edm.Binary", "x": text}))
        }
        "operations of a transaction" => {
            let one = |n| change("PUT", &entity("tab", "t", &format!("{n}")), &[], "{}");
            tables.batch(&(0..count).map(one).collect::<Vec<_>>())
        }
        "entities of a page" => tables.get(&format!("/tab?$top={count}")),
        "access policies of a table" => {
            let one = |n| format!("<SignedIdentifier><Id>{n}</Id></SignedIdentifier>");
            let all: String = (0..count).map(one).collect();
            let body = format!("<SignedIdentifiers>{all}</SignedIdentifiers>");
            tables.ask("PUT", "/tab?comp=acl", &[], body.as_bytes())
        }
        "levels of a filter" => {
            let filter = format!("{}true{}", "(".repeat(count), ")".repeat(count));
            tables.get(&format!("/tab?$filter={}", escaped(&filter)))
        }
        other => panic!("the page names a limit that is not tried: {other}"),
    }
}

#[test]
fn limits_are_where_the_page_says() {
    for row in rows("Limits") {
        let tables = Tables::with("tab");
        let most: usize = row[1].parse().unwrap();
        let past = of_limit(&tables, &row[0], most + 1);
        if row[0] == "operations of a transaction" {
            let (status, code, _) = past.fault();
            assert_eq!(format!("{status} {code}"), row[2]);
        } else {
            is_as_said(&past, &row[2], &row);
        }
        let at = of_limit(&tables, &row[0], most);
        assert!((200..300).contains(&at.status), "{row:?}: {}", at.text());
        let faulty = row[0].contains("transaction") && !at.text().contains("HTTP/1.1 204");
        assert!(!faulty, "{row:?}");
    }
}

#[test]
fn transactions_fail_as_the_page_says() {
    for row in rows("Transactions") {
        let tables = Tables::with("tab");
        let old = tables.put_row("tab", "p", "there", 1);
        tables.put_row("tab", "p", "there", 2);
        let insert = |partition: &str, key: &str| {
            let body = json!({"PartitionKey": partition, "RowKey": key}).to_string();
            change("POST", "/tab", &[], &body)
        };
        let parts: Vec<_> = row[0]
            .split(", ")
            .map(|step| match step.split(' ').collect::<Vec<_>>()[..] {
                ["insert", "elsewhere"] => insert("q", "elsewhere"),
                ["insert", key] => insert("p", key),
                ["upsert", key] => change("PUT", &entity("tab", "p", key), &[], "{}"),
                ["delete", key] => {
                    change("DELETE", &entity("tab", "p", key), &[("If-Match", "*")], "")
                }
                ["update", key, "with", "old"] => {
                    change("PUT", &entity("tab", "p", key), &[("If-Match", &old)], "{}")
                }
                _ => panic!("{step}"),
            })
            .collect();
        let got = tables.batch(&parts);
        if row[1] == "none" {
            assert_eq!(got.is(202).text().matches("HTTP/1.1 20").count(), parts.len());
            continue;
        }
        let (status, code, message) = got.fault();
        let index = message.split(':').next().unwrap();
        assert_eq!(format!("{status} {code} at {index}"), row[1]);
        assert_eq!(tables.rows("tab", "true"), ["p/there"], "{row:?}");
    }
}

#[test]
fn every_operation_that_the_page_counts_is_carried_out() {
    let operations = latchfs::table::rest::operations::SERVICE_TABLE.operations;
    let count = format!("All {} operations of the service are there.", operations.len());
    assert!(page("docs/table.md").replace('\n', " ").contains(&count), "{count}");
}
