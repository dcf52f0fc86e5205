//! IOCTL. Which codes are answered is decided by the operation.

use super::{FileId, Parsed, Reader, Writer, header};

pub const VALIDATE_NEGOTIATE_INFO: u32 = 0x0014_0204;
pub const PIPE_TRANSCEIVE: u32 = 0x0011_C017;
pub const CREATE_OR_GET_OBJECT_ID: u32 = 0x0009_00C0;
pub const DFS_GET_REFERRALS: u32 = 0x0006_0194;
pub const DFS_GET_REFERRALS_EX: u32 = 0x0006_01B0;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoctlRequest<'a> {
    pub code: u32,
    pub id: FileId,
    pub input: &'a [u8],
    pub max_output: u32,
    /// A control code of the file system, the only kind there is.
    pub is_fsctl: bool,
}

impl<'a> IoctlRequest<'a> {
    pub fn parse(message: &'a [u8]) -> Parsed<Self> {
        let mut body = Reader::body(message, 57)?;
        body.skip(2)?;
        let (code, id) = (body.u32()?, body.file_id()?);
        let (input_at, input_length) = (body.large()?, body.large()?);
        body.skip(12)?;
        let (max_output, flags) = (body.u32()?, body.u32()?);
        body.skip(4)?;
        let input = body.at(input_at, input_length)?;
        Ok(Self { code, id, input, max_output, is_fsctl: flags & 1 != 0 })
    }
}

/// The answer of IOCTL.
pub fn ioctl_answer(code: u32, id: FileId, output: &[u8]) -> Vec<u8> {
    let at = header::SIZE + 48;
    let body = Writer::answer(49).u16(0).u32(code).file_id(id).length(at).u32(0);
    body.length(at).length(output.len()).u32(0).u32(0).bytes(output).done()
}
