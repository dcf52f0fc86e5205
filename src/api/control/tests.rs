//! Through a real socket, with a server that has one share and no mounts.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::protocol::{HoldRequest, RefusalDetail};
use super::wire::read_answer;
use super::*;
use crate::api::ApiServer;
use crate::bench::controls::Point;
use crate::clock::SystemClock;
use crate::file::rules::create::OpenRequest;
use crate::file::rules::{Access, Rule, ShareMode, SharePath};
use crate::file::service::{FileOptions, FileService, Share};
use crate::journal::{AccountJournal, Event, FileEvent, Happening};
use crate::rules::service::ServiceKind;
use crate::rules::{Context, HandleId, Owner};
use crate::server::{Account, Accounts};

struct Fake {
    accounts: Accounts,
    share: Arc<Share>,
    runs: Mutex<Vec<u32>>,
}

impl Serving for Fake {
    fn accounts(&self) -> &Accounts {
        &self.accounts
    }
    fn about(&self) -> About {
        let data = "memory".to_owned();
        let notes = Vec::new();
        About { data, started: Instant::now(), admin: None, admin_token: None, notes }
    }
    fn connection(&self, _: &str) -> Option<protocol::ConnectionInfo> {
        None
    }
    fn operations(&self) -> Vec<KnownOperation> {
        let of = |name, points| KnownOperation { service: ServiceKind::Blob, name, points };
        vec![
            of("Put Blob", &[Point::Received, Point::Checked, Point::Committed]),
            of("Get Blob", &[Point::Received, Point::Committed]),
        ]
    }
    fn mounts(&self) -> Vec<MountedAt> {
        Vec::new()
    }
    fn start_run(&self, pid: u32, _: ShareMode, _: Option<&Path>) -> Result<(), String> {
        self.runs.lock().unwrap().push(pid);
        Ok(())
    }
    fn end_run(&self, pid: u32) {
        self.runs.lock().unwrap().retain(|run| *run != pid);
    }
    fn unmount(&self, _: &Path, _: bool) -> Result<(), String> {
        Err("nothing is mounted".into())
    }
    fn shut_down(&self) {}
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
        let (clock, journal) = (Arc::new(SystemClock), AccountJournal::default());
        let options = FileOptions::default();
        let engine =
            FileService::serve_directory("docs", &root, Some(&state), options, clock, journal);
        let engine = engine.unwrap();
        let share = engine.share("docs").unwrap();
        let account = Account::with_file("devstoreaccount1", engine).unwrap();
        let accounts = Accounts::new(account, []);
        let fake = Arc::new(Fake { accounts, share, runs: Mutex::default() });
        let path = folder.path().join(SOCKET_NAME);
        let server =
            ApiServer::start(&path, &(Arc::clone(&fake) as Arc<dyn Serving>), None).unwrap();
        Self { fake, server, path, _folder: folder }
    }

    fn client(&self) -> ControlClient {
        ControlClient::connect(&self.path).unwrap()
    }

    /// Waits until nothing is open: connections end on threads of their own.
    fn wait_for(&self, condition: impl Fn(&Fake) -> bool) {
        let end = Instant::now() + Duration::from_secs(10);
        while !condition(&self.fake) {
            assert!(Instant::now() < end, "the condition did not come");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn private_folder() -> tempfile::TempDir {
    let private = fs::Permissions::from_mode(0o700);
    tempfile::Builder::new().permissions(private).tempdir().unwrap()
}

fn hold(access: &str, share_mode: &str) -> ControlRequest {
    let (access, share_mode) = (access.into(), share_mode.into());
    ControlRequest::Hold(HoldRequest {
        path: "a.txt".into(),
        access,
        share_mode,
        ..HoldRequest::default()
    })
}

fn raw(path: &Path, bytes: &[u8]) -> (ControlAnswer, BufReader<UnixStream>) {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.write_all(bytes).unwrap();
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    stream.read_until(b'\n', &mut line).unwrap();
    (read_answer(&line).unwrap(), stream)
}

#[test]
fn a_hold_lasts_as_long_as_its_connection() {
    let setup = Setup::new();
    let mut first = setup.client();
    let ControlAnswer::Held(held) = first.ask(&hold("rw", "none")).unwrap() else {
        panic!("not held")
    };
    let mut second = setup.client();
    let answer = second.ask(&hold("r", "rwd")).unwrap();
    let ControlAnswer::Refused(RefusalDetail { kind, message, holder }) = answer else {
        panic!("not refused: {answer:?}")
    };
    assert_eq!(kind, Rule::SharingViolation.into());
    assert!(kind.is_busy() && message.contains("latchfs hold (pid"), "{message}");
    let holder = holder.unwrap();
    assert_eq!((holder.handle, holder.pid), (held.handle, std::process::id()));
    drop(first);
    setup.wait_for(|fake| fake.share.files_in_use() == 0);
    assert!(matches!(second.ask(&hold("r", "rwd")).unwrap(), ControlAnswer::Held(_)));
}

#[test]
fn a_run_policy_ends_with_its_connection() {
    let setup = Setup::new();
    let mut client = setup.client();
    let start = ControlRequest::RunStart { share_mode: "none".into(), mount: None };
    assert_eq!(client.ask(&start).unwrap(), ControlAnswer::Done {});
    assert_eq!(*setup.fake.runs.lock().unwrap(), [std::process::id()]);
    drop(client);
    setup.wait_for(|fake| fake.runs.lock().unwrap().is_empty());
}

#[test]
fn handles_are_listed_closed_by_force_and_told_of_by_why() {
    let setup = Setup::new();
    let mut holder = setup.client();
    let ControlAnswer::Held(held) = holder.ask(&hold("d", "r")).unwrap() else {
        panic!("not held")
    };
    let mut client = setup.client();
    let all = ControlRequest::Handles { share_name: None, path: None, recursive: false };
    let ControlAnswer::Handles { handles, left_out: 0 } = client.ask(&all).unwrap() else {
        panic!()
    };
    assert_eq!(handles.len(), 1);
    assert_eq!((handles[0].handle, handles[0].path.as_str()), (held.handle, "/a.txt"));
    let why = ControlRequest::Why { share_name: Some("docs".into()), path: "A.TXT".into() };
    let ControlAnswer::Why(told) = client.ask(&why).unwrap() else { panic!() };
    assert!(!told.is_free() && told.opens.len() == 1);
    let close = |handle, all| ControlRequest::CloseHandle { share_name: None, handle, all };
    let both = client.ask(&close(Some(held.handle), true)).unwrap();
    assert!(matches!(both, ControlAnswer::Failed { .. }));
    let closed = client.ask(&close(Some(held.handle), false)).unwrap();
    assert_eq!(closed, ControlAnswer::Closed { closed: 1 });
    assert_eq!(client.ask(&close(None, true)).unwrap(), ControlAnswer::Closed { closed: 0 });
    let ControlAnswer::Why(told) = client.ask(&why).unwrap() else { panic!() };
    assert!(told.is_free());
}

#[test]
fn handles_that_end_with_one_that_is_closed_by_force_are_counted() {
    let setup = Setup::new();
    let mut holder = setup.client();
    let handle = |answer| match answer {
        ControlAnswer::Held(held) => held.handle,
        other => panic!("not held: {other:?}"),
    };
    let one = handle(holder.ask(&hold("r", "rwd")).unwrap());
    let other = handle(holder.ask(&hold("r", "rwd")).unwrap());
    setup.fake.share.on_force_close(move |_| Ok(vec![HandleId(other)])).unwrap();
    let close = |handle, all| ControlRequest::CloseHandle { share_name: None, handle, all };
    let mut client = setup.client();
    assert_eq!(client.ask(&close(Some(one), false)).unwrap(), ControlAnswer::Closed { closed: 2 });
    assert_eq!(client.ask(&close(None, true)).unwrap(), ControlAnswer::Closed { closed: 0 });
}

#[test]
fn a_hold_that_waits_for_a_release_in_vain_is_refused_once() {
    let setup = Setup::new();
    let mut holder = setup.client();
    assert!(matches!(holder.ask(&hold("r", "rwd")).unwrap(), ControlAnswer::Held(_)));
    let share = &setup.fake.share;
    let client = Arc::new(crate::rules::Client { session: 1, name: "test".into() });
    let who = Owner { client, pid: 0, program: None };
    let request = OpenRequest::plain(Access::R, ShareMode::R);
    let cx = Context::local(share.now(), who, "test");
    let opened = share.open(&cx, &SharePath::new("a.txt").unwrap(), &request).unwrap();
    share.set_flushed(&opened.handle).unwrap();
    assert!(matches!(holder.ask(&hold("w", "rwd")).unwrap(), ControlAnswer::Refused(_)));
    let refused = setup.fake.accounts.journal().latest(9, |row| match &*row.event {
        Event::File(FileEvent { what: Happening::Refused { .. }, .. }) => Some(()),
        _ => None,
    });
    assert_eq!(refused.len(), 1);
}

#[test]
fn a_line_of_the_greatest_length_is_read_and_a_longer_one_ends_the_connection() {
    let setup = Setup::new();
    let mut line = br#"{"v":2,"do":"ping"}"#.to_vec();
    line.resize(LINE_MAX, b' ');
    line.push(b'\n');
    let (answer, mut stream) = raw(&setup.path, &line);
    assert_eq!(answer, ControlAnswer::Done {});
    stream.get_mut().write_all(b"{\"v\":2,\"do\":\"ping\"}\n").unwrap();
    let mut next = Vec::new();
    stream.read_until(b'\n', &mut next).unwrap();
    assert_eq!(read_answer(&next).unwrap(), ControlAnswer::Done {});
    line.pop();
    line.push(b' ');
    let (answer, mut stream) = raw(&setup.path, &line);
    assert!(matches!(answer, ControlAnswer::Failed { .. }));
    assert_eq!(stream.read_until(b'\n', &mut Vec::new()).unwrap(), 0);
}

#[test]
fn the_last_connection_there_is_room_for_is_served_and_one_more_is_turned_away() {
    let setup = Setup::new();
    let mut clients: Vec<_> = (0..CONNECTIONS_MAX).map(|_| setup.client()).collect();
    for client in &mut clients {
        assert_eq!(client.ask(&ControlRequest::Ping {}).unwrap(), ControlAnswer::Done {});
    }
    let ControlAnswer::Failed { message, .. } =
        setup.client().ask(&ControlRequest::Ping {}).unwrap()
    else {
        panic!("one too many was served")
    };
    assert!(message.contains("connections already"), "{message}");
    clients.pop();
    let end = Instant::now() + Duration::from_secs(10);
    while setup.client().ask(&ControlRequest::Ping {}).ok() != Some(ControlAnswer::Done {}) {
        assert!(Instant::now() < end, "the place was not given back");
    }
}

#[test]
fn a_connection_holds_so_many_and_no_more() {
    let setup = Setup::new();
    let mut client = setup.client();
    for _ in 0..HOLDS_MAX {
        assert!(matches!(client.ask(&hold("r", "rwd")).unwrap(), ControlAnswer::Held(_)));
    }
    assert!(matches!(client.ask(&hold("r", "rwd")).unwrap(), ControlAnswer::Failed { .. }));
}

#[test]
fn a_stop_ends_connections_and_what_they_hold_and_takes_the_socket_away() {
    let mut setup = Setup::new();
    let mut client = setup.client();
    assert!(matches!(client.ask(&hold("r", "none")).unwrap(), ControlAnswer::Held(_)));
    setup.server.stop();
    assert_eq!(setup.fake.share.files_in_use(), 0);
    assert!(!setup.path.exists());
    client.wait_for_end();
    assert!(matches!(ControlClient::connect(&setup.path), Err(ClientError::NoServer { .. })));
}

#[test]
fn what_cannot_be_meant_is_answered_and_the_connection_goes_on() {
    let setup = Setup::new();
    let mut client = setup.client();
    for request in [
        hold("x", "none"),
        hold("r", "q"),
        ControlRequest::Undelete { share_name: Some("other".into()), path: "a.txt".into() },
        ControlRequest::Undelete { share_name: None, path: "../a".into() },
        ControlRequest::Unmount { path: "/".into(), lazy: false },
    ] {
        let answer = client.ask(&request).unwrap();
        assert!(matches!(answer, ControlAnswer::Failed { .. }), "{request:?}: {answer:?}");
    }
    let missing = ControlRequest::Why { share_name: None, path: "none".into() };
    let ControlAnswer::Refused(refused) = client.ask(&missing).unwrap() else { panic!() };
    assert_eq!(refused.kind, RefusalKind::NotFound);
    assert_eq!(client.ask(&ControlRequest::Ping {}).unwrap(), ControlAnswer::Done {});
}

#[test]
fn a_snapshot_is_taken_listed_and_deleted_and_a_client_may_ignore_how_far_it_is() {
    let setup = Setup::new();
    let mut client = setup.client();
    let mut reports = 0;
    let create = ControlRequest::CreateSnapshot { share_name: None };
    let ControlAnswer::Snapshots { share_name, snapshots } =
        client.ask_and_watch(&create, |_, _| reports += 1).unwrap()
    else {
        panic!("no snapshot")
    };
    assert_eq!((share_name.as_str(), snapshots.len()), ("docs", 1));
    assert!(reports > 0);
    let list = ControlRequest::ListSnapshots { share_name: Some("docs".into()) };
    let listed = ControlAnswer::Snapshots { share_name, snapshots: snapshots.clone() };
    assert_eq!(client.ask(&list).unwrap(), listed);
    let delete = |snapshot: &str| ControlRequest::DeleteSnapshot {
        share_name: None,
        snapshot: snapshot.to_owned(),
    };
    assert_eq!(client.ask(&delete(&snapshots[0])).unwrap(), ControlAnswer::Done {});
    let ControlAnswer::Refused(refused) = client.ask(&delete(&snapshots[0])).unwrap() else {
        panic!()
    };
    assert_eq!(refused.kind, RefusalKind::NotFound);
    assert!(matches!(client.ask(&delete("yesterday")).unwrap(), ControlAnswer::Failed { .. }));
}

#[test]
fn a_share_is_listed_with_its_lease_and_without_a_listener_there_is_no_way_to_connect() {
    let setup = Setup::new();
    let mut client = setup.client();
    let at = crate::file::service::shares::ShareRef::new("docs");
    setup.fake.accounts.first().file().acquire_lease(&at, Some(-1), None).unwrap();
    let list = ControlRequest::ListShares { deleted: true };
    let ControlAnswer::Shares { shares } = client.ask(&list).unwrap() else { panic!() };
    assert_eq!((shares[0].name.as_str(), shares[0].lease.as_str()), ("docs", "leased"));
    let breaking = |path: &str| ControlRequest::BreakLease {
        share_name: None,
        path: path.to_owned(),
        period: Some(0),
    };
    let broken = |was_leased| ControlAnswer::LeaseBroken { was_leased, seconds: 0 };
    assert_eq!(client.ask(&breaking("")).unwrap(), broken(true));
    assert_eq!(client.ask(&breaking("a.txt")).unwrap(), broken(false));
    let ControlAnswer::Refused(refused) = client.ask(&breaking("none.txt")).unwrap() else {
        panic!()
    };
    assert_eq!(refused.kind, RefusalKind::NotFound);
    assert!(matches!(
        client.ask(&ControlRequest::Connection {}).unwrap(),
        ControlAnswer::Failed { .. }
    ));
    let create = ControlRequest::CreateShare { name: "more".into(), quota_gib: None };
    let ControlAnswer::Refused(refused) = client.ask(&create).unwrap() else { panic!() };
    assert!(refused.message.contains("one directory"), "{}", refused.message);
}

#[test]
fn a_server_that_stops_leaves_the_socket_of_another_one() {
    let mut first = Setup::new();
    fs::remove_file(&first.path).unwrap();
    let serving = Arc::clone(&first.fake) as Arc<dyn Serving>;
    let mut second = ApiServer::start(&first.path, &serving, None).unwrap();
    first.server.stop();
    assert!(ControlClient::connect(&first.path).is_ok());
    second.stop();
    assert!(!first.path.exists());
}

/// The answer to a request over HTTP without a body: its head, and its body.
fn http(stream: &mut UnixStream, method: &str, path: &str) -> (String, String) {
    let request = format!("{method} {path} HTTP/1.1\r\nhost: x\r\n\r\n");
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
fn the_socket_answers_the_http_api_to_its_owner_without_token_origin_or_name() {
    let setup = Setup::new();
    let mut stream = UnixStream::connect(&setup.path).unwrap();
    let (head, body) = http(&mut stream, "GET", "/api/v1/status");
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("\"docs\""), "{head}{body}");
    let (head, body) = http(&mut stream, "DELETE", "/api/v1/gates");
    assert!(head.starts_with("HTTP/1.1 200") && body == "{\"removed\":0}\n", "{head}{body}");
    let (head, _) = http(&mut stream, "GET", "/metrics");
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
}
