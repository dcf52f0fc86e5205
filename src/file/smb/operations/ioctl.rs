//! IOCTL. Decides which control codes are answered: the check of the negotiation, calls on a pipe,
//! and the ID of a file; all else is a clean no.

use super::{Answer, Call, pipe};
use crate::file::smb::logon::security_mode;
use crate::file::smb::session::OpenKind;
use crate::file::smb::status::Status;
use crate::file::smb::wire::Writer;
use crate::file::smb::wire::ioctl::{
    CREATE_OR_GET_OBJECT_ID, DFS_GET_REFERRALS, DFS_GET_REFERRALS_EX, IoctlRequest,
    PIPE_TRANSCEIVE, VALIDATE_NEGOTIATE_INFO, ioctl_answer,
};
use crate::file::smb::wire::negotiate::{NegotiateCheck, SMB_3_1_1, validated};
use crate::rules::FileId;

pub fn ioctl(call: &Call) -> Result<Answer, Status> {
    let request = IoctlRequest::parse(&call.message)?;
    if !request.is_fsctl {
        return Err(Status::NOT_SUPPORTED);
    }
    match request.code {
        VALIDATE_NEGOTIATE_INFO => validate(call, &request),
        PIPE_TRANSCEIVE => {
            let OpenKind::Pipe(pipe) = &call.open()?.kind else {
                return Err(Status::NOT_SUPPORTED);
            };
            pipe::write(pipe, call, request.input)?;
            let (output, status) = pipe::take(pipe, request.max_output)?;
            Ok(Answer { status, ..Answer::of(ioctl_answer(request.code, request.id, &output)) })
        }
        CREATE_OR_GET_OBJECT_ID => {
            let FileId { ino, born } = call.file()?.handle.file();
            let id = Writer::new().u64(ino).u64(born.cast_unsigned()).done();
            // The ID, the volume of its birth, the ID at its birth, and no domain.
            let output = [&*id, &[0; 16], &*id, &[0; 16]].concat();
            Ok(Answer::of(ioctl_answer(request.code, request.id, &output)))
        }
        DFS_GET_REFERRALS | DFS_GET_REFERRALS_EX => Err(Status::FS_DRIVER_REQUIRED),
        _ => call.open().and(Err(Status::NOT_SUPPORTED)),
    }
}

/// A client of 2.x and 3.0 makes sure that nobody changed its first message. If somebody did, the
/// connection ends without an answer.
fn validate(call: &Call, request: &IoctlRequest<'_>) -> Result<Answer, Status> {
    let negotiated = call.negotiated();
    let check = NegotiateCheck::parse(request.input)?;
    if negotiated.dialect == SMB_3_1_1 || !check.matches(&negotiated.offer) {
        call.connection.cut();
        return Err(Status::ACCESS_DENIED);
    }
    let site = &call.connection.site;
    let mode = security_mode(site);
    let output = validated(negotiated.capabilities, &site.guid, mode, negotiated.dialect);
    Ok(Answer::of(ioctl_answer(request.code, request.id, &output)))
}
