//! A file system that gives the inode number of a removed file to the next one (ext2, ext4): what
//! the server keeps of the removed file is not the new one's.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::common::ground::Ground;
use crate::common::served::Served;
use crate::ground::{create, rest, write};

/// How many files are made to get a number again.
const FILES: usize = 64;

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
