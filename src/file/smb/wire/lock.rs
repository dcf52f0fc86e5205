//! LOCK. Which ranges exist and who may lock them is decided by the rules of the service.

use super::{FileId, Parsed, Reader, WireError};

pub const SHARED: u32 = 0x1;
pub const EXCLUSIVE: u32 = 0x2;
pub const UNLOCK: u32 = 0x4;
pub const FAIL_IMMEDIATELY: u32 = 0x10;

/// The most ranges of a request.
pub const LOCKS_MAX: usize = 1024;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockRequest {
    pub id: FileId,
    pub ranges: Vec<LockRange>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockRange {
    pub offset: u64,
    pub length: u64,
    pub flags: u32,
}

impl LockRequest {
    /// At least one range.
    pub fn parse(message: &[u8]) -> Parsed<Self> {
        let mut body = Reader::body(message, 48)?;
        let count = body.small()?;
        body.skip(4)?;
        let id = body.file_id()?;
        if count == 0 || count > LOCKS_MAX {
            return Err(WireError);
        }
        let ranges = (0..count)
            .map(|_| {
                let range =
                    LockRange { offset: body.u64()?, length: body.u64()?, flags: body.u32()? };
                body.skip(4)?;
                Ok(range)
            })
            .collect::<Parsed<_>>()?;
        Ok(Self { id, ranges })
    }
}
