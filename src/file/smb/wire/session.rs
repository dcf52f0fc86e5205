//! `SESSION_SETUP` and `TREE_CONNECT`. Who the user is is decided by `auth`, which shares there are
//! by the tree.

use super::{Parsed, Reader, Writer, header};

/// The session is encrypted: set in the answer of `SESSION_SETUP`.
pub const SESSION_ENCRYPTED: u16 = 0x4;
/// Set in a request that binds a session to a second connection.
pub const BINDING: u8 = 0x1;

/// One leg of a logon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionSetup<'a> {
    pub flags: u8,
    pub security_mode: u8,
    /// A session of the same client that this one replaces; 0 if none.
    pub previous_session: u64,
    pub token: &'a [u8],
}

impl<'a> SessionSetup<'a> {
    pub fn parse(message: &'a [u8]) -> Parsed<Self> {
        let mut body = Reader::body(message, 25)?;
        let (flags, security_mode) = (body.u8()?, body.u8()?);
        body.skip(8)?;
        let (offset, length) = (body.small()?, body.small()?);
        let previous_session = body.u64()?;
        Ok(Self { flags, security_mode, previous_session, token: body.at(offset, length)? })
    }
}

/// The answer of `SESSION_SETUP`, with the status `MORE_PROCESSING_REQUIRED` or none.
pub fn session_answer(flags: u16, token: &[u8]) -> Vec<u8> {
    let body = Writer::answer(9).u16(flags).short_length(header::SIZE + 8);
    body.short_length(token.len()).bytes(token).done()
}

/// The UNC path of a `TREE_CONNECT`: `\\HOST\SHARE`.
pub fn parse_tree_connect(message: &[u8]) -> Parsed<String> {
    let mut body = Reader::body(message, 9)?;
    body.skip(2)?;
    let (offset, length) = (body.small()?, body.small()?);
    body.text_at(offset, length)
}

/// What a tree is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TreeAnswer {
    /// `IPC$`, which has named pipes and no files.
    pub pipe: bool,
    pub maximal_access: u32,
}

impl TreeAnswer {
    pub fn write(&self) -> Vec<u8> {
        // NO_CACHING: other faces change files behind the back of a cache.
        let (kind, flags) = if self.pipe { (2, 0) } else { (1, 0x30) };
        let body = Writer::answer(16).u8(kind).u8(0).u32(flags).u32(0);
        body.u32(self.maximal_access).done()
    }
}
