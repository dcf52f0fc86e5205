//! What services with rows share: a change goes into the writer's queue and is answered after its
//! commit, a look reads one committed state, and rows are held, replaced and saved as a whole.
//!
//! A service decides what a change does ([`ServiceMemory::begin`]), what it adds to the transaction
//! ([`ServiceMemory::finish`]), and what its commit changes in memory
//! ([`ServiceMemory::committed`]).

use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::counted::StoredCount;
use super::job::once;
use super::{Database, DbError, Purpose, Schema, SyncMode};
use crate::rules::Context;

/// The rows of a service, in transactions.
pub trait Store: Send + std::marker::Sync + 'static {
    /// The rows in a transaction that reads.
    type Read<'a>;
    /// The rows in a transaction of the writer.
    type Write<'a>;

    /// Reads one committed state, on any thread: a bounded number of rows on an event loop.
    fn read<T, E: From<DbError>>(
        &self,
        read: impl FnOnce(&Self::Read<'_>) -> Result<T, E>,
    ) -> Result<T, E>;

    /// Queues a change for the writer thread, which calls `done` after the commit. A deletion may
    /// run again on a full disk.
    fn submit<T: Send + 'static, E: From<DbError> + Send + 'static>(
        &self,
        purpose: Purpose,
        write: impl FnMut(&Self::Write<'_>) -> Result<T, E> + Send + 'static,
        done: impl FnOnce(Result<T, E>) + Send + 'static,
    );
}

/// The state of a service outside its database. It does not hold the store: a request may outlive
/// its caller on the writer's thread, which must not be the one that closes the database.
pub(crate) trait ServiceMemory: Send + std::marker::Sync + 'static {
    type Store: Store;
    type Error: From<DbError> + Send + 'static;
    /// A change under way, in the writer's transaction.
    type Change<'a>;
    /// What the commit of a change changes in memory.
    type Effects: Send + 'static;

    fn begin<'a>(
        &'a self,
        tx: &'a <Self::Store as Store>::Write<'_>,
        cx: &'a Context,
    ) -> Self::Change<'a>;

    /// Ends a change in its transaction.
    fn finish(&self, change: Self::Change<'_>) -> Result<Self::Effects, Self::Error>;

    fn committed(&self, effects: Self::Effects);
}

type ErrorOf<S> = <<S as DbService>::Memory as ServiceMemory>::Error;
type ChangeOf<'a, S> = <<S as DbService>::Memory as ServiceMemory>::Change<'a>;

/// A service whose rows are in a database.
pub(crate) trait DbService: Sized {
    type Memory: ServiceMemory;

    fn parts(&self) -> (&Arc<<Self::Memory as ServiceMemory>::Store>, &Arc<Self::Memory>);

    /// Makes a change. Answers after its commit; a caller that goes away does not undo it.
    async fn change<T, C>(&self, cx: &Context, change: C) -> Result<T, ErrorOf<Self>>
    where
        T: Send + 'static,
        C: FnOnce(&ChangeOf<'_, Self>) -> Result<T, ErrorOf<Self>> + Send + 'static,
    {
        let mut next = once(change);
        self.change_for(Purpose::Store, cx, move |tx| next()(tx)).await
    }

    /// As [`DbService::change`], for a change that deletes: it is made on a full disk too, and may
    /// run again there.
    async fn delete<T, C>(&self, cx: &Context, change: C) -> Result<T, ErrorOf<Self>>
    where
        T: Send + 'static,
        C: FnOnce(&ChangeOf<'_, Self>) -> Result<T, ErrorOf<Self>> + Clone + Send + 'static,
    {
        self.change_for(Purpose::Delete, cx, move |tx| change.clone()(tx)).await
    }

    async fn change_for<T, C>(
        &self,
        purpose: Purpose,
        cx: &Context,
        mut change: C,
    ) -> Result<T, ErrorOf<Self>>
    where
        T: Send + 'static,
        C: FnMut(&ChangeOf<'_, Self>) -> Result<T, ErrorOf<Self>> + Send + 'static,
    {
        let (send, answer) = oneshot::channel();
        {
            let cx = cx.clone();
            let (store, memory) = self.parts();
            let (inside, after) = (Arc::clone(memory), Arc::clone(memory));
            // A batch has several transactions.
            let noted = cx.noted.as_ref().map_or(0, |noted| noted.changes());
            let forget = move |cx: &Context| {
                if let Some(all) = &cx.noted {
                    all.keep_changes(noted);
                }
            };
            store.submit(
                purpose,
                move |tx| {
                    forget(&cx);
                    let begun = inside.begin(tx, &cx);
                    let done =
                        change(&begun).and_then(|answer| Ok((answer, inside.finish(begun)?)));
                    if done.is_err() {
                        forget(&cx);
                    }
                    done
                },
                move |done: Result<_, ErrorOf<Self>>| {
                    drop(send.send(done.map(|(answer, effects)| {
                        after.committed(effects);
                        answer
                    })));
                },
            );
        }
        answer.await.unwrap_or(Err(DbError::Closed.into()))
    }
}

/// Does `work` on a thread that may block. A panic there is an error of the caller's request.
pub(crate) async fn on_blocking_thread<T, E>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<DbError> + Send + 'static,
{
    let answer = tokio::task::spawn_blocking(work).await;
    answer.unwrap_or_else(|error| Err(DbError::Panicked(error.to_string()).into()))
}

/// The tables of a service, and their rows in a transaction.
pub trait Tables: Send + std::marker::Sync + 'static {
    const SCHEMA: Schema;
    /// The counter that never runs back.
    type Count: StoredCount;
    type Rows<'a>;

    fn rows(connection: &Connection) -> Self::Rows<'_>;
}

/// A database with the tables of one service.
pub struct RowStore<R> {
    database: Database,
    tables: PhantomData<R>,
}

impl<R: Tables> RowStore<R> {
    /// Opens the database file, made if missing.
    pub fn open(file: &Path, sync: SyncMode) -> Result<Self, DbError> {
        Ok(Self { database: Database::open(file, &R::SCHEMA, sync)?, tables: PhantomData })
    }

    /// Removes rows in one transaction, on a full disk too. Waits for the commit; not for an event
    /// loop.
    pub fn delete<T: Send + 'static, E: From<DbError> + Send + 'static>(
        &self,
        mut delete: impl FnMut(&R::Rows<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        self.database.write_for(Purpose::Delete, move |conn| delete(&R::rows(conn)))
    }

    /// The database itself, for its place and figures.
    pub fn database(&self) -> &Database {
        &self.database
    }
}

impl<R: Tables> Store for RowStore<R> {
    type Read<'a> = R::Rows<'a>;
    type Write<'a> = R::Rows<'a>;

    fn read<T, E: From<DbError>>(
        &self,
        read: impl FnOnce(&R::Rows<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.database.read(|conn| read(&R::rows(conn)))
    }

    fn submit<T: Send + 'static, E: From<DbError> + Send + 'static>(
        &self,
        purpose: Purpose,
        mut write: impl FnMut(&R::Rows<'_>) -> Result<T, E> + Send + 'static,
        done: impl FnOnce(Result<T, E>) + Send + 'static,
    ) {
        self.database.submit(purpose, move |conn| write(&R::rows(conn)), done);
    }
}
