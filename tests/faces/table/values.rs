//! T23-T45: types and JSON, keys, limits, names of tables.

use serde_json::{Value, json};

use super::fixture::{Tables, entity};

const ACCEPTS: [&str; 3] = [
    "application/json;odata=nometadata",
    "application/json;odata=minimalmetadata",
    "application/json;odata=fullmetadata",
];

fn kept(tables: &Tables, row: &str, properties: &str) -> Value {
    let body = format!(r#"{{"PartitionKey":"p","RowKey":"{row}",{properties}}}"#);
    tables.ask("POST", "/tab", &[], body.as_bytes()).is(201);
    tables.get(&entity("tab", "p", row)).is(200).json()
}

/// A JSON text without the line breaks that only make it readable here.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim_start).collect()
}

fn bad(tables: &Tables, properties: &str, code: &str) {
    let body = format!(r#"{{"PartitionKey":"p","RowKey":"bad",{properties}}}"#);
    tables.ask("POST", "/tab", &[], body.as_bytes()).refused(400, code);
    tables.get(&entity("tab", "p", "bad")).refused(404, "ResourceNotFound");
}

#[test]
fn t23_all_types_round_trip_at_three_levels() {
    let tables = Tables::with("tab");
    let body = r#"{"PartitionKey":"p","RowKey":"r","s":"x","b":true,"i":5,
        "l@odata.type":"Edm.Int64","l":"7","d":1.5,
        "t@odata.type":"Edm.DateTime","t":"2021-04-08T14:34:34.79Z",
        "g@odata.type":"Edm.Guid","g":"c0ffee00-1234-5678-9abc-def012345678",
        "x@odata.type":"Edm.Binary","x":"AP8="}"#;
    tables.ask("POST", "/tab", &[], body.as_bytes()).is(201);
    let texts = ACCEPTS.map(|accept| {
        let url = entity("tab", "p", "r");
        let got = tables.ask("GET", &url, &[("accept", accept)], b"").is(200);
        let level = accept.split('=').nth(1).unwrap();
        let expected = format!("application/json;odata={level};streaming=true;charset=utf-8");
        assert_eq!(got.header("content-type"), expected);
        let format = format!("{url}?$format={}", accept.replace(';', "%3B"));
        assert_eq!(tables.get(&format).is(200).text(), got.text());
        got.text()
    });
    let values = one_line(
        r#""s":"x","b":true,"i":5,"l":"7","d":1.5,"t":"2021-04-08T14:34:34.79Z",
         "g":"c0ffee00-1234-5678-9abc-def012345678","x":"AP8="}"#,
    );
    assert!(texts[0].starts_with(r#"{"PartitionKey":"p","RowKey":"r","Timestamp":""#));
    assert!(texts[0].ends_with(&values), "{}", texts[0]);
    let typed = one_line(
        r#""s":"x","b":true,"i":5,"l@odata.type":"Edm.Int64","l":"7","d":1.5,
         "t@odata.type":"Edm.DateTime","t":"2021-04-08T14:34:34.79Z",
         "g@odata.type":"Edm.Guid","g":"c0ffee00-1234-5678-9abc-def012345678",
         "x@odata.type":"Edm.Binary","x":"AP8="}"#,
    );
    let base = tables.base();
    let start = format!(r#"{{"odata.metadata":"{base}/$metadata#tab/@Element","odata.etag":"#);
    assert!(texts[1].starts_with(&start) && texts[1].ends_with(&typed), "{}", texts[1]);
    let link = "tab(PartitionKey='p',RowKey='r')";
    let start = format!(
        r#"{{"odata.metadata":"{base}/$metadata#tab/@Element",
             "odata.type":"devstoreaccount1.tab","odata.id":"{base}/{link}","odata.etag":"#
    );
    assert!(texts[2].starts_with(&one_line(&start)) && texts[2].ends_with(&typed), "{}", texts[2]);
    let middle = format!(
        r#""odata.editLink":"{link}","PartitionKey":"p","RowKey":"r",
             "Timestamp@odata.type":"Edm.DateTime","Timestamp":"#
    );
    assert!(texts[2].contains(&one_line(&middle)), "{}", texts[2]);
    let atom = [("accept", "application/atom+xml")];
    let atom = tables.ask("GET", "/tab", &atom, b"").is(415);
    assert_eq!(atom.code(), "AtomFormatNotSupported");
    for any in ["*/*", "application/json", "text/html, application/json;q=0.5"] {
        let got = tables.ask("GET", "/tab", &[("accept", any)], b"").is(200);
        assert!(got.header("content-type").contains("minimalmetadata"), "{any}");
    }
}

#[test]
fn t30_a_property_is_given_once() {
    let tables = Tables::with("tab");
    bad(&tables, r#""a":1,"a":2"#, "DuplicatePropertiesSpecified");
    let both = kept(&tables, "r", r#""Birthday":1,"birthday":2"#);
    assert_eq!((&both["Birthday"], &both["birthday"]), (&json!(1), &json!(2)));
}

#[test]
fn t31_a_timestamp_from_a_client_is_ignored() {
    let tables = Tables::with("tab");
    for (row, given) in [("a", "null"), ("b", r#""2000-01-01T00:00:00Z""#), ("c", "5")] {
        let body = kept(&tables, row, &format!(r#""Timestamp":{given}"#));
        assert!(!body["Timestamp"].as_str().unwrap().starts_with("2000"), "{given}");
    }
}

#[test]
fn t32_keys_may_be_empty() {
    let tables = Tables::with("tab");
    for (partition, row) in [("", ""), ("", "r"), ("p", "")] {
        tables.insert("tab", &json!({"PartitionKey": partition, "RowKey": row})).is(201);
        tables.get(&entity("tab", partition, row)).is(200);
    }
    let mut target = "/tab?$top=1".to_owned();
    let mut found = Vec::new();
    loop {
        let got = tables.get(&target).is(200);
        found.push(got.json()["value"][0]["RowKey"].as_str().unwrap().to_owned());
        let (next_p, next_r) = got.continuation();
        if next_p.is_empty() {
            break;
        }
        assert!(!next_r.is_empty(), "an empty key has a token too");
        target = format!("/tab?$top=1&NextPartitionKey={next_p}&NextRowKey={next_r}");
    }
    assert_eq!(found, ["", "r", ""]);
    assert_eq!(tables.rows("tab", "PartitionKey eq ''"), ["/", "/r"]);
}

#[test]
fn t33_awkward_keys_round_trip_in_every_spelling() {
    let tables = Tables::with("tab");
    for key in ["it's", "% + & = ( ) , : @ $", "a b", "größe", "😀", "''", "{x}"] {
        let made = tables.insert("tab", &json!({"PartitionKey": key, "RowKey": key})).is(201);
        let location = made.header("location").to_owned();
        let path = location.strip_prefix(tables.base().as_str()).unwrap();
        for url in [path.to_owned(), path.replace('\'', "%27"), entity("tab", key, key)] {
            let got = tables.get(&url).is(200).json();
            assert_eq!((&got["PartitionKey"], &got["RowKey"]), (&json!(key), &json!(key)), "{url}");
        }
    }
    tables.put_row("tab", "p", "r", 1);
    tables.get("/tab(RowKey='r',PartitionKey='p')").is(200);
    tables.get("/tab(PartitionKey='p')").refused(400, "InvalidInput");
}

#[test]
fn t34_some_characters_cannot_be_in_keys() {
    let tables = Tables::with("tab");
    for key in ["a/b", "a\\b", "a#b", "a?b", "a\u{1}b", "a\u{7f}", "\u{85}"] {
        for (partition, row) in [(key, "r"), ("p", key)] {
            let body = json!({"PartitionKey": partition, "RowKey": row});
            tables.insert("tab", &body).refused(400, "OutOfRangeInput");
            let upsert = tables.update("PUT", "tab", partition, row, None, &json!({}));
            upsert.refused(400, "OutOfRangeInput");
        }
    }
}

#[test]
fn t36_an_insertion_needs_both_keys() {
    let tables = Tables::with("tab");
    for body in [json!({"PartitionKey": "p"}), json!({"RowKey": "r"}), json!({})] {
        let refused = tables.insert("tab", &body).refused(400, "PropertiesNeedValue");
        let text = "The values are not specified for all properties in the entity.";
        assert!(refused.message().starts_with(text));
    }
}

#[test]
fn t40_an_entity_has_one_mebibyte() {
    let tables = Tables::with("tab");
    let texts = |names: std::ops::RangeInclusive<char>, length: usize| {
        let one = |name| format!(r#""{name}":"{}""#, "x".repeat(length));
        names.map(one).collect::<Vec<_>>().join(",")
    };
    kept(&tables, "r", &texts('a'..='p', 32_700));
    bad(&tables, &texts('a'..='p', 32_768), "EntityTooLarge");
    let more = format!("{{{}}}", texts('q'..='q', 900));
    let merge =
        tables.ask("PATCH", &entity("tab", "p", "r"), &[("if-match", "*")], more.as_bytes());
    merge.is(204);
    let more = format!("{{{}}}", texts('r'..='r', 900));
    let merge =
        tables.ask("PATCH", &entity("tab", "p", "r"), &[("if-match", "*")], more.as_bytes());
    merge.refused(400, "EntityTooLarge");
    assert!(tables.get(&entity("tab", "p", "r")).json().get("r").is_none());
}

#[test]
fn t41_a_body_has_4_mib() {
    let tables = Tables::with("tab");
    let body = vec![b' '; (4 << 20) + 1];
    let refused = tables.ask("POST", "/tab", &[], &body).is(413);
    assert_eq!(refused.code(), "RequestBodyTooLarge");
}

#[test]
fn t42_table_names_are_checked_everywhere_with_the_texts_that_clients_compare() {
    let tables = Tables::new();
    let length = "The specified resource name length is not within the permissible limits.";
    let characters = "The specifed resource name contains invalid characters.";
    let long = "x".repeat(64);
    let hint = tables.get("/t1()").message();
    assert!(hint.contains("[latchfs: 't1' has 2 letters, 3 to 63 are allowed]"), "{hint}");
    for (name, code, text) in [
        ("ab", "OutOfRangeInput", length),
        (long.as_str(), "OutOfRangeInput", length),
        ("a_b", "InvalidResourceName", characters),
        ("1ab", "InvalidResourceName", characters),
        ("tables", "InvalidResourceName", characters),
    ] {
        let check = |got: super::fixture::Got| {
            let refused = got.refused(400, code);
            assert!(refused.message().contains(text), "{name}: {}", refused.message());
        };
        check(tables.ask(
            "POST",
            "/Tables",
            &[],
            json!({"TableName": name}).to_string().as_bytes(),
        ));
        check(tables.ask("DELETE", &format!("/Tables('{name}')"), &[], b""));
        if name == "tables" {
            continue;
        }
        check(tables.insert(name, &json!({"PartitionKey": "p", "RowKey": "r"})));
        check(tables.get(&format!("/{name}()")));
        check(tables.get(&entity(name, "p", "r")));
        let part = super::fixture::change(
            "POST",
            &format!("/{name}"),
            &[],
            r#"{"PartitionKey":"p","RowKey":"r"}"#,
        );
        let answer = tables.batch(&[part]).is(202);
        assert!(answer.text().contains(&format!(r#""code":"{code}""#)), "{}", answer.text());
        assert!(answer.text().contains(&format!("0:{text}")), "{}", answer.text());
    }
}

#[test]
fn t43_table_names_have_no_case_and_keep_their_spelling() {
    let tables = Tables::with("MyTable");
    let again = tables.ask("POST", "/Tables", &[], br#"{"TableName":"MYTABLE"}"#);
    again.refused(409, "TableAlreadyExists");
    tables.put_row("mytable", "p", "r", 1);
    assert_eq!(tables.rows("MYTABLE", "n eq 1"), ["p/r"]);
    assert_eq!(tables.get("/Tables").json()["value"][0]["TableName"], "MyTable");
    assert_eq!(tables.get("/Tables('mytable')").is(200).json()["TableName"], "MyTable");
}

#[test]
fn t44_a_large_table_is_deleted_and_made_again_at_once() {
    let tables = Tables::with("tab");
    tables.fill("tab", 20, 100);
    tables.ask("DELETE", "/Tables('tab')", &[], b"").is(204);
    tables.get("/tab()").refused(404, "TableNotFound");
    tables.create("tab");
    assert!(tables.rows("tab", "true").is_empty());
}

#[test]
fn t45_a_missing_table_has_two_codes() {
    let tables = Tables::new();
    tables.ask("DELETE", "/Tables('tab')", &[], b"").refused(404, "ResourceNotFound");
    tables.get("/Tables('tab')").refused(404, "ResourceNotFound");
    let row = json!({"PartitionKey": "p", "RowKey": "r"});
    tables.insert("tab", &row).refused(404, "TableNotFound");
    tables.get("/tab()").refused(404, "TableNotFound");
    tables.get(&entity("tab", "p", "r")).refused(404, "TableNotFound");
    let acl = tables.get("/tab?comp=acl").is(404);
    assert_eq!(acl.code(), "TableNotFound");
    let set = tables.ask("PUT", "/tab?comp=acl", &[], b"").is(404);
    assert_eq!(set.code(), "TableNotFound");
}

/// The URL has the keys: those of the body may have any type.
#[test]
fn keys_in_the_body_of_an_update_are_not_looked_at() {
    let tables = Tables::with("tab");
    let url = entity("tab", "p", "r");
    let body = br#"{"PartitionKey":"2021-04-08T14:34:34Z","PartitionKey@odata.type":"Edm.DateTime",
        "RowKey":"c0ffee00-1234-5678-9abc-def012345678","RowKey@odata.type":"Edm.Guid","a":1}"#;
    for (method, headers) in [("PUT", &[][..]), ("PATCH", &[]), ("PUT", &[("if-match", "*")])] {
        tables.ask(method, &url, headers, body).is(204);
    }
    assert_eq!(tables.get(&url).is(200).json()["a"], 1);
    tables.ask("POST", "/tab", &[], body).refused(400, "InvalidInput");
}

#[test]
fn a_boolean_in_a_filter_has_any_case() {
    let tables = Tables::with("tab");
    kept(&tables, "r", r#""v":true"#);
    for (filter, found) in [("v eq True", 1), ("v eq TRUE", 1), ("v eq False", 0)] {
        let query = format!("/tab()?$filter={}", filter.replace(' ', "%20"));
        let rows = tables.get(&query).is(200).json();
        assert_eq!(rows["value"].as_array().unwrap().len(), found, "{filter}");
    }
}
