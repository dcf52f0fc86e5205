//! Decides the errno of an open whose file is missing, or another than the kernel knows: `ESTALE`,
//! then `ENOENT`.
//!
//! A name can go between the kernel's lookup and its open request. `ESTALE` makes the kernel look
//! the name up again and create the file if the program asked for that, which an open request does
//! not show. The kernel does so once a call and passes a second `ESTALE` on to the program. No
//! program expects that of an open; `ENOENT` it does.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fuser::Errno;

use crate::file::rules::SharePath;

/// The most threads remembered; then all are forgotten at once.
const THREADS_MAX: usize = 1024;

/// How long after `ESTALE` an open counts as part of the same call.
const CALL_MAX: Duration = Duration::from_secs(1);

/// The threads of a mount that look a name up again.
#[derive(Debug, Default)]
pub struct Retries {
    threads: Mutex<HashMap<u32, Stale>>,
    /// How many of them; read without a lock on every open and lookup.
    count: AtomicUsize,
}

/// The last `ESTALE` of a thread.
#[derive(Debug)]
struct Stale {
    path: SharePath,
    told: Instant,
    /// A lookup after it found nothing.
    looked_up: bool,
}

const POISON: &str = "threads are only added and removed";

impl Retries {
    /// The errno for thread `tid`, which opens `path` and finds no file, or one that cannot stand
    /// in for the one that the kernel knows.
    pub fn missing(&self, tid: u32, path: &SharePath) -> Errno {
        let mut threads = self.threads.lock().expect(POISON);
        let former = threads.remove(&tid);
        let is_again = former.is_some_and(|it| it.path == *path && it.told.elapsed() < CALL_MAX);
        // The kernel calls every thread of another pid namespace 0.
        if !is_again && tid != 0 {
            if threads.len() >= THREADS_MAX {
                threads.clear();
            }
            let stale = Stale { path: path.clone(), told: Instant::now(), looked_up: false };
            threads.insert(tid, stale);
        }
        self.count.store(threads.len(), Ordering::Release);
        if is_again { Errno::ENOENT } else { Errno::ESTALE }
    }

    /// A lookup of thread `tid` found nothing. The kernel may have asked whether the name that it
    /// knows still leads to the file, and then looks it up; a second such lookup ends the call.
    pub fn looked_up(&self, tid: u32) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut threads = self.threads.lock().expect(POISON);
        match threads.get_mut(&tid) {
            Some(stale) if !stale.looked_up => stale.looked_up = true,
            _ => drop(threads.remove(&tid)),
        }
        self.count.store(threads.len(), Ordering::Release);
    }

    /// An open of thread `tid` had another answer: its next one is another call.
    pub fn end(&self, tid: u32) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut threads = self.threads.lock().expect(POISON);
        threads.remove(&tid);
        self.count.store(threads.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> SharePath {
        SharePath::new(text).unwrap()
    }

    fn missing(retries: &Retries, tid: u32, at: &str) -> i32 {
        retries.missing(tid, &path(at)).code()
    }

    #[test]
    fn a_file_that_is_missing_twice_in_one_call_is_not_there() {
        let retries = Retries::default();
        let twice = [(); 2].map(|()| missing(&retries, 7, "a"));
        assert_eq!(twice, [libc::ESTALE, libc::ENOENT]);
        assert_eq!(missing(&retries, 7, "a"), libc::ESTALE);
    }

    #[test]
    fn other_calls_and_other_threads_have_a_retry_of_their_own() {
        let retries = Retries::default();
        let others = [(7, "a"), (8, "a"), (7, "b")].map(|(tid, at)| missing(&retries, tid, at));
        assert_eq!(others, [libc::ESTALE; 3]);
        retries.end(7);
        assert_eq!(missing(&retries, 7, "b"), libc::ESTALE);
        assert_eq!(missing(&retries, 8, "a"), libc::ENOENT);
    }

    #[test]
    fn a_call_goes_on_after_one_lookup_that_finds_nothing_and_ends_with_the_second() {
        let retries = Retries::default();
        missing(&retries, 7, "a");
        retries.looked_up(7);
        assert_eq!(missing(&retries, 7, "a"), libc::ENOENT);
        missing(&retries, 7, "a");
        retries.looked_up(7);
        retries.looked_up(7);
        assert_eq!(missing(&retries, 7, "a"), libc::ESTALE);
    }

    #[test]
    fn threads_that_have_no_number_are_not_taken_for_one() {
        let retries = Retries::default();
        assert_eq!([(); 3].map(|()| missing(&retries, 0, "a")), [libc::ESTALE; 3]);
    }

    #[test]
    fn no_more_threads_than_the_bound_are_remembered() {
        let retries = Retries::default();
        for tid in 1..=2 * u32::try_from(THREADS_MAX).unwrap() {
            missing(&retries, tid, "a");
        }
        assert_eq!(retries.threads.lock().unwrap().len(), THREADS_MAX);
    }
}
