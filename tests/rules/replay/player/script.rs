//! The format of the recordings: one JSON object a line.
//!
//! A line is a *scenario* (`id`, `title`, `steps`), which starts on an empty share, or a step of a
//! *trace*: each number `seq` starts afresh, on a share that holds one 20-byte file `f`.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::NO_STATUS;

/// Steps that start together on an empty share.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The scenario's id, or the number of a trace.
    pub id: String,
    /// It came as lines with `seq`.
    pub trace: bool,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// One thing to do, and what is expected of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub op: Op,
    /// The status expected; none where the script says none or `-`.
    pub status: Option<String>,
    pub out: Option<Value>,
}

/// The operation of a step.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Op {
    Mkfile {
        name: String,
        #[serde(default)]
        data: String,
        attrs: Option<String>,
    },
    Mkdir {
        name: String,
        attrs: Option<String>,
    },
    Open {
        conn: String,
        h: String,
        #[serde(default = "only_file")]
        name: String,
        access: String,
        share: String,
        #[serde(default = "open_disposition")]
        disp: String,
        #[serde(default)]
        opts: String,
        attrs: Option<String>,
    },
    Close {
        h: String,
    },
    Reopen {
        h: String,
    },
    DropConnection {
        conn: String,
    },
    Read {
        h: String,
        off: u64,
        len: usize,
    },
    Write {
        h: String,
        off: u64,
        data: Option<String>,
        len: Option<usize>,
    },
    Lock {
        h: String,
        #[serde(default)]
        ranges: Vec<RangeArg>,
        off: Option<u64>,
        len: Option<u64>,
        mode: Option<String>,
        #[serde(default = "yes")]
        fail_immediately: bool,
    },
    Unlock {
        h: String,
        #[serde(default)]
        ranges: Vec<RangeArg>,
        off: Option<u64>,
        len: Option<u64>,
    },
    LockAsync {
        tag: String,
        h: String,
        ranges: Vec<RangeArg>,
    },
    Await {
        tag: String,
        #[serde(default = "one_second")]
        timeout: f64,
    },
    Cancel {
        tag: String,
    },
    SetDisposition {
        h: String,
        delete: bool,
    },
    SetDispositionEx {
        h: String,
        flags: u32,
    },
    Rename {
        h: String,
        new: String,
        #[serde(default)]
        replace: bool,
    },
    RenameEx {
        h: String,
        new: String,
        flags: u32,
    },
    Link {
        h: String,
        new: String,
        #[serde(default)]
        replace: bool,
    },
    SetEof {
        h: String,
        size: u64,
    },
    SetAlloc {
        h: String,
        size: u64,
    },
    SetAttr {
        h: String,
        attrs: String,
    },
    QueryStandard {
        h: String,
    },
    List {
        conn: String,
        #[serde(default)]
        path: String,
    },
    ServerLs {},
}

impl Op {
    /// The handle it works through, which must be open: an `open` only names one.
    pub fn handle(&self) -> Option<&str> {
        match self {
            Self::Close { h }
            | Self::Reopen { h }
            | Self::Read { h, .. }
            | Self::Write { h, .. }
            | Self::Lock { h, .. }
            | Self::Unlock { h, .. }
            | Self::LockAsync { h, .. }
            | Self::SetDisposition { h, .. }
            | Self::SetDispositionEx { h, .. }
            | Self::Rename { h, .. }
            | Self::RenameEx { h, .. }
            | Self::Link { h, .. }
            | Self::SetEof { h, .. }
            | Self::SetAlloc { h, .. }
            | Self::SetAttr { h, .. }
            | Self::QueryStandard { h } => Some(h),
            Self::Mkfile { .. }
            | Self::Mkdir { .. }
            | Self::Open { .. }
            | Self::DropConnection { .. }
            | Self::Await { .. }
            | Self::Cancel { .. }
            | Self::List { .. }
            | Self::ServerLs {} => None,
        }
    }
}

fn only_file() -> String {
    "f".into()
}

fn open_disposition() -> String {
    "OPEN".into()
}

fn yes() -> bool {
    true
}

fn one_second() -> f64 {
    1.0
}

/// A range of a lock request: `[offset, length, "EX" or "SH"]`; an unlock has no kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeArg {
    pub offset: u64,
    pub length: u64,
    /// `EX`, `SH`, or something a server refuses.
    pub kind: Option<String>,
}

impl<'de> Deserialize<'de> for RangeArg {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum LockForm {
            Lock(u64, u64, String),
            Unlock(u64, u64),
        }
        Ok(match LockForm::deserialize(from)? {
            LockForm::Lock(offset, length, kind) => Self { offset, length, kind: Some(kind) },
            LockForm::Unlock(offset, length) => Self { offset, length, kind: None },
        })
    }
}

/// Reads a script.
pub fn read_script(text: &str) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for line in text.lines() {
        let mut object: Map<String, Value> = serde_json::from_str(line).expect(line);
        if let Some(Value::Array(steps)) = object.remove("steps") {
            let id = object["id"].as_str().expect("a scenario has an id").to_owned();
            let steps = steps.into_iter().map(read_step).collect();
            groups.push(Group { id, trace: false, steps });
            continue;
        }
        let id = object.remove("seq").expect("a line is a scenario or has a seq").to_string();
        let step = read_step(Value::Object(object));
        match groups.last_mut() {
            Some(group) if group.id == id => group.steps.push(step),
            _ => groups.push(Group { id, trace: true, steps: vec![step] }),
        }
    }
    groups
}

fn read_step(mut step: Value) -> Step {
    let fields = step.as_object_mut().expect("a step is an object");
    let out = fields.remove("out");
    let status = fields.remove("status").and_then(|status| status.as_str().map(str::to_owned));
    let status = status.filter(|status| status != NO_STATUS);
    let op = serde_json::from_value(step.clone()).unwrap_or_else(|error| panic!("{step}: {error}"));
    Step { op, status, out }
}
