//! Ports on 127.0.0.1 that no other test gets meanwhile.
//!
//! A port that was given by the system and freed again is soon given to somebody else, who would
//! then meet this test's clients.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

/// A port that refuses connections, as long as this value lives: it is bound, and nobody listens.
pub struct Nobody {
    _socket: OwnedFd,
    pub addr: SocketAddr,
}

impl Nobody {
    pub fn new() -> Self {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let addr = getsockname(&socket).unwrap().try_into().unwrap();
        Self { _socket: socket, addr }
    }
}

/// An address for a server that is to listen on a port of the test's choice. Below the ports that
/// the system gives out by itself; each process starts its search elsewhere.
pub fn free_address() -> SocketAddr {
    let first = 20_000 + std::process::id() % 10_000;
    let ports = (first..32_000).filter_map(|port| u16::try_from(port).ok());
    let addresses = ports.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    addresses.into_iter().find(|addr| TcpListener::bind(addr).is_ok()).unwrap()
}
