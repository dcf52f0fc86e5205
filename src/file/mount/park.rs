//! Requests that wait for another program: for the release of a handle whose descriptor was closed,
//! for a lock, for a gate or a delay of a test.
//!
//! Such a request keeps its reply and no worker. RELEASE is asynchronous, so a request that comes
//! right after `close(2)` can conflict with a handle that its program has closed; the request is
//! *parked* until the release arrives, for a bounded time, and tried again by threads here. Which
//! refusals are worth the wait is decided by the service.
//!
//! The kernel library answers interrupts with "not supported", so a process that waits for a lock
//! could not even be killed: a thread of its own looks for pending signals of waiters. It tries no
//! request, so that no disk and no lock holds it up.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::nodes::{MissingAnswer, Moves};
use crate::file::service::{Attempt, RELEASE_LOOK, RELEASE_WAIT};

/// How often gates and delays are looked at.
const TICK: Duration = Duration::from_millis(5);

/// How many threads try parked requests: a disk that holds one request up does not hold up the
/// others.
const TRIERS: usize = 4;

/// How often waiters are looked at for signals.
const SIGNAL_TICK: Duration = Duration::from_millis(50);

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waited {
    /// It is over, or its time is.
    ToTheEnd,
    /// The waiting thread was signalled, or is gone.
    Interrupted,
}

/// Ends a wait from outside; false if there is nothing to end, or not yet.
type Cancel = Arc<dyn Fn() -> bool + Send + Sync>;

/// A request that waits.
struct Parked {
    /// The moment of the last try.
    until: Instant,
    /// The moment of the next try, if no nudge comes first.
    again: Instant,
    /// It is tried at each tick, not only after a nudge.
    polled: bool,
    /// [`Park::nudges`] before the last try.
    nudges: u64,
    /// Tries the request; true if it has its answer, which it has after the last try.
    attempt: Box<dyn FnMut(Attempt) -> bool + Send>,
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
    stop: bool,
}

/// The parked requests of one mount.
pub struct Park {
    moves: Arc<Moves>,
    inside: Mutex<Inside>,
    change: Condvar,
    /// Counts the changes that could let a parked request through.
    nudges: AtomicU64,
    /// How many requests are parked, those being tried included.
    parked: AtomicUsize,
    /// [`is_signalled`], except in tests.
    is_signalled: fn(u32) -> bool,
}

const POISON: &str = "parked requests do not panic";

impl Park {
    pub fn new(moves: Arc<Moves>) -> Self {
        Self {
            moves,
            inside: Mutex::default(),
            change: Condvar::new(),
            nudges: AtomicU64::new(0),
            parked: AtomicUsize::new(0),
            is_signalled,
        }
    }

    pub fn start(self: &Arc<Self>) -> std::io::Result<()> {
        for _ in 0..TRIERS {
            let tries = Arc::clone(self);
            thread::Builder::new().name("latchfs-park".into()).spawn(move || tries.try_parked())?;
        }
        let looks = Arc::clone(self);
        thread::Builder::new().name("latchfs-signals".into()).spawn(move || looks.look())?;
        Ok(())
    }

