//! MD5 (RFC 1321), of bodies.
//!
//! Decides how the digest is computed. Each step of MD5 needs the result of the step before, so its
//! speed is the latency of that chain. A step adds four numbers, of which only one comes late. The
//! compiler adds the constant among them last, which makes the chain longer by an addition. So the
//! words of a block and the constants are added in advance and put in memory, where the compiler
//! finds nothing to order anew. That takes a fifth less time than adding them in the step.

use std::hint::black_box;

/// Bytes that are hashed in one go.
const BLOCK: usize = 64;
const STEPS: usize = 64;

/// The digest of bytes that come in pieces.
#[derive(Clone)]
pub struct Md5 {
    state: State,
    /// Bytes so far.
    length: u64,
    /// Those of them that fill no block yet, at the beginning.
    rest: [u8; BLOCK],
}

/// A, B, C and D of the RFC.
type State = [u32; 4];

impl Md5 {
    /// Of no bytes yet.
    pub fn new() -> Self {
        let state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
        Self { state, length: 0, rest: [0; BLOCK] }
    }

    /// The digest of these bytes.
    pub fn digest(bytes: &[u8]) -> [u8; 16] {
        let mut md5 = Self::new();
        md5.update(bytes);
        md5.finish()
    }

    /// Takes the next bytes.
    pub fn update(&mut self, mut bytes: &[u8]) {
        let before = self.in_rest();
        self.length += bytes.len() as u64;
        if before > 0 {
            let (first, after) = bytes.split_at(bytes.len().min(BLOCK - before));
            self.rest[before..before + first.len()].copy_from_slice(first);
            if before + first.len() < BLOCK {
                return;
            }
            compress(&mut self.state, &[self.rest]);
            bytes = after;
        }
        let (blocks, after) = bytes.as_chunks();
        compress(&mut self.state, blocks);
        self.rest[..after.len()].copy_from_slice(after);
    }

    /// The digest of all bytes.
    pub fn finish(mut self) -> [u8; 16] {
        let bits = self.length.wrapping_mul(8);
        let used = self.in_rest();
        // One byte 0x80, zeros, and the length as the last eight bytes of a block.
        let padding = if used < BLOCK - 8 { BLOCK - used } else { 2 * BLOCK - used };
        let mut end = [0; 2 * BLOCK];
        end[0] = 0x80;
        end[padding - 8..padding].copy_from_slice(&bits.to_le_bytes());
        self.update(&end[..padding]);
        let mut digest = [0; 16];
        for (four, word) in digest.as_chunks_mut().0.iter_mut().zip(self.state) {
            *four = word.to_le_bytes();
        }
        digest
    }

    fn in_rest(&self) -> usize {
        usize::try_from(self.length % BLOCK as u64).expect("it is less than a block")
    }
}

impl Default for Md5 {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Md5 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Md5").field("length", &self.length).finish_non_exhaustive()
    }
}

/// The constants, in the order of the steps.
const SINES: [u32; STEPS] = [
    0xd76a_a478,
    0xe8c7_b756,
    0x2420_70db,
    0xc1bd_ceee,
    0xf57c_0faf,
    0x4787_c62a,
    0xa830_4613,
    0xfd46_9501,
    0x6980_98d8,
    0x8b44_f7af,
    0xffff_5bb1,
    0x895c_d7be,
    0x6b90_1122,
    0xfd98_7193,
    0xa679_438e,
    0x49b4_0821,
    0xf61e_2562,
    0xc040_b340,
    0x265e_5a51,
    0xe9b6_c7aa,
    0xd62f_105d,
    0x0244_1453,
    0xd8a1_e681,
    0xe7d3_fbc8,
    0x21e1_cde6,
    0xc337_07d6,
    0xf4d5_0d87,
    0x455a_14ed,
    0xa9e3_e905,
    0xfcef_a3f8,
    0x676f_02d9,
    0x8d2a_4c8a,
    0xfffa_3942,
    0x8771_f681,
    0x6d9d_6122,
    0xfde5_380c,
    0xa4be_ea44,
    0x4bde_cfa9,
    0xf6bb_4b60,
    0xbebf_bc70,
    0x289b_7ec6,
    0xeaa1_27fa,
    0xd4ef_3085,
    0x0488_1d05,
    0xd9d4_d039,
    0xe6db_99e5,
    0x1fa2_7cf8,
    0xc4ac_5665,
    0xf429_2244,
    0x432a_ff97,
    0xab94_23a7,
    0xfc93_a039,
    0x655b_59c3,
    0x8f0c_cc92,
    0xffef_f47d,
    0x8584_5dd1,
    0x6fa8_7e4f,
    0xfe2c_e6e0,
    0xa301_4314,
    0x4e08_11a1,
    0xf753_7e82,
    0xbd3a_f235,
    0x2ad7_d2bb,
    0xeb86_d391,
];

/// By how much each round rotates, in turn.
const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// The word of the block that a step adds.
const fn word(step: usize) -> usize {
    match step / 16 {
        0 => step,
        1 => (5 * step + 1) % 16,
        2 => (3 * step + 5) % 16,
        _ => (7 * step) % 16,
    }
}

