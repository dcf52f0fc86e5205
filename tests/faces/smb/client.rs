//! An SMB client of the tests: it logs on, signs or encrypts, and sends one request after the
//! other. It shares messages and keys with the server, but not the logon.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use latchfs::file::smb::auth::{Keys, Preauth};
use latchfs::file::smb::status::Status;
use latchfs::file::smb::wire::bytes::{Reader, Writer, utf16};
use latchfs::file::smb::wire::header::{self, FLAG_ASYNC, FLAG_SIGNED};
use latchfs::file::smb::wire::{Command, FileId, Header, Transform};
use latchfs::http::auth::{DEVELOPMENT_KEY, DEVELOPMENT_NAME};
use md4::{Digest as _, Md4};
use md5::Md5;

use crate::common::served::PATIENCE;

/// Dialect, and the cipher of an encrypted session.
pub type Combination = (u16, Option<u16>);

/// Every dialect signed, and every cipher.
pub const COMBINATIONS: [Combination; 8] = [
    (0x311, None),
    (0x202, None),
    (0x210, None),
    (0x300, None),
    (0x302, None),
    (0x300, Some(1)),
    (0x311, Some(1)),
    (0x311, Some(2)),
];

/// Access rights.
pub const READ: u32 = 0x1;
pub const WRITE: u32 = 0x2;
pub const DELETE: u32 = 0x1_0000;
pub const ATTRIBUTES: u32 = 0x180;
pub const SYNCHRONIZE: u32 = 0x10_0000;
/// Share modes: R, W and D.
pub const SHARE_ALL: u32 = 7;

/// Dispositions.
pub const OPEN: u32 = 1;
pub const CREATE: u32 = 2;

pub struct SmbClient {
    stream: TcpStream,
    frames: Receiver<Vec<u8>>,
    /// Answers that came before the one that was waited for.
    early: Vec<Answer>,
    next: u64,
    pub session: u64,
    pub tree: u32,
    keys: Option<Keys>,
    is_sealed: bool,
}

/// An answer, its header included.
#[derive(Clone, Debug)]
pub struct Answer {
    pub header: Header,
    pub message: Vec<u8>,
}

impl Answer {
    pub fn status(&self) -> Status {
        Status(self.header.status)
    }

    /// The answer, or the status of a failure.
    pub fn done(self) -> Result<Self, Status> {
        if self.status().is_failure() { Err(self.status()) } else { Ok(self) }
    }

    fn u16(&self, at: usize) -> usize {
        u16::from_le_bytes([self.message[at], self.message[at + 1]]).into()
    }

    fn u32(&self, at: usize) -> usize {
        u32::from_le_bytes(self.message[at..at + 4].try_into().unwrap()) as usize
    }

    /// The bytes of an answer of READ.
    fn data(&self) -> &[u8] {
        &self.message[self.message[66].into()..][..self.u32(68)]
    }

    /// The buffer of `QUERY_INFO` and `QUERY_DIRECTORY`.
    pub fn buffer(&self) -> &[u8] {
        &self.message[self.u16(66)..][..self.u32(68)]
    }
}

/// A CREATE.
#[derive(Clone, Debug)]
pub struct Create<'a> {
    pub name: &'a str,
    pub access: u32,
    pub share: u32,
    pub disposition: u32,
    pub options: u32,
    pub attributes: u32,
}

impl<'a> Create<'a> {
    /// An open of what exists.
    pub fn open(name: &'a str, access: u32, share: u32) -> Self {
        Self { name, access, share, disposition: OPEN, options: 0, attributes: 0 }
    }

    fn body(&self) -> Vec<u8> {
        let name = utf16(self.name);
        let body = Writer::answer(57).u8(0).u8(0).u32(2).zeros(16);
        let body = body.u32(self.access).u32(self.attributes).u32(self.share);
        let body = body.u32(self.disposition).u32(self.options).u16(120);
        body.short_length(name.len()).zeros(8).bytes(&name).u8(0).done()
    }
}

/// An open file.
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    pub id: FileId,
    pub action: u32,
    pub size: u64,
}

impl SmbClient {
    /// Logs on with the well-known key and connects to the share `share`.
    #[track_caller]
    pub fn start(addr: SocketAddr, combination: Combination) -> Self {
        let mut client = Self::log_on(addr, combination, DEVELOPMENT_KEY).unwrap();
        client.tree("share").unwrap();
        client
    }

