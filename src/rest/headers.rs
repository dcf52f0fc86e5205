//! Property headers, both ways (FILEREST section 4).
//!
//! Decides how times, attributes and permissions are read from a request, and which headers an
//! answer about a file or directory carries.

use rustix::rand::{GetRandomFlags, getrandom};

use super::refusal::Refusal;
use super::reply::Reply;
use super::request::Request;
use super::spelling::META;
use crate::core::stamp::{iso, parse_iso, rfc1123};
use crate::core::{Attributes, FileId, LeaseId, Timestamp};
use crate::engine::account::{PERMISSION_HEADER_BYTES_MAX, Permission};
use crate::engine::{
    CopyState, CopyStatus, FileProperties, HttpHeaders, Metadata, PropertyChanges, Share, Shown,
    TimeChange,
};

/// A time as a request gives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeWord {
    /// The time of the request.
    Now,
    /// As it is.
    Preserve,
    /// As the source of a copy has it.
    Source,
    /// This.
    At(Timestamp),
}

/// The property headers of a request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SmbHeaders {
    /// Attributes; none for `preserve`, and for none at all.
    pub attributes: Option<Attributes>,
    /// They are to be those of the source of a copy.
    pub source_attributes: bool,
    /// Creation time.
    pub created: Option<TimeWord>,
    /// Last-write time.
    pub written: Option<TimeWord>,
    /// Change time.
    pub changed: Option<TimeWord>,
    /// Key of the permission.
    pub permission_key: Option<String>,
}

impl SmbHeaders {
    /// Reads them. A permission given as text is kept by the share, which gives it a key.
    pub fn read(request: &Request, share: &Share) -> Result<Self, Refusal> {
        const ATTRIBUTES: &str = "x-ms-file-attributes";
        let mut headers = Self {
            created: time(request, "x-ms-file-creation-time")?,
            written: time(request, "x-ms-file-last-write-time")?,
            changed: time(request, "x-ms-file-change-time")?,
            permission_key: permission(request, share)?,
            ..Self::default()
        };
        match request.header(ATTRIBUTES)? {
            None => {}
            Some(text) if text.eq_ignore_ascii_case("preserve") => {}
            Some(text) if text.eq_ignore_ascii_case("source") => headers.source_attributes = true,
            Some(text) => {
                let parsed = Attributes::parse(text);
                let unknown = || Refusal::header(ATTRIBUTES, text, "an attribute is not known");
                headers.attributes = Some(parsed.ok_or_else(unknown)?);
            }
        }
        Ok(headers)
    }

    /// What is to be set on a directory, or by a rename.
    pub fn changes(&self, now: Timestamp) -> PropertyChanges {
        let moment = |word: Option<TimeWord>| match word {
            Some(TimeWord::Now) => Some(now),
            Some(TimeWord::At(time)) => Some(time),
            Some(TimeWord::Preserve | TimeWord::Source) | None => None,
        };
        let attributes = self.attributes.map(|mut attributes| {
            attributes.remove(Attributes::DIRECTORY);
            attributes
        });
        PropertyChanges {
            attributes,
            created: moment(self.created),
            written: moment(self.written),
            changed: moment(self.changed),
            permission_key: self.permission_key.clone(),
        }
    }
}

/// A time for a file, `default` if none is given.
pub fn time_change(word: Option<TimeWord>, default: TimeChange) -> TimeChange {
    match word {
        None => default,
        Some(TimeWord::Now) => TimeChange::Now,
        Some(TimeWord::Preserve | TimeWord::Source) => TimeChange::Preserve,
        Some(TimeWord::At(time)) => TimeChange::At(time),
    }
}

fn time(request: &Request, name: &str) -> Result<Option<TimeWord>, Refusal> {
    let Some(text) = request.header(name)? else { return Ok(None) };
    Ok(Some(match text.to_ascii_lowercase().as_str() {
        "now" => TimeWord::Now,
        "preserve" => TimeWord::Preserve,
        "source" => TimeWord::Source,
        _ => {
            let why = "it must be now, preserve, or an ISO 8601 time";
            TimeWord::At(parse_iso(text).ok_or_else(|| Refusal::header(name, text, why))?)
        }
    }))
}

fn permission(request: &Request, share: &Share) -> Result<Option<String>, Refusal> {
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
                    Permission::Binary(text.to_owned())
                }
                _ => Permission::Sddl(text.to_owned()),
            };
            Ok(Some(share.keep_permission(&permission)?))
        }
        (None, Some(key)) => {
            share.permission(key)?;
            Ok(Some(key.to_owned()))
        }
    }
}

/// The content headers of a request, if it has any: then all of them (LOCKING 7.8).
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

    /// What every answer about a file or directory carries.
    #[must_use]
    pub fn smb(self, shown: &Shown, id: FileId, parent: FileId) -> Self {
        self.version(shown.etag, shown.last_modified)
            .header("x-ms-file-attributes", shown.attributes)
            .header("x-ms-file-creation-time", iso(shown.created))
            .header("x-ms-file-last-write-time", iso(shown.written))
            .header("x-ms-file-change-time", iso(shown.changed))
            .header("x-ms-file-permission-key", shown.permission_key())
            .header("x-ms-file-id", id.ino)
            .header("x-ms-file-parent-id", parent.ino)
    }

    /// The same, of a file.
    #[must_use]
    pub fn file(self, file: &FileProperties) -> Self {
        self.smb(&Shown::of(&file.stat, &file.record), file.id(), file.parent)
    }

    /// All metadata.
    #[must_use]
    pub fn metadata(mut self, metadata: &Metadata) -> Self {
        for (name, value) in metadata.iter() {
            let header = format!("{META}{name}");
            self.set(&header, value);
            let lower = !name.bytes().any(|byte| byte.is_ascii_uppercase());
            if !lower && self.headers.contains_key(&header) {
                self.spelled.push(header);
            }
        }
        self
    }

    /// What was written is kept encrypted, as far as anybody asks.
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
            .header("x-ms-copy-status", copy_status(copy.status))
            .header("x-ms-copy-progress", progress)
            .maybe("x-ms-copy-completion-time", copy.completion.map(rfc1123))
            .maybe("x-ms-copy-status-description", copy.description.as_deref())
    }
}

/// `x-ms-copy-status`.
pub const fn copy_status(status: CopyStatus) -> &'static str {
    match status {
        CopyStatus::Pending => "pending",
        CopyStatus::Success => "success",
        CopyStatus::Aborted => "aborted",
        CopyStatus::Failed => "failed",
    }
}

/// A fresh GUID: for requests and copies.
pub fn guid() -> String {
    let mut bytes = [0; 16];
    // Short only before the system has any randomness at all; an ID of zeros is still an ID.
    let _ = getrandom(&mut bytes, GetRandomFlags::empty());
    LeaseId::from_random_bytes(bytes).to_string()
}
