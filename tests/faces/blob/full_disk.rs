//! A disk without room: each request that needs some is refused as 507 and changes nothing, and the
//! server serves on.

use std::fs;
use std::net::SocketAddr;

use crate::common::ground::Ground;
use crate::common::http::{self, Got};
use crate::common::need;
use crate::common::served::{Served, wait_for};

const FULL: &str = "InsufficientStorage";
const LARGE: usize = 3 << 20;

fn addr(served: &Served) -> SocketAddr {
    let text = fs::read_to_string(served.ready_file()).unwrap();
    let ready: serde_json::Value = serde_json::from_str(&text).unwrap();
    let url = ready["endpoints"]["blob"].as_str().unwrap();
    url.split('/').nth(2).unwrap().parse().unwrap()
}

struct Disk<'a>(&'a Served);

impl Disk<'_> {
    fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Got {
        http::ask(addr(self.0), method, target, headers, body)
    }

    fn put(&self, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Got {
        self.ask("PUT", target, headers, body)
    }

    /// All that can be read.
    fn state(&self) -> Vec<String> {
        let list = "/con?restype=container&comp=list&include=metadata,snapshots,uncommittedblobs";
        let mut state = vec![self.ask("GET", list, &[], b"").is(200).text()];
        for name in ["small", "large", "log", "page"] {
            let got = self.ask("GET", &format!("/con/{name}"), &[], b"").is(200);
            let sum: u64 = got.body.iter().map(|byte| u64::from(*byte)).sum();
            state.push(format!("{name} {} {} {sum}", got.header("etag"), got.body.len()));
        }
        let blocks = "/con/small?comp=blocklist&blocklisttype=all";
        state.push(self.ask("GET", blocks, &[], b"").is(200).text());
        state
    }
}

type Write<'a> = (&'static str, Vec<(&'static str, &'a str)>, Vec<u8>);

/// Every request that writes.
fn writes(url: &str) -> Vec<Write<'_>> {
    let block = ("x-ms-blob-type", "BlockBlob");
    let page = vec![("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-4194303")];
    let acquire = vec![("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
    let list = b"<BlockList><Latest>AAAA</Latest></BlockList>";
    vec![
        ("/con/small", vec![block], vec![1; LARGE]),
        ("/con/large", vec![block], vec![1; LARGE]),
        ("/con/new", vec![block], vec![1; 500_000]),
        ("/con/small?comp=block&blockid=BBBB", vec![], vec![1; LARGE]),
        ("/con/log?comp=appendblock", vec![], vec![1; LARGE]),
        ("/con/page?comp=page", page, vec![1; 4 << 20]),
        ("/con/small", vec![block], b"in the row".to_vec()),
        ("/con/small?comp=blocklist", vec![], list.to_vec()),
        ("/con/small?comp=metadata", vec![("x-ms-meta-k", "v")], vec![]),
        ("/con/small?comp=snapshot", vec![], vec![]),
        ("/con/small?comp=lease", acquire, vec![]),
        ("/con/copy", vec![("x-ms-copy-source", url)], vec![]),
        ("/other?restype=container", vec![], vec![]),
    ]
}

#[test]
fn a_full_disk_refuses_what_needs_room_and_loses_nothing() {
    if !need::root() {
        return;
    }
    let ground = Ground::new("tmpfs", c"size=32m");
    let data = ground.path().join("data");
    let args = ["--no-auth", "--no-mount", "--blob", "127.0.0.1:0", "--queue", "off", "--table"];
    let args = [&args[..], &["off", "--data", data.to_str().unwrap()]].concat();
    let mut served = Served::start(&args);
    {
        let disk = Disk(&served);
        let block = [("x-ms-blob-type", "BlockBlob")];
        disk.put("/con?restype=container", &[], b"").is(201);
        disk.put("/con/small", &block, b"small").is(201);
        disk.put("/con/large", &block, &vec![3; 2 << 20]).is(201);
        disk.put("/con/small?comp=block&blockid=AAAA", &[], b"block").is(201);
        disk.put("/con/log", &[("x-ms-blob-type", "AppendBlob")], b"").is(201);
        disk.put("/con/log?comp=appendblock", &[], b"line").is(201);
        let page = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "4194304")];
        disk.put("/con/page", &page, b"").is(201);
        let mut small = 10;
        for n in 0..small {
            disk.put(&format!("/con/small-{n}"), &block, &[1; 8_000]).is(201);
        }
        let before = disk.state();
        let url = format!("http://{}/{}/con/large", addr(&served), http::ACCOUNT);
        let filler = ground.fill();
        // What is shorter may fit into space that the server has already.
        let large = |(_, _, body): &Write<'_>| body.len() > 1_000_000;
        for (target, headers, body) in writes(&url).into_iter().filter(large) {
            disk.put(target, &headers, &body).refused(507, FULL);
            assert_eq!(disk.state(), before, "{target}");
        }
        // Small writes use up what room the log has; then they are refused too.
        let last = loop {
            let name = format!("/con/small-{small}");
            let got = disk.put(&name, &block, &[1; 8_000]);
            if got.status != 201 {
                break got;
            }
            small += 1;
            assert!(small < 10_000, "the disk never gets full");
        };
        last.refused(507, FULL);
        for (target, headers, body) in writes(&url) {
            let before = disk.state();
            let got = disk.put(target, &headers, &body);
            // What is not large may fit where the log begins again after a checkpoint, and what
            // follows it is then decided by what it changed.
            if got.status < 500 && body.len() <= 1_000_000 {
                continue;
            }
            got.refused(507, FULL);
            assert_eq!(disk.state(), before, "{target}");
        }
        // What is there can be deleted.
        for n in 0..10 {
            disk.ask("DELETE", &format!("/con/small-{n}"), &[], b"").is(202);
        }
        fs::remove_file(filler).unwrap();
        for (target, headers, body) in writes(&url) {
            // What was overwritten takes room until it is reclaimed in the background.
            let got = wait_for("room", || {
                let got = disk.put(target, &headers, &body);
                (got.status != 507).then_some(got)
            });
            assert!(got.status < 500, "{target}: {}", got.text());
        }
        for n in 10..small {
            let got = disk.ask("GET", &format!("/con/small-{n}"), &[], b"").is(200);
            assert_eq!(got.body, [1; 8_000], "an acknowledged blob");
        }
    }
    served.crash_and_restart(&args);
    let disk = Disk(&served);
    assert_eq!(disk.ask("GET", "/con/new", &[], b"").is(200).body.len(), 500_000);
}