    /// Answers with the result of `attempt`: now, or when it no longer returns `None`, which means
    /// that it waits for a release. The last attempt must return a result.
    pub fn until<T: MissingAnswer + 'static>(
        &self,
        mut attempt: impl FnMut(Attempt) -> Option<T> + Send + 'static,
        answer: impl FnOnce(T) + Send + 'static,
    ) {
        let nudges = self.nudges.load(Ordering::SeqCst);
        match self.moves.follow(|| attempt(Attempt::Repeatable)) {
            Some(done) => answer(done),
            None => self.later(nudges, attempt, answer),
        }
    }

    /// As [`Park::until`], for a request that was tried already, when `nudges` changes were
    /// counted.
    pub fn later<T: MissingAnswer + 'static>(
        &self,
        nudges: u64,
        mut attempt: impl FnMut(Attempt) -> Option<T> + Send + 'static,
        answer: impl FnOnce(T) + Send + 'static,
    ) {
        let moves = Arc::clone(&self.moves);
        let mut answer = Some(answer);
        let attempt = Box::new(move |which| {
            let Some(done) = moves.follow(|| attempt(which)) else { return false };
            let answer = answer.take().expect("a request is answered once");
            answer(done);
            true
        });
        let now = Instant::now();
        let (until, again) = (now + RELEASE_WAIT, now + RELEASE_LOOK);
        self.park(Parked { until, again, polled: false, nudges, attempt });
    }

    /// The number of changes so far that could let a parked request through.
    pub fn nudges(&self) -> u64 {
        self.nudges.load(Ordering::SeqCst)
    }

    /// Answers with the result of `attempt`, which waits for no release.
    pub fn answer<T: MissingAnswer>(&self, mut attempt: impl FnMut() -> T, answer: impl FnOnce(T)) {
        answer(self.moves.follow(|| Some(attempt())).expect("it is answered at once"));
    }

    fn park(&self, mut request: Parked) {
        let mut inside = self.inside.lock().expect(POISON);
        if inside.stop {
            drop(inside);
            (request.attempt)(Attempt::Last);
            return;
        }
        self.parked.fetch_add(1, Ordering::SeqCst);
        inside.parked.push(request);
        self.change.notify_all();
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
        let attempt = Box::new(move |which| {
            let Some((is_over, _)) = &mut ends else { return true };
            // Asked in any case: `is_over` also notes how the wait ended.
            let over = is_over();
            let waited = if signalled.load(Ordering::Acquire) || park.is_stopped() {
                Waited::Interrupted
            } else if over || which == Attempt::Last {
                Waited::ToTheEnd
            } else {
                return false;
            };
            park.unwatch(number);
            let (is_over, then) = ends.take().expect("a wait ends once");
            // Before the request goes on, so that it does not seem to wait then.
            drop(is_over);
            then(waited);
            true
        });
        let now = Instant::now();
        let (until, again) = (now + time, now + TICK);
        self.park(Parked { until, again, polled: true, nudges: 0, attempt });
    }

    /// A file was closed: tries parked requests now. Takes no lock while nothing is parked, since
    /// each close comes here.
    pub fn nudge(&self) {
        self.nudges.fetch_add(1, Ordering::SeqCst);
        if self.parked.load(Ordering::SeqCst) > 0 {
            // Not between the look of the other thread and its wait.
            drop(self.inside.lock().expect(POISON));
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

    /// Ends the threads; what is parked is answered for the last time.
    pub fn stop(&self) {
        self.inside.lock().expect(POISON).stop = true;
        self.change.notify_all();
    }

    fn is_stopped(&self) -> bool {
        self.inside.lock().expect(POISON).stop
    }

    fn try_parked(&self) {
        while let Some((mut request, which)) = self.next() {
            let nudges = self.nudges.load(Ordering::SeqCst);
            if outlived(|| (request.attempt)(which)).unwrap_or(true) {
                self.parked.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            request.again = Instant::now() + if request.polled { TICK } else { RELEASE_LOOK };
            request.nudges = nudges;
            self.inside.lock().expect(POISON).parked.push(request);
        }
    }

    /// Waits for a request that is to be tried, and takes it out. None after the stop, when all
    /// have been tried for the last time. Nudges do not speed up polled requests.
    fn next(&self) -> Option<(Parked, Attempt)> {
        let mut inside = self.inside.lock().expect(POISON);
        loop {
            if inside.stop {
                return inside.parked.pop().map(|request| (request, Attempt::Last));
            }
            let (nudges, now) = (self.nudges.load(Ordering::SeqCst), Instant::now());
            let next = |request: &Parked| request.until.min(request.again);
            let is_due = |request: &Parked| {
                now >= next(request) || (!request.polled && request.nudges != nudges)
            };
            if let Some(at) = inside.parked.iter().position(is_due) {
                let request = inside.parked.remove(at);
                let is_last = now >= request.until;
                let which = if is_last { Attempt::Last } else { Attempt::Repeatable };
                return Some((request, which));
            }
            inside = match inside.parked.iter().map(next).min() {
                None => self.change.wait(inside).expect(POISON),
                Some(next) => self.change.wait_timeout(inside, next - now).expect(POISON).0,
            };
        }
    }

    /// Ends the waits of threads that are signalled or gone.
    fn look(&self) {
        loop {
            let mut inside = self.inside.lock().expect(POISON);
            while !inside.stop && inside.waiters.is_empty() {
                inside = self.change.wait(inside).expect(POISON);
            }
            let end = Instant::now() + SIGNAL_TICK;
            while !inside.stop && Instant::now() < end {
                let left = end.saturating_duration_since(Instant::now());
                inside = self.change.wait_timeout(inside, left).expect(POISON).0;
            }
            if inside.stop {
                return;
            }
            drop(inside);
            self.cancel_signalled();
        }
    }

    /// `/proc` is read without the lock, which the workers take.
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
pub fn outlived<T>(call: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(call));
    if done.is_err() {
        log::error!("a request of the mount failed: it panicked");
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
    use fuser::Errno;
    use std::sync::mpsc;

    #[test]
    fn a_parked_request_that_panics_takes_no_other_with_it() {
        let park = Arc::new(Park::new(Arc::default()));
        park.start().unwrap();
        let (dropped, reply) = mpsc::channel::<()>();
        let mut tries = 0;
        let panics = move |_| {
            tries += 1;
            assert!(tries == 1, "of a test");
            None
        };
        park.until(panics, move |_: Result<(), Errno>| dropped.send(()).unwrap());
        park.nudge();
        assert!(reply.recv().is_err(), "the reply is dropped without an answer");
        // A waiter whose thread is gone, and whose end panics.
        park.watch(1, u32::MAX, Arc::new(|| panic!("of a test")));
        let (answer, answered) = mpsc::channel();
        let last = |which| (which == Attempt::Last).then_some(Ok::<_, Errno>(7));
        park.until(last, move |come_to| answer.send(come_to).unwrap());
        assert_eq!(answered.recv_timeout(Duration::from_secs(20)).unwrap().unwrap(), 7);
        let (cancelled, told) = mpsc::channel();
        park.watch(2, u32::MAX, Arc::new(move || cancelled.send(()).is_ok()));
        told.recv_timeout(Duration::from_secs(20)).unwrap();
        park.stop();
    }

    #[test]
    fn a_request_that_the_disk_holds_up_does_not_hold_up_the_others() {
        let park = Arc::new(Park::new(Arc::default()));
        park.start().unwrap();
        let ((begun, begins), (end, ended)) = (mpsc::channel(), mpsc::channel::<()>());
        let mut tries = 0;
        let slow = move |_| {
            tries += 1;
            (tries > 1).then(|| {
                begun.send(()).unwrap();
                ended.recv().unwrap_err();
                Ok::<_, Errno>(())
            })
        };
        park.until(slow, |_| ());
        begins.recv_timeout(Duration::from_secs(20)).unwrap();
        let (answer, answered) = mpsc::channel();
        let last = |which| (which == Attempt::Last).then_some(Ok::<_, Errno>(7));
        park.until(last, move |come_to| answer.send(come_to).unwrap());
        assert_eq!(answered.recv_timeout(Duration::from_secs(20)).unwrap().unwrap(), 7);
        drop(end);
        park.stop();
    }

    #[test]
    fn a_signal_that_comes_before_the_wait_ends_it_all_the_same() {
        let park = Arc::new(Park::new(Arc::default()));
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
        let park = Arc::new(Park { is_signalled: look, ..Park::new(Arc::default()) });
        park.start().unwrap();
        park.watch(1, 7, Arc::new(|| panic!("it has its answer")));
        looks.recv_timeout(Duration::from_secs(20)).unwrap();
        // Takes the lock, as the workers do.
        park.nudge();
        park.unwatch(1);
        end.send(()).expect("the look had to end for the lock to be free");
        park.stop();
    }
}
