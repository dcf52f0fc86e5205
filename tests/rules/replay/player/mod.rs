//! The oracle's runner: a scripted SMB client that carries the steps of a recording out on a share.
//!
//! It translates steps into calls of the File service and refusals into NTSTATUS names, and decides
//! nothing. It can ask for what `open(2)` cannot: delete access, attribute-only opens,
//! delete-on-close.
//!
//! ```text
//!   script     the format: scenarios, steps, traces
//!   words      how a script spells accesses, share modes, options
//! ```

mod script;
mod words;

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use latchfs::clock::SystemClock;
use latchfs::file::rules::create::{CreateAction, Disposition, OpenRequest, Options};
use latchfs::file::rules::ranges::{ByteRange, LockKind, RangeLock, Ticket};
use latchfs::file::rules::{Access, Denial, ShareMode, SharePath, ntstatus};
use latchfs::file::service::{
    BasicTimes, FileError, FileKind, Handle, IO_MAX, Result, Share, ShareOptions,
};
use latchfs::journal::AccountJournal;
use latchfs::rules::{Client, Context, Owner};
use serde_json::{Value, json};

use self::script::RangeArg;
pub use self::script::{Group, Op, read_script};
use self::words::{
    action_name, all_ranges, attributes, byte_range, disposition, lock_kind, options, rights,
    share_mode,
};

/// The answer to a step that has no status of its own, such as a cut connection.
pub const NO_STATUS: &str = "-";

/// The answer to `await` while the request waits.
const STILL_WAITING: &str = "STILL_WAITING";

/// The file that every trace works on, and what is in it.
const TRACE_FILE: (&str, &str) = ("f", "01234567890123456789");

/// The longest that `await`, or a lock without `fail_immediately`, waits.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// How a lock waits that nobody else in the script can release: not for long.
const LONE_WAIT: Duration = Duration::from_secs(1);

/// The answer to a step.
#[derive(Clone, Debug, PartialEq)]
pub struct PlayAnswer {
    /// By its NTSTATUS name.
    pub status: &'static str,
    /// The output of the step.
    pub out: Option<Value>,
    /// The message of the refusal, which names the holder.
    pub why: Option<String>,
}

struct ScriptedOpen {
    conn: String,
    request: OpenRequest,
    path: SharePath,
    handle: Handle,
}

struct WaitingLock {
    h: String,
    ticket: Option<Ticket>,
    answers: Receiver<std::result::Result<(), Denial>>,
}

/// A share in a temporary directory.
pub struct FreshShare {
    share: Share,
    root: PathBuf,
    /// Removes both folders when dropped.
    _folder: tempfile::TempDir,
}

impl FreshShare {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let root = folder.path().join("share");
        fs::create_dir(&root).expect("a directory can be made");
        let share = Share::open_directory(
            "play",
            &root,
            &folder.path().join("state"),
            ShareOptions::default(),
            Arc::new(SystemClock),
            AccountJournal::default(),
        );
        Self { share: share.expect("a share can be made"), root, _folder: folder }
    }

    pub fn share(&self) -> &Share {
        &self.share
    }

    /// Empties it for the next group. Nothing may be open.
    pub fn clear(&self) {
        for entry in fs::read_dir(&self.root).expect("a share can be listed") {
            let entry = entry.expect("a share can be listed").path();
            let removed =
                if entry.is_dir() { fs::remove_dir_all(&entry) } else { fs::remove_file(&entry) };
            removed.expect("a share can be emptied");
        }
    }
}

/// The NTSTATUS name of an answer. No recording meets an error of the disk.
pub fn status<T>(answer: &Result<T>) -> &'static str {
    match answer {
        Ok(_) => "STATUS_SUCCESS",
        Err(FileError::Denied(denial)) => ntstatus::name(denial),
        Err(FileError::Store(error)) => panic!("the disk failed: {error}"),
    }
}

