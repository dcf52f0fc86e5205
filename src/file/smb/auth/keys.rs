//! The keys of a session, for each dialect, and signatures. Which messages must be signed is
//! decided by the connection; encryption is in [`super::seal`].

use aes::Aes128;
use cmac::Cmac;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256, Sha512};
use subtle::ConstantTimeEq as _;

use super::seal::Seal;
use crate::file::smb::wire::header::{FLAG_SIGNED, SIZE};
use crate::file::smb::wire::negotiate::{CIPHER_AES_128_CCM, SMB_3_0, SMB_3_0_2, SMB_3_1_1};

/// Where a header has its flags, and its signature.
const FLAGS_AT: usize = 16;
const SIGNATURE_AT: usize = 48;

/// The hash over all messages until the user is known, from which the keys of 3.1.1 are made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preauth([u8; 64]);

impl Default for Preauth {
    fn default() -> Self {
        Self([0; 64])
    }
}

impl Preauth {
    /// Takes in a message: requests and answers of NEGOTIATE and `SESSION_SETUP`, but for the last
    /// answer.
    pub fn update(&mut self, message: &[u8]) {
        self.0 = Sha512::new().chain_update(self.0).chain_update(message).finalize().into();
    }
}

/// The keys of a session.
#[derive(Debug)]
pub struct Keys {
    signing: Signing,
    /// None in a dialect without encryption.
    seal: Option<Seal>,
}

#[derive(Clone)]
#[allow(clippy::large_enum_variant, reason = "one a session, which is in an Arc")]
enum Signing {
    Hmac(Hmac<Sha256>),
    Cmac(Cmac<Aes128>),
}

impl Keys {
    /// From the key that the logon gave. `cipher` is what 3.1.1 negotiated, and not looked at in
    /// other dialects; 0 is none.
    pub fn new(dialect: u16, cipher: u16, session: &[u8; 16], preauth: &Preauth) -> Self {
        let derive = |label: &[u8], context: &[u8]| derive(session, label, context);
        let (signing, keys, cipher) = match dialect {
            SMB_3_1_1 => {
                let key = |label| derive(label, &preauth.0);
                let keys = [key(b"SMBC2SCipherKey\0"), key(b"SMBS2CCipherKey\0")];
                (key(b"SMBSigningKey\0"), keys, cipher)
            }
            SMB_3_0 | SMB_3_0_2 => {
                let key = |context| derive(b"SMB2AESCCM\0", context);
                let keys = [key(b"ServerIn \0"), key(b"ServerOut\0")];
                (derive(b"SMB2AESCMAC\0", b"SmbSign\0"), keys, CIPHER_AES_128_CCM)
            }
            _ => {
                let hmac = Hmac::new_from_slice(session).expect("HMAC takes any key");
                return Self { signing: Signing::Hmac(hmac), seal: None };
            }
        };
        let [client, server] = keys;
        Self {
            signing: Signing::Cmac(Cmac::new(&signing.into())),
            seal: Seal::new(cipher, client, server),
        }
    }

    /// The keys for the client's side: what this side decrypts with, that one encrypts with.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { seal: self.seal.map(Seal::reversed), ..self }
    }

    /// What encrypts, if dialect and cipher allow it.
    pub fn seal(&self) -> Option<&Seal> {
        self.seal.as_ref()
    }

    /// Signs a message, and marks it as signed.
    pub fn sign(&self, message: &mut [u8]) {
        let mut flags = [0; 4];
        flags.copy_from_slice(&message[FLAGS_AT..FLAGS_AT + 4]);
        let flags = u32::from_le_bytes(flags) | FLAG_SIGNED;
        message[FLAGS_AT..FLAGS_AT + 4].copy_from_slice(&flags.to_le_bytes());
        let signature = self.signature(message);
        message[SIGNATURE_AT..SIZE].copy_from_slice(&signature);
    }

    /// Whether the signature of a message is right. A message shorter than a header has none.
    pub fn verifies(&self, message: &[u8]) -> bool {
        message.len() >= SIZE && self.signature(message).ct_eq(&message[SIGNATURE_AT..SIZE]).into()
    }

    /// The signature, its own place being zero.
    fn signature(&self, message: &[u8]) -> [u8; 16] {
        let parts = [&message[..SIGNATURE_AT], &[0; 16], &message[SIZE..]];
        match self.signing.clone() {
            Signing::Hmac(code) => {
                let code = parts.iter().fold(code, Hmac::chain_update);
                *code.finalize().into_bytes().first_chunk().expect("a code has 32 bytes")
            }
            Signing::Cmac(code) => {
                let code = parts.iter().fold(code, Cmac::chain_update);
                code.finalize().into_bytes().into()
            }
        }
    }
}

/// SP 800-108, in counter mode with HMAC-SHA256: 128 bits.
fn derive(key: &[u8; 16], label: &[u8], context: &[u8]) -> [u8; 16] {
    let code = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    let parts: [&[u8]; 5] = [&1_u32.to_be_bytes(), label, &[0], context, &128_u32.to_be_bytes()];
    let code = parts.iter().fold(code, Hmac::chain_update);
    *code.finalize().into_bytes().first_chunk().expect("a code has 32 bytes")
}

impl std::fmt::Debug for Signing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Hmac(_) => "Hmac(..)",
            Self::Cmac(_) => "Cmac(..)",
        })
    }
}
