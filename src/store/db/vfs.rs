//! How `SQLite` reaches the files of a database: as one process alone, and with one system call for
//! each commit.
//!
//! Decides two things, and leaves all others to `SQLite`'s own `unix-excl`:
//!
//! - The process that opened a database has it for itself. Its connections lock each other in
//!   memory; another process is told that the database is locked. The index of the log is in
//!   memory too.
//! - `SQLite` writes the log in pieces: a header of 24 bytes and a page, for each page of a commit.
//!   They are kept here until the commit's last page, which says so in its header, and are written
//!   together. An error is that of the last page's write, so a commit that did not reach the
//!   system fails.
//!
//! What is kept belongs to one connection, the writer's; all other connections read committed
//! pages only, which are in the file.

#![allow(unsafe_code, reason = "SQLite asks for tables of C functions")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::{mem, ptr, slice};

use rusqlite::ffi;

use super::DbError;

const NAME: &CStr = c"latchfs";
const BASE: &CStr = c"unix-excl";
/// Length of the header of a page in the log.
const FRAME_HEADER: usize = 24;
/// The header of the log itself, which is written when the log begins again.
const LOG_HEADER: i64 = 32;
/// A long transaction is written in pieces of about this size.
const KEPT_MAX: usize = 64 << 10;

/// The name to open a connection with.
pub(super) fn name() -> Result<&'static CStr, DbError> {
    static REGISTERED: OnceLock<Result<(), DbError>> = OnceLock::new();
    REGISTERED.get_or_init(register).clone().map(|()| NAME)
}

fn register() -> Result<(), DbError> {
    let failed = |what: &str| Err(DbError::Io(format!("SQLite: {what}")));
    // SAFETY: the option takes one int. It is refused after SQLite was initialised, and then all
    // stays as it was. Without statistics, an allocation takes no lock of SQLite's.
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

/// The log's file, as `SQLite` sees it. The file of the base stands right behind it.
#[repr(C, align(8))]
struct LogFile {
    /// `SQLite` knows this much.
    file: ffi::sqlite3_file,
    /// Made by [`open`], freed by [`close`].
    kept: *mut Kept,
}

/// What was written and is not yet in the file.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    /// Where the bytes begin.
    from: i64,
    /// Where the next page of the log is appended, if that is known. A header that is written
    /// elsewhere corrects one that is in the file.
    end: Option<i64>,
    /// Where the page of the header goes that was written last, and whether it ends a commit.
    header: Option<(i64, bool)>,
}

/// What is to be done with a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// It is kept.
    Keep,
    /// It is kept, and then all is written.
    KeepAndWrite,
    /// What is kept is written, and then the write itself.
    Pass,
}

impl Kept {
    /// Decides about a write.
    fn fate(&mut self, bytes: &[u8], at: i64) -> Fate {
        let length = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        let follows = self.header.take().filter(|(page, _)| *page == at);
        if let Some((_, last)) = follows {
            let kept = self.end == Some(at);
            self.end = Some(at + length);
            return match (kept, last || self.bytes.len() >= KEPT_MAX) {
                (true, true) => Fate::KeepAndWrite,
                (true, false) => Fate::Keep,
                (false, _) => Fate::Pass,
            };
        }
        if bytes.len() == FRAME_HEADER {
            // The length of the database after the commit, or 0.
            let last = bytes[4..8] != [0; 4];
            self.header = Some((at + length, last));
            if self.end == Some(at) {
                self.end = Some(at + length);
                return Fate::Keep;
            }
        } else if at == 0 {
            self.end = (length == LOG_HEADER).then_some(length);
        }
        Fate::Pass
    }

    fn keep(&mut self, bytes: &[u8], at: i64) {
        if self.bytes.is_empty() {
            self.from = at;
        }
        self.bytes.extend_from_slice(bytes);
    }
}

