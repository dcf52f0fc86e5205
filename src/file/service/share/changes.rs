//! Notices to front ends: of changes, for front ends that cache names and attributes, and of forced
//! closes, for front ends that hand out descriptors.
//!
//! Changes of bytes are not told: the mount reads the backing files themselves. Which handles are
//! closed by force is decided in `opens/force_close`.

use std::sync::Arc;

use super::Share;
use crate::file::rules::operation::{FileOperation, LeaseDemand};
use crate::file::rules::{Denial, SharePath};
use crate::file::service::error::Result;
use crate::file::service::opens::{ClosedHandle, Handle};
use crate::rules::HandleId;
use crate::sync::RwLock;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeNotice<'a> {
    /// Size, times or attributes of the file behind a name.
    Attributes(&'a SharePath),
    /// The name is gone, or leads to another file.
    Name(&'a SharePath),
    /// A file was closed, unlocked or unmarked: a request that was refused because of handles
    /// that are being released may be asked again.
    Released,
    /// The request is about to be answered. Listeners must drop their cached copies before they
    /// return, so that a reader who comes after the answer sees the change (S2). Never told from
    /// a handler of the mount, which could not wait.
    Answered,
}

/// Those who want to be told. The list is copied before they are called, with no lock held: one
/// may wait for a thread that itself calls or adds listeners.
type Listeners<F> = RwLock<Arc<[Arc<F>]>>;
type Observer = dyn Fn(ChangeNotice<'_>) + Send + Sync;
type CloseListener = dyn Fn(&ClosedHandle) -> Result<Vec<HandleId>> + Send + Sync;
pub(super) type Observers = Listeners<Observer>;
pub(super) type CloseListeners = Listeners<CloseListener>;

/// The most listeners to forced closes of a share: more than there are front ends.
pub const LISTENERS_MAX: usize = 16;

const POISON: &str = "nothing panics while a list of listeners is held";

impl Share {
    /// Has `observer` called after each change made by REST or by the end of an open,
    /// with no file's lock held. Changes that the mount itself makes to names and attributes are
    /// not reported.
    pub fn on_change(&self, observer: impl Fn(ChangeNotice<'_>) + Send + Sync + 'static) {
        let mut told = self.observers.write().expect(POISON);
        let new: Arc<Observer> = Arc::new(observer);
        *told = told.iter().cloned().chain([new]).collect();
    }

    pub(crate) fn tell(&self, change: ChangeNotice<'_>) {
        let told = Arc::clone(&self.observers.read().expect(POISON));
        told.iter().for_each(|observer| observer(change));
    }

    /// To be called by a front end that changed the handle's file.
    pub fn tell_changed(&self, handle: &Handle) {
        if let Ok(path) = self.path_of(handle) {
            self.tell(ChangeNotice::Attributes(&path));
        }
    }

    /// Has `listener` called after each forced close, from the thread that closed, with no lock
    /// held. It says which other handles of the file end with that one, because it cannot tell
    /// them apart; they are closed too, and counted. An error says that the handle's descriptor
    /// still works: the close then counts as failed. Refused past [`LISTENERS_MAX`].
    pub fn on_force_close(
        &self,
        listener: impl Fn(&ClosedHandle) -> Result<Vec<HandleId>> + Send + Sync + 'static,
    ) -> Result<()> {
        let mut listeners = self.listeners.write().expect(POISON);
        if listeners.len() == LISTENERS_MAX {
            return Err(Denial::InvalidParameter("too many listeners to forced closes").into());
        }
        let new: Arc<CloseListener> = Arc::new(listener);
        *listeners = listeners.iter().cloned().chain([new]).collect();
        Ok(())
    }

    /// Notifies all listeners of a forced close; returns the handles that end with it.
    pub(crate) fn tell_force_closed(&self, closed: &ClosedHandle) -> Result<Vec<HandleId>> {
        let listeners = Arc::clone(&self.listeners.read().expect(POISON));
        let told: Vec<_> = listeners.iter().map(|listener| listener(closed)).collect();
        let ended: Result<Vec<_>> = told.into_iter().collect();
        Ok(ended?.concat())
    }

    /// An operation of REST was carried out on `path`.
    pub(crate) fn tell_done(&self, operation: FileOperation, path: &SharePath) {
        match operation {
            FileOperation::DeleteFile | FileOperation::DeleteDirectory => {
                self.tell(ChangeNotice::Name(path));
            }
            // Everything else that needs the lease to write, or write access, leaves a mark.
            _ if operation.demands().lease == LeaseDemand::Write
                || matches!(
                    operation,
                    FileOperation::SetDirectoryProperties | FileOperation::SetDirectoryMetadata
                ) =>
            {
                self.tell(ChangeNotice::Attributes(path));
            }
            _ => {}
        }
    }
}
