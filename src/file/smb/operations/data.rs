//! READ, WRITE and FLUSH. Decides that bytes go through a descriptor that is kept with the open;
//! whether they may is decided by the service.

use std::sync::atomic::Ordering;

use super::pipe;
use super::{Answer, Call};
use crate::file::rules::Rights;
use crate::file::smb::session::OpenKind;
use crate::file::smb::status::Status;
use crate::file::smb::wire::data::{ReadRequest, WriteRequest, read_answer, write_answer};

/// The last byte that a file may have.
const LAST: u64 = i64::MAX as u64;

pub fn read(call: &Call) -> Result<Answer, Status> {
    let request = ReadRequest::parse(&call.message)?;
    let open = call.open()?;
    let file = match &open.kind {
        OpenKind::File(file) => file,
        OpenKind::Pipe(pipe) => return pipe::read(pipe, request.length),
    };
    let (share, handle, offset) = (&file.share, &file.handle, request.offset);
    let site = &call.connection.site;
    let length = usize::try_from(request.length).map_err(|_| Status::INVALID_PARAMETER)?;
    if offset.checked_add(u64::from(request.length)).is_none_or(|end| end > LAST) {
        return Err(Status::INVALID_PARAMETER);
    }
    let data = call.told(if file.directory {
        share.read(handle, offset, length)
    } else {
        let cx = call.context(share, "SMB Read");
        file.through(site, |fd| share.read_through(&cx, (handle, fd), offset, length))
    })?;
    if data.len() < usize::try_from(request.minimum).unwrap_or(usize::MAX) {
        return Err(Status::END_OF_FILE);
    }
    file.position.store(offset + data.len() as u64, Ordering::Relaxed);
    Ok(Answer::of(read_answer(&data)))
}

pub fn write(call: &Call) -> Result<Answer, Status> {
    let request = WriteRequest::parse(&call.message)?;
    let open = call.open()?;
    let file = match &open.kind {
        OpenKind::File(file) => file,
        OpenKind::Pipe(pipe) => {
            pipe::write(pipe, call, request.data)?;
            return Ok(Answer::of(write_answer(request.data.len())));
        }
    };
    let (share, handle, data) = (&file.share, &file.handle, request.data);
    let site = &call.connection.site;
    let end = request.offset.checked_add(data.len() as u64);
    if end.is_none_or(|end| end > LAST) {
        return Err(Status::INVALID_PARAMETER);
    }
    call.told(if file.directory {
        share.write(handle, request.offset, data)
    } else {
        let cx = call.context(share, "SMB Write");
        file.through(site, |fd| share.write_through(&cx, (handle, fd), request.offset, data))
    })?;
    if request.write_through {
        sync(call)?;
    }
    share.tell_changed(handle);
    Ok(Answer::of(write_answer(data.len())))
}

pub fn flush(call: &Call) -> Result<Answer, Status> {
    let open = call.open()?;
    if let OpenKind::File(file) = &open.kind {
        let info = file.share.handle_info(&file.handle)?;
        let writes = [Rights::WRITE_DATA, Rights::APPEND_DATA];
        if !writes.into_iter().any(|right| info.rights.contains(right)) {
            return Err(Status::ACCESS_DENIED);
        }
        sync(call)?;
    }
    Ok(Answer::done())
}

/// Has the file's bytes on the disk.
fn sync(call: &Call) -> Result<(), Status> {
    let file = call.file()?;
    let flushed = file.through(&call.connection.site, |fd| Ok(rustix::fs::fdatasync(fd)))?;
    flushed.map_err(|errno| {
        log::error!("flushing {}: {errno}", file.lock_place());
        Status::UNEXPECTED_IO_ERROR
    })
}
