//! Requests that wait: for the release of a handle whose descriptor was closed, for a lock, for a
//! gate or a delay of a test.
//!
//! RELEASE is asynchronous, so a request that comes right after `close(2)` can conflict with a
//! handle whose program has closed it. Such a request is *parked* for a bounded time until the
//! release arrives, and decided then. Request handlers never block: a parked request keeps its
//! reply and is tried again by the thread here. A request is tried in non-blocking mode; if it
//! would wait for the disk, a thread of the pool tries it again.
//!
//! The kernel library answers interrupts with "not supported", so a process that waits for a lock
//! could not even be killed: the same thread looks for pending signals of waiters.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use fuser::Errno;

use super::pool::{Pool, Turn};
use crate::file::rules::Denial;
use crate::file::service::FileError;
use crate::sync::front_end;

/// How long a request waits for a release at most.
pub const PARK_MAX: Duration = Duration::from_millis(100);

/// How often the parked are tried again when nothing nudges them.
const TICK: Duration = Duration::from_millis(5);

/// How often waiters for locks are looked at for signals.
const SIGNAL_TICK: Duration = Duration::from_millis(50);

/// Tries a request again. The flag says that this is the last try: it must not wait for releases.
type Attempt = Box<dyn FnMut(bool, On) -> Outcome + Send>;

/// Where a request is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum On {
    /// On a thread that serves other requests too.
    FrontEnd,
    /// On a thread of the pool.
    Pool,
    /// Nowhere: the pool is full.
    Refused,
}

/// The outcome of a try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// The request has its answer.
    Answered,
    /// It waits for a release.
    Parked,
    /// It would wait for the disk.
    WouldWait,
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waited {
    /// It is over, or its time is.
    ToTheEnd,
    /// The waiting thread was signalled, or is gone.
    Interrupted,
}

/// A result that can say "interrupted, try again".
pub trait Interruptible {
    /// The result of a request for which there is no thread.
    fn interrupted() -> Self;
}

impl<T> Interruptible for Result<T, FileError> {
    fn interrupted() -> Self {
        Err(Denial::Cancelled.into())
    }
}

impl<T> Interruptible for Result<T, Errno> {
    fn interrupted() -> Self {
        Err(Errno::EINTR)
    }
}

/// Ends a wait from outside; false if there is nothing to end, or not yet.
type Cancel = Arc<dyn Fn() -> bool + Send + Sync>;

struct Parked {
    until: Instant,
    attempt: Attempt,
}

struct Waiter {
    number: u64,
    tid: u32,
    cancel: Cancel,
}

#[derive(Default)]
struct Inside {
    parked: Vec<Parked>,
    waiters: Vec<Waiter>,
    nudged: bool,
    stop: bool,
}

/// The parked requests of one mount.
pub struct Park {
    /// For requests that would wait for the disk.
    pub pool: Arc<Pool>,
    inside: Mutex<Inside>,
    change: Condvar,
    /// [`is_signalled`], except in tests.
    is_signalled: fn(u32) -> bool,
}

impl Default for Park {
    fn default() -> Self {
        let (pool, inside, change) = (Arc::default(), Mutex::default(), Condvar::new());
        Self { pool, inside, change, is_signalled }
    }
}

const POISON: &str = "parked requests do not panic";

impl Park {
    pub fn start(self: &Arc<Self>) -> std::io::Result<()> {
        let park = Arc::clone(self);
        thread::Builder::new().name("latchfs-park".into()).spawn(move || park.run())?;
        Ok(())
    }

    /// Keeps a request that met a conflict, and tries it again.
    fn park(&self, attempt: Attempt) {
        let until = Instant::now() + PARK_MAX;
        self.inside.lock().expect(POISON).parked.push(Parked { until, attempt });
        self.change.notify_all();
    }

