//! What is held when the server dies: opens and locks, which go with it; a deletion that waits,
//! which is carried out; a lease, which stays.

use std::fs::{self, File};

use latchfs::client;
use latchfs::file::rules::ShareMode;
use rustix::fs::FlockOperation;

use crate::common::http::ask;
use crate::common::served::Served;

/// Held since before the crash. The descriptors are of the mount that died.
pub struct Holders {
    round: usize,
    lease: String,
    _locked: File,
    _pending: File,
}

impl Holders {
    pub fn new(served: &Served, round: usize) -> Self {
        let at = |what: &str| served.mount().join(format!("{what}-{round}"));
        fs::write(at("locked"), "0123456789").unwrap();
        let locked = File::options().read(true).write(true).open(at("locked")).unwrap();
        client::set_share(&locked, ShareMode::NONE).unwrap();
        rustix::fs::fcntl_lock(&locked, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert!(File::open(at("locked")).is_err());

        let pending = File::create(at("pending")).unwrap();
        fs::remove_file(at("pending")).unwrap();
        assert!(at("pending").exists(), "it is open, and only marked");

        let target = format!("/share/leased-{round}");
        let headers = [("x-ms-type", "file"), ("x-ms-content-length", "10")];
        ask(served.addr(), "PUT", &target, &headers, b"").is(201);
        let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
        let got = ask(served.addr(), "PUT", &format!("{target}?comp=lease"), &acquire, b"");
        let lease = got.is(201).header("x-ms-lease-id").to_owned();
        Self { round, lease, _locked: locked, _pending: pending }
    }

    /// After a crash and a start.
    pub fn check(self, served: &Served) {
        let round = self.round;
        let write = |name: &str, more: &[(&str, &str)]| {
            let mut headers = vec![("x-ms-write", "update"), ("x-ms-range", "bytes=0-1")];
            headers.extend(more);
            let target = format!("/share/{name}-{round}?comp=range");
            ask(served.addr(), "PUT", &target, &headers, b"ab")
        };
        write("locked", &[]).is(201);
        let bytes = fs::read(served.mount().join(format!("locked-{round}"))).unwrap();
        assert_eq!(bytes, b"ab23456789");

        let pending = format!("pending-{round}");
        assert!(!served.mount().join(&pending).exists(), "its deletion was acknowledged");
        assert!(!served.data().join(&pending).exists(), "its deletion was acknowledged");
        ask(served.addr(), "HEAD", &format!("/share/{pending}"), &[], b"").is(404);

        write("leased", &[]).refused(412, "LeaseIdMissing");
        let busy = File::options().write(true).open(served.mount().join(format!("leased-{round}")));
        assert_eq!(busy.unwrap_err().raw_os_error(), Some(libc::EBUSY));
        write("leased", &[("x-ms-lease-id", self.lease.as_str())]).is(201);

        let recursive = [("x-ms-recursive", "true")];
        let handles = ask(served.addr(), "GET", "/share?comp=listhandles", &recursive, b"").is(200);
        assert!(!handles.text().contains("<Handle>"), "{}", handles.text());
    }
}
