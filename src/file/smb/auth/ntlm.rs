//! `NTLMv2`, the server's side (MS-NLMP): a challenge, and the check of the answer to it. `NTLMv1`,
//! guests and anonymous users are refused. MD4, MD5 and RC4 stay in this file.

use hmac::{Hmac, KeyInit as _, Mac as _};
use md4::Md4;
use md5::{Digest as _, Md5};
use subtle::ConstantTimeEq as _;

use super::{LogonError, Proven, Step};
use crate::file::smb::wire::bytes::{self, Reader, Writer};
use crate::sync::random;

const SIGNATURE: [u8; 8] = *b"NTLMSSP\0";
/// The name that the server has for itself.
const SERVER: &str = "LATCHFS";
/// Where an AUTHENTICATE message has its integrity code.
pub const MIC_AT: usize = 72;

const UNICODE: u32 = 0x1;
const EXTENDED_SECURITY: u32 = 0x8_0000;
const KEY_EXCHANGE: u32 = 0x4000_0000;
const KEY_128: u32 = 0x2000_0000;
const KEY_56: u32 = 0x8000_0000;
/// Unicode, target, NTLM, a server, extended security, target information, version.
const ALWAYS: u32 = UNICODE | 0x4 | 0x200 | 0x2_0000 | EXTENDED_SECURITY | 0x0280_0000;
/// Signatures, seals, always signed, and the keys: if the client has them.
const IF_ASKED: u32 = 0x10 | 0x20 | 0x8000 | KEY_EXCHANGE | KEY_128 | KEY_56;

/// Attributes of the target, and of the client's answer.
const END: u16 = 0;
const FLAGS: u16 = 6;
const TIMESTAMP: u16 = 7;
/// A flag of the answer: the message has an integrity code.
const HAS_MIC: u32 = 0x2;

/// The server's message, and what the check of the answer needs.
#[derive(Debug)]
pub(super) struct Challenge {
    nonce: [u8; 8],
    flags: u32,
    /// NEGOTIATE as it came: the integrity code covers it.
    negotiate: Vec<u8>,
    message: Vec<u8>,
}

impl Challenge {
    /// The challenge to a NEGOTIATE message.
    pub fn to(negotiate: &[u8], now: u64) -> Result<Self, LogonError> {
        let asked = message_fields(negotiate, 1).and_then(|mut fields| fields.u32().ok());
        let asked = asked.ok_or(LogonError::Malformed)?;
        Ok(Self::with(random::bytes(), negotiate, ALWAYS | asked & IF_ASKED, now))
    }

    fn with(nonce: [u8; 8], negotiate: &[u8], flags: u32, now: u64) -> Self {
        let name = bytes::utf16(SERVER);
        let named = |to: Writer, id| to.u16(id).short_length(name.len()).bytes(&name);
        // Domain and computer, as NetBIOS and as DNS have them.
        let target = [2, 1, 4, 3].into_iter().fold(Writer::new(), named);
        let target = target.u16(TIMESTAMP).u16(8).u64(now).u16(END).u16(0).done();
        let part = |to: Writer, length, at| to.short_length(length).short_length(length).length(at);
        let message = Writer::new().bytes(&SIGNATURE).u32(2);
        let message = part(message, name.len(), 56).u32(flags).bytes(&nonce).zeros(8);
        let message = part(message, target.len(), 56 + name.len());
        // Windows 6.1, with the revision of NTLM that all have.
        let message = message.bytes(&[6, 1, 0, 0, 0, 0, 0, 15]).bytes(&name).bytes(&target).done();
        Self { nonce, flags, negotiate: negotiate.to_vec(), message }
    }

    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// Who sent an AUTHENTICATE message, if one of the passwords of that user made it.
    pub fn check(
        &self,
        message: &[u8],
        passwords: impl FnOnce(&str) -> Vec<String>,
    ) -> Result<Found, LogonError> {
        let answer = Answer::parse(message).ok_or(LogonError::Malformed)?;
        let Some((proof, blob)) = answer.nt.split_first_chunk::<16>() else {
            return Err(LogonError::NoNtlmV2);
        };
        // NTLMv1 has 24 bytes; the rest of NTLMv2's has 28 and its attributes, and begins so.
        if answer.user.is_empty() || blob.len() < 32 || blob[..2] != [1, 1] {
            return Err(LogonError::NoNtlmV2);
        }
        let wants_mic = asks_for_mic(blob)?;
        let identity = bytes::utf16(&answer.user.to_uppercase());
        for (matched, password) in passwords(&answer.user).into_iter().enumerate() {
            let hash = Md4::digest(bytes::utf16(&password));
            let hash = hmac_md5(&hash, &[&identity, answer.domain]);
            let right = hmac_md5(&hash, &[&self.nonce, blob]);
            if bool::from(right.ct_eq(proof)) {
                let key = answer.session_key(hmac_md5(&hash, &[&right]))?;
                if wants_mic && !self.has_right_mic(message, &key) {
                    return Err(LogonError::Changed);
                }
                let flags = self.flags & answer.flags;
                return Ok(Found { user: answer.user, matched, key, flags });
            }
        }
        Err(LogonError::WrongKey)
    }

