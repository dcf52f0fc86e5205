//! T1-T22: ETags, conditions, inserts, updates, merges.

use serde_json::json;

use super::fixture::{Tables, entity, is_etag};

#[test]
fn t01_an_inserted_entity_is_got_with_its_etag_in_header_and_body() {
    let tables = Tables::with("tab");
    let made = tables.insert("tab", &json!({"PartitionKey": "p", "RowKey": "r", "n": 1})).is(201);
    let etag = made.header("etag").to_owned();
    assert!(is_etag(&etag), "{etag}");
    let got = tables.get(&entity("tab", "p", "r")).is(200);
    assert_eq!(got.header("etag"), etag);
    let body = got.json();
    assert_eq!(body["odata.etag"], etag.as_str());
    let derived = body["Timestamp"].as_str().unwrap().replace(':', "%3A");
    assert_eq!(etag, format!("W/\"datetime'{derived}'\""));
}

#[test]
fn t03_t04_an_update_takes_the_current_etag_once() {
    let tables = Tables::with("tab");
    let first = tables.put_row("tab", "p", "r", 1);
    let changed = tables.update("PUT", "tab", "p", "r", Some(&first), &json!({"n": 2})).is(204);
    let second = changed.header("etag").to_owned();
    assert_ne!(first, second);
    let refused = tables.update("PUT", "tab", "p", "r", Some(&first), &json!({"n": 3}));
    let refused = refused.refused(412, "UpdateConditionNotSatisfied");
    let text = "The update condition specified in the request was not satisfied. [latchfs: changed";
    assert!(refused.message().starts_with(text), "{}", refused.message());
    assert!(refused.message().contains("by Update Entity"));
    let got = tables.get(&entity("tab", "p", "r")).is(200);
    assert_eq!((got.json()["n"].as_i64(), got.header("etag")), (Some(2), second.as_str()));
}

