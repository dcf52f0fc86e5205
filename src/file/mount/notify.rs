//! Invalidates names and attributes in the kernel's caches, from a thread of its own.
//!
//! The invalidation of a name takes the kernel's lock of the directory, which a request that waits
//! for latchfs may hold: it must never be sent from a request handler. The invalidation of
//! attributes takes no such lock and may be sent from anywhere.

use std::ffi::OsStr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use fuser::{INodeNo, Notifier};

use super::attr::TTL;
use super::backings::{Backings, KEPT_FOR};
use super::nodes::Stale;

/// The most notices that wait. Beyond it, names are left to expire by their lifetime.
const WAITING_MAX: usize = 65_536;

/// The longest wait for the kernel to forget names: by then their lifetime is over.
const FORGOTTEN_MAX: Duration = TTL;

/// The channel to the kernel's caches; closed until the mount is up.
#[derive(Debug, Default)]
pub struct Notices {
    open: OnceLock<(Notifier, SyncSender<Notice>)>,
}

/// A message to the thread.
#[derive(Debug)]
enum Notice {
    /// The kernel is to forget a name.
    Name(Stale),
    /// Registrations are kept that must be dropped, also if nothing else happens.
    Sweep,
    /// Somebody waits for the notices before this one.
    Passed(SyncSender<()>),
}

impl Notices {
    pub fn start(&self, notifier: Notifier, backings: Arc<Backings>) -> std::io::Result<()> {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let to_kernel = notifier.clone();
        thread::Builder::new().name("latchfs-notify".into()).spawn(move || {
            // ENOENT: the kernel does not know the name any more, which is what we want.
            let forget = |name: &Stale| {
                drop(to_kernel.inval_entry(INodeNo(name.parent), OsStr::new(&name.name)));
            };
            run(&receiver, forget, KEPT_FOR, || backings.sweep(Instant::now()));
        })?;
        // A second start would be a second mount of one driver, which nobody makes.
        drop(self.open.set((notifier, sender)));
        Ok(())
    }

    /// Registrations are kept from now on.
    pub fn sweep_later(&self) {
        if let Some((_, sender)) = self.open.get() {
            // If there are that many notices, opens will sweep.
            drop(sender.try_send(Notice::Sweep));
        }
    }

    /// The kernel forgets what it knows of a node's attributes, now.
    pub fn attributes(&self, node: u64) {
        if let Some((notifier, _)) = self.open.get() {
            drop(notifier.inval_inode(INodeNo(node), -1, 0));
        }
    }

    /// Invalidates the attributes of the nodes of these names.
    pub fn attributes_of(&self, names: &[Stale]) {
        for name in names {
            self.attributes(name.node);
        }
    }

    /// The kernel forgets a name, now. Not from a handler.
    pub fn name_now(&self, stale: &Stale) {
        if let Some((notifier, _)) = self.open.get() {
            drop(notifier.inval_entry(INodeNo(stale.parent), OsStr::new(&stale.name)));
        }
    }

    /// Returns when the kernel has forgotten the names it was to forget. Not from a handler.
    pub fn wait_for_names(&self) {
        let Some((_, sender)) = self.open.get() else { return };
        let (passed, wait) = sync_channel(1);
        // If there are that many notices, the names are left to their time to live.
        if sender.try_send(Notice::Passed(passed)).is_ok()
            && wait.recv_timeout(FORGOTTEN_MAX) == Err(RecvTimeoutError::Timeout)
        {
            log::warn!("the kernel takes long to forget a name: it stays up to 1 s");
        }
    }

    /// The kernel forgets these names and their nodes' attributes, soon.
    pub fn names(&self, stale: impl IntoIterator<Item = Stale>) {
        let Some((_, sender)) = self.open.get() else { return };
        for name in stale {
            self.attributes(name.node);
            if let Err(TrySendError::Full(Notice::Name(name))) = sender.try_send(Notice::Name(name))
            {
                log::warn!("too many names to forget at once: {} stays up to 1 s", name.name);
            }
        }
    }
}

/// Carries out notices until the senders are gone. While registrations are kept, `sweep` is called
/// once in `period`, however many notices come; it returns whether some are still kept.
fn run(
    notices: &Receiver<Notice>,
    forget: impl Fn(&Stale),
    period: Duration,
    sweep: impl Fn() -> bool,
) {
    let mut next_sweep: Option<Instant> = None;
    loop {
        let next = match next_sweep {
            Some(at) => notices.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => notices.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok(Notice::Name(name)) => forget(&name),
            Ok(Notice::Sweep) => {
                next_sweep.get_or_insert_with(|| Instant::now() + period);
            }
            // Nobody may be waiting any more.
            Ok(Notice::Passed(waiting)) => drop(waiting.try_send(())),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if next_sweep.is_some_and(|at| at <= Instant::now()) {
            next_sweep = sweep().then(|| Instant::now() + period);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn registrations_are_swept_while_notices_come_without_a_pause() {
        let (sender, receiver) = sync_channel(1);
        let sweeps = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&sweeps);
        let thread = thread::spawn(move || {
            let sweep = || counted.fetch_add(1, Ordering::Relaxed) < 2;
            run(&receiver, |_| {}, Duration::from_millis(5), sweep);
        });
        sender.send(Notice::Sweep).unwrap();
        let end = Instant::now() + Duration::from_secs(30);
        while sweeps.load(Ordering::Relaxed) < 3 {
            assert!(Instant::now() < end, "{} sweeps", sweeps.load(Ordering::Relaxed));
            sender.send(Notice::Name(Stale { node: 2, parent: 1, name: "f".into() })).unwrap();
        }
        // None is kept any more: nothing is swept until the next one is.
        let (passed, wait) = sync_channel(1);
        sender.send(Notice::Passed(passed)).unwrap();
        wait.recv().unwrap();
        drop(sender);
        thread.join().unwrap();
        assert_eq!(sweeps.load(Ordering::Relaxed), 3);
    }
}
