//! Messages of a real client, which are the corpus of the fuzzer too, and answers as it reads them.

use super::create::{CreateAnswer, CreateRequest, FileFacts};
use super::directory::{DirectoryClass, DirectoryRequest, Entry, Listing};
use super::info::{FileState, Fitted, Info, QueryInfo};
use super::negotiate::{
    Contexts, NegotiateAnswer, NegotiateCheck, NegotiateRequest, Smb1Negotiate,
};
use super::set_info::{SetFile, SetInfo};
use super::volume::VolumeState;
use super::*;

macro_rules! sent {
    ($name:literal) => {
        include_bytes!(concat!("../../../../fuzz/corpus/smb_message/", $name)).as_slice()
    };
}

const FILE: FileId = FileId { persistent: 7, volatile: 8 };

fn u16_at(message: &[u8], at: usize) -> usize {
    u16::from_le_bytes([message[at], message[at + 1]]).into()
}

fn u32_at(message: &[u8], at: usize) -> usize {
    u32::from_le_bytes(message[at..at + 4].try_into().unwrap()) as usize
}

#[test]
fn negotiate_has_dialects_ciphers_and_signatures() {
    let request = NegotiateRequest::parse(sent!("negotiate")).unwrap();
    assert_eq!(request.dialects, [0x202, 0x210, 0x300, 0x302, 0x311]);
    assert_eq!((request.security_mode, request.capabilities), (1, 0x44));
    assert!(request.has_sha_512);
    assert_eq!((request.ciphers, request.signatures), (vec![2, 1], vec![2, 1]));
    let old = Smb1Negotiate::parse(sent!("smb1")).unwrap();
    assert!(old.knows_2_0_2 && old.knows_later);
}

#[test]
fn a_chain_is_cut_into_its_messages() {
    let chain = sent!("chain");
    let header = Header::parse(chain).unwrap();
    assert_eq!((header.message_id, header.tree_id, header.credits), (3, 5, 64));
    let (create, rest) = header.split(chain).unwrap();
    let create = CreateRequest::parse(create).unwrap();
    assert_eq!((create.name.as_str(), create.share, create.options), ("dir\\file.txt", 7, 0x40));
    assert_eq!(create.context(b"MxAc"), Some(&b""[..]));
    assert_eq!(create.context(b"DH2Q"), Some(&[0x22; 32][..]));
    assert_eq!(create.context(b"QFid"), None);
    let header = Header::parse(rest.unwrap()).unwrap();
    assert!(header.has(header::FLAG_RELATED));
    let (query, rest) = header.split(rest.unwrap()).unwrap();
    let query = QueryInfo::parse(query).unwrap();
    assert_eq!((query.kind, query.class, query.id), (1, 18, FileId::OF_THE_CHAIN));
    let close = rest.unwrap();
    assert_eq!(Header::parse(close).unwrap().split(close), Ok((close, None)));
    assert!(create::CloseRequest::parse(close).unwrap().wants_facts);
}

