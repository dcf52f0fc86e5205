//! The steps of a save and of a replacement: points at which tests end the process, as `kill -9`
//! does. Nothing happens there otherwise.

#[cfg(not(test))]
pub(crate) const fn step() {}

#[cfg(test)]
pub(crate) use armed::{arm, step};

#[cfg(test)]
mod armed {
    use std::sync::atomic::{AtomicU64, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    /// Steps until the process ends; 0 if it does not.
    static LEFT: AtomicU64 = AtomicU64::new(0);

    /// The process ends at its `count`th step from now on.
    pub(crate) fn arm(count: u64) {
        LEFT.store(count, Ordering::SeqCst);
    }

    /// A step was taken.
    pub(crate) fn step() {
        let before = LEFT.load(Ordering::SeqCst);
        if before == 0 {
            return;
        }
        LEFT.store(before - 1, Ordering::SeqCst);
        if before == 1 {
            let _ = kill_process(getpid(), Signal::KILL);
            loop {
                std::thread::park();
            }
        }
    }
}
