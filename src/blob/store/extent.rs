//! Extents, and how up to 512 of them are packed into one row.
//! Which rows a state has is decided in [`super::extents`].

use super::types::ContentId;
use crate::db::DbError;

/// The most extents in a row.
pub(super) const ROW_MAX: usize = 512;

/// Bytes of a blob that lie in one piece in a content file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extent {
    /// Where in the blob.
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) file: ContentId,
    /// Where in the file.
    pub(super) offset: u64,
    /// The counter of the write.
    pub(super) write: u64,
}

impl Extent {
    pub(super) fn end(&self) -> u64 {
        self.start + self.length
    }

    /// Not empty, and no end beyond the largest number.
    fn is_sound(&self) -> bool {
        self.length > 0
            && self.start.checked_add(self.length).is_some()
            && self.offset.checked_add(self.length).is_some()
    }

    /// The part of it that lies in `from..to`.
    pub(super) fn cut(&self, from: u64, to: u64) -> Option<Self> {
        let start = self.start.max(from);
        let end = self.end().min(to);
        (start < end).then(|| Self {
            start,
            length: end - start,
            offset: self.offset + (start - self.start),
            ..*self
        })
    }
}

/// Packs extents in ascending order. Each is written as its difference to what would follow the
/// one before it without a gap, so that blocks of one upload take a few bytes each.
pub(super) fn pack(first: u64, extents: &[Extent]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(extents.len() * 8 + 24);
    let mut last = Last::new(first);
    for extent in extents {
        put_number(&mut bytes, extent.start.wrapping_sub(last.start));
        put_number(&mut bytes, extent.length);
        put_difference(&mut bytes, extent.file.0, last.file);
        put_difference(&mut bytes, extent.offset, last.offset);
        put_difference(&mut bytes, extent.write, last.write);
        last.follow(extent);
    }
    bytes
}

/// The extents of a row.
pub(super) fn unpack(first: u64, packed: &[u8]) -> Result<Vec<Extent>, DbError> {
    let mut extents = Vec::new();
    let mut rest = packed;
    let mut last = Last::new(first);
    while !rest.is_empty() {
        let extent = last.read(&mut rest);
        let extent = extent.filter(Extent::is_sound);
        let extent = extent.ok_or_else(|| DbError::damaged("a list of extents ends too early"))?;
        last.follow(&extent);
        extents.push(extent);
    }
    Ok(extents)
}

/// What the next extent would be if it continued the last one.
struct Last {
    start: u64,
    file: u64,
    offset: u64,
    write: u64,
}

impl Last {
    fn new(first: u64) -> Self {
        Self { start: first, file: 0, offset: 0, write: 0 }
    }

    fn follow(&mut self, extent: &Extent) {
        self.start = extent.end();
        self.file = extent.file.0;
        self.offset = extent.offset + extent.length;
        self.write = extent.write;
    }

    fn read(&self, bytes: &mut &[u8]) -> Option<Extent> {
        Some(Extent {
            start: self.start.checked_add(take_number(bytes)?)?,
            length: take_number(bytes)?,
            file: ContentId(take_difference(bytes, self.file)?),
            offset: take_difference(bytes, self.offset)?,
            write: take_difference(bytes, self.write)?,
        })
    }
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            return bytes.push(low);
        }
        bytes.push(low | 0x80);
    }
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// The difference as a number that is small for small differences in both directions.
fn put_difference(bytes: &mut Vec<u8>, number: u64, last: u64) {
    let difference = number.wrapping_sub(last).cast_signed();
    put_number(bytes, ((difference << 1) ^ (difference >> 63)).cast_unsigned());
}

fn take_difference(bytes: &mut &[u8], last: u64) -> Option<u64> {
    let folded = take_number(bytes)?;
    let difference = (folded >> 1) ^ (folded & 1).wrapping_neg();
    Some(last.wrapping_add(difference))
}

/// Packs the IDs of blocks, 1 to 64 bytes each.
pub(super) fn pack_ids<'a>(ids: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for id in ids {
        put_number(&mut bytes, id.len() as u64);
        bytes.extend_from_slice(id);
    }
    bytes
}

pub(super) fn unpack_ids(packed: &[u8]) -> Result<Vec<Vec<u8>>, DbError> {
    let mut ids = Vec::new();
    let mut rest = packed;
    while !rest.is_empty() {
        let length = take_number(&mut rest).and_then(|length| usize::try_from(length).ok());
        let id = length.and_then(|length| rest.split_at_checked(length));
        let (id, after) = id.ok_or_else(|| DbError::damaged("a block list ends too early"))?;
        ids.push(id.to_vec());
        rest = after;
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_extents() -> impl Strategy<Value = (u64, Vec<Extent>)> {
        let part =
            (0_u64..1 << 40, 1_u64..1 << 33, 0..=u64::MAX >> 1, 0_u64..1 << 43, 0..=u64::MAX >> 1);
        prop::collection::vec(part, 0..40).prop_map(|parts| {
            let mut start = 0;
            let extents: Vec<_> = parts
                .into_iter()
                .map(|(gap, length, file, offset, write)| {
                    start += gap;
                    let extent = Extent { start, length, file: ContentId(file), offset, write };
                    start += length;
                    extent
                })
                .collect();
            (extents.first().map_or(0, |first| first.start), extents)
        })
    }

    proptest! {
        #[test]
        fn packed_extents_come_back((first, extents) in any_extents()) {
            prop_assert_eq!(unpack(first, &pack(first, &extents)).unwrap(), extents);
        }

        #[test]
        fn damaged_rows_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = unpack(7, &bytes);
            let _ = unpack_ids(&bytes);
        }

        #[test]
        fn packed_ids_come_back(
            ids in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..=64), 0..40),
        ) {
            let packed = pack_ids(ids.iter().map(Vec::as_slice));
            prop_assert_eq!(unpack_ids(&packed).unwrap(), ids);
        }
    }

    #[test]
    fn blocks_of_one_upload_take_few_bytes() {
        let block = |index: u64| Extent {
            start: index * 4096,
            length: 4096,
            file: ContentId(1_790_000_000_000_000_000),
            offset: 7_000_000 + index * 4096,
            write: 0,
        };
        let extents: Vec<_> = (0..512).map(block).collect();
        assert!(pack(0, &extents).len() < 512 * 6 + 20);
    }

    #[test]
    fn a_cut_keeps_start_and_offset_together() {
        let extent = Extent { start: 100, length: 50, file: ContentId(1), offset: 1000, write: 3 };
        let cut = extent.cut(110, 130).unwrap();
        assert_eq!((cut.start, cut.length, cut.offset, cut.write), (110, 20, 1010, 3));
        assert_eq!(extent.cut(0, 1000), Some(extent));
        assert_eq!(extent.cut(150, 200), None);
        assert_eq!(extent.cut(0, 100), None);
    }
}