#[test]
fn requests_say_what_the_client_asked_for() {
    assert_eq!(session::parse_tree_connect(sent!("tree_connect")).unwrap(), "\\\\127.0.0.1\\share");
    let setup = session::SessionSetup::parse(sent!("session_setup")).unwrap();
    assert!(setup.token.starts_with(b"NTLMSSP\0"));
    let read = data::ReadRequest::parse(sent!("read")).unwrap();
    assert_eq!(read, data::ReadRequest { length: 65536, offset: 4096, id: FILE, minimum: 1 });
    let write = data::WriteRequest::parse(sent!("write")).unwrap();
    assert_eq!((write.offset, write.data, write.id), (9, &b"hello"[..], FILE));
    let lock = lock::LockRequest::parse(sent!("lock")).unwrap();
    let ranges: Vec<_> = lock.ranges.iter().map(|r| (r.offset, r.length, r.flags)).collect();
    assert_eq!(ranges, [(0, 10, 0x12), (20, 5, 0x11)]);
    let query = DirectoryRequest::parse(sent!("query_directory")).unwrap();
    assert_eq!((query.class, query.pattern.as_str(), query.room), (37, "*.t?t", 65536));
    let notify = directory::NotifyRequest::parse(sent!("change_notify")).unwrap();
    assert_eq!((notify.recursive, notify.filter), (true, 3));
    let set = SetInfo::parse(sent!("set_info")).unwrap();
    let rename = SetFile::Rename { replace: true, name: "new.txt".to_owned() };
    assert_eq!(SetFile::parse(set.class, set.data), Ok(Some(rename)));
    let ioctl = ioctl::IoctlRequest::parse(sent!("ioctl")).unwrap();
    assert_eq!((ioctl.code, ioctl.max_output), (ioctl::VALIDATE_NEGOTIATE_INFO, 24));
    let check = NegotiateCheck::parse(ioctl.input).unwrap();
    assert_eq!(check.dialects, [0x202, 0x300]);
    let (transform, body) = Transform::parse(sent!("encrypted")).unwrap();
    assert_eq!((transform.session_id, body.len()), (9, 70));
    assert_eq!([&transform.write(), body].concat(), sent!("encrypted"));
}

#[test]
fn a_length_past_the_end_of_the_message_is_refused() {
    let spoilt = |message: &[u8], at: usize, value: u32| {
        let mut message = message.to_vec();
        message[at..at + 4].copy_from_slice(&value.to_le_bytes());
        message
    };
    for value in [1 << 15, u32::MAX, u32::MAX - 100] {
        // Length of the name, length of the contexts, offset of the second context.
        for at in [64 + 46, 64 + 52, 0x90] {
            assert!(CreateRequest::parse(&spoilt(sent!("create"), at, value)).is_err(), "{at}");
        }
        assert!(data::WriteRequest::parse(&spoilt(sent!("write"), 68, value)).is_err());
        assert!(lock::LockRequest::parse(&spoilt(sent!("lock"), 66, value)).is_err());
        let header = Header::parse(&spoilt(sent!("chain"), 20, value)).unwrap();
        assert!(header.split(sent!("chain")).is_err());
        assert!(Transform::parse(&spoilt(sent!("encrypted"), 36, value)).is_err());
        assert!(NegotiateRequest::parse(&spoilt(sent!("negotiate"), 0x5c, value)).is_err());
    }
    // A chain that leads back into itself.
    let header = Header::parse(&spoilt(sent!("chain"), 20, 8)).unwrap();
    assert!(header.split(sent!("chain")).is_err());
    // Data inside the header.
    assert!(data::WriteRequest::parse(&spoilt(sent!("write"), 66, 0x0005_0000)).is_err());
}

#[test]
fn an_answer_has_its_parts_where_it_says() {
    let contexts = Contexts { salt: [7; 32], cipher: Some(2), signature: true };
    let answer = NegotiateAnswer {
        security_mode: 3,
        dialect: 0x311,
        server_guid: [9; 16],
        capabilities: 4,
        max_bytes: 1 << 20,
        now: 5,
        token: b"a token",
        contexts: Some(contexts),
    };
    let message = answer.write();
    assert_eq!(&message[u16_at(&message, 64 + 56)..][..7], b"a token");
    let mut at = u32_at(&message, 64 + 60);
    for (kind, length) in [(1, 38), (2, 4), (8, 4)] {
        assert_eq!((at % 8, u16_at(&message, at), u16_at(&message, at + 2)), (0, kind, length));
        at = (at + 8 + length).next_multiple_of(8);
    }

    let contexts = [(b"MxAc", vec![1; 8]), (b"QFid", vec![2; 32])];
    let facts = FileFacts { size: 3, ..FileFacts::default() };
    let message = CreateAnswer { action: 2, facts, id: FILE, contexts: &contexts }.write();
    let (at, length) = (u32_at(&message, 64 + 80), u32_at(&message, 64 + 84));
    assert_eq!((at % 8, at + length), (0, message.len()));
    let second = at + u32_at(&message, at);
    assert_eq!(&message[second + u16_at(&message, second + 4)..][..4], b"QFid");
    assert_eq!(&message[second + u16_at(&message, second + 10)..][..32], &[2; 32]);

    let message = data::read_answer(b"data");
    assert_eq!(&message[message[66].into()..], b"data");
    assert_eq!(error(b"").len(), 64 + 9);
}

