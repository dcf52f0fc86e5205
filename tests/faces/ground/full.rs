//! A disk without room.

use std::fs::{self, File, OpenOptions};
use std::io::Write;

use crate::common::ground::Ground;
use crate::common::need;
use crate::common::served::Served;
use crate::ground::{create, errno, rest, start_fails, write};

#[test]
fn a_full_disk_is_said_on_both_faces_and_costs_nothing_that_was_there() {
    if !need::fuse() || !need::root() {
        return;
    }
    let ground = Ground::new("tmpfs", c"size=2m");
    let data = ground.path().join("data");
    let args = ["--no-auth", "--data", data.to_str().unwrap()];
    let mut served = Served::start(&args);
    create(&served, "kept", 10).is(201);
    write(&served, "kept", b"0123456789").is(201);
    let short = [("x-ms-meta-a", "1")];
    rest(&served, "PUT", "/kept?comp=metadata", &short).is(200);
    create(&served, "wide", 1 << 20).is(201);

    let filler = ground.fill();
    // The mount: bytes, and a file whose bytes have no room.
    let mut file = OpenOptions::new().append(true).open(served.mount().join("kept")).unwrap();
    assert_eq!(errno(file.write_all(&[1; 8_192])), libc::ENOSPC);
    drop(file);
    // What had room in the last block came before the refusal, as on any disk.
    let length = fs::metadata(served.mount().join("kept")).unwrap().len();
    OpenOptions::new().write(true).open(served.mount().join("kept")).unwrap().set_len(10).unwrap();
    assert!(length < 10 + 8_192);
    // REST: bytes, a share's metadata, a lease, a snapshot.
    write(&served, "wide", &vec![1; 1 << 19]).refused(413, "ShareSizeLimitReached");
    let set = "?restype=share&comp=metadata";
    rest(&served, "PUT", set, &short).refused(413, "ShareSizeLimitReached");
    let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
    rest(&served, "PUT", "/kept?comp=lease", &acquire).refused(413, "ShareSizeLimitReached");
    rest(&served, "PUT", "?restype=share&comp=snapshot", &[]).refused(413, "ShareSizeLimitReached");
    // A deletion that waits cannot be written down: it is not promised.
    let open = File::open(served.mount().join("kept")).unwrap();
    assert_eq!(errno(fs::remove_file(served.mount().join("kept"))), libc::ENOSPC);
    drop(open);
    let told = start_fails(&ground.path().join("other"));
    assert!(told.contains("space"), "{told}");

    let kept = |served: &Served| {
        let got = rest(served, "GET", "/kept", &[]).is(200);
        assert_eq!((got.text().as_str(), got.header("x-ms-meta-a")), ("0123456789", "1"));
        assert_eq!(got.header("x-ms-lease-state"), "available");
    };
    kept(&served);
    fs::remove_file(filler).unwrap();
    kept(&served);
    write(&served, "wide", &vec![1; 1 << 19]).is(201);
    fs::write(served.mount().join("new"), "new").unwrap();
    rest(&served, "PUT", "/kept?comp=lease", &acquire).is(201);
    served.crash_and_restart(&args);
    assert_eq!(fs::read(served.mount().join("kept")).unwrap(), b"0123456789");
    assert_eq!(fs::read(served.mount().join("new")).unwrap(), b"new");
}
