//! Bytes that no client sends: wrong lengths, wrong signatures, wrong keys, requests out of turn.
//! The server refuses, or ends that connection; it serves others all along.

use std::net::SocketAddr;

use latchfs::file::smb::status::Status;
use latchfs::file::smb::wire::bytes::Writer;
use latchfs::file::smb::wire::{Command, FileId};
use latchfs::http::auth::DEVELOPMENT_KEY;

use super::client::{COMBINATIONS, READ, SHARE_ALL, SmbClient, WRITE};
use super::{address, serve};
use crate::common::meeting::BYTES;
use crate::common::rest::Rest;
use crate::common::served::Served;

const NO_FILE: FileId = FileId { persistent: 1, volatile: 2 };

/// A server with a file `f`.
fn stage() -> (Served, SocketAddr) {
    let served = serve();
    Rest::new(served.addr(), "share").upload("f", BYTES);
    let addr = address(&served);
    (served, addr)
}

fn echo() -> Vec<u8> {
    Writer::answer(4).u16(0).done()
}

#[test]
fn frames_that_are_no_smb_end_their_connection_alone() {
    let (_served, addr) = stage();
    let mut witness = SmbClient::start(addr, COMBINATIONS[0]);
    let smb1_echo = [b"\xffSMB\x2b".as_slice(), &[0; 40]].concat();
    for frame in [b"".as_slice(), b"GET / HTTP/1.1\r\n\r\n", b"\xfeSMB", &[0xfe; 64], &smb1_echo] {
        let mut client = SmbClient::connect(addr);
        client.send_frame(frame);
        assert!(client.is_ended(), "{frame:x?}");
    }
    let (encrypted, short) = ([b"\xfdSMB".as_slice(), &[9; 200]].concat(), b"\xfdSMB".as_slice());
    for frame in [&encrypted, short] {
        let mut client = SmbClient::start(addr, COMBINATIONS[0]);
        client.send_frame(frame);
        assert!(client.is_ended(), "{frame:x?}");
    }
    witness.ask(Command::Echo, echo()).unwrap();
}

#[test]
fn a_length_that_no_request_needs_is_refused_before_memory_is_taken() {
    let (_served, addr) = stage();
    let mut client = SmbClient::connect(addr);
    // The length of a frame, with nothing behind it: three bytes of it count.
    client.send_length(0x00ff_ffff);
    assert!(client.is_ended());
}

#[test]
fn a_body_with_wrong_lengths_is_an_invalid_parameter() {
    let (_served, addr) = stage();
    let mut client = SmbClient::start(addr, COMBINATIONS[0]);
    let open = client.open("f", READ | WRITE, SHARE_ALL).unwrap();
    let write = Writer::answer(49).u16(112).u32(u32::MAX).u64(0).file_id(open).zeros(16);
    let set = Writer::answer(33).u8(1).u8(20).u32(8).u16(60_000).zeros(6).file_id(open);
    let ioctl = Writer::answer(57).u16(0).u32(0x0006_0194).file_id(open);
    let bodies = [
        (Command::Create, Writer::answer(57).done()),
        (Command::Create, Writer::answer(57).zeros(42).u16(0xff00).u16(0xff00).zeros(8).done()),
        (Command::Write, write.done()),
        (Command::Lock, Writer::answer(48).u16(500).u32(0).file_id(open).done()),
        (Command::SetInfo, set.done()),
        (Command::Ioctl, ioctl.u32(u32::MAX).u32(u32::MAX).zeros(24).done()),
    ];
    for (command, body) in bodies {
        let refused = client.ask(command, body).map(drop);
        assert_eq!(refused, Err(Status::INVALID_PARAMETER), "{command:?}");
    }
    client.ask(Command::Echo, echo()).unwrap();
}

#[test]
fn a_broken_signature_ends_the_connection_and_does_nothing() {
    let (served, addr) = stage();
    for combination in COMBINATIONS.into_iter().filter(|(_, cipher)| cipher.is_none()) {
        let mut client = SmbClient::start(addr, combination);
        let open = client.open("f", READ | WRITE, SHARE_ALL).unwrap();
        let body = Writer::answer(49).u16(112).u32(4).u64(0).file_id(open).zeros(16);
        let mut message = client.signed(Command::Write, body.bytes(b"evil").done());
        let last = message.len() - 1;
        message[last] ^= 1;
        client.send_frame(&message);
        assert!(client.is_ended(), "{combination:x?}");
    }
    assert_eq!(Rest::new(served.addr(), "share").get("/share/f").is(200).body, BYTES);
}

#[test]
fn a_changed_encrypted_frame_ends_the_connection_and_does_nothing() {
    let (served, addr) = stage();
    for combination in COMBINATIONS.into_iter().filter(|(_, cipher)| cipher.is_some()) {
        let mut client = SmbClient::start(addr, combination);
        let open = client.open("f", READ | WRITE, SHARE_ALL).unwrap();
        let body = Writer::answer(49).u16(112).u32(4).u64(0).file_id(open).zeros(16);
        let mut frame = client.encrypted(Command::Write, body.bytes(b"evil").done());
        let last = frame.len() - 1;
        frame[last] ^= 1;
        client.send_frame(&frame);
        assert!(client.is_ended(), "{combination:x?}");
    }
    assert_eq!(Rest::new(served.addr(), "share").get("/share/f").is(200).body, BYTES);
}

#[test]
fn a_session_refuses_messages_without_the_protection_it_began_with() {
    let (_served, addr) = stage();
    for combination in COMBINATIONS {
        let mut client = SmbClient::start(addr, combination);
        let id = client.send_plain(Command::TreeDisconnect, echo());
        let answer = client.answer_to_plain(id);
        assert!(
            matches!(answer, None | Some(Status::ACCESS_DENIED)),
            "{combination:x?}: {answer:?}"
        );
    }
}

#[test]
fn a_wrong_key_is_refused_in_every_dialect() {
    let (_served, addr) = stage();
    let wrong = DEVELOPMENT_KEY.replace('E', "F");
    for combination in COMBINATIONS {
        let refused = SmbClient::log_on(addr, combination, &wrong).map(|_| ());
        assert_eq!(refused, Err(Status::LOGON_FAILURE), "{combination:x?}");
    }
}

#[test]
fn requests_out_of_turn_are_refused() {
    let (_served, addr) = stage();
    let mut client = SmbClient::start(addr, COMBINATIONS[0]);
    assert_eq!(client.read(NO_FILE, 0, 1), Err(Status::FILE_CLOSED));
    assert_eq!(client.tree("no-such-share"), Err(Status::BAD_NETWORK_NAME));
    let open = client.open("f", READ, SHARE_ALL).unwrap();
    // Another half of the same ID.
    let half = FileId { volatile: open.volatile ^ 1, ..open };
    assert_eq!(client.read(half, 0, 1), Err(Status::FILE_CLOSED));
    let tree = std::mem::replace(&mut client.tree, 999);
    assert_eq!(client.read(open, 0, 1), Err(Status::NETWORK_NAME_DELETED));
    client.tree = tree;
    assert_eq!(client.read(open, 0, 1), Ok(BYTES[..1].to_vec()));
    client.ask(Command::TreeDisconnect, echo()).unwrap();
    assert_eq!(client.read(open, 0, 1), Err(Status::NETWORK_NAME_DELETED));
}
