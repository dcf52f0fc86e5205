//! Customer-provided keys: the headers of a key, for the blob of a request and for its source.
//!
//! Decides how the headers are read and that the key fits its SHA-256. Only the SHA-256 is kept:
//! which operation needs the key of a blob is decided in [`crate::blob::rules::operation`].

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::BlobCall;
use crate::blob::rules::BlobOperation;
use crate::http::frame::refusal::Refusal;
use crate::rules::conditions::copy::CopyKind;

/// Bytes of an AES-256 key.
const KEY_BYTES: usize = 32;

/// The names of the headers of one key.
struct KeyHeaderNames {
    key: &'static str,
    sha256: &'static str,
    algorithm: &'static str,
}

const OF_BLOB: KeyHeaderNames = KeyHeaderNames {
    key: "x-ms-encryption-key",
    sha256: "x-ms-encryption-key-sha256",
    algorithm: "x-ms-encryption-algorithm",
};

const OF_SOURCE: KeyHeaderNames = KeyHeaderNames {
    key: "x-ms-source-encryption-key",
    sha256: "x-ms-source-encryption-key-sha256",
    algorithm: "x-ms-source-encryption-algorithm",
};

impl BlobCall<'_> {
    /// The SHA-256 of the customer's key of the blob, in base64; `None` if no key is sent.
    pub(super) fn customer_key(&self) -> Result<Option<String>, Refusal> {
        self.key_sent(&OF_BLOB)
    }

    /// The SHA-256 of the customer's key of the source. The two forms of Copy Blob take none.
    pub(super) fn source_key(&self, operation: BlobOperation) -> Result<Option<String>, Refusal> {
        match operation.rules().copy {
            Some(CopyKind::PutBlobFromUrl | CopyKind::PartFromUrl) => self.key_sent(&OF_SOURCE),
            Some(CopyKind::CopyBlob | CopyKind::CopyBlobFromUrl) | None => Ok(None),
        }
    }

    fn key_sent(&self, names: &KeyHeaderNames) -> Result<Option<String>, Refusal> {
        let sent = [names.key, names.sha256, names.algorithm];
        if !sent.iter().any(|name| self.headers.contains_key(*name)) {
            return Ok(None);
        }
        let (key, sha256) = (self.required(names.key)?, self.required(names.sha256)?);
        let bytes = STANDARD.decode(key).ok().filter(|bytes| bytes.len() == KEY_BYTES);
        // The refusal does not repeat the key.
        let bytes =
            bytes.ok_or_else(|| Refusal::header(names.key, "", "it must be 32 bytes in base64"))?;
        if STANDARD.encode(Sha256::digest(bytes)) != sha256 {
            return Err(Refusal::header(names.sha256, sha256, "it is not the SHA-256 of the key"));
        }
        match self.header(names.algorithm)? {
            None | Some("AES256") => Ok(Some(sha256.to_owned())),
            Some(text) => Err(Refusal::header(names.algorithm, text, "it must be AES256")),
        }
    }
}
