//! Which operation a request asks for: one table, read from the top (FILEREST section 2).
//!
//! By method, how far the path goes, `restype`, `comp`, and a header where these do not tell. The
//! names are those of the service's own description. A request that fits no row is a bad one; one
//! that fits but for its method is told so.

use hyper::{Method, StatusCode};

use super::address::Level;
use super::refusal::Refusal;
use super::request::Request;

use Operation as Op;

/// The operations, and what each is called.
macro_rules! operations {
    ($($name:ident,)*) => {
        /// An operation of the File service.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[allow(missing_docs, reason = "each is what its name says, and the service says more")]
        pub enum Operation {
            $($name,)*
        }

        impl Operation {
            /// As the service's own description calls it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
        }
    };
}

operations! {
    ServicePreflight,
    ServiceSetProperties,
    ServiceGetProperties,
    ServiceListSharesSegment,
    ServiceGetUserDelegationKey,
    ShareCreate,
    ShareGetProperties,
    ShareDelete,
    ShareAcquireLease,
    ShareReleaseLease,
    ShareChangeLease,
    ShareRenewLease,
    ShareBreakLease,
    ShareCreateSnapshot,
    ShareCreatePermission,
    ShareGetPermission,
    ShareSetProperties,
    ShareGetMetadata,
    ShareSetMetadata,
    ShareGetAccessPolicy,
    ShareSetAccessPolicy,
    ShareGetStatistics,
    ShareRestore,
    DirectoryCreate,
    DirectoryGetProperties,
    DirectoryDelete,
    DirectorySetProperties,
    DirectorySetMetadata,
    DirectoryListFilesAndDirectoriesSegment,
    DirectoryListHandles,
    DirectoryForceCloseHandles,
    DirectoryRename,
    FileCreate,
    FileDownload,
    FileGetProperties,
    FileDelete,
    FileSetHttpHeaders,
    FileSetMetadata,
    FileAcquireLease,
    FileReleaseLease,
    FileChangeLease,
    FileBreakLease,
    FileUploadRange,
    FileUploadRangeFromURL,
    FileGetRangeList,
    FileStartCopy,
    FileAbortCopy,
    FileListHandles,
    FileForceCloseHandles,
    FileRename,
    FileCreateSymbolicLink,
    FileGetSymbolicLink,
    FileCreateHardLink,
}

