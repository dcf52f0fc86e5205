//! What happens beside the mount: forced closes, and changes made through the engine.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use latchfs::client;
use latchfs::file::service::{
    Asking, ForceClosed, NewProperties, RestRename, TimeChange, WhichHandles,
};

use crate::mount::fixture::{Fixture, errno, rounds, share_path as path, somebody, soon};

fn force_close(at: &Fixture, name: &str) -> ForceClosed {
    at.share.force_close_handles(&somebody(), &path(name), WhichHandles::All, false).unwrap()
}

#[test]
fn a_force_closed_writer_cannot_change_the_file_any_more() {
    let Some(at) = Fixture::start() else { return };
    let name = at.make("f", "before");
    let mut writer = OpenOptions::new().read(true).write(true).open(&name).unwrap();
    writer.write_all(b"BE").unwrap();
    assert_eq!(force_close(&at, "f").closed, 1);
    assert_eq!(errno(writer.write_all(b"x")), libc::EIO);
    assert_eq!(errno(writer.set_len(0)), libc::EIO);
    assert_eq!(fs::read(at.root.join("f")).unwrap(), b"BEfore");
    // The file itself is as good as ever.
    fs::write(&name, "after").unwrap();
    assert_eq!(fs::read(&name).unwrap(), b"after");
    drop(writer);
    at.idle();
}

#[test]
fn all_writers_of_a_file_end_together_and_are_counted() {
    let Some(at) = Fixture::start() else { return };
    let name = at.make("f", "");
    let mut writers: Vec<File> =
        (0..3).map(|_| OpenOptions::new().write(true).open(&name).unwrap()).collect();
    let first = client::handle(&writers[0]).unwrap().handle;
    let which = WhichHandles::One(latchfs::rules::HandleId(first));
    let closed = at.share.force_close_handles(&somebody(), &path("f"), which, false).unwrap();
    assert_eq!(closed, ForceClosed { closed: 3, failed: 0 });
    for writer in &mut writers {
        assert_eq!(errno(writer.write_all(b"x")), libc::EIO);
    }
    assert_eq!(at.share.files_in_use(), 0);
}

#[test]
fn a_writer_that_never_stops_is_cut_off() {
    let Some(at) = Fixture::start() else { return };
    let name = at.make("f", "");
    let mut writer = OpenOptions::new().append(true).open(&name).unwrap();
    let stopped = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stopped);
    let thread = thread::spawn(move || {
        let error = loop {
            if let Err(error) = writer.write_all(b"0123456789") {
                break error;
            }
        };
        seen.store(true, Ordering::SeqCst);
        error.raw_os_error()
    });
    soon("the writer to get going", || {
        fs::metadata(at.root.join("f")).is_ok_and(|found| found.len() > 1000)
    });
    assert_eq!(force_close(&at, "f").closed, 1);
    let size = fs::metadata(at.root.join("f")).unwrap().len();
    assert_eq!(thread.join().unwrap(), Some(libc::EIO));
    assert!(stopped.load(Ordering::SeqCst));
    assert_eq!(fs::metadata(at.root.join("f")).unwrap().len(), size);
    assert_eq!(size % 10, 0, "no write was torn");
}

#[test]
fn an_open_that_is_closed_by_force_on_its_way_to_its_program_gives_it_no_way_to_write() {
    let Some(at) = Fixture::start() else { return };
    let opened = AtomicBool::new(false);
    let (who, root) = (somebody(), path(""));
    for round in 0..rounds(300) {
        opened.store(false, Ordering::SeqCst);
        let start = Barrier::new(2);
        let name = at.path(&round.to_string());
        let writer = thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                while !opened.load(Ordering::SeqCst) {
                    at.share.force_close_handles(&who, &root, WhichHandles::All, true).unwrap();
                }
            });
            start.wait();
            // A new file: the kernel is told of it after its open is in the table.
            let writer = OpenOptions::new().write(true).create_new(true).open(&name);
            opened.store(true, Ordering::SeqCst);
            writer
        });
        let Ok(mut writer) = writer else { continue };
        if at.share.files_in_use() == 0 {
            assert_eq!(errno(writer.write_all(b"x")), libc::EIO, "round {round}");
        }
    }
}

#[test]
fn a_force_closed_reader_no_longer_excludes_anybody() {
    let Some(at) = Fixture::start() else { return };
    let name = at.make("f", "x");
    let reader = File::open(&name).unwrap();
    client::set_share(&reader, latchfs::file::rules::ShareMode::NONE).unwrap();
    assert_eq!(errno(File::open(&name)), libc::EBUSY);
    assert_eq!(force_close(&at, "f").closed, 1);
    File::open(&name).unwrap();
    assert_eq!(client::handle(&reader).unwrap_err().raw_os_error(), Some(libc::EIO));
}

#[test]
fn changes_by_rest_show_on_the_mount_at_once() {
    let Some(at) = Fixture::start() else { return };
    let name = at.make("f", "12345");
    assert_eq!(fs::metadata(&name).unwrap().len(), 5);
    let who = somebody();
    let asking = Asking { cx: &who, lease_id: None };
    at.share.create_file(asking, &path("f"), 9, &NewProperties::default(), None).unwrap();
    assert_eq!(fs::metadata(&name).unwrap().len(), 9);
    let mut held = File::open(&name).unwrap();
    at.share.put_range(asking, &path("f"), 0, b"REST", TimeChange::Now).unwrap();
    let mut bytes = [0; 4];
    held.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"REST");
    drop(held);
    at.idle();
    at.share.rest_rename(&who, &path("f"), &path("g"), &RestRename::default()).unwrap();
    assert_eq!(errno(fs::metadata(&name)), libc::ENOENT);
    assert_eq!(fs::metadata(at.path("g")).unwrap().len(), 9);
    at.share.delete_file(asking, &path("g")).unwrap();
    assert_eq!(errno(fs::metadata(at.path("g"))), libc::ENOENT);
}
