//! CREATE and CLOSE. What an open is granted is decided by the rules of the service.

use super::{FileId, Parsed, Reader, WireError, Writer, header};

/// The most contexts of a request.
const CONTEXTS_MAX: usize = 64;

pub const OPTION_DIRECTORY: u32 = 0x1;
pub const OPTION_NON_DIRECTORY: u32 = 0x40;
pub const OPTION_DELETE_ON_CLOSE: u32 = 0x1000;

/// An open as it is asked for; the numbers are those of the wire.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateRequest<'a> {
    pub oplock: u8,
    pub impersonation: u32,
    pub access: u32,
    pub attributes: u32,
    pub share: u32,
    pub disposition: u32,
    pub options: u32,
    /// As sent: with backslashes.
    pub name: String,
    pub contexts: Vec<Context<'a>>,
}

/// A named extra of a CREATE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Context<'a> {
    pub name: &'a [u8],
    pub data: &'a [u8],
}

impl<'a> CreateRequest<'a> {
    pub fn parse(message: &'a [u8]) -> Parsed<Self> {
        let mut body = Reader::body(message, 57)?;
        body.skip(1)?;
        let (oplock, impersonation) = (body.u8()?, body.u32()?);
        body.skip(16)?;
        let (access, attributes, share) = (body.u32()?, body.u32()?, body.u32()?);
        let (disposition, options) = (body.u32()?, body.u32()?);
        let (name_at, name_length) = (body.small()?, body.small()?);
        let (contexts_at, contexts_length) = (body.large()?, body.large()?);
        Ok(Self {
            oplock,
            impersonation,
            access,
            attributes,
            share,
            disposition,
            options,
            name: body.text_at(name_at, name_length)?,
            contexts: contexts(body.at(contexts_at, contexts_length)?)?,
        })
    }

    /// The data of a context.
    pub fn context(&self, name: &[u8; 4]) -> Option<&'a [u8]> {
        self.contexts.iter().find(|one| one.name == name).map(|one| one.data)
    }
}

fn contexts(mut list: &[u8]) -> Parsed<Vec<Context<'_>>> {
    let mut contexts = Vec::new();
    while !list.is_empty() {
        if contexts.len() == CONTEXTS_MAX {
            return Err(WireError);
        }
        let mut fields = Reader::new(list);
        let next = fields.large()?;
        let (name_at, name_length) = (fields.small()?, fields.small()?);
        if name_length < 4 {
            return Err(WireError);
        }
        fields.skip(2)?;
        let (data_at, data_length) = (fields.small()?, fields.large()?);
        contexts.push(Context {
            name: fields.at(name_at, name_length)?,
            data: fields.at(data_at, data_length)?,
        });
        list = match next {
            0 => &[],
            next if next < 16 => return Err(WireError),
            next => list.get(next..).ok_or(WireError)?,
        };
    }
    Ok(contexts)
}

/// Times, sizes and attributes of a file, as CREATE and CLOSE answer them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FileFacts {
    /// Created, accessed, written, changed, each a FILETIME.
    pub times: [u64; 4],
    pub allocated: u64,
    pub size: u64,
    pub attributes: u32,
}

impl FileFacts {
    pub fn write(&self, to: Writer) -> Writer {
        let to = self.times.iter().fold(to, |to, time| to.u64(*time));
        to.u64(self.allocated).u64(self.size).u32(self.attributes)
    }
}

/// The answer of CREATE. `action`: 0 superseded, 1 opened, 2 created, 3 overwritten. No oplock is
/// granted, ever.
pub struct CreateAnswer<'a> {
    pub action: u32,
    pub facts: FileFacts,
    pub id: FileId,
    /// Contexts that are answered: `MxAc`, `QFid`.
    pub contexts: &'a [(&'a [u8; 4], Vec<u8>)],
}

impl CreateAnswer<'_> {
    pub fn write(&self) -> Vec<u8> {
        let list = self.list();
        let at = if list.is_empty() { 0 } else { header::SIZE + 88 };
        let body = Writer::answer(89).u8(0).u8(0).u32(self.action);
        let body = self.facts.write(body).u32(0).file_id(self.id);
        body.length(at).length(list.len()).bytes(&list).done()
    }

    fn list(&self) -> Vec<u8> {
        let mut list = Writer::new();
        for (number, (name, data)) in self.contexts.iter().enumerate() {
            // Name at 16, data behind it at 24.
            let length = (24 + data.len()).next_multiple_of(8);
            let next = if number + 1 == self.contexts.len() { 0 } else { length };
            let data_at = if data.is_empty() { 0 } else { 24 };
            list = list.length(next).u16(16).u16(4).u16(0).u16(data_at).length(data.len());
            list = list.bytes(*name).zeros(4).bytes(data).align();
        }
        list.done()
    }
}

/// CLOSE: the file, and whether the answer shows its last state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CloseRequest {
    pub wants_facts: bool,
    pub id: FileId,
}

impl CloseRequest {
    pub fn parse(message: &[u8]) -> Parsed<Self> {
        let mut body = Reader::body(message, 24)?;
        let flags = body.u16()?;
        body.skip(4)?;
        Ok(Self { wants_facts: flags & 1 != 0, id: body.file_id()? })
    }
}

/// The answer of CLOSE; the facts only if they were asked for.
pub fn close_answer(facts: Option<&FileFacts>) -> Vec<u8> {
    let body = Writer::answer(60).u16(u16::from(facts.is_some())).u32(0);
    facts.copied().unwrap_or_default().write(body).done()
}
