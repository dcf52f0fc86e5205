//! A thread that may wait on a mount of its own process. Decides nothing about files.
//!
//! A thread that waits on a mount keeps the process's table of descriptors alive, `/dev/fuse`
//! included. If the process is killed during the wait, the kernel never learns that the mount has
//! no server, and the thread hangs for good. The thread here therefore has a descriptor table of
//! its own. The table is empty: copies of the standard descriptors would keep pipes open that the
//! process has closed.

#![allow(unsafe_code, reason = "a table of descriptors of one's own has no safe call")]

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::sync::front_end;

type Question = Box<dyn FnOnce() + Send>;

/// The most questions that wait for an answer.
const WAITING_MAX: usize = 64;

/// The thread of one mount. It ends when this is dropped and its last question is answered.
#[derive(Debug)]
pub struct Aside(SyncSender<Question>);

impl Aside {
    pub fn start() -> io::Result<Self> {
        let (sender, questions) = sync_channel::<Question>(WAITING_MAX);
        let (started, ready) = sync_channel(1);
        thread::Builder::new().name("latchfs-aside".into()).spawn(move || {
            let table = own_table();
            let works = table.is_ok();
            // The one who asked waits for this answer.
            let _ = started.send(table);
            if works {
                for question in questions {
                    question();
                }
            }
        })?;
        ready.recv().map_err(|_| io::Error::other("the thread ended at once"))??;
        Ok(Self(sender))
    }

    /// Runs `question` on the thread and returns its answer; `None` if the answer takes longer than
    /// `patience`. The question may use paths, but no descriptor of this process.
    pub fn ask<T: Send + 'static>(
        &self,
        patience: Duration,
        question: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        front_end::assert_may_block("an answer of its own mount");
        let (sender, answer) = sync_channel(1);
        let question = Box::new(move || drop(sender.try_send(question())));
        self.0.try_send(question).ok()?;
        answer.recv_timeout(patience).ok()
    }
}

/// Runs `question` about a mount on a thread started for it; `None` if the answer takes longer than
/// `patience`, or if an earlier question about the same path still has no answer.
pub fn ask_once<T: Send + 'static>(
    path: &Path,
    patience: Duration,
    question: impl FnOnce(&Path) -> T + Send + 'static,
) -> io::Result<Option<T>> {
    static ASKED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let asked = || ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    if !asked().insert(path.to_owned()) {
        return Ok(None);
    }
    let aside = match Aside::start() {
        Ok(aside) => aside,
        Err(error) => {
            asked().remove(path);
            return Err(error);
        }
    };
    let path = path.to_owned();
    Ok(aside.ask(patience, move || {
        let answer = question(&path);
        asked().remove(&path);
        answer
    }))
}

/// Gives the calling thread a descriptor table of its own, which is empty.
fn own_table() -> io::Result<()> {
    // SAFETY: both calls act on the calling thread alone, which was started by this module and
    // uses no descriptor: after the first one the copies that the second one closes are seen by
    // no other thread. The second has no name in glibc before 2.34.
    let done = unsafe {
        libc::unshare(libc::CLONE_FILES) == 0
            && libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) == 0
    };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_thread_has_no_descriptor_of_the_process_and_the_process_keeps_its_own() {
        let file = tempfile::tempfile().unwrap();
        let aside = Aside::start().unwrap();
        let count = || fs::read_dir("/proc/thread-self/fd").unwrap().count();
        // The directory that is read is one.
        let theirs = aside.ask(Duration::from_secs(20), count).unwrap();
        assert_eq!(theirs, 1);
        assert_eq!(file.metadata().unwrap().len(), 0);
    }

    #[test]
    fn a_question_that_takes_long_is_not_waited_for_nor_asked_twice() {
        let (answer, waits) = sync_channel::<()>(0);
        let (path, long) = (Path::new("/of-this-test"), Duration::from_secs(20));
        let stuck = ask_once(path, Duration::from_millis(20), move |_| waits.recv().is_ok());
        assert_eq!(stuck.unwrap(), None);
        assert_eq!(ask_once(path, long, |_| 1).unwrap(), None);
        drop(answer);
        let again = || ask_once(path, long, |_| 2).unwrap();
        let end = std::time::Instant::now() + long;
        while again() != Some(2) {
            assert!(std::time::Instant::now() < end, "it never answered");
        }
    }
}
