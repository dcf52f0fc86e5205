//! What a server has from its start: containers, queues and tables by name, and load files.

use std::fs;
use std::process::Output;

use serde_json::json;

use super::fixture::{Folder, error_text, json, text};

const ALL: &str = r#"{
  "containers": [{"name": "photos", "blobs": [
    {"name": "a/text.txt", "text": "grüße", "content_type": "text/plain; charset=utf-8"},
    {"name": "b.bin", "file": "more/b.bin"}]}],
  "queues": [{"name": "jobs", "messages": ["one", "two"]}],
  "tables": [{"name": "people", "entities": [
    {"PartitionKey": "a", "RowKey": "1", "Age": 30, "Id": "9", "Id@odata.type": "Edm.Int64"}]}]
}"#;

fn folder() -> Folder {
    let folder = Folder::new();
    fs::create_dir(folder.join("more")).unwrap();
    fs::write(folder.join("more/b.bin"), "from a file").unwrap();
    fs::write(folder.join("all.json"), ALL).unwrap();
    folder
}

#[track_caller]
fn done(output: &Output) -> String {
    assert!(output.status.success(), "{}", error_text(output));
    text(output)
}

#[test]
fn a_load_file_fills_blobs_queues_and_tables_at_the_start_and_after_a_reset() {
    let folder = folder();
    let _server = folder.start(&["serve", "--no-mount", "--load", "all.json"]);
    for round in ["start", "reset"] {
        assert_eq!(done(&folder.ask(&["get", "blob:photos/a/text.txt"])), "grüße", "{round}");
        assert_eq!(done(&folder.ask(&["get", "blob:photos/b.bin"])), "from a file");
        assert_eq!(done(&folder.ask(&["get", "queue:jobs"])), "one");
        let entity = json(&folder.ask(&["get", "table:people/a/1"]));
        assert_eq!((&entity["Age"], &entity["Id"]), (&json!(30), &json!("9")));
        assert_eq!(entity["Id@odata.type"], "Edm.Int64");
        done(&folder.ask(&["put", "blob:photos/other", "all.json"]));
        done(&folder.ask(&["state", "reset"]));
        assert_eq!(folder.ask(&["get", "blob:photos/other"]).status.code(), Some(2));
    }
}

#[test]
fn what_exists_stays_as_it_is_when_a_file_is_loaded_again() {
    let folder = folder();
    let mut server = folder.start(&["serve", "--no-mount"]);
    let made = json(&folder.ask(&["load", "all.json", "--json"]));
    let counts = json!({ "containers": 1, "blobs": 2, "queues": 1, "messages": 2, "tables": 1,
                         "entities": 1, "existed": 0 });
    assert_eq!(made, counts);
    done(&folder.ask(&["put", "blob:photos/b.bin", "all.json"]));
    done(&folder.ask(&["get", "queue:jobs"]));
    let again = json(&folder.ask(&["load", "all.json", "--json"]));
    assert_eq!((&again["existed"], &again["messages"]), (&json!(6), &json!(0)));
    assert_eq!(done(&folder.ask(&["get", "blob:photos/b.bin"])), ALL);
    // A start with the file is the same, and says so.
    assert!(server.stop().success());
    let server = folder.start(&["serve", "--no-mount", "--load", "all.json"]);
    assert!(server.log().contains("--load all.json: 6 existed"), "{}", server.log());
    assert_eq!(done(&folder.ask(&["get", "blob:photos/b.bin"])), ALL);
    assert_eq!(done(&folder.ask(&["get", "queue:jobs"])), "two");
}

