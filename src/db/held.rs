//! All rows at once: replaced by none or by those of a saved database while the writer is held
//! still ([`HeldWriter`]), or those of one moment copied to a file of their own ([`Copy`]).
//!
//! Decides how whole tables are replaced and copied in one transaction. Which tables keep their
//! rows (those with counters) is decided by the services' stores; which databases are held at one
//! moment, by `bench/states`.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard};

use rusqlite::Connection;

use super::connection::{create_copy, open_copier};
use super::error::Naming;
use super::version::Changing;
use super::writer::{Hold, Writer};
use super::{DbError, Schema, transaction};

/// The writer of a database, held. Requests wait until the value is dropped; a transaction that
/// was not committed is rolled back then.
pub struct HeldWriter<'a> {
    // Dropped in this order: a writer thread that waits for the connection begins a change of its
    // own as soon as it has it, and one that waits for the hold then locks the connection.
    _changing: Changing<'a>,
    connection: MutexGuard<'a, Connection>,
    _hold: Hold<'a>,
    writer: &'a Writer,
    file: Arc<Path>,
    /// The saved database that is attached.
    saved: OnceCell<Arc<Path>>,
}

impl<'a> HeldWriter<'a> {
    pub(super) fn new(writer: &'a Writer, file: Arc<Path>) -> Self {
        let (hold, connection) = writer.hold();
        Self {
            _changing: writer.versions.change(),
            connection,
            _hold: hold,
            writer,
            file,
            saved: OnceCell::new(),
        }
    }

    pub fn begin(&self) -> Result<(), DbError> {
        self.writer.check_place()?;
        let _naming = Naming::file(&self.file);
        transaction::begin(&self.connection, self.writer.tuning.busy_patience)
    }

    /// Runs `work` in the transaction.
    pub(crate) fn run<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let _naming = Naming::file(&self.file);
        work(&self.connection)
    }

    /// Removes all rows of all tables but those of `kept`.
    pub fn empty(&self, kept: &[&str]) -> Result<(), DbError> {
        self.run(|conn| {
            for table in tables(conn, kept)? {
                // Without a condition: SQLite frees the pages and looks at no row.
                conn.execute(&format!("DELETE FROM main.\"{table}\""), [])?;
            }
            Ok(())
        })
    }

    /// Attaches the saved database `file` as the schema `saved`. Before [`HeldWriter::begin`].
    pub fn attach(&self, file: &Path) -> Result<(), DbError> {
        let conn = &*self.connection;
        let numbers = |schema: &str| {
            let number = |pragma| conn.pragma_query_value(Some(schema), pragma, |row| row.get(0));
            Ok::<[i32; 2], DbError>([number("application_id")?, number("user_version")?])
        };
        let expected = self.run(|_| numbers("main"))?;
        let saved = self.saved.get_or_init(|| Arc::from(file));
        let _naming = Naming::file(saved);
        conn.execute("ATTACH ?1 AS saved", [text_of(file)?])?;
        if numbers("saved")? != expected {
            let why = "it was saved by another version of this program".to_owned();
            return Err(DbError::UnknownFormat { file: file.to_owned(), why });
        }
        Ok(())
    }

    /// The error of a restore with the file that is damaged: `SQLite` does not say which of the two
    /// databases is, so the saved one is checked.
    pub fn blame(&self, error: DbError) -> DbError {
        let (DbError::Damaged { why, .. }, Some(saved)) = (&error, self.saved.get()) else {
            return error;
        };
        let check = "PRAGMA saved.quick_check(1)";
        match self.connection.query_row(check, [], |row| row.get::<_, String>(0)) {
            Ok(found) if found == "ok" => error,
            _ => DbError::Damaged { file: saved.to_path_buf(), why: why.clone() },
        }
    }

    /// Replaces all rows of all tables but those of `kept` by those of the saved database.
    pub fn replace(&self, kept: &[&str]) -> Result<(), DbError> {
        self.empty(kept)?;
        self.run(|conn| {
            for table in tables(conn, kept)? {
                conn.execute(
                    &format!("INSERT INTO main.\"{table}\" SELECT * FROM saved.\"{table}\""),
                    [],
                )?;
            }
            Ok(())
        })
    }

    /// Writes the rows of the transaction to the WAL, so that there is little left that its commit
    /// could fail at: a full disk is met here.
    pub fn flush(&self) -> Result<(), DbError> {
        self.run(|conn| Ok(conn.cache_flush()?))
    }

    pub fn commit(&self) -> Result<(), DbError> {
        let _naming = Naming::file(&self.file);
        transaction::commit(&self.connection)?;
        self.writer.wal.committed();
        Ok(())
    }
}

impl Drop for HeldWriter<'_> {
    fn drop(&mut self) {
        transaction::roll_back(&self.connection);
        let attached = "SELECT 1 FROM pragma_database_list WHERE name = 'saved'";
        let attached = self.connection.prepare(attached).and_then(|mut found| found.exists([]));
        if !matches!(attached, Ok(false))
            && let Err(error) = self.connection.execute("DETACH saved", [])
        {
            log::error!("{}: a saved database stays attached: {error}", self.file.display());
        }
    }
}

/// A path as `SQLite` takes it in a statement.
pub(super) fn text_of(path: &Path) -> Result<&str, DbError> {
    path.to_str().ok_or_else(|| DbError::Io(format!("{}: its path is not UTF-8", path.display())))
}

/// The tables of the database but `kept` and those of `SQLite` itself.
pub(super) fn tables(conn: &Connection, kept: &[&str]) -> Result<Vec<String>, DbError> {
    let mut select = conn.prepare(
        "SELECT name FROM main.sqlite_schema
         WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
    )?;
    let names = select.query_map([], |row| row.get::<_, String>(0))?;
    let names: Vec<_> = names.collect::<Result<_, _>>()?;
    Ok(names.into_iter().filter(|name| !kept.contains(&name.as_str())).collect())
}

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