    /// Answers with the result of `attempt`: now, or when it no longer returns `None`, which means
    /// that it waits for a release. Its argument is true for the last try, which must return a
    /// result.
    pub fn until<T: Interruptible + 'static>(
        self: &Arc<Self>,
        mut attempt: impl FnMut(bool) -> Option<T> + Send + 'static,
        answer: impl FnOnce(T) + Send + 'static,
    ) {
        let first = match front_end::without_waiting(|| attempt(false)) {
            Some(Some(come_to)) => return answer(come_to),
            Some(None) => Outcome::Parked,
            None => Outcome::WouldWait,
        };
        let mut answer = Some(answer);
        let again: Attempt = Box::new(move |last, on| {
            let come_to = match on {
                On::FrontEnd => match front_end::without_waiting(|| attempt(last)) {
                    Some(come_to) => come_to,
                    None => return Outcome::WouldWait,
                },
                On::Pool => attempt(last),
                On::Refused => Some(T::interrupted()),
            };
            let Some(come_to) = come_to else { return Outcome::Parked };
            let answer = answer.take().expect("a request is answered once");
            answer(come_to);
            Outcome::Answered
        });
        match first {
            Outcome::WouldWait => self.on_pool(Instant::now() + PARK_MAX, false, again),
            _ => self.park(again),
        }
    }

    /// Answers with the result of `attempt`, which waits for no release.
    pub fn answer<T: Interruptible + 'static>(
        self: &Arc<Self>,
        mut attempt: impl FnMut() -> T + Send + 'static,
        answer: impl FnOnce(T) + Send + 'static,
    ) {
        self.until(move |_| Some(attempt()), answer);
    }

    /// Calls `then` once `is_over` says so, and after `time` at the latest. A signal to the thread
    /// `tid` ends the wait, and so does the end of the mount.
    pub fn wait(
        self: &Arc<Self>,
        tid: u32,
        time: Duration,
        is_over: impl FnMut() -> bool + Send + 'static,
        then: impl FnOnce(Waited) + Send + 'static,
    ) {
        static NUMBERS: AtomicU64 = AtomicU64::new(1 << 63);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let park = Arc::clone(self);
        let signalled = Arc::new(AtomicBool::new(false));
        let signal = Arc::clone(&signalled);
        let cancel = move || {
            signal.store(true, Ordering::Release);
            true
        };
        self.watch(number, tid, Arc::new(cancel));
        let mut ends = Some((is_over, then));
        let attempt: Attempt = Box::new(move |last, _| {
            let Some((is_over, _)) = &mut ends else { return Outcome::Answered };
            let waited = if signalled.load(Ordering::Acquire) {
                Waited::Interrupted
            } else if last || is_over() {
                Waited::ToTheEnd
            } else {
                return Outcome::Parked;
            };
            park.unwatch(number);
            let (is_over, then) = ends.take().expect("a wait ends once");
            // Before the request goes on, so that it does not seem to wait then.
            drop(is_over);
            then(waited);
            Outcome::Answered
        });
        let parked = Parked { until: Instant::now() + time, attempt };
        self.inside.lock().expect(POISON).parked.push(parked);
        self.change.notify_all();
    }

    /// Tries a request on a thread of the pool, where it may wait for the disk.
    fn on_pool(self: &Arc<Self>, until: Instant, last: bool, mut attempt: Attempt) {
        let park = Arc::clone(self);
        self.pool.submit(move |turn| {
            let on = match turn {
                Turn::Run => On::Pool,
                Turn::Refused => On::Refused,
            };
            if attempt(last, on) == Outcome::Parked {
                let mut inside = park.inside.lock().expect(POISON);
                inside.parked.push(Parked { until, attempt });
                park.change.notify_all();
            }
        });
    }

    /// A file was closed: tries parked requests now. Wakes no thread while nothing is parked, since
    /// that would cost every close a context switch; the mark stays for a request that is being
    /// tried.
    pub fn nudge(&self) {
        let mut inside = self.inside.lock().expect(POISON);
        inside.nudged = true;
        if !inside.parked.is_empty() {
            self.change.notify_all();
        }
    }

    /// Looks after the waiter `number`, a request of thread `tid`: `cancel` is called when that
    /// thread is signalled or gone, and again and again until it returns true or the waiter is
    /// not watched any more: the signal may come before there is a wait to end. Tickets of locks
    /// are numbers below 2^63.
    pub fn watch(&self, number: u64, tid: u32, cancel: Cancel) {
        self.inside.lock().expect(POISON).waiters.push(Waiter { number, tid, cancel });
        self.change.notify_all();
    }

    /// The waiter has its answer.
    pub fn unwatch(&self, number: u64) {
        self.inside.lock().expect(POISON).waiters.retain(|waiter| waiter.number != number);
    }

    /// Ends the thread; what is parked is answered for the last time.
    pub fn stop(&self) {
        self.inside.lock().expect(POISON).stop = true;
        self.change.notify_all();
    }

    fn run(self: &Arc<Self>) {
        front_end::mark("thread of parked requests");
        let mut looked = Instant::now();
        loop {
            let (parked, stop) = self.next();
            let now = Instant::now();
            let mut left = Vec::new();
            for request in parked {
                let last = stop || now >= request.until;
                left.extend(outlived(|| self.again(request, last)).flatten());
            }
            self.inside.lock().expect(POISON).parked.extend(left);
            if stop {
                return;
            }
            if now.duration_since(looked) >= SIGNAL_TICK {
                looked = now;
                self.cancel_signalled();
            }
        }
    }

    /// Tries a request again; it is given back if it is still parked.
    fn again(self: &Arc<Self>, mut request: Parked, last: bool) -> Option<Parked> {
        match (request.attempt)(last, On::FrontEnd) {
            Outcome::Answered => {}
            Outcome::Parked => return Some(request),
            Outcome::WouldWait => self.on_pool(request.until, last, request.attempt),
        }
        None
    }

    /// Waits until there is something to do, and takes the parked out.
    fn next(&self) -> (Vec<Parked>, bool) {
        let mut inside = self.inside.lock().expect(POISON);
        while !inside.stop && inside.parked.is_empty() && inside.waiters.is_empty() {
            inside = self.change.wait(inside).expect(POISON);
        }
        if !inside.stop && !inside.nudged {
            let tick = if inside.parked.is_empty() { SIGNAL_TICK } else { TICK };
            inside = self.change.wait_timeout(inside, tick).expect(POISON).0;
        }
        inside.nudged = false;
        (std::mem::take(&mut inside.parked), inside.stop)
    }

    /// Ends the waits of threads that are signalled or gone. `/proc` is read without the lock,
    /// which the FUSE workers take for each close.
    fn cancel_signalled(&self) {
        let waiters: Vec<(u64, u32)> = {
            let inside = self.inside.lock().expect(POISON);
            inside.waiters.iter().map(|waiter| (waiter.number, waiter.tid)).collect()
        };
        for (number, _) in waiters.into_iter().filter(|(_, tid)| (self.is_signalled)(*tid)) {
            let cancel = {
                let inside = self.inside.lock().expect(POISON);
                let waiter = inside.waiters.iter().find(|waiter| waiter.number == number);
                // It may have its answer by now.
                waiter.map(|waiter| Arc::clone(&waiter.cancel))
            };
            // One that panics is not called again.
            if cancel.is_some_and(|cancel| outlived(|| cancel()).unwrap_or(true)) {
                self.unwatch(number);
            }
        }
    }
}

