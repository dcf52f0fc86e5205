//! Put Page, Get Page Ranges, and the properties of page blobs.

use std::ops::Range;

use hyper::StatusCode;
use hyper::body::Incoming;

use super::BlobCall;
use super::body::ReceivedPart;
use super::request::moment;
use crate::blob::rules::pages::{
    PUT_MAX, SequenceAction, SequenceConditions, is_length, is_sequence_number,
};
use crate::blob::rules::{BlobOperation, ContentProperties};
use crate::blob::service::{BodyRole, PageChange, PageQuery, PutPages};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::reply::Reply;
use crate::http::request::{Query, byte_range};
use crate::http::xml::Xml;
use crate::rules::time::parse_iso;

/// Most ranges of one answer.
const RANGES_MAX: usize = 10_000;

/// The header of a sequence number, in requests and answers.
const NUMBER: &str = "x-ms-blob-sequence-number";

/// The header that names the older snapshot by its URL.
const PREVIOUS_URL: &str = "x-ms-previous-snapshot-url";

impl BlobCall<'_> {
    pub(super) fn sequence_conditions(&self) -> Result<SequenceConditions, Refusal> {
        let number = |name: &str| self.parsed(name, "it must be a number");
        Ok(SequenceConditions {
            at_most: number("x-ms-if-sequence-number-le")?,
            less_than: number("x-ms-if-sequence-number-lt")?,
            equal: number("x-ms-if-sequence-number-eq")?,
        })
    }

    /// The range of a Put Page, which must be there.
    pub(super) fn page_range(&self) -> Result<Range<u64>, Refusal> {
        for name in ["x-ms-range", "range"] {
            if let Some(text) = self.header(name)? {
                let range = byte_range(text).filter(|range| range.end != u64::MAX);
                return range
                    .ok_or_else(|| Refusal::header(name, text, "it must be bytes=FIRST-LAST"));
            }
        }
        Err(Refusal::missing_header("x-ms-range"))
    }

    pub(super) async fn put_page(self, body: Incoming) -> Answer {
        let mut body = Some(body);
        let write = self.required("x-ms-page-write").map(str::to_ascii_lowercase);
        let write = self.drained(&mut body, write).await?;
        match write.as_str() {
            "update" => self.update_pages(body).await,
            "clear" => self.clear_pages().await,
            _ => {
                let why = "it must be update or clear";
                let refused = Err(Refusal::header("x-ms-page-write", &write, why));
                self.drained(&mut body, refused).await
            }
        }
    }

    async fn update_pages(self, body: Option<Incoming>) -> Answer {
        let operation = BlobOperation::PageBlobUploadPages;
        let parameters = || {
            let (range, conditions) = (self.page_range()?, self.sequence_conditions()?);
            if self.announced()?.is_some_and(|length| length != range.end - range.start) {
                return Err(wrong_range());
            }
            Ok((range, conditions))
        };
        let part =
            self.receive_part(operation, body, (BodyRole::Part, PUT_MAX), parameters).await?;
        let ReceivedPart { engine, at, asked, parameters: (range, conditions), body } = part;
        let reply = body.checksum(Reply::created());
        let change = PageChange::Update(body.content);
        let put = PutPages { first: range.start, last: range.end - 1, change, conditions };
        let written =
            self.told(engine.put_pages(&self.cx_now(), operation, &at, asked, put).await)?;
        Ok(reply.blob_written(&written).header(NUMBER, written.state.sequence_number))
    }

    async fn clear_pages(self) -> Answer {
        let operation = BlobOperation::PageBlobClearPages;
        let (at, asked) = (self.blob_to_change()?, self.asked(operation)?);
        let (range, conditions) = (self.page_range()?, self.sequence_conditions()?);
        if self.announced()?.is_some_and(|length| length != 0) {
            return Err(Refusal::header("Content-Length", "", "pages are cleared without a body"));
        }
        let change = PageChange::Clear;
        let put = PutPages { first: range.start, last: range.end - 1, change, conditions };
        let done = self.engine()?.put_pages(self.cx(), operation, &at, asked, put).await;
        let written = self.told(done)?;
        Ok(Reply::created().blob_written(&written).header(NUMBER, written.state.sequence_number))
    }

    pub(super) fn page_list(self) -> Answer {
        let at = self.blob_at()?;
        let range = match self.header("x-ms-range")?.or(self.header("range")?) {
            None => None,
            Some(text) => byte_range(text),
        };
        let max = self.page_size(RANGES_MAX)?;
        let from = match self.query.get("marker") {
            None => None,
            Some(text) => {
                let bad = |_| {
                    Refusal::query("marker", text, "it is not a marker that this server issued")
                };
                Some(text.parse().map_err(bad)?)
            }
        };
        let query = PageQuery { range, from, max };
        let engine = self.engine()?;
        let paged = match self.previous()? {
            None => {
                let asked = self.asked(BlobOperation::PageBlobGetPageRanges)?;
                engine.page_ranges(self.cx(), &at, &asked, &query)
            }
            Some(previous) => {
                let asked = self.asked(BlobOperation::PageBlobGetPageRangesDiff)?;
                engine.page_difference(self.cx(), &at, &asked, previous, &query)
            }
        };
        let paged = self.told(paged)?;
        let mut xml = Xml::default();
        xml.open("PageList");
        for one in &paged.ranges {
            let name = if one.cleared { "ClearRange" } else { "PageRange" };
            xml.open(name);
            xml.text("Start", &one.range.start.to_string());
            xml.text("End", &(one.range.end - 1).to_string());
            xml.close(name);
        }
        xml.text("NextMarker", &paged.next.map(|next| next.to_string()).unwrap_or_default());
        xml.close("PageList");
        let state = &paged.state;
        Ok(Reply::ok()
            .xml(xml)
            .etag(state.etag, state.modified)
            .header("x-ms-blob-content-length", state.length))
    }

    /// The snapshot that a difference is taken from.
    fn previous(&self) -> Result<Option<crate::rules::Timestamp>, Refusal> {
        if let Some(moment) = moment(&self.query, "prevsnapshot")? {
            return Ok(Some(moment));
        }
        let Some(url) = self.header(PREVIOUS_URL)? else { return Ok(None) };
        let query = Query::read(url.split_once('?').map_or("", |(_, query)| query));
        let moment = query.get("snapshot").and_then(parse_iso);
        moment.map(Some).ok_or_else(|| Refusal::header(PREVIOUS_URL, url, "it names no snapshot"))
    }

    /// Set Blob Properties that resizes or numbers a page blob; `None` if it does neither.
    pub(super) async fn set_page_properties(&self) -> Result<Option<Reply>, Refusal> {
        const LENGTH: &str = "x-ms-blob-content-length";
        let length = match self.header(LENGTH)? {
            None => None,
            Some(text) => {
                let length = text.parse().ok().filter(|length| is_length(*length));
                let why = "it must be a multiple of 512, at most 8 TiB";
                Some(length.ok_or_else(|| Refusal::header(LENGTH, text, why))?)
            }
        };
        let sequence = self.sequence_action()?;
        if length.is_none() && sequence.is_none() {
            return Ok(None);
        }
        let operation = BlobOperation::PageBlobResize;
        let (at, asked) = (self.blob_to_change()?, self.asked(operation)?);
        let content = self.content_sent()?.map(ContentProperties::replacing);
        let set = self
            .engine()?
            .set_page_properties(self.cx(), &at, asked, content, length, sequence)
            .await;
        let written = self.told(set)?;
        let number = written.state.sequence_number;
        Ok(Some(Reply::ok().etag(written.etag, written.modified).header(NUMBER, number)))
    }

    /// The sequence number of a request.
    pub(super) fn sequence_number(&self) -> Result<Option<u64>, Refusal> {
        let why = "it must be a number, at most 9223372036854775807";
        let number: Option<u64> = self.parsed(NUMBER, why)?;
        match number {
            Some(number) if !is_sequence_number(number) => {
                Err(Refusal::header(NUMBER, &number.to_string(), why))
            }
            number => Ok(number),
        }
    }

    fn sequence_action(&self) -> Result<Option<SequenceAction>, Refusal> {
        const ACTION: &str = "x-ms-sequence-number-action";
        let Some(action) = self.header(ACTION)? else { return Ok(None) };
        let number = self.sequence_number()?;
        let needed = || number.ok_or_else(|| Refusal::missing_header(NUMBER));
        match action.to_ascii_lowercase().as_str() {
            "max" => Ok(Some(SequenceAction::Max(needed()?))),
            "update" => Ok(Some(SequenceAction::Update(needed()?))),
            "increment" if number.is_some() => {
                Err(Refusal::header(NUMBER, "", "an increment takes no number"))
            }
            "increment" => Ok(Some(SequenceAction::Increment)),
            _ => Err(Refusal::header(ACTION, action, "it must be max, update or increment")),
        }
    }
}

fn wrong_range() -> Refusal {
    let status = StatusCode::RANGE_NOT_SATISFIABLE;
    Refusal::new(status, "InvalidPageRange", "The page range specified is invalid.")
}
