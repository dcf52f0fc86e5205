//! Serving without root: `fusermount3` mounts, the kernel passes nothing through.

use std::process::Stdio;

use rustix::process::Signal;

use super::fixture::error_text;
use crate::common::user::Place;

#[test]
fn without_root_a_mount_is_made_by_the_helper_and_goes_with_the_server_without_a_word() {
    let Some(place) = Place::new() else { return };
    let mut server = place.serve(&[]);
    assert!(place.is_mounted());
    let used = place.shell("echo hello > mnt/a && exec 3< mnt/a && rm mnt/a && cat <&3");
    assert_eq!(String::from_utf8_lossy(&used.stdout), "hello\n", "{}", error_text(&used));
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert!(ended.status.success() && !place.is_mounted());
    assert_eq!(error_text(&ended), "");
    let told = String::from_utf8(ended.stdout).unwrap();
    assert_eq!(told.matches("no kernel passthrough without root").count(), 1, "{told}");
}

#[test]
fn without_root_the_mount_of_a_killed_server_is_replaced_at_the_next_start() {
    let Some(place) = Place::new() else { return };
    let mut server = place.serve(&[]);
    assert!(place.shell("echo kept > mnt/a").status.success());
    server.signal(Signal::KILL);
    server.wait();
    assert!(place.is_mounted());
    assert!(!place.shell("cat mnt/a").status.success());
    let _server = place.serve(&[]);
    assert_eq!(place.shell("cat mnt/a").stdout, b"kept\n");
}

#[test]
fn without_root_a_mount_in_use_is_named_with_its_users_and_detached() {
    let Some(place) = Place::new() else { return };
    let mut server = place.serve(&[]);
    let script = "cd mnt && echo in && exec sleep 1000";
    let mut user = place.command("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = [0; 3];
    std::io::Read::read_exact(user.stdout.as_mut().unwrap(), &mut line).unwrap();
    server.signal(Signal::TERM);
    let ended = server.wait();
    user.kill().unwrap();
    user.wait().unwrap();
    assert!(ended.status.success() && !place.is_mounted());
    let named = format!("is in use by sleep (pid {})", user.id());
    assert!(error_text(&ended).contains(&named), "{}", error_text(&ended));
}
