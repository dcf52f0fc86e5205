//! Database work of callers on an event loop that may block: the threads for it.

use crate::db::DbError;

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
