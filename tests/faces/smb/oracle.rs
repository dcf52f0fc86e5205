//! The recorded scenarios and traces, carried out over SMB: every step's status and output as
//! recorded, but for the departures of the rules, which `tests/rules/replay` lists. The wire adds
//! none.

#[allow(dead_code, reason = "its reasons are for the replay and the page")]
#[path = "../../rules/replay/departures.rs"]
mod departures;
#[path = "../../rules/replay/player/script.rs"]
mod script;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::time::Duration;

use latchfs::file::smb::status::Status;
use latchfs::file::smb::wire::lock::{EXCLUSIVE, FAIL_IMMEDIATELY, SHARED, UNLOCK};
use serde_json::{Value, json};

use super::client::{
    Answer, COMBINATIONS, CREATE, Create, Opened, READ, SHARE_ALL, SYNCHRONIZE, SmbClient, WRITE,
};
use super::{address, serve};
use crate::common::served::Served;
use departures::{Departure, Out, RULES};
use script::{Group, Op, RangeArg, read_script};

/// The answer to a step that has no status of its own.
pub const NO_STATUS: &str = "-";

/// What is answered while a lock waits.
const STILL_WAITING: &str = "STILL_WAITING";

const TRACE_FILE: (&str, &str) = ("f", "01234567890123456789");

const DIRECTORY: u32 = 0x1;
const NON_DIRECTORY: u32 = 0x40;
const DELETE_ON_CLOSE: u32 = 0x1000;

type Done = Result<Option<Value>, Status>;

struct Held {
    conn: String,
    name: String,
    access: u32,
    share: u32,
    open: Opened,
}

/// Plays a script through clients, one for each connection of it.
struct Player<'a> {
    served: &'a Served,
    clients: HashMap<String, SmbClient>,
    handles: HashMap<String, Held>,
    /// Connection, message, and the interim answer.
    waiting: HashMap<String, (String, u64, Answer)>,
    trace: bool,
}

impl<'a> Player<'a> {
    fn new(served: &'a Served, trace: bool) -> Self {
        let (clients, handles, waiting) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut player = Self { served, clients, handles, waiting, trace };
        if trace {
            player.make_file(TRACE_FILE.0, TRACE_FILE.1, None).unwrap();
        }
        player
    }

    fn client(&mut self, conn: &str) -> &mut SmbClient {
        let served = self.served;
        self.clients
            .entry(conn.to_owned())
            .or_insert_with(|| SmbClient::start(address(served), COMBINATIONS[0]))
    }

    /// The client and the open of a handle's name. In a trace it is opened on first use.
    fn held(&mut self, h: &str) -> (&mut SmbClient, Opened) {
        if self.trace && !self.handles.contains_key(h) {
            let conn = h[..1].to_uppercase();
            self.open_plain(h, &conn, TRACE_FILE.0, READ | WRITE, SHARE_ALL).unwrap();
        }
        let Held { conn, open, .. } = &self.handles[h];
        let (conn, open) = (conn.clone(), *open);
        (self.client(&conn), open)
    }

    fn step(&mut self, op: &Op) -> (String, Option<Value>) {
        if let Some(h) = op.handle()
            && !self.trace
            && !self.handles.contains_key(h)
        {
            return ("STATUS_FILE_CLOSED".to_owned(), None);
        }
        match op {
            Op::DropConnection { conn } => {
                self.drop_connection(conn);
                (NO_STATUS.to_owned(), None)
            }
            Op::Cancel { tag } => {
                let (conn, _, interim) = self.waiting[tag].clone();
                self.client(&conn).cancel(&interim.header);
                (NO_STATUS.to_owned(), None)
            }
            Op::Await { tag, timeout } => self.wait_for(tag, *timeout),
            Op::LockAsync { tag, h, ranges } => self.lock_async(tag, h, ranges),
            Op::ServerLs {} => (NO_STATUS.to_owned(), Some(tree(&self.served.data()).into())),
            other => match self.plain(other) {
                Ok(out) => ("STATUS_SUCCESS".to_owned(), out),
                Err(status) => (status.to_string(), None),
            },
        }
    }