impl LogFile {
    /// SAFETY: `file` was opened by [`open`] as the log's file.
    unsafe fn kept<'a>(file: *mut ffi::sqlite3_file) -> &'a mut Kept {
        // SAFETY: as above. SQLite uses a file on one thread at a time.
        unsafe { &mut *(*file.cast::<Self>()).kept }
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

    /// Writes what is kept.
    ///
    /// SAFETY: `file` was opened by [`open`] as the log's file.
    unsafe fn write_kept(file: *mut ffi::sqlite3_file) -> c_int {
        // SAFETY: as above.
        let kept = unsafe { Self::kept(file) };
        if kept.bytes.is_empty() {
            return ffi::SQLITE_OK;
        }
        let bytes = mem::take(&mut kept.bytes);
        // SAFETY: as above.
        let code = unsafe { Self::write_through(file, &bytes, kept.from) };
        kept.bytes = bytes;
        kept.bytes.clear();
        if code != ffi::SQLITE_OK {
            kept.end = None;
        }
        code
    }

    /// SAFETY: `file` was opened by [`open`] as the log's file.
    unsafe fn write_through(file: *mut ffi::sqlite3_file, bytes: &[u8], at: i64) -> c_int {
        // SAFETY: as above.
        let (base, methods) = unsafe { Self::base(file) };
        let (Some(write), Ok(length)) = (methods.xWrite, c_int::try_from(bytes.len())) else {
            return ffi::SQLITE_IOERR_WRITE;
        };
        // SAFETY: the bytes are valid.
        unsafe { write(base, bytes.as_ptr().cast(), length, at) }
    }
}

/// Calls a function of the base's file, after what is kept was written.
macro_rules! passed {
    ($name:ident, $method:ident, $error:ident $(, $argument:ident: $kind:ty)*) => {
        unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file $(, $argument: $kind)*) -> c_int {
            // SAFETY: SQLite calls this for the log's file only.
            let written = unsafe { LogFile::write_kept(file) };
            if written != ffi::SQLITE_OK {
                return written;
            }
            // SAFETY: as above.
            let (base, methods) = unsafe { LogFile::base(file) };
            match methods.$method {
                // SAFETY: the arguments are SQLite's.
                Some(call) => unsafe { call(base $(, $argument)*) },
                None => ffi::$error,
            }
        }
    };
}

passed!(read, xRead, SQLITE_IOERR_READ, to: *mut c_void, length: c_int, at: i64);
passed!(truncate, xTruncate, SQLITE_IOERR_TRUNCATE, length: i64);
passed!(sync, xSync, SQLITE_IOERR_FSYNC, flags: c_int);
passed!(file_size, xFileSize, SQLITE_IOERR_FSTAT, length: *mut i64);
passed!(lock, xLock, SQLITE_IOERR_LOCK, level: c_int);
passed!(unlock, xUnlock, SQLITE_IOERR_UNLOCK, level: c_int);
passed!(check_reserved, xCheckReservedLock, SQLITE_IOERR_LOCK, found: *mut c_int);
passed!(file_control, xFileControl, SQLITE_NOTFOUND, what: c_int, argument: *mut c_void);

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
    let methods = if code == ffi::SQLITE_OK { &raw const METHODS } else { ptr::null() };
    let kept = match code {
        ffi::SQLITE_OK => Box::into_raw(Box::<Kept>::default()),
        _ => ptr::null_mut(),
    };
    // SAFETY: as above.
    unsafe { own.write(LogFile { file: ffi::sqlite3_file { pMethods: methods }, kept }) };
    code
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // What is still kept was not committed.
    // SAFETY: SQLite calls this once for each log's file, which `open` has opened.
    drop(unsafe { Box::from_raw((*file.cast::<LogFile>()).kept) });
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
    // SAFETY: SQLite gives that many bytes.
    let bytes =
        unsafe { slice::from_raw_parts(bytes.cast(), usize::try_from(length).unwrap_or(0)) };
    // SAFETY: SQLite calls this for the log's file only.
    let kept = unsafe { LogFile::kept(file) };
    let fate = kept.fate(bytes, at);
    if fate != Fate::Pass {
        kept.keep(bytes, at);
    }
    if fate == Fate::Keep {
        return ffi::SQLITE_OK;
    }
    // SAFETY: as above.
    let written = unsafe { LogFile::write_kept(file) };
    if written != ffi::SQLITE_OK || fate == Fate::KeepAndWrite {
        return written;
    }
    // SAFETY: as above.
    unsafe { LogFile::write_through(file, bytes, at) }
}

