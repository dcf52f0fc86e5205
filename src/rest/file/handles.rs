//! List Handles and Force Close Handles, on files and directories alike (LOCKING section 5).

use super::{Answer, Call};
use crate::core::stamp::rfc1123;
use crate::core::{Access, HandleId};
use crate::engine::account::ShareDenial;
use crate::engine::programs::resolved;
use crate::engine::{HandleInfo, PAGE_MAX, WhichHandles};
use crate::rest::refusal::Refusal;
use crate::rest::reply::Reply;
use crate::rest::xml::Xml;

impl Call<'_> {
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
        let mut xml = Xml::new();
        xml.open("EnumerationResults");
        xml.open("Entries");
        let mut next = None;
        // Nobody has a file of a snapshot open.
        if self.request.snapshot()?.is_none() {
            let path = self.request.path()?;
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
        let (share, path) = (self.share_to_change()?, self.request.path()?);
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
        let count = share.force_close_handles(self.who, &path, which, recursive)?;
        Ok(Reply::ok()
            .header("x-ms-number-of-handles-closed", count.closed)
            .header("x-ms-number-of-handles-failed", count.failed))
    }
}

fn write_handle(xml: &mut Xml, handle: &HandleInfo) {
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
