//! A mount without root: no privilege covers up where a name is used instead of a descriptor.
//!
//! The server may then do to a file what its user may, by permission bits that change; an open
//! descriptor must keep working all the same, as on any file system.

use serde_json::json;

use crate::common::program::Program;
use crate::common::user::{Place, Server};
use crate::mount::fixture::soon;

struct Mounted {
    program: Program,
    // In this order: the program leaves the mount, then its server ends, then the namespace.
    _server: Server,
    _place: Place,
}

#[track_caller]
fn mounted(arguments: &[&str]) -> Option<Mounted> {
    let place = Place::new()?;
    let server = place.serve(arguments);
    let program = place.program("mnt")?;
    Some(Mounted { program, _server: server, _place: place })
}

#[test]
fn a_file_made_read_only_is_written_through_the_descriptor_that_made_it() {
    let Some(mut at) = mounted(&[]) else { return };
    let program = &mut at.program;
    for mode in ["0o444", "0o000", "0o200"] {
        program.ok(&format!("fd = os.open('f', os.O_RDWR | os.O_CREAT | os.O_EXCL, {mode})"));
        program.ok("os.write(fd, b'object')");
        assert_eq!(program.ok("os.pread(fd, 10, 0)"), json!("object"), "{mode}");
        program.ok("os.ftruncate(fd, 3); os.fsync(fd); os.posix_fallocate(fd, 0, 6)");
        assert_eq!(program.ok("os.fstat(fd).st_size"), json!(6), "{mode}");
        program.ok("os.close(fd)");
        let read_again = program.run("os.close(os.open('f', os.O_RDONLY))");
        assert_eq!(read_again.is_ok(), mode == "0o444", "{mode}: {read_again:?}");
        assert_eq!(program.fails("os.open('f', os.O_RDWR)"), libc::EACCES, "{mode}");
        program.ok("os.unlink('f')");
    }
}

#[test]
fn a_file_that_may_only_be_written_is_opened_for_writing_and_cut() {
    let Some(mut at) = mounted(&[]) else { return };
    let program = &mut at.program;
    program.ok("os.close(os.open('f', os.O_CREAT | os.O_WRONLY, 0o200))");
    program.ok("fd = os.open('f', os.O_WRONLY)");
    assert_eq!(program.ok("os.write(fd, b'words')"), json!(5));
    program.ok("os.close(fd); os.close(os.open('f', os.O_WRONLY | os.O_TRUNC))");
    assert_eq!(program.ok("os.stat('f').st_size"), json!(0));
    program.ok("os.truncate('f', 9)");
    assert_eq!(program.ok("os.stat('f').st_size"), json!(9));
    assert_eq!(program.fails("os.open('f', os.O_RDONLY)"), libc::EACCES);
}

#[test]
fn an_open_descriptor_keeps_working_when_its_file_loses_all_permissions() {
    let Some(mut at) = mounted(&[]) else { return };
    let program = &mut at.program;
    program.ok("fd = os.open('f', os.O_RDWR | os.O_CREAT, 0o644)");
    program.ok("os.chmod('f', 0o444); os.ftruncate(fd, 10)");
    program.ok("os.chmod('f', 0); os.ftruncate(fd, 20)");
    assert_eq!(program.ok("os.pwrite(fd, b'text', 0)"), json!(4));
    assert_eq!(program.ok("os.pread(fd, 4, 0)"), json!("text"));
    assert_eq!(program.ok("os.fstat(fd).st_size"), json!(20));
    program.ok("os.fsync(fd); os.utime(fd, (1, 2)); os.fchmod(fd, 0o600)");
    assert_eq!(program.ok("os.stat('f').st_mtime"), json!(2.0));
}

