//! A REST client of the soak: files, leases, renames, forced closes, snapshots, and a share of its
//! own that comes and goes.

use std::net::SocketAddr;
use std::time::Instant;

use super::some_file;
use crate::common::http::{ACCOUNT, Got, Kept};
use crate::common::random::Random;

/// The share that is deleted and made again, by all clients.
const PASSING: &str = "/passing";

/// Works until `end`. Fails at an answer that no rule gives.
pub fn work(addr: SocketAddr, random: Random, end: Instant) {
    let connection = Kept::connect(addr).unwrap();
    let mut client = Client { addr, connection, random };
    while Instant::now() < end {
        client.step();
    }
}

struct Client {
    addr: SocketAddr,
    connection: Kept,
    random: Random,
}

impl Client {
    fn step(&mut self) {
        let share = if self.random.once_in(8) { PASSING } else { "/share" };
        let at = format!("{share}/{}", some_file(&mut self.random));
        let length = [("x-ms-type", "file"), ("x-ms-content-length", "1000")];
        match self.random.below(24) {
            0..=4 => self.ask("GET", &at, &[], b""),
            5 | 6 => self.ask("HEAD", &at, &[], b""),
            7..=9 => self.write(&at, None),
            10 | 11 => self.ask("PUT", &at, &length, b""),
            12 => self.ask("DELETE", &at, &[], b""),
            13 | 14 => self.rename(share, &at),
            15 => self.lease(&at),
            16 => self.ask("PUT", &format!("{at}?comp=metadata"), &[("x-ms-meta-a", "1")], b""),
            17 => {
                let target = format!("{share}?restype=directory&comp=list&maxresults=20");
                self.ask("GET", &target, &[], b"")
            }
            18 => self.copy(share, &at),
            19 => {
                let target = format!("{at}?comp=forceclosehandles");
                self.ask("PUT", &target, &[("x-ms-handle-id", "*")], b"")
            }
            20 if self.random.once_in(20) => self.snapshot(),
            21 if self.random.once_in(5) => self.pass(),
            _ => self.ask("GET", &format!("{at}?comp=listhandles"), &[], b""),
        };
    }

    fn write(&mut self, at: &str, lease: Option<&str>) -> Got {
        let mut headers = vec![("x-ms-write", "update"), ("x-ms-range", "bytes=0-4")];
        headers.extend(lease.map(|id| ("x-ms-lease-id", id)));
        self.ask("PUT", &format!("{at}?comp=range"), &headers, b"HELLO")
    }

    fn rename(&mut self, share: &str, at: &str) -> Got {
        let source = format!("http://{}/{ACCOUNT}{at}", self.addr);
        let replace = if self.random.once_in(2) { "true" } else { "false" };
        let headers = [
            ("x-ms-file-rename-source", source.as_str()),
            ("x-ms-file-rename-replace-if-exists", replace),
        ];
        let to = format!("{share}/{}?comp=rename", some_file(&mut self.random));
        self.ask("PUT", &to, &headers, b"")
    }

    fn copy(&mut self, share: &str, at: &str) -> Got {
        let source = format!("http://{}/{ACCOUNT}{at}", self.addr);
        let to = format!("{share}/{}", some_file(&mut self.random));
        self.ask("PUT", &to, &[("x-ms-copy-source", source.as_str())], b"")
    }

    fn lease(&mut self, at: &str) -> Got {
        let target = format!("{at}?comp=lease");
        let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
        let got = self.ask("PUT", &target, &acquire, b"");
        if got.status == 201 {
            let id = got.header("x-ms-lease-id").to_owned();
            self.write(at, Some(&id));
            let release = [("x-ms-lease-action", "release"), ("x-ms-lease-id", id.as_str())];
            self.ask("PUT", &target, &release, b"");
        }
        got
    }

    /// A snapshot, and its end.
    fn snapshot(&mut self) -> Got {
        let got = self.ask("PUT", "/share?restype=share&comp=snapshot", &[], b"");
        if got.status == 201 {
            let target =
                format!("/share?restype=share&sharesnapshot={}", got.header("x-ms-snapshot"));
            self.ask("GET", &target, &[], b"");
            self.ask("DELETE", &target, &[], b"");
        }
        got
    }

    /// Makes the passing share with a folder, or deletes it under its users.
    fn pass(&mut self) -> Got {
        if self.random.once_in(2) {
            return self.ask("DELETE", &format!("{PASSING}?restype=share"), &[], b"");
        }
        let got = self.ask("PUT", &format!("{PASSING}?restype=share"), &[], b"");
        for number in 0..4 {
            self.ask("PUT", &format!("{PASSING}/d{number}?restype=directory"), &[], b"");
        }
        got
    }

    fn ask(&mut self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Got {
        let got = match self.connection.ask(method, target, headers, body) {
            Ok(got) => got,
            // The share was deleted while its file was sent: the connection ends with it.
            Err(_) if target.starts_with(PASSING) => {
                self.connection = Kept::connect(self.addr).unwrap();
                return self.ask(method, "/share?restype=share", &[], b"");
            }
            Err(error) => panic!("{method} {target}: {error}"),
        };
        assert!(got.status < 500, "{method} {target}: {got:?}\n{}", got.text());
        got
    }
}
