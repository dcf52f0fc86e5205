//! CREATE: the open of a file, a directory or a pipe.
//!
//! Decides which numbers of the wire are legal, and how they become a request to the service. What
//! is granted is decided there. No oplock, lease or durable handle is ever granted: REST and mounts
//! change files behind the back of a client's cache.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};

use rustix::fs::FallocateFlags;

use super::pipe::Pipe;
use super::{Answer, Call};
use crate::file::rules::create::{CreateAction, Disposition, OpenRequest, Options};
use crate::file::rules::{Attributes, Rights, ShareMode};
use crate::file::service::{FileKind, OpenedFile, Share, SmbProperties, Stat};
use crate::file::smb::names;
use crate::file::smb::session::{Open, OpenFile, OpenKind};
use crate::file::smb::status::Status;
use crate::file::smb::times::filetime;
use crate::file::smb::tree::ALL_ACCESS;
use crate::file::smb::wire::create::{
    CreateAnswer, CreateRequest, FileFacts, OPTION_DELETE_ON_CLOSE, OPTION_DIRECTORY,
    OPTION_NON_DIRECTORY,
};
use crate::file::smb::wire::{FileId, Writer};

/// Rights that nobody can ask for.
const UNKNOWN_RIGHTS: u32 = 0x0DE0_FE00;
/// Options that do not exist, and options that are not offered: opens by file ID, filters, trees.
const UNKNOWN_OPTIONS: u32 = 0xFF00_0000;
const OTHER_OPTIONS: u32 = 0x0010_2080;
/// Options that the mode of an open shows (MS-FSCC 2.4.26).
const MODES: u32 = 0x103E;
/// Attributes that a client sets; the others are the server's.
pub const SETTABLE: u32 = 0x27;
/// Attributes of volumes and devices, which nothing here has.
const UNKNOWN_ATTRIBUTES: u32 = 0x48;
/// The highest impersonation level: delegation.
const IMPERSONATION_MAX: u32 = 3;
/// Contexts that ask for what is never there: a snapshot, a durable handle of an earlier
/// connection.
const NOT_THERE: [&[u8]; 3] = [b"TWrp", b"DHnC", b"DH2C"];

pub fn create(call: &Call) -> Result<Answer, Status> {
    let request = CreateRequest::parse(&call.message)?;
    if request.impersonation > IMPERSONATION_MAX {
        return Err(Status::BAD_IMPERSONATION_LEVEL);
    }
    let Some(share) = &call.tree.share else { return pipe(call, &request) };
    let asked = asked(&request)?;
    if request.contexts.iter().any(|context| NOT_THERE.contains(&context.name)) {
        return Err(Status::OBJECT_NAME_NOT_FOUND);
    }
    let path = names::path(&request.name)?;
    // By its name each time: a reset or a restore puts another share there.
    let share = call.session.files.share(share).map_err(|_| Status::NETWORK_NAME_DELETED)?;
    let cx = call.context(&share, "SMB Create");
    let opened = call.told(share.open_waiting(&cx, &path, &asked))?;
    if matches!(opened.stat.kind, FileKind::Symlink | FileKind::Special) {
        share.close(&opened.handle)?;
        return Err(Status::OBJECT_NAME_NOT_FOUND);
    }
    enter(call, &share, &request, opened)
}

/// What the numbers of a request ask for.
fn asked(request: &CreateRequest<'_>) -> Result<OpenRequest, Status> {
    if request.access == 0 || request.access & UNKNOWN_RIGHTS != 0 {
        return Err(Status::ACCESS_DENIED);
    }
    if request.options & UNKNOWN_OPTIONS != 0 || request.attributes & UNKNOWN_ATTRIBUTES != 0 {
        return Err(Status::INVALID_PARAMETER);
    }
    if request.options & OTHER_OPTIONS != 0 {
        return Err(Status::NOT_SUPPORTED);
    }
    let share = u8::try_from(request.share).ok().filter(|share| *share <= 7);
    let disposition = match request.disposition {
        0 => Disposition::Supersede,
        1 => Disposition::Open,
        2 => Disposition::Create,
        3 => Disposition::OpenIf,
        4 => Disposition::Overwrite,
        5 => Disposition::OverwriteIf,
        _ => return Err(Status::INVALID_PARAMETER),
    };
    let has = |option| request.options & option != 0;
    let archive = if has(OPTION_DIRECTORY) { 0 } else { Attributes::ARCHIVE.bits() };
    Ok(OpenRequest {
        rights: Rights::from_bits(request.access),
        share: ShareMode::from_bits(share.ok_or(Status::INVALID_PARAMETER)?),
        disposition,
        options: Options {
            delete_on_close: has(OPTION_DELETE_ON_CLOSE),
            directory: has(OPTION_DIRECTORY),
            non_directory: has(OPTION_NON_DIRECTORY),
        },
        // MS-FSA 2.1.5.1.1: a file that is made or emptied has something to archive.
        attributes: Attributes::from_bits(request.attributes & SETTABLE | archive),
    })
}

