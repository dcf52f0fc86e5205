//! Opens connections: settings, and the check that the file is a latchfs database of a known
//! version. Which thread uses which connection is decided in [`super::writer`] and
//! [`super::readers`].

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::{DbError, Schema, SyncMode};

/// `SQLite`'s own VFS for one process: its connections lock each other in memory, where the index
/// of the WAL is too, and another process is told that the database is locked.
const VFS: &str = "unix-excl";
/// Marks the file as one of this program: "latc" in `PRAGMA application_id`.
const APPLICATION_ID: i32 = 0x6c61_7463;
/// Page cache of a connection, in KiB. The system's cache stands behind it. That of the writer
/// fills with pages that nobody reads again, and each costs a system call of the allocator until
/// the cache is full.
const CACHE_KIB: i32 = 4 << 10;
/// The length to which a WAL that begins again is cut.
const WAL_BYTES_KEPT: u32 = 16 << 20;
/// Prepared statements kept by a connection.
const STATEMENTS: usize = 128;
/// A reader meets a lock only while another connection recovers the database.
const READER_PATIENCE: Duration = Duration::from_secs(1);
/// Opening may meet another process that is just closing the database.
const OPEN_PATIENCE: Duration = Duration::from_secs(5);

/// The writing connection. Creates the file and its tables if there is no file.
pub(super) fn open_writer(
    path: &Path,
    schema: &Schema,
    sync: SyncMode,
) -> Result<Connection, DbError> {
    create_private(path);
    let mut conn = open(path, OpenFlags::SQLITE_OPEN_CREATE)?;
    conn.busy_timeout(OPEN_PATIENCE)?;
    // Before the journal mode is set: a foreign file stays as it is.
    let fresh = check_format(&conn, path, schema)?;
    conn.pragma_update(None, "journal_mode", "WAL")?;
    configure(&conn, sync, CACHE_KIB)?;
    if fresh {
        create(&mut conn, schema)?;
    }
    // From here on the writer's own code waits, not SQLite.
    conn.busy_timeout(Duration::ZERO)?;
    Ok(conn)
}

/// How many pages the WAL has; 0 if that cannot be known before the first commit.
pub(super) fn wal_pages(conn: &Connection) -> u32 {
    // It moves nothing. The second column is negative without a log.
    let pages = conn.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get::<_, i64>(1));
    pages.ok().and_then(|pages| u32::try_from(pages).ok()).unwrap_or(0)
}

/// A connection for reading only.
pub(super) fn open_reader(path: &Path) -> Result<Connection, DbError> {
    let conn = open(path, OpenFlags::empty())?;
    conn.busy_timeout(READER_PATIENCE)?;
    configure(&conn, SyncMode::Normal, CACHE_KIB)?;
    conn.pragma_update(None, "query_only", true)?;
    Ok(conn)
}

/// The connection of the checkpoint thread.
pub(super) fn open_checkpointer(path: &Path, sync: SyncMode) -> Result<Connection, DbError> {
    let conn = open(path, OpenFlags::empty())?;
    configure(&conn, sync, 0)?;
    Ok(conn)
}

/// A connection for a copy of all rows: it reads, and writes only to what is attached to it.
pub(super) fn open_copier(path: &Path) -> Result<Connection, DbError> {
    let conn = open(path, OpenFlags::empty())?;
    conn.busy_timeout(READER_PATIENCE)?;
    configure(&conn, SyncMode::Normal, CACHE_KIB)?;
    Ok(conn)
}

/// A new database file with empty tables, which is neither synced nor logged: a copy is synced as a
/// whole.
pub(super) fn create_copy(path: &Path, schema: &Schema) -> Result<(), DbError> {
    create_private(path);
    let mut conn = open(path, OpenFlags::SQLITE_OPEN_CREATE)?;
    conn.pragma_update(None, "synchronous", "OFF")?;
    create(&mut conn, schema)
}

/// Makes an empty file that only its owner may read, if there is none: `SQLite` would make one that
/// others may read, and the WAL gets the mode of the file.
fn create_private(path: &Path) {
    // What is wrong with the place, SQLite says when it opens the file.
    let _ = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
}

fn open(path: &Path, more: OpenFlags) -> Result<Connection, DbError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE
        | more;
    let conn = Connection::open_with_flags_and_vfs(path, flags, VFS)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    // Without it SQLite plans a cached statement anew whenever a parameter of a range changes.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // A checkpoint of SQLite's own, when the last connection is closed, would make rows durable
    // before what they refer to.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(conn)
}

fn configure(conn: &Connection, sync: SyncMode, cache_kib: i32) -> Result<(), DbError> {
    let level = match sync {
        SyncMode::Normal => "NORMAL",
        SyncMode::Always => "FULL",
    };
    conn.pragma_update(None, "synchronous", level)?;
    conn.pragma_update(None, "wal_autocheckpoint", 0)?;
    // The writer cuts a longer file when the WAL begins again.
    conn.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
    conn.pragma_update(None, "cache_size", -cache_kib)?;
    conn.pragma_update(None, "mmap_size", 0)?;
    // Else savepoints above some KiB go to a temporary file.
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(())
}

/// True if the file is empty, so that the tables have to be made.
fn check_format(conn: &Connection, path: &Path, schema: &Schema) -> Result<bool, DbError> {
    let number = |pragma| conn.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let application = number("application_id")?;
    let version = number("user_version")?;
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let file = path.to_path_buf();
    if application == 0 && version == 0 && tables == 0 {
        return Ok(true);
    }
    if application != APPLICATION_ID {
        let why = "it is a database of another program".to_owned();
        return Err(DbError::UnknownFormat { file, why });
    }
    match u32::try_from(version) {
        Ok(version) if version == schema.version => Ok(false),
        Ok(found) if found > schema.version => {
            Err(DbError::NewerFormat { file, found, known: schema.version })
        }
        _ => {
            let why = format!(
                "it has format {version}, and this program reads only format {}",
                schema.version
            );
            Err(DbError::UnknownFormat { file, why })
        }
    }
}

/// Tables and version in one transaction: a kill leaves an empty file or a complete one.
fn create(conn: &mut Connection, schema: &Schema) -> Result<(), DbError> {
    let tx = conn.transaction()?;
    tx.execute_batch(schema.statements)?;
    tx.pragma_update(None, "application_id", APPLICATION_ID)?;
    tx.pragma_update(None, "user_version", schema.version)?;
    tx.commit()?;
    Ok(())
}
