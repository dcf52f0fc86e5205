//! Content that may not be on the disk yet, and the order in which things get there. Decides that
//! no row outlives its bytes when the machine dies.
//!
//! A checkpoint, and with [`SyncMode::Always`](crate::db::SyncMode) each write, syncs in this
//! order:
//!
//! 1. content: the bytes of new content files;
//! 2. folder: the names of those files;
//! 3. database: the WAL, which holds the rows that refer to them;
//! 4. checkpoint: the pages of the WAL, in the database file.
//!
//! Unused content is unlinked after step 3, which has made the end of its references durable.
//!
//! Between checkpoints the kernel writes back pages and names as it likes: a row of the WAL can be
//! on the disk before its content. So the commit that first refers to content which is not synced
//! adds a row to the table `unsynced`, with the checksum of the bytes. A start finds such rows
//! after the death of the process or of the machine. If the bytes are there, as they are after the
//! death of the process, the next checkpoint syncs them. If not, the WAL is cut before the commit
//! that refers to them. That commit came after the last checkpoint, since a checkpoint covers only
//! commits whose content is synced: so the cut leaves all that was durable before.
//!
//! A row stays until the next write forgets it, also when its content is synced, and its commit
//! can stay in the WAL after a checkpoint has moved it. The WAL must never be cut before such a
//! commit: so between steps 3 and 4 a checkpoint marks the last row whose content it has synced,
//! in a file of its own. Content up to the mark that is missing was taken by somebody else.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use memchr::memmem;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, params};

use super::types::{ContentId, signed, unsigned};
use super::{Shared, reclaim};
use crate::db::DbError;

/// How long another process may take to close the database.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes that are read at once.
const PIECE: usize = 256 << 10;
/// Lengths of the header of the WAL and of the header of a frame in it.
const WAL_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The first byte of a page that has rows of a table.
const TABLE_LEAF: u8 = 13;

/// A place in a content file, as the table has it. The bytes are found in the WAL too.
type Place = [u8; 16];

/// Notes content that a row refers to and that is not synced, and forgets what has been synced
/// since.
pub(super) fn note(
    conn: &Connection,
    shared: &Shared,
    (file, offset): (ContentId, u64),
    length: u64,
    crc: u64,
) -> Result<(), DbError> {
    forget_synced(conn, shared)?;
    let mut place = Place::default();
    place[..8].copy_from_slice(&file.0.to_be_bytes());
    place[8..].copy_from_slice(&offset.to_be_bytes());
    conn.prepare_cached("INSERT INTO unsynced (id, place, length, crc) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![shared.new_id(), place, signed(length), crc.cast_signed()])?;
    Ok(())
}

/// Forgets content that a checkpoint has synced.
pub(super) fn forget_synced(conn: &Connection, shared: &Shared) -> Result<(), DbError> {
    let synced = shared.synced.swap(0, Ordering::AcqRel);
    if synced > 0 {
        conn.prepare_cached("DELETE FROM unsynced WHERE id <= ?1")?.execute([synced])?;
    }
    Ok(())
}

/// The file beside the database that has the number of the last row whose content is synced.
fn mark_file(folder: &Path) -> PathBuf {
    folder.join("blob.db-synced")
}

/// Marks the rows up to `last` as synced, durably.
fn mark(folder: &Path, last: i64) -> Result<(), DbError> {
    if marked(folder) == last {
        return Ok(());
    }
    let path = mark_file(folder);
    let failed = |error: io::Error| DbError::from_io("write", &path, &error);
    let is_new = !path.exists();
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(failed)?;
    // Eight bytes of one sector are written as a whole.
    file.write_all_at(&last.to_be_bytes(), 0).and_then(|()| file.sync_data()).map_err(failed)?;
    if is_new {
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
    }
    Ok(())
}

/// The content of the rows up to `last` is synced.
pub(super) fn synced(shared: &Shared, last: i64) -> Result<(), DbError> {
    if last > 0 {
        mark(shared.files.place(), last)?;
        shared.synced.store(last, Ordering::Release);
    }
    Ok(())
}

/// The last row that was marked as synced; 0 if none was.
pub(super) fn marked(folder: &Path) -> i64 {
    let mut bytes = [0; 8];
    let read = File::open(mark_file(folder)).and_then(|file| file.read_exact_at(&mut bytes, 0));
    read.map_or(0, |()| i64::from_be_bytes(bytes))
}

/// The last row; 0 without one. Rows are added in order.
pub(super) fn last(conn: &Connection) -> Result<i64, DbError> {
    let mut select = conn.prepare_cached("SELECT coalesce(max(id), 0) FROM unsynced")?;
    Ok(select.query_row([], |row| row.get(0))?)
}

/// The files of content that the last process has not synced.
pub(super) fn files(conn: &Connection) -> Result<Vec<ContentId>, DbError> {
    let found = rows(conn, 0)?;
    Ok(found.into_iter().map(|Row { place, .. }| file_and_offset(place).0).collect())
}

/// Cuts the WAL before the first commit that refers to content which was lost. To be called before
/// the database in `folder` is opened.
pub(super) fn cut_lost(folder: &Path) -> Result<(), DbError> {
    let log = folder.join("blob.db-wal");
    let failed = |error: io::Error| DbError::from_io("cut", &log, &error);
    while log.metadata().is_ok_and(|found| found.len() > 0) {
        let noted = match noted(folder) {
            Ok(noted) => noted,
            // What is wrong with the database is said when it is opened.
            Err(error) => {
                log::debug!("{}: {error}", folder.display());
                return Ok(());
            }
        };
        // Content that cannot be read now may be there: without an answer no row is served.
        let Some(lost) = find_lost(folder, noted)? else { return Ok(()) };
        let file = OpenOptions::new().read(true).write(true).open(&log).map_err(failed)?;
        let Some(end) = end_before(&file, lost).map_err(failed)? else {
            // The row was durable before its content, or the disk lost what was synced.
            log::error!("{}: synced content is missing or damaged", folder.display());
            return Ok(());
        };
        log::warn!(
            "{}: the machine died before the content of the last writes was on the disk; those \
             writes are undone",
            log.display()
        );
        file.set_len(end).and_then(|()| file.sync_all()).map_err(failed)?;
    }
    Ok(())
}

struct Row {
    place: Place,
    length: u64,
    crc: u64,
}

/// The rows after the one of that number.
fn rows(conn: &Connection, after: i64) -> Result<Vec<Row>, DbError> {
    let mut select =
        conn.prepare_cached("SELECT place, length, crc FROM unsynced WHERE id > ?1 ORDER BY id")?;
    let found = select.query_map([after], |row| {
        Ok((row.get::<_, Place>(0)?, row.get(1)?, row.get::<_, i64>(2)?.cast_unsigned()))
    })?;
    found
        .map(|row| {
            let (place, length, crc) = row?;
            Ok(Row { place, length: unsigned(length)?, crc })
        })
        .collect()
}

fn file_and_offset(place: Place) -> (ContentId, u64) {
    let number =
        |at: usize| place[at..].iter().take(8).fold(0, |all, byte| all << 8 | u64::from(*byte));
    (ContentId(number(0)), number(8))
}

/// The content in use that the last process has not synced.
fn noted(folder: &Path) -> Result<Vec<Row>, DbError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = folder.join("blob.db");
    let conn = Connection::open_with_flags_and_vfs(database, flags, c"unix-excl")?;
    conn.busy_timeout(PATIENCE)?;
    // Closing it must not move the WAL, which may be cut.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let mut noted = Vec::new();
    if conn.table_exists(None, "unsynced")? {
        for row in rows(&conn, marked(folder))? {
            let references = reclaim::references(&conn, file_and_offset(row.place).0)?;
            noted.extend(references.is_some_and(|count| count > 0).then_some(row));
        }
    }
    Ok(noted)
}