/// Calls `call`; `None` if it panics. A request that panics is dropped with its reply, which
/// answers `EIO`; the other requests go on.
fn outlived<T>(call: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(call));
    if done.is_err() {
        log::error!("a request failed: it panicked while it was parked");
    }
    done.ok()
}

/// True if the thread has a signal pending that it neither blocks nor ignores, or is gone. A thread
/// outside the mount's pid namespace has the number 0: nothing can be learnt of it, and its waits
/// go on.
fn is_signalled(tid: u32) -> bool {
    if tid == 0 {
        return false;
    }
    let Ok(status) = std::fs::read_to_string(format!("/proc/{tid}/status")) else { return true };
    let mask = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        u64::from_str_radix(line.trim(), 16).ok()
    };
    let pending = mask("SigPnd:").unwrap_or(0) | mask("ShdPnd:").unwrap_or(0);
    let deaf = mask("SigBlk:").unwrap_or(0) | mask("SigIgn:").unwrap_or(0);
    pending & !deaf != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_parked_request_that_panics_takes_no_other_with_it() {
        let park = Arc::new(Park::default());
        park.start().unwrap();
        let (dropped, reply) = mpsc::channel::<()>();
        let mut tries = 0;
        let panics = move |_| {
            tries += 1;
            assert!(tries == 1, "of a test");
            None
        };
        park.until(panics, move |_: Result<(), Errno>| dropped.send(()).unwrap());
        assert!(reply.recv().is_err(), "the reply is dropped without an answer");
        // A waiter whose thread is gone, and whose end panics.
        park.watch(1, u32::MAX, Arc::new(|| panic!("of a test")));
        let (answer, answered) = mpsc::channel();
        let last = |last: bool| last.then_some(Ok::<_, Errno>(7));
        park.until(last, move |come_to| answer.send(come_to).unwrap());
        assert_eq!(answered.recv_timeout(Duration::from_secs(20)).unwrap().unwrap(), 7);
        let (cancelled, told) = mpsc::channel();
        park.watch(2, u32::MAX, Arc::new(move || cancelled.send(()).is_ok()));
        told.recv_timeout(Duration::from_secs(20)).unwrap();
        park.stop();
    }

    #[test]
    fn a_signal_that_comes_before_the_wait_ends_it_all_the_same() {
        let park = Arc::new(Park::default());
        park.start().unwrap();
        let (cancelled, told) = mpsc::channel();
        let early = AtomicBool::new(true);
        let cancel = move || {
            let is_there = !early.swap(false, Ordering::SeqCst);
            cancelled.send(is_there).unwrap();
            is_there
        };
        park.watch(1, u32::MAX, Arc::new(cancel));
        let next = || told.recv_timeout(Duration::from_secs(20));
        assert_eq!([next(), next()], [Ok(false), Ok(true)]);
        assert!(next().is_err(), "a wait is ended once, and its end is dropped");
        park.stop();
    }

    #[test]
    fn a_thread_of_another_pid_namespace_counts_as_not_signalled() {
        assert!(!is_signalled(0));
        assert!(is_signalled(u32::MAX), "such a thread is gone");
    }

    #[test]
    fn nobody_waits_while_threads_are_looked_at_for_signals() {
        static LOOKS: Mutex<Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>> = Mutex::new(None);
        let ((begun, looks), (end, ended)) = (mpsc::channel(), mpsc::channel());
        *LOOKS.lock().unwrap() = Some((begun, ended));
        let look = |_| {
            let (begun, ended) = LOOKS.lock().unwrap().take().expect("one waiter is looked at");
            begun.send(()).unwrap();
            ended.recv_timeout(Duration::from_secs(20)).is_ok()
        };
        let park = Arc::new(Park { is_signalled: look, ..Park::default() });
        park.start().unwrap();
        park.watch(1, 7, Arc::new(|| panic!("it has its answer")));
        looks.recv_timeout(Duration::from_secs(20)).unwrap();
        // Each takes the lock, as FUSE workers do.
        park.nudge();
        park.unwatch(1);
        end.send(()).expect("the look had to end for the lock to be free");
        park.stop();
    }
}
