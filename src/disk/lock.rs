//! The lock that gives a directory to one server, and what is known of the server that has it.
//!
//! The lock is an `flock` on the directory itself. It belongs to the inode: it holds through bind
//! mounts and symbolic links, for every user and for sources that cannot be written, and it ends
//! with its process, however that ends. On overlayfs it belongs to the directory of that one mount:
//! a server on a layer below it is not seen. Which directories are locked is decided by
//! [`super::data_root`] and by `file/store/root`.

use std::fmt;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::data_root::{DataRootError, about};
use super::error::StoreError;
use super::folder::{Durability, Folder};
use super::tree;
use crate::rules::{Timestamp, time};
use crate::sync::front_end;

/// The note on the server in a folder of its own.
const NOTE: &str = "server";

/// How long a lock is waited for. A server that just stopped may have started a program, which
/// has all descriptors until its exec.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// The ticks of `/proc` in a second (`USER_HZ`), on every architecture of Linux that is in use.
const TICKS: u64 = 100;

/// The most bytes of a command line that are shown.
const COMMAND_MAX: usize = 200;

/// A directory that another server has.
#[derive(Debug)]
pub struct ServedElsewhere {
    /// The directory, as the caller named it.
    pub path: PathBuf,
    /// The server that has it; `None` if this process cannot see that one.
    pub by: Option<Box<OtherServer>>,
}

/// A server that has a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherServer {
    pub pid: u32,
    /// Some other program that locks the directory.
    pub is_foreign: bool,
    /// The host or container it runs in, if that is another one.
    pub host: Option<String>,
    /// Its data directory, or else its command line.
    pub place: Option<String>,
    pub since: Option<Timestamp>,
}

impl fmt::Display for ServedElsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_foreign = self.by.as_ref().is_some_and(|by| by.is_foreign);
        let by = if is_foreign { "locked by another program" } else { "served by another latchfs" };
        write!(f, "{} is {by}", self.path.display())?;
        if let Some(by) = &self.by {
            write!(f, " (pid {}", by.pid)?;
            if by.pid == std::process::id() && by.host.is_none() {
                f.write_str(", this process")?;
            }
            if let Some(host) = &by.host {
                write!(f, " in {host}")?;
            }
            if let Some(place) = &by.place {
                write!(f, ", {place}")?;
            }
            if let Some(since) = by.since {
                write!(f, ", since {}", time::iso_seconds(since))?;
            }
            f.write_str(")")?;
        }
        f.write_str(": stop it, or choose another directory")
    }
}

/// The note on a server in its own folder, for one that finds the folder locked. A killed server
/// leaves its note behind, which is read only while the lock is held.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
struct ServerNote {
    pid: u32,
    host: String,
    data: PathBuf,
    since: i64,
}

/// Locks `folder` for this process alone; `served` is what the user knows it by, `notes` the folder
/// that the server which has it keeps its note in.
pub(crate) fn lock_folder(
    folder: &Path,
    served: &Path,
    notes: &Path,
) -> Result<OwnedFd, DataRootError> {
    let lock = tree::open_root(folder).map_err(about(folder))?;
    let end = Instant::now() + LOCK_PATIENCE;
    loop {
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(lock),
            Err(Errno::WOULDBLOCK) if Instant::now() < end => {
                front_end::assert_may_block("the lock of a directory");
                thread::sleep(Duration::from_millis(10));
            }
            Err(Errno::WOULDBLOCK) => {
                let by = other_server(&lock, notes).map(Box::new);
                return Err(DataRootError::Served(ServedElsewhere { path: served.to_owned(), by }));
            }
            Err(errno) => return Err(about(folder)(StoreError::from_errno("locking", errno))),
        }
    }
}

