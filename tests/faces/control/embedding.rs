//! `latchfs::Server`: what a program that embeds latchfs gets, and that dropping it ends it.

use std::net::TcpStream;
use std::path::Path;

use latchfs::Server;
use latchfs::api::{ApiClient, CloseHandles, GetLog, GetStatus};
use latchfs::file::rules::ShareMode;
use latchfs::file::rules::create::Disposition;
use latchfs::rules::service::ServiceKind;
use latchfs::server::{HoldError, HoldOptions, ListenAddress, StartError};

use super::fixture::is_mounted;
use crate::common::need;

fn address(endpoint: &str) -> std::net::SocketAddr {
    endpoint.split('/').nth(2).unwrap().parse().unwrap()
}

#[test]
fn a_server_gives_its_endpoints_and_ends_with_its_value() {
    let server = Server::builder().share("docs").account("first:Zmlyc3Q=").start().unwrap();
    let endpoint = server.endpoint(ServiceKind::File).unwrap();
    assert!(endpoint.ends_with("/first"), "{endpoint}");
    assert!(server.connection_string().contains(&format!("FileEndpoint={endpoint};")));
    assert_eq!(server.connection_string_of("first").unwrap(), server.connection_string());
    assert_eq!(server.connection_string_of("second"), None);
    assert!(server.accounts().first().file().share("docs").is_ok());
    let control = server.control();
    let folder = control.parent().unwrap().to_owned();
    let client = ApiClient::new(&control);
    client.ask(&GetStatus {}).unwrap();
    assert!(TcpStream::connect(address(&endpoint)).is_ok());
    drop(server);
    assert!(TcpStream::connect(address(&endpoint)).is_err());
    assert!(!control.exists() && !folder.exists());
    assert!(client.ask(&GetStatus {}).is_err());
}

#[test]
fn two_servers_in_one_process_share_nothing() {
    let [one, two] = ["docs", "other"].map(|share| Server::builder().share(share).start().unwrap());
    assert_ne!(one.endpoint(ServiceKind::File), two.endpoint(ServiceKind::File));
    assert!(one.accounts().first().file().share("other").is_err());
    assert!(two.accounts().first().file().share("other").is_ok());
}

#[test]
fn a_hold_is_a_client_of_its_own_and_is_closed_when_dropped() {
    let server = Server::builder().share("docs").start().unwrap();
    let options = HoldOptions {
        disposition: Disposition::OpenIf,
        share_mode: ShareMode::NONE,
        ..HoldOptions::new("docs", "a.txt")
    };
    let hold = server.hold(&options).unwrap();
    assert!(!hold.was_closed());
    let refused = server.hold(&HoldOptions::new("docs", "a.txt")).unwrap_err();
    assert!(matches!(refused, HoldError::Open(_)), "{refused}");
    drop(hold);
    let again = server.hold(&HoldOptions::new("docs", "a.txt")).unwrap();
    let close = CloseHandles { share: None, handle: Some(again.id()) };
    assert_eq!(ApiClient::new(&server.control()).ask(&close).unwrap().closed, 1);
    assert!(again.was_closed());
}

#[test]
fn grants_are_listed_where_all_events_are_wanted() {
    for all in [false, true] {
        let builder = Server::builder().share("docs");
        let server = if all { builder.all_events() } else { builder }.start().unwrap();
        let open =
            HoldOptions { disposition: Disposition::OpenIf, ..HoldOptions::new("docs", "a.txt") };
        drop(server.hold(&open).unwrap());
        let all_rows = GetLog { share: None, path: None, after: 0, wait_ms: 0 };
        let log = ApiClient::new(&server.control()).ask(&all_rows).unwrap();
        assert_eq!(!log.events.is_empty(), all);
    }
}

#[test]
fn a_mount_ends_with_the_server() {
    if !need::fuse() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let server = Server::builder().share("docs").mount("docs", place.path()).start().unwrap();
    let path = place.path().canonicalize().unwrap();
    assert!(is_mounted(&path));
    std::fs::write(path.join("a.txt"), "hello").unwrap();
    drop(server);
    assert!(!is_mounted(&path) && !path.join("a.txt").exists());
}

#[test]
fn a_start_that_fails_says_why_and_leaves_nothing() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = ListenAddress::At(taken.local_addr().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let start = Server::builder().data(folder.path().join("data"));
    let failed = start.listen(ServiceKind::File, address).start().err().unwrap();
    assert!(matches!(failed, StartError::Listen { .. }), "{failed}");
    let start = || Server::builder().data(folder.path().join("other"));
    let bad = start().account("no").start().err().unwrap();
    assert!(matches!(bad, StartError::Accounts(_)), "{bad}");
    let bad = start().share("docs").mount("dcos", Path::new("/tmp")).start().err().unwrap();
    assert!(bad.to_string().contains("'dcos' is not among the shares"), "{bad}");
    assert!(!folder.path().join("other").exists());
}
