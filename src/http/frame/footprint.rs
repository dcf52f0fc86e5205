//! What a request reads and writes, for explorations: how resources are named, and the rows that
//! all services share.
//!
//! Decides what operations on a service and on a container touch. What an operation on an object
//! touches is decided by its service, and in the operation's row where it differs from what others
//! do. A row may name more than the operation touches, never less.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use percent_encoding::percent_decode_str;

use super::facts::text;
use super::service::{Operation, Service};
use super::source::{COPY_SOURCE, RENAME_SOURCE};
use crate::http::auth::ResourceLevel;
use crate::http::request::Request;
use crate::rules::footprint::{Footprint, Resource, Time};
use crate::rules::service::ServiceKind;

/// What an operation touches, by the head of its request.
pub type Touches = fn(&Request) -> Footprint;

/// The names of the containers of a service, and what a list of them shows.
const CONTAINERS: &str = "$containers";
/// Properties, metadata, lease and access policies of a container.
pub const PROPERTIES: &str = "properties";

pub fn of(service: &Service, operation: &Operation, request: &Request) -> Footprint {
    let mut found = match operation.touches {
        Some(touches) => touches(request),
        None => (service.touches)(operation, request),
    };
    if request.query.names("sig") {
        found.time = found.time.filter(|time| *time == Time::Leases).or(Some(Time::Reads));
    }
    if request.query.names("si") {
        // A SAS for a table names it; the path may name an entity.
        let of = request.query.get("tn").map(str::to_ascii_lowercase);
        let of = of.map(|table| root(service.kind, request).below(table));
        found.reads.push(of.unwrap_or_else(|| container(service.kind, request)).below(PROPERTIES));
    }
    found
}

/// All of a service.
pub fn root(kind: ServiceKind, request: &Request) -> Resource {
    Resource::new([format!("{kind}:{}", request.address.account)])
}

pub fn container(kind: ServiceKind, request: &Request) -> Resource {
    let name = request.address.container.as_deref().unwrap_or_default();
    root(kind, request).below(name.to_ascii_lowercase())
}

/// What an operation touches that is not on an object; `of_object` says it of the others.
pub fn by_level(
    kind: ServiceKind,
    operation: &Operation,
    request: &Request,
    of_object: fn(bool, &Request) -> Footprint,
) -> Footprint {
    match operation.needs.as_ref().map(|needs| needs.level) {
        None => Footprint::default(),
        Some(ResourceLevel::Service) if operation.changes => all_written(kind, request),
        Some(ResourceLevel::Service) => {
            let root = root(kind, request);
            Footprint::of([root.clone().below(CONTAINERS), root.below(PROPERTIES)], [])
        }
        Some(ResourceLevel::Container) if operation.changes => container_written(kind, request),
        Some(ResourceLevel::Container) => {
            Footprint::of([container(kind, request).below(PROPERTIES)], [])
                .timed(Time::ReadsIfLeased)
        }
        Some(ResourceLevel::Object) => of_object(operation.changes, request),
    }
}

/// The operation may write anything in the service.
pub fn all_written(kind: ServiceKind, request: &Request) -> Footprint {
    Footprint::of([], [root(kind, request)]).timed(Time::ReadsIfLeased)
}

/// The operation may read anything in the service.
pub fn all_read(kind: ServiceKind, request: &Request) -> Footprint {
    Footprint::of([root(kind, request)], []).timed(Time::ReadsIfLeased)
}

/// The operation writes a container, with all in it.
pub fn container_written(kind: ServiceKind, request: &Request) -> Footprint {
    let listed = root(kind, request).below(CONTAINERS);
    let is_lease = request.query.get("comp") == Some("lease");
    let time = if is_lease { Time::Leases } else { Time::ReadsIfLeased };
    Footprint::of([], [container(kind, request), listed]).timed(time)
}

/// The operation reads a container, with all in it.
pub fn container_read(kind: ServiceKind, request: &Request) -> Footprint {
    Footprint::of([container(kind, request)], []).timed(Time::ReadsIfLeased)
}

/// The container and the path of a source in this account. A source that may be elsewhere, or that
/// is named in another form, has none.
pub fn source(request: &Request) -> Option<(String, String)> {
    let url =
        [COPY_SOURCE, RENAME_SOURCE].into_iter().find_map(|name| text(&request.headers, name));
    let (_, path) = url?.split_once("://")?.1.split_once('/')?;
    let path = path.split('?').next().unwrap_or_default();
    let mut parts = path.splitn(3, '/').map(|part| percent_decode_str(part).decode_utf8_lossy());
    let [account, container, path] = [parts.next()?, parts.next()?, parts.next()?];
    let is_ours = account.eq_ignore_ascii_case(&request.address.account);
    is_ours.then(|| (container.to_ascii_lowercase(), path.into_owned()))
}

/// What an operation with a source reads there: a blob, or any file of a share. A source whose
/// place is not known may be anywhere in the account.
pub fn source_read(request: &Request) -> Vec<Resource> {
    let [blobs, files] = [ServiceKind::Blob, ServiceKind::File].map(|kind| root(kind, request));
    match source(request) {
        Some((container, path)) => {
            let blob = blobs.below(container.as_str()).below("blob").below(path);
            vec![blob, files.below(container)]
        }
        None => vec![blobs, files],
    }
}

/// Equal for a request that is sent again: all of its head, without what a client makes anew for
/// each attempt, and its body where that says what the request touches.
pub fn fingerprint(request: &Request) -> u64 {
    const PER_ATTEMPT: [&str; 11] = [
        "authorization",
        "connection",
        "date",
        "request-id",
        "traceparent",
        "tracestate",
        "x-client-transaction-id",
        "x-ms-client-request-id",
        "x-ms-date",
        // SDKs draw one for each attempt to get a lease.
        "x-ms-proposed-lease-id",
        "x-ms-return-client-request-id",
    ];
    let mut hasher = DefaultHasher::new();
    (request.method.as_str(), request.uri.path(), request.uri.query()).hash(&mut hasher);
    let headers = request.headers.iter();
    let mut headers: Vec<_> = headers
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .filter(|(name, _)| !PER_ATTEMPT.contains(name))
        .collect();
    headers.sort_unstable();
    headers.hash(&mut hasher);
    request.body.hash(&mut hasher);
    hasher.finish()
}
