//! Every REST operation on a file, each as one request that succeeds if nothing stands in its way.

use super::http::Got;
use super::meeting::{BYTES, Subject};
use latchfs::rules::LeaseId;
use latchfs::rules::lease::LeaseAction;

/// The lease that tests take.
pub const LEASE: &str = "11111111-2222-3333-4444-555555555555";
/// An ID that nobody holds.
pub const OTHER: &str = "99999999-2222-3333-4444-555555555555";

/// The header with the lease ID of the request.
pub const fn lease(id: &str) -> (&str, &str) {
    ("x-ms-lease-id", id)
}

/// An operation. `From` has the file as its source, `Onto` as its destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    Get,
    Head,
    Metadata,
    Ranges,
    Put,
    Clear,
    PutOnto,
    PutFrom,
    SetHeaders,
    SetAttributes,
    Resize,
    SetMetadata,
    Create,
    Delete,
    Acquire,
    Change,
    Release,
    Break,
    CopyOnto,
    CopyFrom,
    Abort,
    RenameOnto,
    RenameFrom,
    ListHandles,
    ForceClose,
}

use Call as C;

impl Call {
    /// Looks at the file and not into it.
    pub const LOOKS: [Call; 2] = [C::Head, C::Metadata];
    pub const READS: [Call; 2] = [C::Get, C::Ranges];
    pub const PUTS: [Call; 2] = [C::Put, C::Clear];
    /// Changes what is said of it.
    pub const SETS: [Call; 4] = [C::SetHeaders, C::SetAttributes, C::Resize, C::SetMetadata];
    /// Takes the file as a whole.
    pub const WHOLE: [Call; 3] = [C::Create, C::Delete, C::Acquire];
    /// All that asks anything of a file; List Handles and Force Close Handles do not.
    pub const ASKING: [Call; 23] = [
        C::Get,
        C::Head,
        C::Metadata,
        C::Ranges,
        C::Put,
        C::Clear,
        C::PutOnto,
        C::PutFrom,
        C::SetHeaders,
        C::SetAttributes,
        C::Resize,
        C::SetMetadata,
        C::Create,
        C::Delete,
        C::Acquire,
        C::Change,
        C::Release,
        C::Break,
        C::CopyOnto,
        C::CopyFrom,
        C::Abort,
        C::RenameOnto,
        C::RenameFrom,
    ];

    /// The status of success.
    pub fn done(self) -> u16 {
        match self {
            C::Put | C::Clear | C::PutOnto | C::PutFrom | C::Create | C::Acquire => 201,
            C::Delete | C::Break | C::CopyOnto | C::CopyFrom => 202,
            C::Abort => 204,
            _ => 200,
        }
    }

    /// Sends it. A partner it needs is made beside the file.
    pub fn send(self, file: &Subject<'_>, more: &[(&str, &str)]) -> Got {
        let url = match self {
            C::PutOnto | C::CopyOnto | C::RenameOnto => {
                let source = file.beside(".source");
                source.at.upload(&source.name, BYTES);
                source.at.url(&source.name)
            }
            _ => file.at.url(&file.name),
        };
        let target = match self {
            C::PutFrom => {
                let target = file.beside(".target");
                target.at.upload(&target.name, BYTES);
                target.target()
            }
            C::CopyFrom | C::RenameFrom => file.beside(".target").target(),
            _ => file.target(),
        };
        let (method, query) = self.request();
        let mut headers = self.headers(&url);
        headers.extend_from_slice(more);
        let body: &[u8] = if self == C::Put { b"AB" } else { b"" };
        file.at.ask(method, &format!("{target}{query}"), &headers, body)
    }

    fn request(self) -> (&'static str, &'static str) {
        match self {
            C::Get => ("GET", ""),
            C::Head => ("HEAD", ""),
            C::Metadata => ("GET", "?comp=metadata"),
            C::Ranges => ("GET", "?comp=rangelist"),
            C::Put | C::Clear | C::PutOnto | C::PutFrom => ("PUT", "?comp=range"),
            C::SetHeaders | C::SetAttributes | C::Resize => ("PUT", "?comp=properties"),
            C::SetMetadata => ("PUT", "?comp=metadata"),
            C::Create | C::CopyOnto | C::CopyFrom => ("PUT", ""),
            C::Delete => ("DELETE", ""),
            C::Acquire | C::Change | C::Release | C::Break => ("PUT", "?comp=lease"),
            C::Abort => ("PUT", "?comp=copy&copyid=1"),
            C::RenameOnto | C::RenameFrom => ("PUT", "?comp=rename"),
            C::ListHandles => ("GET", "?comp=listhandles"),
            C::ForceClose => ("PUT", "?comp=forceclosehandles"),
        }
    }

    fn headers(self, url: &str) -> Vec<(&str, &str)> {
        const ACTION: &str = "x-ms-lease-action";
        let first = ("x-ms-range", "bytes=0-1");
        match self {
            C::Get | C::Head | C::Metadata | C::Ranges | C::Delete | C::ListHandles => vec![],
            C::Put => vec![first, ("x-ms-write", "update")],
            C::Clear => vec![first, ("x-ms-write", "clear")],
            C::PutOnto | C::PutFrom => vec![
                first,
                ("x-ms-write", "update"),
                ("x-ms-source-range", "bytes=0-1"),
                ("x-ms-copy-source", url),
            ],
            C::SetHeaders => vec![("x-ms-content-type", "text/plain")],
            C::SetAttributes => vec![("x-ms-file-attributes", "Archive")],
            C::Resize => vec![("x-ms-content-length", "9")],
            C::SetMetadata => vec![("x-ms-meta-colour", "blue")],
            C::Create => vec![("x-ms-type", "file"), ("x-ms-content-length", "10")],
            C::Acquire => vec![
                (ACTION, "acquire"),
                ("x-ms-lease-duration", "-1"),
                ("x-ms-proposed-lease-id", LEASE),
            ],
            C::Change => {
                vec![(ACTION, "change"), lease(LEASE), ("x-ms-proposed-lease-id", OTHER)]
            }
            C::Release => vec![(ACTION, "release"), lease(LEASE)],
            C::Break => vec![(ACTION, "break")],
            C::CopyOnto | C::CopyFrom => vec![("x-ms-copy-source", url)],
            C::Abort => vec![("x-ms-copy-action", "abort")],
            C::RenameOnto | C::RenameFrom => vec![
                ("x-ms-file-rename-source", url),
                ("x-ms-file-rename-replace-if-exists", "true"),
            ],
            C::ForceClose => vec![("x-ms-handle-id", "1")],
        }
    }
}

/// A request to acquire a lease.
pub fn acquire(duration: i64, proposed: Option<LeaseId>) -> LeaseAction {
    let fresh = latchfs::sync::random::lease_id();
    LeaseAction::Acquire { duration: Some(duration), proposed, fresh }
}
