//! Through a real socket, with a server that has one share and no mounts.

mod limits;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::calls::CALL_THREADS;
use super::{
    About, AnswerLines, ApiClient, ApiServer, BreakLease, ClientError, CloseHandles, CreateShare,
    CreateSnapshot, DeleteSnapshot, GetConnection, GetGates, GetHandles, GetHolds, GetLocks,
    GetShares, GetSnapshots, GetStatus, GetWhy, HoldOptions, HoldRow, KnownOperation, LockWanted,
    MountRow, NewGate, RefusalKind, RunStarted, SOCKET_NAME, ServedAccount, Serving, StartRun,
    Undelete, Unmount, WaitAtGate,
};
use crate::bench::{Controls, States};
use crate::blob::service::{BlobResult, BlobService};
use crate::clock::SystemClock;
use crate::db::DbError;
use crate::file::rules::create::OpenRequest;
use crate::file::rules::{Access, Rule, ShareMode, SharePath};
use crate::file::service::shares::ShareRef;
use crate::file::service::{FileOptions, FileService, Share};
use crate::journal::{AccountJournal, Change, Event, FileEvent, Happening};
use crate::queue::service::{QueueResult, QueueService};
use crate::rules::address::ObjectAddress;
use crate::rules::service::ServiceKind;
use crate::rules::{Client, Context, HandleId, Owner};
use crate::table::service::{TableResult, TableService};

/// An account with a File service alone.
struct FakeAccount(Arc<FileService>);

fn absent() -> DbError {
    DbError::Io("there is no database".into())
}

impl ServedAccount for FakeAccount {
    fn file(&self) -> &Arc<FileService> {
        &self.0
    }
    fn blob(&self) -> BlobResult<Arc<BlobService>> {
        Err(absent().into())
    }
    fn queue(&self) -> QueueResult<&QueueService> {
        Err(absent().into())
    }
    fn table(&self) -> TableResult<&TableService> {
        Err(absent().into())
    }
    fn used_blob(&self) -> BlobResult<Option<Arc<BlobService>>> {
        Ok(None)
    }
    fn used_queue(&self) -> QueueResult<Option<&QueueService>> {
        Ok(None)
    }
    fn used_table(&self) -> TableResult<Option<&TableService>> {
        Ok(None)
    }
    fn changes(&self, _: &dyn Fn(&ObjectAddress) -> bool) -> Vec<Change> {
        Vec::new()
    }
}

struct Fake {
    account: Arc<FakeAccount>,
    controls: Arc<Controls>,
    share: Arc<Share>,
    runs: Mutex<Vec<(u64, u32)>>,
    stopped: Mutex<bool>,
    /// Has an unmount and a reset wait until the sender is gone.
    waits: Mutex<Option<Receiver<()>>>,
    waiting: AtomicUsize,
}

