//! T46-T61: pages, tokens, filters.

use std::time::{Duration, Instant};

use super::fixture::{Tables, entity};

#[test]
fn t46_tables_are_listed_in_pages_without_doubles() {
    let tables = Tables::new();
    for name in ["xaaa", "Xbbb", "xccc", "xddd", "other", "xeee"] {
        tables.create(name);
    }
    let filter = "&$filter=TableName%20ge%20'a'";
    let mut target = format!("/Tables?$top=2{filter}");
    let mut found = Vec::new();
    loop {
        let got = tables.get(&target).is(200);
        let names = got.json()["value"].as_array().unwrap().clone();
        assert!(names.len() <= 2);
        found.extend(names.iter().map(|one| one["TableName"].as_str().unwrap().to_owned()));
        let next = got.header("x-ms-continuation-nexttablename");
        if next.is_empty() {
            break;
        }
        target = format!("/Tables?$top=2{filter}&NextTableName={next}");
    }
    assert_eq!(found, ["other", "xaaa", "xccc", "xddd", "xeee"]);
    tables.get("/Tables?$filter=TableName").is(200);
    tables.get("/Tables?$filter=TableName%20eq").refused(400, "InvalidInput");
}

#[test]
fn t47_t48_pages_have_tokens_that_name_the_next_entity() {
    let tables = Tables::with("tab");
    tables.fill("tab", 25, 100);
    assert_eq!(tables.page_sizes("/tab"), [1000, 1000, 500]);
    assert_eq!(tables.page_sizes("/tab?$filter=n%20lt%2020&$top=300"), [300, 200]);
    let got = tables.get("/tab?$top=2").is(200);
    assert_eq!(got.continuation(), ("1!4!cDAw".into(), "1!4!MDAy".into()));
    for bad in ["-1", "1001", "x"] {
        tables.get(&format!("/tab?$top={bad}")).refused(400, "InvalidInput");
    }
    let none = tables.get("/tab?$top=0").is(200);
    assert_eq!(none.json()["value"].as_array().unwrap().len(), 0);
    assert_eq!(none.continuation().0, "");
}

#[test]
fn t49_a_token_outlives_its_entity() {
    let tables = Tables::with("tab");
    for row in ["a", "b", "c"] {
        tables.put_row("tab", "p", row, 1);
    }
    let (partition, row) = tables.get("/tab?$top=1").continuation();
    tables.delete_entity("tab", "p", "b", Some("*")).is(204);
    let rest = tables.get(&format!("/tab?NextPartitionKey={partition}&NextRowKey={row}")).json();
    assert_eq!(rest["value"].as_array().unwrap().len(), 1);
    assert_eq!(rest["value"][0]["RowKey"], "c");
}

#[test]
fn t50_an_empty_token_is_none_and_a_broken_one_is_refused() {
    let tables = Tables::with("tab");
    tables.put_row("tab", "p", "r", 1);
    for empty in ["NextPartitionKey=&NextRowKey=", "NextPartitionKey=1!4!cA--&NextRowKey="] {
        let got = tables.get(&format!("/tab?{empty}")).is(200).json();
        assert_eq!(got["value"].as_array().unwrap().len(), 1, "{empty}");
    }
    for broken in ["x", "1!9!cA--", "1!4!*A--"] {
        tables.get(&format!("/tab?NextPartitionKey={broken}")).refused(400, "InvalidInput");
    }
}

#[test]
fn t51_select_names_what_is_returned() {
    let tables = Tables::with("tab");
    let body = br#"{"PartitionKey":"p","RowKey":"r","a":1,"b":2,"c":3}"#;
    tables.ask("POST", "/tab", &[], body).is(201);
    let names = |select: &str| {
        let got = tables.get(&format!("/tab?$select={select}")).is(200).json();
        let item = got["value"][0].as_object().unwrap();
        let names = item.keys().filter(|name| *name != "odata.etag").cloned();
        assert!(item.contains_key("odata.etag"));
        names.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(",")
    };
    assert_eq!(names("a,b"), "a,b");
    assert_eq!(names("RowKey,%20c"), "RowKey,c");
    assert_eq!(names("none,a"), "a");
    for all in ["", "%20", "*"] {
        assert_eq!(names(all), "PartitionKey,RowKey,Timestamp,a,b,c", "{all}");
    }
    let one = tables.get(&format!("{}?$select=a", entity("tab", "p", "r"))).json();
    assert_eq!(one.as_object().unwrap().len(), 3, "{one}");
    assert!(one["odata.metadata"].as_str().unwrap().ends_with("#tab/@Element&$select=a"));
}

