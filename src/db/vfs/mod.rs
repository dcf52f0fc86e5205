//! How `SQLite` reaches the files of a database: as one process alone, and with one system call for
//! each commit.
//!
//! All files are those of `SQLite`'s own VFS `unix-excl`: the process that opened a database has it
//! for itself, its connections lock each other in memory, where the index of the log is too, and
//! another process is told that the database is locked. Only the writes to the log are taken here;
//! [`gathered`] decides what happens to them.
//!
//! Frames are gathered for the one connection that writes. All other connections read committed
//! frames, which are in the file.

#![allow(unsafe_code, reason = "SQLite asks for tables of C functions")]

mod gathered;
#[cfg(test)]
mod tests;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::{mem, ptr, slice};

use rusqlite::{Connection, MAIN_DB, ffi};

use self::gathered::{Code, Gathered};
use super::DbError;

const NAME: &CStr = c"latchfs";
const BASE: &CStr = c"unix-excl";
/// `SQLite`'s own VFS writes less than 128 KiB with one call, and takes more for a full disk.
const WRITE_MAX: usize = 96 << 10;

/// The name to open a connection with.
pub(super) fn name() -> Result<&'static CStr, DbError> {
    static REGISTERED: OnceLock<Result<(), DbError>> = OnceLock::new();
    REGISTERED.get_or_init(register).clone().map(|()| NAME)
}

fn register() -> Result<(), DbError> {
    let failed = |what: &str| Err(DbError::Io(format!("SQLite: {what}")));
    // SAFETY: the option takes one int, and no other thread may use SQLite meanwhile: all
    // connections of this program need the name that is registered here. SQLite refuses the option
    // once it is initialised, and then changes nothing. Without statistics, an allocation takes no
    // lock.
    unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, c_int::from(false)) };
    // SAFETY: initialises SQLite and returns a table that lives as long as the process.
    let base = unsafe { ffi::sqlite3_vfs_find(BASE.as_ptr()) };
    if base.is_null() {
        return failed("it has no VFS unix-excl");
    }
    // SAFETY: `base` is valid, and nobody changes it. The functions of SQLite's own VFS use of it
    // only `pAppData`, which the copy has too.
    let mut own = unsafe { *base };
    let Ok(log_file) = c_int::try_from(mem::size_of::<LogFile>()) else {
        return failed("a file is too large");
    };
    own.szOsFile += log_file;
    own.pNext = ptr::null_mut();
    own.zName = NAME.as_ptr();
    own.xOpen = Some(open);
    // SAFETY: the table is never freed, and has valid functions.
    match unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(own)), 0) } {
        ffi::SQLITE_OK => Ok(()),
        code => failed(ffi::code_to_str(code)),
    }
}

/// Writes the frames of a transaction that has not ended yet, so that a full disk is met now and
/// not by its commit.
pub(super) fn flush(connection: &Connection) -> Result<(), DbError> {
    let mut file: *mut ffi::sqlite3_file = ptr::null_mut();
    // SAFETY: the connection is open and used by this thread alone. SQLite stores a pointer to the
    // log's file, which lives as long as the connection has a log.
    let code = unsafe {
        ffi::sqlite3_file_control(
            connection.handle(),
            MAIN_DB.as_ptr(),
            ffi::SQLITE_FCNTL_JOURNAL_POINTER,
            (&raw mut file).cast(),
        )
    };
    // SAFETY: as above.
    let methods = unsafe { file.as_ref() }.map_or(ptr::null(), |file| file.pMethods);
    if code != ffi::SQLITE_OK || methods != &raw const METHODS {
        return Err(DbError::Io("SQLite: the log was not opened by this program".to_owned()));
    }
    // SAFETY: a file with these functions was opened by `open` as the log's file.
    let written = unsafe { LogFile::flush(file) };
    written.map_err(|code| rusqlite::Error::SqliteFailure(ffi::Error::new(code), None).into())
}