impl Fake {
    fn wait(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(end) = &*waits {
            let _ = end.recv();
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Serving for Fake {
    fn first_account(&self) -> Arc<dyn ServedAccount> {
        Arc::clone(&self.account) as _
    }
    fn accounts(&self) -> Vec<Arc<dyn ServedAccount>> {
        vec![self.first_account()]
    }
    fn controls(&self) -> &Arc<Controls> {
        &self.controls
    }
    fn about(&self) -> About {
        let data = "memory".to_owned();
        let notes = Vec::new();
        About {
            data,
            started: Instant::now(),
            admin: None,
            admin_token: None,
            takes_tokens: false,
            identity: None,
            notes,
        }
    }
    fn reached(&self, _: &str) -> Option<super::Reached> {
        None
    }
    fn load(&self, _: &str, _: &Path) -> Result<super::Loaded, String> {
        Err("nothing is loaded here".into())
    }
    fn operations(&self) -> Vec<KnownOperation> {
        vec![KnownOperation { service: ServiceKind::Blob, name: "Put Blob", can_stop: true }]
    }
    fn mounts(&self) -> Vec<MountRow> {
        Vec::new()
    }
    fn start_run(&self, run: u64, pid: u32, _: ShareMode, _: Option<&Path>) -> Result<(), String> {
        self.runs.lock().unwrap().push((run, pid));
        Ok(())
    }
    fn end_run(&self, run: u64) {
        self.runs.lock().unwrap().retain(|(number, _)| *number != run);
    }
    fn unmount(&self, path: &Path, _: bool) -> Result<(), String> {
        assert_ne!(path, Path::new("/panic"), "this path panics");
        self.wait();
        Err("nothing is mounted".into())
    }
    fn states(&self) -> Option<&States> {
        self.wait();
        None
    }
    fn account(&self, name: &str) -> Option<Arc<dyn ServedAccount>> {
        assert_ne!(name, "panic", "this account panics");
        self.accounts().into_iter().find(|account| **account.name() == *name)
    }
    fn shut_down(&self) {
        *self.stopped.lock().unwrap() = true;
    }
}

struct Setup {
    fake: Arc<Fake>,
    server: ApiServer,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Setup {
    fn new() -> Self {
        let folder = private_folder();
        let root = folder.path().join("share");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("a.txt"), "hello").unwrap();
        let state = folder.path().join("state");
        let journal = AccountJournal::new(Arc::default(), "devstoreaccount1");
        let controls = Controls::new(Arc::default(), Arc::clone(journal.journal()));
        let clock = Arc::new(SystemClock);
        let options = FileOptions::default();
        let engine =
            FileService::serve_directory("docs", &root, Some(&state), options, clock, journal);
        let engine = engine.unwrap();
        let share = engine.share("docs").unwrap();
        let account = Arc::new(FakeAccount(Arc::new(engine)));
        let controls = Arc::new(controls);
        let (runs, stopped, waits) = <(Mutex<_>, Mutex<_>, Mutex<_>)>::default();
        let waiting = AtomicUsize::new(0);
        let fake = Arc::new(Fake { account, controls, share, runs, stopped, waits, waiting });
        let path = folder.path().join(SOCKET_NAME);
        let serving = Arc::clone(&fake) as Arc<dyn Serving>;
        let server = ApiServer::start(&path, &serving, None).unwrap();
        Self { fake, server, path, _folder: folder }
    }

    fn client(&self) -> ApiClient {
        ApiClient::new(&self.path)
    }

    /// Holds the file until the answer is dropped.
    fn hold(
        &self,
        access: Access,
        share: ShareMode,
    ) -> Result<(HoldRow, AnswerLines), ClientError> {
        let mut answer = self.client().open(&hold(access, share))?;
        Ok((answer.first()?, answer))
    }

    fn wait_for(&self, condition: impl Fn(&Fake) -> bool) {
        let end = Instant::now() + Duration::from_mins(1);
        while !condition(&self.fake) {
            assert!(Instant::now() < end, "the condition did not come");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Has every thread for calls wait until the sender is dropped.
    fn occupy_threads(&self) -> (Sender<()>, Vec<thread::JoinHandle<()>>) {
        let (sender, receiver) = channel();
        *self.fake.waits.lock().unwrap() = Some(receiver);
        let unmount = |_| {
            let client = self.client();
            thread::spawn(move || drop(client.ask(&Unmount { path: "/".into(), lazy: false })))
        };
        let calls = (0..CALL_THREADS).map(unmount).collect();
        self.wait_for(|fake| fake.waiting.load(Ordering::SeqCst) == CALL_THREADS);
        (sender, calls)
    }
}

fn private_folder() -> tempfile::TempDir {
    let private = fs::Permissions::from_mode(0o700);
    tempfile::Builder::new().permissions(private).tempdir().unwrap()
}

fn hold(access: Access, share_mode: ShareMode) -> HoldOptions {
    HoldOptions { access, share_mode, while_connected: true, ..HoldOptions::new("docs", "a.txt") }
}

fn all_handles() -> GetHandles {
    GetHandles::default()
}

fn why(object: &str) -> GetWhy {
    GetWhy { object: object.to_owned() }
}

fn kind(error: ClientError) -> String {
    match error {
        ClientError::Failed(failed) => failed.kind,
        other => panic!("no failure: {other:?}"),
    }
}

fn refusal(error: ClientError) -> super::RefusalDetail {
    match error {
        ClientError::Refused(refused) => *refused,
        other => panic!("not refused: {other:?}"),
    }
}

/// The answer to a request over HTTP without a body: its head, and its body.
fn http(stream: &mut UnixStream, method: &str, path: &str, headers: &str) -> (String, String) {
    let request = format!("{method} {path} HTTP/1.1\r\nhost: x\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(stream.read_line(&mut head).unwrap(), 0, "{head}");
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    (head, String::from_utf8(body).unwrap())
}

#[test]
fn the_socket_answers_to_its_owner_without_token_origin_or_name() {
    let setup = Setup::new();
    let mut stream = UnixStream::connect(&setup.path).unwrap();
    let (head, body) = http(&mut stream, "GET", "/api/v1/status", "");
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("\"docs\""), "{head}{body}");
    let (head, body) = http(&mut stream, "DELETE", "/api/v1/gates", "");
    assert!(head.starts_with("HTTP/1.1 200") && body == "{\"removed\":0}\n", "{head}{body}");
    let (head, _) = http(&mut stream, "GET", "/metrics", "");
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
}

#[test]
fn a_command_of_another_version_is_told_so() {
    let setup = Setup::new();
    let mut stream = UnixStream::connect(&setup.path).unwrap();
    let (head, body) = http(&mut stream, "GET", "/api/v1/status", "x-latchfs-api: 99\r\n");
    assert!(head.starts_with("HTTP/1.1 400") && body.contains("use the same latchfs"), "{body}");
    // 0.2 spoke lines of JSON, each with its version.
    let mut old = UnixStream::connect(&setup.path).unwrap();
    old.write_all(b"{\"v\":2,\"do\":\"status\"}\n").unwrap();
    let mut answer = String::new();
    old.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "{\"v\":3}\n");
}

#[test]
fn a_server_of_another_version_is_told_by_the_command() {
    let folder = private_folder();
    let path = folder.path().join(SOCKET_NAME);
    let listener = UnixListener::bind(&path).unwrap();
    let answers = [
        "{\"v\":2,\"answer\":\"failed\",\"message\":\"not a JSON object\"}\n",
        "HTTP/1.1 200 OK\r\nx-latchfs-api: 99\r\ncontent-length: 2\r\n\r\n{}",
    ];
    let served = thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 4096];
            assert!(stream.read(&mut asked).unwrap() > 0);
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    for _ in answers {
        let error = ApiClient::new(&path).ask(&GetStatus {}).unwrap_err();
        assert!(matches!(&error, ClientError::Version(_)), "{error:?}");
        assert!(error.to_string().contains("use the same latchfs"), "{error}");
    }
    served.join().unwrap();
}

#[test]
fn a_hold_lasts_as_long_as_its_connection() {
    let setup = Setup::new();
    let (held, first) = setup.hold(Access::RW, ShareMode::NONE).unwrap();
    let refused = refusal(setup.hold(Access::R, ShareMode::RWD).err().unwrap());
    assert_eq!(refused.kind, Rule::SharingViolation.into());
    let message = refused.message;
    assert!(refused.kind.is_busy() && message.contains("latchfs hold (pid"), "{message}");
    let holder = refused.holder.unwrap();
    assert_eq!((holder.hold.handle, holder.pid), (held.handle, std::process::id()));
    drop(first);
    setup.wait_for(|fake| fake.share.files_in_use() == 0);
    setup.hold(Access::R, ShareMode::RWD).unwrap();
}

#[test]
fn a_hold_has_no_other_end_for_the_owner_and_its_answer_ends_when_it_is_closed_by_force() {
    let setup = Setup::new();
    let (held, mut answer) = setup.hold(Access::R, ShareMode::RWD).unwrap();
    let holds = setup.client().ask(&GetHolds {}).unwrap().holds;
    assert_eq!((holds.len(), holds[0].expires_in_ms), (1, None));
    let close = CloseHandles { share: None, handle: Some(held.handle) };
    assert_eq!(setup.client().ask(&close).unwrap().closed, 1);
    answer.wait_for_end();
    setup.wait_for(|_| setup.client().ask(&GetHolds {}).unwrap().holds.is_empty());
}

#[test]
fn a_hold_whose_locks_are_refused_is_closed_again() {
    let setup = Setup::new();
    let lock = LockWanted { start: 0, length: Some(4), exclusive: true };
    let wanted = HoldOptions { locks: vec![lock], ..hold(Access::RW, ShareMode::RWD) };
    let _first = setup.client().open(&wanted).unwrap();
    let of = GetLocks { share: None, path: None };
    assert_eq!(setup.client().ask(&of).unwrap().locks.len(), 1);
    refusal(setup.client().open(&wanted).err().unwrap());
    assert_eq!(setup.client().ask(&all_handles()).unwrap().handles.len(), 1);
    let too_many = HoldOptions { locks: vec![lock; 1025], ..wanted };
    assert_eq!(kind(setup.client().open(&too_many).err().unwrap()), "bad_request");
}

#[test]
fn a_run_policy_ends_with_its_connection() {
    let setup = Setup::new();
    let start = StartRun { share_mode: "none".into(), mount: None };
    let start = || {
        let mut run = setup.client().open(&start).unwrap();
        let RunStarted { pid } = run.first().unwrap();
        assert_eq!(pid, std::process::id());
        run
    };
    let pids =
        |fake: &Fake| -> Vec<_> { fake.runs.lock().unwrap().iter().map(|(_, pid)| *pid).collect() };
    // Two runs of one process: the end of one is not that of the other.
    let (one, other) = (start(), start());
    assert_eq!(pids(&setup.fake), [std::process::id(); 2]);
    drop(one);
    setup.wait_for(|fake| pids(fake).len() == 1);
    drop(other);
    setup.wait_for(|fake| pids(fake).is_empty());
}

#[test]
fn handles_that_end_with_one_that_is_closed_by_force_are_counted() {
    let setup = Setup::new();
    let (one, _one) = setup.hold(Access::R, ShareMode::RWD).unwrap();
    let (other, _other) = setup.hold(Access::R, ShareMode::RWD).unwrap();
    setup.fake.share.on_force_close(move |_| Ok(vec![HandleId(other.handle)])).unwrap();
    let close = |handle| CloseHandles { share: None, handle };
    assert_eq!(setup.client().ask(&close(Some(one.handle))).unwrap().closed, 2);
    assert_eq!(setup.client().ask(&close(None)).unwrap().closed, 0);
}

#[test]
fn a_hold_that_waits_for_a_release_in_vain_is_refused_once() {
    let setup = Setup::new();
    let _holder = setup.hold(Access::R, ShareMode::RWD).unwrap();
    let share = &setup.fake.share;
    let client = Arc::new(Client { session: 1, name: "test".into() });
    let who = Owner { client, pid: 0, program: None };
    let request = OpenRequest::plain(Access::R, ShareMode::R);
    let cx = Context::local(share.now(), who, "test");
    let opened = share.open(&cx, &SharePath::new("a.txt").unwrap(), &request).unwrap();
    share.set_flushed(&opened.handle).unwrap();
    refusal(setup.hold(Access::W, ShareMode::RWD).err().unwrap());
    let refused = setup.fake.controls.journal.latest(9, |row| match &*row.event {
        Event::File(FileEvent { what: Happening::Refused { .. }, .. }) => Some(()),
        _ => None,
    });
    assert_eq!(refused.len(), 1);
}

#[test]
fn a_stop_ends_connections_and_what_they_hold_and_takes_the_socket_away() {
    let mut setup = Setup::new();
    let (_, mut answer) = setup.hold(Access::R, ShareMode::NONE).unwrap();
    setup.server.stop();
    assert_eq!(setup.fake.share.files_in_use(), 0);
    assert!(!setup.path.exists());
    answer.wait_for_end();
    let error = setup.client().ask(&GetStatus {}).unwrap_err();
    assert!(matches!(error, ClientError::NoServer { .. }), "{error:?}");
}

#[test]
fn what_cannot_be_meant_is_answered() {
    let setup = Setup::new();
    let client = setup.client();
    let undelete = |share: Option<&str>, path: &str| Undelete {
        share: share.map(str::to_owned),
        path: path.to_owned(),
    };
    assert_eq!(kind(client.ask(&undelete(Some("other"), "a.txt")).unwrap_err()), "not_found");
    assert_eq!(kind(client.ask(&undelete(None, "../a")).unwrap_err()), "bad_request");
    let unmount = Unmount { path: "/".into(), lazy: false };
    assert_eq!(kind(client.ask(&unmount).unwrap_err()), "bad_request");
    assert_eq!(kind(client.ask(&GetConnection {}).unwrap_err()), "not_found");
    let missing = refusal(client.ask(&why("file:docs/none")).unwrap_err());
    assert_eq!(missing.kind, RefusalKind::NotFound);
    let other = setup.client().of_account(Some("nobody")).ask(&GetGates {}).unwrap_err();
    assert!(other.to_string().contains("no account 'nobody'"), "{other}");
}

#[test]
fn a_wait_at_a_gate_ends_when_the_gate_is_removed() {
    let setup = Setup::new();
    let gate = NewGate { operation: Some("Put Blob".into()), ..NewGate::default() };
    let id = setup.client().ask(&gate).unwrap().gate;
    let (client, gates) = (setup.client(), &setup.fake.controls.gates);
    let wait = thread::spawn(move || {
        client.ask(&WaitAtGate { id, count: None, timeout_ms: Some(600_000) })
    });
    while !wait.is_finished() {
        gates.remove(Some(id));
    }
    assert_eq!(kind(wait.join().unwrap().unwrap_err()), "not_found");
}

#[test]
fn a_snapshot_is_taken_listed_and_deleted_and_tells_how_far_it_is() {
    let setup = Setup::new();
    let client = setup.client();
    let mut lines = client.open(&CreateSnapshot { share: None }).unwrap();
    let (mut progress, mut taken) = (0, None);
    while let Some(line) = lines.next_line::<Value>().unwrap() {
        assert!(taken.is_none(), "{line}");
        match line["snapshot"].as_str() {
            Some(snapshot) => taken = Some(snapshot.to_owned()),
            None => progress += 1,
        }
    }
    assert!(progress > 0);
    let snapshot = taken.unwrap();
    let list = client.ask(&GetSnapshots { share: Some("docs".into()) }).unwrap();
    assert_eq!((list.share.as_str(), &list.snapshots), ("docs", &vec![snapshot.clone()]));
    let delete = |snapshot: &str| DeleteSnapshot { snapshot: snapshot.to_owned(), share: None };
    assert_eq!(client.ask(&delete(&snapshot)).unwrap().deleted, snapshot);
    let refused = refusal(client.ask(&delete(&snapshot)).unwrap_err());
    assert_eq!(refused.kind, RefusalKind::NotFound);
    assert_eq!(kind(client.ask(&delete("yesterday")).unwrap_err()), "bad_request");
    let other = CreateSnapshot { share: Some("other".into()) };
    assert_eq!(kind(client.open(&other).err().unwrap()), "not_found");
}

#[test]
fn a_share_is_listed_with_its_lease_and_one_directory_takes_no_other() {
    let setup = Setup::new();
    let client = setup.client();
    let at = ShareRef::new("docs");
    let fresh = crate::sync::random::lease_id();
    let action =
        crate::rules::lease::LeaseAction::Acquire { duration: Some(-1), proposed: None, fresh };
    setup.fake.account.file().lease(&at, action).unwrap();
    let shares = client.ask(&GetShares { deleted: true }).unwrap().shares;
    assert_eq!((shares[0].name.as_str(), shares[0].lease.as_str()), ("docs", "leased"));
    let breaking = |object: &str| BreakLease { object: object.to_owned(), period: Some(0) };
    let broken = |object| {
        let broken = client.ask(&breaking(object)).unwrap();
        (broken.was_leased, broken.seconds)
    };
    assert_eq!(broken("share:"), (true, 0));
    assert_eq!(broken("file:docs/a.txt"), (false, 0));
    let refused = refusal(client.ask(&breaking("file:docs/none.txt")).unwrap_err());
    assert_eq!(refused.kind, RefusalKind::NotFound);
    let create = CreateShare { name: "more".into(), quota_gib: None };
    let refused = refusal(client.ask(&create).unwrap_err());
    assert!(refused.message.contains("one directory"), "{}", refused.message);
}

#[test]
fn a_server_that_stops_leaves_the_socket_of_another_one() {
    let mut first = Setup::new();
    fs::remove_file(&first.path).unwrap();
    let serving = Arc::clone(&first.fake) as Arc<dyn Serving>;
    let mut second = ApiServer::start(&first.path, &serving, None).unwrap();
    first.server.stop();
    first.client().ask(&GetStatus {}).unwrap();
    second.stop();
    assert!(!first.path.exists());
}
