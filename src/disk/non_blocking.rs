//! Non-blocking mode for callers on a front end's thread: an operation that would wait returns
//! [`StoreError::WouldWait`] instead, while nothing was changed yet.
//!
//! Decides nothing about files. Which threads those are, and the mode itself, are in
//! [`crate::sync::front_end`].

use crate::disk::StoreError;
use crate::sync::front_end;

pub(crate) use crate::disk::{begin_change, check_may_free};

/// True if the caller cannot wait.
pub(crate) fn is_non_blocking() -> bool {
    front_end::is_non_blocking()
}

/// To be called before a step: an error if the operation has given up before, because all of it is
/// going to be repeated.
pub(crate) fn check_not_given_up() -> Result<(), StoreError> {
    if front_end::has_given_up() {
        return Err(StoreError::WouldWait);
    }
    Ok(())
}

/// To be called before a wait: an error if the caller cannot wait.
pub(crate) fn check_may_wait() -> Result<(), StoreError> {
    if front_end::gives_up() {
        return Err(StoreError::WouldWait);
    }
    Ok(())
}