/// The constants of each round in the order of the words that they are added to.
const BY_WORD: [[u32; 16]; 4] = {
    let mut by_word = [[0; 16]; 4];
    let mut step = 0;
    while step < STEPS {
        by_word[step / 16][word(step)] = SINES[step];
        step += 1;
    }
    by_word
};

/// Takes blocks. A build for tests is not optimised, but for crates that are compiled once: there
/// the crate `md-5` does the same thirty times faster.
fn compress(state: &mut State, blocks: &[[u8; BLOCK]]) {
    if cfg!(debug_assertions) {
        md5::block_api::compress(state, blocks);
    } else {
        compress_in_order(state, blocks);
    }
}

fn compress_in_order(state: &mut State, blocks: &[[u8; BLOCK]]) {
    let [mut a, mut b, mut c, mut d] = *state;
    let mut sums = [[0; 16]; 4];
    for block in blocks {
        add_constants(&mut sums, block);
        // The compiler must not look into them.
        let sums = black_box(&sums);
        let before = [a, b, c, d];
        macro_rules! four_steps {
            ($($first:literal)*) => {$(
                a = step::<{ $first }>(a, [b, c, d], sums);
                d = step::<{ $first + 1 }>(d, [a, b, c], sums);
                c = step::<{ $first + 2 }>(c, [d, a, b], sums);
                b = step::<{ $first + 3 }>(b, [c, d, a], sums);
            )*};
        }
        four_steps!(0 4 8 12 16 20 24 28 32 36 40 44 48 52 56 60);
        a = a.wrapping_add(before[0]);
        b = b.wrapping_add(before[1]);
        c = c.wrapping_add(before[2]);
        d = d.wrapping_add(before[3]);
    }
    *state = [a, b, c, d];
}

/// Adds the words of a block to the constants of each round. Plain loops become a few instructions
/// whatever else is compiled; iterators do not in a build that is compiled in many units.
#[allow(clippy::inline_always, reason = "a call would cost as much as the loops")]
#[inline(always)]
fn add_constants(sums: &mut [[u32; 16]; 4], block: &[u8; BLOCK]) {
    let mut round = 0;
    while round < 4 {
        let mut at = 0;
        while at < 16 {
            let first = 4 * at;
            let bytes = [block[first], block[first + 1], block[first + 2], block[first + 3]];
            sums[round][at] = u32::from_le_bytes(bytes).wrapping_add(BY_WORD[round][at]);
            at += 1;
        }
        round += 1;
    }
}

/// One step. `x` is the result of the step before; whatever does not depend on it is written first.
#[allow(clippy::inline_always, reason = "a call would cost more than the step")]
#[inline(always)]
fn step<const STEP: usize>(to: u32, [x, y, z]: [u32; 3], sums: &[[u32; 16]; 4]) -> u32 {
    let sum = to.wrapping_add(sums[STEP / 16][const { word(STEP) }]);
    let sum = match STEP / 16 {
        0 => sum.wrapping_add(((y ^ z) & x) ^ z),
        // The two parts have no bit in common, so they are added as well as joined.
        1 => sum.wrapping_add(y & !z).wrapping_add(x & z),
        2 => sum.wrapping_add((y ^ z) ^ x),
        _ => sum.wrapping_add(y ^ (x | !z)),
    };
    sum.rotate_left(const { SHIFTS[STEP / 16][STEP % 4] }).wrapping_add(x)
}

#[cfg(test)]
mod tests {
    use md5::Digest as _;

    use super::*;

    fn hex(digest: [u8; 16]) -> String {
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_examples_of_the_rfc_have_their_digests() {
        let digits = b"1234567890".repeat(8);
        for (bytes, digest) in [
            (&b""[..], "d41d8cd98f00b204e9800998ecf8427e"),
            (b"a", "0cc175b9c0f1b6a831c399e269772661"),
            (b"abc", "900150983cd24fb0d6963f7d28e17f72"),
            (b"message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            (b"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
            (&digits, "57edf4a22be3c955ac49da2e2107b67a"),
        ] {
            assert_eq!(hex(Md5::digest(bytes)), digest);
        }
    }

    #[test]
    fn every_length_and_every_cut_gives_the_digest_of_another_implementation() {
        let bytes = bytes(300);
        for length in 0..bytes.len() {
            let bytes = &bytes[..length];
            let expected: [u8; 16] = md5::Md5::digest(bytes).into();
            for size in [1, 3, 63, 64, 65, 130, 300] {
                let mut md5 = Md5::new();
                bytes.chunks(size).for_each(|piece| md5.update(piece));
                assert_eq!(md5.finish(), expected, "{length} bytes in pieces of {size}");
            }
        }
    }

    #[test]
    fn blocks_have_the_same_result_in_either_build() {
        let bytes = bytes(100 * BLOCK);
        let blocks = bytes.as_chunks().0;
        let (mut ours, mut theirs) = (Md5::new().state, Md5::new().state);
        for count in [1, 2, 97] {
            compress_in_order(&mut ours, &blocks[..count]);
            md5::block_api::compress(&mut theirs, &blocks[..count]);
            assert_eq!(ours, theirs, "after {count} more blocks");
        }
    }

    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|at| u8::try_from(at * 7 % 251).unwrap()).collect()
    }
}
