//! Both faces of one running latchfs at once: a file that programs have open on the mount and
//! that REST callers ask for.
//!
//! Tests that run at the same time share a server and keep to names of their own. A descriptor
//! ends a little after `close(2)`, and a program that another test is just starting may have a
//! copy of it: [`Holder::close`] waits until the handle has left the table.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::fs::{self, File};
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use latchfs::api::{
    AnswerLines, ApiClient, ClientError, HoldOptions, HoldRow, RefusalKind, Release, Released,
};
use latchfs::client;
use latchfs::file::rules::{Access, ShareMode};
use rustix::process::{Pid, Signal};

use super::calls::Call;
use super::http::Got;
use super::need;
use super::rest::Rest;
use super::served::{Served, wait_for};

/// What a file holds unless the test says otherwise.
pub const BYTES: &[u8] = b"0123456789";

/// Access and share modes: every set of the three.
pub const SETS: [&str; 8] = ["none", "r", "w", "d", "rw", "rd", "wd", "rwd"];

/// A test that takes longer hangs in a call on the mount; without its server the call fails.
const WATCHDOG: Duration = Duration::from_mins(3);

/// The server of all tests that run now.
static RUNNING: Mutex<Weak<Served>> = Mutex::new(Weak::new());

/// A running latchfs with the share `share`.
pub struct Meeting {
    served: Arc<Served>,
    rest: Rest,
    _watchdog: Sender<()>,
}

impl Meeting {
    /// The server that other tests use too; none if nothing can be mounted here.
    #[track_caller]
    pub fn start() -> Option<Self> {
        if !need::fuse() {
            return None;
        }
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let served = running.upgrade().unwrap_or_else(|| Arc::new(Served::start(&ruled())));
        *running = Arc::downgrade(&served);
        Some(Self::of(served))
    }

    /// A server of the test's own, with more arguments.
    #[track_caller]
    pub fn alone(args: &[&str]) -> Option<Self> {
        need::fuse().then(|| Self::of(Arc::new(Served::start(&[&["--no-auth"], args].concat()))))
    }

    fn of(served: Arc<Served>) -> Self {
        let rest = Rest::new(served.addr(), "share");
        let watchdog = watch(served.pid());
        Self { served, rest, _watchdog: watchdog }
    }

    pub fn served(&self) -> &Served {
        &self.served
    }

    /// A path on the mount.
    pub fn path(&self, name: &str) -> PathBuf {
        self.served.mount().join(name)
    }

    /// Makes a file through REST.
    pub fn file(&self, name: &str) -> Subject<'_> {
        self.file_of(name, BYTES)
    }

    /// The same, with these bytes.
    pub fn file_of(&self, name: &str, bytes: &[u8]) -> Subject<'_> {
        self.rest.upload(name, bytes);
        self.named(name)
    }

    /// Whatever has that name, or nothing.
    pub fn named(&self, name: &str) -> Subject<'_> {
        Subject { at: self, name: name.to_owned() }
    }

    /// Makes a directory through REST.
    pub fn directory(&self, name: &str) -> Subject<'_> {
        self.put(&format!("/share/{name}?restype=directory"), &[]).is(201);
        self.named(name)
    }

    /// A client of the control socket.
    pub fn control(&self) -> ApiClient {
        ApiClient::new(Path::new(self.served.told("control")))
    }

    /// A client that opens as `latchfs hold` does, many times.
    pub fn holds(&self) -> Holds {
        Holds::of(self.control())
    }

    /// All that List Handles says of a file or directory, and of what is below it.
    pub fn handles(&self, name: &str, recursive: bool) -> Vec<Listed> {
        let recursive = [("x-ms-recursive", if recursive { "true" } else { "false" })];
        let target = format!("/share/{name}?comp=listhandles");
        listed(&self.ask("GET", target.trim_end_matches('/'), &recursive, b"").is(200))
    }

    /// Waits until the handle has left the table.
    #[track_caller]
    pub fn wait_gone(&self, id: u64) {
        wait_for("the end of a handle", || {
            self.handles("", true).iter().all(|handle| handle.id != id).then_some(())
        });
    }

    /// Waits until nobody has the file open; also if it is gone.
    #[track_caller]
    pub fn wait_idle(&self, name: &str) {
        wait_for("nobody to have it open", || {
            let got = self.get(&format!("/share/{name}?comp=listhandles"));
            (got.status == 404 || listed(&got).is_empty()).then_some(())
        });
    }

    /// The names that REST lists in a directory.
    pub fn listing(&self, dir: &str) -> Vec<String> {
        let target = format!("/share/{dir}?restype=directory&comp=list");
        elements(&self.get(&target).is(200).text(), "Name")
    }

    fn hold(
        &self,
        name: &str,
        access: &str,
        share: &str,
        on_close: bool,
    ) -> Result<Holder<'_>, i32> {
        let mut holds = self.holds();
        let id = holds.ask(name, access, share, on_close)?;
        Ok(Holder { at: self, id, kept: Kept::Holds(holds) })
    }
}

