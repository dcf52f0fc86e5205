//! Writes through REST: bytes, metadata, files made and deleted.

use std::net::SocketAddr;

use crate::common::http::{Got, Kept, ask};
use crate::common::served::Served;
use crate::durability::slots::{FILE_BYTES, Slots};

/// Metadata of this length does not fit in an extended attribute and has a file of its own.
const LONG: usize = 6_000;

/// A client that writes, and knows what was acknowledged.
pub struct Writer {
    name: String,
    next: u64,
    slots: Slots,
    /// The number in the metadata: acknowledged, and the one being set at the crash.
    metadata: (u64, Option<u64>),
    made: Vec<String>,
    deleted: Vec<String>,
    /// Neither made nor deleted for certain.
    unknown: Vec<String>,
    pub acknowledged: u64,
}

fn put(connection: &mut Kept, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Option<Got> {
    connection.ask("PUT", target, headers, body).ok()
}

fn write_slot(connection: &mut Kept, name: &str, at: usize, bytes: &[u8]) -> bool {
    let range = format!("bytes={at}-{}", at + bytes.len() - 1);
    let headers = [("x-ms-write", "update"), ("x-ms-range", range.as_str())];
    let got = put(connection, &format!("/share/{name}?comp=range"), &headers, bytes);
    got.map(|got| got.is(201)).is_some()
}

impl Writer {
    pub fn new(served: &Served, number: usize) -> Self {
        let name = format!("rest-{number}");
        let length = FILE_BYTES.to_string();
        let headers = [
            ("x-ms-type", "file"),
            ("x-ms-content-length", length.as_str()),
            ("x-ms-meta-number", "0"),
        ];
        ask(served.addr(), "PUT", &format!("/share/{name}"), &headers, b"").is(201);
        Self {
            name,
            next: 1,
            slots: Slots::default(),
            metadata: (0, None),
            made: Vec::new(),
            deleted: Vec::new(),
            unknown: Vec::new(),
            acknowledged: 0,
        }
    }

    /// Writes until the server is gone.
    pub fn work(&mut self, addr: SocketAddr) {
        let Ok(mut connection) = Kept::connect(addr) else { return };
        if let Some(number) = self.slots.unsettled() {
            let settled = self
                .slots
                .write(number, |at, bytes| write_slot(&mut connection, &self.name, at, bytes));
            if !settled {
                return;
            }
        }
        while self.step(&mut connection) {
            self.acknowledged += 1;
        }
    }

    /// Says whether it was acknowledged.
    fn step(&mut self, connection: &mut Kept) -> bool {
        let number = self.next;
        self.next += 1;
        match number % 5 {
            0 => self.set_metadata(connection, number),
            1 => self.make(connection, number),
            2 if self.made.len() > 3 => self.delete(connection),
            _ => {
                let name = &self.name;
                self.slots.write(number, |at, bytes| write_slot(connection, name, at, bytes))
            }
        }
    }

    fn set_metadata(&mut self, connection: &mut Kept, number: u64) -> bool {
        let target = format!("/share/{}?comp=metadata", self.name);
        let text = number.to_string();
        let long = "x".repeat(if number.is_multiple_of(2) { LONG } else { 1 });
        let headers = [("x-ms-meta-number", text.as_str()), ("x-ms-meta-more", long.as_str())];
        self.metadata.1 = Some(number);
        let done = put(connection, &target, &headers, b"").map(|got| got.is(200)).is_some();
        if done {
            self.metadata = (number, None);
        }
        done
    }

    fn make(&mut self, connection: &mut Kept, number: u64) -> bool {
        let made = format!("{}-{number}", self.name);
        let text = number.to_string();
        let headers = [
            ("x-ms-type", "file"),
            ("x-ms-content-length", text.as_str()),
            ("x-ms-meta-number", text.as_str()),
        ];
        let got = put(connection, &format!("/share/{made}"), &headers, b"");
        let done = got.map(|got| got.is(201)).is_some();
        if done {
            self.made.push(made);
        } else {
            self.unknown.push(made);
        }
        done
    }

    fn delete(&mut self, connection: &mut Kept) -> bool {
        let gone = self.made.remove(0);
        let got = connection.ask("DELETE", &format!("/share/{gone}"), &[], b"").ok();
        let done = got.map(|got| got.is(202)).is_some();
        if done {
            self.deleted.push(gone);
        } else {
            self.unknown.push(gone);
        }
        done
    }

    /// After a crash and a start.
    pub fn check(&mut self, served: &Served) {
        let head = |name: &str| ask(served.addr(), "HEAD", &format!("/share/{name}"), &[], b"");
        let file = ask(served.addr(), "GET", &format!("/share/{}", self.name), &[], b"").is(200);
        self.slots.check(&self.name, &file.body);
        let number: u64 = file.header("x-ms-meta-number").parse().unwrap();
        let (acknowledged, trying) = self.metadata;
        assert!(number == acknowledged || Some(number) == trying, "{number}: {:?}", self.metadata);
        self.metadata = (number, None);
        for name in &self.made {
            let got = head(name).is(200);
            let number = name.rsplit('-').next().unwrap();
            assert_eq!(got.header("content-length"), number, "{name}");
            assert_eq!(got.header("x-ms-meta-number"), number, "{name}");
        }
        for name in self.deleted.drain(..) {
            head(&name).is(404);
        }
        // Whatever became of them: they can be looked at.
        for name in self.unknown.drain(..) {
            assert!([200, 404].contains(&head(&name).status), "{name}");
        }
    }
}
