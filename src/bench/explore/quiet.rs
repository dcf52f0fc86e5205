//! Whether processes of this machine wait for somebody else, by the tables of the kernel in
//! `/proc`.
//!
//! Decides when a client counts as blocked: all of its threads sleep, no bytes are on their way to
//! it or from it, no thread of the server is at work, and none of the threads has run meanwhile.
//! No time decides. A thread that sleeps for a while that it has set itself is not blocked; one
//! that waits for somebody else is, even if it has set a limit, but is given the time to reach it.

use std::collections::BTreeMap;
use std::fs;

use crate::journal::programs::process_of_thread;

/// How far up the parents of a process are followed.
const PARENTS_MAX: usize = 16;
/// The longest time limit of a wait for events that counts as a sleep, in milliseconds.
const SLEEP_MAX: i32 = 1_000;
/// The first letters of the names of the server's threads.
const OURS: &str = "latchfs";

/// The processes of a client, or else some of the threads of one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Watched {
    pub pid: Option<u32>,
    pub threads: Vec<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// They go on only if somebody else does something.
    Quiet,
    /// The same, but some have set a time limit for their wait.
    Limited,
    /// Some sleep for a while, and nothing else is at work.
    Sleeping,
    Busy,
}

impl Watched {
    /// Whether it is on this machine, as far as the server can see.
    pub fn is_here(&self) -> bool {
        let ids = self.pid.iter().chain(&self.threads);
        ids.clone().next().is_some()
            && ids.copied().all(|id| fs::exists(format!("/proc/{id}/status")).unwrap_or_default())
    }

    /// Whether it is several threads that do things at once. A whole process, with its main thread,
    /// counts as one until it does so: an event loop has a pool beside it, and to see before each
    /// step that all of its threads wait takes some 50 ms.
    pub fn is_many(&self) -> bool {
        let is_main = |thread: &u32| process_of_thread(*thread) == Some(*thread);
        self.is_here() && self.threads.len() > 1 && !self.threads.iter().any(is_main)
    }

    /// Whether a thread is one of its own, or of a process that it has started.
    pub fn has(&self, thread: u32) -> bool {
        if self.threads.contains(&thread) {
            return true;
        }
        let Some(pid) = self.pid else { return false };
        let parent = |pid: &u32| field(&status(*pid)?, "PPid:");
        let first = process_of_thread(thread);
        std::iter::successors(first, parent).take(PARENTS_MAX).any(|one| one == pid)
    }

    /// Its processes: its own, and those that it has started.
    fn pids(&self) -> Vec<u32> {
        let mut pids: Vec<u32> = self.pid.into_iter().collect();
        let mut at = 0;
        while let Some(pid) = pids.get(at) {
            let started = threads_of(*pid).into_iter().flat_map(|thread| {
                let listed = fs::read_to_string(format!("/proc/{thread}/task/{thread}/children"));
                let listed = listed.unwrap_or_default();
                listed.split(' ').filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
            });
            pids.extend(started.collect::<Vec<_>>());
            at += 1;
        }
        pids
    }

    /// Its threads: all of its processes, or else those that it has named.
    fn all_threads(&self) -> Vec<u32> {
        match self.pid {
            None => self.threads.clone(),
            Some(_) => self.pids().into_iter().flat_map(threads_of).collect(),
        }
    }
}

/// Looks at these clients and at the server.
pub fn look(clients: &[Watched]) -> Seen {
    let threads = || clients.iter().flat_map(Watched::all_threads).collect::<Vec<_>>();
    let before = threads();
    let Some(first) = asleep(&before) else { return Seen::Busy };
    let pids = clients.iter().flat_map(Watched::pids);
    let named = clients.iter().flat_map(|client| client.threads.iter().copied());
    if !sockets_are_empty(pids.chain(named).chain([std::process::id()])) {
        return Seen::Busy;
    }
    let pauses = before.into_iter().filter_map(pause_of);
    let seen = pauses.fold(Seen::Quiet, |seen, pause| match (seen, pause) {
        (Seen::Sleeping, _) | (_, Pause::Sleep) => Seen::Sleeping,
        (_, Pause::Limit) => Seen::Limited,
    });
    if asleep(&threads()) != Some(first) {
        return Seen::Busy;
    }
    seen
}

/// How often each of the threads, and each of the server's own, has run; none if one runs now.
fn asleep(threads: &[u32]) -> Option<BTreeMap<u32, (u64, u64)>> {
    let this = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    let own = threads_of(std::process::id()).into_iter().map(|thread| (thread, true));
    let all = threads.iter().map(|thread| (*thread, false)).chain(own);
    let mut found = BTreeMap::new();
    for (thread, is_ours) in all.filter(|(thread, _)| *thread != this) {
        // A thread that has ended does nothing.
        let Some(text) = status(thread) else { continue };
        if is_ours && !text.starts_with(&format!("Name:\t{OURS}")) {
            continue;
        }
        let state = text.lines().find_map(|line| line.strip_prefix("State:"))?;
        match state.trim_start().as_bytes().first()? {
            b'S' | b'T' | b't' | b'Z' | b'X' | b'I' => {}
            _ => return None,
        }
        let switches = |name| field(&text, name);
        let runs =
            (switches("voluntary_ctxt_switches:")?, switches("nonvoluntary_ctxt_switches:")?);
        found.insert(thread, runs);
    }
    Some(found)
}

fn status(thread: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{thread}/status")).ok()
}

