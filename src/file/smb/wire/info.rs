//! `QUERY_INFO`, and what it answers about a file. The volume is in [`super::volume`], the security
//! descriptor in [`super::security`]; the values come from the operation.

use super::create::FileFacts;
use super::{FileId, Parsed, Reader, Writer, bytes};

/// Kinds of information, in `QUERY_INFO` and `SET_INFO`.
pub const KIND_FILE: u8 = 1;
pub const KIND_VOLUME: u8 = 2;
pub const KIND_SECURITY: u8 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueryInfo<'a> {
    pub kind: u8,
    pub class: u8,
    /// The most bytes of the answer.
    pub room: u32,
    /// Which parts of a security descriptor.
    pub additional: u32,
    pub id: FileId,
    pub input: &'a [u8],
}

impl<'a> QueryInfo<'a> {
    pub fn parse(message: &'a [u8]) -> Parsed<Self> {
        let mut body = Reader::body(message, 41)?;
        let (kind, class, room) = (body.u8()?, body.u8()?, body.u32()?);
        let input_at = body.small()?;
        body.skip(2)?;
        let (input_length, additional) = (body.large()?, body.u32()?);
        body.skip(4)?;
        let id = body.file_id()?;
        Ok(Self { kind, class, room, additional, id, input: body.at(input_at, input_length)? })
    }
}

/// The bytes of a class, of which the first `fixed` are its structure without a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Info {
    pub bytes: Vec<u8>,
    pub fixed: usize,
}

/// Information against the room that a client has for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fitted {
    Whole(Vec<u8>),
    /// Without its end: `BUFFER_OVERFLOW`, a warning.
    Cut(Vec<u8>),
    /// No room for the structure: `INFO_LENGTH_MISMATCH`.
    TooSmall,
}

impl Info {
    /// All bytes belong to the structure.
    pub(super) fn fixed(fields: Writer) -> Self {
        let bytes = fields.done();
        Self { fixed: bytes.len(), bytes }
    }

    /// A structure that ends with the length of a name and the name.
    pub(super) fn named(fields: Writer, name: &str) -> Self {
        let name = bytes::utf16(name);
        let fields = fields.length(name.len());
        let fixed = fields.len();
        Self { bytes: fields.bytes(&name).done(), fixed }
    }

    pub fn fit(mut self, room: u32) -> Fitted {
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        if room < self.fixed {
            return Fitted::TooSmall;
        }
        if room >= self.bytes.len() {
            return Fitted::Whole(self.bytes);
        }
        self.bytes.truncate(room);
        Fitted::Cut(self.bytes)
    }
}

/// What the classes of a file show.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileState {
    pub facts: FileFacts,
    pub links: u32,
    pub delete_pending: bool,
    pub directory: bool,
    pub file_id: u64,
    /// What the open was granted.
    pub access: u32,
    pub position: u64,
    pub mode: u32,
    /// With a leading backslash, and backslashes between.
    pub path: String,
}

impl FileState {
    /// The information of a class of a file; none for a class that is not offered. 8.3 names (21)
    /// are none of it: the operation answers them with `OBJECT_NAME_NOT_FOUND`.
    pub fn info(&self, class: u8) -> Option<Info> {
        let new = Writer::new;
        Some(match class {
            4 => Info::fixed(self.basic(new())),
            5 => Info::fixed(self.standard(new())),
            6 => Info::fixed(new().u64(self.file_id)),
            // No extended attributes; byte alignment.
            7 | 17 => Info::fixed(new().u32(0)),
            8 => Info::fixed(new().u32(self.access)),
            9 | 48 => Info::named(new(), &self.path),
            14 => Info::fixed(new().u64(self.position)),
            16 => Info::fixed(new().u32(self.mode)),
            18 => Info::named(self.all(new()), &self.path),
            22 => self.streams(),
            // Compression: none.
            28 => Info::fixed(new().u64(self.facts.size).zeros(8)),
            34 => Info::fixed(self.facts.write(new()).u32(0)),
            35 => Info::fixed(new().u32(self.facts.attributes).u32(0)),
            _ => return None,
        })
    }

    fn basic(&self, to: Writer) -> Writer {
        let to = self.facts.times.iter().fold(to, |to, time| to.u64(*time));
        to.u32(self.facts.attributes).u32(0)
    }

    fn standard(&self, to: Writer) -> Writer {
        let to = to.u64(self.facts.allocated).u64(self.facts.size).u32(self.links);
        to.u8(self.delete_pending.into()).u8(self.directory.into()).u16(0)
    }

    /// Basic, standard, ID, extended attributes, access, position, mode, alignment.
    fn all(&self, to: Writer) -> Writer {
        let to = self.standard(self.basic(to)).u64(self.file_id).u32(0).u32(self.access);
        to.u64(self.position).u32(self.mode).u32(0)
    }

    /// The unnamed stream, the only one; a directory has none.
    fn streams(&self) -> Info {
        if self.directory {
            return Info { bytes: Vec::new(), fixed: 0 };
        }
        let name = bytes::utf16("::$DATA");
        let fields = Writer::new().u32(0).length(name.len());
        let fields = fields.u64(self.facts.size).u64(self.facts.allocated);
        Info { fixed: fields.len(), bytes: fields.bytes(&name).done() }
    }
}
