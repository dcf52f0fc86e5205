//! Checksums of bodies: MD5, CRC64, and the structured body that carries the latter.
//!
//! Decides that a body is checked before anything is written (DESIGN, consistent reads). The form
//! of a structured body is FILEREST section 6's.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crc64fast_nvme::Digest as Crc;
use hyper::body::Bytes;
use md5::{Digest as _, Md5};

use super::refusal::Refusal;
use super::request::Request;

/// The header that says a body is structured.
pub const STRUCTURED: &str = "x-ms-structured-body";
/// What it says: the one form there is.
pub const STRUCTURED_CRC64: &str = "XSM/1.0; properties=crc64";
/// How long the payload of a structured body is.
pub const STRUCTURED_LENGTH: &str = "x-ms-structured-content-length";
const CONTENT_MD5: &str = "content-md5";

/// The MD5 of some bytes, as headers have it.
pub fn md5(bytes: &[u8]) -> String {
    STANDARD.encode(Md5::digest(bytes))
}

/// The CRC64 of some bytes.
pub fn crc64(bytes: &[u8]) -> u64 {
    let mut crc = Crc::new();
    crc.write(bytes);
    crc.sum64()
}

/// A CRC64 as headers have it.
pub fn crc64_text(crc: u64) -> String {
    STANDARD.encode(crc.to_le_bytes())
}

/// Reads a CRC64 header.
pub fn crc64_header(request: &Request, name: &str) -> Result<Option<u64>, Refusal> {
    let Some(text) = request.header(name)? else { return Ok(None) };
    let bytes = STANDARD.decode(text).ok().and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
    let why = "it must be eight bytes in base64";
    Ok(Some(u64::from_le_bytes(bytes.ok_or_else(|| Refusal::header(name, text, why))?)))
}

/// The bytes of a request, once they are known to be those that were sent.
pub fn checked_body(request: &Request) -> Result<Bytes, Refusal> {
    if let Some(sent) = request.header(CONTENT_MD5)? {
        let whole = STANDARD.decode(sent).is_ok_and(|bytes| bytes.len() == 16);
        if !whole {
            let message = "The Content-MD5 is not 16 bytes in base64.";
            return Err(Refusal::bad("InvalidMd5", message));
        }
        let found = md5(&request.body);
        if found != sent {
            let message = "The MD5 of the body is not the one that the request gives.";
            return Err(Refusal::bad("Md5Mismatch", message)
                .with("UserSpecifiedMd5", sent.to_owned())
                .with("ServerCalculatedMd5", found));
        }
    }
    if !is_structured(request)? {
        return Ok(request.body.clone());
    }
    let bytes = unframed(&request.body)?;
    match request.parsed::<u64>(STRUCTURED_LENGTH, "it must be a number")? {
        Some(length) if length != bytes.len() as u64 => {
            let why = "the body has another length";
            Err(Refusal::header(STRUCTURED_LENGTH, &length.to_string(), why))
        }
        _ => Ok(bytes.into()),
    }
}

/// True if a request has a structured body, or wants one.
pub fn is_structured(request: &Request) -> Result<bool, Refusal> {
    let Some(text) = request.header(STRUCTURED)? else { return Ok(false) };
    let plain = |text: &str| text.replace(' ', "").to_ascii_lowercase();
    if plain(text) == plain(STRUCTURED_CRC64) {
        return Ok(true);
    }
    Err(Refusal::header(STRUCTURED, text, "the form known here is XSM/1.0; properties=crc64"))
}

/// The payload of a structured body, every checksum verified.
fn unframed(body: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut rest = Frame(body);
    let [version] = rest.take()?;
    let total = u64::from_le_bytes(rest.take()?);
    let flags = u16::from_le_bytes(rest.take()?);
    let segments = u16::from_le_bytes(rest.take()?);
    if version != 1 || flags > 1 || total != body.len() as u64 {
        return Err(malformed("its header is not known"));
    }
    let mut payload = Vec::with_capacity(body.len());
    for number in 1..=segments {
        let found = u16::from_le_bytes(rest.take()?);
        let length = u64::from_le_bytes(rest.take()?);
        let data = rest.bytes(length)?;
        if found != number {
            return Err(malformed("its segments are out of order"));
        }
        if flags == 1 && u64::from_le_bytes(rest.take()?) != crc64(data) {
            return Err(mismatch());
        }
        payload.extend_from_slice(data);
    }
    if flags == 1 && u64::from_le_bytes(rest.take()?) != crc64(&payload) {
        return Err(mismatch());
    }
    if rest.0.is_empty() { Ok(payload) } else { Err(malformed("it goes on past its end")) }
}

struct Frame<'a>(&'a [u8]);

impl<'a> Frame<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Refusal> {
        let (first, rest) = self.0.split_first_chunk().ok_or_else(|| malformed("it breaks off"))?;
        self.0 = rest;
        Ok(*first)
    }

    fn bytes(&mut self, length: u64) -> Result<&'a [u8], Refusal> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let split = self.0.split_at_checked(length);
        let (first, rest) = split.ok_or_else(|| malformed("it breaks off"))?;
        self.0 = rest;
        Ok(first)
    }
}

fn malformed(why: &str) -> Refusal {
    Refusal::bad("InvalidInput", format!("The structured body is malformed: {why}."))
}

fn mismatch() -> Refusal {
    Refusal::bad("Crc64Mismatch", "The CRC64 of the body is not the one that it gives.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(payload: &[u8]) -> Vec<u8> {
        let mut body = vec![1];
        body.extend((payload.len() as u64 + 39).to_le_bytes());
        body.extend(1_u16.to_le_bytes());
        body.extend(1_u16.to_le_bytes());
        body.extend(1_u16.to_le_bytes());
        body.extend((payload.len() as u64).to_le_bytes());
        body.extend(payload);
        body.extend(crc64(payload).to_le_bytes());
        body.extend(crc64(payload).to_le_bytes());
        body
    }

    #[test]
    fn the_checksums_have_their_check_values() {
        assert_eq!(crc64(b"123456789"), 0xae8b_1486_0a79_9888);
        assert_eq!(md5(b""), "1B2M2Y8AsgTpgAmY7PhCfg==");
    }

    #[test]
    fn a_structured_body_is_taken_apart_and_every_byte_of_it_counts() {
        let body = framed(&[7; 512]);
        assert_eq!(body.len(), 551, "the length that a client was seen to send");
        assert_eq!(unframed(&body).unwrap(), [7; 512]);
        for at in 0..body.len() {
            let mut bad = body.clone();
            bad[at] ^= 1;
            // The flags may say that there are no checksums; then the frame is too long.
            assert!(unframed(&bad).is_err(), "byte {at}");
            assert!(unframed(&body[..at]).is_err(), "cut at {at}");
        }
    }
}
