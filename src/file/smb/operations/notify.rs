//! `CHANGE_NOTIFY`: a request that waits until its directory is closed, by its client or by force,
//! until it is cancelled, or until something below the directory changes.
//!
//! Decides that a client is told to list the directory again, not what has changed. Changes that
//! programs make on a mount are told by nobody.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::oneshot;

use super::{Answer, Call, Wait};
use crate::file::rules::SharePath;
use crate::file::service::{ChangeNotice, Share};
use crate::file::smb::status::Status;
use crate::file::smb::wire::directory::{NotifyRequest, buffer_answer};
use crate::rules::HandleId;

/// The waiting requests of all connections.
#[derive(Default)]
pub struct Notifies(Arc<Mutex<NotifyTable>>);

#[derive(Default)]
struct NotifyTable {
    waiting: Vec<Waiting>,
    /// The shares whose changes and forced closes are told here.
    shares: Vec<Weak<Share>>,
}

/// A directory that a client waits for.
struct Waiting {
    share: usize,
    handle: HandleId,
    directory: SharePath,
    recursive: bool,
    answer: oneshot::Sender<Status>,
}

impl Notifies {
    /// The handle was closed: its requests are answered.
    pub fn end(&self, share: &Arc<Share>, handle: HandleId) {
        end(&self.0, key(share), handle);
    }

    fn wait(&self, share: &Arc<Share>, waiting: Waiting) {
        let mut table = lock(&self.0);
        table.waiting.retain(|one| !one.answer.is_closed());
        table.waiting.push(waiting);
        table.shares.retain(|known| known.strong_count() > 0);
        if table.shares.iter().any(|known| known.as_ptr() == Arc::as_ptr(share)) {
            return;
        }
        table.shares.push(Arc::downgrade(share));
        drop(table);
        let (of, told) = (key(share), Arc::downgrade(&self.0));
        share.on_change(move |notice| {
            if let (ChangeNotice::Name(path) | ChangeNotice::Attributes(path), Some(table)) =
                (notice, told.upgrade())
            {
                changed(&table, of, path);
            }
        });
        let told = Arc::downgrade(&self.0);
        let listening = share.on_force_close(move |closed| {
            if let Some(table) = told.upgrade() {
                end(&table, of, closed.id);
            }
            Ok(Vec::new())
        });
        if let Err(error) = listening {
            log::warn!("share {}: forced closes end no notification: {error}", share.name());
        }
    }
}

/// A share, for as long as a handle of it is open.
fn key(share: &Arc<Share>) -> usize {
    Arc::as_ptr(share).addr()
}

fn end(table: &Mutex<NotifyTable>, share: usize, handle: HandleId) {
    let is_its = |one: &mut Waiting| one.share == share && one.handle == handle;
    answer(lock(table).waiting.extract_if(.., is_its), Status::NOTIFY_CLEANUP);
}

/// Something has happened to the file of that path.
fn changed(table: &Mutex<NotifyTable>, share: usize, path: &SharePath) {
    let sees = |one: &mut Waiting| {
        let is_in = path.parent().is_some_and(|parent| parent == one.directory);
        one.share == share && (is_in || one.recursive && path.is_below(&one.directory))
    };
    answer(lock(table).waiting.extract_if(.., sees), Status::NOTIFY_ENUM_DIR);
}

fn answer(waiting: impl Iterator<Item = Waiting>, status: Status) {
    for one in waiting {
        // The receiver is gone only with the request.
        let _ = one.answer.send(status);
    }
}

fn lock(table: &Mutex<NotifyTable>) -> MutexGuard<'_, NotifyTable> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn notify(call: &Call) -> Result<Wait, Status> {
    let request = NotifyRequest::parse(&call.message)?;
    let file = call.file()?;
    if !file.directory {
        return Err(Status::INVALID_PARAMETER);
    }
    let directory = file.share.path_of(&file.handle)?;
    let (answer, ended) = oneshot::channel();
    let (share, handle) = (key(&file.share), file.handle.id());
    let waiting = Waiting { share, handle, directory, recursive: request.recursive, answer };
    call.connection.site.notifies.wait(&file.share, waiting);
    let (cancel, cancelled) = oneshot::channel::<()>();
    let answer = async move {
        let status = tokio::select! {
            status = ended => status.unwrap_or(Status::NOTIFY_CLEANUP),
            _ = cancelled => return Answer::refused(Status::CANCELLED),
        };
        Answer { status, ..Answer::of(buffer_answer(&[])) }
    };
    Ok(Wait { answer: Box::pin(answer), cancel: Box::new(move || drop(cancel)) })
}
