//! A client's side of the logon, and what the specifications compute as examples.

use hmac::{Hmac, KeyInit as _, Mac as _};
use md4::{Digest as _, Md4};
use md5::Md5;

use super::*;
use crate::file::smb::wire::bytes::{Writer, utf16};
use crate::file::smb::wire::negotiate::{SMB_2_0_2, SMB_2_1, SMB_3_0, SMB_3_0_2, SMB_3_1_1};
use crate::file::smb::wire::{Transform, header};

const KEY: &str = "a2V5";
const NOW: u64 = 134_120_808_000_000_000;
const MIC_FLAG: u32 = 2;
/// Unicode, NTLM, extended security.
const FLAGS: u32 = 0x8_0201;

fn code(key: &[u8], parts: &[&[u8]]) -> [u8; 16] {
    let code = Hmac::<Md5>::new_from_slice(key).unwrap();
    parts.iter().fold(code, hmac::Mac::chain_update).finalize().into_bytes().into()
}

fn negotiate() -> Vec<u8> {
    Writer::new().bytes(b"NTLMSSP\0").u32(1).u32(FLAGS).zeros(24).done()
}

/// A client with `NTLMv2` and no key exchange.
struct Client {
    user: &'static str,
    password: &'static str,
    with_mic: bool,
}

impl Client {
    /// The answer to a challenge, and the session key.
    fn answer(&self, challenge: &[u8]) -> (Vec<u8>, [u8; 16]) {
        let hash = Md4::digest(utf16(self.password));
        let identity = utf16(&format!("{}WORKGROUP", self.user.to_uppercase()));
        let hash = code(&hash, &[&identity]);
        let blob = Writer::new().u8(1).u8(1).zeros(6).u64(NOW).u64(7).u32(0);
        let flags = if self.with_mic { MIC_FLAG } else { 0 };
        let blob = blob.u16(6).u16(4).u32(flags).u32(0).u32(0).done();
        let proof = code(&hash, &[&challenge[24..32], &blob]);
        let parts = [vec![], [&proof[..], &blob].concat(), utf16("WORKGROUP"), utf16(self.user)];
        let mut message = Writer::new().bytes(b"NTLMSSP\0").u32(3);
        let mut at = 88;
        for part in &parts {
            message = message.short_length(part.len()).short_length(part.len()).length(at);
            at += part.len();
        }
        let mut message = message.zeros(16).u32(FLAGS).zeros(24).bytes(&parts.concat()).done();
        let key = code(&hash, &[&proof]);
        if self.with_mic {
            let mic = code(&key, &[&negotiate(), challenge, &message]);
            message[MIC_AT..MIC_AT + 16].copy_from_slice(&mic);
        }
        (message, key)
    }
}

/// The two legs of a logon without SPNEGO, the answer spoilt on its way.
fn log_on(client: &Client, spoil: impl FnOnce(&mut Vec<u8>)) -> Result<Proven, LogonError> {
    let mut logon = Logon::default();
    let Step::Continue(challenge) = logon.step(&negotiate(), NOW, |_| vec![])? else { panic!() };
    let (mut answer, key) = client.answer(&challenge);
    spoil(&mut answer);
    let keys = |user: &str| match user {
        "account" | "Account" => vec!["other".to_owned(), KEY.to_owned()],
        _ => vec![],
    };
    let Step::Done(proven) = logon.step(&answer, NOW, keys)? else { panic!() };
    assert_eq!(proven.session_key, key);
    assert!(logon.step(&answer, NOW, keys).is_err(), "an answer is taken once");
    Ok(*proven)
}

#[test]
fn a_key_of_the_account_is_recognised_whatever_the_case_of_the_user() {
    for (user, with_mic) in [("account", true), ("Account", true), ("account", false)] {
        let proven = log_on(&Client { user, password: KEY, with_mic }, |_| ()).unwrap();
        assert_eq!((proven.user.as_str(), proven.matched), (user, 1));
    }
}