    /// A connection, on which nothing was said yet.
    pub fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, frames) = mpsc::channel();
        let mut reader = stream.try_clone().unwrap();
        thread::spawn(move || {
            while let Ok(frame) = read_frame(&mut reader) {
                if sender.send(frame).is_err() {
                    return;
                }
            }
        });
        let early = Vec::new();
        Self { stream, frames, early, next: 0, session: 0, tree: 0, keys: None, is_sealed: false }
    }

    /// A connection with a session of the development account.
    pub fn log_on(
        addr: SocketAddr,
        (dialect, cipher): Combination,
        key: &str,
    ) -> Result<Self, Status> {
        let mut client = Self::connect(addr);
        let mut preauth = Preauth::default();
        let answer =
            client.preauth(&mut preauth, Command::Negotiate, negotiate(dialect, cipher))?;
        assert_eq!(answer.u16(68), usize::from(dialect));
        let first = Writer::new().bytes(b"NTLMSSP\0").u32(1).u32(NTLM_FLAGS).zeros(16).done();
        let answer = client.preauth(&mut preauth, Command::SessionSetup, setup(&first))?;
        assert_eq!(answer.status(), Status::MORE_PROCESSING_REQUIRED);
        client.session = answer.header.session_id;
        let challenge = &answer.message[answer.u16(68)..];
        let (token, session_key) = authenticate(&first, challenge, key);
        let id = client.send_prehashed(&mut preauth, Command::SessionSetup, setup(&token));
        let answer = client.receive_raw(id).done()?;
        let keys = Keys::new(dialect, cipher.unwrap_or_default(), &session_key, &preauth);
        assert!(keys.verifies(&answer.message), "the end of the logon is signed");
        client.is_sealed = cipher.is_some();
        client.keys = Some(keys.reversed());
        Ok(client)
    }

    pub fn tree(&mut self, share: &str) -> Result<(), Status> {
        let path = utf16(&format!("\\\\127.0.0.1\\{share}"));
        let body = Writer::answer(9).u16(0).u16(72).short_length(path.len()).bytes(&path).done();
        self.tree = self.ask(Command::TreeConnect, body)?.header.tree_id;
        Ok(())
    }

    /// Sends a request and waits for its final answer.
    pub fn ask(&mut self, command: Command, body: Vec<u8>) -> Result<Answer, Status> {
        let id = self.send(command, body);
        self.answer(id).done()
    }

    /// Sends a request: the ID of its message.
    pub fn send(&mut self, command: Command, body: Vec<u8>) -> u64 {
        let id = self.next;
        self.next += 1;
        self.send_as(id, command, 0, 0, body);
        id
    }

    /// The same with a message ID, flags and an async ID of the caller's.
    pub fn send_as(
        &mut self,
        id: u64,
        command: Command,
        flags: u32,
        async_id: u64,
        mut body: Vec<u8>,
    ) {
        self.header(id, command, flags, async_id).fill(&mut body);
        self.send_message(body);
    }

    pub fn header(&self, message_id: u64, command: Command, flags: u32, async_id: u64) -> Header {
        Header {
            credit_charge: 1,
            command: command as u16,
            credits: 64,
            flags,
            message_id,
            async_id,
            tree_id: self.tree,
            session_id: self.session,
            ..Header::default()
        }
    }

    /// Signs or encrypts a message, and sends it.
    pub fn send_message(&mut self, mut message: Vec<u8>) {
        if let Some(keys) = &self.keys {
            if self.is_sealed {
                message = keys.seal().unwrap().encrypt(self.session, &message);
            } else {
                keys.sign(&mut message);
            }
        }
        self.send_frame(&message);
    }

    pub fn send_frame(&mut self, frame: &[u8]) {
        let length = u32::try_from(frame.len()).unwrap().to_be_bytes();
        // A server that ended the connection meanwhile is seen by the answer that is missing.
        let _ = self.stream.write_all(&[&length[..], frame].concat());
    }

    /// Signs a message with the session's key, and gives it for the caller to spoil.
    pub fn signed(&mut self, command: Command, mut body: Vec<u8>) -> Vec<u8> {
        self.header(self.next, command, 0, 0).fill(&mut body);
        self.next += 1;
        self.keys.as_ref().unwrap().sign(&mut body);
        body
    }

    /// The same as an encrypted frame.
    pub fn encrypted(&mut self, command: Command, mut body: Vec<u8>) -> Vec<u8> {
        self.header(self.next, command, 0, 0).fill(&mut body);
        self.next += 1;
        self.keys.as_ref().and_then(Keys::seal).unwrap().encrypt(self.session, &body)
    }

    /// Sends a request that is neither signed nor encrypted.
    pub fn send_plain(&mut self, command: Command, mut body: Vec<u8>) -> u64 {
        self.header(self.next, command, 0, 0).fill(&mut body);
        self.next += 1;
        self.send_frame(&body);
        self.next - 1
    }

    /// The status of the answer to such a request; none if the connection ends.
    pub fn answer_to_plain(&mut self, id: u64) -> Option<Status> {
        let frame = self.frames.recv_timeout(PATIENCE).ok()?;
        let header = Header::parse(&frame).unwrap();
        assert_eq!(header.message_id, id);
        Some(Status(header.status))
    }

    /// Sends the length of a frame, and no frame.
    pub fn send_length(&mut self, length: u32) {
        self.stream.write_all(&length.to_be_bytes()).unwrap();
    }

    /// The final answer to a message.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Answer {
        loop {
            let answer = self.answer_within(id, PATIENCE).expect("an answer comes");
            if answer.status() != Status::PENDING {
                return answer;
            }
        }
    }

    /// The next answer to a message, also an interim one, if it comes in time.
    pub fn answer_within(&mut self, id: u64, time: Duration) -> Option<Answer> {
        if let Some(at) = self.early.iter().position(|answer| answer.header.message_id == id) {
            return Some(self.early.remove(at));
        }
        loop {
            let frame = self.frames.recv_timeout(time).ok()?;
            for answer in self.answers_of(frame) {
                self.early.push(answer);
            }
            let found = self.early.iter().position(|answer| answer.header.message_id == id);
            if let Some(at) = found {
                return Some(self.early.remove(at));
            }
        }
    }

    /// Whether the server ends the connection, without another answer.
    pub fn is_ended(&mut self) -> bool {
        self.frames.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Disconnected)
    }

    /// Cuts the connection, without a word.
    pub fn cut(self) {
        drop(self);
    }

    /// The answers of a frame: decrypted, and their signatures checked.
    fn answers_of(&self, frame: Vec<u8>) -> Vec<Answer> {
        let chain = if let Ok((transform, body)) = Transform::parse(&frame) {
            let seal = self.keys.as_ref().and_then(Keys::seal).unwrap();
            seal.decrypt(&transform, body).expect("an answer can be decrypted")
        } else {
            assert!(!self.is_sealed, "answers of an encrypted session are encrypted");
            frame
        };
        let (mut answers, mut rest) = (Vec::new(), Some(chain.as_slice()));
        while let Some(chain) = rest {
            let header = Header::parse(chain).unwrap();
            let (message, behind) = header.split(chain).unwrap();
            if let Some(keys) = self.keys.as_ref().filter(|_| !self.is_sealed) {
                // Without a session there is no key for the answer.
                let has_session = Status(header.status) != Status::USER_SESSION_DELETED;
                let is_signed = header.has(FLAG_SIGNED) && has_session;
                assert!(is_signed || header.status != 0, "success is signed: {header:?}");
                assert!(!is_signed || keys.verifies(message), "a wrong signature: {header:?}");
            }
            answers.push(Answer { header, message: message.to_vec() });
            rest = behind;
        }
        answers
    }

    fn receive_raw(&mut self, id: u64) -> Answer {
        self.answer_within(id, PATIENCE).expect("an answer comes")
    }

    fn send_prehashed(&mut self, preauth: &mut Preauth, command: Command, body: Vec<u8>) -> u64 {
        let id = self.next;
        self.next += 1;
        let mut message = body;
        self.header(id, command, 0, 0).fill(&mut message);
        preauth.update(&message);
        self.send_frame(&message);
        id
    }

    fn preauth(
        &mut self,
        preauth: &mut Preauth,
        command: Command,
        body: Vec<u8>,
    ) -> Result<Answer, Status> {
        let id = self.send_prehashed(preauth, command, body);
        let answer = self.receive_raw(id);
        preauth.update(&answer.message);
        if answer.status() == Status::MORE_PROCESSING_REQUIRED { Ok(answer) } else { answer.done() }
    }
}

