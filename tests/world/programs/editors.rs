//! Programs that save by renaming over or by moving the old file away.

use std::fs;

use crate::programs::desk::{Desk, ready};

#[test]
fn vim_edits_and_saves_a_file() {
    if !ready(&["vim"]) {
        return;
    }
    let desk = Desk::new();
    fs::write(desk.on("notes.txt"), "one\ntwo\nthree\n").unwrap();
    let edit = |first: &str, second: &str| {
        desk.run("vim", &["-es", "-u", "NONE", "-c", first, "-c", second, "-c", "wq", "notes.txt"]);
    };
    // By default vim spares files below /tmp its backups.
    edit("set nocompatible backupskip=", "%s/two/TWO/");
    assert_eq!(fs::read_to_string(desk.behind("notes.txt")).unwrap(), "one\nTWO\nthree\n");
    // Its backup and swap files are gone again.
    assert_eq!(desk.sh("ls -A"), "notes.txt\n");

    // Moves the old file away and writes a new one, as it does by itself for most files.
    edit("set nocompatible backup backupcopy=no backupskip=", "normal Gofour");
    assert_eq!(fs::read_to_string(desk.behind("notes.txt")).unwrap(), "one\nTWO\nthree\nfour\n");
    assert_eq!(fs::read_to_string(desk.on("notes.txt~")).unwrap(), "one\nTWO\nthree\n");
    desk.finish();
}

#[test]
fn vim_with_a_swap_file_writes_many_times() {
    if !ready(&["vim"]) {
        return;
    }
    let desk = Desk::new();
    fs::write(desk.on("log.txt"), "").unwrap();
    let write = "for n in range(8) | execute 'normal Goline' | write | endfor";
    let start = ["-es", "-u", "NONE", "-c", "set nocompatible swapfile backupskip="];
    desk.run("vim", &[&start[..], &["-c", write, "-c", "q", "log.txt"]].concat());
    assert_eq!(
        fs::read_to_string(desk.on("log.txt")).unwrap(),
        format!("\n{}", "line\n".repeat(8))
    );
    assert_eq!(desk.sh("ls -A"), "log.txt\n");
    desk.finish();
}

#[test]
fn sed_edits_in_place_with_and_without_a_backup() {
    if !ready(&["sed"]) {
        return;
    }
    let desk = Desk::new();
    desk.sh("seq 1000 > numbers && sed -i 's/^5$/five/' numbers && sed -i.old '1d' numbers");
    let now = fs::read_to_string(desk.behind("numbers")).unwrap();
    assert_eq!(now.lines().count(), 999);
    assert_eq!(now.lines().nth(3), Some("five"));
    assert!(fs::read_to_string(desk.on("numbers.old")).unwrap().starts_with("1\n2\n"));
    assert_eq!(desk.sh("ls -A"), "numbers\nnumbers.old\n");
    desk.finish();
}
