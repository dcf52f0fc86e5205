//! What requests to the File service read and write: which file a request names. What that
//! comprises is decided in [`crate::file::rules::footprint`].

use crate::file::rules::footprint::{FileResources, share};
use crate::http::frame::footprint::{all_written, root, source, source_read};
use crate::http::request::Request;
use crate::rules::footprint::Footprint;
use crate::rules::service::ServiceKind::File;

fn named(request: &Request) -> FileResources {
    let address = &request.address;
    let share = address.container.as_deref().unwrap_or_default();
    FileResources::new(&address.account, share, &address.path())
}

pub(super) fn of_file(changes: bool, request: &Request) -> Footprint {
    if changes { named(request).written() } else { named(request).read() }
}

pub(super) fn directory_read(request: &Request) -> Footprint {
    named(request).directory_read()
}

pub(super) fn listed(request: &Request) -> Footprint {
    named(request).listed(request.query.get("prefix").unwrap_or_default())
}

pub(super) fn leased(request: &Request) -> Footprint {
    // The lease of a file is infinite: no time matters.
    Footprint { time: None, ..named(request).written() }
}

pub(super) fn copied(request: &Request) -> Footprint {
    let mut found = named(request).written();
    found.reads = source_read(request);
    found
}

pub(super) fn renamed(request: &Request) -> Footprint {
    let Some((share, path)) = source(request) else { return all_written(File, request) };
    let mut found = named(request).written();
    found
        .writes
        .extend(FileResources::new(&request.address.account, &share, &path).written().writes);
    found
}

/// A hard link is another name of a file that is already there.
pub(super) fn linked(request: &Request) -> Footprint {
    let name = request.address.container.as_deref().unwrap_or_default();
    Footprint::of([root(File, request)], [share(&request.address.account, name)])
}
