//! Checksums of bodies: MD5, CRC64, and the structured body that carries the latter.
//!
//! Decides that a body is checked before anything is written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crc64fast_nvme::Digest as Crc;
use hyper::body::Bytes;
use md5::{Digest as _, Md5};

use super::request::Request;
use super::unframed::Unframer;
use crate::http::frame::refusal::Refusal;

/// The header that says a body is structured.
pub const STRUCTURED: &str = "x-ms-structured-body";
/// The only value of that header.
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

/// Reads a CRC64 header. Bytes of another length are the checksum of no content.
pub fn crc64_header(request: &Request, name: &str) -> Result<Option<u64>, Refusal> {
    let Some(text) = request.header(name)? else { return Ok(None) };
    let why = "it must be eight bytes in base64";
    let bytes = STANDARD.decode(text).map_err(|_| Refusal::header(name, text, why))?;
    let crc = bytes.try_into().map_err(|_| Refusal::bad_because("Crc64Mismatch", ""))?;
    Ok(Some(u64::from_le_bytes(crc)))
}

/// The bytes of a request, once they are known to be those that were sent.
pub fn checked_body(request: &Request) -> Result<Bytes, Refusal> {
    if let Some(sent) = request.header(CONTENT_MD5)? {
        let whole = STANDARD.decode(sent).is_ok_and(|bytes| bytes.len() == 16);
        if !whole {
            return Err(Refusal::bad_because("InvalidMd5", ""));
        }
        let found = md5(&request.body);
        if found != sent {
            return Err(Refusal::bad_because("Md5Mismatch", "")
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
fn unframed(body: &Bytes) -> Result<Vec<u8>, Refusal> {
    let mut unframer = Unframer::default();
    let mut payload = Vec::with_capacity(body.len());
    let mut rest = body.clone();
    while let Some(part) = unframer.next(&mut rest)? {
        payload.extend_from_slice(&part);
    }
    unframer.finish().map(|()| payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksums_have_their_check_values() {
        assert_eq!(crc64(b"123456789"), 0xae8b_1486_0a79_9888);
        assert_eq!(md5(b""), "1B2M2Y8AsgTpgAmY7PhCfg==");
    }
}
