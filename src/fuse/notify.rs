//! Invalidates names and attributes in the kernel's caches, from a thread of its own.
//!
//! The invalidation of a name takes the kernel's lock of the directory, which a request that waits
//! for latchfs may hold: it must never be sent from a request handler. The invalidation of
//! attributes takes no such lock and may be sent from anywhere.

use std::ffi::OsStr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

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
    /// Opens the channel.
    pub fn start(&self, notifier: Notifier, backings: Arc<Backings>) -> std::io::Result<()> {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let to_kernel = notifier.clone();
        thread::Builder::new()
            .name("latchfs-notify".into())
            .spawn(move || run(&receiver, &to_kernel, &backings))?;
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

fn run(notices: &Receiver<Notice>, kernel: &Notifier, backings: &Backings) {
    let mut kept = false;
    loop {
        let next = if kept {
            notices.recv_timeout(KEPT_FOR)
        } else {
            notices.recv().map_err(|_| RecvTimeoutError::Disconnected)
        };
        match next {
            // ENOENT: the kernel does not know the name any more, which is what we want.
            Ok(Notice::Name(Stale { parent, name, .. })) => {
                drop(kernel.inval_entry(INodeNo(parent), OsStr::new(&name)));
            }
            Ok(Notice::Sweep) => kept = true,
            // Nobody may be waiting any more.
            Ok(Notice::Passed(waiting)) => drop(waiting.try_send(())),
            Err(RecvTimeoutError::Timeout) => kept = backings.sweep(),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