fn typed() -> Tables {
    let tables = Tables::with("tab");
    for (row, text) in [
        (
            "r",
            r#""s":"it's","b":true,"i":3,"l@odata.type":"Edm.Int64","l":"5","d":2.5,
                 "t@odata.type":"Edm.DateTime","t":"2020-01-01T00:00:00Z",
                 "g@odata.type":"Edm.Guid","g":"c0ffee00-1234-5678-9abc-def012345678",
                 "x@odata.type":"Edm.Binary","x":"Cv8=""#,
        ),
        ("z", r#""other":1"#),
    ] {
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"{row}",{text}}}"#);
        tables.ask("POST", "/tab", &[], body.as_bytes()).is(201);
    }
    tables
}

#[test]
fn t52_t56_every_operator_on_every_type() {
    let tables = typed();
    for (name, equal, below) in [
        ("s", "'it''s'", "'it'"),
        ("b", "true", "false"),
        ("i", "3", "2"),
        ("l", "5L", "4L"),
        ("d", "2.5", "2.25"),
        ("t", "datetime'2020-01-01T00:00:00'", "datetime'2019-12-31T23:59:59.9999999Z'"),
        (
            "g",
            "guid'C0FFEE00-1234-5678-9abc-def012345678'",
            "guid'00000000-0000-0000-0000-000000000000'",
        ),
        ("x", "X'0aff'", "binary'0a'"),
    ] {
        for (filter, matches) in [
            (format!("{name} eq {equal}"), true),
            (format!("{name} ne {equal}"), false),
            (format!("{name} ge {equal}"), true),
            (format!("{name} gt {equal}"), false),
            (format!("{name} le {equal}"), true),
            (format!("{name} lt {equal}"), false),
            (format!("{name} gt {below}"), true),
            (format!("{name} eq {below}"), false),
            (format!("{name} ne {below}"), true),
            (format!("{below} lt {name}"), true),
        ] {
            assert_eq!(tables.rows("tab", &filter).len(), usize::from(matches), "{filter}");
        }
    }
    // A blank may be a plus, as some tools send it.
    let got = tables.get("/tab?$filter=i+eq+3").is(200).json();
    assert_eq!(got["value"].as_array().unwrap().len(), 1);
}

#[test]
fn t57_what_is_no_filter_is_refused() {
    let tables = typed();
    let deep = format!("{}b{}", "(".repeat(1_000), ")".repeat(1_000));
    for filter in
        ["startswith(s,'i')", "i add 1 eq 4", "i eq eq", "s eq 'open", "i eq null", "(b", &deep]
    {
        let target = format!("/tab?$filter={}", super::fixture::escaped(filter));
        tables.get(&target).refused(400, "InvalidInput");
    }
    let refused = tables.get("/tab?$filter=aaa%20bbb%20ccc").refused(400, "InvalidInput");
    assert!(refused.message().starts_with("Syntax error at position 4 in 'aaa bbb ccc'."));
    tables.get("/tab?$orderby=s").refused(501, "NotImplemented");
}

#[test]
fn t58_timestamps_can_be_filtered() {
    let tables = typed();
    assert_eq!(tables.rows("tab", "Timestamp gt datetime'2020-01-01T00:00:00Z'").len(), 2);
    assert_eq!(tables.rows("tab", "Timestamp lt datetime'2020-01-01T00:00:00Z'").len(), 0);
}

#[test]
fn t59_t60_key_ranges_read_only_what_they_name() {
    let tables = Tables::with("tab");
    tables.fill("tab", 30, 100);
    assert_eq!(tables.rows("tab", "PartitionKey eq 'p07'").len(), 100);
    let range = "PartitionKey eq 'p07' and RowKey ge '010' and RowKey lt '015'";
    assert_eq!(tables.rows("tab", range).first().unwrap(), "p07/010");
    assert_eq!(tables.rows("tab", range).len(), 5);
    let points = "(PartitionKey eq 'p01' and RowKey eq '001') or (PartitionKey eq 'p02' and \
                  RowKey eq '002')";
    assert_eq!(tables.rows("tab", points), ["p01/001", "p02/002"]);
}

#[test]
fn t61_an_unselective_filter_answers_in_time() {
    let tables = Tables::with("tab");
    tables.fill("tab", 30, 100);
    let begun = Instant::now();
    assert!(tables.rows("tab", "n lt 0 and s ne 'x'").is_empty());
    assert!(begun.elapsed() < Duration::from_secs(20));
}
