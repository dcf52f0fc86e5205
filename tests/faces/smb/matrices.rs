//! Every access and share mode of an SMB open against every one of a hold, both ways, and against
//! REST. What is expected is the rule of MS-FSA 2.1.5.1.2.2 on three bits, and the table of
//! `mixed/matrix.rs`.

use std::path::Path;

use latchfs::api::ApiClient;
use latchfs::file::smb::status::Status;

use super::client::{
    ATTRIBUTES, COMBINATIONS, Combination, DELETE, READ, SYNCHRONIZE, SmbClient, WRITE,
};
use super::{address, serve};
use crate::common::meeting::{BYTES, Holds};
use crate::common::rest::Rest;
use crate::common::served::Served;

/// Three bits: R, W and D. An open is access and share mode.
type Open = (u32, u32);

/// Every access and share mode, in an order in which neighbours differ.
const PAIRS: u32 = 64 * 64;

fn opens(pair: u32) -> (Open, Open) {
    ((pair & 7, pair >> 3 & 7), (pair >> 6 & 7, pair >> 9 & 7))
}

fn is_refused((access1, share1): Open, (access2, share2): Open) -> bool {
    let clash = access2 & !share1 != 0 || access1 & !share2 != 0;
    access1 != 0 && access2 != 0 && clash
}

/// The rights of an access on the wire; without a bit, to attributes alone.
fn rights(access: u32) -> u32 {
    let bits = [(1, READ), (2, WRITE), (4, DELETE)];
    let rights = bits.iter().filter(|(bit, _)| access & bit != 0).map(|(_, right)| right);
    rights.fold(ATTRIBUTES | SYNCHRONIZE, |all, right| all | right)
}

/// The three bits as `latchfs hold` spells them.
fn letters(bits: u32) -> String {
    let letters = ["r", "w", "d"].iter().enumerate().filter(|(at, _)| bits >> at & 1 != 0);
    let text: String = letters.map(|(_, letter)| *letter).collect();
    if text.is_empty() { "none".to_owned() } else { text }
}

/// A file that both sides open.
struct Stage {
    served: Served,
    holds: Holds,
}

impl Stage {
    fn new() -> Self {
        let served = serve();
        Rest::new(served.addr(), "share").upload("f", BYTES);
        let holds = Holds::of(ApiClient::new(Path::new(served.told("control"))));
        Self { served, holds }
    }

    /// Both orders of the pairs; how many were refused.
    fn meet(&mut self, combination: Combination, pairs: impl Iterator<Item = u32>) -> u32 {
        let mut client = SmbClient::start(address(&self.served), combination);
        let mut refused = 0;
        for pair in pairs {
            let (first, second) = opens(pair);
            let wanted = is_refused(first, second);
            refused += u32::from(wanted);
            let place = format!("{combination:x?}: {first:?}, then {second:?}");

            let hold = self.holds.open("f", &letters(first.0), &letters(first.1)).unwrap();
            let met = client.try_open("f", rights(second.0), second.1);
            let status = if wanted { Status::SHARING_VIOLATION } else { Status::SUCCESS };
            assert_eq!(met, status, "SMB after a hold, {place}");
            self.holds.close(hold);

            let open = client.open("f", rights(first.0), first.1).unwrap();
            match self.holds.open("f", &letters(second.0), &letters(second.1)) {
                Ok(hold) => {
                    assert!(!wanted, "granted: a hold after SMB, {place}");
                    self.holds.close(hold);
                }
                Err(errno) => {
                    assert!(wanted && errno == libc::EBUSY, "a hold after SMB, {place}: {errno}");
                }
            }
            client.close(open).unwrap();
        }
        refused
    }
}

#[test]
fn every_pair_of_opens_by_smb_and_a_hold_is_granted_or_refused_by_the_rule() {
    let refused = Stage::new().meet(COMBINATIONS[0], 0..PAIRS);
    assert_eq!(refused, 2775);
}

#[test]
fn in_each_dialect_and_cipher_opens_meet_as_in_the_first() {
    let mut stage = Stage::new();
    for (number, combination) in (1..).zip(&COMBINATIONS[1..]) {
        // 128 pairs, each in both orders; 37 is coprime to their number, so that none comes twice.
        let pairs = (0..128).map(|at| (at * 37 + number * 128 * 37) % PAIRS);
        assert!(stage.meet(*combination, pairs) > 20);
    }
}

#[test]
#[ignore = "60,000 pairs: tests/run --all runs it"]
fn every_pair_of_opens_meets_alike_in_each_dialect_and_cipher() {
    let mut stage = Stage::new();
    for combination in &COMBINATIONS[1..] {
        assert_eq!(stage.meet(*combination, 0..PAIRS), 2775, "{combination:x?}");
    }
}

#[test]
fn every_open_by_smb_refuses_rest_as_a_hold_does_and_is_named() {
    let served = serve();
    let rest = Rest::new(served.addr(), "share");
    let mut client = SmbClient::start(address(&served), COMBINATIONS[0]);
    for pair in 0..64 {
        let ((access, share), _) = opens(pair);
        rest.upload("f", BYTES);
        let open = client.open("f", rights(access), share).unwrap();
        let shares = |bit: u32| access == 0 || share & bit != 0;
        let put = |at| rest.put_range("/share/f", at, b"AB", &[]);
        for (got, done, is_granted) in [
            (rest.get("/share/f"), 200, shares(1)),
            (put(0), 201, shares(2)),
            // A handle that counts for nothing is a handle all the same.
            (rest.delete("/share/f"), 202, false),
        ] {
            if is_granted {
                got.is(done);
            } else {
                let got = got.refused(409, "SharingViolation");
                assert!(got.text().contains("SMB"), "the holder is named: {}", got.text());
            }
        }
        client.close(open).unwrap();
    }
}