/// Locks a directory of the user's, as [`lock_folder`] does. `None` where the file system has no
/// such locks, as network file systems do, and where this user may not read the directory, which a
/// lock needs: the directory is served all the same.
pub(crate) fn lock_served(
    directory: &Path,
    notes: &Path,
) -> Result<Option<OwnedFd>, DataRootError> {
    match lock_folder(directory, directory, notes) {
        Ok(lock) => Ok(Some(lock)),
        Err(DataRootError::Store {
            source: source @ (StoreError::Io { .. } | StoreError::PermissionDenied),
            ..
        }) => {
            let path = directory.display();
            log::warn!("{path}: a second server is not kept away, no lock is to be had: {source}");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Leaves a note on this server in its own folder; `data` is its data directory. The note is only a
/// help, so a failure is none of the start's.
pub(crate) fn leave_note(folder: &Path, data: &Path) {
    let note =
        ServerNote { pid: std::process::id(), host: host(), data: data.to_owned(), since: now().0 };
    let bytes = serde_json::to_vec(&note).expect("a note has no keys that are no texts");
    if let Err(error) = Folder::new(folder.to_owned()).write(NOTE, &bytes, Durability::Cached) {
        log::debug!("{}: {error}", folder.join(NOTE).display());
    }
}

/// The server that holds the lock. The kernel names processes of this pid namespace; the note also
/// those of other containers.
fn other_server(lock: impl AsFd, notes: &Path) -> Option<OtherServer> {
    let pid = locks_pid(lock);
    let note = fs::read(notes.join(NOTE)).ok();
    let note = note.and_then(|bytes| serde_json::from_slice::<ServerNote>(&bytes).ok());
    // A note of this host is from a server that ended, unless the kernel names the same process.
    let note = note.filter(|note| pid.map_or(note.host != host(), |pid| pid == note.pid));
    match (note, pid) {
        (Some(note), _) => Some(OtherServer {
            pid: note.pid,
            is_foreign: false,
            host: (note.host != host()).then_some(note.host),
            place: Some(format!("data directory {}", note.data.display())),
            since: Some(Timestamp(note.since)),
        }),
        (None, Some(pid)) => Some(OtherServer {
            pid,
            is_foreign: !is_latchfs(pid),
            host: None,
            place: command(pid),
            since: started(pid),
        }),
        (None, None) => None,
    }
}

/// The process that holds an `flock` on the directory, by the kernel's list of locks.
fn locks_pid(directory: impl AsFd) -> Option<u32> {
    let stat = rustix::fs::fstat(directory).ok()?;
    let device = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let holders = || locks.lines().filter_map(|line| flock_of(line, stat.st_ino));
    let exact = holders().find(|(_, found)| *found == device);
    // Some file systems show another device number to stat(2), such as btrfs for a subvolume.
    let ours = || holders().find(|(pid, _)| is_latchfs(*pid));
    exact.or_else(ours).map(|(pid, _)| pid)
}

/// The process and the device of a line of `/proc/locks` that is an `flock` on that inode.
fn flock_of(line: &str, inode: u64) -> Option<(u32, (u32, u32))> {
    let mut words = line.split_ascii_whitespace().skip(1);
    if words.next()? != "FLOCK" {
        return None; // Of another kind, or one that waits ("->").
    }
    let (pid, place) = (words.nth(2)?, words.next()?);
    let mut parts = place.split(':');
    let mut device = || u32::from_str_radix(parts.next()?, 16).ok();
    let device = (device()?, device()?);
    (parts.next()?.parse() == Ok(inode)).then_some((pid.parse().ok()?, device))
}

fn is_latchfs(pid: u32) -> bool {
    let comm = fs::read_to_string(format!("/proc/{pid}/comm"));
    comm.is_ok_and(|comm| comm.starts_with("latchfs"))
}

/// The command line of a process, and the directory it runs in where this user may know that.
fn command(pid: u32) -> Option<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let mut text = words.join(" ").trim_end().to_owned();
    if text.len() > COMMAND_MAX {
        text.truncate(text.floor_char_boundary(COMMAND_MAX));
        text.push_str("...");
    }
    let directory = fs::read_link(format!("/proc/{pid}/cwd"));
    let directory = directory.map_or_else(|_| String::new(), |at| format!(" in {}", at.display()));
    (!text.is_empty()).then(|| format!("`{text}`{directory}"))
}

/// When a process was started.
fn started(pid: u32) -> Option<Timestamp> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; the start is the 20th word behind it.
    let ticks: u64 = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let boot = fs::read_to_string("/proc/stat").ok()?;
    let boot: u64 = boot.lines().find_map(|line| line.strip_prefix("btime "))?.parse().ok()?;
    let seconds = boot.checked_add(ticks / TICKS)?;
    Some(Timestamp(0).after(Duration::from_secs(seconds)))
}

fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim_end().to_owned()
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_found_in_the_list_of_the_kernel() {
        let line = "1: FLOCK  ADVISORY  WRITE 5254 fe:01:5408358 0 EOF";
        assert_eq!(flock_of(line, 5_408_358), Some((5254, (254, 1))));
        assert_eq!(flock_of(line, 5_408_359), None);
        for other in [
            "1: -> FLOCK  ADVISORY  WRITE 5254 fe:01:5408358 0 EOF",
            "2: POSIX  ADVISORY  WRITE 5254 fe:01:5408358 0 EOF",
            "3: FLOCK  ADVISORY  WRITE -1 fe:01:5408358 0 EOF",
            "3: FLOCK  ADVISORY",
            "",
        ] {
            assert_eq!(flock_of(other, 5_408_358), None, "{other}");
        }
    }

    #[test]
    fn the_server_that_has_a_directory_is_named_by_its_note_or_by_its_process() {
        let folder = tempfile::tempdir().unwrap();
        let _lock = lock_folder(folder.path(), folder.path(), folder.path()).unwrap();
        let refused = || {
            let refused = lock_folder(folder.path(), Path::new("/srv"), folder.path());
            refused.unwrap_err().to_string()
        };
        let me = format!("/srv is served by another latchfs (pid {}", std::process::id());
        let said = refused();
        assert!(said.starts_with(&format!("{me}, this process, `")), "{said}");
        assert!(
            said.contains(", since 20") && said.ends_with("choose another directory"),
            "{said}"
        );
        leave_note(folder.path(), Path::new("/data"));
        let said = refused();
        assert!(said.starts_with(&format!("{me}, this process, data directory /data, since 20")));
        // The note of a server that was killed says nothing about the one that has the lock.
        let old = ServerNote { pid: 1, host: host(), data: "/old".into(), since: 0 };
        fs::write(folder.path().join(NOTE), serde_json::to_vec(&old).unwrap()).unwrap();
        assert!(refused().starts_with(&me) && !refused().contains("/old"));
        fs::write(folder.path().join(NOTE), "no note").unwrap();
        assert!(refused().starts_with(&me));
    }

    #[test]
    fn a_server_in_another_container_is_named_by_its_note_alone() {
        let folder = tempfile::tempdir().unwrap();
        let free = tree::open_root(folder.path()).unwrap();
        assert_eq!(other_server(&free, folder.path()), None);
        let there = ServerNote { pid: 7, host: "3f2a".into(), data: "/data".into(), since: 0 };
        fs::write(folder.path().join(NOTE), serde_json::to_vec(&there).unwrap()).unwrap();
        let by = other_server(&free, folder.path()).map(Box::new);
        let said = ServedElsewhere { path: "/vol".into(), by }.to_string();
        let who = "(pid 7 in 3f2a, data directory /data, since 1970-01-01T00:00:00Z)";
        assert!(said.starts_with(&format!("/vol is served by another latchfs {who}:")), "{said}");
    }
}
