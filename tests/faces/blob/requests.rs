//! The requests on blobs and containers by the names that pages and tables give them.

use super::fixture::{Blobs, Got};
use crate::leases::{Headers, action};

pub const BLOCK: &str = "comp=block&blockid=AAAA";
const LIST: &[u8] = b"<BlockList><Latest>AAAA</Latest></BlockList>";
const TAGS: &[u8] = b"<Tags><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tags>";

/// What a request does to the `ETag`, and whether its answer has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Etag {
    /// The answer has the new one.
    New,
    /// The answer has the one that stays.
    Same,
    /// The answer has none.
    Absent,
}

/// A request without the name of what it is sent to.
pub struct Request {
    pub method: &'static str,
    pub query: &'static str,
    pub headers: Vec<(&'static str, String)>,
    pub body: &'static [u8],
    /// The status of its success.
    pub ok: u16,
    pub etag: Etag,
}

impl Request {
    /// Sends it to a blob or a container, as `/con/b?` or `/con?restype=container&`.
    pub fn send(&self, blobs: &Blobs, at: &str, more: Headers<'_>) -> Got {
        let own = self.headers.iter().map(|(name, value)| (*name, value.as_str()));
        let all: Vec<_> = own.chain(more.iter().copied()).collect();
        let target = format!("{at}{}", self.query);
        blobs.ask(self.method, target.trim_end_matches(['?', '&']), &all, self.body)
    }
}

/// The type of the blob that a request is for.
pub fn kind(request: &str) -> &'static str {
    match request {
        "Put Page" | "Clear Page" | "Put Page From URL" | "Get Page Ranges" | "Put Page Blob" => {
            "PageBlob"
        }
        "Append Block" | "Append Block From URL" | "Seal" | "Put Append Blob" => "AppendBlob",
        _ => "BlockBlob",
    }
}

/// The request of that name. The source of a copy is the blob `source`.
pub fn request(blobs: &Blobs, name: &str) -> Request {
    use Etag::{Absent, New, Same};
    let source = blobs.url("source");
    let source = ("x-ms-copy-source", source.as_str());
    let block = ("x-ms-blob-type", "BlockBlob");
    let sync = ("x-ms-requires-sync", "true");
    let range = ("x-ms-range", "bytes=0-511");
    let pages = [range, ("x-ms-page-write", "update")];
    let from = [pages[0], pages[1], source, ("x-ms-source-range", "bytes=0-511")];
    let clear = [range, ("x-ms-page-write", "clear")];
    let page_blob = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "1024")];
    let (method, query, headers, body, ok, etag): (_, _, &[(&str, &str)], &'static [u8], _, _) =
        match name {
            "Put Blob" => ("PUT", "", &[block], b"new", 201, New),
            "Put Page Blob" => ("PUT", "", &page_blob, b"", 201, New),
            "Put Append Blob" => ("PUT", "", &[("x-ms-blob-type", "AppendBlob")], b"", 201, New),
            "Put Block" => ("PUT", BLOCK, &[], b"new", 201, Absent),
            "Put Empty Block" => ("PUT", BLOCK, &[], b"", 201, Absent),
            "Put Block List" => ("PUT", "comp=blocklist", &[], LIST, 201, New),
            "Put Block From URL" => ("PUT", BLOCK, &[source], b"", 201, Absent),
            "Put Blob From URL" => ("PUT", "", &[source, block], b"", 201, New),
            "Copy Blob" => ("PUT", "", &[source], b"", 202, New),
            "Copy Blob From URL" => ("PUT", "", &[source, sync], b"", 202, New),
            "Put Page" => ("PUT", "comp=page", &pages, &[1; 512], 201, New),
            "Put Page From URL" => ("PUT", "comp=page", &from, b"", 201, New),
            "Clear Page" => ("PUT", "comp=page", &clear, b"", 201, New),
            "Append Block" => ("PUT", "comp=appendblock", &[], b"new", 201, New),
            "Append Block From URL" => ("PUT", "comp=appendblock", &[source], b"", 201, New),
            "Seal" => ("PUT", "comp=seal", &[], b"", 200, New),
            "Set Properties" => ("PUT", "comp=properties", &[], b"", 200, New),
            "Set Metadata" | "Set Container Metadata" => {
                ("PUT", "comp=metadata", &[], b"", 200, New)
            }
            "Set Tags" => ("PUT", "comp=tags", &[], TAGS, 204, Absent),
            "Set Tier" => ("PUT", "comp=tier", &[("x-ms-access-tier", "Cool")], b"", 200, Absent),
            "Legal Hold" => {
                ("PUT", "comp=legalhold", &[("x-ms-legal-hold", "false")], b"", 200, Absent)
            }
            "Undelete" => ("PUT", "comp=undelete", &[], b"", 200, Absent),
            "Snapshot" => ("PUT", "comp=snapshot", &[], b"", 201, Same),
            "Delete" | "Delete Container" => ("DELETE", "", &[], b"", 202, Absent),
            "Get Blob" | "Get Container Properties" => ("GET", "", &[], b"", 200, Same),
            "Get Properties" => ("HEAD", "", &[], b"", 200, Same),
            "Get Metadata" => ("HEAD", "comp=metadata", &[], b"", 200, Same),
            "Get Metadata by GET" | "Get Container Metadata" => {
                ("GET", "comp=metadata", &[], b"", 200, Same)
            }
            "Get Block List" => ("GET", "comp=blocklist&blocklisttype=all", &[], b"", 200, Same),
            "Get Page Ranges" => ("GET", "comp=pagelist", &[], b"", 200, Same),
            "Get Tags" => ("GET", "comp=tags", &[], b"", 200, Absent),
            "Get Container ACL" => ("GET", "comp=acl", &[], b"", 200, Same),
            "Set Container ACL" => ("PUT", "comp=acl", &[], b"", 200, New),
            "List Blobs" => ("GET", "comp=list", &[], b"", 200, Absent),
            "Lease acquire" | "Lease Container" | "acquire" => return lease("acquire -1 -"),
            action => match action.split_once(' ') {
                Some(("acquire", proposed)) => return lease(&format!("acquire -1 {proposed}")),
                _ => return lease(action),
            },
        };
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Request { method, query, headers, body, ok, etag }
}

/// A lease action.
fn lease(words: &str) -> Request {
    let ok = match words.split(' ').next() {
        Some("acquire") => 201,
        Some("break") => 202,
        _ => 200,
    };
    let (headers, query) = (action(words), "comp=lease");
    Request { method: "PUT", query, headers, body: b"", ok, etag: Etag::Same }
}

/// Makes a blob of the type that a request is for, with the tag `t` and a block that is not
/// committed; its address.
pub fn blob_for(blobs: &Blobs, request: &str, name: &str) -> String {
    let kind = kind(request);
    let mut headers = vec![("x-ms-blob-type", kind), ("x-ms-tags", "t=1")];
    if kind == "PageBlob" {
        headers.push(("x-ms-blob-content-length", "1024"));
    }
    blobs.put(&format!("/con/{name}"), &headers).is(201);
    if kind == "BlockBlob" {
        blobs.ask("PUT", &format!("/con/{name}?{BLOCK}"), &[], b"staged").is(201);
    }
    format!("/con/{name}?")
}

/// Makes a container; its address.
pub fn container(blobs: &Blobs, name: &str) -> String {
    let at = format!("/con-{name}?restype=container&");
    blobs.put(at.trim_end_matches('&'), &[]).is(201);
    at
}
