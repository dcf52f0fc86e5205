//! Takes the payload out of the frames of a structured request body, piece by piece.
//!
//! Decides that every checksum and length of a frame is verified. Memory is bounded by the pieces
//! that arrive. The other direction is in [`super::structured`].

use crc64fast_nvme::Digest as Crc;
use hyper::body::Bytes;

use crate::http::frame::refusal::Refusal;

const HEADER_BYTES: usize = 13;
const SEGMENT_HEADER_BYTES: usize = 10;
const SUM_BYTES: usize = 8;

/// The next part of a structured body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    Header,
    SegmentHeader,
    /// So many bytes of payload, not none.
    Payload(u64),
    SegmentSum,
    Sum,
    Nothing,
}

/// Takes a structured body apart.
pub struct Unframer {
    next: Next,
    /// The beginning of a field that is cut in two.
    field: Vec<u8>,
    /// Bytes of the body so far, and as many as its header says.
    seen: u64,
    total: u64,
    has_sums: bool,
    segments: u16,
    /// The segment that is being read, counted from 1.
    number: u16,
    of_segment: Crc,
    of_all: Crc,
}

impl Default for Unframer {
    fn default() -> Self {
        Self {
            next: Next::Header,
            field: Vec::with_capacity(HEADER_BYTES),
            seen: 0,
            total: 0,
            has_sums: false,
            segments: 0,
            number: 0,
            of_segment: Crc::new(),
            of_all: Crc::new(),
        }
    }
}

impl Unframer {
    /// The next bytes of payload in `bytes`, which are taken from there; `None` if there are none.
    pub fn next(&mut self, bytes: &mut Bytes) -> Result<Option<Bytes>, Refusal> {
        while !bytes.is_empty() {
            let length = match self.next {
                Next::Payload(left) => return Ok(Some(self.payload(bytes, left))),
                Next::Nothing => return Err(malformed("it goes on past its end")),
                Next::Header => HEADER_BYTES,
                Next::SegmentHeader => SEGMENT_HEADER_BYTES,
                Next::SegmentSum | Next::Sum => SUM_BYTES,
            };
            let part = bytes.split_to(bytes.len().min(length - self.field.len()));
            self.seen += part.len() as u64;
            self.field.extend_from_slice(&part);
            if self.field.len() == length {
                let field = std::mem::take(&mut self.field);
                self.next = self.read(&field)?;
            }
        }
        Ok(None)
    }

    /// To be called at the end of the body: whether it was whole.
    pub fn finish(&self) -> Result<(), Refusal> {
        match self.next {
            Next::Nothing if self.seen == self.total => Ok(()),
            Next::Nothing => Err(malformed("its length is not the one that it gives")),
            _ => Err(malformed("it breaks off")),
        }
    }

    fn payload(&mut self, bytes: &mut Bytes, left: u64) -> Bytes {
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let part = bytes.split_to(count);
        if self.has_sums {
            self.of_segment.write(&part);
            self.of_all.write(&part);
        }
        self.seen += count as u64;
        self.next = match left - count as u64 {
            0 => self.after_payload(),
            left => Next::Payload(left),
        };
        part
    }

    /// Reads a field that is whole, and says what comes after it.
    fn read(&mut self, field: &[u8]) -> Result<Next, Refusal> {
        let mut rest = field;
        match self.next {
            Next::Header => {
                let [version] = take(&mut rest);
                self.total = u64::from_le_bytes(take(&mut rest));
                let flags = u16::from_le_bytes(take(&mut rest));
                self.segments = u16::from_le_bytes(take(&mut rest));
                self.has_sums = flags == 1;
                if version != 1 || flags > 1 {
                    return Err(malformed("its header is not known"));
                }
                Ok(self.after_segment())
            }
            Next::SegmentHeader => {
                let number = u16::from_le_bytes(take(&mut rest));
                let length = u64::from_le_bytes(take(&mut rest));
                self.number += 1;
                self.of_segment = Crc::new();
                if number != self.number {
                    return Err(malformed("its segments are out of order"));
                }
                if length > self.total {
                    return Err(malformed("a segment is longer than the body"));
                }
                Ok(if length == 0 { self.after_payload() } else { Next::Payload(length) })
            }
            Next::SegmentSum if u64::from_le_bytes(take(&mut rest)) == self.of_segment.sum64() => {
                Ok(self.after_segment())
            }
            Next::Sum if u64::from_le_bytes(take(&mut rest)) == self.of_all.sum64() => {
                Ok(Next::Nothing)
            }
            Next::SegmentSum | Next::Sum | Next::Payload(_) | Next::Nothing => Err(mismatch()),
        }
    }

    fn after_payload(&self) -> Next {
        if self.has_sums { Next::SegmentSum } else { self.after_segment() }
    }

    fn after_segment(&self) -> Next {
        match () {
            () if self.number < self.segments => Next::SegmentHeader,
            () if self.has_sums => Next::Sum,
            () => Next::Nothing,
        }
    }
}

/// The first bytes of a field, which has them.
fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (first, after) = rest.split_first_chunk().expect("a field is read when it is whole");
    *rest = after;
    *first
}

fn malformed(why: &str) -> Refusal {
    Refusal::bad("InvalidInput", format!("The structured body is malformed: {why}."))
}

fn mismatch() -> Refusal {
    Refusal::bad_because("Crc64Mismatch", "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::checksum::crc64;

    /// A body of these segments.
    fn framed(segments: &[&[u8]]) -> Vec<u8> {
        let payload = segments.concat();
        let mut body = vec![1];
        let length = 13 + segments.len() * 18 + payload.len() + 8;
        body.extend((length as u64).to_le_bytes());
        body.extend(1_u16.to_le_bytes());
        body.extend(u16::try_from(segments.len()).unwrap().to_le_bytes());
        for (number, segment) in (1_u16..).zip(segments) {
            body.extend(number.to_le_bytes());
            body.extend((segment.len() as u64).to_le_bytes());
            body.extend(*segment);
            body.extend(crc64(segment).to_le_bytes());
        }
        body.extend(crc64(&payload).to_le_bytes());
        body
    }

    /// The payload of a body that comes in pieces.
    fn unframed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<u8>, Refusal> {
        let mut unframer = Unframer::default();
        let mut payload = Vec::new();
        for piece in pieces {
            let mut bytes = Bytes::copy_from_slice(piece);
            while let Some(part) = unframer.next(&mut bytes)? {
                payload.extend_from_slice(&part);
            }
        }
        unframer.finish().map(|()| payload)
    }

    #[test]
    fn a_body_comes_apart_wherever_it_is_cut() {
        for segments in [&[&b""[..]][..], &[&[7; 512]], &[&[1; 40], b"", &[2; 30]], &[]] {
            let body = framed(segments);
            for size in [1, 2, 7, 100, 1000] {
                assert_eq!(unframed(body.chunks(size)).unwrap(), segments.concat(), "{size}");
            }
        }
    }

    #[test]
    fn every_byte_counts() {
        let body = framed(&[&[7; 40], &[8; 20]]);
        for at in 0..body.len() {
            let mut bad = body.clone();
            bad[at] ^= 1;
            // The flags may say that there are no checksums; then the frame is too long.
            assert!(unframed([&bad[..]]).is_err(), "byte {at}");
            assert!(unframed([&body[..at]]).is_err(), "cut at {at}");
        }
        assert!(unframed([&body[..], b"x"]).is_err(), "it goes on");
    }
}
