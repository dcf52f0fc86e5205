//! `CHANGE_NOTIFY`: a request that waits until its directory is closed, by its client or by force,
//! or until it is cancelled.
//!
//! Decides nothing about changes: none are told, since most come from other faces. A client that is
//! told of no change lists the directory again when its user asks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::oneshot;

use super::{Answer, Call, Wait};
use crate::file::service::Share;
use crate::file::smb::status::Status;
use crate::file::smb::wire::directory::NotifyRequest;
use crate::rules::HandleId;

/// The waiting requests of all connections.
#[derive(Default)]
pub struct Notifies(Arc<Mutex<NotifyTable>>);

#[derive(Default)]
struct NotifyTable {
    /// By share and handle.
    waiting: HashMap<(usize, HandleId), Vec<oneshot::Sender<Status>>>,
    /// The shares whose forced closes are told here.
    shares: Vec<Weak<Share>>,
}

impl Notifies {
    /// The handle was closed: its requests are answered.
    pub fn end(&self, share: &Arc<Share>, handle: HandleId) {
        end(&self.0, key(share), handle, Status::NOTIFY_CLEANUP);
    }

    /// Waits for the end of a handle.
    fn wait(&self, share: &Arc<Share>, handle: HandleId) -> oneshot::Receiver<Status> {
        let (sender, ended) = oneshot::channel();
        let mut table = lock(&self.0);
        table.waiting.entry((key(share), handle)).or_default().push(sender);
        table.shares.retain(|known| known.strong_count() > 0);
        let is_known = table.shares.iter().any(|known| known.as_ptr() == Arc::as_ptr(share));
        if !is_known {
            table.shares.push(Arc::downgrade(share));
        }
        drop(table);
        if !is_known {
            let (table, of) = (Arc::downgrade(&self.0), key(share));
            let told = share.on_force_close(move |closed| {
                if let Some(table) = table.upgrade() {
                    end(&table, of, closed.id, Status::NOTIFY_CLEANUP);
                }
                Ok(Vec::new())
            });
            if let Err(error) = told {
                log::warn!("share {}: forced closes end no notification: {error}", share.name());
            }
        }
        ended
    }
}

/// A share, for as long as a handle of it is open.
fn key(share: &Arc<Share>) -> usize {
    Arc::as_ptr(share).addr()
}

fn end(table: &Mutex<NotifyTable>, share: usize, handle: HandleId, status: Status) {
    let waiting = lock(table).waiting.remove(&(share, handle));
    for sender in waiting.into_iter().flatten() {
        // The receiver is gone only with the connection.
        let _ = sender.send(status);
    }
}

fn lock(table: &Mutex<NotifyTable>) -> MutexGuard<'_, NotifyTable> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn notify(call: &Call) -> Result<Wait, Status> {
    NotifyRequest::parse(&call.message)?;
    let file = call.file()?;
    if !file.directory {
        return Err(Status::INVALID_PARAMETER);
    }
    let ended = call.connection.site.notifies.wait(&file.share, file.handle.id());
    let (cancel, cancelled) = oneshot::channel::<()>();
    let answer = async move {
        let status = tokio::select! {
            status = ended => status.unwrap_or(Status::NOTIFY_CLEANUP),
            _ = cancelled => Status::CANCELLED,
        };
        Answer::refused(status)
    };
    Ok(Wait { answer: Box::pin(answer), cancel: Box::new(move || drop(cancel)) })
}
