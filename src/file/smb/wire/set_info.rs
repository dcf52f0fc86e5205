//! `SET_INFO`: what is set about a file. Whether it may be set is decided by the rules of the
//! service.

use super::{FileId, Parsed, Reader, WireError, header};

/// The class of times and attributes.
pub const CLASS_BASIC: u8 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SetInfo<'a> {
    pub kind: u8,
    pub class: u8,
    pub additional: u32,
    pub id: FileId,
    pub data: &'a [u8],
}

impl<'a> SetInfo<'a> {
    pub fn parse(message: &'a [u8]) -> Parsed<Self> {
        let mut body = Reader::body(message, 33)?;
        let (kind, class, length) = (body.u8()?, body.u8()?, body.large()?);
        let data_at = body.small()?;
        body.skip(2)?;
        let (additional, id) = (body.u32()?, body.file_id()?);
        if length > 0 && data_at < header::SIZE + 32 {
            return Err(WireError);
        }
        Ok(Self { kind, class, additional, id, data: body.at(data_at, length)? })
    }
}

/// What is set, by the class of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SetFile {
    /// Created, accessed, written, changed: FILETIMEs, of which 0 and those below leave the time as
    /// it is. Attributes: 0 leaves them.
    Basic {
        times: [u64; 4],
        attributes: u32,
    },
    Rename {
        replace: bool,
        name: String,
    },
    Link {
        replace: bool,
        name: String,
    },
    Disposition(bool),
    Position(u64),
    Mode(u32),
    Allocation(u64),
    EndOfFile(u64),
}

impl SetFile {
    /// None for a class that is not offered, as are the Ex forms. An error is data shorter than
    /// the class: `INFO_LENGTH_MISMATCH`.
    pub fn parse(class: u8, data: &[u8]) -> Parsed<Option<Self>> {
        let mut fields = Reader::new(data);
        Ok(Some(match class {
            CLASS_BASIC => Self::Basic {
                times: [fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?],
                attributes: fields.u32()?,
            },
            10 => {
                let (replace, name) = target(fields)?;
                Self::Rename { replace, name }
            }
            11 => {
                let (replace, name) = target(fields)?;
                Self::Link { replace, name }
            }
            13 => Self::Disposition(fields.u8()? != 0),
            14 => Self::Position(fields.u64()?),
            16 => Self::Mode(fields.u32()?),
            19 => Self::Allocation(fields.u64()?),
            20 => Self::EndOfFile(fields.u64()?),
            _ => return Ok(None),
        }))
    }
}

/// Whether the name may be taken, and the name from the root of the share, as sent.
fn target(mut fields: Reader<'_>) -> Parsed<(bool, String)> {
    let replace = fields.u8()? != 0;
    // Reserved, and a root directory that network clients leave 0.
    fields.skip(15)?;
    let length = fields.large()?;
    Ok((replace, super::bytes::text(fields.bytes(length)?)?))
}