#[test]
fn an_open_descriptor_keeps_working_below_a_directory_without_permissions() {
    let Some(mut at) = mounted(&[]) else { return };
    let program = &mut at.program;
    program.ok("os.mkdir('d'); fd = os.open('d/f', os.O_RDWR | os.O_CREAT, 0o644)");
    program.ok("os.chmod('d', 0)");
    // The kernel has forgotten what it knew of both.
    soon("the directory is closed", || program.run("os.stat('d/f')") == Err(libc::EACCES));
    assert_eq!(program.ok("os.fstat(fd).st_size"), json!(0));
    assert_eq!(program.ok("os.write(fd, b'text')"), json!(4));
    program.ok("os.ftruncate(fd, 20); os.fsync(fd); os.posix_fallocate(fd, 0, 30)");
    assert_eq!(program.ok("os.fstat(fd).st_size"), json!(30));
    assert_eq!(program.ok("os.lseek(fd, 0, os.SEEK_END)"), json!(30));
    program.ok("os.fchmod(fd, 0o600); os.utime(fd, (1, 2))");
    program.ok("os.setxattr(fd, 'user.a', b'1')");
    assert_eq!(program.ok("os.getxattr(fd, 'user.a')"), json!("1"));
    assert_eq!(program.ok("os.listxattr(fd)"), json!(["user.a"]));
    assert_eq!(program.fails("os.stat('d/f')"), libc::EACCES);
    program.ok("os.close(fd); os.chmod('d', 0o700)");
}

#[test]
fn an_open_directory_is_listed_and_flushed_after_it_lost_all_permissions() {
    let Some(mut at) = mounted(&[]) else { return };
    let program = &mut at.program;
    program.ok("os.mkdir('d'); os.close(os.open('d/f', os.O_CREAT))");
    program.ok("fd = os.open('d', os.O_RDONLY | os.O_DIRECTORY); os.chmod('d', 0o300)");
    assert_eq!(program.ok("os.listdir(fd)"), json!(["f"]));
    program.ok("os.fsync(fd)");
    assert_eq!(program.fails("os.listdir('d')"), libc::EACCES);
    program.ok("os.chmod('d', 0)");
    soon("the directory is closed", || program.run("os.stat('d/f')") == Err(libc::EACCES));
    assert_eq!(program.ok("stat.S_IMODE(os.fstat(fd).st_mode)"), json!(0));
    program.ok("os.close(fd); os.chmod('d', 0o700)");
}

#[test]
fn an_unlinked_file_without_permissions_is_used_through_its_descriptor() {
    let Some(mut at) = mounted(&["--unlink", "posix"]) else { return };
    let program = &mut at.program;
    program.ok("fd = os.open('f', os.O_RDWR | os.O_CREAT, 0o644); os.chmod('f', 0)");
    program.ok("os.unlink('f')");
    assert_eq!(program.ok("os.fstat(fd).st_nlink"), json!(0));
    assert_eq!(program.ok("os.write(fd, b'text')"), json!(4));
    program.ok("os.ftruncate(fd, 20); os.fchmod(fd, 0o600); os.fsync(fd)");
    assert_eq!(program.ok("os.fstat(fd).st_size"), json!(20));
    assert_eq!(program.ok("stat.S_IMODE(os.fstat(fd).st_mode)"), json!(0o600));
    assert_eq!(program.ok("os.listdir('.')"), json!([]));
}

#[test]
fn a_file_in_a_directory_that_was_closed_is_unlinked_and_used_through_its_descriptor() {
    let Some(mut at) = mounted(&["--unlink", "posix"]) else { return };
    let program = &mut at.program;
    program.ok("os.mkdir('d'); fd = os.open('d/f', os.O_RDWR | os.O_CREAT, 0o400)");
    program.ok("dir = os.open('d', os.O_RDONLY); os.unlink('d/f'); os.rmdir('d')");
    assert_eq!(program.ok("os.listdir(dir)"), json!([]));
    assert_eq!(program.ok("os.write(fd, b'text')"), json!(4));
    assert_eq!(program.ok("os.fstat(fd).st_size"), json!(4));
}
