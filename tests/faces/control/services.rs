//! Where services listen, and what clients are told about it.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;

use super::fixture::{Folder, error_text, json, latchfs, text};
use crate::common::need;
use crate::common::ports::free_address;

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
fn an_address_may_be_a_port_alone() {
    let folder = Folder::new();
    let free = free_address();
    let port = free.port().to_string();
    let file = ["serve", "--no-mount", "--listen", &port];
    let _server = folder.start(&[&file[..], &OTHERS].concat());
    assert_eq!(folder.listener(), free);
}

/// A free address, whose port less `distance` is taken as long as the listener lives.
fn free_above_a_taken_one(distance: u16) -> (SocketAddr, TcpListener) {
    for _ in 0..100 {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = taken.local_addr().unwrap();
        let Some(port) = at.port().checked_add(distance) else { continue };
        let above = SocketAddr::new(at.ip(), port);
        if TcpListener::bind(above).is_ok() {
            return (above, taken);
        }
    }
    panic!("no two free ports at a distance of {distance}");
}

#[test]
fn services_without_an_address_move_with_the_file_service() {
    let folder = Folder::new();
    for (service, distance) in [("blob", 4), ("queue", 3), ("table", 2)] {
        let (file, taken) = free_above_a_taken_one(distance);
        let file = file.to_string();
        let start =
            ["serve", "--no-mount", "--data", "data", "--until-stdin-closes", "--file", &file];
        // The others have an address, so that no other port is asked for.
        let others = OTHERS.chunks(2).filter(|other| other[0] != format!("--{service}"));
        let others: Vec<_> = others.flatten().copied().collect();
        // A server that starts all the same ends with its standard input.
        let mut server = latchfs(folder.path());
        let ended = server.args(start).args(others).stdin(Stdio::piped()).output().unwrap();
        let said = error_text(&ended);
        let told = [taken.local_addr().unwrap().to_string(), format!("--{service} off")];
        assert!(told.iter().all(|part| said.contains(part)), "{told:?} is not in {said}");
    }
}

#[test]
fn an_address_that_cannot_be_read_is_refused_with_an_example() {
    let folder = Folder::new();
    let output = folder.run(&["serve", "--no-mount", "--file", "here"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error_text(&output).contains("IP:PORT, e.g. 127.0.0.1:10005"));
}

#[test]
fn a_port_that_is_taken_is_refused_with_the_options_that_cure_it() {
    let folder = Folder::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = folder.run(&["serve", "--no-mount", "--data", "data", "--file", &address]);
    let said = error_text(&output);
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    for part in [&*address, "--file 127.0.0.1:0", "--file off"] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
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