    fn plain(&mut self, op: &Op) -> Done {
        match op {
            Op::Mkfile { name, data, attrs } => self.make_file(name, data, attrs.as_deref())?,
            Op::Mkdir { name, attrs } => self.make_dir(name, attrs.as_deref())?,
            Op::Open { .. } => return self.open(op).map(Some),
            Op::Close { h } => {
                let (client, open) = self.held(h);
                let done = client.close(open.id);
                self.handles.remove(h);
                done?;
            }
            Op::Reopen { h } => {
                let (client, open) = self.held(h);
                client.close(open.id)?;
                let Held { conn, name, access, share, .. } = self.handles.remove(h).unwrap();
                self.open_plain(h, &conn, &name, access, share)?;
            }
            Op::Read { h, off, len } => {
                let (client, open) = self.held(h);
                let bytes = client.read(open.id, *off, u32::try_from(*len).unwrap())?;
                return Ok(Some(String::from_utf8_lossy(&bytes).into()));
            }
            Op::Write { h, off, data, len } => {
                let data = data.clone().unwrap_or_else(|| "x".repeat(len.unwrap_or(0)));
                let (client, open) = self.held(h);
                client.write(open.id, *off, data.as_bytes())?;
            }
            Op::Lock { h, ranges, off, len, mode, fail_immediately } => {
                let ranges = all_ranges(ranges, *off, *len, mode.as_ref());
                let now = if *fail_immediately { FAIL_IMMEDIATELY } else { 0 };
                let ranges: Vec<_> = ranges.iter().map(|one| lock_range(one, now)).collect();
                let (client, open) = self.held(h);
                client.lock(open.id, &ranges)?;
            }
            Op::Unlock { h, ranges, off, len } => {
                let ranges = all_ranges(ranges, *off, *len, None);
                let ranges: Vec<_> =
                    ranges.iter().map(|one| (one.offset, one.length, UNLOCK)).collect();
                let (client, open) = self.held(h);
                client.lock(open.id, &ranges)?;
            }
            Op::SetDisposition { h, delete } => {
                let (client, open) = self.held(h);
                client.set_disposition(open.id, *delete)?;
            }
            Op::SetDispositionEx { h, flags } => {
                let (client, open) = self.held(h);
                client.set_info(open.id, 64, &flags.to_le_bytes())?;
            }
            Op::Rename { h, new, replace } => self.rename(h, 10, new, *replace)?,
            Op::Link { h, new, replace } => self.rename(h, 11, new, *replace)?,
            Op::RenameEx { h, new, .. } => self.rename(h, 65, new, true)?,
            Op::SetEof { h, size } => {
                let (client, open) = self.held(h);
                client.set_info(open.id, 20, &size.to_le_bytes())?;
            }
            Op::SetAlloc { h, size } => {
                let (client, open) = self.held(h);
                client.set_info(open.id, 19, &size.to_le_bytes())?;
            }
            Op::SetAttr { h, attrs } => {
                let mut data = [0; 40];
                data[32..36].copy_from_slice(&attributes(Some(attrs)).to_le_bytes());
                let (client, open) = self.held(h);
                client.set_info(open.id, 4, &data)?;
            }
            Op::QueryStandard { h } => {
                let (client, open) = self.held(h);
                return client.query(open.id, 5).map(|bytes| Some(standard(&bytes)));
            }
            Op::List { conn, path } => return self.list(conn, path).map(Some),
            Op::DropConnection { .. }
            | Op::Cancel { .. }
            | Op::Await { .. }
            | Op::LockAsync { .. }
            | Op::ServerLs {} => unreachable!("step() has done these"),
        }
        Ok(None)
    }

    fn open(&mut self, op: &Op) -> Result<Value, Status> {
        let Op::Open { conn, h, name, access, share, disp, opts, attrs } = op else {
            unreachable!("called for opens only")
        };
        let name = name.replace('/', "\\");
        let create = Create {
            name: &name,
            access: rights(access),
            share: share_bits(share),
            disposition: disposition(disp),
            options: options(opts),
            attributes: attributes(attrs.as_deref()),
        };
        let open = self.client(conn).create(&create)?;
        self.hold(h, conn, &create, open);
        let action = ["SUPERSEDED", "OPENED", "CREATED", "OVERWRITTEN"][open.action as usize];
        Ok(json!({ "action": action, "eof": open.size }))
    }

