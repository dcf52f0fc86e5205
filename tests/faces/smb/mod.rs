//! The SMB face, over the wire: against holds and REST ([`matrices`]), against the recordings of an
//! SMB server ([`oracle`]), with mount and REST in one server ([`meets`]), in the journal
//! ([`rows`]), and bytes that no client sends ([`bad_input`]). Clients of others are in
//! `tests/world/smb`.

mod bad_input;
mod client;
mod matrices;
mod meets;
mod oracle;
mod rows;

use std::fs;
use std::net::SocketAddr;

use serde_json::Value;

use crate::common::served::Served;

/// A server with SMB on a free port, and no mount.
fn serve() -> Served {
    Served::start(&["--no-mount", "--no-auth", "--smb", "127.0.0.1:0"])
}

/// Where its SMB listener listens.
fn address(served: &Served) -> SocketAddr {
    let ready = fs::read_to_string(served.ready_file()).unwrap();
    let ready: Value = serde_json::from_str(&ready).unwrap();
    let endpoint = ready["endpoints"]["smb"].as_str().unwrap_or_else(|| panic!("{ready}"));
    endpoint.strip_prefix("smb://").and_then(|addr| addr.parse().ok()).unwrap()
}
