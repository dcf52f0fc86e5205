//! The format of a script: one JSON object a line.
//!
//! A line is a *scenario* (`id`, `title`, `steps`) or a *step*. Each scenario starts on an empty
//! share. Steps on lines of their own belong together; where they carry `seq`, each number starts
//! afresh, on a share that holds one 20-byte file `f`: a trace. An unknown field is an error: a
//! misspelled condition would otherwise be met by doing nothing.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Steps that start together on an empty share.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The scenario's id; the number of a trace; empty for loose steps.
    pub id: String,
    /// It came as lines with `seq`.
    pub trace: bool,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// One thing to do, and what is expected of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The line of the script it stands on.
    pub line: usize,
    pub op: Op,
    /// The status expected; none where the script says none or `-`.
    pub status: Option<String>,
    pub out: Option<Value>,
}

/// The operation of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

impl Serialize for RangeArg {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &self.kind {
            Some(kind) => (self.offset, self.length, kind).serialize(to),
            None => (self.offset, self.length).serialize(to),
        }
    }
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

/// A line that is no step and no scenario.
#[derive(Debug, thiserror::Error)]
pub struct ScriptError {
    line: usize,
    why: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

/// Reads a script. Blank lines and lines that start with `#` are passed over.
pub fn read_script(text: &str) -> Result<Vec<Group>, ScriptError> {
    let mut groups: Vec<Group> = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        let fail = |why: String| ScriptError { line, why };
        let object: Map<String, Value> =
            serde_json::from_str(text).map_err(|e| fail(format!("not a JSON object: {e}")))?;
        if object.contains_key("steps") {
            groups.push(read_scenario(line, object).map_err(fail)?);
            continue;
        }
        let (seq, step) = read_step(line, object).map_err(fail)?;
        let trace = seq.is_some();
        let id = seq.unwrap_or_default();
        match groups.last_mut() {
            Some(group) if group.id == id && group.trace == trace => group.steps.push(step),
            _ => groups.push(Group { id, trace, steps: vec![step] }),
        }
    }
    Ok(groups)
}

fn read_scenario(line: usize, mut object: Map<String, Value>) -> Result<Group, String> {
    let Some(Value::Array(steps)) = object.remove("steps") else {
        return Err("`steps` must be a list".into());
    };
    let Some(Value::String(id)) = object.remove("id") else {
        return Err("a scenario needs a text `id`".into());
    };
    let mut read = Vec::with_capacity(steps.len());
    for (number, step) in (1..).zip(steps) {
        let Value::Object(step) = step else { return Err(format!("step {number}: not an object")) };
        let (_, step) = read_step(line, step).map_err(|why| format!("step {number}: {why}"))?;
        read.push(step);
    }
    Ok(Group { id, trace: false, steps: read })
}

/// Reads one step, from that line of its script: its sequence number, if it has one, and what to
/// do.
pub fn read_step(
    line: usize,
    mut object: Map<String, Value>,
) -> Result<(Option<String>, Step), String> {
    let seq = object.remove("seq").map(|seq| seq.to_string());
    let out = object.remove("out");
    let status = match object.remove("status") {
        None => None,
        Some(Value::String(status)) => (status != super::NO_STATUS).then_some(status),
        Some(_) => return Err("`status` must be a text".into()),
    };
    let op = serde_json::from_value(Value::Object(object)).map_err(|e| e.to_string())?;
    Ok((seq, Step { line, op, status, out }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_loose_steps_and_traces_are_told_apart() {
        let text = r#"
# a comment
{"id": "s1", "title": "t", "steps": [{"op": "close", "h": "a", "status": "-"}]}
{"op": "mkdir", "name": "d"}
{"op": "mkdir", "name": "e", "status": "STATUS_SUCCESS"}
{"seq": 0, "op": "reopen", "h": "a"}
{"seq": 1, "op": "reopen", "h": "a"}
"#;
        let groups = read_script(text).unwrap();
        let shape: Vec<_> =
            groups.iter().map(|g| (g.id.as_str(), g.trace, g.steps.len())).collect();
        assert_eq!(shape, [("s1", false, 1), ("", false, 2), ("0", true, 1), ("1", true, 1)]);
        assert_eq!(groups[0].steps[0].status, None);
        assert_eq!(groups[1].steps[1].status.as_deref(), Some("STATUS_SUCCESS"));
        assert_eq!(groups[1].steps[1].line, 5);
    }

    #[test]
    fn a_step_is_written_as_it_is_read() {
        for text in [
            r#"{"op":"lock","h":"a","ranges":[[0,10,"EX"],[20,1,"SH"]]}"#,
            r#"{"op":"unlock","h":"a","ranges":[[0,10]]}"#,
            r#"{"op":"open","conn":"A","h":"a","access":"R","share":""}"#,
            r#"{"op":"server_ls"}"#,
        ] {
            let step = &read_script(text).unwrap()[0].steps[0];
            let written = serde_json::to_string(&step.op).unwrap();
            assert_eq!(read_script(&written).unwrap()[0].steps[0], *step, "{written}");
        }
    }

    #[test]
    fn what_is_no_step_is_refused_with_its_line() {
        for (text, part) in [
            ("\n{\"op\": \"clsoe\", \"h\": \"a\"}", "line 2: unknown variant `clsoe`"),
            (r#"{"op": "close", "handle": "a"}"#, "line 1: unknown field `handle`"),
            (r#"{"op": "open", "conn": "A"}"#, "missing field"),
            ("[]", "not a JSON object"),
            (r#"{"id": 3, "steps": []}"#, "text `id`"),
            (r#"{"id": "a", "steps": [{"op": "x"}]}"#, "step 1"),
        ] {
            let error = read_script(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