/// Enters the open into the session, and answers.
fn enter(
    call: &Call,
    share: &Arc<Share>,
    request: &CreateRequest<'_>,
    opened: OpenedFile,
) -> Result<Answer, Status> {
    let site = &call.connection.site;
    let mut facts = facts(&opened.stat, &share.opened_properties(&opened));
    let (ino, handle) = (opened.stat.id.ino, opened.handle.id());
    let descriptor = OnceLock::new();
    if let Some(fd) = opened.made
        && let Ok(place) = Arc::clone(&site.descriptors).try_acquire_owned()
    {
        // It is the first: the lock is new.
        let _ = descriptor.set((fd, place));
    }
    let file = OpenFile {
        share: Arc::clone(share),
        directory: opened.stat.kind == FileKind::Directory,
        place: Mutex::new(format!("{}{}", share.name(), opened.path)),
        handle: opened.handle,
        share_mode: ShareMode::from_bits(request.share.to_le_bytes()[0]),
        has_read: AtomicBool::new(false),
        search: Mutex::default(),
        position: AtomicU64::new(0),
        mode: AtomicU32::new(request.options & MODES),
        descriptor,
    };
    if let Some(size) = request.context(b"AlSi")
        && opened.action != CreateAction::Opened
        && !file.directory
    {
        // Without it the file grows as it is written.
        let reserved = file.through(site, |fd| Ok(reserve(fd, size)));
        if reserved.is_ok_and(|reserved| reserved)
            && let Ok(now) = share.handle_info(&file.handle)
        {
            facts = self::facts(&now.stat, &now.smb);
        }
    }
    let id = FileId { persistent: handle.0, volatile: site.next_id() };
    let (tree, turn) = (call.tree.id, Arc::default());
    let open = Open { id, tree, kind: OpenKind::File(Box::new(file)), turn };
    let open = call.session.add_open(site, open)?;
    if opened.action != CreateAction::Opened {
        share.tell_changed(&open.file()?.handle);
    }
    let action = match opened.action {
        CreateAction::Superseded => 0,
        CreateAction::Opened => 1,
        CreateAction::Created => 2,
        CreateAction::Overwritten => 3,
    };
    let mut contexts: Vec<(&[u8; 4], Vec<u8>)> = Vec::new();
    if request.context(b"MxAc").is_some() {
        contexts.push((b"MxAc", Writer::new().u32(0).u32(ALL_ACCESS).done()));
    }
    if request.context(b"QFid").is_some() {
        contexts.push((b"QFid", Writer::new().u64(ino).zeros(24).done()));
    }
    let body = CreateAnswer { action, facts, id, contexts: &contexts }.write();
    Ok(Answer { file: Some(id), ..Answer::of(body) })
}

/// Reserves space for a new or emptied file; false if the file system cannot.
fn reserve(fd: &OwnedFd, size: &[u8]) -> bool {
    let Ok(size) = size.try_into().map(u64::from_le_bytes) else { return false };
    size > 0 && rustix::fs::fallocate(fd, FallocateFlags::KEEP_SIZE, 0, size).is_ok()
}

/// `srvsvc`, the only pipe.
fn pipe(call: &Call, request: &CreateRequest<'_>) -> Result<Answer, Status> {
    if !request.name.trim_start_matches('\\').eq_ignore_ascii_case("srvsvc") {
        return Err(Status::OBJECT_NAME_NOT_FOUND);
    }
    let site = &call.connection.site;
    let id = FileId { persistent: site.next_id(), volatile: site.next_id() };
    let kind = OpenKind::Pipe(Mutex::new(Pipe::default()));
    call.session.add_open(site, Open { id, tree: call.tree.id, kind, turn: Arc::default() })?;
    let facts = FileFacts { attributes: Attributes::NONE.bits(), ..FileFacts::default() };
    let body = CreateAnswer { action: 1, facts, id, contexts: &[] }.write();
    Ok(Answer { file: Some(id), ..Answer::of(body) })
}

/// Times, sizes and attributes as clients are told them.
pub fn facts(stat: &Stat, smb: &SmbProperties) -> FileFacts {
    let is_directory = stat.kind == FileKind::Directory;
    let bytes = |bytes| if is_directory { 0 } else { bytes };
    FileFacts {
        times: [smb.created, smb.accessed, smb.written, smb.changed].map(filetime),
        allocated: bytes(stat.allocated),
        size: bytes(stat.size),
        attributes: smb.attributes.bits(),
    }
}
