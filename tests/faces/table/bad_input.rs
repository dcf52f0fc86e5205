//! Input that no client should send: refused with a code and a text, nothing changed, no 500.

use serde_json::json;

use super::fixture::{Tables, entity};

/// All that the table holds, ETags included.
fn state(tables: &Tables) -> String {
    tables.get("/tab()").is(200).json()["value"].to_string()
}

/// A transaction that writes two entities of one partition.
fn batch(first: &str, second: &str) -> String {
    let part = |url: &str| {
        format!(
            "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             PUT {url} HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{{\"n\":2}}\r\n"
        )
    };
    format!(
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{}{}--c--\r\n--b--\r\n",
        part(first),
        part(second)
    )
}

const MULTIPART: [(&str, &str); 1] = [("content-type", "multipart/mixed; boundary=b")];

#[test]
fn a_transaction_that_is_cut_anywhere_changes_nothing() {
    let tables = Tables::with("tab");
    tables.put_row("tab", "p", "r", 1);
    let before = state(&tables);
    let whole = batch(&entity("tab", "p", "r"), &entity("tab", "p", "new"));
    // Its last boundaries may be missing to the last letter, but not the parts before them.
    let needed = whole.find("--c--").unwrap();
    for end in (0..needed).step_by(5) {
        let got = tables.ask("POST", "/$batch", &MULTIPART, &whole.as_bytes()[..end]);
        let faulty = got.status == 202 && got.text().contains("HTTP/1.1 400");
        assert!(got.status == 400 || faulty, "cut at {end}: {} {}", got.status, got.text());
        assert_eq!(state(&tables), before, "cut at {end}");
    }
    let done = tables.ask("POST", "/$batch", &MULTIPART, whole.as_bytes()).is(202);
    assert_eq!(done.text().matches("HTTP/1.1 204").count(), 2, "{}", done.text());
}

#[test]
fn entities_that_are_not_allowed_are_refused_and_change_nothing() {
    let tables = Tables::with("tab");
    let etag = tables.put_row("tab", "p", "r", 1);
    let before = state(&tables);
    let many: serde_json::Map<_, _> =
        (0..253).map(|number| (format!("n{number}"), json!(number))).collect();
    let long: serde_json::Map<_, _> =
        (0..17).map(|number| (format!("s{number}"), json!("x".repeat(32_000)))).collect();
    let bodies = [
        json!(many).to_string(),
        json!(long).to_string(),
        "{\"n\":1".to_owned(),
        "[]".to_owned(),
        "nonsense".to_owned(),
        "{\"n\":{\"deep\":1}}".to_owned(),
        format!("{{\"n\":{}1{}}}", "[".repeat(1_000), "]".repeat(1_000)),
        "{\"a b\":1}".to_owned(),
        "{\"n@odata.type\":\"Edm.Int64\",\"n\":\"x\"}".to_owned(),
    ];
    for body in &bodies {
        for (method, tag) in [("PUT", Some("*")), ("MERGE", Some(&*etag)), ("PUT", None)] {
            let headers: Vec<_> = tag.map(|tag| ("if-match", tag)).into_iter().collect();
            let got = tables.ask(method, &entity("tab", "p", "r"), &headers, body.as_bytes());
            let shown = &body[..body.len().min(60)];
            assert!((400..500).contains(&got.status), "{method} {shown}: {}", got.text());
            assert!(!got.code().is_empty() && got.json()["odata.error"].is_object(), "{shown}");
            assert_eq!(state(&tables), before, "{method} {shown}");
        }
    }
}

#[test]
fn keys_with_forbidden_characters_are_refused_and_make_nothing() {
    let tables = Tables::with("tab");
    let before = state(&tables);
    for key in ["a/b", "a\\b", "a#b", "a?b", "a\tb", "a\nb", "a\u{0}b", "a\u{7f}b", "a\u{9f}b"] {
        for (partition, row) in [(key, "r"), ("p", key)] {
            let body = json!({"PartitionKey": partition, "RowKey": row});
            let got = tables.insert("tab", &body);
            assert!((400..500).contains(&got.status), "{key:?}: {}", got.text());
            assert!(!got.code().is_empty(), "{key:?}");
            assert_eq!(state(&tables), before, "{key:?}");
        }
    }
}

#[test]
fn filters_without_end_are_refused() {
    let tables = Tables::with("tab");
    for filter in [
        format!("{}n eq 1{}", "(".repeat(1_000), ")".repeat(1_000)),
        format!("{}(n eq 1)", "not ".repeat(1_000)),
        "(".repeat(1_000),
        format!("n eq {}", "-".repeat(1_000)),
        "n eq 'no end".to_owned(),
    ] {
        let got = tables.get(&format!("/tab()?$filter={}", filter.replace(' ', "%20")));
        got.refused(400, "InvalidInput");
    }
}

#[test]
fn an_account_url_that_ends_with_a_table_is_refused_in_the_words_that_clients_look_for() {
    let tables = Tables::new();
    let body = br#"{"TableName":"new"}"#;
    let entity = br#"{"PartitionKey":"p","RowKey":"r"}"#;
    let says = |got: super::fixture::Got, text: &str| {
        assert!(got.message().contains(text), "{}", got.message());
    };
    let absent = "The table specified does not exist";
    for target in ["/tab/Tables", "/tab/tab"] {
        says(tables.ask("POST", target, &[], body).refused(404, "TableNotFound"), absent);
    }
    tables.create("tab");
    let values = "The values are not specified for all properties in the entity";
    says(tables.ask("POST", "/tab/Tables", &[], body).refused(400, "PropertiesNeedValue"), values);
    let keys = "The number of keys specified in the URI does not match number of key properties \
                for the resource";
    says(tables.ask("POST", "/tab/tab", &[], entity).refused(400, "InvalidInput"), keys);
    let whole = batch("/tab(PartitionKey='p',RowKey='r')", "/tab(PartitionKey='p',RowKey='q')");
    let got = tables.ask("POST", "/tab/$batch", &MULTIPART, whole.as_bytes());
    assert_eq!(got.is(415).code(), "MediaTypeNotSupported");
    for (method, target) in [
        ("DELETE", "/tab/Tables('tab')"),
        ("PUT", "/tab/tab(PartitionKey='p',RowKey='r')"),
        ("MERGE", "/tab/tab(PartitionKey='p',RowKey='r')"),
    ] {
        says(
            tables.ask(method, target, &[("if-match", "*")], b"{}").refused(400, "InvalidInput"),
            keys,
        );
    }
    tables.get("/tab/Tables").refused(501, "NotImplemented");
    let got = tables.get("/tab/?restype=service&comp=properties").is(400);
    assert_eq!(got.code(), "InvalidQueryParameterValue");
    tables.ask("POST", "/a_b/Tables", &[], body).refused(400, "InvalidResourceName");
    tables.ask("POST", "/ab/Tables", &[], body).refused(400, "OutOfRangeInput");
    assert_eq!(state(&tables), "[]");
    assert_eq!(tables.get("/Tables").is(200).json()["value"].as_array().unwrap().len(), 1);
}
