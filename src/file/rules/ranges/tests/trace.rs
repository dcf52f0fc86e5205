//! The recorded trace: 2,400 random steps on four handles, as a real server answered them.

use std::collections::HashMap;

use serde::Deserialize;

use super::super::{LockKind, RangeLock};
use super::{HandleId, RangeLocks, of, range};

const TRACE: &str = include_str!("../../../../../tests/oracle/lock_trace.jsonl");

#[derive(Deserialize)]
struct Step {
    seq: u32,
    op: String,
    h: String,
    #[serde(default)]
    off: u64,
    #[serde(default)]
    len: u64,
    mode: Option<String>,
    status: Option<String>,
}

/// The table and the opens of one sequence.
#[derive(Default)]
struct Replay {
    locks: RangeLocks,
    handles: HashMap<String, HandleId>,
    opened: u64,
}

impl Replay {
    fn handle(&mut self, name: &str) -> HandleId {
        let opened = &mut self.opened;
        *self.handles.entry(name.to_owned()).or_insert_with(|| {
            *opened += 1;
            HandleId(*opened)
        })
    }

    fn answer(&mut self, step: &Step) -> Option<&'static str> {
        let handle = self.handle(&step.h);
        let bytes = range(step.off, step.len);
        let said = |ok: bool, refusal| Some(if ok { "STATUS_SUCCESS" } else { refusal });
        match step.op.as_str() {
            "lock" => {
                let kind = match step.mode.as_deref() {
                    Some("EX") => LockKind::Exclusive,
                    Some("SH") => LockKind::Shared,
                    other => panic!("lock mode {other:?}"),
                };
                let granted = self.locks.lock(RangeLock::smb(handle, kind, bytes, 0)).is_ok();
                said(granted, "STATUS_LOCK_NOT_GRANTED")
            }
            "unlock" => said(self.locks.unlock(handle, bytes).is_ok(), "STATUS_RANGE_NOT_LOCKED"),
            "read" => {
                let ok = self.locks.check_read(Some(of(handle)), bytes).is_ok();
                said(ok, "STATUS_FILE_LOCK_CONFLICT")
            }
            "write" => {
                let ok = self.locks.check_write(Some(of(handle)), bytes).is_ok();
                said(ok, "STATUS_FILE_LOCK_CONFLICT")
            }
            "reopen" => {
                self.locks.release_taken_through(handle);
                self.handles.remove(&step.h);
                None
            }
            other => panic!("operation {other}"),
        }
    }
}

#[test]
fn the_recorded_trace_is_answered_as_the_server_did() {
    let mut replay = Replay::default();
    let mut seq = None;
    let mut answered = 0;
    for (line, text) in (1..).zip(TRACE.lines()) {
        let step: Step = serde_json::from_str(text).expect("a step a line");
        if seq.replace(step.seq) != Some(step.seq) {
            replay = Replay::default();
        }
        let answer = replay.answer(&step);
        assert_eq!(answer, step.status.as_deref(), "line {line}: {text}");
        answered += usize::from(answer.is_some());
    }
    assert_eq!(answered, 2400);
}