fn state() -> FileState {
    FileState {
        facts: FileFacts { times: [1, 2, 3, 4], allocated: 4096, size: 10, attributes: 0x20 },
        links: 1,
        delete_pending: false,
        directory: false,
        file_id: 77,
        access: 0x12_0089,
        position: 0,
        mode: 0,
        path: "\\dir\\file".to_owned(),
    }
}

/// MS-FSCC 2.4 and 2.5: the sizes of the structures.
#[test]
fn information_has_the_size_of_its_class() {
    let sizes = [
        (4, 40),
        (5, 24),
        (6, 8),
        (7, 4),
        (8, 4),
        (14, 8),
        (16, 4),
        (17, 4),
        (18, 100),
        (22, 24),
        (28, 16),
        (34, 56),
        (35, 8),
    ];
    for (class, size) in sizes {
        assert_eq!(state().info(class).unwrap().fixed, size, "class {class}");
    }
    assert_eq!(state().info(64), None);
    let volume = VolumeState {
        total: 1 << 40,
        free: 1 << 30,
        label: "share".to_owned(),
        created: 1,
        serial: 2,
    };
    for (class, size) in [(1, 18), (3, 24), (4, 8), (5, 12), (7, 32), (11, 28)] {
        assert_eq!(volume.info(class).unwrap().fixed, size, "class {class}");
    }
    assert_eq!(security::descriptor(security::OWNER | security::GROUP).len(), 20 + 16 + 16);
    assert_eq!(security::descriptor(7).len(), 20 + 16 + 16 + 28);
}

#[test]
fn a_small_buffer_takes_the_structure_or_nothing() {
    let info = |room| state().info(18).unwrap().fit(room);
    assert_eq!(info(99), Fitted::TooSmall);
    assert!(matches!(info(101), Fitted::Cut(bytes) if bytes.len() == 101));
    assert!(matches!(info(u32::MAX), Fitted::Whole(bytes) if bytes.len() == 118));
    let none = Info { bytes: Vec::new(), fixed: 0 };
    assert_eq!(none.fit(0), Fitted::Whole(Vec::new()));
}

#[test]
fn a_listing_takes_entries_while_there_is_room() {
    let entry = |name: &str| Entry { name: name.to_owned(), facts: state().facts, file_id: 7 };
    // MS-FSCC 2.4: where the name of an entry begins.
    let starts = [(1, 64), (2, 68), (3, 94), (12, 12), (37, 104), (38, 80)];
    for (class, start) in starts {
        let mut listing = Listing::new(DirectoryClass::of(class).unwrap(), 240);
        assert!(listing.push(&entry("one")) && listing.push(&entry("two")));
        assert!(!listing.push(&entry(&"x".repeat(120))), "no room in class {class}");
        let bytes = listing.done();
        let second = u32_at(&bytes, 0);
        assert_eq!((second % 8, &bytes[start..start + 6]), (0, &b"o\0n\0e\0"[..]), "{class}");
        assert_eq!((u32_at(&bytes, second), &bytes[second + start..]), (0, &b"t\0w\0o\0"[..]));
    }
    assert_eq!(DirectoryClass::of(60), None);
}

#[test]
fn what_is_set_needs_the_bytes_of_its_class() {
    for (class, length) in
        [(4, 36), (10, 20), (11, 20), (13, 1), (14, 8), (16, 4), (19, 8), (20, 8)]
    {
        assert!(matches!(SetFile::parse(class, &vec![0; length]), Ok(Some(_))), "class {class}");
        assert_eq!(SetFile::parse(class, &vec![0; length - 1]), Err(WireError), "class {class}");
    }
    for class in [64, 65, 5] {
        assert_eq!(SetFile::parse(class, &[0; 100]), Ok(None), "class {class}");
    }
}