fn field<T: std::str::FromStr>(status: &str, name: &str) -> Option<T> {
    status.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

fn numbers_in(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn threads_of(pid: u32) -> Vec<u32> {
    numbers_in(&format!("/proc/{pid}/task"))
}

/// Whether no established connection of these processes has bytes that were not read, or that did
/// not arrive.
fn sockets_are_empty(pids: impl Iterator<Item = u32>) -> bool {
    let mut full = Vec::new();
    for table in ["tcp", "tcp6"] {
        let table = fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        for line in table.lines().skip(1) {
            // `sl local remote state tx:rx timer retransmits uid timeout inode`
            let words: Vec<_> = line.split_ascii_whitespace().collect();
            if let [_, _, _, "01", queues, _, _, _, _, inode, ..] = words[..]
                && queues != "00000000:00000000"
            {
                full.push(format!("socket:[{inode}]"));
            }
        }
    }
    if full.is_empty() {
        return true;
    }
    let mut descriptors = pids
        .flat_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten());
    !descriptors.any(|fd| {
        let target = fs::read_link(fd.path()).unwrap_or_default();
        full.iter().any(|socket| target.as_os_str() == socket.as_str())
    })
}

/// How a thread that waits will go on by itself.
enum Pause {
    /// It sleeps for a time that it has set.
    Sleep,
    /// It waits for somebody else, until a time that it has set. Event loops and pools of threads
    /// do so too while they have nothing to do.
    Limit,
}

fn pause_of(thread: u32) -> Option<Pause> {
    let read = |name| fs::read_to_string(format!("/proc/{thread}/{name}"));
    // Of another user's process, or where the system does not let processes be traced, only the
    // function that it waits in is told.
    let Ok(call) = read("syscall") else {
        let sleeps = read("wchan").is_ok_and(|function| function.contains("nanosleep"));
        return sleeps.then_some(Pause::Sleep);
    };
    let mut words = call.split_ascii_whitespace();
    let number = words.next().and_then(|number| number.parse::<i64>().ok());
    let arguments: Vec<_> =
        words.filter_map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()).collect();
    let argument = |at: usize| arguments.get(at).copied().unwrap_or_default();
    // Without descriptors to wait for, with a time limit.
    let alone = |descriptors: usize, limit: usize| match (argument(descriptors), argument(limit)) {
        (_, 0) => None,
        (0, _) => Some(Pause::Sleep),
        _ => Some(Pause::Limit),
    };
    let in_ms = |limit: usize| match i32::try_from(argument(limit) & u64::from(u32::MAX)) {
        Ok(limit @ 1..) => Some(if limit <= SLEEP_MAX { Pause::Sleep } else { Pause::Limit }),
        _ => None,
    };
    match number? {
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Some(Pause::Sleep),
        libc::SYS_pselect6 => alone(0, 4),
        libc::SYS_ppoll => alone(1, 2),
        libc::SYS_epoll_pwait => in_ms(3),
        libc::SYS_futex => (argument(3) != 0).then_some(Pause::Limit),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => alone(0, 4),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll if argument(1) == 0 => in_ms(2).map(|_| Pause::Sleep),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => in_ms(2).map(|_| Pause::Limit),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait => in_ms(3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    struct Running(Child);

    impl Drop for Running {
        fn drop(&mut self) {
            drop(self.0.kill());
            drop(self.0.wait());
        }
    }

    fn run(program: &str, arguments: &[&str]) -> Running {
        let child = Command::new(program).args(arguments).stdin(Stdio::piped()).spawn();
        Running(child.unwrap())
    }

    /// Waits until the process is seen so.
    fn becomes(process: &Running, wanted: Seen) {
        client_becomes(&Watched { pid: Some(process.0.id()), threads: Vec::new() }, wanted);
    }

    fn client_becomes(client: &Watched, wanted: Seen) {
        let end = Instant::now() + Duration::from_secs(30);
        while look(std::slice::from_ref(client)) != wanted {
            assert!(Instant::now() < end, "it never was {wanted:?}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_process_that_waits_for_somebody_else_is_told_from_one_that_sleeps_or_works() {
        becomes(&run("cat", &[]), Seen::Quiet);
        becomes(&run("sleep", &["100"]), Seen::Sleeping);
        becomes(&run("sh", &["-c", "while :; do :; done"]), Seen::Busy);
        // A shell that waits for what it has started is what that is.
        becomes(&run("sh", &["-c", "sleep 100; :"]), Seen::Sleeping);
    }

    #[test]
    fn a_wait_for_somebody_else_with_a_time_limit_is_told_from_one_without() {
        let (told, number) = channel();
        let (go_on, waits) = channel::<()>();
        let thread = thread::spawn(move || {
            told.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).unwrap();
            waits.recv().unwrap();
            // Nobody says anything until this test ends.
            let _ = waits.recv_timeout(Duration::from_mins(10));
        });
        let client = Watched { pid: None, threads: vec![number.recv().unwrap()] };
        client_becomes(&client, Seen::Quiet);
        go_on.send(()).unwrap();
        client_becomes(&client, Seen::Limited);
        drop(go_on);
        thread.join().unwrap();
    }

    #[test]
    fn a_client_has_its_threads_and_what_it_has_started() {
        let own = Watched { pid: Some(std::process::id()), threads: Vec::new() };
        let child = run("cat", &[]);
        let other = Watched { pid: Some(child.0.id()), threads: Vec::new() };
        let this = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        assert!(own.has(this) && own.has(child.0.id()) && other.has(child.0.id()));
        assert!(!other.has(this));
        let thread = Watched { pid: None, threads: vec![this] };
        assert!(thread.has(this) && !thread.has(child.0.id()));
        assert!(own.is_here() && thread.is_here() && !Watched::default().is_here());
    }
}
