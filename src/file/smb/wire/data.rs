//! READ and WRITE. The most bytes of one are decided by the operation.

use super::{FileId, Parsed, Reader, WireError, Writer, header};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadRequest {
    pub length: u32,
    pub offset: u64,
    pub id: FileId,
    /// Fewer bytes than this are the end of the file.
    pub minimum: u32,
}

impl ReadRequest {
    pub fn parse(message: &[u8]) -> Parsed<Self> {
        let mut body = Reader::body(message, 49)?;
        body.skip(2)?;
        let (length, offset, id) = (body.u32()?, body.u64()?, body.file_id()?);
        let minimum = body.u32()?;
        // Channel, remaining bytes, and where the channel is described.
        body.skip(12)?;
        Ok(Self { length, offset, id, minimum })
    }
}

/// The answer of READ.
pub fn read_answer(data: &[u8]) -> Vec<u8> {
    // One byte of offset, one reserved.
    let body = Writer::answer(17).short_length(header::SIZE + 16).length(data.len()).u32(0).u32(0);
    body.bytes(data).done()
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteRequest<'a> {
    pub offset: u64,
    pub id: FileId,
    pub data: &'a [u8],
    /// The bytes must be on the disk before the answer.
    pub write_through: bool,
}

impl<'a> WriteRequest<'a> {
    pub fn parse(message: &'a [u8]) -> Parsed<Self> {
        let mut body = Reader::body(message, 49)?;
        let (data_at, length) = (body.small()?, body.large()?);
        let (offset, id) = (body.u64()?, body.file_id()?);
        body.skip(12)?;
        let flags = body.u32()?;
        if length > 0 && data_at < header::SIZE + 48 {
            return Err(WireError);
        }
        let data = body.at(data_at, length)?;
        Ok(Self { offset, id, data, write_through: flags & 1 != 0 })
    }
}

/// The answer of WRITE.
pub fn write_answer(count: usize) -> Vec<u8> {
    Writer::answer(17).u16(0).length(count).u32(0).u32(0).done()
}