#[test]
fn a_wrong_key_another_user_and_no_user_are_refused() {
    for (user, password, error) in [
        ("account", "a2V4", LogonError::WrongKey),
        ("nobody", KEY, LogonError::WrongKey),
        ("", KEY, LogonError::NoNtlmV2),
    ] {
        let client = Client { user, password, with_mic: true };
        assert_eq!(log_on(&client, |_| ()).unwrap_err(), error, "{user} {password}");
    }
}

#[test]
fn an_answer_of_ntlmv1_is_refused() {
    let client = Client { user: "account", password: KEY, with_mic: false };
    // The length of the NT response.
    let refused = log_on(&client, |answer| answer[20] = 24);
    assert_eq!(refused.unwrap_err(), LogonError::NoNtlmV2);
}

#[test]
fn an_answer_changed_on_its_way_is_refused_by_its_integrity_code() {
    let client = Client { user: "account", password: KEY, with_mic: true };
    // A flag, which the proof does not cover.
    let refused = log_on(&client, |answer| answer[61] ^= 0x80);
    assert_eq!(refused.unwrap_err(), LogonError::Changed);
    // The code itself.
    let refused = log_on(&client, |answer| answer[MIC_AT] ^= 1);
    assert_eq!(refused.unwrap_err(), LogonError::Changed);
}

#[test]
fn a_client_that_prefers_another_mechanism_must_prove_its_list() {
    const KERBEROS: &[u8] = &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2];
    const NTLM: &[u8] = &[6, 10, 0x2b, 6, 1, 4, 1, 0x82, 0x37, 2, 2, 10];
    let element = |tag: u8, body: &[u8]| [&[tag, 0x82, 0, 0][..], body].concat();
    let element = |tag: u8, body: &[u8]| {
        let mut bytes = element(tag, body);
        bytes[2..4].copy_from_slice(&u16::try_from(body.len()).unwrap().to_be_bytes());
        bytes
    };
    let list = element(0x30, &[KERBEROS, NTLM].concat());
    let token = element(0xa2, &element(4, b"a ticket"));
    let init = element(0x30, &[element(0xa0, &list), token].concat());
    let spnego = [6, 6, 0x2b, 6, 1, 5, 5, 2];
    let first = element(0x60, &[&spnego[..], &element(0xa0, &init)].concat());
    let next = |message: &[u8], mic: Option<&[u8]>| {
        let mut fields = element(0xa2, &element(4, message));
        fields.extend(mic.map(|mic| element(0xa3, &element(4, mic))).unwrap_or_default());
        element(0xa1, &element(0x30, &fields))
    };
    for is_right in [Some(true), Some(false), None] {
        let mut logon = Logon::default();
        let Ok(Step::Continue(answer)) = logon.step(&first, NOW, |_| vec![]) else { panic!() };
        assert!(answer.ends_with(NTLM), "{answer:x?}");
        let message = next(&negotiate(), None);
        let Ok(Step::Continue(answer)) = logon.step(&message, NOW, |_| vec![]) else { panic!() };
        let at = answer.windows(8).position(|bytes| bytes == b"NTLMSSP\0").unwrap();
        let client = Client { user: "account", password: KEY, with_mic: true };
        let (message, key) = client.answer(&answer[at..]);
        let sign = |direction: &str| {
            let magic = format!("session key to {direction} signing key magic constant\0");
            let key = Md5::new().chain_update(key).chain_update(magic).finalize();
            let code = code(&key, &[&[0; 4], &list]);
            [&[1, 0, 0, 0][..], &code[..8], &[0; 4]].concat()
        };
        let mut mic = sign("client-to-server");
        mic[4] ^= u8::from(is_right == Some(false));
        let last = next(&message, is_right.map(|_| &mic[..]));
        match logon.step(&last, NOW, |_| vec![KEY.to_owned()]) {
            Ok(Step::Done(proven)) => {
                assert_eq!(is_right, Some(true));
                assert!(proven.token.ends_with(&sign("server-to-client")));
            }
            other => assert!(is_right != Some(true), "{other:?}"),
        }
    }
}

