//! List Directories and Files: a page of a directory, of the share or of a snapshot.
//!
//! Decides the marker: the last name of the page in base64, since a name may hold what XML cannot
//! carry.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::FileCall;
use crate::file::rules::SharePath;
use crate::file::service::shares::{ShareDenial, SnapshotName};
use crate::file::service::{DirectoryEntry, DirectoryPage, FileKind, PAGE_MAX, PageOptions};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::reply::Reply;
use crate::http::xml::{Xml, encoded, is_xml};
use crate::rules::time::{iso, rfc1123};

/// The properties of each entry that are shown beside name, size and identity.
struct Include(Vec<String>);

impl Include {
    fn has(&self, what: &str) -> bool {
        self.0.iter().any(|word| word == what || word == "all")
    }
}

impl FileCall<'_> {
    pub(super) fn list_directory(&self) -> Answer {
        let query = &self.request.query;
        let include = Include(query.words("include"));
        let limit = self.request.page_size(PAGE_MAX)?;
        let after = query.get("marker").map(name_of).transpose()?;
        let options = PageOptions {
            prefix: query.get("prefix").unwrap_or_default(),
            after: after.as_deref(),
            limit,
            smb: !include.0.is_empty(),
            pending: false,
        };
        let path = self.path()?;
        let snapshot = self.snapshot()?;
        let page = match &snapshot {
            Some(snapshot) => self.snapshot_page(snapshot, &path, options)?,
            None => self.live_share()?.list_page(&path, options)?,
        };
        let mut xml = Xml::default();
        self.open_results(&mut xml, &page.path, snapshot.as_ref())?;
        if let Some(prefix) = query.get("prefix") {
            xml.file_name("Prefix", prefix);
        }
        xml.maybe("Marker", query.get("marker"));
        if query.get("maxresults").is_some() {
            xml.text("MaxResults", &limit.to_string());
        }
        xml.open("Entries");
        for entry in &page.entries {
            write_entry(&mut xml, entry, &include);
        }
        xml.close("Entries");
        let next = page.next.map(|name| URL_SAFE_NO_PAD.encode(name)).unwrap_or_default();
        xml.text("NextMarker", &next);
        xml.text("DirectoryId", &page.id.ino.to_string());
        xml.close("EnumerationResults");
        Ok(Reply::ok().xml(xml))
    }

    fn open_results(
        &self,
        xml: &mut Xml,
        path: &SharePath,
        snapshot: Option<&SnapshotName>,
    ) -> Result<(), Refusal> {
        let plain = path.as_str().chars().all(is_xml);
        let spelled = if plain { path.as_str().to_owned() } else { encoded(path.as_str()) };
        let mut attributes = vec![
            ("ServiceEndpoint", self.request.address.endpoint.as_str()),
            ("ShareName", self.share()?),
        ];
        if let Some(snapshot) = snapshot {
            attributes.push(("ShareSnapshot", snapshot.as_str()));
        }
        attributes.push(("DirectoryPath", &spelled));
        if !plain {
            attributes.push(("Encoded", "true"));
        }
        xml.open_with("EnumerationResults", &attributes);
        Ok(())
    }

    fn snapshot_page(
        &self,
        snapshot: &SnapshotName,
        path: &SharePath,
        options: PageOptions<'_>,
    ) -> Result<DirectoryPage, Refusal> {
        let view = self.engine()?.snapshot(self.share()?, snapshot)?;
        let found = view.lookup(path)?;
        let mut page =
            DirectoryPage { path: found.path, id: found.stat.id, entries: Vec::new(), next: None };
        let mut after = options.after.map(str::to_owned);
        loop {
            // One more than fits, to know whether anything follows.
            let wanted = options.limit - page.entries.len() + 1;
            let names = view.list(&page.path, options.prefix, after.as_deref(), wanted)?;
            let ended = names.len() < wanted;
            for listed in names {
                let seen = matches!(listed.kind, FileKind::File | FileKind::Directory);
                if seen && page.entries.len() == options.limit {
                    page.next = after;
                    return Ok(page);
                }
                after = Some(listed.name.clone());
                if !seen {
                    continue;
                }
                let file = view.file(
                    &page.path.join(&listed.name).map_err(crate::file::service::FileError::from)?,
                )?;
                let smb = Some(file.smb());
                page.entries.push(DirectoryEntry { name: listed.name, stat: file.stat, smb });
            }
            if ended {
                return Ok(page);
            }
        }
    }
}

fn name_of(marker: &str) -> Result<String, Refusal> {
    let bytes = URL_SAFE_NO_PAD.decode(marker).ok();
    let name = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    name.ok_or_else(|| ShareDenial::InvalidContinuationToken.into())
}

fn write_entry(xml: &mut Xml, entry: &DirectoryEntry, include: &Include) {
    let directory = entry.stat.kind == FileKind::Directory;
    let element = if directory { "Directory" } else { "File" };
    xml.open(element);
    xml.file_name("Name", &entry.name);
    xml.text("FileId", &entry.stat.id.ino.to_string());
    xml.open("Properties");
    if !directory {
        xml.text("Content-Length", &entry.stat.size.to_string());
    }
    let smb = entry.smb.as_ref();
    if let Some(smb) = smb.filter(|_| include.has("timestamps")) {
        xml.text("CreationTime", &iso(smb.created));
        xml.text("LastAccessTime", &iso(smb.accessed));
        xml.text("LastWriteTime", &iso(smb.written));
        xml.text("ChangeTime", &iso(smb.changed));
        xml.text("Last-Modified", &rfc1123(smb.last_modified));
    }
    if let Some(smb) = smb.filter(|_| include.has("etag")) {
        xml.text("Etag", &smb.etag.to_string());
    }
    xml.close("Properties");
    if let Some(smb) = smb.filter(|_| include.has("attributes")) {
        xml.text("Attributes", &smb.attributes.to_string());
    }
    if let Some(smb) = smb.filter(|_| include.has("permissionkey")) {
        xml.text("PermissionKey", smb.permission_key());
    }
    xml.close(element);
}
