//! Limits of the process: few descriptors, short files.

use std::fs;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::common::http::ask;
use crate::common::need;
use crate::common::served::Served;
use crate::ground::{create, rest, write};

/// Sets a limit of the server, which may be raised again later.
pub fn limit(served: &Served, resource: Resource, most: u64) {
    let pid = Pid::from_raw(i32::try_from(served.pid()).unwrap());
    let limit = Rlimit { current: Some(most), maximum: getrlimit(resource).maximum };
    prlimit(pid, resource, limit).unwrap();
}

/// Descriptors that the server has open.
fn descriptors(served: &Served) -> usize {
    fs::read_dir(format!("/proc/{}/fd", served.pid())).unwrap().count()
}

#[test]
fn many_shares_need_few_descriptors() {
    const SHARES: usize = 300;
    let served = Served::start(&["--no-auth", "--no-mount"]);
    limit(&served, Resource::Nofile, 256);
    let ask = |method: &str, target: String, headers: &[(&str, &str)]| {
        ask(served.addr(), method, &target, headers, b"")
    };
    for share in 0..SHARES {
        ask("PUT", format!("/share-{share}?restype=share"), &[]).is(201);
    }
    assert!(descriptors(&served) < 200, "{}", descriptors(&served));
    let file = [("x-ms-type", "file"), ("x-ms-content-length", "0")];
    for share in 0..SHARES {
        ask("PUT", format!("/share-{share}/f"), &file).is(201);
    }
    for share in (0..SHARES).rev() {
        ask("HEAD", format!("/share-{share}/f"), &[]).is(200);
    }
    ask("DELETE", "/share-7?restype=share".into(), &[]).is(202);
    ask("HEAD", "/share-7/f".into(), &[]).is(404);
}

#[test]
fn a_limit_on_the_size_of_files_refuses_a_write_and_does_not_end_the_server() {
    if !need::root() {
        return;
    }
    let served = Served::start(&["--no-auth", "--no-mount"]);
    create(&served, "short", 1 << 20).is(201);
    create(&served, "long", 4 << 20).is(201);
    limit(&served, Resource::Fsize, 2 << 20);
    write(&served, "short", &[1; 1_000]).is(201);
    let range = [("x-ms-write", "update"), ("x-ms-range", "bytes=3145728-3145729")];
    ask(served.addr(), "PUT", "/share/long?comp=range", &range, b"xy")
        .refused(413, "ShareSizeLimitReached");
    create(&served, "longer", 8 << 20).refused(413, "ShareSizeLimitReached");
    rest(&served, "HEAD", "/longer", &[]).is(404);
    rest(&served, "HEAD", "/short", &[]).is(200);
}
