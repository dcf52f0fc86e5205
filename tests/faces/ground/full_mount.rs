//! Each call on the mount that changes something, on a full disk: it is done, or it says ENOSPC and
//! has changed nothing.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::{FallocateFlags, XattrFlags};

use super::{create, errno, write};
use crate::common::ground::Ground;
use crate::common::need;
use crate::common::served::Served;

/// Names below a directory, with mode, links, extended attribute and bytes.
fn tree(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(root).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let seen = fs::symlink_metadata(&path).unwrap();
        let bytes = if seen.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        let mut value = [0; 64];
        let attribute = rustix::fs::lgetxattr(&path, "user.a", &mut value[..]).unwrap_or(0);
        let what = format!(
            "{:o} {} links, {attribute} bytes of user.a, {} bytes: {:?}",
            seen.mode(),
            seen.nlink(),
            bytes.len(),
            bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>(),
        );
        found.insert(entry.file_name().into_string().unwrap(), what);
    }
    found
}

type Call = (&'static str, fn(&Path) -> io::Result<()>);

const CALLS: &[Call] = &[
    ("create", |at| fs::File::create_new(at.join("new")).map(drop)),
    ("create with bytes", |at| fs::write(at.join("bytes"), vec![1; 100_000])),
    ("mkdir", |at| fs::create_dir(at.join("dir"))),
    ("symlink", |at| std::os::unix::fs::symlink("x".repeat(3_000), at.join("symlink"))),
    ("link", |at| fs::hard_link(at.join("kept"), at.join("link"))),
    ("append", |at| {
        OpenOptions::new().append(true).open(at.join("kept"))?.write_all(&[1; 100_000])
    }),
    ("write into a hole", |at| {
        let file = OpenOptions::new().write(true).open(at.join("sparse"))?;
        file.write_all_at(&[1; 4_096], 500_000)
    }),
    ("write over", |at| {
        OpenOptions::new().write(true).open(at.join("kept"))?.write_all_at(b"over", 0)
    }),
    ("reserve", |at| {
        let file = OpenOptions::new().write(true).open(at.join("kept"))?;
        Ok(rustix::fs::fallocate(file, FallocateFlags::empty(), 0, 1 << 20)?)
    }),
    ("grow", |at| OpenOptions::new().write(true).open(at.join("kept"))?.set_len(1 << 20)),
    ("cut", |at| OpenOptions::new().write(true).open(at.join("kept"))?.set_len(10)),
    ("copy", |at| fs::copy(at.join("large"), at.join("copy")).map(drop)),
    ("set an attribute", |at| {
        let (path, value) = (at.join("kept"), [1; 60]);
        Ok(rustix::fs::setxattr(path, "user.a", &value, XattrFlags::empty())?)
    }),
    ("chmod", |at| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(at.join("kept"), mode)
    }),
    ("rename", |at| fs::rename(at.join("kept"), at.join("moved"))),
    ("rename over", |at| fs::rename(at.join("moved"), at.join("sparse"))),
    ("unlink", |at| fs::remove_file(at.join("sparse"))),
    ("unlink what is open", |at| {
        let held = fs::File::open(at.join("other"))?;
        let removed = fs::remove_file(at.join("other"));
        drop(held);
        removed
    }),
];

#[test]
fn a_call_on_the_mount_of_a_full_disk_is_done_or_changes_nothing() {
    if !need::fuse() || !need::root() {
        return;
    }
    let ground = Ground::new("tmpfs", c"size=4m");
    let data = ground.path().join("data");
    let served = Served::start(&["--no-auth", "--data", data.to_str().unwrap()]);
    for (name, bytes) in [("kept", 3_000), ("large", 1 << 20), ("other", 5)] {
        create(&served, name, bytes).is(201);
        write(&served, name, &vec![b'k'; bytes]).is(201);
    }
    create(&served, "sparse", 1 << 20).is(201);
    let share = data.join("devstoreaccount1/files/share");
    let _filler = ground.fill();
    let mut refused = 0;
    for (what, call) in CALLS {
        let before = tree(&share);
        let told = errno(call(&served.mount()));
        assert!([0, libc::ENOSPC].contains(&told), "{what}: {told}");
        let mut after = tree(&share);
        if told == libc::ENOSPC {
            refused += 1;
            // Programs write in several calls: the file that they made is there, and empty.
            for name in ["bytes", "copy"] {
                let empty = |text: &String| text.ends_with(" 0 bytes: 0");
                if !before.contains_key(name) && after.get(name).is_some_and(empty) {
                    after.remove(name);
                }
            }
            let grown = *what == "append" && after["kept"] != before["kept"];
            // What fitted into the last block was written, as `write(2)` may.
            assert!(after == before || grown, "{what}:\n{before:#?}\n{after:#?}");
        } else {
            assert_ne!(after, before, "{what} was done, and nothing differs");
        }
        assert_eq!(tree(&served.mount()), tree(&share), "after {what}");
    }
    assert!(refused >= 5, "only {refused} calls were refused: is the disk full?");
}
