//! SMB2 messages as values: requests are parsed from bytes, answers are written to bytes. What a
//! request does is decided by `operations`; sizes of frames by the connection.
//!
//! A request is parsed from its whole message, header included, since its offsets count from there.
//! An answer is written with [`header::SIZE`] zero bytes in front, which [`Header::fill`] fills.
//! Every length is checked before it is used, and no parser takes more memory than its message has.

pub mod bytes;
pub mod create;
pub mod data;
pub mod directory;
pub mod header;
pub mod info;
pub mod ioctl;
pub mod lock;
pub mod negotiate;
pub mod security;
pub mod session;
pub mod set_info;
#[cfg(test)]
mod tests;
pub mod volume;

pub use bytes::{Reader, Writer};
pub use header::{Command, Header, Transform};

/// A message that does not have the layout of its kind. Answered with `INVALID_PARAMETER`, or by
/// the end of the connection if it is the header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the SMB message does not have the layout of its command")]
pub struct WireError;

pub type Parsed<T> = Result<T, WireError>;

/// The two halves of a file ID. Both must be those that CREATE answered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FileId {
    pub persistent: u64,
    pub volatile: u64,
}

impl FileId {
    /// In a chain of related requests: the file of the request before.
    pub const OF_THE_CHAIN: Self = Self { persistent: u64::MAX, volatile: u64::MAX };
}

/// The answer of a refused request. `data` is empty, or the length that the buffer needs, for
/// `BUFFER_TOO_SMALL`.
pub fn error(data: &[u8]) -> Vec<u8> {
    let answer = Writer::answer(9).u8(0).u8(0).length(data.len()).bytes(data);
    // The structure has one byte of data at least.
    if data.is_empty() { answer.u8(0).done() } else { answer.done() }
}

/// The answer of FLUSH, LOCK, ECHO, LOGOFF, `TREE_DISCONNECT`: nothing but that it is done.
pub fn done() -> Vec<u8> {
    Writer::answer(4).u16(0).done()
}

/// FLUSH: the file alone.
pub fn parse_flush(message: &[u8]) -> Parsed<FileId> {
    let mut body = Reader::body(message, 24)?;
    body.skip(6)?;
    body.file_id()
}

/// LOGOFF, `TREE_DISCONNECT`, ECHO and CANCEL: nothing but the size of the structure.
pub fn parse_empty(message: &[u8]) -> Parsed<()> {
    Reader::body(message, 4).map(drop)
}