    fn open_plain(
        &mut self,
        h: &str,
        conn: &str,
        name: &str,
        access: u32,
        share: u32,
    ) -> Result<(), Status> {
        let create = Create::open(name, access, share);
        let open = self.client(conn).create(&create)?;
        self.hold(h, conn, &create, open);
        Ok(())
    }

    fn hold(&mut self, h: &str, conn: &str, create: &Create<'_>, open: Opened) {
        let held = Held {
            conn: conn.to_owned(),
            name: create.name.to_owned(),
            access: create.access,
            share: create.share,
            open,
        };
        if let Some(before) = self.handles.insert(h.to_owned(), held) {
            // The name is taken over; the open it stood for goes on until the end of the script.
            self.handles.insert(format!("{h} {:?}", before.open.id), before);
        }
    }

    fn drop_connection(&mut self, conn: &str) {
        let opens = self.handles.extract_if(|_, held| held.conn == conn).count();
        if let Some(client) = self.clients.remove(conn) {
            client.cut();
        }
        let left = self.handles.len();
        let served = self.served;
        crate::common::served::wait_for("the end of a connection's opens", || {
            let listed = served.latchfs(&["handles", "--all", "--json"]).output().unwrap();
            let rows: Value = serde_json::from_slice(&listed.stdout).unwrap_or_default();
            let count = rows.as_array().map_or(0, Vec::len);
            (opens == 0 || count <= left).then_some(())
        });
    }

    fn make_file(&mut self, name: &str, data: &str, attrs: Option<&str>) -> Result<(), Status> {
        let create = Create {
            disposition: CREATE,
            attributes: attributes(attrs),
            ..Create::open(name, READ | WRITE, SHARE_ALL)
        };
        let client = self.client("setup");
        let open = client.create(&Create { name: &name.replace('/', "\\"), ..create })?;
        if !data.is_empty() {
            client.write(open.id, 0, data.as_bytes())?;
        }
        client.close(open.id)
    }

    fn make_dir(&mut self, name: &str, attrs: Option<&str>) -> Result<(), Status> {
        let create = Create {
            disposition: CREATE,
            options: DIRECTORY,
            attributes: attributes(attrs),
            ..Create::open(name, READ, SHARE_ALL)
        };
        let client = self.client("setup");
        let open = client.create(&Create { name: &name.replace('/', "\\"), ..create })?;
        client.close(open.id)
    }

    fn rename(&mut self, h: &str, class: u8, new: &str, replace: bool) -> Result<(), Status> {
        let (client, open) = self.held(h);
        client.rename(open.id, class, &new.replace('/', "\\"), replace)
    }

    fn lock_async(&mut self, tag: &str, h: &str, ranges: &[RangeArg]) -> (String, Option<Value>) {
        let ranges: Vec<_> = ranges.iter().map(|one| lock_range(one, 0)).collect();
        let (client, open) = self.held(h);
        let sent = client.send_lock(open.id, &ranges);
        let answer = client.answer_within(sent, Duration::from_secs(20)).unwrap();
        let status = answer.status();
        let conn = self.handles[h].conn.clone();
        self.waiting.insert(tag.to_owned(), (conn, sent, answer));
        (status.to_string(), None)
    }

    fn wait_for(&mut self, tag: &str, timeout: f64) -> (String, Option<Value>) {
        let (conn, sent, first) = self.waiting[tag].clone();
        if first.status() != Status::PENDING {
            return (first.status().to_string(), None);
        }
        let patience = Duration::from_secs_f64(timeout);
        match self.client(&conn).answer_within(sent, patience) {
            Some(answer) => {
                self.waiting.remove(tag);
                (answer.status().to_string(), None)
            }
            None => (STILL_WAITING.to_owned(), None),
        }
    }

