//! The address of a service, as a user writes it: a port, an address with a port, or `off`.
//!
//! Decides which texts are accepted, and the address of a service that was not named. Listening
//! itself is in [`super::listeners`].

use std::collections::BTreeMap;
use std::io;
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

/// Where the page, the HTTP API, metrics and health are, or where SMB clients connect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OptionalAddress {
    /// Nowhere.
    #[default]
    Off,
    /// On this address; port 0 takes any free port.
    At(SocketAddr),
    /// On this address, or on a free port of the same IP where the port is taken.
    Preferred(SocketAddr),
}

/// The port of the page where none is asked for.
pub const ADMIN_PORT: u16 = 10009;

/// The port of SMB where none is asked for: 445 is for root alone.
pub const SMB_PORT: u16 = 10445;

impl OptionalAddress {
    /// Where the page is, if the user named `given` for it, and `services` for the services: on
    /// this machine, and nowhere if no service listens.
    pub fn of_page(given: Option<ListenAddress>, services: &ServiceAddresses) -> Self {
        let listens = ServiceKind::ALL.into_iter().any(|kind| address_of(services, kind).is_some());
        Self::of(given, ADMIN_PORT, services, listens)
    }

    /// Where SMB clients connect, if the user named `given` for it: on this machine, and nowhere
    /// unless `by_default`.
    pub fn of_smb(
        given: Option<ListenAddress>,
        services: &ServiceAddresses,
        by_default: bool,
    ) -> Self {
        Self::of(given, SMB_PORT, services, by_default)
    }

    /// The port moves with the File service, as those of the other services do.
    fn of(
        given: Option<ListenAddress>,
        usual: u16,
        services: &ServiceAddresses,
        by_default: bool,
    ) -> Self {
        let port = match services.get(&ServiceKind::File) {
            Some(ListenAddress::At(file)) => moved_port(usual, file.port()),
            Some(ListenAddress::Off) | None => usual,
        };
        match given {
            Some(ListenAddress::Off) => Self::Off,
            Some(ListenAddress::At(address)) => Self::At(address),
            None if !by_default => Self::Off,
            None if port == 0 => Self::At(SocketAddr::new(LOOPBACK, 0)),
            None => Self::Preferred(SocketAddr::new(LOOPBACK, port)),
        }
    }

    /// Listens by `bind` where it is wanted, or on a free port if that is as good.
    pub fn listen<T>(self, bind: impl Fn(SocketAddr) -> io::Result<T>) -> Option<io::Result<T>> {
        let wanted = self.wanted()?;
        Some(match (bind(wanted), self) {
            (Err(error), Self::Preferred(_)) if error.kind() == io::ErrorKind::AddrInUse => {
                bind(SocketAddr::new(wanted.ip(), 0))
            }
            (bound, _) => bound,
        })
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
            OptionalAddress::of_page(given.map(|given| given.parse().unwrap()), &named)
        };
        let at = |text: &str| text.parse().unwrap();
        let default = OptionalAddress::Preferred(at("127.0.0.1:10009"));
        assert_eq!(of(None, "0.0.0.0:10004"), default);
        assert_eq!(of(None, "off"), default, "other services listen");
        assert_eq!(of(None, "127.0.0.1:0"), OptionalAddress::At(at("127.0.0.1:0")));
        assert_eq!(of(Some("0.0.0.0:9"), "127.0.0.1:0"), OptionalAddress::At(at("0.0.0.0:9")));
        assert_eq!(of(Some("off"), "127.0.0.1:0"), OptionalAddress::Off);
        let nothing = ServiceKind::ALL.map(|kind| (kind, ListenAddress::Off)).into();
        assert_eq!(OptionalAddress::of_page(None, &nothing), OptionalAddress::Off);
    }

    #[test]
    fn a_free_port_is_taken_only_where_no_port_was_asked_for() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let listen = |address: OptionalAddress| {
            address.listen(std::net::TcpListener::bind::<SocketAddr>).unwrap()
        };
        let other = listen(OptionalAddress::Preferred(address)).unwrap();
        assert_ne!(other.local_addr().unwrap().port(), address.port());
        let error = listen(OptionalAddress::At(address)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
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
            let page_at = OptionalAddress::of_page(None, &named).wanted().unwrap();
            assert_eq!(page_at, SocketAddr::new(LOOPBACK, page), "{file}");
        }
        let off = ServiceAddresses::from([(ServiceKind::File, ListenAddress::Off)]);
        assert_eq!(address_of(&off, ServiceKind::File), None);
        let none = ServiceAddresses::new();
        assert_eq!(address_of(&none, ServiceKind::File), "127.0.0.1:10004".parse().ok());
    }
}
