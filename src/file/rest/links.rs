//! Create Symbolic Link, Get Symbolic Link and Create Hard Link. The service has them on NFS
//! shares; here every share has them, as its mount does.

use hyper::StatusCode;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::FileCall;
use super::rest_path::rest_path;
use crate::file::service::{Creation, FileProperties};
use crate::http::auth::{GrantedBy, SasScope};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::reply::Reply;
use crate::rules::time::iso;

const TEXT: &str = "x-ms-link-text";

/// The characters of a link's text that an answer escapes, beside those beyond ASCII: a header
/// cannot carry them. Clients decode the text.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

/// The permission bits of every symbolic link.
const SYMLINK_MODE: u32 = 0o777;

impl FileCall<'_> {
    pub(super) fn create_symbolic_link(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.path()?);
        let text = self.request.required(TEXT)?;
        let id = |name: &str| self.request.parsed::<u32>(name, "it must be a number");
        let creation = Creation {
            mode: SYMLINK_MODE,
            uid: id("x-ms-owner")?.unwrap_or_else(|| rustix::process::geteuid().as_raw()),
            gid: id("x-ms-group")?.unwrap_or_else(|| rustix::process::getegid().as_raw()),
        };
        let made = share.create_symbolic_link(self.cx(), &path, text, creation)?;
        Ok(linked(&made, "SymLink").written())
    }

    pub(super) fn get_symbolic_link(&self) -> Answer {
        let path = self.path()?;
        let found = match self.snapshot()? {
            Some(snapshot) => self.engine()?.snapshot(self.share()?, &snapshot)?.link(&path)?,
            None => self.live_share()?.symbolic_link(&path)?,
        };
        let Some((link, text)) = found else {
            let why = "it is not a symbolic link";
            return Err(Refusal::explained(StatusCode::NOT_FOUND, "ResourceNotFound", why));
        };
        let reply = Reply::ok().version(link.etag, link.last_modified);
        Ok(reply.header(TEXT, utf8_percent_encode(&text, ESCAPED)))
    }

    pub(super) fn create_hard_link(&self) -> Answer {
        const TYPE: &str = "x-ms-type";
        let (share, path) = (self.share_to_change()?, self.path()?);
        let kind = self.request.required(TYPE)?;
        if !kind.eq_ignore_ascii_case("file") {
            return Err(Refusal::header(TYPE, kind, "it must be file"));
        }
        if matches!(&self.grant.by, GrantedBy::Sas { scope: SasScope::Object, .. }) {
            let why = "the SAS of one file grants nothing on the target of a hard link";
            let code = "AuthorizationResourceTypeMismatch";
            return Err(Refusal::explained(StatusCode::FORBIDDEN, code, why));
        }
        // A path from the root of the share, which clients do not encode.
        let target = self.request.required("x-ms-file-target-file")?.replace('%', "%25");
        let target = target.strip_prefix('/').unwrap_or(&target);
        let target = rest_path(target, self.flag("x-ms-allow-trailing-dot")?)?;
        let made = share.create_hard_link(self.asking()?, &target, &path)?;
        Ok(linked(&made, "Regular").header("x-ms-link-count", made.stat.links).written())
    }
}

/// The answer about a link that was made: the properties of NFS in place of those of SMB.
fn linked(made: &FileProperties, kind: &str) -> Reply {
    let FileProperties { stat, parent, .. } = made;
    let smb = made.smb();
    Reply::created()
        .version(smb.etag, smb.last_modified)
        .header("x-ms-file-creation-time", iso(smb.created))
        .header("x-ms-file-last-write-time", iso(smb.written))
        .header("x-ms-file-change-time", iso(smb.changed))
        .header("x-ms-file-id", stat.id.ino)
        .header("x-ms-file-parent-id", parent.ino)
        .header("x-ms-mode", format!("{:04o}", stat.mode & 0o7777))
        .header("x-ms-owner", stat.uid)
        .header("x-ms-group", stat.gid)
        .header("x-ms-file-file-type", kind)
}