/// Plays scripts on a share.
pub struct Player<'a> {
    share: &'a Share,
    clients: HashMap<String, Owner>,
    handles: HashMap<String, ScriptedOpen>,
    waiting: HashMap<String, WaitingLock>,
    trace: bool,
}

impl<'a> Player<'a> {
    /// On that share, which should be empty.
    pub fn new(share: &'a Share) -> Self {
        Self {
            share,
            clients: HashMap::new(),
            handles: HashMap::new(),
            waiting: HashMap::new(),
            trace: false,
        }
    }

    /// Makes ready for a group: a trace gets its file.
    pub fn start(&mut self, group: &Group) -> Result<()> {
        self.trace = group.trace;
        if self.trace {
            self.make_file(TRACE_FILE.0, TRACE_FILE.1, None)?;
        }
        Ok(())
    }

    /// Carries one step out.
    pub fn step(&mut self, op: &Op) -> PlayAnswer {
        if let Some(h) = op.handle()
            && !self.trace
            && !self.handles.contains_key(h)
        {
            let why = format!("no handle {h} is open: it was closed, or its open was refused");
            return PlayAnswer { why: Some(why), ..answer(Err(Denial::HandleClosed.into())) };
        }
        match op {
            Op::DropConnection { conn } => self.drop_connection(conn),
            Op::Cancel { tag } => self.cancel(tag),
            Op::Await { tag, timeout } => self.wait_for(tag, *timeout),
            Op::LockAsync { tag, h, ranges } => self.lock_async(tag, h, ranges),
            Op::ServerLs {} => PlayAnswer { status: NO_STATUS, ..answer(self.tree().map(Some)) },
            // The POSIX forms are not offered, as the recording server does not (dp39-dp41).
            Op::SetDispositionEx { .. } | Op::RenameEx { .. } => {
                PlayAnswer { status: "STATUS_INVALID_INFO_CLASS", out: None, why: None }
            }
            other => answer(self.plain(other)),
        }
    }