    /// Whether the code over all three messages is right, its own place in the last being zero.
    fn has_right_mic(&self, message: &[u8], key: &[u8; 16]) -> bool {
        let Some((head, rest)) = message.split_at_checked(MIC_AT) else { return false };
        let Some((mic, rest)) = rest.split_first_chunk::<16>() else { return false };
        let parts = [self.negotiate.as_slice(), &self.message, head, &[0; 16], rest];
        hmac_md5(key, &parts).ct_eq(mic).into()
    }
}

/// What an AUTHENTICATE message says.
struct Answer<'a> {
    nt: &'a [u8],
    domain: &'a [u8],
    user: String,
    encrypted_key: &'a [u8],
    flags: u32,
}

impl<'a> Answer<'a> {
    fn parse(message: &'a [u8]) -> Option<Self> {
        let mut fields = message_fields(message, 3)?;
        let mut part = || {
            let length = fields.small().ok()?;
            fields.skip(2).ok()?;
            fields.at(fields.clone().large().ok()?, length).ok().filter(|_| fields.skip(4).is_ok())
        };
        // The LM response and the name of the workstation do not matter.
        let [_, nt, domain, user, _, encrypted_key] =
            [part()?, part()?, part()?, part()?, part()?, part()?];
        let flags = fields.u32().ok()?;
        if flags & UNICODE == 0 {
            return None;
        }
        Some(Self { nt, domain, user: bytes::text(user).ok()?, encrypted_key, flags })
    }

    /// The key that the client chose and encrypted with the base key, or else the base key.
    fn session_key(&self, base: [u8; 16]) -> Result<[u8; 16], LogonError> {
        if self.flags & KEY_EXCHANGE == 0 {
            return Ok(base);
        }
        let encrypted = self.encrypted_key.try_into().map_err(|_| LogonError::Malformed)?;
        Ok(rc4(&base, encrypted))
    }
}

/// The fields of a message of that kind, behind the kind.
fn message_fields(message: &[u8], kind: u32) -> Option<Reader<'_>> {
    let mut fields = Reader::new(message);
    let is_it = fields.array() == Ok(SIGNATURE) && fields.u32() == Ok(kind);
    is_it.then_some(fields)
}

/// Whether the attributes of an answer promise an integrity code. They are covered by the proof.
fn asks_for_mic(blob: &[u8]) -> Result<bool, LogonError> {
    let mut fields = Reader::new(&blob[28..]);
    loop {
        let Ok(id) = fields.u16() else { return Err(LogonError::Malformed) };
        let value = fields.small().and_then(|length| fields.bytes(length));
        match (id, value) {
            (END, _) => return Ok(false),
            (_, Err(_)) => return Err(LogonError::Malformed),
            (FLAGS, Ok(value)) => {
                return Ok(value.try_into().is_ok_and(|v| u32::from_le_bytes(v) & HAS_MIC != 0));
            }
            _ => {}
        }
    }
}

/// A user whose answer was right.
#[derive(Debug)]
pub(super) struct Found {
    user: String,
    matched: usize,
    key: [u8; 16],
    flags: u32,
}

impl Found {
    pub fn proven(self, token: Vec<u8>) -> Step {
        let Self { user, matched, key: session_key, .. } = self;
        Step::Done(Box::new(Proven { user, matched, session_key, token }))
    }