#[test]
fn a_wrong_load_file_is_refused_with_its_place_and_nothing_is_made() {
    let folder = folder();
    let container = |blob: &str| {
        format!(r#"{{"containers": [{{"name": "good"}}, {{"name": "docs", "blobs": [{blob}]}}]}}"#)
    };
    let cases = [
        ("{\n\"queus\": []}".to_owned(), "wrong.json: unknown field `queus`"),
        ("{\n\"queues\": [{\"name\": 5}]}".to_owned(), "at line 2 column 21"),
        ("[]".to_owned(), "invalid type: sequence, expected an object at line 1 column 0"),
        (
            r#"{"containers": [["docs", []]]}"#.to_owned(),
            "invalid type: sequence, expected an object at line 1 column 16",
        ),
        (r#"{"queues": [{"name": "Jobs"}]}"#.to_owned(), "queue:Jobs: 'Jobs' has 'J'"),
        (r#"{"tables": [{"name": "1st"}]}"#.to_owned(), "table:1st: "),
        (r#"{"queues": [{"name": "a-b"}, {"name": "a-b"}]}"#.to_owned(), "a-b is named twice"),
        (
            r#"{"tables": [{"name": "rows", "entities": [{"PartitionKey": "a", "RowKey": "b/"}]}]}"#
                .to_owned(),
            "table:rows/a/b/: ",
        ),
        (
            r#"{"tables": [{"name": "rows", "entities": [{"PartitionKey": "a"}]}]}"#.to_owned(),
            "missing field `RowKey` at line 1",
        ),
        (
            container(r#"{"name": "a/b", "text": ""}, {"name": "a\\b", "text": ""}"#),
            "blob:docs/a/b is named twice",
        ),
        (container(r#"{"name": "a"}"#), "blob:docs/a: give either text or file"),
        (container(r#"{"name": "a", "file": "none"}"#), "none: No such file"),
        (container(r#"{"name": "a", "text": "", "content_type": "a\nb"}"#), "no value of a header"),
        (container(r#"{"name": "a", "file": "more"}"#), "more is not a file"),
    ];
    for (load, said) in &cases {
        fs::write(folder.join("wrong.json"), load).unwrap();
        let output = folder.run(&["serve", "--no-mount", "--data", "new", "--load", "wrong.json"]);
        assert_eq!(output.status.code(), Some(2), "{load}");
        let error = error_text(&output);
        assert!(
            error.starts_with("latchfs: --load wrong.json: ") && error.contains(said),
            "{error}"
        );
        assert!(!folder.join("new").exists());
    }
    let _server = folder.start(&["serve", "--no-mount"]);
    for (load, said) in &cases {
        fs::write(folder.join("wrong.json"), load).unwrap();
        let output = folder.ask(&["load", "wrong.json"]);
        assert_eq!(output.status.code(), Some(2), "{load}");
        assert!(error_text(&output).contains(said), "{}", error_text(&output));
    }
    let listed = done(&folder.ask(&["ls"]));
    assert!(listed.starts_with("file:share\t") && listed.lines().count() == 1, "{listed}");
}

#[test]
fn containers_queues_and_tables_are_made_by_name_beside_the_addresses_of_their_services() {
    let folder = Folder::new();
    let account = "--account=first:Zmlyc3Q=,second:c2Vjb25k";
    let named = ["--container", "photos,logs", "--queue", "jobs", "--queue", "127.0.0.1:0"];
    let more = ["--table", "second/people", "--table", "0", account];
    let all = [&["serve", "--no-mount"], &named[..], &more].concat();
    let _server = folder.start_with(&all, &[("LATCHFS_SHARES", "docs")]);
    let first = ["file:docs", "blob:logs", "blob:photos", "queue:jobs"];
    let listed = |arguments: &[&str]| {
        let listed = done(&folder.ask(arguments));
        let names = listed.lines().map(|line| line.split('\t').next().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(listed(&["ls"]), first);
    done(&folder.ask(&["rm", "-r", "blob:logs"]));
    done(&folder.ask(&["state", "reset"]));
    assert_eq!(listed(&["ls"]), first);
    assert_eq!(listed(&["ls", "--account", "second"]), ["table:people"]);
    for (options, said) in [
        (&["--queue", "Jobs"][..], "queue:Jobs: 'Jobs' has 'J'"),
        (&["--queue", "70000"], "expected PORT"),
        (&["--table", "0", "--table", "1"], "--table has two addresses"),
        (&["--container", "third/docs"], "no account 'third' is served"),
    ] {
        let start = [&["serve", "--no-mount", "--data", "new"], options].concat();
        let output = folder.run(&start);
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(error_text(&output).contains(said), "{}", error_text(&output));
        assert!(!folder.join("new").exists());
    }
}

#[test]
fn the_schema_of_a_load_file_has_the_names_of_its_keys() {
    let schema = json(&Folder::new().run(&["load", "--schema"]));
    assert_eq!(schema["additionalProperties"], false);
    for key in ["containers", "queues", "tables"] {
        assert_eq!(schema["properties"][key]["type"], "array", "{schema}");
    }
    assert!(schema["$defs"]["LoadEntity"]["required"].to_string().contains("PartitionKey"));
}
