//! The first use of a service opens it, on a thread that may block: no event loop waits for a
//! database.

use std::sync::Arc;

use super::refusal::Refusal;
use super::service::Service;
use crate::http::blocking::{Undone, on_a_thread};
use crate::http::limits::Limits;
use crate::server::Account;

/// Opens the service of an account, if it is not open yet.
pub async fn open(
    service: &Service,
    account: &Arc<Account>,
    limits: &Limits,
) -> Result<(), Refusal> {
    if (service.is_open)(account) {
        return Ok(());
    }
    let (open, account) = (service.open, Arc::clone(account));
    match on_a_thread(limits.thread_wait, move || open(&account)).await {
        Ok(opened) => opened,
        Err(Undone::NoThread) => Err(Refusal::busy("all threads are busy; nothing was done")),
        Err(Undone::Panicked) => Err(Refusal::internal("opening the service ended badly")),
    }
}

/// The refusal of a request to a service that is not open, which [`open`] has opened before.
pub fn not_open() -> Refusal {
    Refusal::busy("the service is being closed")
}
