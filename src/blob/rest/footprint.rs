//! What operations on blobs read and write. A blob has its content with its properties, its lease
//! and its blocks that are not committed; a write of the blob is one of all three.

use std::borrow::Cow;

use super::operations::target;
use crate::http::auth::ResourceLevel;
use crate::http::frame::footprint::{container, root, source_read};
use crate::http::request::Request;
use crate::rules::footprint::{Footprint, Resource, Time};
use crate::rules::service::ServiceKind::Blob;

fn blob(request: &Request) -> Resource {
    let (container, path) = target(&request.address, ResourceLevel::Object);
    let container = container.unwrap_or_default().to_ascii_lowercase();
    root(Blob, request).below(container).below("blob").below(Cow::into_owned(path))
}

fn content(request: &Request) -> Resource {
    blob(request).below("content")
}

fn lease(request: &Request) -> Resource {
    blob(request).below("lease")
}

/// What most operations touch. Answers tell the state of the lease.
pub(super) fn of_blob(changes: bool, request: &Request) -> Footprint {
    let found = if changes {
        Footprint::of([], [blob(request)])
    } else {
        Footprint::of([content(request), lease(request)], [])
    };
    found.timed(Time::ReadsIfLeased)
}

pub(super) fn blocks_listed(request: &Request) -> Footprint {
    Footprint::of([blob(request)], []).timed(Time::ReadsIfLeased)
}

pub(super) fn block_staged(request: &Request) -> Footprint {
    let blocks = blob(request).below("blocks");
    Footprint::of([content(request), lease(request)], [blocks]).timed(Time::ReadsIfLeased)
}

/// As [`block_staged`], with a source.
pub(super) fn block_copied(request: &Request) -> Footprint {
    let mut found = block_staged(request);
    found.reads.extend(source_read(request));
    found
}

pub(super) fn leased(request: &Request) -> Footprint {
    Footprint::of([content(request)], [lease(request)]).timed(Time::Leases)
}

pub(super) fn copied(request: &Request) -> Footprint {
    Footprint::of(source_read(request), [blob(request)]).timed(Time::ReadsIfLeased)
}

/// The names with the prefix, and all that a list tells of their blobs.
pub(super) fn listed(request: &Request) -> Footprint {
    let prefix = request.query.get("prefix").unwrap_or_default();
    let blobs = container(Blob, request).below("blob").below_prefix(prefix);
    Footprint::of([blobs], []).timed(Time::ReadsIfLeased)
}
