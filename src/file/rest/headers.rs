//! Property headers, both ways.
//!
//! Decides how times, attributes and permissions are read from a request, and which headers an
//! answer about a file or directory carries.

use crate::file::rules::Attributes;
use crate::file::service::shares::{
    DraftPermission, PERMISSION_HEADER_BYTES_MAX, SecurityDescriptor,
};
use crate::file::service::{
    CopyState, FileProperties, HttpHeaders, Metadata, PropertyChanges, Share, TimeChange,
};
use crate::http::frame::refusal::Refusal;
use crate::http::header_case::META;
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::rules::Timestamp;
use crate::rules::time::{iso, parse_iso, rfc1123};

/// The property headers of a request. To be settled once the request was carried out: until then
/// a permission given as text is a draft, which a refused request takes back.
#[derive(Default)]
pub struct SmbHeaders<'a> {
    /// The properties to set: attributes, times, permission.
    pub properties: PropertyChanges,
    /// The attributes are to be those of the source of a copy.
    pub source_attributes: bool,
    draft: Option<DraftPermission<'a>>,
}

impl<'a> SmbHeaders<'a> {
    /// Reads them. A permission given as text is written by the share, which gives it a key. This
    /// is the last step before the operation: everything else in the request was read.
    pub fn read(request: &Request, share: &'a Share) -> Result<Self, Refusal> {
        const ATTRIBUTES: &str = "x-ms-file-attributes";
        let properties = PropertyChanges {
            created: time(request, "x-ms-file-creation-time")?,
            written: time(request, "x-ms-file-last-write-time")?,
            changed: time(request, "x-ms-file-change-time")?,
            ..PropertyChanges::default()
        };
        let mut headers = Self { properties, ..Self::default() };
        match request.header(ATTRIBUTES)? {
            None => {}
            Some(text) if text.eq_ignore_ascii_case("preserve") => {}
            Some(text) if text.eq_ignore_ascii_case("source") => headers.source_attributes = true,
            Some(text) => {
                let parsed = Attributes::parse(text);
                let unknown = || Refusal::header(ATTRIBUTES, text, "an attribute is not known");
                headers.properties.attributes = Some(parsed.ok_or_else(unknown)?);
            }
        }
        match permission(request, share)? {
            None => {}
            Some(PermissionHeader::Key(key)) => headers.properties.permission_key = Some(key),
            Some(PermissionHeader::Draft(draft)) => {
                headers.properties.permission_key = Some(draft.key().to_owned());
                headers.draft = Some(draft);
            }
        }
        Ok(headers)
    }

    /// The request was carried out: its permission stays.
    pub fn settle(&mut self) {
        if let Some(draft) = self.draft.take() {
            draft.keep();
        }
    }

    /// The properties to set on a directory, or by a rename.
    pub fn for_directory(&self) -> PropertyChanges {
        let mut changes = self.properties.clone();
        if let Some(attributes) = &mut changes.attributes {
            attributes.remove(Attributes::DIRECTORY);
        }
        changes
    }
}

fn time(request: &Request, name: &str) -> Result<TimeChange, Refusal> {
    let Some(text) = request.header(name)? else { return Ok(TimeChange::NotGiven) };
    Ok(match text.to_ascii_lowercase().as_str() {
        "now" => TimeChange::Now,
        "preserve" => TimeChange::Preserve,
        "source" => TimeChange::Source,
        _ => {
            let why = "it must be now, preserve, or an ISO 8601 time";
            TimeChange::At(parse_iso(text).ok_or_else(|| Refusal::header(name, text, why))?)
        }
    })
}

/// A permission as a request gives it.
enum PermissionHeader<'a> {
    Key(String),
    Draft(DraftPermission<'a>),
}

