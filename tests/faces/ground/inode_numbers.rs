//! A file system that gives the inode number of a removed file to the next one (ext2, ext4): what
//! the server keeps of the removed file is not the new one's.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::common::ground::Ground;
use crate::common::served::{Served, wait_for};
use crate::ground::{create, rest, write};

/// How many files are made to get a number again.
const FILES: usize = 64;

/// Birth times are those of the kernel's last tick, some milliseconds apart: two files of one tick
/// and one inode number cannot be told apart.
fn wait_for_a_later_birth(file: &Path, probe: &Path) {
    // Where there are no birth times there is nothing to wait for.
    let Ok(born) = fs::metadata(file).unwrap().created() else { return };
    wait_for("a later birth time", || {
        fs::write(probe, "").unwrap();
        let later = fs::metadata(probe).unwrap().created().unwrap() > born;
        fs::remove_file(probe).unwrap();
        later.then_some(())
    });
}

#[test]
fn a_new_file_has_no_lease_of_a_file_that_was_removed_by_hand() {
    for kind in ["ext2", "ext4"] {
        let Some(ground) = Ground::image(kind) else { return };
        let data = ground.path().join("data");
        let served = Served::start(&["--no-auth", "--no-mount", "--data", data.to_str().unwrap()]);
        let share = data.join("devstoreaccount1/files/share");
        create(&served, "leased", 1).is(201);
        let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
        rest(&served, "PUT", "/leased?comp=lease", &acquire).is(201);
        write(&served, "leased", b"x").refused(412, "LeaseIdMissing");
        wait_for_a_later_birth(&share.join("leased"), &ground.path().join("probe"));
        let number = fs::metadata(share.join("leased")).unwrap().ino();
        fs::remove_file(share.join("leased")).unwrap();
        for file in 0..FILES {
            let name = format!("new-{file}");
            fs::write(share.join(&name), "1").unwrap();
            let again = fs::metadata(share.join(&name)).unwrap().ino() == number;
            write(&served, &name, b"x").is(201);
            if again {
                break;
            }
        }
    }
}