impl Drop for SmbClient {
    fn drop(&mut self) {
        // The thread that reads has a copy of the socket. The server may have ended it already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// What the tests do with files.
impl SmbClient {
    pub fn create(&mut self, create: &Create<'_>) -> Result<Opened, Status> {
        let answer = self.ask(Command::Create, create.body())?;
        let mut body = Reader::body(&answer.message, 89).unwrap();
        body.skip(2).unwrap();
        let action = body.u32().unwrap();
        body.skip(40).unwrap();
        let size = body.u64().unwrap();
        body.skip(8).unwrap();
        Ok(Opened { id: body.file_id().unwrap(), action, size })
    }

    /// Opens what exists.
    pub fn open(&mut self, name: &str, access: u32, share: u32) -> Result<FileId, Status> {
        self.create(&Create::open(name, access, share)).map(|opened| opened.id)
    }

    /// The status of an open that is ended again if it is granted.
    #[track_caller]
    pub fn try_open(&mut self, name: &str, access: u32, share: u32) -> Status {
        match self.open(name, access, share) {
            Ok(id) => {
                self.close(id).unwrap();
                Status::SUCCESS
            }
            Err(status) => status,
        }
    }

    pub fn close(&mut self, id: FileId) -> Result<(), Status> {
        let body = Writer::answer(24).u16(0).u32(0).file_id(id).done();
        self.ask(Command::Close, body).map(drop)
    }

    pub fn read(&mut self, id: FileId, offset: u64, length: u32) -> Result<Vec<u8>, Status> {
        let body = Writer::answer(49).u8(80).u8(0).u32(length).u64(offset).file_id(id);
        let body = body.u32(0).zeros(13).done();
        self.ask(Command::Read, body).map(|answer| answer.data().to_vec())
    }

    pub fn write(&mut self, id: FileId, offset: u64, data: &[u8]) -> Result<(), Status> {
        let body = Writer::answer(49).u16(112).length(data.len()).u64(offset).file_id(id);
        let body = body.zeros(16).bytes(data).done();
        self.ask(Command::Write, body).map(drop)
    }

    /// Sends a LOCK: ranges with flags.
    pub fn send_lock(&mut self, id: FileId, ranges: &[(u64, u64, u32)]) -> u64 {
        let body = Writer::answer(48).short_length(ranges.len()).u32(0).file_id(id);
        let body = ranges.iter().fold(body, |body, (offset, length, flags)| {
            body.u64(*offset).u64(*length).u32(*flags).u32(0)
        });
        self.send(Command::Lock, body.done())
    }

    pub fn lock(&mut self, id: FileId, ranges: &[(u64, u64, u32)]) -> Result<(), Status> {
        let sent = self.send_lock(id, ranges);
        self.answer(sent).done().map(drop)
    }

    /// Cancels a request by its async ID.
    pub fn cancel(&mut self, interim: &Header) {
        let body = Writer::answer(4).u16(0).done();
        self.send_as(interim.message_id, Command::Cancel, FLAG_ASYNC, interim.async_id, body);
    }

    pub fn set_info(&mut self, id: FileId, class: u8, data: &[u8]) -> Result<(), Status> {
        let body = Writer::answer(33).u8(1).u8(class).length(data.len()).u16(96).zeros(6);
        self.ask(Command::SetInfo, body.file_id(id).bytes(data).done()).map(drop)
    }

    pub fn set_disposition(&mut self, id: FileId, delete: bool) -> Result<(), Status> {
        self.set_info(id, 13, &[delete.into()])
    }

    /// Renames, or links if `class` is 11.
    pub fn rename(
        &mut self,
        id: FileId,
        class: u8,
        new: &str,
        replace: bool,
    ) -> Result<(), Status> {
        let name = utf16(new);
        let data = Writer::new().u8(replace.into()).zeros(15).length(name.len()).bytes(&name);
        self.set_info(id, class, &data.done())
    }

    /// The bytes of an information class of a file.
    pub fn query(&mut self, id: FileId, class: u8) -> Result<Vec<u8>, Status> {
        let body = Writer::answer(41).u8(1).u8(class).u32(4096).zeros(16).file_id(id).u8(0);
        self.ask(Command::QueryInfo, body.done()).map(|answer| answer.buffer().to_vec())
    }

    /// The names in a directory, without `.` and `..`.
    pub fn list(&mut self, directory: FileId) -> Result<Vec<String>, Status> {
        let pattern = utf16("*");
        let mut names = Vec::new();
        loop {
            let body = Writer::answer(33).u8(12).u8(0).u32(0).file_id(directory).u16(96);
            let body = body.short_length(pattern.len()).u32(65536).bytes(&pattern).done();
            let answer = self.ask(Command::QueryDirectory, body)?;
            if answer.status() == Status::NO_MORE_FILES {
                names.retain(|name| name != "." && name != "..");
                return Ok(names);
            }
            names.extend(names_of(answer.buffer()));
        }
    }
}

/// The names of a listing of class 12.
fn names_of(mut rows: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        let mut row = Reader::new(rows);
        let next = row.large().unwrap();
        row.skip(4).unwrap();
        let length = row.large().unwrap();
        names.push(row.text_at(12, length).unwrap());
        if next == 0 {
            return names;
        }
        rows = &rows[next..];
    }
}

fn read_frame(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut frame)?;
    Ok(frame)
}