/// The first content whose bytes are not there.
fn find_lost(folder: &Path, noted: Vec<Row>) -> Result<Option<Place>, DbError> {
    for Row { place, length, crc } in noted {
        let (file, offset) = file_and_offset(place);
        let path = folder.join("blobs").join(file.to_string());
        let found = checksum(&path, offset, length);
        if found.map_err(|error| DbError::from_io("read", &path, &error))? != Some(crc) {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

/// The checksum of bytes in a file; none if they are not there.
fn checksum(path: &Path, mut offset: u64, mut length: u64) -> io::Result<Option<u64>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut piece = vec![0; PIECE];
    let mut crc = crc64fast_nvme::Digest::new();
    while length > 0 {
        let wanted = usize::try_from(length).map_or(PIECE, |length| length.min(PIECE));
        let read = file.read_at(&mut piece[..wanted], offset)?;
        if read == 0 {
            return Ok(None);
        }
        crc.write(&piece[..read]);
        (offset, length) = (offset + read as u64, length - read as u64);
    }
    Ok(Some(crc.sum64()))
}

/// The end of the last commit in the WAL before the one that first refers to `lost`: a page of the
/// table in that commit is the first that has the place. `None` if no commit does.
fn end_before(log: &File, lost: Place) -> io::Result<Option<u64>> {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
    let mut header = [0; WAL_HEADER];
    log.read_exact_at(&mut header, 0)?;
    let page = usize::try_from(number(&header[8..12])).map_err(io::Error::other)?;
    let mut frame = vec![0; FRAME_HEADER + page];
    let (mut at, mut end) = (WAL_HEADER as u64, WAL_HEADER as u64);
    loop {
        match log.read_exact_at(&mut frame, at) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        // A frame of an earlier use of the file has another salt.
        if frame[8..16] != header[16..24] {
            return Ok(None);
        }
        let content = &frame[FRAME_HEADER..];
        if content.first() == Some(&TABLE_LEAF) && memmem::find(content, &lost).is_some() {
            return Ok(Some(end));
        }
        at += frame.len() as u64;
        // The last frame of a commit has the length of the database.
        if number(&frame[4..8]) > 0 {
            end = at;
        }
    }
}