unsafe extern "C" fn sector_size(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite calls this for the log's file only.
    let (base, methods) = unsafe { LogFile::base(file) };
    // SAFETY: as above.
    methods.xSectorSize.map_or(0, |call| unsafe { call(base) })
}

unsafe extern "C" fn device_characteristics(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite calls this for the log's file only.
    let (base, methods) = unsafe { LogFile::base(file) };
    // SAFETY: as above.
    methods.xDeviceCharacteristics.map_or(0, |call| unsafe { call(base) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    fn header(last: bool) -> [u8; FRAME_HEADER] {
        let mut header = [1; FRAME_HEADER];
        header[4..8].copy_from_slice(&u32::from(last).to_be_bytes());
        header
    }

    /// Offers a header and its page, keeps what is to be kept, and tells the fates of both.
    fn frame(kept: &mut Kept, at: i64, last: bool) -> [Fate; 2] {
        let page = [7; PAGE];
        [(&header(last)[..], at), (&page[..], at + 24)].map(|(bytes, at)| {
            let fate = kept.fate(bytes, at);
            match fate {
                Fate::Keep => kept.keep(bytes, at),
                Fate::KeepAndWrite | Fate::Pass => kept.bytes.clear(),
            }
            fate
        })
    }

    #[test]
    fn the_pages_of_a_commit_are_kept_until_the_last() {
        let mut kept = Kept::default();
        assert_eq!(kept.fate(&[0; 32], 0), Fate::Pass);
        assert_eq!(frame(&mut kept, 32, false), [Fate::Keep; 2]);
        assert_eq!(frame(&mut kept, 32 + 4120, true), [Fate::Keep, Fate::KeepAndWrite]);
        assert_eq!(frame(&mut kept, 32 + 2 * 4120, true), [Fate::Keep, Fate::KeepAndWrite]);
    }

    #[test]
    fn where_the_log_ends_is_learned_from_its_first_page() {
        let mut kept = Kept::default();
        assert_eq!(frame(&mut kept, 32 + 9 * 4120, false), [Fate::Pass; 2]);
        assert_eq!(frame(&mut kept, 32 + 10 * 4120, true), [Fate::Keep, Fate::KeepAndWrite]);
        // After a rollback the log goes on before.
        assert_eq!(frame(&mut kept, 32 + 10 * 4120, true), [Fate::Pass; 2]);
        assert_eq!(frame(&mut kept, 32 + 11 * 4120, true), [Fate::Keep, Fate::KeepAndWrite]);
    }

    #[test]
    fn a_header_or_page_that_is_written_again_is_not_kept() {
        let mut kept = Kept::default();
        assert_eq!(kept.fate(&[0; 32], 0), Fate::Pass);
        assert_eq!(frame(&mut kept, 32, false), [Fate::Keep; 2]);
        assert_eq!(kept.fate(&[8; PAGE], 32 + 24), Fate::Pass);
        assert_eq!(frame(&mut kept, 32 + 4120, true), [Fate::Keep, Fate::KeepAndWrite]);
        assert_eq!(kept.fate(&header(false), 32), Fate::Pass);
        assert_eq!(kept.fate(&header(true), 32 + 4120), Fate::Pass);
        assert_eq!(frame(&mut kept, 32 + 2 * 4120, true), [Fate::Keep, Fate::KeepAndWrite]);
    }

    #[test]
    fn a_long_transaction_is_written_in_pieces() {
        let mut kept = Kept::default();
        assert_eq!(kept.fate(&[0; 32], 0), Fate::Pass);
        let count = i64::try_from(2 * KEPT_MAX).unwrap() / 4120;
        let fates = (0..count).map(|number| frame(&mut kept, 32 + number * 4120, false)[1]);
        assert_eq!(fates.filter(|fate| *fate == Fate::KeepAndWrite).count(), 1);
    }
}
