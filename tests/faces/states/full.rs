//! A disk that is too small: a save or a restore is refused, and nothing is changed or left.

use std::ffi::CStr;
use std::fs;

use super::fixture::{builder, clients, listed};
use crate::common::ground::Ground;
use crate::common::need;

/// The disk, smaller than twice the file that fills most of it.
const SIZE: &CStr = c"size=48m";

#[test]
fn a_save_and_a_restore_that_do_not_fit_are_refused_and_leave_nothing() {
    if !need::root() {
        return;
    }
    let ground = Ground::new("tmpfs", SIZE);
    let data = ground.path().join("data");
    let server = builder().data(&data).start().unwrap();
    let [client, _] = clients(&server);
    client.furnish();
    let share = data.join("first/files/docs");
    server.save_state("small").unwrap();
    fs::write(share.join("filler"), vec![1; 24 << 20]).unwrap();
    let refused = server.save_state("large").unwrap_err().to_string();
    assert!(refused.contains("space"), "{refused}");
    assert_eq!(listed(&data.join(".latchfs/states")), ["small"]);
    assert_eq!(client.names()["containers"], ["box"]);
    // All that is left of the disk.
    let filler = ground.path().join("rest");
    let mut rest = fs::File::create(&filler).unwrap();
    while std::io::Write::write_all(&mut rest, &[0; 8_192]).is_ok() {}
    let refused = server.restore_state("small").unwrap_err().to_string();
    assert!(refused.contains("space") || refused.contains("free"), "{refused}");
    assert_eq!(client.files("docs"), ["dir", "filler"], "a refusal changes nothing");
    drop(rest);
    fs::remove_file(filler).unwrap();
    server.restore_state("small").unwrap();
    assert_eq!(client.files("docs"), ["dir"]);
    server.save_state("large").unwrap();
}
