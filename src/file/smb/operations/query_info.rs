//! `QUERY_INFO`. Decides where each value comes from; how a class is written is in
//! [`crate::file::smb::wire::info`].

use std::sync::atomic::Ordering;

use super::create::facts;
use super::{Answer, Call};
use crate::file::smb::names::shown;
use crate::file::smb::session::{Open, OpenFile, OpenKind};
use crate::file::smb::status::Status;
use crate::file::smb::times::filetime;
use crate::file::smb::wire::create::FileFacts;
use crate::file::smb::wire::directory::buffer_answer;
use crate::file::smb::wire::info::{
    FileState, Fitted, Info, KIND_FILE, KIND_SECURITY, KIND_VOLUME, QueryInfo,
};
use crate::file::smb::wire::volume::VolumeState;
use crate::file::smb::wire::{self, security};

/// 8.3 names, which no file has.
const ALTERNATE_NAME: u8 = 21;
/// Extended attributes, which no file has.
const FULL_EA: u8 = 15;

pub fn query(call: &Call) -> Result<Answer, Status> {
    let request = QueryInfo::parse(&call.message)?;
    let open = call.open()?;
    let info = match request.kind {
        KIND_FILE if request.class == ALTERNATE_NAME => return Err(Status::OBJECT_NAME_NOT_FOUND),
        KIND_FILE if request.class == FULL_EA => return Err(Status::EAS_NOT_SUPPORTED),
        KIND_FILE => state(open)?.info(request.class),
        KIND_VOLUME => volume(open.file()?)?.info(request.class),
        KIND_SECURITY => return Ok(descriptor(&request)),
        _ => return Err(Status::INVALID_PARAMETER),
    };
    fitted(info.ok_or(Status::INVALID_INFO_CLASS)?, request.room)
}

fn fitted(info: Info, room: u32) -> Result<Answer, Status> {
    match info.fit(room) {
        Fitted::Whole(buffer) => Ok(Answer::of(buffer_answer(&buffer))),
        Fitted::Cut(buffer) => {
            Ok(Answer { status: Status::BUFFER_OVERFLOW, ..Answer::of(buffer_answer(&buffer)) })
        }
        Fitted::TooSmall => Err(Status::INFO_LENGTH_MISMATCH),
    }
}

fn state(open: &Open) -> Result<FileState, Status> {
    let file = match &open.kind {
        OpenKind::File(file) => file,
        OpenKind::Pipe(_) => return Ok(of_pipe()),
    };
    let info = file.share.handle_info(&file.handle)?;
    Ok(FileState {
        facts: facts(&info.stat, &info.smb),
        links: info.standard.links,
        delete_pending: info.standard.delete_pending,
        directory: info.standard.directory,
        file_id: info.stat.id.ino,
        access: info.rights.bits(),
        position: file.position.load(Ordering::Relaxed),
        mode: file.mode.load(Ordering::Relaxed),
        path: shown(&info.path),
    })
}

fn of_pipe() -> FileState {
    FileState {
        facts: FileFacts { attributes: 0x80, ..FileFacts::default() },
        links: 1,
        delete_pending: true,
        directory: false,
        file_id: 0,
        access: super::super::tree::ALL_ACCESS,
        position: 0,
        mode: 0,
        path: "\\srvsvc".to_owned(),
    }
}

fn volume(file: &OpenFile) -> Result<VolumeState, Status> {
    let space = file.share.space()?;
    let label = file.share.name().to_string();
    let created = file.share.stat(&crate::file::rules::SharePath::root())?.created;
    Ok(VolumeState {
        total: space.total,
        free: space.free,
        created: filetime(created),
        // The same for a share each time, and another one for each.
        serial: label.bytes().fold(1, |all, byte| all.wrapping_mul(0x0100_0193) ^ u32::from(byte)),
        label,
    })
}

/// The descriptor must fit as a whole: a client is told the size that it needs.
fn descriptor(request: &QueryInfo<'_>) -> Answer {
    let bytes = security::descriptor(request.additional);
    let size = u32::try_from(bytes.len()).expect("a descriptor has a fixed size");
    if size > request.room {
        let body = wire::error(&size.to_le_bytes());
        return Answer { status: Status::BUFFER_TOO_SMALL, ..Answer::of(body) };
    }
    Answer::of(buffer_answer(&bytes))
}