/// The log's file, as `SQLite` sees it. The file of the base stands right behind it.
#[repr(C, align(8))]
struct LogFile {
    /// `SQLite` knows this much.
    file: ffi::sqlite3_file,
    /// Made by [`open`], freed by [`close`].
    gathered: *mut Gathered,
}

impl LogFile {
    /// SAFETY: `file` was opened by [`open`] as the log's file.
    unsafe fn gathered<'a>(file: *mut ffi::sqlite3_file) -> &'a mut Gathered {
        // SAFETY: as above. SQLite uses a file on one thread at a time.
        unsafe { &mut *(*file.cast::<Self>()).gathered }
    }

    /// The file of the base, and its functions.
    ///
    /// SAFETY: `file` was opened by [`open`] as the log's file.
    unsafe fn base<'a>(
        file: *mut ffi::sqlite3_file,
    ) -> (*mut ffi::sqlite3_file, &'a ffi::sqlite3_io_methods) {
        // SAFETY: SQLite gave the file room for both structures.
        let base = unsafe { file.cast::<Self>().add(1) }.cast::<ffi::sqlite3_file>();
        // SAFETY: the base has opened its file.
        (base, unsafe { &*(*base).pMethods })
    }

    /// Writes to the file of the base.
    ///
    /// SAFETY: `file` was opened by [`open`] as the log's file.
    unsafe fn write_through(
        file: *mut ffi::sqlite3_file,
        bytes: &[u8],
        at: u64,
    ) -> Result<(), Code> {
        // SAFETY: as above.
        let (base, methods) = unsafe { Self::base(file) };
        let write = methods.xWrite.ok_or(ffi::SQLITE_IOERR_WRITE)?;
        let mut at = i64::try_from(at).map_err(|_| ffi::SQLITE_IOERR_WRITE)?;
        for part in bytes.chunks(WRITE_MAX) {
            let length = c_int::try_from(part.len()).expect("a part is short");
            #[cfg(test)]
            let (length, refused) = tests::room(length);
            // SAFETY: the bytes are valid.
            match unsafe { write(base, part.as_ptr().cast(), length, at) } {
                #[cfg(test)]
                ffi::SQLITE_OK if refused.is_some() => return refused.map_or(Ok(()), Err),
                ffi::SQLITE_OK => at += i64::from(length),
                code => return Err(code),
            }
        }
        Ok(())
    }

    /// Writes what is gathered.
    ///
    /// SAFETY: `file` was opened by [`open`] as the log's file.
    unsafe fn flush(file: *mut ffi::sqlite3_file) -> Result<(), Code> {
        // SAFETY: as above.
        let gathered = unsafe { Self::gathered(file) };
        // SAFETY: as above.
        gathered.flush(&mut |bytes, at| unsafe { Self::write_through(file, bytes, at) })
    }
}

fn code(result: Result<(), Code>) -> c_int {
    result.err().unwrap_or(ffi::SQLITE_OK)
}

/// A function of the file that is the base's.
macro_rules! passed {
    ($name:ident, $method:ident, $error:ident $(, $argument:ident: $kind:ty)*) => {
        unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file $(, $argument: $kind)*) -> c_int {
            // SAFETY: SQLite calls this for the log's file only.
            let (base, methods) = unsafe { LogFile::base(file) };
            match methods.$method {
                // SAFETY: the arguments are SQLite's.
                Some(call) => unsafe { call(base $(, $argument)*) },
                None => ffi::$error,
            }
        }
    };
}

passed!(read_base, xRead, SQLITE_IOERR_READ, to: *mut c_void, length: c_int, at: i64);
passed!(truncate_base, xTruncate, SQLITE_IOERR_TRUNCATE, length: i64);
// All frames of commits are in the file. What is gathered belongs to a transaction that has not
// ended, or was rolled back: it needs no sync, and on a full disk it could not be written.
passed!(sync, xSync, SQLITE_IOERR_FSYNC, flags: c_int);
passed!(file_size, xFileSize, SQLITE_IOERR_FSTAT, length: *mut i64);
passed!(lock, xLock, SQLITE_IOERR_LOCK, level: c_int);
passed!(unlock, xUnlock, SQLITE_IOERR_UNLOCK, level: c_int);
passed!(check_reserved, xCheckReservedLock, SQLITE_IOERR_LOCK, found: *mut c_int);
passed!(file_control, xFileControl, SQLITE_NOTFOUND, what: c_int, argument: *mut c_void);
passed!(sector_size, xSectorSize, SQLITE_OK);
passed!(device_characteristics, xDeviceCharacteristics, SQLITE_OK);

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    // Without shared memory and mapped pages, which only the database file has.
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