    fn list(&mut self, conn: &str, path: &str) -> Result<Value, Status> {
        let name = path.replace('/', "\\");
        let create = Create { options: DIRECTORY, ..Create::open(&name, READ, SHARE_ALL) };
        let client = self.client(conn);
        let open = client.create(&create)?;
        let names = client.list(open.id);
        client.close(open.id)?;
        let mut names = names?;
        names.sort_unstable();
        Ok(names.into())
    }

    /// Ends all opens that the script left.
    fn finish(mut self) {
        let held: Vec<_> = self.handles.drain().map(|(_, held)| held).collect();
        for Held { conn, open, .. } in held {
            // It may be closed already, by a scenario about that.
            let _ = self.client(&conn).close(open.id);
        }
    }
}

fn all_ranges(
    ranges: &[RangeArg],
    off: Option<u64>,
    len: Option<u64>,
    mode: Option<&String>,
) -> Vec<RangeArg> {
    match (off, len) {
        (Some(offset), Some(length)) => vec![RangeArg { offset, length, kind: mode.cloned() }],
        _ => ranges.to_vec(),
    }
}

fn lock_range(range: &RangeArg, flags: u32) -> (u64, u64, u32) {
    let kind = match range.kind.as_deref() {
        Some("EX") => EXCLUSIVE,
        Some("SH") => SHARED,
        // What the recording calls otherwise has both flags, or none.
        Some(other) if other.contains("EX") => EXCLUSIVE | SHARED,
        _ => 0,
    };
    (range.offset, range.length, kind | flags)
}

/// The rights of letters, or of one name, on the wire.
fn rights(text: &str) -> u32 {
    const NAMED: [(&str, u32); 20] = [
        ("READ_DATA", 0x1),
        ("WRITE_DATA", 0x2),
        ("APPEND_DATA", 0x4),
        ("READ_EA", 0x8),
        ("WRITE_EA", 0x10),
        ("EXECUTE", 0x20),
        ("DELETE_CHILD", 0x40),
        ("READ_ATTRIBUTES", 0x80),
        ("WRITE_ATTRIBUTES", 0x100),
        ("DELETE", 0x1_0000),
        ("READ_CONTROL", 0x2_0000),
        ("WRITE_DAC", 0x4_0000),
        ("WRITE_OWNER", 0x8_0000),
        ("SYNCHRONIZE", 0x10_0000),
        ("SYSTEM_SECURITY", 0x100_0000),
        ("MAXIMUM_ALLOWED", 0x200_0000),
        ("GENERIC_ALL", 0x1000_0000),
        ("GENERIC_EXECUTE", 0x2000_0000),
        ("GENERIC_WRITE", 0x4000_0000),
        ("GENERIC_READ", 0x8000_0000),
    ];
    let named = |name: &str| NAMED.iter().find(|(known, _)| *known == name).map(|(_, bits)| *bits);
    named(text).unwrap_or_else(|| {
        let letters = text.chars().filter(|letter| *letter != '-');
        letters.fold(SYNCHRONIZE, |all, letter| {
            all | match letter {
                'R' => 0x1,
                'W' => 0x2,
                'A' | 'P' => 0x4,
                'X' => 0x20,
                'D' => 0x1_0000,
                'a' => 0x80,
                'w' => 0x100,
                other => panic!("no access: {other}"),
            }
        })
    })
}

fn share_bits(text: &str) -> u32 {
    ["R", "W", "D"]
        .iter()
        .enumerate()
        .fold(0, |all, (at, letter)| if text.contains(letter) { all | 1 << at } else { all })
}

fn disposition(text: &str) -> u32 {
    let all = ["SUPERSEDE", "OPEN", "CREATE", "OPEN_IF", "OVERWRITE", "OVERWRITE_IF"];
    let at = all.iter().position(|one| *one == text);
    u32::try_from(at.unwrap_or_else(|| panic!("no disposition: {text}"))).unwrap()
}

fn options(text: &str) -> u32 {
    text.split(',').filter(|one| !one.is_empty()).fold(0, |all, one| {
        all | match one {
            "DIRECTORY_FILE" => DIRECTORY,
            "NON_DIRECTORY_FILE" => NON_DIRECTORY,
            "DELETE_ON_CLOSE" => DELETE_ON_CLOSE,
            other => panic!("no option: {other}"),
        }
    })
}