#[test]
fn tokens_out_of_turn_and_without_ntlm_are_refused() {
    let refused = |token: &[u8]| Logon::default().step(token, NOW, |_| vec![]).unwrap_err();
    assert_eq!(refused(b""), LogonError::Malformed);
    assert_eq!(refused(b"NTLMSSP\0\x03\0\0\0"), LogonError::Malformed);
    let only_kerberos = b"\x60\x17\x06\x06\x2b\x06\x01\x05\x05\x02\xa0\x0d\x30\x0b\xa0\x09\x30\x07\
        \x06\x05\x2a\x86\x48\x86\xf7";
    assert_eq!(refused(only_kerberos), LogonError::NoNtlm);
}

fn all_keys(session: &[u8; 16], preauth: &Preauth) -> Vec<(u16, u16, Keys)> {
    let rows = [(SMB_2_0_2, 0), (SMB_2_1, 0), (SMB_3_0, 1), (SMB_3_0_2, 1), (SMB_3_1_1, 1)];
    let rows = rows.into_iter().chain([(SMB_3_1_1, 2), (SMB_3_1_1, 0)]);
    rows.map(|(dialect, cipher)| (dialect, cipher, Keys::new(dialect, cipher, session, preauth)))
        .collect()
}

#[test]
fn a_changed_message_has_a_wrong_signature_in_every_dialect() {
    let mut preauth = Preauth::default();
    preauth.update(b"negotiate");
    for (dialect, _, keys) in all_keys(&[7; 16], &preauth) {
        let mut message = vec![3; 100];
        keys.sign(&mut message);
        assert!(keys.verifies(&message), "{dialect:#x}");
        for at in [0, 16, 47, 48, 63, 64, 99] {
            message[at] ^= 1;
            assert!(!keys.verifies(&message), "{dialect:#x} {at}");
            message[at] ^= 1;
        }
        assert!(!keys.verifies(&message[..63]), "{dialect:#x}");
    }
    let other = Keys::new(SMB_3_1_1, 0, &[7; 16], &Preauth::default());
    let mut message = vec![3; 100];
    other.sign(&mut message);
    assert!(!Keys::new(SMB_3_1_1, 0, &[7; 16], &preauth).verifies(&message));
}

#[test]
fn an_encrypted_message_is_read_by_the_other_side_alone_and_no_nonce_comes_twice() {
    let mut frames = 0;
    for (dialect, cipher, keys) in all_keys(&[7; 16], &Preauth::default()) {
        let Some(server) = keys.seal() else {
            assert!(dialect < SMB_3_0 || cipher == 0, "{dialect:#x}");
            continue;
        };
        let client = Keys::new(dialect, cipher, &[7; 16], &Preauth::default()).reversed();
        let client = client.seal().unwrap();
        let mut nonces = std::collections::BTreeSet::new();
        for length in [64, 65, 1000] {
            let message = vec![9; length];
            let mut frame = server.encrypt(5, &message);
            let (header, body) = Transform::parse(&frame).unwrap();
            assert_eq!((header.session_id, body.len()), (5, length));
            assert!(nonces.insert(header.nonce));
            assert_eq!(client.decrypt(&header, body).as_ref(), Some(&message));
            assert_eq!(server.decrypt(&header, body), None, "its own key is another");
            for at in [4, 20, 44, header::TRANSFORM_SIZE, frame.len() - 1] {
                frame[at] ^= 1;
                let (header, body) = Transform::parse(&frame).unwrap();
                assert_eq!(client.decrypt(&header, body), None, "byte {at}");
                frame[at] ^= 1;
            }
            frames += 1;
        }
    }
    assert_eq!(frames, 12);
}
