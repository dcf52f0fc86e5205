//! Encryption of whole messages, with AES-128 in CCM or GCM. Which messages must be encrypted is
//! decided by the connection.

use std::fmt;

use aes::Aes128;
use aes_gcm::Aes128Gcm;
use aes_gcm::aead::consts::{U11, U16};
use aes_gcm::aead::{AeadInOut, KeyInit as _, Nonce, Tag};
use ccm::Ccm;

use crate::file::smb::wire::Transform;
use crate::file::smb::wire::header::TRANSFORM_SIZE;
use crate::file::smb::wire::negotiate::{CIPHER_AES_128_CCM, CIPHER_AES_128_GCM};
use crate::sync::{AtomicU64, Ordering};

/// Where the bytes begin that the tag covers beside the message: the nonce and what follows.
const COVERED_AT: usize = 20;

/// The two directions of an encrypted session.
#[derive(Debug)]
pub struct Seal {
    incoming: Cipher,
    outgoing: Cipher,
    /// The nonce of the next message that goes out: each is used once, since the key is this
    /// session's and direction's alone.
    next: AtomicU64,
}

enum Cipher {
    Ccm(Box<Ccm<Aes128, U16, U11>>),
    Gcm(Box<Aes128Gcm>),
}

impl Seal {
    pub(super) fn new(cipher: u16, incoming: [u8; 16], outgoing: [u8; 16]) -> Option<Self> {
        let new = |key: [u8; 16]| match cipher {
            CIPHER_AES_128_CCM => Some(Cipher::Ccm(Box::new(Ccm::new(&key.into())))),
            CIPHER_AES_128_GCM => Some(Cipher::Gcm(Box::new(Aes128Gcm::new(&key.into())))),
            _ => None,
        };
        Some(Self { incoming: new(incoming)?, outgoing: new(outgoing)?, next: AtomicU64::new(0) })
    }

    pub(super) fn reversed(self) -> Self {
        Self { incoming: self.outgoing, outgoing: self.incoming, next: self.next }
    }

    /// A message as an encrypted frame.
    pub fn encrypt(&self, session_id: u64, message: &[u8]) -> Vec<u8> {
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&self.next.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        let size = u32::try_from(message.len()).expect("messages are bounded");
        let mut header = Transform { tag: [0; 16], nonce, size, session_id };
        let mut frame = Vec::with_capacity(TRANSFORM_SIZE + message.len());
        frame.extend_from_slice(&header.write());
        frame.extend_from_slice(message);
        let (head, body) = frame.split_at_mut(TRANSFORM_SIZE);
        header.tag = match &self.outgoing {
            Cipher::Ccm(cipher) => lock(&**cipher, &nonce, &head[COVERED_AT..], body),
            Cipher::Gcm(cipher) => lock(&**cipher, &nonce, &head[COVERED_AT..], body),
        };
        head.copy_from_slice(&header.write());
        frame
    }

    /// The message of an encrypted frame; none if anything of it was changed.
    pub fn decrypt(&self, header: &Transform, encrypted: &[u8]) -> Option<Vec<u8>> {
        let mut message = encrypted.to_vec();
        let is_right = match &self.incoming {
            Cipher::Ccm(cipher) => unlock(&**cipher, header, &mut message),
            Cipher::Gcm(cipher) => unlock(&**cipher, header, &mut message),
        };
        is_right.then_some(message)
    }
}

fn lock<C: AeadInOut>(cipher: &C, nonce: &[u8; 16], covered: &[u8], body: &mut [u8]) -> [u8; 16] {
    let tag = cipher.encrypt_inout_detached(&cut::<C>(nonce), covered, body.into());
    let tag = tag.expect("a message is shorter than any limit of the ciphers");
    tag.as_slice().try_into().expect("both ciphers have tags of 16 bytes")
}

fn unlock<C: AeadInOut>(cipher: &C, header: &Transform, body: &mut [u8]) -> bool {
    let written = header.write();
    let covered = &written[COVERED_AT..];
    let tag = Tag::<C>::try_from(&header.tag[..]).expect("both ciphers have tags of 16 bytes");
    cipher.decrypt_inout_detached(&cut::<C>(&header.nonce), covered, body.into(), &tag).is_ok()
}

/// A nonce as the cipher has it: 11 bytes in CCM, 12 in GCM.
fn cut<C: AeadInOut>(nonce: &[u8; 16]) -> Nonce<C> {
    let mut cut = Nonce::<C>::default();
    let length = cut.len();
    cut.copy_from_slice(&nonce[..length]);
    cut
}

/// Never shows a key.
impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ccm(_) => "Ccm(..)",
            Self::Gcm(_) => "Gcm(..)",
        })
    }
}