    /// Whether the client's signature of its list of mechanisms is right.
    pub fn verifies_list(&self, list: &[u8], mic: &[u8]) -> bool {
        self.sign("client-to-server", list).ct_eq(mic).into()
    }

    /// The server's signature of that list.
    pub fn sign_list(&self, list: &[u8]) -> [u8; 16] {
        self.sign("server-to-client", list)
    }

    /// The signature of the first message of a direction (MS-NLMP 3.4.4.2).
    fn sign(&self, direction: &str, message: &[u8]) -> [u8; 16] {
        let key = |part: &[u8], purpose: &str| -> [u8; 16] {
            let magic = format!("session key to {direction} {purpose} key magic constant\0");
            Md5::new().chain_update(part).chain_update(magic).finalize().into()
        };
        let code = hmac_md5(&key(&self.key, "signing"), &[&[0; 4], message]);
        let mut code = *code.first_chunk::<8>().expect("a code has 16 bytes");
        if self.flags & KEY_EXCHANGE != 0 {
            let strength = match self.flags {
                flags if flags & KEY_128 != 0 => 16,
                flags if flags & KEY_56 != 0 => 7,
                _ => 5,
            };
            code = rc4(&key(&self.key[..strength], "sealing"), code);
        }
        let signature = Writer::new().u32(1).bytes(&code).u32(0).done();
        signature.try_into().expect("version, code and number have 16 bytes")
    }
}

fn hmac_md5(key: &[u8], parts: &[&[u8]]) -> [u8; 16] {
    let code = Hmac::<Md5>::new_from_slice(key).expect("HMAC takes a key of any length");
    parts.iter().fold(code, Hmac::chain_update).finalize().into_bytes().into()
}

fn rc4<const N: usize>(key: &[u8; 16], mut data: [u8; N]) -> [u8; N] {
    let mut state = [0; 256];
    state.iter_mut().zip(0..=u8::MAX).for_each(|(place, number)| *place = number);
    let mut j = 0_u8;
    for i in 0..256 {
        j = j.wrapping_add(state[i]).wrapping_add(key[i % 16]);
        state.swap(i, j.into());
    }
    let (mut i, mut j) = (0_u8, 0_u8);
    for byte in &mut data {
        i = i.wrapping_add(1);
        j = j.wrapping_add(state[usize::from(i)]);
        state.swap(i.into(), j.into());
        let sum = state[usize::from(i)].wrapping_add(state[usize::from(j)]);
        *byte ^= state[usize::from(sum)];
    }
    data
}

/// MS-NLMP 4.2.4 computes these for user `User` of `Domain` with the password `Password`.
#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
    }

    #[test]
    fn the_example_of_the_specification_comes_out() {
        let blob =
            hex("01010000000000000000000000000000aaaaaaaaaaaaaaaa0000000002000c0044006f006d00\
             610069006e0001000c005300650072007600650072000000000000000000");
        let proof = hex("68cd0ab851e51c96aabc927bebef6a1c");
        let encrypted = hex("c5dad2544fc9799094ce1ce90bc9d03e");
        let parts = [
            vec![],
            [proof, blob].concat(),
            bytes::utf16("Domain"),
            bytes::utf16("User"),
            vec![],
            encrypted,
        ];
        let mut message = Writer::new().bytes(&SIGNATURE).u32(3);
        let mut at = 64;
        for part in &parts {
            message = message.short_length(part.len()).short_length(part.len()).length(at);
            at += part.len();
        }
        let flags = ALWAYS | IF_ASKED;
        let message = message.u32(flags).bytes(&parts.concat()).done();
        let nonce = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef];
        let challenge = Challenge::with(nonce, b"", flags, 0);
        let found = challenge.check(&message, |user| {
            assert_eq!(user, "User");
            vec!["Password".to_owned()]
        });
        let found = found.unwrap();
        assert_eq!(found.key, [0x55; 16]);
        assert!(challenge.check(&message, |_| vec!["password".to_owned()]).is_err());
    }

    #[test]
    fn rc4_gives_a_known_stream() {
        // RFC 6229, 128 bits, offset 0.
        let key = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
        let stream = hex("9ac7cc9a609d1ef7b2932899cde41b97");
        assert_eq!(rc4(&key, [0; 16]).to_vec(), stream);
    }
}
