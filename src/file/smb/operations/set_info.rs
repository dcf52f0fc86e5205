//! `SET_INFO`. Decides which call of the service a class becomes; whether it may be is decided
//! there.

use std::sync::atomic::Ordering;

use super::create::SETTABLE;
use super::{Answer, Call};
use crate::file::rules::Attributes;
use crate::file::service::{BasicTimes, HandleInfo};
use crate::file::smb::names;
use crate::file::smb::status::Status;
use crate::file::smb::times::moment;
use crate::file::smb::wire::Writer;
use crate::file::smb::wire::info::{KIND_FILE, KIND_SECURITY};
use crate::file::smb::wire::set_info::{SetFile, SetInfo};

/// Modes that a client may set (MS-FSCC 2.4.26).
const SETTABLE_MODES: u32 = 0x3E;
/// `FILE_ATTRIBUTE_DIRECTORY`, which no client may set on a file.
const DIRECTORY: u32 = 0x10;
/// `FILE_ATTRIBUTE_TEMPORARY`, which no directory has.
const TEMPORARY: u32 = 0x100;

pub fn set(call: &Call) -> Result<Answer, Status> {
    let request = SetInfo::parse(&call.message)?;
    let file = call.file()?;
    match request.kind {
        KIND_FILE => {}
        // Access lists are accepted and not kept: whoever has a key may do everything.
        KIND_SECURITY => return Ok(Answer::of(Writer::answer(2).done())),
        _ => return Err(Status::NOT_SUPPORTED),
    }
    let wanted = SetFile::parse(request.class, request.data);
    let wanted = wanted.map_err(|_| Status::INFO_LENGTH_MISMATCH)?;
    let (share, handle) = (&file.share, &file.handle);
    let cx = call.context(share, "SMB SetInfo");
    match wanted.ok_or(Status::INVALID_INFO_CLASS)? {
        SetFile::Basic { times, attributes } => {
            let [created, accessed, written, changed] = times.map(moment);
            let alien = if file.directory { TEMPORARY } else { DIRECTORY };
            if attributes & alien != 0 {
                return Err(Status::INVALID_PARAMETER);
            }
            let attributes =
                (attributes != 0).then(|| Attributes::from_bits(attributes & SETTABLE));
            let times = BasicTimes { created, accessed, written, changed };
            call.told(share.set_basic(&cx, handle, attributes, times))?;
        }
        SetFile::Rename { replace, name } => {
            let (from, to) = (call.told(share.path_of(handle))?, names::path(&name)?);
            call.told(share.rename_handle(handle, &to, replace))?;
            *file.lock_place() = format!("{}{to}", share.name());
            share.note_change(&cx, &from, (None, None));
            share.note_change(&cx, &to, (None, None));
        }
        SetFile::Link { replace, name } => {
            let to = names::path(&name)?;
            call.told(share.link_handle(handle, &to, replace))?;
            share.note_change(&cx, &to, (None, None));
        }
        SetFile::Disposition(delete) => {
            // Looked up for the row alone.
            let seen = cx.noted.as_ref().and_then(|_| share.handle_info(handle).ok());
            call.told(share.set_disposition(handle, delete))?;
            if let Some(HandleInfo { path, smb, .. }) = seen {
                let etag = Some(smb.etag);
                share.note_change(&cx, &path, if delete { (etag, None) } else { (None, etag) });
            }
        }
        SetFile::Position(position) => file.position.store(position, Ordering::Relaxed),
        SetFile::Mode(mode) if mode & !SETTABLE_MODES != 0 => {
            return Err(Status::INVALID_PARAMETER);
        }
        SetFile::Mode(mode) => file.mode.store(mode, Ordering::Relaxed),
        SetFile::Allocation(size) => call.told(share.set_allocation(&cx, handle, size))?,
        SetFile::EndOfFile(size) => call.told(share.set_size(&cx, handle, size))?,
    }
    share.tell_changed(handle);
    Ok(Answer::of(Writer::answer(2).done()))
}