    /// Ends all opens that the script left.
    pub fn finish(&mut self) -> Result<()> {
        for (_, held) in self.handles.drain() {
            match self.share.close(&held.handle) {
                Ok(()) | Err(FileError::Denied(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.waiting.clear();
        Ok(())
    }

    fn plain(&mut self, op: &Op) -> Result<Option<Value>> {
        match op {
            Op::Mkfile { name, data, attrs } => self.make_file(name, data, attrs.as_deref())?,
            Op::Mkdir { name, attrs } => self.make_dir(name, attrs.as_deref())?,
            Op::Open { .. } => return self.open(op).map(Some),
            Op::Close { h } => {
                let held = self.handles.remove(h).ok_or(Denial::HandleClosed)?;
                self.share.close(&held.handle)?;
            }
            Op::Reopen { h } => self.reopen(h)?,
            Op::Read { h, off, len } => {
                let bytes = self.share.read(self.handle(h)?, *off, *len)?;
                return Ok(Some(String::from_utf8_lossy(&bytes).into()));
            }
            Op::Write { h, off, data, len } => {
                // One byte more than allowed is enough to be refused.
                let filler = || "x".repeat(len.unwrap_or(0).min(IO_MAX + 1));
                let data = data.clone().unwrap_or_else(filler);
                self.share.write(self.handle(h)?, *off, data.as_bytes())?;
            }
            Op::Lock { h, ranges, off, len, mode, fail_immediately } => {
                let ranges = all_ranges(ranges, *off, *len, mode.as_ref())?;
                self.lock(h, &ranges, *fail_immediately)?;
            }
            Op::Unlock { h, ranges, off, len } => {
                let ranges = all_ranges(ranges, *off, *len, None)?;
                let ranges = ranges.iter().map(byte_range).collect::<Result<Vec<_>>>()?;
                self.share.unlock(self.handle(h)?, &ranges)?;
            }
            Op::SetDisposition { h, delete } => {
                self.share.set_disposition(self.handle(h)?, *delete)?;
            }
            Op::Rename { h, new, replace } => {
                self.share.rename_handle(self.handle(h)?, &SharePath::new(new)?, *replace)?;
            }
            Op::Link { h, new, replace } => {
                self.share.link_handle(self.handle(h)?, &SharePath::new(new)?, *replace)?;
            }
            Op::SetEof { h, size } => {
                self.share.set_size(&self.client(""), self.handle(h)?, *size)?;
            }
            Op::SetAlloc { h, size } => {
                self.share.set_allocation(&self.client(""), self.handle(h)?, *size)?;
            }
            Op::SetAttr { h, attrs } => {
                let (cx, attributes) = (self.client(""), Some(attributes(Some(attrs))?));
                self.share.set_basic(&cx, self.handle(h)?, attributes, BasicTimes::default())?;
            }
            Op::QueryStandard { h } => return self.standard(h).map(Some),
            Op::List { conn, path } => return self.list(conn, path).map(Some),
            Op::DropConnection { .. }
            | Op::Cancel { .. }
            | Op::Await { .. }
            | Op::LockAsync { .. }
            | Op::ServerLs {}
            | Op::SetDispositionEx { .. }
            | Op::RenameEx { .. } => unreachable!("step() has done these"),
        }
        Ok(None)
    }

    fn client(&mut self, conn: &str) -> Context {
        let session = self.clients.len() as u64 + 1;
        let owner = self.clients.entry(conn.to_owned()).or_insert_with(|| {
            let client = Client { session, name: format!("connection {conn}") };
            Owner { client: Arc::new(client), pid: 0, program: None }
        });
        Context::local(self.share.now(), owner.clone(), "play")
    }

    /// The handle of that name. In a trace a name that was never opened is opened on first use.
    fn handle(&mut self, h: &str) -> Result<&Handle> {
        if self.trace && !self.handles.contains_key(h) {
            let request = OpenRequest::plain(Access::RW, ShareMode::RWD);
            let conn = h.get(..1).unwrap_or("A").to_uppercase();
            self.open_as(&conn, h, &SharePath::new(TRACE_FILE.0)?, &request)?;
        }
        Ok(&self.handles.get(h).ok_or(Denial::HandleClosed)?.handle)
    }

    fn open(&mut self, op: &Op) -> Result<Value> {
        let Op::Open { conn, h, name, access, share, disp, opts, attrs } = op else {
            unreachable!("called for opens only")
        };
        let request = OpenRequest {
            rights: rights(access)?,
            share: share_mode(share)?,
            disposition: disposition(disp)?,
            options: options(opts)?,
            attributes: attributes(attrs.as_deref())?,
        };
        let (action, eof) = self.open_as(conn, h, &SharePath::new(name)?, &request)?;
        Ok(json!({ "action": action_name(action), "eof": eof }))
    }

    fn open_as(
        &mut self,
        conn: &str,
        h: &str,
        path: &SharePath,
        request: &OpenRequest,
    ) -> Result<(CreateAction, u64)> {
        let cx = self.client(conn);
        let opened = self.share.open(&cx, path, request)?;
        let eof = self.share.standard(&opened.handle)?.size;
        let held = ScriptedOpen {
            conn: conn.to_owned(),
            request: *request,
            path: opened.path,
            handle: opened.handle,
        };
        if let Some(before) = self.handles.insert(h.to_owned(), held) {
            // The name is taken over; the open it stood for goes on until the end of the script.
            let lost = format!("{h} {}", before.handle.id());
            self.handles.insert(lost, before);
        }
        Ok((opened.action, eof))
    }

    fn reopen(&mut self, h: &str) -> Result<()> {
        self.handle(h)?;
        let held = self.handles.remove(h).ok_or(Denial::HandleClosed)?;
        self.share.close(&held.handle)?;
        self.open_as(&held.conn, h, &held.path, &held.request).map(drop)
    }

    fn drop_connection(&mut self, conn: &str) -> PlayAnswer {
        let of_conn = self.handles.extract_if(|_, held| held.conn == conn);
        let mut done = Ok(None);
        for (_, held) in of_conn {
            if let Err(error) = self.share.close(&held.handle) {
                done = Err(error);
            }
        }
        let why = done.as_ref().err().map(ToString::to_string);
        let status = if done.is_ok() { NO_STATUS } else { status::<Option<Value>>(&done) };
        PlayAnswer { status, out: None, why }
    }

    fn make_file(&mut self, name: &str, data: &str, attrs: Option<&str>) -> Result<()> {
        let request = OpenRequest {
            disposition: Disposition::Create,
            attributes: attributes(attrs)?,
            ..OpenRequest::plain(Access::RW, ShareMode::RWD)
        };
        let cx = self.client("setup");
        let opened = self.share.open(&cx, &SharePath::new(name)?, &request)?;
        self.share.write(&opened.handle, 0, data.as_bytes())?;
        self.share.close(&opened.handle)
    }

    fn make_dir(&mut self, name: &str, attrs: Option<&str>) -> Result<()> {
        let request = OpenRequest {
            disposition: Disposition::Create,
            attributes: attributes(attrs)?,
            options: Options { directory: true, ..Options::default() },
            ..OpenRequest::plain(Access::R, ShareMode::RWD)
        };
        let cx = self.client("setup");
        let opened = self.share.open(&cx, &SharePath::new(name)?, &request)?;
        self.share.close(&opened.handle)
    }

    fn lock(&mut self, h: &str, ranges: &[RangeArg], fail_immediately: bool) -> Result<()> {
        if !fail_immediately && ranges.len() > 1 {
            return Err(Denial::InvalidParameter("only one range can be waited for").into()); // br26
        }
        let wanted = ranges.iter().map(|range| Ok((byte_range(range)?, lock_kind(range)?)));
        let wanted = wanted.collect::<Result<Vec<_>>>()?;
        let share = self.share;
        let handle = self.handle(h)?;
        match wanted[..] {
            [(range, kind)] if !fail_immediately => lock_within(share, handle, range, kind),
            _ => share.lock(handle, &wanted),
        }
    }

    fn lock_async(&mut self, tag: &str, h: &str, ranges: &[RangeArg]) -> PlayAnswer {
        match self.ask_for_lock(h, ranges) {
            Ok(waiting) => {
                let pending = waiting.ticket.is_some();
                self.waiting.insert(tag.to_owned(), waiting);
                let status = if pending { "STATUS_PENDING" } else { "STATUS_SUCCESS" };
                PlayAnswer { status, out: None, why: None }
            }
            Err(error) => answer(Err(error)),
        }
    }

    fn ask_for_lock(&mut self, h: &str, ranges: &[RangeArg]) -> Result<WaitingLock> {
        let [range] = ranges else {
            return Err(Denial::InvalidParameter("only one range can be waited for").into());
        };
        let (bytes, kind) = (byte_range(range)?, lock_kind(range)?);
        let (sender, answers) = channel();
        let share = self.share;
        let handle = self.handle(h)?;
        let lock = RangeLock::smb(handle.id(), kind, bytes, 0);
        let granted = sender.clone();
        // The receiver is gone only once the script has ended.
        let completion = Box::new(move |answer| drop(sender.send(answer)));
        let ticket = share.lock_later(handle, lock, completion)?;
        if ticket.is_none() {
            drop(granted.send(Ok(())));
        }
        Ok(WaitingLock { h: h.to_owned(), ticket, answers })
    }

    fn wait_for(&mut self, tag: &str, timeout: f64) -> PlayAnswer {
        let Some(waiting) = self.waiting.get(tag) else { return no_such_request() };
        let patience = Duration::try_from_secs_f64(timeout.max(0.0)).unwrap_or(WAIT_MAX);
        let patience = patience.min(WAIT_MAX);
        match waiting.answers.recv_timeout(patience) {
            Ok(got) => {
                self.waiting.remove(tag);
                answer(got.map(|()| None).map_err(FileError::from))
            }
            Err(RecvTimeoutError::Timeout) => {
                PlayAnswer { status: STILL_WAITING, out: None, why: None }
            }
            Err(RecvTimeoutError::Disconnected) => answer(Err(Denial::Cancelled.into())),
        }
    }

    fn cancel(&mut self, tag: &str) -> PlayAnswer {
        let Some(waiting) = self.waiting.get(tag) else { return no_such_request() };
        if let WaitingLock { h, ticket: Some(ticket), .. } = waiting
            && let Some(held) = self.handles.get(h)
        {
            self.share.cancel_lock(&held.handle, *ticket);
        }
        PlayAnswer { status: NO_STATUS, out: None, why: None }
    }

    fn standard(&mut self, h: &str) -> Result<Value> {
        let share = self.share;
        let standard = share.standard(self.handle(h)?)?;
        Ok(json!({
            "eof": standard.size,
            "nlink": standard.links,
            "delete_pending": standard.delete_pending,
            "dir": standard.directory,
        }))
    }

    /// Lists a directory as an SMB client does: through an open of it (dr02, dp35).
    fn list(&mut self, conn: &str, path: &str) -> Result<Value> {
        let request = OpenRequest {
            options: Options { directory: true, ..Options::default() },
            ..OpenRequest::plain(Access::R, ShareMode::RWD)
        };
        let cx = self.client(conn);
        let opened = self.share.open(&cx, &SharePath::new(path)?, &request)?;
        let names = self.names_in(&opened.path);
        self.share.close(&opened.handle)?;
        let mut names = names?;
        names.sort_unstable();
        Ok(names.into())
    }

    fn names_in(&self, dir: &SharePath) -> Result<Vec<String>> {
        let listed = self.share.list(dir, None, usize::MAX)?;
        Ok(listed.into_iter().map(|entry| entry.name).collect())
    }

    /// Everything on the disk, from the root down.
    fn tree(&self) -> Result<Value> {
        let mut found = Vec::new();
        let mut left = vec![SharePath::root()];
        while let Some(dir) = left.pop() {
            for name in self.names_in(&dir)? {
                let path = dir.join(&name)?;
                found.push(path.as_str().to_owned());
                if self.share.stat(&path)?.kind == FileKind::Directory {
                    left.push(path);
                }
            }
        }
        found.sort_unstable();
        Ok(found.into())
    }
}

fn answer(done: Result<Option<Value>>) -> PlayAnswer {
    let status = status(&done);
    let why = done.as_ref().err().map(ToString::to_string);
    PlayAnswer { status, out: done.unwrap_or_default(), why }
}

fn no_such_request() -> PlayAnswer {
    answer(Err(Denial::InvalidParameter("no lock request of that tag waits for its answer").into()))
}

/// Takes an SMB lock, waiting for it for at most [`LONE_WAIT`].
fn lock_within(share: &Share, handle: &Handle, range: ByteRange, kind: LockKind) -> Result<()> {
    let (sender, answer) = channel();
    let lock = RangeLock::smb(handle.id(), kind, range, 0);
    let completion = Box::new(move |got| drop(sender.send(got)));
    let Some(ticket) = share.lock_later(handle, lock, completion)? else { return Ok(()) };
    match answer.recv_timeout(LONE_WAIT) {
        Ok(got) => Ok(got?),
        Err(_) if share.cancel_lock(handle, ticket) => Err(Denial::Cancelled.into()),
        // Granted or refused between the bound and the cancel: that answer stands.
        Err(_) => answer.recv().map_or(Err(Denial::Cancelled.into()), |got| Ok(got?)),
    }
}