/// A NEGOTIATE with one dialect.
fn negotiate(dialect: u16, cipher: Option<u16>) -> Vec<u8> {
    let body = Writer::answer(36).u16(1).u16(1).u16(0).u32(0x44).bytes(&[7; 16]);
    if dialect != 0x311 {
        return body.u64(0).u16(dialect).done();
    }
    let count = if cipher.is_some() { 2 } else { 1 };
    let body = body.u32(104).u16(count).u16(0).u16(dialect).align();
    let body = body.u16(1).u16(38).u32(0).u16(1).u16(32).u16(1).zeros(32);
    match cipher {
        Some(cipher) => body.align().u16(2).u16(4).u32(0).u16(1).u16(cipher).done(),
        None => body.done(),
    }
}

fn setup(token: &[u8]) -> Vec<u8> {
    let body = Writer::answer(25).u8(0).u8(1).u32(1).u32(0).short_length(header::SIZE + 24);
    body.short_length(token.len()).u64(0).bytes(token).done()
}

/// Unicode, NTLM, extended security.
const NTLM_FLAGS: u32 = 0x8_0201;

fn code(key: &[u8], parts: &[&[u8]]) -> [u8; 16] {
    let code = Hmac::<Md5>::new_from_slice(key).unwrap();
    parts.iter().fold(code, hmac::Mac::chain_update).finalize().into_bytes().into()
}

