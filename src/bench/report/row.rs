//! A row of the journal as the rules see it.
//!
//! Decides what each operation of the services does to an object, as far as the report must know.

use std::sync::Arc;

use super::past::{ClientId, ObjectId, Step};
use crate::journal::ChangedObject;
use crate::journal::row::AnsweredRequest;
use crate::rules::Timestamp;
use crate::rules::asked::{Asked, Parts};
use crate::rules::service::ServiceKind;
use crate::rules::who::Identity;

/// A request that was answered, with its client.
#[derive(Clone, Copy, Debug)]
pub struct ReportRow<'a> {
    pub seq: u64,
    /// When, by the clock of the server.
    pub time: Timestamp,
    pub account: &'a str,
    pub client: &'a Identity,
    pub request: &'a AnsweredRequest,
    /// The object that the path names, as `latchfs why` takes it; empty for a whole service.
    pub object: &'a str,
}

/// What an operation reads of the object that it names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperationReads {
    Content,
    /// Metadata, headers and the `ETag`.
    Attributes,
    /// The names and `ETags` of what is in it.
    Names,
    Nothing,
}

/// What an operation reads.
pub fn reads(operation: &str) -> OperationReads {
    match operation {
        "Get Blob" | "Query Blob Contents" | "Get File" | "Query Entities" | "SMB Read" => {
            OperationReads::Content
        }
        "Get Blob Properties"
        | "Get Blob Metadata"
        | "Get File Properties"
        | "Get Directory Properties"
        | "Get Container Properties"
        | "Get Container Metadata" => OperationReads::Attributes,
        // The names that a list of a directory has shown are not in its row.
        "List Blobs" => OperationReads::Names,
        _ => OperationReads::Nothing,
    }
}

/// True for an operation that adds to an object and loses nothing of what is there.
pub fn is_append(operation: &str) -> bool {
    matches!(operation, "Append Block" | "Append Block From URL" | "Put Message")
}

impl ReportRow<'_> {
    pub fn operation(&self) -> &'static str {
        self.request.operation
    }

    pub fn asked(&self) -> &Asked {
        &self.request.asked
    }

    /// It was carried out, whether its client got the answer or not.
    pub fn is_done(&self) -> bool {
        match self.request.status {
            Some(status) => status < 400,
            None => {
                !self.request.given.changed.is_empty() || !self.request.given.messages.is_empty()
            }
        }
    }

    /// The changes that move an object's content or attributes.
    pub fn writes(&self) -> impl Iterator<Item = (&ChangedObject, Option<&Parts>)> {
        let asked = self.asked().parts.as_ref();
        let changed = self.request.given.changed.iter().filter(|_| self.is_done());
        let changed = changed.map(move |one| (one, one.parts.as_ref().or(asked)));
        changed.filter(|(one, parts)| {
            one.etag_before != one.etag_after
                && !matches!(parts, Some(Parts::Lease | Parts::Blocks))
        })
    }

    /// Whether a change can lose nothing: a condition or a lease guards it, or it appends.
    pub fn is_guarded(&self, changed: &ChangedObject) -> bool {
        let asked = self.asked();
        if let Some(guarded) = changed.guarded {
            return guarded;
        }
        if is_append(self.operation()) {
            return true;
        }
        // The File service ignores conditions.
        if self.request.service == ServiceKind::File {
            return asked.lease_sent.is_some();
        }
        asked.guards()
    }

    /// The row as evidence, on this object.
    pub fn step(&self, client: ClientId, object: ObjectId, nth: u64, etag: Option<&str>) -> Step {
        Step {
            seq: self.seq,
            time: self.time,
            client,
            operation: self.operation(),
            object,
            etag: etag.map(Arc::from),
            status: self.request.status,
            nth,
        }
    }
}
