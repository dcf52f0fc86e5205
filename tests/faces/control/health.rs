//! `latchfs health`: the check of images that have no other program.

use super::fixture::{Folder, error_text, json, latchfs, text};
use crate::common::ports::free_address;

#[test]
fn health_is_yes_for_a_usable_server_by_the_variable_that_the_server_reads() {
    let folder = Folder::new();
    let _server = folder.start(&["serve", "--no-mount", "--admin", "127.0.0.1:0"]);
    let ready = folder.ready();
    let admin = ready["admin"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    let output = latchfs(folder.path()).arg("health").env("LATCHFS_ADMIN", &admin).output();
    let output = output.unwrap();
    assert_eq!((output.status.code(), &*text(&output)), (Some(0), "ok\n"));
    let told = json(&folder.run(&["health", "--admin", &admin, "--json"]));
    assert_eq!((&told["healthy"], &told["says"]), (&true.into(), &"ok".into()));
}

#[test]
fn health_finds_the_server_as_other_commands_do() {
    let folder = Folder::new();
    let server = folder.start(&["serve", "--no-mount", "--admin", "127.0.0.1:0"]);
    let output = folder.ask(&["health"]);
    assert_eq!((output.status.code(), &*text(&output)), (Some(0), "ok\n"));
    let near = latchfs(folder.path()).arg("health").env("LATCHFS_DATA", "data").output().unwrap();
    assert_eq!(text(&near), "ok\n", "{}", error_text(&near));
    drop(server);
    let _server = folder.start(&["serve", "--no-mount", "--admin", "off"]);
    let none = error_text(&folder.ask(&["health"]));
    assert!(none.contains("start it with --admin"), "{none}");
}

#[test]
fn health_without_a_server_says_where_it_looked() {
    let folder = Folder::new();
    let output = folder.run(&["health"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error_text(&output).contains("no running server found"), "{}", error_text(&output));
}

#[test]
fn health_fails_where_nobody_answers() {
    let folder = Folder::new();
    let address = free_address();
    let output = folder.run(&["health", "--admin", &address.to_string()]);
    let said = error_text(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&address.to_string()) && said.lines().count() == 1, "{said}");
    let off = error_text(&folder.run(&["health", "--admin", "off"]));
    assert!(off.contains("start it with --admin"), "{off}");
}
