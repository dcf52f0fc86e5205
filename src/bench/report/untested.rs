//! Never tested: requests that could have been refused because of another client, and never were.
//!
//! Decides which causes could refuse a request, and by which one a request was refused.

use std::fmt;

use super::created::creates_only;
use super::row::ReportRow;
use super::shape::shape;
use crate::rules::service::ServiceKind;
use crate::rules::{RefusalKind, Rule};

/// What could refuse a request because of another client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RefusalCause {
    Condition,
    Lease,
    Exists,
    ShareMode,
    Receipt,
}

impl fmt::Display for RefusalCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Condition => "condition",
            Self::Lease => "lease",
            Self::Exists => "exists",
            Self::ShareMode => "share mode",
            Self::Receipt => "receipt",
        })
    }
}

/// Requests that are counted together.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TriedKey {
    /// The container, queue, table or share, as a pattern.
    pub container: String,
    pub operation: &'static str,
    pub cause: RefusalCause,
}

/// How often it was tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tried {
    pub could: u64,
    pub refused: u64,
    /// The number of the first row.
    pub first: u64,
}

/// The causes that could refuse a request, and whether each of them did.
pub fn tried(row: &ReportRow<'_>) -> Vec<(TriedKey, bool)> {
    let refused_by = refused_by(row);
    let mut causes = could(row);
    if let Some(cause) = refused_by
        && !causes.contains(&cause)
    {
        causes.push(cause);
    }
    if causes.is_empty() {
        return Vec::new();
    }
    let (service, path) = row.object.split_once(':').unwrap_or_default();
    let container = path.split('/').next().unwrap_or_default();
    if container.is_empty() {
        return Vec::new();
    }
    let container = shape(&format!("{service}:{container}"));
    let key = |cause| TriedKey { container: container.clone(), operation: row.operation(), cause };
    causes.into_iter().map(|cause| (key(cause), refused_by == Some(cause))).collect()
}

fn could(row: &ReportRow<'_>) -> Vec<RefusalCause> {
    let (asked, operation) = (row.asked(), row.operation());
    let reads = ["Get ", "List ", "Query ", "Find ", "Peek ", "Preflight "];
    if operation != "Get Messages" && reads.iter().any(|read| operation.starts_with(read)) {
        return Vec::new();
    }
    let mut causes = Vec::new();
    if asked.if_match.as_deref().is_some_and(|etag| etag != "*")
        || asked.if_unmodified_since.is_some()
        || asked.if_tags.is_some()
        || asked.append_position.is_some()
    {
        causes.push(RefusalCause::Condition);
    }
    if asked.lease_sent.is_some() || asked.lease_action.is_some() {
        causes.push(RefusalCause::Lease);
    }
    if asked.if_none_match.as_deref() == Some("*") || creates_only(operation) {
        causes.push(RefusalCause::Exists);
    }
    let opens = [
        "Create File",
        "Delete File",
        "Put Range",
        "Put Range From URL",
        "Rename File",
        "SMB Create",
    ];
    if row.request.service == ServiceKind::File && opens.contains(&operation) {
        causes.push(RefusalCause::ShareMode);
    }
    if asked.receipt_used.is_some() {
        causes.push(RefusalCause::Receipt);
    }
    causes
}

fn refused_by(row: &ReportRow<'_>) -> Option<RefusalCause> {
    let status = row.request.status.filter(|status| *status >= 400)?;
    let refusal = row.request.refusal.as_ref();
    if row.request.code.contains("AlreadyExists") {
        return Some(RefusalCause::Exists);
    }
    let cause = refusal.and_then(|refusal| refusal.cause.as_ref()).map(|cause| cause.kind);
    let conflict = refusal.and_then(|refusal| refusal.conflict).map(RefusalKind::from);
    match cause.or(conflict) {
        Some(RefusalKind::Condition) => Some(RefusalCause::Condition),
        Some(RefusalKind::Receipt) => Some(RefusalCause::Receipt),
        Some(RefusalKind::Exists) => Some(RefusalCause::Exists),
        Some(RefusalKind::Held(Rule::Lease)) => Some(RefusalCause::Lease),
        Some(RefusalKind::Held(Rule::CopyPending)) => None,
        Some(RefusalKind::Held(_)) => Some(RefusalCause::ShareMode),
        Some(RefusalKind::NotFound) if row.asked().receipt_used.is_some() => {
            Some(RefusalCause::Receipt)
        }
        None if status == 412 => Some(RefusalCause::Condition),
        None if status == 404 && row.asked().receipt_used.is_some() => Some(RefusalCause::Receipt),
        Some(_) | None => None,
    }
}

/// The sentence of a finding.
pub fn message(key: &TriedKey, tried: Tried) -> String {
    let TriedKey { operation, cause, .. } = key;
    let times = if tried.could == 1 { "once" } else { &*format!("{} times", tried.could) };
    format!("{operation} could be refused {times} ({cause}), and never was")
}
