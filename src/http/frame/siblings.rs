//! The other listeners of this server, whose files and blobs a copy may name as its source.
//!
//! Decides which addresses are theirs. They are asked by HTTP, since services do not know each
//! other, and decide themselves who may read. Which URLs name them is decided in [`super::source`],
//! how they are asked in [`crate::http::fetch`].

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};

use crate::rules::service::ServiceKind;

/// The listeners of a server. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct Siblings(Arc<RwLock<Vec<(ServiceKind, SocketAddr)>>>);

impl Siblings {
    /// A listener has begun.
    pub fn add(&self, kind: ServiceKind, addr: SocketAddr) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push((kind, addr));
    }

    /// A listener has ended. Another program may get its port.
    pub fn remove(&self, addr: SocketAddr) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).retain(|(_, one)| *one != addr);
    }

    /// The listeners whose objects have bytes to copy.
    pub fn sources(&self) -> Vec<(ServiceKind, SocketAddr)> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let has_bytes = |kind| matches!(kind, ServiceKind::File | ServiceKind::Blob);
        all.iter().filter(|(kind, _)| has_bytes(*kind)).copied().collect()
    }

    /// True for the address that one of them is asked at.
    pub fn has(&self, authority: &str) -> bool {
        self.sources().iter().any(|(_, addr)| asked_at(*addr).to_string() == authority)
    }
}

/// Where this process reaches a listener: one on all addresses, by loopback.
pub fn asked_at(mut addr: SocketAddr) -> SocketAddr {
    if addr.ip().is_unspecified() {
        addr.set_ip(match addr {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    addr
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_all_addresses_is_asked_by_loopback() {
        let at = |text: &str| asked_at(text.parse().unwrap()).to_string();
        assert_eq!(at("0.0.0.0:7"), "127.0.0.1:7");
        assert_eq!(at("[::]:7"), "[::1]:7");
        assert_eq!(at("10.0.0.1:7"), "10.0.0.1:7");
    }

    #[test]
    fn only_listeners_with_bytes_are_asked_and_none_that_has_ended() {
        let siblings = Siblings::default();
        let addr = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let kinds = [ServiceKind::File, ServiceKind::Blob, ServiceKind::Queue, ServiceKind::Table];
        for (port, kind) in (1..).zip(kinds) {
            siblings.add(kind, addr(port));
        }
        let has = |port: u16| siblings.has(&addr(port).to_string());
        assert!(has(1) && has(2) && !has(3) && !has(4) && !has(5));
        siblings.remove(addr(2));
        assert!(has(1) && !has(2));
    }
}