/// The `NTLMv2` answer to a challenge, without an exchange of keys; and the key of the session.
fn authenticate(first: &[u8], challenge: &[u8], key: &str) -> (Vec<u8>, [u8; 16]) {
    let user = utf16(DEVELOPMENT_NAME);
    let identity = utf16(&DEVELOPMENT_NAME.to_uppercase());
    let hash = code(&Md4::digest(utf16(key)), &[&identity, &utf16("TESTS")]);
    // The second attribute promises an integrity code.
    let blob = Writer::new().u8(1).u8(1).zeros(6).u64(0).u64(7).u32(0);
    let blob = blob.u16(6).u16(4).u32(2).u32(0).u32(0).done();
    let proof = code(&hash, &[&challenge[24..32], &blob]);
    let parts = [vec![], [&proof[..], &blob].concat(), utf16("TESTS"), user, vec![], vec![]];
    let mut message = Writer::new().bytes(b"NTLMSSP\0").u32(3);
    let mut at = 88;
    for part in &parts {
        message = message.short_length(part.len()).short_length(part.len()).length(at);
        at += part.len();
    }
    let mut message = message.u32(NTLM_FLAGS).zeros(24).bytes(&parts.concat()).done();
    let key = code(&hash, &[&proof]);
    let mic = code(&key, &[first, challenge, &message]);
    message[72..88].copy_from_slice(&mic);
    (message, key)
}
