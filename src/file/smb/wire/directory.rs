//! `QUERY_DIRECTORY` and `CHANGE_NOTIFY`. Which names are listed is decided by the operation.

use super::create::FileFacts;
use super::{FileId, Parsed, Reader, Writer, bytes, header};

pub const RESTART_SCANS: u8 = 0x1;
pub const RETURN_SINGLE_ENTRY: u8 = 0x2;
pub const REOPEN: u8 = 0x10;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirectoryRequest {
    pub class: u8,
    pub flags: u8,
    pub id: FileId,
    pub pattern: String,
    /// The most bytes of the answer.
    pub room: u32,
}

impl DirectoryRequest {
    pub fn parse(message: &[u8]) -> Parsed<Self> {
        let mut body = Reader::body(message, 33)?;
        let (class, flags) = (body.u8()?, body.u8()?);
        body.skip(4)?;
        let id = body.file_id()?;
        let (offset, length) = (body.small()?, body.small()?);
        let room = body.u32()?;
        Ok(Self { class, flags, id, pattern: body.text_at(offset, length)?, room })
    }
}

/// The answer of `QUERY_DIRECTORY`, `CHANGE_NOTIFY` and `QUERY_INFO`: a buffer.
pub fn buffer_answer(buffer: &[u8]) -> Vec<u8> {
    let body = Writer::answer(9).short_length(header::SIZE + 8).length(buffer.len());
    body.bytes(buffer).done()
}

/// What each entry of a listing shows, by the number of the information class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DirectoryClass {
    Directory = 1,
    Full = 2,
    Both = 3,
    Names = 12,
    IdBoth = 37,
    IdFull = 38,
}

impl DirectoryClass {
    pub fn of(class: u8) -> Option<Self> {
        let all =
            [Self::Directory, Self::Full, Self::Both, Self::Names, Self::IdBoth, Self::IdFull];
        all.into_iter().find(|one| *one as u8 == class)
    }
}

/// An entry of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub name: String,
    pub facts: FileFacts,
    /// The number of the file on its disk.
    pub file_id: u64,
}

/// A buffer of entries, never longer than its room.
#[derive(Debug)]
pub struct Listing {
    class: DirectoryClass,
    room: usize,
    buffer: Vec<u8>,
    last: usize,
}

impl Listing {
    pub fn new(class: DirectoryClass, room: usize) -> Self {
        Self { class, room, buffer: Vec::new(), last: 0 }
    }

    /// Adds an entry; false, and nothing added, if there is no room for it.
    pub fn push(&mut self, entry: &Entry) -> bool {
        let row = self.row(entry);
        let start = self.buffer.len().next_multiple_of(8);
        if start + row.len() > self.room {
            return false;
        }
        if start > 0 {
            let step = u32::try_from(start - self.last).expect("an entry has one name");
            self.buffer[self.last..self.last + 4].copy_from_slice(&step.to_le_bytes());
        }
        self.last = start;
        self.buffer.resize(start, 0);
        self.buffer.extend_from_slice(&row);
        true
    }

    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    pub fn done(self) -> Vec<u8> {
        self.buffer
    }

    fn row(&self, entry: &Entry) -> Vec<u8> {
        use DirectoryClass as C;
        let name = bytes::utf16(&entry.name);
        // Offset of the next entry, index.
        let row = Writer::new().u32(0).u32(0);
        if self.class == C::Names {
            return row.length(name.len()).bytes(&name).done();
        }
        let facts = &entry.facts;
        let row = facts.times.iter().fold(row, |row, time| row.u64(*time));
        let row = row.u64(facts.size).u64(facts.allocated).u32(facts.attributes);
        let row = row.length(name.len());
        // Size of extended attributes; short name; ID.
        let row = match self.class {
            C::Directory | C::Names => row,
            C::Full => row.u32(0),
            C::Both => row.u32(0).zeros(26),
            C::IdBoth => row.u32(0).zeros(28).u64(entry.file_id),
            C::IdFull => row.u32(0).u32(0).u64(entry.file_id),
        };
        row.bytes(&name).done()
    }
}

/// `CHANGE_NOTIFY`: the directory, and which changes are of interest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotifyRequest {
    pub recursive: bool,
    pub room: u32,
    pub id: FileId,
    pub filter: u32,
}

impl NotifyRequest {
    pub fn parse(message: &[u8]) -> Parsed<Self> {
        let mut body = Reader::body(message, 32)?;
        let (flags, room, id) = (body.u16()?, body.u32()?, body.file_id()?);
        Ok(Self { recursive: flags & 1 != 0, room, id, filter: body.u32()? })
    }
}
