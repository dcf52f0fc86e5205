//! Where services listen, and what clients are told about it.

use std::net::{SocketAddr, TcpStream};

use super::fixture::{Folder, error_text, json, latchfs, text};
use crate::common::need;

fn address_of(endpoint: &str) -> SocketAddr {
    endpoint.split('/').nth(2).unwrap().parse().unwrap()
}

#[test]
fn the_ready_file_has_the_endpoint_of_every_service_and_one_connection_string() {
    let folder = Folder::new();
    let _server = folder.start(&["serve", "--no-mount", "--file", "localhost:0"]);
    let ready = folder.ready();
    let endpoints = ready["endpoints"].as_object().unwrap();
    assert_eq!(endpoints["file"], ready["endpoint"]);
    for (service, endpoint) in endpoints {
        let endpoint = endpoint.as_str().unwrap();
        assert!(TcpStream::connect(address_of(endpoint)).is_ok(), "{service}: {endpoint}");
        if service == "smb" {
            // SDKs speak HTTP alone.
            assert!(endpoint.starts_with("smb://"), "{endpoint}");
            continue;
        }
        let mut key = service.clone();
        key[..1].make_ascii_uppercase();
        let part = format!("{key}Endpoint={endpoint};");
        assert!(ready["connection_string"].as_str().unwrap().contains(&part), "{part}");
    }
    let socket = folder.socket();
    let ask = |command: &str| {
        json(&folder.run(&[command, "--json", "--control", socket.to_str().unwrap()]))
    };
    assert_eq!(ask("status")["endpoints"], ready["endpoints"]);
    assert_eq!(ask("connection-string")["endpoints"], ready["endpoints"]);
}

/// Any free ports for the services that a test is not about.
const OTHERS: [&str; 6] = ["--blob", "0", "--queue", "0", "--table", "0"];

#[test]
fn a_service_that_is_off_does_not_listen_and_is_not_told() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    let nothing = folder.run(&["serve", "--no-mount", "--no-rest", "--data", "data"]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(error_text(&nothing).contains("nothing to serve"), "{}", error_text(&nothing));
    let _server = folder.serve(&[&["--file", "off"], &OTHERS[..]].concat());
    let ready = folder.ready();
    assert!(ready["endpoint"].is_null() && ready["endpoints"]["file"].is_null(), "{ready}");
    assert!(!ready["connection_string"].to_string().contains("FileEndpoint"), "{ready}");
}

#[test]
fn clients_of_a_server_on_every_address_are_told_its_first_host_name() {
    let folder = Folder::new();
    let arguments = ["--file", "0.0.0.0:0", "--expose", "--host", "nas", "--host", "other"];
    let _server = folder.start(&[&["serve", "--no-mount"], &arguments[..]].concat());
    let ready = folder.ready();
    assert!(ready["endpoint"].as_str().unwrap().starts_with("http://nas:"), "{ready}");
    assert!(ready["connection_string"].as_str().unwrap().contains("FileEndpoint=http://nas:"));
}

#[test]
fn status_notes_what_the_start_screen_notes() {
    let folder = Folder::new();
    let loopback = folder.start(&["serve", "--no-mount"]);
    assert!(!text(&folder.ask(&["status"])).contains("note:"));
    drop(loopback);
    let arguments = ["--file", "0.0.0.0:0", "--expose", "--no-auth"];
    let _server = folder.start(&[&["serve", "--no-mount"], &arguments[..]].concat());
    let (words, told) = (text(&folder.ask(&["status"])), json(&folder.ask(&["status", "--json"])));
    assert!(words.contains("note: --expose: other machines can reach file"), "{words}");
    assert!(words.contains("note: --no-auth: requests need no signature"), "{words}");
    assert_eq!(told["notes"], folder.ready()["notes"]);
}

#[test]
fn the_variable_of_the_first_version_that_has_another_name_is_refused_with_the_new_one() {
    let folder = Folder::new();
    let output = latchfs(folder.path())
        .args(["serve", "--no-mount"])
        .env("LATCHFS_LOOSE", "true")
        .output()
        .unwrap();
    let said = error_text(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("LATCHFS_LOOSE is called LATCHFS_NO_AUTH now"), "{said}");
}
