//! The pages of a commit on their way to the log, until all of them are there.
//!
//! `SQLite` appends a frame to the log for each page of a transaction, in two writes: a header of
//! 24 bytes and the page. Decides which writes are gathered, and when they are written together:
//! with the page that ends the commit, which its header says. How a file is written is decided by
//! the caller.
//!
//! Invariants, on which the safety of a commit rests:
//!
//! - The gathered bytes are the content of their range of the file. They are given up only when
//!   they are written, or when `SQLite` has rolled back the transaction that they belong to: an
//!   error of a write is reported, and the bytes are written again later.
//! - No commit succeeds before all of its frames are written.
//! - The frame that ends a commit whose write has failed is never written afterwards: such a commit
//!   does not come back when the log is read after a crash. A commit whose *sync* has failed is in
//!   the file and may come back, as with `SQLite`'s own VFS: the disk is broken then, and nobody
//!   knows what it holds.

/// Length of the header of a frame.
pub(super) const FRAME_HEADER: usize = 24;
/// Length of the header of the log, which is written when the log begins again.
const LOG_HEADER: usize = 32;
/// A long transaction is written in pieces of this size, and one page more at most.
const PIECE: usize = 64 << 10;

/// The code of an error of `SQLite`.
pub(super) type Code = std::ffi::c_int;

/// Frames that were appended to the log and are not in the file yet.
#[derive(Default)]
pub(super) struct Gathered {
    bytes: Vec<u8>,
    /// The offset of the first of them.
    from: u64,
    /// The offset of the next frame, if it is known. A header that is written elsewhere corrects
    /// one in the file, or is the first one after a rollback.
    next: Option<u64>,
    /// The page that belongs to the header that was written last.
    announced: Option<Announced>,
}

/// A page that `SQLite` is about to write.
#[derive(Clone, Copy)]
struct Announced {
    at: u64,
    /// Whether it is the last one of a commit.
    ends_commit: bool,
}

impl Gathered {
    /// Takes a write by `SQLite`. `file` writes bytes at an offset.
    pub(super) fn write(
        &mut self,
        bytes: &[u8],
        at: u64,
        file: &mut impl FnMut(&[u8], u64) -> Result<(), Code>,
    ) -> Result<(), Code> {
        match self.announced.take() {
            Some(page) if page.at == at => self.write_page(bytes, page, file),
            _ if bytes.len() == FRAME_HEADER => self.write_header(bytes, at, file),
            _ => self.write_elsewhere(bytes, at, file),
        }
    }

    /// The header of a frame.
    fn write_header(
        &mut self,
        bytes: &[u8],
        at: u64,
        file: &mut impl FnMut(&[u8], u64) -> Result<(), Code>,
    ) -> Result<(), Code> {
        if !self.bytes.is_empty() {
            // Frames are appended again from here on: what is behind was rolled back.
            self.give_up_from(at);
        }
        if self.next != Some(at) {
            self.flush(file)?;
        }
        if self.next == Some(at) {
            self.gather(bytes, at);
        } else {
            file(bytes, at)?;
        }
        // The length of the database after the commit, or 0.
        let ends_commit = bytes[4..8] != [0; 4];
        self.announced = Some(Announced { at: at + length(bytes), ends_commit });
        Ok(())
    }

    /// The page that belongs to the header before it.
    fn write_page(
        &mut self,
        bytes: &[u8],
        page: Announced,
        file: &mut impl FnMut(&[u8], u64) -> Result<(), Code>,
    ) -> Result<(), Code> {
        if self.next != Some(page.at) {
            self.flush(file)?;
            self.next = None;
            file(bytes, page.at)?;
            self.next = Some(page.at + length(bytes));
            return Ok(());
        }
        self.gather(bytes, page.at);
        if page.ends_commit {
            return self.flush(file).inspect_err(|_| self.give_up());
        }
        if self.bytes.len() >= PIECE {
            return self.flush(file);
        }
        Ok(())
    }

    /// The header of the log, or a page that the transaction has written before and has changed
    /// since.
    fn write_elsewhere(
        &mut self,
        bytes: &[u8],
        at: u64,
        file: &mut impl FnMut(&[u8], u64) -> Result<(), Code>,
    ) -> Result<(), Code> {
        if let Some(own) = self.own(at, bytes.len()) {
            own.copy_from_slice(bytes);
            return Ok(());
        }
        if at == 0 {
            self.give_up();
        }
        self.flush(file)?;
        file(bytes, at)?;
        if at == 0 && bytes.len() == LOG_HEADER {
            self.next = Some(length(bytes));
        }
        Ok(())
    }

    /// Writes all that is gathered. After an error it is still gathered.
    pub(super) fn flush(
        &mut self,
        file: &mut impl FnMut(&[u8], u64) -> Result<(), Code>,
    ) -> Result<(), Code> {
        if !self.bytes.is_empty() {
            file(&self.bytes, self.from)?;
            self.bytes.clear();
        }
        Ok(())
    }

    /// True if bytes of this range, or behind it, are not in the file yet.
    pub(super) fn reaches(&self, end: u64) -> bool {
        !self.bytes.is_empty() && end > self.from
    }

    /// Gives up the bytes from this offset on: they are not part of the log any more.
    pub(super) fn give_up_from(&mut self, at: u64) {
        if at < self.from {
            return self.give_up();
        }
        let kept = usize::try_from(at - self.from).unwrap_or(usize::MAX);
        if kept < self.bytes.len() {
            self.bytes.truncate(kept);
            self.next = Some(at);
        }
    }

    /// Gives up all bytes.
    fn give_up(&mut self) {
        self.bytes.clear();
        self.next = None;
        self.announced = None;
    }

    fn gather(&mut self, bytes: &[u8], at: u64) {
        if self.bytes.is_empty() {
            self.from = at;
        }
        debug_assert_eq!(self.from + length(&self.bytes), at, "gathered bytes are one range");
        self.bytes.extend_from_slice(bytes);
        self.next = Some(at + length(bytes));
    }

    /// This range, if all of it is gathered.
    fn own(&mut self, at: u64, length: usize) -> Option<&mut [u8]> {
        let start = usize::try_from(at.checked_sub(self.from)?).ok()?;
        self.bytes.get_mut(start..start.checked_add(length)?)
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).expect("a length fits 64 bits")
}