#[test]
fn t05_merge_has_three_spellings_with_one_rule() {
    let tables = Tables::with("tab");
    let mut etag = tables.put_row("tab", "p", "r", 1);
    for (method, named) in [("PATCH", None), ("MERGE", None), ("POST", Some("MERGE"))] {
        let url = entity("tab", "p", "r");
        let ask = |tag: &str| {
            let mut headers = vec![("if-match", tag)];
            headers.extend(named.map(|name| ("x-http-method", name)));
            tables.ask(method, &url, &headers, br#"{"m":1}"#)
        };
        ask("W/\"datetime'2020-01-01T00%3A00%3A00Z'\"").refused(412, "UpdateConditionNotSatisfied");
        let merged = ask(&etag).is(204);
        assert_ne!(merged.header("etag"), etag);
        merged.header("etag").clone_into(&mut etag);
        assert_eq!(tables.get(&url).json()["n"], 1, "{method}");
    }
    let url = entity("tab", "p", "r");
    let bad = |method, headers: &[(&str, &str)]| tables.ask(method, &url, headers, b"{}");
    bad("POST", &[("x-http-method", "TRACE")]).refused(400, "XMethodIncorrectValue");
    bad("PUT", &[("x-http-method", "MERGE")]).refused(400, "XMethodNotUsingPost");
    let twice = [("x-http-method", "MERGE"), ("X-HTTP-Method", "MERGE")];
    bad("POST", &twice).refused(400, "XMethodIncorrectCount");
}

#[test]
fn t09_t10_upserts_insert_or_change_without_a_check() {
    let tables = Tables::with("tab");
    for (method, kept) in [("PUT", false), ("PATCH", true)] {
        let put = |body| tables.update(method, "tab", "p", method, None, &body).is(204);
        assert!(is_etag(put(json!({"a": 1})).header("etag")));
        assert!(is_etag(put(json!({"b": 2})).header("etag")));
        let body = tables.get(&entity("tab", "p", method)).json();
        assert_eq!((body.get("a").is_some(), &body["b"]), (kept, &json!(2)), "{method}");
    }
}

#[test]
fn t12_before_2011_08_18_there_are_no_upserts() {
    let tables = Tables::with("tab");
    let url = entity("tab", "p", "r");
    for method in ["PUT", "MERGE"] {
        let old = [("x-ms-version", "2009-09-19")];
        tables.ask(method, &url, &old, b"{}").refused(400, "MissingRequiredHeader");
        tables.ask(method, &url, &[("x-ms-version", "2011-08-18")], b"{}").is(204);
    }
}

#[test]
fn t13_of_two_clients_with_one_etag_one_succeeds() {
    let tables = Tables::with("tab");
    let mut etag = tables.put_row("tab", "p", "r", 0);
    for round in 0..500 {
        let (one, two) = std::thread::scope(|scope| {
            let ask = |n| {
                let (tables, etag) = (&tables, &etag);
                scope.spawn(move || {
                    tables.update("PUT", "tab", "p", "r", Some(etag), &json!({"n": n}))
                })
            };
            let (one, two) = (ask(1), ask(2));
            (one.join().unwrap(), two.join().unwrap())
        });
        let (won, lost) = if one.status == 204 { (one, two) } else { (two, one) };
        lost.refused(412, "UpdateConditionNotSatisfied");
        etag = won.is(204).header("etag").to_owned();
        assert!(is_etag(&etag), "round {round}");
    }
}

#[test]
fn t14_a_write_without_a_change_moves_etag_and_timestamp() {
    let tables = Tables::with("tab");
    tables.put_row("tab", "p", "r", 1);
    let before = tables.get(&entity("tab", "p", "r")).json();
    tables.update("PUT", "tab", "p", "r", Some("*"), &json!({"n": 1})).is(204);
    let after = tables.get(&entity("tab", "p", "r")).json();
    assert_ne!(before["odata.etag"], after["odata.etag"]);
    assert_ne!(before["Timestamp"], after["Timestamp"]);
    assert_eq!(before["n"], after["n"]);
}

#[test]
fn t16_the_last_acl_stays() {
    let tables = Tables::with("tab");
    for id in ["one", "two"] {
        let body = format!(
            "<SignedIdentifiers><SignedIdentifier><Id>{id}</Id></SignedIdentifier>\
             </SignedIdentifiers>"
        );
        tables.ask("PUT", "/tab?comp=acl", &[], body.as_bytes()).is(204);
    }
    let text = tables.get("/tab?comp=acl").is(200).text();
    assert!(text.contains("<Id>two</Id>") && !text.contains("<Id>one</Id>"), "{text}");
}

#[test]
fn t18_if_none_match_is_refused() {
    let tables = Tables::with("tab");
    tables.put_row("tab", "p", "r", 1);
    for method in ["PUT", "MERGE", "DELETE"] {
        let headers = [("if-match", "*"), ("if-none-match", "*")];
        let refused = tables.ask(method, &entity("tab", "p", "r"), &headers, b"{}");
        refused.refused(400, "InvalidInput");
    }
}

#[test]
fn t20_prefer_decides_what_an_insertion_returns() {
    let tables = Tables::with("tab");
    let insert = |row: &str, prefer: Option<&str>| {
        let headers: Vec<_> = prefer.map(|value| ("prefer", value)).into_iter().collect();
        let body = json!({"PartitionKey": "p'q", "RowKey": row}).to_string();
        tables.ask("POST", "/tab", &headers, body.as_bytes())
    };
    let none = insert("a", Some("return-no-content")).is(204);
    assert_eq!(none.header("preference-applied"), "return-no-content");
    let location = format!("{}/tab(PartitionKey='p''q',RowKey='a')", tables.base());
    assert_eq!((none.header("location"), none.header("dataserviceid")), (&*location, &*location));
    assert!(is_etag(none.header("etag")));
    let some = insert("b", Some("return-content")).is(201);
    assert_eq!(some.header("preference-applied"), "return-content");
    assert_eq!(some.json()["RowKey"], "b");
    let silent = insert("c", None).is(201);
    assert_eq!(silent.header("preference-applied"), "");
    assert!(silent.header("location").ends_with("RowKey='c')"));
    assert_eq!(silent.json()["PartitionKey"], "p'q");
}

#[test]
fn t21_t22_replace_drops_and_merge_keeps_and_types_may_change() {
    let tables = Tables::with("tab");
    let full = json!({"PartitionKey": "p", "RowKey": "r", "a": 1, "b": "two"});
    tables.insert("tab", &full).is(201);
    let url = entity("tab", "p", "r");
    tables.update("PATCH", "tab", "p", "r", Some("*"), &json!({"a": null, "b": 2.5})).is(204);
    let body = tables.get(&url).json();
    assert_eq!((&body["a"], &body["b"]), (&json!(1), &json!(2.5)));
    tables.update("PUT", "tab", "p", "r", Some("*"), &json!({"b": true})).is(204);
    let body = tables.get(&url).json();
    assert_eq!((body.get("a"), &body["b"]), (None, &json!(true)));
}
