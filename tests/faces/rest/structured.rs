//! Structured bodies, both ways: what was framed on the way up comes framed on the way down.

use crc64fast_nvme::Digest;

use crate::rest::fixture::{Fixture, Got};

const FORM: &str = "XSM/1.0; properties=crc64";

fn crc(bytes: &[u8]) -> [u8; 8] {
    let mut digest = Digest::new();
    digest.write(bytes);
    digest.sum64().to_le_bytes()
}

/// Takes a number of `N` bytes off the front.
fn number<const N: usize>(rest: &mut &[u8]) -> u64 {
    let (first, after) = rest.split_first_chunk::<N>().unwrap();
    *rest = after;
    first.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The payload of an answer, every part of its frame looked at.
fn unframed(got: &Got) -> Vec<u8> {
    let mut rest = got.body.as_slice();
    assert_eq!(number::<1>(&mut rest), 1);
    assert_eq!(number::<8>(&mut rest), got.body.len() as u64);
    assert_eq!(number::<2>(&mut rest), 1, "with checksums");
    let segments = number::<2>(&mut rest);
    let mut payload = Vec::new();
    for expected in 1..=segments {
        assert_eq!(number::<2>(&mut rest), expected);
        let length = usize::try_from(number::<8>(&mut rest)).unwrap();
        let (data, after) = rest.split_at(length);
        assert_eq!(after[..8], crc(data));
        rest = &after[8..];
        payload.extend_from_slice(data);
    }
    assert_eq!(rest, crc(&payload));
    assert_eq!(got.header("x-ms-structured-body"), FORM);
    assert_eq!(got.header("x-ms-structured-content-length"), payload.len().to_string());
    payload
}

#[test]
fn a_download_is_framed_if_the_client_asks_for_it() {
    let fixture = Fixture::new();
    let bytes: Vec<u8> = (0..3 << 20).map(|at: u32| at.to_le_bytes()[at as usize % 3]).collect();
    fixture.upload("a", &bytes);
    fixture.upload("empty", b"");
    let asked = [("x-ms-structured-body", FORM)];
    let got = fixture.ask("GET", "/docs/a", &asked, b"").is(200);
    assert_eq!(unframed(&got), bytes);
    assert!(unframed(&fixture.ask("GET", "/docs/empty", &asked, b"").is(200)).is_empty());

    let ranged = [asked[0], ("x-ms-range", "bytes=1000-1999")];
    let got = fixture.ask("GET", "/docs/a", &ranged, b"").is(206);
    assert_eq!(unframed(&got), bytes[1_000..2_000]);
    let total = bytes.len();
    assert_eq!(got.header("content-range"), format!("bytes 1000-1999/{total}"), "of the payload");

    let both = [ranged[0], ranged[1], ("x-ms-range-get-content-md5", "true")];
    fixture.ask("GET", "/docs/a", &both, b"").refused(400, "InvalidHeaderValue");
    let other = [("x-ms-structured-body", "XSM/2.0")];
    fixture.ask("GET", "/docs/a", &other, b"").refused(400, "InvalidHeaderValue");
    let plain = fixture.get("/docs/a").is(200);
    assert_eq!(plain.body, bytes);
    assert_eq!(plain.header("x-ms-structured-body"), "");
}

#[test]
fn a_file_longer_than_a_segment_comes_in_several() {
    let fixture = Fixture::new();
    let length = (9_u64 << 20).to_string();
    let headers = [("x-ms-type", "file"), ("x-ms-content-length", length.as_str())];
    fixture.put("/docs/a", &headers).is(201);
    fixture.put_range("/docs/a", (4 << 20) - 3, b"across", &[]).is(201);
    let got = fixture.ask("GET", "/docs/a", &[("x-ms-structured-body", FORM)], b"").is(200);
    assert_eq!(got.body[11], 3, "segments");
    let payload = unframed(&got);
    assert_eq!(payload.len(), 9 << 20);
    assert_eq!(&payload[(4 << 20) - 3..(4 << 20) + 3], b"across");
}
