//! Callers who cannot wait: on their thread others are served too.
//!
//! Decides nothing about files. Whoever is about to wait, for a release or for the disk, asks here
//! first, while nothing was done yet; in haste the operation ends there, and its caller does it
//! anew where it may wait.

use std::cell::Cell;

use crate::store::StoreError;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Haste {
    None,
    Hasty,
    /// An operation has ended because it would have had to wait.
    GaveUp,
}

thread_local! {
    static HASTE: Cell<Haste> = const { Cell::new(Haste::None) };
}

/// Ends the haste of a thread, also when what it did panicked.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        HASTE.set(Haste::None);
    }
}

/// Does `ask` if that takes no waiting. None if it would: then nothing was done or noted, and it is
/// to be done on a thread that may wait.
pub fn without_waiting<T>(ask: impl FnOnce() -> T) -> Option<T> {
    HASTE.set(Haste::Hasty);
    let _end = End;
    let answer = ask();
    (HASTE.get() != Haste::GaveUp).then_some(answer)
}

/// True if the caller cannot wait.
pub(super) fn is_hasty() -> bool {
    HASTE.get() != Haste::None
}

/// For whoever is about to wait: an error if the caller cannot.
pub(super) fn check_may_wait() -> Result<(), StoreError> {
    if is_hasty() {
        HASTE.set(Haste::GaveUp);
        return Err(StoreError::WouldWait);
    }
    Ok(())
}