impl Deref for Meeting {
    type Target = Rest;

    fn deref(&self) -> &Rest {
        &self.rest
    }
}

/// Files whose names end so are opened with that share mode: `*.none` shares nothing.
fn ruled() -> Vec<&'static str> {
    let rules = ["*.none=none", "*.r=r", "*.w=w", "*.d=d", "*.rw=rw", "*.rd=rd", "*.wd=wd"];
    let rules = rules.into_iter().flat_map(|rule| ["--share-rule", rule]);
    ["--no-auth"].into_iter().chain(rules).collect()
}

fn watch(server: u32) -> Sender<()> {
    let (alive, ended) = mpsc::channel();
    thread::spawn(move || {
        if ended.recv_timeout(WATCHDOG) == Err(RecvTimeoutError::Timeout) {
            let pid = Pid::from_raw(i32::try_from(server).unwrap()).unwrap();
            // It may have ended by itself.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    });
    alive
}

/// A file or directory that both faces see.
pub struct Subject<'a> {
    pub at: &'a Meeting,
    pub name: String,
}

impl<'a> Subject<'a> {
    /// Where the mount has it.
    pub fn path(&self) -> PathBuf {
        self.at.path(&self.name)
    }

    /// Where REST has it.
    pub fn target(&self) -> String {
        format!("/share/{}", self.name)
    }

    pub fn beside(&self, suffix: &str) -> Subject<'a> {
        self.at.named(&format!("{}{suffix}", self.name))
    }

    /// One REST operation on it.
    pub fn call(&self, call: Call) -> Got {
        call.send(self, &[])
    }

    /// The same with further headers.
    pub fn call_with(&self, call: Call, headers: &[(&str, &str)]) -> Got {
        call.send(self, headers)
    }

    /// Fails unless each of the calls is answered with `code`; `ok` is success.
    #[track_caller]
    pub fn answers(&self, code: &str, calls: &[Call]) {
        for call in calls {
            self.answers_to(*call, &[], code);
        }
    }

    /// The same of one call with further headers.
    #[track_caller]
    pub fn answers_to(&self, call: Call, headers: &[(&str, &str)], code: &str) {
        let got = self.call_with(call, headers);
        let seen = if got.status == call.done() { "ok" } else { got.code() };
        assert_eq!(seen, code, "{call:?} of {}: {} {}", self.name, got.status, got.text());
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.call(Call::Get).is(200).body
    }

    /// A header of Get File Properties.
    pub fn shown(&self, header: &str) -> String {
        self.call(Call::Head).is(200).header(header).to_owned()
    }

    /// Its `ETag`.
    pub fn etag(&self) -> String {
        self.shown("etag")
    }

    /// Its handles, by List Handles.
    pub fn handles(&self) -> Vec<Listed> {
        self.at.handles(&self.name, false)
    }

    /// Opens it on the mount side: by `open(2)` and the ioctl where that can say it, else as
    /// `latchfs hold` does.
    #[track_caller]
    pub fn open(&self, access: &str, share: &str) -> Holder<'a> {
        match self.try_open(access, share) {
            Ok(holder) => holder,
            Err(errno) => panic!("open({access}; {share}) of {}: errno {errno}", self.name),
        }
    }

    /// The same, or the errno of the refusal.
    pub fn try_open(&self, access: &str, share: &str) -> Result<Holder<'a>, i32> {
        if !["r", "w", "rw"].contains(&access) || self.path().is_dir() {
            return self.at.hold(&self.name, access, share, false);
        }
        let opened = self.descriptor(access).and_then(|file| {
            client::set_share(&file, ShareMode::parse(share).unwrap())?;
            Ok((client::handle(&file)?.handle, file))
        });
        let (id, file) = opened.map_err(|error| error.raw_os_error().unwrap())?;
        Ok(Holder { at: self.at, id, kept: Kept::Descriptor(file) })
    }

    /// The errno of an open that is ended again if it is granted; 0 then.
    pub fn open_errno(&self, access: &str, share: &str) -> i32 {
        self.try_open(access, share).map_or_else(
            |errno| errno,
            |holder| {
                holder.close();
                0
            },
        )
    }

    /// `open(2)`, with the share mode that the mount gives it.
    pub fn descriptor(&self, access: &str) -> io::Result<File> {
        let access = Access::parse(access).unwrap();
        fs::OpenOptions::new()
            .read(access.contains(Access::R))
            .write(access.contains(Access::W))
            .open(self.path())
    }

    /// An open with delete-on-close, as `latchfs hold --delete-on-close` has it.
    pub fn delete_on_close(&self, share: &str) -> Result<Holder<'a>, i32> {
        self.at.hold(&self.name, "d", share, true)
    }

    /// Unlinks it on the mount while it is open there; what is open.
    #[track_caller]
    pub fn pending(&self) -> Holder<'a> {
        let keeper = self.open("rw", "rwd");
        fs::remove_file(self.path()).unwrap();
        keeper
    }
}

