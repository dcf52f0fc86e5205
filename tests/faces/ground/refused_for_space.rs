//! A refusal for want of space changes nothing: each REST operation that needs room on a full disk,
//! with bytes, properties, metadata and lease compared before and after. Records of files need no
//! room on tmpfs; what happens when one cannot be saved is in `tests/rules/dirs/unsaved.rs`.

use std::fs::{self, File};

use latchfs::client;

use crate::common::ground::Ground;
use crate::common::http::{Got, ask};
use crate::common::need;
use crate::common::served::{Served, wait_for};
use crate::ground::{create, errno, rest, write};

const FULL: &str = "ShareSizeLimitReached";
const LEASE: &str = "11111111-2222-3333-4444-555555555555";

/// A server on a small disk.
struct Small {
    ground: Ground,
    served: Served,
}

impl Small {
    /// None where this cannot be tried.
    fn start() -> Option<Self> {
        if !need::fuse() || !need::root() {
            return None;
        }
        Some(Self::on(Ground::new("tmpfs", c"size=4m")))
    }

    fn on(ground: Ground) -> Self {
        let data = ground.path().join("data");
        let served = Served::start(&["--no-auth", "--data", data.to_str().unwrap()]);
        Self { ground, served }
    }

    /// All that REST says of a file, and its bytes.
    fn state(&self, name: &str) -> Vec<String> {
        let got = rest(&self.served, "GET", &format!("/{name}"), &[]).is(200);
        let told = |(name, value): (&String, &String)| {
            let passing = ["date", "x-ms-request-id", "x-ms-file-last-access-time", "connection"];
            (!passing.contains(&name.as_str())).then(|| format!("{name}: {value}"))
        };
        let mut state: Vec<_> = got.headers.iter().filter_map(told).collect();
        state.sort();
        state.push(got.text());
        state
    }

    fn put(&self, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Got {
        ask(self.served.addr(), "PUT", &format!("/share{target}"), headers, body)
    }
}

#[test]
fn a_request_refused_for_want_of_space_changes_nothing() {
    let Some(at) = Small::start() else { return };
    check_refusals(&at, true);
}

// ext2 cannot reserve space: what was written before the refusal is put back. A few blocks are left
// for small files.
#[test]
fn a_request_refused_for_want_of_space_changes_nothing_on_ext2() {
    if !need::fuse() {
        return;
    }
    let Some(ground) = Ground::image("ext2") else { return };
    check_refusals(&Small::on(ground), false);
}

fn check_refusals(at: &Small, to_the_last_block: bool) {
    let kept = [b'k'; 3_000];
    let large = vec![b'l'; 1 << 20];
    for (name, bytes) in [("kept", &kept[..]), ("large", &large), ("other", b"other")] {
        create(&at.served, name, bytes.len()).is(201);
        write(&at.served, name, bytes).is(201);
        at.put(&format!("/{name}?comp=metadata"), &[("x-ms-meta-a", "1")], b"").is(200);
    }
    create(&at.served, "sparse", 1 << 20).is(201);
    let url = format!("http://{}/devstoreaccount1/share", at.served.addr());
    let from_large = format!("{url}/large");

    let filler = at.ground.fill();
    let names = ["kept", "large", "other", "sparse"];
    let before: Vec<_> = names.iter().map(|name| at.state(name)).collect();
    let whole = format!("bytes=0-{}", (1 << 20) - 1);
    let length = (1 << 20).to_string();
    let over = [("x-ms-type", "file"), ("x-ms-content-length", &length)];
    let body = vec![1; 1 << 20];
    let mut refused = Vec::new();
    let mut done = |what: &str, got: Got| {
        if got.status < 300 {
            refused.push(format!("{what} was not refused: {}", got.status));
        } else if got.code() != FULL {
            refused.push(format!("{what}: {} {}", got.status, got.text()));
        }
    };

    // Create File over an existing one, with bytes.
    let with_body: Vec<_> =
        over.iter().copied().chain([("x-ms-write", "update"), ("x-ms-range", &whole)]).collect();
    done("create over", at.put("/kept", &with_body, &body));
    // Put Range into a hole.
    let range = [("x-ms-write", "update"), ("x-ms-range", &whole[..])];
    done("put range", at.put("/sparse?comp=range", &range, &body));
    // Copy File onto a file, and to a new name.
    done("copy over", at.put("/other", &[("x-ms-copy-source", &from_large)], b""));
    done("copy", at.put("/new-copy", &[("x-ms-copy-source", &from_large)], b""));
    // A snapshot, leases, the share's own properties.
    done("snapshot", at.put("?restype=share&comp=snapshot", &[], b""));
    let acquire = [
        ("x-ms-lease-action", "acquire"),
        ("x-ms-lease-duration", "-1"),
        ("x-ms-proposed-lease-id", LEASE),
    ];
    if to_the_last_block {
        done("lease", at.put("/kept?comp=lease", &acquire, b""));
        let set = "?restype=share&comp=metadata";
        done("share metadata", at.put(set, &[("x-ms-meta-b", "2")], b""));
    }
    assert!(refused.is_empty(), "{refused:#?}");

    for (name, before) in names.iter().zip(&before) {
        assert_eq!(at.state(name), *before, "{name}");
    }
    rest(&at.served, "HEAD", "/new-copy", &[]).is(404);
    // What is there can be written over, and what is too much can be deleted.
    write(&at.served, "large", &large).is(201);
    rest(&at.served, "DELETE", "/large", &[]).is(202);
    fs::remove_file(filler).unwrap();
    at.put("/kept", &with_body, &body).is(201);
}

#[test]
fn a_mark_that_cannot_be_written_down_is_not_made() {
    let Some(at) = Small::start() else { return };
    create(&at.served, "kept", 0).is(201);
    let path = at.served.mount().join("kept");
    let file = File::open(&path).unwrap();
    let filler = at.ground.fill();
    assert_eq!(errno(client::set_delete(&file, true)), libc::ENOSPC);
    drop(file);
    fs::remove_file(filler).unwrap();
    wait_for("the end of the handle", || {
        let got = rest(&at.served, "GET", "/kept?comp=listhandles", &[]).is(200);
        (!got.text().contains("<HandleId>")).then_some(())
    });
    assert!(path.exists());
    rest(&at.served, "HEAD", "/kept", &[]).is(200);
}

#[test]
fn a_server_starts_on_a_full_disk_and_lets_people_delete() {
    if !need::fuse() || !need::root() {
        return;
    }
    let ground = Ground::new("tmpfs", c"size=4m");
    let data = ground.path().join("data");
    let args = ["--no-auth", "--data", data.to_str().unwrap()];
    let mut served = Served::start(&args);
    create(&served, "large", 1 << 20).is(201);
    write(&served, "large", &vec![1; 1 << 20]).is(201);
    served.crash();
    let _filler = ground.fill();
    served.restart(&args);
    rest(&served, "DELETE", "/large", &[]).is(202);
    create(&served, "new", 10).is(201);
}
