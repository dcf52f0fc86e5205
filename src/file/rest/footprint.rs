//! What requests to the File service read and write: which file a request names. What that
//! comprises is decided in [`crate::file::rules::footprint`].

use crate::file::rules::footprint::{self, file, share};
use crate::http::frame::footprint::{all_written, root, source, source_read};
use crate::http::request::Request;
use crate::rules::footprint::{Footprint, Resource};
use crate::rules::service::ServiceKind::File;

fn named(request: &Request) -> Resource {
    let address = &request.address;
    file(&address.account, address.container.as_deref().unwrap_or_default(), &address.path())
}

pub(super) fn of_file(changes: bool, request: &Request) -> Footprint {
    let touches = if changes { footprint::written } else { footprint::read };
    touches(named(request))
}

pub(super) fn listed(request: &Request) -> Footprint {
    footprint::listed(named(request), request.query.get("prefix").unwrap_or_default())
}

/// The lease of a file is infinite: no time matters.
pub(super) fn leased(request: &Request) -> Footprint {
    Footprint::of([], [named(request)])
}

pub(super) fn copied(request: &Request) -> Footprint {
    Footprint { reads: source_read(request), ..footprint::written(named(request)) }
}

pub(super) fn renamed(request: &Request) -> Footprint {
    let Some((share, path)) = source(request) else { return all_written(File, request) };
    let mut found = footprint::written(named(request));
    found.writes.push(file(&request.address.account, &share, &path));
    found
}

/// A hard link is another name of a file that is already there.
pub(super) fn linked(request: &Request) -> Footprint {
    let name = request.address.container.as_deref().unwrap_or_default();
    Footprint::of([root(File, request)], [share(&request.address.account, name)])
}
