//! All rows of one moment, copied to a file of their own.
//!
//! Decides how a moment is held (a read transaction) and how rows are copied. Which databases are
//! copied at one moment is decided in `bench/states`, which holds their writers meanwhile.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;

use super::connection::{create_copy, open_copier};
use super::error::Naming;
use super::held::{tables, text_of};
use super::{DbError, Schema};

/// A copy that is being made.
pub struct Copy {
    file: Arc<Path>,
    to: PathBuf,
    connection: Connection,
}

impl Copy {
    pub(super) fn prepare(file: Arc<Path>, schema: &Schema, to: &Path) -> Result<Self, DbError> {
        let text = text_of(to)?;
        create_copy(to, schema)?;
        let connection = open_copier(&file)?;
        connection.execute("ATTACH ?1 AS copy", [text])?;
        connection.pragma_update(Some("copy"), "journal_mode", "OFF")?;
        connection.pragma_update(Some("copy"), "synchronous", "OFF")?;
        Ok(Self { file, to: to.to_owned(), connection })
    }

    /// The copy holds the rows of this moment.
    pub fn begin(&self) -> Result<(), DbError> {
        let _naming = Naming::file(&self.file);
        self.connection.execute_batch("BEGIN")?;
        // The first read fixes the moment.
        let mut read = self.connection.prepare("SELECT 1 FROM main.sqlite_schema LIMIT 1")?;
        read.exists([])?;
        Ok(())
    }

    /// Copies the rows, and looks at the copy with `look`, as the tables of the schema `copy`.
    pub(crate) fn finish<T>(
        self,
        look: impl FnOnce(&Connection) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        // A disk that is too small for the copy is the copy's.
        let _naming = Naming::file(&Arc::from(&*self.to));
        for table in tables(&self.connection, &[])? {
            self.connection.execute(
                &format!("INSERT INTO copy.\"{table}\" SELECT * FROM main.\"{table}\""),
                [],
            )?;
        }
        let seen = look(&self.connection)?;
        self.connection.execute_batch("COMMIT; DETACH copy")?;
        Ok(seen)
    }
}

impl std::fmt::Debug for Copy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Copy").field("to", &self.to).finish_non_exhaustive()
    }
}
