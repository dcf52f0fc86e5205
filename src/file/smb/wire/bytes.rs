//! Little-endian fields: a reader that checks every length, and a writer. Which fields a message
//! has is decided beside its structure.

use super::{FileId, Parsed, WireError, header};

/// Reads the fields of a structure one after the other.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    whole: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte of `whole`; offsets count from there.
    pub fn new(whole: &'a [u8]) -> Self {
        Self { whole, at: 0 }
    }

    /// Starts behind the header of a message, and checks the size that its body names.
    pub fn body(message: &'a [u8], structure_size: u16) -> Parsed<Self> {
        let mut body = Self { whole: message, at: header::SIZE };
        if body.u16()? == structure_size { Ok(body) } else { Err(WireError) }
    }

    /// The next `length` bytes.
    pub fn bytes(&mut self, length: usize) -> Parsed<&'a [u8]> {
        let end = self.at.checked_add(length).ok_or(WireError)?;
        let bytes = self.whole.get(self.at..end).ok_or(WireError)?;
        self.at = end;
        Ok(bytes)
    }

    pub fn array<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        self.bytes(N)?.try_into().map_err(|_| WireError)
    }

    pub fn skip(&mut self, length: usize) -> Parsed<()> {
        self.bytes(length).map(drop)
    }

    pub fn u8(&mut self) -> Parsed<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub fn u16(&mut self) -> Parsed<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Parsed<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Parsed<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A field of 16 bits that says where something is or how long it is.
    pub fn small(&mut self) -> Parsed<usize> {
        self.u16().map(usize::from)
    }

    /// A field of 32 bits that says where something is or how long it is.
    pub fn large(&mut self) -> Parsed<usize> {
        usize::try_from(self.u32()?).map_err(|_| WireError)
    }

    pub fn file_id(&mut self) -> Parsed<FileId> {
        Ok(FileId { persistent: self.u64()?, volatile: self.u64()? })
    }

    /// `count` numbers of 16 bits.
    pub fn list(&mut self, count: usize) -> Parsed<Vec<u16>> {
        let bytes = self.bytes(count.checked_mul(2).ok_or(WireError)?)?;
        Ok(bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect())
    }

    /// The `length` bytes at `offset` from the start of the whole. Nothing has no place: its
    /// offset is not looked at.
    pub fn at(&self, offset: usize, length: usize) -> Parsed<&'a [u8]> {
        if length == 0 {
            return Ok(&[]);
        }
        let end = offset.checked_add(length).ok_or(WireError)?;
        self.whole.get(offset..end).ok_or(WireError)
    }

    /// The UTF-16 text of `length` bytes at `offset`.
    pub fn text_at(&self, offset: usize, length: usize) -> Parsed<String> {
        text(self.at(offset, length)?)
    }
}

/// A text of UTF-16, which must have no half of a pair.
pub fn text(bytes: &[u8]) -> Parsed<String> {
    let (units, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(WireError);
    }
    char::decode_utf16(units.iter().map(|unit| u16::from_le_bytes(*unit)))
        .collect::<Result<_, _>>()
        .map_err(|_| WireError)
}

/// The UTF-16 of a text.
pub fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Writes fields one after the other.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Writer(Vec<u8>);

impl Writer {
    pub fn new() -> Self {
        Self::default()
    }

    /// An answer: room for the header, then the size of the structure.
    pub fn answer(structure_size: u16) -> Self {
        Self(vec![0; header::SIZE]).u16(structure_size)
    }

    pub fn u8(self, value: u8) -> Self {
        self.bytes(&[value])
    }

    pub fn u16(self, value: u16) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// A length or an offset, as 16 bits. All that is written is bounded far below.
    pub fn short_length(self, length: usize) -> Self {
        self.u16(u16::try_from(length).expect("lengths in answers are bounded"))
    }

    /// A length or an offset, as 32 bits. All that is written is bounded far below.
    pub fn length(self, length: usize) -> Self {
        self.u32(u32::try_from(length).expect("lengths in answers are bounded"))
    }

    pub fn file_id(self, id: FileId) -> Self {
        self.u64(id.persistent).u64(id.volatile)
    }

    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub fn zeros(mut self, count: usize) -> Self {
        self.0.resize(self.0.len() + count, 0);
        self
    }

    /// Zeros up to the next multiple of eight.
    pub fn align(mut self) -> Self {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        self
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn done(self) -> Vec<u8> {
        self.0
    }
}
