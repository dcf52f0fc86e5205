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

use super::blocking::on_blocking_thread;
use super::counted::{HeldRows, SavedRows, StoredCount};
use super::job::again;
use super::{Database, DbError, Purpose, Schema, SyncMode};
use crate::rules::Context;

/// The rows of a service, in transactions.
pub trait Store: Send + std::marker::Sync + 'static {
    /// The rows in a transaction that reads.
    type Read<'a>;
    /// The rows in a transaction of the writer.
    type Write<'a>;

    /// Reads one committed state. Waits for a connection; not for an event loop.
    fn read<T, E: From<DbError>>(
        &self,
        read: impl FnOnce(&Self::Read<'_>) -> Result<T, E>,
    ) -> Result<T, E>;

    /// As [`Store::read`], for event loops; `None` if no connection is free.
    fn try_read<T, E: From<DbError>>(
        &self,
        read: impl FnOnce(&Self::Read<'_>) -> Result<T, E>,
    ) -> Option<Result<T, E>>;

    /// Runs a change up to its first write. See [`Database::rehearse`].
    fn rehearse<T, E: From<DbError>>(
        &self,
        write: impl FnOnce(&Self::Write<'_>) -> Result<T, E>,
    ) -> Result<(), E>;

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

    /// Begins a change. `rehearsal`: it is checked, and nothing is written.
    fn begin<'a>(
        &'a self,
        tx: &'a <Self::Store as Store>::Write<'_>,
        cx: &'a Context,
        rehearsal: bool,
    ) -> Self::Change<'a>;

    /// Ends a change in its transaction.
    fn finish(&self, change: Self::Change<'_>) -> Result<Self::Effects, Self::Error>;

    fn committed(&self, effects: Self::Effects);
}

type ErrorOf<S> = <<S as DbService>::Memory as ServiceMemory>::Error;
type ChangeOf<'a, S> = <<S as DbService>::Memory as ServiceMemory>::Change<'a>;
type ReadOf<'a, S> = <<<S as DbService>::Memory as ServiceMemory>::Store as Store>::Read<'a>;

/// A service whose rows are in a database.
pub(crate) trait DbService: Sized {
    type Memory: ServiceMemory;

    fn parts(&self) -> (&Arc<<Self::Memory as ServiceMemory>::Store>, &Arc<Self::Memory>);

    /// Makes a change. Answers after its commit; a caller that goes away does not undo it.
    async fn change<T, C>(&self, cx: &Context, change: C) -> Result<T, ErrorOf<Self>>
    where
        T: Send + 'static,
        C: FnOnce(&ChangeOf<'_, Self>) -> Result<T, ErrorOf<Self>> + Clone + Send + 'static,
    {
        self.change_for(Purpose::Store, cx, change).await
    }

    /// As [`DbService::change`], for a change that deletes: it is made on a full disk too.
    async fn delete<T, C>(&self, cx: &Context, change: C) -> Result<T, ErrorOf<Self>>
    where
        T: Send + 'static,
        C: FnOnce(&ChangeOf<'_, Self>) -> Result<T, ErrorOf<Self>> + Clone + Send + 'static,
    {
        self.change_for(Purpose::Delete, cx, change).await
    }

    async fn change_for<T, C>(
        &self,
        purpose: Purpose,
        cx: &Context,
        change: C,
    ) -> Result<T, ErrorOf<Self>>
    where
        T: Send + 'static,
        C: FnOnce(&ChangeOf<'_, Self>) -> Result<T, ErrorOf<Self>> + Clone + Send + 'static,
    {
        let cx = self.stopped(cx, &change).await?;
        self.carry_out(purpose, cx, again(purpose, change)).await
    }

    /// Makes the stop that a change has ahead: checks the change in a read transaction, and keeps
    /// it at its gate if the check holds. Returns the circumstances under which it goes on.
    async fn stopped<T, C>(&self, cx: &Context, change: &C) -> Result<Context, ErrorOf<Self>>
    where
        T: Send + 'static,
        C: FnOnce(&ChangeOf<'_, Self>) -> Result<T, ErrorOf<Self>> + Clone + Send + 'static,
    {
        let Some(stop) = cx.due_stop() else { return Ok(cx.clone()) };
        let (store, memory) = self.parts();
        let (store, memory) = (Arc::clone(store), Arc::clone(memory));
        let (change, asked) = (change.clone(), cx.clone());
        on_blocking_thread(move || store.rehearse(|tx| change(&memory.begin(tx, &asked, true))))
            .await?;
        Ok(Context { now: stop.pass().await, ..cx.clone() })
    }

    /// Makes a change that has no stop ahead. `next` gives the change, again for a deletion.
    async fn carry_out<T, C>(
        &self,
        purpose: Purpose,
        cx: Context,
        mut next: impl FnMut() -> C + Send + 'static,
    ) -> Result<T, ErrorOf<Self>>
    where
        T: Send + 'static,
        C: FnOnce(&ChangeOf<'_, Self>) -> Result<T, ErrorOf<Self>>,
    {
        let (send, answer) = oneshot::channel();
        {
            let (store, memory) = self.parts();
            let (inside, after) = (Arc::clone(memory), Arc::clone(memory));
            store.submit(
                purpose,
                move |tx| {
                    let change = inside.begin(tx, &cx, false);
                    let answer = next()(&change)?;
                    Ok((answer, inside.finish(change)?))
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

    /// Reads a bounded number of rows: at once if a connection is free, else on another thread.
    /// Never on the writer's thread: a look must not wait for writes, nor be refused with them on a
    /// full disk.
    async fn look_at<T: Send + 'static>(
        &self,
        look: impl Fn(&ReadOf<'_, Self>) -> Result<T, ErrorOf<Self>> + Send + 'static,
    ) -> Result<T, ErrorOf<Self>> {
        let tried = self.parts().0.try_read(&look);
        match tried {
            Some(answer) => answer,
            None => self.look_elsewhere_at(look).await,
        }
    }

    /// Reads on a thread that may block.
    async fn look_elsewhere_at<T: Send + 'static>(
        &self,
        look: impl FnOnce(&ReadOf<'_, Self>) -> Result<T, ErrorOf<Self>> + Send + 'static,
    ) -> Result<T, ErrorOf<Self>> {
        let store = Arc::clone(self.parts().0);
        on_blocking_thread(move || store.read(look)).await
    }
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

    /// Holds the writer: requests that write wait until the value is dropped.
    pub fn hold(&self) -> HeldRows<'_, R::Count> {
        HeldRows::new(&self.database)
    }

    /// Prepares to save all rows in `folder`.
    pub fn save(&self, folder: &Path) -> Result<SavedRows<R::Count>, DbError> {
        SavedRows::new(&self.database, folder)
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

    fn try_read<T, E: From<DbError>>(
        &self,
        read: impl FnOnce(&R::Rows<'_>) -> Result<T, E>,
    ) -> Option<Result<T, E>> {
        self.database.try_read(|conn| read(&R::rows(conn)))
    }

    fn rehearse<T, E: From<DbError>>(
        &self,
        write: impl FnOnce(&R::Rows<'_>) -> Result<T, E>,
    ) -> Result<(), E> {
        self.database.rehearse(|conn| write(&R::rows(conn)))
    }

    fn submit<T: Send + 'static, E: From<DbError> + Send + 'static>(
        &self,
        purpose: Purpose,
        mut write: impl FnMut(&R::Rows<'_>) -> Result<T, E> + Send + 'static,
        done: impl FnOnce(Result<T, E>) + Send + 'static,
    ) {
        self.database.submit_for(purpose, move |conn| write(&R::rows(conn)), done);
    }
}