fn permission<'a>(
    request: &Request,
    share: &'a Share,
) -> Result<Option<PermissionHeader<'a>>, Refusal> {
    const TEXT: &str = "x-ms-file-permission";
    const KEY: &str = "x-ms-file-permission-key";
    let given = request.header(TEXT)?.filter(|text| {
        !["inherit", "preserve", "source"].iter().any(|word| text.eq_ignore_ascii_case(word))
    });
    match (given, request.header(KEY)?) {
        (None, None) => Ok(None),
        (Some(_), Some(key)) => {
            Err(Refusal::header(KEY, key, "a permission and a key cannot be given together"))
        }
        (Some(text), None) if text.len() > PERMISSION_HEADER_BYTES_MAX => {
            let why = "it is too long for a header; create a permission and send its key";
            Err(Refusal::header(TEXT, "", why))
        }
        (Some(text), None) => {
            let permission = match request.header("x-ms-file-permission-format")? {
                Some(format) if format.eq_ignore_ascii_case("binary") => {
                    SecurityDescriptor::Binary(text.to_owned())
                }
                _ => SecurityDescriptor::Sddl(text.to_owned()),
            };
            Ok(Some(PermissionHeader::Draft(share.draft_permission(&permission)?)))
        }
        (None, Some(key)) => {
            share.permission(key)?;
            Ok(Some(PermissionHeader::Key(key.to_owned())))
        }
    }
}

/// The content type of a file whose content headers were cleared: it is shown with none, unlike a
/// file that was never given one.
pub const NO_TYPE: &str = "";

/// The content headers after Set File Properties: a request that names one sets all of them, one
/// that names none clears all of them, and one that only gives a new length keeps them.
pub fn changed_content_headers(
    request: &Request,
    resizes: bool,
) -> Result<Option<HttpHeaders>, Refusal> {
    let mut headers = match content_headers(request)? {
        None if resizes => return Ok(None),
        headers => headers.unwrap_or_default(),
    };
    headers.content_type.get_or_insert_with(|| NO_TYPE.to_owned());
    Ok(Some(headers))
}

/// The content headers of a request, if it has any: then all of them.
pub fn content_headers(request: &Request) -> Result<Option<HttpHeaders>, Refusal> {
    let names = [
        "x-ms-content-type",
        "x-ms-content-encoding",
        "x-ms-content-language",
        "x-ms-content-disposition",
        "x-ms-cache-control",
        "x-ms-content-md5",
    ];
    if !names.iter().any(|name| request.headers.contains_key(*name)) {
        return Ok(None);
    }
    let get = |name: &str| Ok::<_, Refusal>(request.header(name)?.map(str::to_owned));
    Ok(Some(HttpHeaders {
        content_type: get(names[0])?,
        content_encoding: get(names[1])?,
        content_language: get(names[2])?,
        content_disposition: get(names[3])?,
        cache_control: get(names[4])?,
        content_md5: get(names[5])?,
    }))
}

impl Reply {
    /// `ETag` and `Last-Modified`.
    #[must_use]
    pub fn version(self, etag: impl std::fmt::Display, modified: Timestamp) -> Self {
        self.header("etag", etag).header("last-modified", rfc1123(modified))
    }

    /// The headers of every answer about a file or directory.
    #[must_use]
    pub fn file(self, file: &FileProperties) -> Self {
        let smb = file.smb();
        self.version(smb.etag, smb.last_modified)
            .header("x-ms-file-attributes", smb.attributes)
            .header("x-ms-file-creation-time", iso(smb.created))
            .header("x-ms-file-last-write-time", iso(smb.written))
            .header("x-ms-file-change-time", iso(smb.changed))
            .header("x-ms-file-permission-key", smb.permission_key())
            .header("x-ms-file-id", file.id().ino)
            .header("x-ms-file-parent-id", file.parent.ino)
    }

    #[must_use]
    pub fn metadata(mut self, metadata: &Metadata) -> Self {
        for (name, value) in metadata.iter() {
            let header = format!("{META}{name}");
            self.set_named(&header, value);
            let lower = !name.bytes().any(|byte| byte.is_ascii_uppercase());
            if !lower && self.headers.contains_key(&header) {
                self.spelled.push(header);
            }
        }
        self
    }

    /// The header that says that the data is encrypted. Nothing is encrypted; clients only look for
    /// it.
    #[must_use]
    pub fn written(self) -> Self {
        self.header("x-ms-request-server-encrypted", "true")
    }

    /// The last copy onto a file.
    #[must_use]
    pub fn copy(self, copy: Option<&CopyState>) -> Self {
        let Some(copy) = copy else { return self };
        let progress = format!("{}/{}", copy.progress.done, copy.progress.total);
        self.header("x-ms-copy-id", &copy.id)
            .header("x-ms-copy-source", &copy.source)
            .header("x-ms-copy-status", copy.status)
            .header("x-ms-copy-progress", progress)
            .maybe("x-ms-copy-completion-time", copy.completion.map(rfc1123))
            .maybe("x-ms-copy-status-description", copy.description.as_deref())
    }
}
