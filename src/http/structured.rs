//! Frames the body of an answer as a structured body, with CRC64 checksums.
//!
//! Decides how long a segment is. The form of a frame is read, and described, in
//! [`super::checksum`].

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use crc64fast_nvme::Digest as Crc;
use hyper::body::{Body, Bytes, Frame, SizeHint};

/// The usual length of a segment.
const SEGMENT_BYTES: u64 = 4 << 20;
const HEADER_BYTES: u64 = 13;
const SEGMENT_HEADER_BYTES: u64 = 10;
const CRC_BYTES: u64 = 8;

/// How a payload is cut: at least one segment, as clients write it, at most as many as the form
/// can count.
#[derive(Clone, Copy, Debug)]
struct Plan {
    payload: u64,
    segment: u64,
    segments: u16,
}

impl Plan {
    fn of(payload: u64) -> Self {
        let segment = SEGMENT_BYTES.max(payload.div_ceil(u16::MAX.into()));
        let segments = u16::try_from(payload.div_ceil(segment).max(1))
            .expect("a segment is long enough for 65,535 of them");
        Self { payload, segment, segments }
    }

    fn length(self) -> u64 {
        let segments = u64::from(self.segments) * (SEGMENT_HEADER_BYTES + CRC_BYTES);
        HEADER_BYTES + segments + self.payload + CRC_BYTES
    }
}

pub struct Structured<B> {
    inner: B,
    plan: Plan,
    /// Ready to be sent.
    ready: VecDeque<Bytes>,
    /// The segment being sent, counted from 1.
    number: u16,
    /// Bytes that it still lacks.
    missing: u64,
    /// Bytes of the payload that came so far.
    seen: u64,
    of_segment: Crc,
    of_all: Crc,
    /// Bytes still to be sent, frames included.
    left: u64,
}

impl<B> Structured<B> {
    /// Frames `inner`, which has `payload` bytes.
    pub fn new(inner: B, payload: u64) -> Self {
        let plan = Plan::of(payload);
        let mut header = vec![1];
        header.extend(plan.length().to_le_bytes());
        header.extend(1_u16.to_le_bytes());
        header.extend(plan.segments.to_le_bytes());
        let mut this = Self {
            inner,
            plan,
            ready: VecDeque::from([header.into()]),
            number: 0,
            missing: 0,
            seen: 0,
            of_segment: Crc::new(),
            of_all: Crc::new(),
            left: plan.length(),
        };
        this.begin_segment();
        if payload == 0 {
            this.end_segment();
        }
        this
    }

    /// How long it is, frames included.
    pub fn length(&self) -> u64 {
        self.plan.length()
    }

    fn begin_segment(&mut self) {
        self.number += 1;
        self.missing = self.plan.segment.min(self.plan.payload - self.seen);
        self.of_segment = Crc::new();
        let mut header = self.number.to_le_bytes().to_vec();
        header.extend(self.missing.to_le_bytes());
        self.ready.push_back(header.into());
    }

    fn end_segment(&mut self) {
        self.ready.push_back(self.of_segment.sum64().to_le_bytes().to_vec().into());
        if self.number == self.plan.segments {
            self.ready.push_back(self.of_all.sum64().to_le_bytes().to_vec().into());
        } else {
            self.begin_segment();
        }
    }

    fn take(&mut self, mut bytes: Bytes) {
        while !bytes.is_empty() && self.missing > 0 {
            let count = usize::try_from(self.missing).unwrap_or(usize::MAX).min(bytes.len());
            let part = bytes.split_to(count);
            self.of_segment.write(&part);
            self.of_all.write(&part);
            self.missing -= count as u64;
            self.seen += count as u64;
            self.ready.push_back(part);
            if self.missing == 0 {
                self.end_segment();
            }
        }
    }
}

impl<B: Body<Data = Bytes, Error = io::Error> + Unpin> Body for Structured<B> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                self.left = self.left.saturating_sub(bytes.len() as u64);
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            match Pin::new(&mut self.inner).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        self.take(bytes);
                    }
                }
                other => return other,
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_payload_has_longer_segments_and_never_too_many() {
        assert_eq!((Plan::of(0).segments, Plan::of(0).length()), (1, 39));
        assert_eq!((Plan::of(512).segments, Plan::of(512).length()), (1, 551));
        assert_eq!(
            (Plan::of(SEGMENT_BYTES).segments, Plan::of(SEGMENT_BYTES + 1).segments),
            (1, 2)
        );
        let most = Plan::of(4 << 40);
        assert!(most.segment > SEGMENT_BYTES);
        assert!(u64::from(most.segments) * most.segment >= most.payload);
    }
}
