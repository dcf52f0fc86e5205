//! List Handles and Force Close Handles, on files and directories alike. Which handles there are,
//! and what a forced close ends, is decided by the engine.

use super::FileCall;
use crate::file::rules::Access;
use crate::file::service::shares::ShareDenial;
use crate::file::service::{ListedHandle, PAGE_MAX, WhichHandles};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::reply::Reply;
use crate::http::xml::Xml;
use crate::journal::programs::resolved;
use crate::rules::HandleId;
use crate::rules::time::rfc1123;

impl FileCall<'_> {
    pub(super) fn list_handles(&self) -> Answer {
        let recursive = self.request.flag("x-ms-recursive")?;
        let limit = self.request.page_size(PAGE_MAX)?;
        let after = match self.request.query.get("marker") {
            None => None,
            Some(text) => {
                let number = text.parse().map_err(|_| ShareDenial::InvalidContinuationToken)?;
                Some(HandleId(number))
            }
        };
        let mut xml = Xml::default();
        xml.open("EnumerationResults");
        xml.open("Entries");
        let mut next = None;
        let path = self.path()?;
        if let Some(snapshot) = self.snapshot()? {
            // Nobody has a file of a snapshot open, but the file must be there.
            self.engine()?.snapshot(self.share()?, &snapshot)?.lookup(&path)?;
        } else {
            let page = self.live_share()?.list_handles(&path, recursive, after, limit)?;
            for handle in &page.handles {
                write_handle(&mut xml, handle);
            }
            next = page.next;
        }
        xml.close("Entries");
        xml.text("NextMarker", &next.map(|next| next.to_string()).unwrap_or_default());
        xml.close("EnumerationResults");
        Ok(Reply::ok().xml(xml))
    }

    pub(super) fn force_close_handles(&self) -> Answer {
        const NAME: &str = "x-ms-handle-id";
        let (share, path) = (self.share_to_change()?, self.path()?);
        let which = match self.request.required(NAME)? {
            "*" => WhichHandles::All,
            text => {
                let number = text
                    .parse()
                    .map_err(|_| Refusal::header(NAME, text, "it must be a handle ID or *"))?;
                WhichHandles::One(HandleId(number))
            }
        };
        let recursive = self.request.flag("x-ms-recursive")?;
        let count = share.force_close_handles(self.cx(), &path, which, recursive)?;
        Ok(Reply::ok()
            .header("x-ms-number-of-handles-closed", count.closed)
            .header("x-ms-number-of-handles-failed", count.failed))
    }
}

fn write_handle(xml: &mut Xml, handle: &ListedHandle) {
    xml.open("Handle");
    xml.text("HandleId", &handle.id.to_string());
    xml.file_name("Path", handle.path.as_str());
    xml.text("FileId", &handle.file.ino.to_string());
    xml.text("ParentId", &handle.parent.ino.to_string());
    xml.text("SessionId", &handle.owner.client.session.to_string());
    // Every holder is on this machine.
    xml.text("ClientIp", "127.0.0.1");
    xml.text("ClientName", &resolved(&handle.owner).to_string());
    xml.text("OpenTime", &rfc1123(handle.since));
    xml.open("AccessRightList");
    for (right, name) in [(Access::R, "Read"), (Access::W, "Write"), (Access::D, "Delete")] {
        if handle.access.contains(right) {
            xml.text("AccessRight", name);
        }
    }
    xml.close("AccessRightList");
    xml.close("Handle");
}
