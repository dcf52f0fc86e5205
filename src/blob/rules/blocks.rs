//! Blocks of block blobs: their IDs, and the list that makes a blob of them.
//!
//! Decides which IDs are legal and how many blocks a blob may have. The store keeps and finds
//! blocks; REST reads the XML of a list.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt;

use super::denial::BlobDenial;

/// Most entries of a committed list, and most blocks of an append blob.
pub const COMMITTED_MAX: usize = 50_000;
/// Most uncommitted blocks of a blob.
pub const UNCOMMITTED_MAX: usize = 100_000;
/// Most bytes of a block's ID, before base64.
pub const ID_MAX: usize = 64;

/// The ID of a block: 1 to 64 bytes, base64 on the wire.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(Vec<u8>);

/// Why a text is no block ID.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BlockIdError {
    /// Empty, or not base64.
    #[error("The block ID must be base64.")]
    NotBase64,
    /// Longer than 64 bytes.
    #[error("The block ID must be at most 64 bytes.")]
    TooLong,
}

impl BlockId {
    /// Reads the base64 text of a request.
    pub fn parse(text: &str) -> Result<Self, BlockIdError> {
        let bytes = STANDARD.decode(text).map_err(|_| BlockIdError::NotBase64)?;
        match bytes.len() {
            0 => Err(BlockIdError::NotBase64),
            1..=ID_MAX => Ok(Self(bytes)),
            _ => Err(BlockIdError::TooLong),
        }
    }

    /// The decoded bytes, as they are stored and sorted.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The ID of stored bytes.
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(&self.0))
    }
}

impl fmt::Debug for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockId({self})")
    }
}

/// Where an entry of a block list looks for its block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BlockSearch {
    /// Among the blocks of the blob as it is.
    Committed,
    /// Among the blocks that were put since.
    Uncommitted,
    /// Among the uncommitted blocks first, then among the committed ones.
    Latest,
}

/// An entry of a block list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedBlock {
    pub search: BlockSearch,
    /// The block to look for.
    pub id: BlockId,
}

/// Refuses a new block whose ID has another length than the blob's other uncommitted blocks, or
/// that would be one too many. `others` is the length of their IDs, `None` if there are none.
pub fn check_new_block(
    id: &BlockId,
    others: Option<usize>,
    count: usize,
    replaces: bool,
) -> Result<(), BlobDenial> {
    if others.is_some_and(|length| length != id.0.len()) {
        return Err(BlobDenial::InvalidBlobOrBlock);
    }
    if count >= UNCOMMITTED_MAX && !replaces {
        return Err(BlobDenial::BlockCountExceedsLimit);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> BlockId {
        BlockId::from_bytes(text.as_bytes().to_vec())
    }

    #[test]
    fn an_id_is_base64_of_1_to_64_bytes() {
        assert_eq!(BlockId::parse("AAAA").unwrap().as_bytes(), [0, 0, 0]);
        assert_eq!(BlockId::parse("AAAA").unwrap().to_string(), "AAAA");
        let longest = STANDARD.encode([7; ID_MAX]);
        assert_eq!(BlockId::parse(&longest).unwrap().to_string(), longest);
        assert_eq!(BlockId::parse(&STANDARD.encode([7; 65])), Err(BlockIdError::TooLong));
        for text in ["", "A", "AAA", "AA A", "!!!!", "AAAA\n"] {
            assert_eq!(BlockId::parse(text), Err(BlockIdError::NotBase64), "{text}");
        }
    }

    #[test]
    fn ids_of_uncommitted_blocks_have_one_length() {
        assert_eq!(check_new_block(&id("ab"), None, 0, false), Ok(()));
        assert_eq!(check_new_block(&id("ab"), Some(2), 1, false), Ok(()));
        let other = check_new_block(&id("ab"), Some(3), 1, false);
        assert_eq!(other, Err(BlobDenial::InvalidBlobOrBlock));
    }

    #[test]
    fn a_blob_has_at_most_100_000_uncommitted_blocks() {
        let last = check_new_block(&id("ab"), Some(2), UNCOMMITTED_MAX - 1, false);
        assert_eq!(last, Ok(()));
        let more = check_new_block(&id("ab"), Some(2), UNCOMMITTED_MAX, false);
        assert_eq!(more, Err(BlobDenial::BlockCountExceedsLimit));
        assert_eq!(check_new_block(&id("ab"), Some(2), UNCOMMITTED_MAX, true), Ok(()));
    }
}