fn attributes(text: Option<&str>) -> u32 {
    text.unwrap_or_default().split(',').filter(|one| !one.is_empty()).fold(0, |all, one| {
        all | match one {
            "READONLY" => 0x1,
            "HIDDEN" => 0x2,
            "SYSTEM" => 0x4,
            "NORMAL" => 0x80,
            other => panic!("no attribute: {other}"),
        }
    })
}

fn standard(bytes: &[u8]) -> Value {
    let size = u64::from_le_bytes(bytes[8..16].try_into().unwrap());
    let links = u32::from_le_bytes(bytes[16..20].try_into().unwrap());
    let (pending, directory) = (bytes[20] != 0, bytes[21] != 0);
    json!({ "eof": size, "nlink": links, "delete_pending": pending, "dir": directory })
}

/// Everything on the disk, from the root down.
fn tree(root: &Path) -> Vec<String> {
    let (mut found, mut left) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            found.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            if path.is_dir() {
                left.push(path);
            }
        }
    }
    found.sort_unstable();
    found
}

/// Empties the share between groups.
fn clear(served: &Served) {
    for entry in fs::read_dir(served.data()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
    }
}

fn groups(name: &str) -> Vec<Group> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/oracle/{name}.jsonl"));
    read_script(&fs::read_to_string(path).unwrap())
}

/// What a step answers here, where that is not as recorded: status and output.
fn listed() -> BTreeMap<(String, usize), (&'static str, &'static Out)> {
    let steps = RULES.iter().flat_map(|rule| rule.steps);
    steps
        .map(|Departure(id, step, status, out)| (((*id).to_owned(), *step), (*status, out)))
        .collect()
}

fn expected(
    departure: Option<(&'static str, &'static Out)>,
    status: Option<&String>,
    recorded: Option<&Value>,
) -> (String, Option<Value>) {
    let Some((status, out)) = departure else {
        return (status.cloned().unwrap_or_else(|| NO_STATUS.to_owned()), recorded.cloned());
    };
    let out = match out {
        Out::Is(json) => Some(serde_json::from_str(json).unwrap()),
        Out::Same => recorded.cloned(),
        Out::Nothing => None,
    };
    (status.to_owned(), out)
}

/// Plays a recording; how many steps it has.
fn replay(served: &Served, name: &str, wrong: &mut Vec<String>) -> usize {
    let mut left = listed();
    let mut steps = 0;
    for group in groups(name) {
        let mut player = Player::new(served, group.trace);
        for (number, step) in (1..).zip(&group.steps) {
            steps += 1;
            let departure = left.remove(&(group.id.clone(), number));
            let wanted = expected(departure, step.status.as_ref(), step.out.as_ref());
            let given = player.step(&step.op);
            // A trace says nothing of what it reads, nor of its reopened handles.
            let is_same = if group.trace {
                step.status.is_none() || given.0 == wanted.0
            } else {
                given == wanted
            };
            if !is_same {
                let place = format!("{name} {}, step {number} ({:?})", group.id, step.op);
                wrong.push(format!("{place}: {given:?} for {wanted:?}"));
            }
        }
        player.finish();
        clear(served);
    }
    steps
}

#[test]
fn every_recorded_scenario_is_answered_over_the_wire_as_by_the_service() {
    let served = serve();
    let mut wrong = Vec::new();
    let names = ["delete_pending", "byte_range", "dispositions", "directories"];
    let steps: usize = names.iter().map(|name| replay(&served, name, &mut wrong)).sum();
    assert!(wrong.is_empty(), "{} of {steps}:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(steps, 1336);
}

#[test]
fn random_opens_locks_reads_and_writes_are_answered_over_the_wire_as_recorded() {
    let served = serve();
    let mut wrong = Vec::new();
    let names = ["sharemode_trace", "lock_trace"];
    let steps: usize = names.iter().map(|name| replay(&served, name, &mut wrong)).sum();
    assert!(wrong.is_empty(), "{} of {steps}:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(steps, 3600 + 2499);
}