/// An open on the mount side.
pub struct Holder<'a> {
    at: &'a Meeting,
    id: u64,
    kept: Kept,
}

enum Kept {
    Descriptor(File),
    Holds(#[allow(dead_code, reason = "its drop ends the hold")] Holds),
}

impl Holder<'_> {
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The descriptor of an open that has one.
    pub fn file(&self) -> &File {
        let Kept::Descriptor(file) = &self.kept else { panic!("a hold has no descriptor") };
        file
    }

    /// Ends it, and waits until it has left the table.
    #[track_caller]
    pub fn close(self) {
        drop(self.kept);
        self.at.wait_gone(self.id);
    }
}

/// A client with holds of files. Each gives its handle, or the errno of the refusal.
pub struct Holds {
    client: ApiClient,
    /// The answers that go on as long as their holds.
    held: Vec<(u64, AnswerLines)>,
}

impl Holds {
    pub fn of(client: ApiClient) -> Self {
        Self { client, held: Vec::new() }
    }

    pub fn open(&mut self, name: &str, access: &str, share: &str) -> Result<u64, i32> {
        self.ask(name, access, share, false)
    }

    #[track_caller]
    pub fn close(&mut self, handle: u64) {
        let release = Release { handle, share: Some("share".into()) };
        let Released { open } = self.client.ask(&release).unwrap();
        assert!(open);
        self.held.retain(|(held, _)| *held != handle);
    }

    fn ask(&mut self, name: &str, access: &str, share: &str, on_close: bool) -> Result<u64, i32> {
        let hold = HoldOptions {
            access: Access::parse(access).unwrap(),
            share_mode: ShareMode::parse(share).unwrap(),
            delete_on_close: on_close,
            while_connected: true,
            ..HoldOptions::new("share", name)
        };
        match self.client.open(&hold) {
            Ok(mut answer) => {
                let HoldRow { handle, .. } = answer.first().unwrap();
                self.held.push((handle, answer));
                Ok(handle)
            }
            Err(ClientError::Refused(refused)) => Err(errno_of(refused.kind)),
            Err(other) => panic!("{other:?}"),
        }
    }
}

/// What List Handles says of an open.
#[derive(Debug, PartialEq, Eq)]
pub struct Listed {
    pub id: u64,
    pub path: String,
    pub file_id: String,
    pub session: String,
    pub client: String,
    pub opened: String,
    pub access: Vec<String>,
}

/// The handles of an answer of List Handles.
pub fn listed(got: &Got) -> Vec<Listed> {
    let one = |xml: &str, name: &str| elements(xml, name).pop().unwrap_or_default();
    let text = got.text();
    text.split("<Handle>")
        .skip(1)
        .map(|xml| Listed {
            id: one(xml, "HandleId").parse().unwrap(),
            path: one(xml, "Path"),
            file_id: one(xml, "FileId"),
            session: one(xml, "SessionId"),
            client: one(xml, "ClientName"),
            opened: one(xml, "OpenTime"),
            access: elements(xml, "AccessRight"),
        })
        .collect()
}

/// The texts of all elements of that name.
pub fn elements(xml: &str, name: &str) -> Vec<String> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let texts = xml.split(&open).skip(1);
    texts.map(|rest| rest.split(&close).next().unwrap().to_owned()).collect()
}

/// The errno of what failed; 0 if it did not.
pub fn errno<T>(done: io::Result<T>) -> i32 {
    done.err().map_or(0, |error| error.raw_os_error().unwrap_or(-1))
}

fn errno_of(kind: RefusalKind) -> i32 {
    match kind {
        kind if kind.is_busy() => libc::EBUSY,
        RefusalKind::NotFound => libc::ENOENT,
        RefusalKind::Exists => libc::EEXIST,
        RefusalKind::Denied => libc::EACCES,
        _ => libc::EINVAL,
    }
}
