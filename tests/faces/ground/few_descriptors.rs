//! A low limit of open descriptors: strangers who connect and stay idle keep nobody out.

use std::fs;
use std::net::TcpStream;

use super::{create, rest, write};
use crate::common::need;
use crate::common::served::Served;

/// Starts the server with a limit of that many descriptors, soft and hard.
fn limited(descriptors: u32, args: &[&str]) -> Served {
    let limit = format!("ulimit -n {descriptors}; exec \"$0\" \"$@\"");
    Served::start_by(&["sh", "-c", &limit], args)
}

#[test]
fn idle_strangers_do_not_use_up_the_descriptors_of_rest_mount_and_control_socket() {
    if !need::fuse() {
        return;
    }
    let served = limited(160, &["--no-auth"]);
    create(&served, "a", 5).is(201);
    // More than the limit. Those that the server ended to make room stay open on this side.
    let strangers: Vec<_> = (0..400).map(|_| TcpStream::connect(served.addr()).unwrap()).collect();
    for round in 0..20 {
        write(&served, "a", b"bytes").is(201);
        assert_eq!(rest(&served, "GET", "/a", &[]).is(200).text(), "bytes");
        let name = served.mount().join(format!("file-{round}"));
        fs::write(&name, b"mount").unwrap();
        assert_eq!(fs::read(&name).unwrap(), b"mount");
        let done = served.latchfs(&["status"]).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }
    let open = fs::read_dir(format!("/proc/{}/fd", served.pid())).unwrap().count();
    assert!(open < 160 - 160 / 8, "{open} descriptors are open");
    drop(strangers);
}
