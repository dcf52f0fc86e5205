//! The address of a service, as a user writes it: a port, an address with a port, or `off`.
//!
//! Decides which texts are accepted, and the address of a service that was not named. Listening
//! itself is in [`super::listeners`].

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use crate::rules::service::ServiceKind;

/// Where a service listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListenAddress {
    /// The service is not offered.
    Off,
    /// On this address; port 0 takes any free port.
    At(SocketAddr),
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        read_address(text).map(Self::At)
    }
}

/// Reads `PORT`, `localhost:PORT` or `IP:PORT`.
fn read_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(SocketAddr::new(LOOPBACK, port));
    }
    let form = "expected PORT, localhost:PORT or IP:PORT, e.g. 127.0.0.1:10005";
    text.parse().map_err(|_| form.to_owned())
}

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Where the page, the HTTP API, metrics and health are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AdminAddress {
    /// Nowhere: nothing is counted or remembered for them.
    #[default]
    Off,
    /// On this address; port 0 takes any free port.
    At(SocketAddr),
    /// On this address, or on a free port of the same IP where the port is taken.
    Preferred(SocketAddr),
}

/// The port of the page where none is asked for.
pub const ADMIN_PORT: u16 = 10009;

impl AdminAddress {
    /// The address where the user named `given` for it, and `services` for the services: on this
    /// machine, and nowhere if no service listens. The port moves with the File service, as those
    /// of the other services do.
    pub fn of(given: Option<ListenAddress>, services: &ServiceAddresses) -> Self {
        let port = match services.get(&ServiceKind::File) {
            Some(ListenAddress::At(file)) => moved_port(ADMIN_PORT, file.port()),
            Some(ListenAddress::Off) | None => ADMIN_PORT,
        };
        let listens = ServiceKind::ALL.into_iter().any(|kind| address_of(services, kind).is_some());
        match given {
            Some(ListenAddress::Off) => Self::Off,
            Some(ListenAddress::At(address)) => Self::At(address),
            None if !listens => Self::Off,
            None if port == 0 => Self::At(SocketAddr::new(LOOPBACK, 0)),
            None => Self::Preferred(SocketAddr::new(LOOPBACK, port)),
        }
    }

    /// Where to try to listen.
    pub fn wanted(self) -> Option<SocketAddr> {
        match self {
            Self::Off => None,
            Self::At(address) | Self::Preferred(address) => Some(address),
        }
    }
}

/// The addresses that the user named, by service.
pub type ServiceAddresses = BTreeMap<ServiceKind, ListenAddress>;

/// The address of a service. One that was not named moves with the File service: to its IP, and
/// its port by as much as that of File; to any free port if the File service takes one.
pub fn address_of(named: &ServiceAddresses, kind: ServiceKind) -> Option<SocketAddr> {
    match named.get(&kind) {
        Some(ListenAddress::Off) => None,
        Some(ListenAddress::At(address)) => Some(*address),
        None => Some(match named.get(&ServiceKind::File) {
            Some(ListenAddress::At(file)) => {
                SocketAddr::new(file.ip(), moved_port(kind.port(), file.port()))
            }
            Some(ListenAddress::Off) | None => SocketAddr::new(LOOPBACK, kind.port()),
        }),
    }
}

/// The well-known port `usual`, moved by as much as the File service was moved to `file`; 0 with
/// it. A port that does not exist stays the usual one.
fn moved_port(usual: u16, file: u16) -> u16 {
    if file == 0 {
        return 0;
    }
    let moved = i32::from(usual) + i32::from(file) - i32::from(ServiceKind::File.port());
    u16::try_from(moved).ok().filter(|port| *port != 0).unwrap_or(usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_port_a_name_for_this_machine_or_an_ip_with_a_port() {
        let read = |text: &str| match text.parse() {
            Ok(ListenAddress::At(address)) => address.to_string(),
            Ok(ListenAddress::Off) => "off".to_owned(),
            Err(why) => why,
        };
        assert_eq!(read("10005"), "127.0.0.1:10005");
        assert_eq!(read("localhost:0"), "127.0.0.1:0");
        assert_eq!(read("0.0.0.0:1"), "0.0.0.0:1");
        assert_eq!(read("[::1]:2"), "[::1]:2");
        assert_eq!(read("off"), "off");
        for wrong in ["", "localhost", "localhost:", "70000", "nas:1", "127.0.0.1", "OFF"] {
            assert!(read(wrong).contains("IP:PORT"), "{wrong}");
        }
    }

    #[test]
    fn the_page_is_on_this_machine_unless_it_is_sent_elsewhere() {
        let of = |given: Option<&str>, file: &str| {
            let named = ServiceAddresses::from([(ServiceKind::File, file.parse().unwrap())]);
            AdminAddress::of(given.map(|given| given.parse().unwrap()), &named)
        };
        let at = |text: &str| text.parse().unwrap();
        let default = AdminAddress::Preferred(at("127.0.0.1:10009"));
        assert_eq!(of(None, "0.0.0.0:10004"), default);
        assert_eq!(of(None, "off"), default, "other services listen");
        assert_eq!(of(None, "127.0.0.1:0"), AdminAddress::At(at("127.0.0.1:0")));
        assert_eq!(of(Some("0.0.0.0:9"), "127.0.0.1:0"), AdminAddress::At(at("0.0.0.0:9")));
        assert_eq!(of(Some("off"), "127.0.0.1:0"), AdminAddress::Off);
        let nothing = ServiceKind::ALL.map(|kind| (kind, ListenAddress::Off)).into();
        assert_eq!(AdminAddress::of(None, &nothing), AdminAddress::Off);
    }

    #[test]
    fn what_was_not_named_moves_with_the_file_service() {
        for (file, blob, queue, table, page) in [
            ("127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", 0),
            ("10.0.0.1:10004", "10.0.0.1:10000", "10.0.0.1:10001", "10.0.0.1:10002", 10009),
            ("11004", "127.0.0.1:11000", "127.0.0.1:11001", "127.0.0.1:11002", 11009),
            ("[::1]:5", "[::1]:1", "[::1]:2", "[::1]:3", 10),
            // Where a port would not exist it is the usual one.
            ("4", "127.0.0.1:10000", "127.0.0.1:1", "127.0.0.1:2", 9),
            ("65531", "127.0.0.1:65527", "127.0.0.1:65528", "127.0.0.1:65529", 10009),
            ("off", "127.0.0.1:10000", "127.0.0.1:10001", "127.0.0.1:10002", 10009),
        ] {
            let named = ServiceAddresses::from([(ServiceKind::File, file.parse().unwrap())]);
            let of = |kind| address_of(&named, kind).map(|address| address.to_string());
            let kinds = [ServiceKind::Blob, ServiceKind::Queue, ServiceKind::Table].map(of);
            assert_eq!(kinds, [blob, queue, table].map(|text| Some(text.to_owned())), "{file}");
            let page_at = AdminAddress::of(None, &named).wanted().unwrap();
            assert_eq!(page_at, SocketAddr::new(LOOPBACK, page), "{file}");
        }
        let off = ServiceAddresses::from([(ServiceKind::File, ListenAddress::Off)]);
        assert_eq!(address_of(&off, ServiceKind::File), None);
        let none = ServiceAddresses::new();
        assert_eq!(address_of(&none, ServiceKind::File), "127.0.0.1:10004".parse().ok());
    }
}
