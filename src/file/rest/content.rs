//! The bytes of a file: Get File, Put Range.
//!
//! Decides the statuses and headers of ranged reads and that a body is
//! checked before anything is written.

use std::ops::Range;

use http_body_util::BodyExt;
use hyper::StatusCode;

use super::FileCall;
use super::download::{DownloadSource, FileDownload};
use super::file::shown;
use crate::file::rules::Denial;
use crate::file::service::{FileProperties, IO_MAX, TimeChange};
use crate::http::checksum::{
    STRUCTURED, STRUCTURED_CRC64, STRUCTURED_LENGTH, checked_body, is_structured, md5,
};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::reply::{Reply, ReplyBody};
use crate::http::structured::Structured;
use crate::rules::time::iso;

/// Asks for the MD5 of the bytes that are sent.
const RANGE_MD5: &str = "x-ms-range-get-content-md5";

impl FileCall<'_> {
    pub(super) fn download(&self) -> Answer {
        let asked = self.request.range()?;
        let with_md5 = self.request.flag(RANGE_MD5)?;
        let structured = is_structured(self.request)?;
        if with_md5 && structured {
            let why = "a structured body has a checksum of its own";
            return Err(Refusal::header(RANGE_MD5, "true", why));
        }
        let (download, file) = self.open_download(asked.clone())?;
        let range = download.range.clone();
        let length = range.end - range.start;
        if with_md5 && (asked.is_none() || length > IO_MAX as u64) {
            let why = "the MD5 of a range is given for ranges of at most 4 MiB";
            return Err(Refusal::header(RANGE_MD5, "true", why));
        }
        let stored = file.headers().content_md5.as_deref();
        let mut reply = if asked.is_some() {
            let content_range = format!("bytes {}-{}/{}", range.start, range.end - 1, file.size());
            shown(Reply::new(StatusCode::PARTIAL_CONTENT), &file)
                .header("content-range", content_range)
                .maybe("x-ms-content-md5", stored)
        } else {
            shown(Reply::ok(), &file).maybe("content-md5", stored)
        };
        reply.set("accept-ranges", "bytes");
        if with_md5 {
            let bytes = download.read_all()?;
            if bytes.len() as u64 != length {
                return Err(Denial::InvalidRange { size: range.start + bytes.len() as u64 }.into());
            }
            reply.set("content-md5", md5(&bytes));
            reply.body = ReplyBody::Bytes(bytes.into());
        } else if structured {
            reply.set(STRUCTURED, STRUCTURED_CRC64);
            reply.set(STRUCTURED_LENGTH, length);
            let body = Structured::new(download.start(), length);
            reply.body = ReplyBody::Stream(body.length(), body.boxed());
        } else {
            reply.body = download.content();
        }
        Ok(reply)
    }

    fn open_download(
        &self,
        asked: Option<Range<u64>>,
    ) -> Result<(FileDownload, FileProperties), Refusal> {
        let path = self.path()?;
        if let Some(snapshot) = self.snapshot()? {
            let (view, file) = self.snapshot_file(&snapshot, &path)?;
            let range = clipped(asked, file.size())?;
            let source = DownloadSource::Snapshot(view, file.path.clone());
            return Ok((FileDownload { source, range }, file));
        }
        let reader = self.live_share()?.open_reader(self.asking()?, &path, asked)?;
        let (range, file) = (reader.range(), reader.properties().clone());
        Ok((FileDownload { source: DownloadSource::Live(Box::new(reader)), range }, file))
    }

    pub(super) fn upload_range(&self) -> Answer {
        const WRITE: &str = "x-ms-write";
        let (share, path) = (self.share_to_change()?, self.path()?);
        let range = self.written_range()?;
        let last_write = self.last_write()?;
        let asking = self.asking()?;
        let write = self.request.required(WRITE)?;
        let reply = match write.to_ascii_lowercase().as_str() {
            "update" => {
                let bytes = checked_body(self.request)?;
                if bytes.len() as u64 != range.end - range.start {
                    let why = "the body has another length";
                    return Err(Refusal::header("x-ms-range", &bytes_text(&range), why));
                }
                let file = share.put_range(asking, &path, range.start, &bytes, last_write)?;
                // Checked against the body above. Nobody is told an MD5 that nobody gave: it would
                // cost as much as all the rest.
                ranged(&file)
                    .maybe("content-md5", self.request.header("content-md5")?)
                    .maybe(STRUCTURED, self.request.header(STRUCTURED)?)
            }
            "clear" => {
                if !self.request.body.is_empty() {
                    return Err(Refusal::header(WRITE, write, "a range is cleared without a body"));
                }
                ranged(&share.clear_range(asking, &path, range, last_write)?)
            }
            _ => return Err(Refusal::header(WRITE, write, "it must be update or clear")),
        };
        Ok(reply)
    }

    /// The range that is written, both ends of which must be given.
    pub(super) fn written_range(&self) -> Result<Range<u64>, Refusal> {
        const NAME: &str = "x-ms-range";
        let range = self.request.range()?.ok_or_else(|| Refusal::missing_header(NAME))?;
        if range.end == u64::MAX {
            return Err(Refusal::header(NAME, &bytes_text(&range), "it needs a last byte"));
        }
        Ok(range)
    }

    /// The change of the last-write time.
    pub(super) fn last_write(&self) -> Result<TimeChange, Refusal> {
        const NAME: &str = "x-ms-file-last-write-time";
        match self.request.header(NAME)? {
            None => Ok(TimeChange::Now),
            Some(text) if text.eq_ignore_ascii_case("now") => Ok(TimeChange::Now),
            Some(text) if text.eq_ignore_ascii_case("preserve") => Ok(TimeChange::Preserve),
            Some(text) => Err(Refusal::header(NAME, text, "it must be now or preserve")),
        }
    }
}

/// The answer to a range that was written.
pub(super) fn ranged(file: &FileProperties) -> Reply {
    Reply::created()
        .version(file.etag(), file.last_modified())
        .header("x-ms-file-last-write-time", iso(file.stat.written))
        .written()
}

fn bytes_text(range: &Range<u64>) -> String {
    format!("bytes={}-{}", range.start, range.end.saturating_sub(1))
}

/// The part of a range that a file has, as the engine has it for files of the share.
pub(super) fn clipped(asked: Option<Range<u64>>, size: u64) -> Result<Range<u64>, Refusal> {
    let Some(asked) = asked else { return Ok(0..size) };
    let range = asked.start..asked.end.min(size);
    if range.is_empty() { Err(Denial::InvalidRange { size }.into()) } else { Ok(range) }
}
