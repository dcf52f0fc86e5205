//! What changed beside the mount: told to those who keep copies of names and attributes.
//!
//! Bytes need no word: the mount reads the backing files themselves.

use std::fmt;

use super::share::Share;
use crate::core::SharePath;
use crate::core::operation::{LeaseDemand, Operation};
use crate::sync::{AtomicU64, Ordering, RwLock};

/// What is no longer as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change<'a> {
    /// Size, times or attributes of the file behind a name.
    Attributes(&'a SharePath),
    /// The name is gone, or stands for another file.
    Name(&'a SharePath),
    /// The request is about to be answered: whoever keeps copies returns when those he was told of
    /// are gone (S2). Never told from a handler of the mount, which could not wait.
    Answered,
}

type Observer = Box<dyn Fn(Change<'_>) + Send + Sync>;

/// Those who are told.
#[derive(Default)]
pub(super) struct Observers {
    told: RwLock<Vec<Observer>>,
    /// How many; read without a lock by everybody who changes something.
    count: AtomicU64,
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observers")
    }
}

const POISON: &str = "observers do not panic";

impl Share {
    /// Has `observer` called after each change made by REST, by a script or by the end of an open,
    /// with no file's lock held. Changes through the mount itself are the mount's to know.
    pub fn on_change(&self, observer: impl Fn(Change<'_>) + Send + Sync + 'static) {
        let mut told = self.observers.told.write().expect(POISON);
        told.push(Box::new(observer));
        self.observers.count.store(told.len() as u64, Ordering::Release);
    }

    pub(super) fn tell(&self, change: Change<'_>) {
        if self.observers.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let told = self.observers.told.read().expect(POISON);
        told.iter().for_each(|observer| observer(change));
    }

    /// An operation of REST was carried out on `path`.
    pub(super) fn tell_done(&self, operation: Operation, path: &SharePath) {
        match operation {
            Operation::DeleteFile | Operation::DeleteDirectory => self.tell(Change::Name(path)),
            // Everything else that needs the lease to write, or write access, leaves a mark.
            _ if operation.demands().lease == LeaseDemand::Write
                || matches!(
                    operation,
                    Operation::SetDirectoryProperties | Operation::SetDirectoryMetadata
                ) =>
            {
                self.tell(Change::Attributes(path));
            }
            _ => {}
        }
    }
}