/// Opens a file. All but the log's are those of the base.
unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    opened_as: *mut c_int,
) -> c_int {
    // SAFETY: the table is there since `register` found it.
    let base = unsafe { ffi::sqlite3_vfs_find(BASE.as_ptr()) };
    // SAFETY: as above.
    let Some(open) = (unsafe { base.as_ref() }).and_then(|base| base.xOpen) else {
        return ffi::SQLITE_CANTOPEN;
    };
    if flags & ffi::SQLITE_OPEN_WAL == 0 {
        // SAFETY: the arguments are SQLite's, and the file has room enough.
        return unsafe { open(base, name, file, flags, opened_as) };
    }
    let own = file.cast::<LogFile>();
    // SAFETY: SQLite gave the file room for both structures.
    let code = unsafe { open(base, name, own.add(1).cast(), flags, opened_as) };
    // Without functions, SQLite does not close it.
    let (methods, gathered) = match code {
        ffi::SQLITE_OK => (&raw const METHODS, Box::into_raw(Box::<Gathered>::default())),
        _ => (ptr::null(), ptr::null_mut()),
    };
    // SAFETY: as above.
    unsafe { own.write(LogFile { file: ffi::sqlite3_file { pMethods: methods }, gathered }) };
    code
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // What is still gathered was not committed.
    // SAFETY: SQLite calls this once for each log's file, which `open` has opened.
    drop(unsafe { Box::from_raw((*file.cast::<LogFile>()).gathered) });
    // SAFETY: as above.
    let (base, methods) = unsafe { LogFile::base(file) };
    // SAFETY: as above.
    methods.xClose.map_or(ffi::SQLITE_OK, |close| unsafe { close(base) })
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    bytes: *const c_void,
    length: c_int,
    at: i64,
) -> c_int {
    let (Ok(length), Ok(at)) = (usize::try_from(length), u64::try_from(at)) else {
        return ffi::SQLITE_IOERR_WRITE;
    };
    // SAFETY: SQLite gives that many bytes.
    let bytes = unsafe { slice::from_raw_parts(bytes.cast(), length) };
    // SAFETY: SQLite calls this for the log's file only.
    let gathered = unsafe { LogFile::gathered(file) };
    code(gathered.write(bytes, at, &mut |bytes, at| {
        // SAFETY: as above.
        unsafe { LogFile::write_through(file, bytes, at) }
    }))
}

/// A transaction reads pages of its own that had to leave the cache; all others are in the file.
unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    to: *mut c_void,
    length: c_int,
    at: i64,
) -> c_int {
    let end = u64::try_from(at.saturating_add(i64::from(length))).unwrap_or(0);
    // SAFETY: SQLite calls this for the log's file only.
    let gathered = unsafe { LogFile::gathered(file) };
    if gathered.reaches(end) {
        // SAFETY: as above.
        let written = unsafe { LogFile::flush(file) };
        if let Err(code) = written {
            return code;
        }
    }
    // SAFETY: the arguments are SQLite's.
    unsafe { read_base(file, to, length, at) }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, length: i64) -> c_int {
    // SAFETY: SQLite calls this for the log's file only.
    let gathered = unsafe { LogFile::gathered(file) };
    gathered.give_up_from(u64::try_from(length).unwrap_or(0));
    // SAFETY: as above.
    match unsafe { LogFile::flush(file) } {
        // SAFETY: the arguments are SQLite's.
        Ok(()) => unsafe { truncate_base(file, length) },
        Err(code) => code,
    }
}
