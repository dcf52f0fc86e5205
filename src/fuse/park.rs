//! Requests that wait: for the release of a handle whose descriptor was closed, for a lock.
//!
//! RELEASE is asynchronous, so whoever comes right after `close(2)` could meet a conflict with a
//! handle that is already given up. Such a request is *parked*, for a bounded time, until the
//! release arrives; then it is decided (DESIGN section 4, "End of an open"). Handlers never block:
//! a parked request keeps its reply and is tried again by the thread here.
//!
//! The kernel library answers interrupts with "not supported", so a process that waits for a lock
//! could not even be killed: the same thread looks for pending signals of waiters.

use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How long a request waits for a release at most.
pub const PARK_MAX: Duration = Duration::from_millis(100);

/// How often the parked are tried again when nothing nudges them.
const TICK: Duration = Duration::from_millis(5);

/// How often waiters for locks are looked at for signals.
const SIGNAL_TICK: Duration = Duration::from_millis(50);

/// Tries again; told whether this is the last time, after which it must have answered. True once
/// it has.
type Attempt = Box<dyn FnMut(bool) -> bool + Send>;

/// Ends a wait for a lock from outside.
type Cancel = Box<dyn FnOnce() + Send>;

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
#[derive(Default)]
pub struct Park {
    inside: Mutex<Inside>,
    change: Condvar,
}

const POISON: &str = "parked requests do not panic";

impl Park {
    /// Starts the thread.
    pub fn start(self: &Arc<Self>) -> std::io::Result<()> {
        let park = Arc::clone(self);
        thread::Builder::new().name("latchfs-park".into()).spawn(move || park.run())?;
        Ok(())
    }

    /// Keeps a request that met a conflict, and tries it again.
    pub fn park(&self, attempt: Attempt) {
        let until = Instant::now() + PARK_MAX;
        self.inside.lock().expect(POISON).parked.push(Parked { until, attempt });
        self.change.notify_all();
    }

    /// Answers with what `attempt` comes to: now, or once it no longer says that it waits for a
    /// release. Told that this is the last time, it must have come to something.
    pub fn until<T: 'static>(
        &self,
        mut attempt: impl FnMut(bool) -> Option<T> + Send + 'static,
        answer: impl FnOnce(T) + Send + 'static,
    ) {
        if let Some(come_to) = attempt(false) {
            return answer(come_to);
        }
        let mut answer = Some(answer);
        self.park(Box::new(move |last| {
            let Some(come_to) = attempt(last) else { return false };
            let answer = answer.take().expect("a parked request is answered once");
            answer(come_to);
            true
        }));
    }

    /// Something was closed: try now. Wakes nobody while nothing is parked, since that would cost
    /// every close a change of threads; the mark stays, for a request that is being tried.
    pub fn nudge(&self) {
        let mut inside = self.inside.lock().expect(POISON);
        inside.nudged = true;
        if !inside.parked.is_empty() {
            self.change.notify_all();
        }
    }

    /// Looks after the waiter `number`, a request of thread `tid`: `cancel` is called when that
    /// thread is signalled or gone.
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

    fn run(&self) {
        let mut looked = Instant::now();
        loop {
            let (parked, stop) = self.next();
            let now = Instant::now();
            let mut left = Vec::new();
            for mut request in parked {
                if !(request.attempt)(stop || now >= request.until) {
                    left.push(request);
                }
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

    fn cancel_signalled(&self) {
        let gone: Vec<Waiter> = {
            let mut inside = self.inside.lock().expect(POISON);
            inside.waiters.extract_if(.., |waiter| is_signalled(waiter.tid)).collect()
        };
        for waiter in gone {
            (waiter.cancel)();
        }
    }
}

/// True if the thread has a signal pending that it neither blocks nor ignores, or is gone.
fn is_signalled(tid: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{tid}/status")) else { return true };
    let mask = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        u64::from_str_radix(line.trim(), 16).ok()
    };
    let pending = mask("SigPnd:").unwrap_or(0) | mask("ShdPnd:").unwrap_or(0);
    let deaf = mask("SigBlk:").unwrap_or(0) | mask("SigIgn:").unwrap_or(0);
    pending & !deaf != 0
}
