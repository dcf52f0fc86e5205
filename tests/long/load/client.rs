//! A REST client: makes, reads, writes, leases, renames, deletes, lists, and closes by force.

use std::net::SocketAddr;
use std::time::Instant;

use crate::common::http::{ACCOUNT, Got, Kept};
use crate::load::random::Random;
use crate::load::{Counts, some_file};

/// Works until `end`, and says how often each answer came.
pub fn work(addr: SocketAddr, random: Random, end: Instant) -> Counts {
    let connection = Kept::connect(addr).unwrap();
    let mut client = Client { addr, connection, random, counts: Counts::new() };
    while Instant::now() < end {
        client.step();
    }
    client.counts
}

struct Client {
    addr: SocketAddr,
    connection: Kept,
    random: Random,
    counts: Counts,
}

impl Client {
    fn step(&mut self) {
        let file = some_file(&mut self.random);
        let at = format!("/share/{file}");
        match self.random.below(16) {
            0..=3 => drop(self.ask("get", "GET", &at, &[], b"")),
            4 | 5 => drop(self.ask("properties", "HEAD", &at, &[], b"")),
            6 | 7 => self.write(&at, None),
            8 => {
                let headers = [("x-ms-type", "file"), ("x-ms-content-length", "10")];
                self.ask("create", "PUT", &at, &headers, b"");
            }
            9 => drop(self.ask("delete", "DELETE", &at, &[], b"")),
            10 | 11 => self.rename(&at),
            12 => self.lease(&at),
            13 => {
                let folder = at.rsplit_once('/').map_or(at.as_str(), |(folder, _)| folder);
                let target = format!("{folder}?restype=directory&comp=list&maxresults=50");
                self.ask("list", "GET", &target, &[], b"");
            }
            14 => drop(self.ask("handles", "GET", &format!("{at}?comp=listhandles"), &[], b"")),
            _ => {
                if self.random.once_in(4) {
                    let all = [("x-ms-handle-id", "*")];
                    let target = format!("{at}?comp=forceclosehandles");
                    self.ask("force close", "PUT", &target, &all, b"");
                }
            }
        }
    }

    fn write(&mut self, at: &str, lease: Option<&str>) {
        let mut headers = vec![("x-ms-write", "update"), ("x-ms-range", "bytes=0-4")];
        headers.extend(lease.map(|id| ("x-ms-lease-id", id)));
        self.ask("write", "PUT", &format!("{at}?comp=range"), &headers, b"HELLO");
    }

    fn rename(&mut self, at: &str) {
        let source = format!("http://{}/{ACCOUNT}{at}", self.addr);
        let to = some_file(&mut self.random);
        let replace = if self.random.once_in(2) { "true" } else { "false" };
        let headers = [
            ("x-ms-file-rename-source", source.as_str()),
            ("x-ms-file-rename-replace-if-exists", replace),
        ];
        self.ask("rename", "PUT", &format!("/share/{to}?comp=rename"), &headers, b"");
    }

    fn lease(&mut self, at: &str) {
        let target = format!("{at}?comp=lease");
        let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
        let got = self.ask("acquire", "PUT", &target, &acquire, b"");
        if got.status == 201 {
            let id = got.header("x-ms-lease-id").to_owned();
            self.write(at, Some(&id));
            let release = [("x-ms-lease-action", "release"), ("x-ms-lease-id", id.as_str())];
            self.ask("release", "PUT", &target, &release, b"");
        }
    }

    fn ask(
        &mut self,
        what: &str,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Got {
        let got = self.connection.ask(method, target, headers, body).unwrap();
        let expected = [200, 201, 202, 206, 404, 409, 412, 416];
        assert!(expected.contains(&got.status), "{what} of {target}: {got:?}\n{}", got.text());
        let what = format!("REST {what}: {} {}", got.status, got.code());
        *self.counts.entry(what.trim_end().to_owned()).or_default() += 1;
        got
    }
}