/// What tells two operations apart that are alike otherwise.
#[derive(Clone, Copy)]
pub(super) enum When {
    Always,
    /// The header is there.
    Has(&'static str),
    /// The header has this value.
    Is(&'static str, &'static str),
}

/// One row: methods, levels, `restype`, `comp`, header.
pub(super) struct Row {
    pub methods: &'static [Verb],
    pub levels: &'static [Level],
    pub restype: &'static str,
    pub comp: &'static str,
    pub when: When,
    pub operation: Operation,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    Head,
    Put,
    Delete,
    Post,
}

impl Verb {
    fn of(method: &Method) -> Option<Self> {
        Some(match *method {
            Method::GET => Self::Get,
            Method::HEAD => Self::Head,
            Method::PUT => Self::Put,
            Method::DELETE => Self::Delete,
            Method::POST => Self::Post,
            _ => return None,
        })
    }
}

const GET: &[Verb] = &[Verb::Get];
/// The service takes HEAD for these too (FILEREST section 5, notes).
const LOOK: &[Verb] = &[Verb::Get, Verb::Head];
const HEAD: &[Verb] = &[Verb::Head];
const PUT: &[Verb] = &[Verb::Put];
const DELETE: &[Verb] = &[Verb::Delete];
const POST: &[Verb] = &[Verb::Post];

const SERVICE: &[Level] = &[Level::Service];
const SHARE: &[Level] = &[Level::Share];
const PATH: &[Level] = &[Level::Path];
/// The root of a share is a directory too.
const DIRECTORY: &[Level] = &[Level::Share, Level::Path];

const ACTION: &str = "x-ms-lease-action";

/// A row that no header matters to.
const fn row(
    methods: &'static [Verb],
    levels: &'static [Level],
    restype: &'static str,
    comp: &'static str,
    operation: Operation,
) -> Row {
    Row { methods, levels, restype, comp, when: When::Always, operation }
}

/// A row that a header tells from its neighbours.
const fn row_when(
    methods: &'static [Verb],
    levels: &'static [Level],
    (restype, comp): (&'static str, &'static str),
    when: When,
    operation: Operation,
) -> Row {
    Row { methods, levels, restype, comp, when, operation }
}

const SHARE_LEASE: (&str, &str) = ("share", "lease");
const FILE_LEASE: (&str, &str) = ("", "lease");
const RECURSIVE: When = When::Has("x-ms-recursive");
const COPY_SOURCE: When = When::Has("x-ms-copy-source");

pub(super) static TABLE: [Row; 56] = [
    row(PUT, SERVICE, "service", "properties", Op::ServiceSetProperties),
    row(GET, SERVICE, "service", "properties", Op::ServiceGetProperties),
    row(GET, SERVICE, "", "list", Op::ServiceListSharesSegment),
    row(POST, SERVICE, "service", "userdelegationkey", Op::ServiceGetUserDelegationKey),
    row(PUT, SHARE, "share", "", Op::ShareCreate),
    row(LOOK, SHARE, "share", "", Op::ShareGetProperties),
    row(DELETE, SHARE, "share", "", Op::ShareDelete),
    row_when(PUT, SHARE, SHARE_LEASE, When::Is(ACTION, "acquire"), Op::ShareAcquireLease),
    row_when(PUT, SHARE, SHARE_LEASE, When::Is(ACTION, "release"), Op::ShareReleaseLease),
    row_when(PUT, SHARE, SHARE_LEASE, When::Is(ACTION, "change"), Op::ShareChangeLease),
    row_when(PUT, SHARE, SHARE_LEASE, When::Is(ACTION, "renew"), Op::ShareRenewLease),
    row_when(PUT, SHARE, SHARE_LEASE, When::Is(ACTION, "break"), Op::ShareBreakLease),
    row(PUT, SHARE, "share", "snapshot", Op::ShareCreateSnapshot),
    row(PUT, SHARE, "share", "filepermission", Op::ShareCreatePermission),
    row(GET, SHARE, "share", "filepermission", Op::ShareGetPermission),
    row(PUT, SHARE, "share", "properties", Op::ShareSetProperties),
    row(LOOK, SHARE, "share", "metadata", Op::ShareGetMetadata),
    row(PUT, SHARE, "share", "metadata", Op::ShareSetMetadata),
    row(LOOK, SHARE, "share", "acl", Op::ShareGetAccessPolicy),
    row(PUT, SHARE, "share", "acl", Op::ShareSetAccessPolicy),
    row(GET, SHARE, "share", "stats", Op::ShareGetStatistics),
    row(PUT, SHARE, "share", "undelete", Op::ShareRestore),
    row(PUT, DIRECTORY, "directory", "", Op::DirectoryCreate),
    row(LOOK, DIRECTORY, "directory", "", Op::DirectoryGetProperties),
    row(LOOK, DIRECTORY, "directory", "metadata", Op::DirectoryGetProperties),
    row(DELETE, DIRECTORY, "directory", "", Op::DirectoryDelete),
    row(PUT, DIRECTORY, "directory", "properties", Op::DirectorySetProperties),
    row(PUT, DIRECTORY, "directory", "metadata", Op::DirectorySetMetadata),
    row(GET, DIRECTORY, "directory", "list", Op::DirectoryListFilesAndDirectoriesSegment),
    row(PUT, PATH, "directory", "rename", Op::DirectoryRename),
    // These two have no `restype`, for directories either: what the path names decides.
    row(GET, SHARE, "", "listhandles", Op::DirectoryListHandles),
    row_when(GET, PATH, ("", "listhandles"), RECURSIVE, Op::DirectoryListHandles),
    row(GET, PATH, "", "listhandles", Op::FileListHandles),
    row(PUT, SHARE, "", "forceclosehandles", Op::DirectoryForceCloseHandles),
    row_when(PUT, PATH, ("", "forceclosehandles"), RECURSIVE, Op::DirectoryForceCloseHandles),
    row(PUT, PATH, "", "forceclosehandles", Op::FileForceCloseHandles),
    row_when(PUT, PATH, ("", ""), COPY_SOURCE, Op::FileStartCopy),
    row(PUT, PATH, "", "", Op::FileCreate),
    row(GET, PATH, "", "", Op::FileDownload),
    row(HEAD, PATH, "", "", Op::FileGetProperties),
    row(LOOK, PATH, "", "metadata", Op::FileGetProperties),
    row(DELETE, PATH, "", "", Op::FileDelete),
    row(PUT, PATH, "", "properties", Op::FileSetHttpHeaders),
    row(PUT, PATH, "", "metadata", Op::FileSetMetadata),
    row_when(PUT, PATH, FILE_LEASE, When::Is(ACTION, "acquire"), Op::FileAcquireLease),
    row_when(PUT, PATH, FILE_LEASE, When::Is(ACTION, "release"), Op::FileReleaseLease),
    row_when(PUT, PATH, FILE_LEASE, When::Is(ACTION, "change"), Op::FileChangeLease),
    row_when(PUT, PATH, FILE_LEASE, When::Is(ACTION, "break"), Op::FileBreakLease),
    row_when(PUT, PATH, ("", "range"), COPY_SOURCE, Op::FileUploadRangeFromURL),
    row(PUT, PATH, "", "range", Op::FileUploadRange),
    row(GET, PATH, "", "rangelist", Op::FileGetRangeList),
    row(PUT, PATH, "", "copy", Op::FileAbortCopy),
    row(PUT, PATH, "", "rename", Op::FileRename),
    row(PUT, PATH, "symboliclink", "", Op::FileCreateSymbolicLink),
    row(GET, PATH, "symboliclink", "", Op::FileGetSymbolicLink),
    row(PUT, PATH, "hardlink", "", Op::FileCreateHardLink),
];

/// The operation a request asks for.
pub fn route(request: &Request) -> Result<Operation, Refusal> {
    let level = request.address.level();
    let restype = request.query.get("restype").unwrap_or_default();
    let comp = request.query.get("comp").unwrap_or_default();
    // A preflight is about another request, whatever that one names.
    if request.method == Method::OPTIONS {
        return Ok(Operation::ServicePreflight);
    }
    let verb = Verb::of(&request.method);
    let named: Vec<_> = TABLE
        .iter()
        .filter(|row| row.levels.contains(&level))
        .filter(|row| row.restype.eq_ignore_ascii_case(restype))
        .filter(|row| row.comp.eq_ignore_ascii_case(comp))
        .collect();
    let of_verb = |row: &&&Row| verb.is_some_and(|verb| row.methods.contains(&verb));
    for row in named.iter().filter(of_verb) {
        if row.when.holds(request)? {
            return Ok(row.operation);
        }
    }
    match named.iter().find(of_verb).map(|row| row.when) {
        Some(When::Is(name, _)) => {
            let text = request.required(name)?;
            Err(Refusal::header(name, text, "it names no action"))
        }
        _ if named.is_empty() => Err(unknown(restype, comp)),
        _ => Err(Refusal::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "UnsupportedHttpVerb",
            "The resource does not support the method of the request.",
        )),
    }
}

fn unknown(restype: &str, comp: &str) -> Refusal {
    let (name, value) = if comp.is_empty() { ("restype", restype) } else { ("comp", comp) };
    if value.is_empty() {
        return Refusal::bad("InvalidUri", "The path alone names nothing to do here.");
    }
    Refusal::query(name, value, "it names no operation on this resource")
}

impl When {
    fn holds(self, request: &Request) -> Result<bool, Refusal> {
        Ok(match self {
            Self::Always => true,
            Self::Has(name) => request.headers.contains_key(name),
            Self::Is(name, value) => {
                request.header(name)?.is_some_and(|given| given.eq_ignore_ascii_case(value))
            }
        })
    }
}
