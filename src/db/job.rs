//! A write request as the writer sees it: run the closure, learn the outcome, answer once.
//! When a request runs, and in which transaction, is decided in [`super::writer`].

use std::panic::{AssertUnwindSafe, catch_unwind};

use rusqlite::Connection;

use super::DbError;

/// What a write is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// It stores something. On a full disk it is refused while there is still space to delete.
    Store,
    /// It deletes something. On a full disk it runs again when there is room for it.
    Delete,
}

/// A write request of any result type.
pub(super) trait Job: Send {
    /// What the request is for.
    fn purpose(&self) -> Purpose;
    /// Runs the closure: once, but for a deletion, which may run again after its changes were
    /// rolled back. False: its changes have to be rolled back.
    fn run(&mut self, conn: &Connection) -> bool;
    /// Turns a success into an error: the changes were lost. An error of the closure stays.
    fn fail(&mut self, error: DbError);
    /// Tells the caller the outcome. Never before the commit.
    fn answer(self: Box<Self>);
}

/// A write request. If it is dropped without an answer, the caller is told `Closed`.
pub(super) struct Task<T, E, F, D>
where
    E: From<DbError>,
    D: FnOnce(Result<T, E>),
{
    purpose: Purpose,
    work: F,
    outcome: Option<Result<T, E>>,
    done: Option<D>,
}

impl<T, E, F, D> Task<T, E, F, D>
where
    E: From<DbError>,
    D: FnOnce(Result<T, E>),
{
    pub(super) fn new(purpose: Purpose, work: F, done: D) -> Self {
        Self { purpose, work, outcome: None, done: Some(done) }
    }

    fn tell(&mut self) {
        let Some(done) = self.done.take() else { return };
        let outcome = self.outcome.take().unwrap_or_else(|| Err(DbError::Closed.into()));
        // A callback that panics must not end the writer thread.
        if catch_unwind(AssertUnwindSafe(|| done(outcome))).is_err() {
            log::error!("the receiver of a write's outcome panicked");
        }
    }
}

impl<T, E, F, D> Job for Task<T, E, F, D>
where
    T: Send,
    E: From<DbError> + Send,
    F: FnMut(&Connection) -> Result<T, E> + Send,
    D: FnOnce(Result<T, E>) + Send,
{
    fn purpose(&self) -> Purpose {
        self.purpose
    }

    fn run(&mut self, conn: &Connection) -> bool {
        let outcome = caught(|| (self.work)(conn));
        let keep = outcome.is_ok();
        self.outcome = Some(outcome);
        keep
    }

    fn fail(&mut self, error: DbError) {
        if !matches!(self.outcome, Some(Err(_))) {
            self.outcome = Some(Err(error.into()));
        }
    }

    fn answer(mut self: Box<Self>) {
        self.tell();
    }
}

impl<T, E, F, D> Drop for Task<T, E, F, D>
where
    E: From<DbError>,
    D: FnOnce(Result<T, E>),
{
    fn drop(&mut self) {
        self.tell();
    }
}

/// Gives a change to the one run of its request.
pub(crate) fn once<C>(change: C) -> impl FnMut() -> C {
    let mut change = Some(change);
    move || change.take().expect("only a deletion runs again")
}

/// Runs a closure; a panic becomes an error.
pub(crate) fn caught<T, E: From<DbError>>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a panic without a text".to_owned());
        Err(DbError::Panicked(text).into())
    })
}
