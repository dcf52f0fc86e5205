//! List Ranges: which parts of a file hold data, and what changed since a snapshot.
//!
//! Decides the pages of either: the marker is where the next range starts, and ranges that were
//! written and ranges that were cleared count together.

use std::ops::Range;

use super::content::clipped;
use super::{FileCall, stamp_of};
use crate::file::service::shares::{ShareDenial, SnapshotName};
use crate::file::service::{ChangedRange, DiffOptions, FileProperties, RangeChanges, RangeList};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::reply::Reply;
use crate::http::xml::Xml;

const MOVED: &str = "x-ms-file-support-rename";

/// A page, and where the next one starts.
struct RangePage {
    parts: Vec<ChangedRange>,
    next: Option<u64>,
}

impl RangePage {
    /// The first `limit` of these; there may be more.
    fn of(mut parts: Vec<ChangedRange>, limit: usize) -> Self {
        let next = parts.get(limit).map(|part| part.range().start);
        parts.truncate(limit);
        Self { parts, next }
    }

    fn write(&self) -> Xml {
        let mut xml = Xml::default();
        xml.open("Ranges");
        for part in &self.parts {
            if let ChangedRange::Written(range) = part {
                write_range(&mut xml, "Range", range);
            }
        }
        for part in &self.parts {
            if let ChangedRange::Cleared(range) = part {
                write_range(&mut xml, "ClearRange", range);
            }
        }
        xml.maybe("NextMarker", self.next.map(|next| next.to_string()).as_deref());
        xml.close("Ranges");
        xml
    }
}

impl FileCall<'_> {
    pub(super) fn range_list(&self) -> Answer {
        let limit = self.request.page_size(usize::MAX)?;
        let from = self.marker()?;
        let (file, parts) =
            if let Some(previous) = stamp_of(&self.request.query, "prevsharesnapshot")? {
                let options = DiffOptions {
                    window: self.request.range()?,
                    from: from.unwrap_or(0),
                    // One more tells whether there is a next page.
                    most: limit.saturating_add(1),
                    moved: self.request.flag(MOVED)?,
                };
                self.changes_since(&previous, &options)?
            } else if let Some(value) = self.request.header(MOVED)? {
                return Err(Refusal::header(MOVED, value, "it goes with prevsharesnapshot only"));
            } else {
                self.data_ranges(from)?
            };
        Ok(Reply::ok()
            .xml(RangePage::of(parts, limit).write())
            .version(file.etag(), file.last_modified())
            .header("x-ms-content-length", file.size()))
    }

    fn data_ranges(
        &self,
        from: Option<u64>,
    ) -> Result<(FileProperties, Vec<ChangedRange>), Refusal> {
        let path = self.path()?;
        let window = self.request.range()?;
        let RangeList { properties, mut ranges } = match self.snapshot()? {
            Some(snapshot) => {
                let (view, properties) = self.snapshot_file(&snapshot, &path)?;
                let window = clipped(window, properties.size())?;
                RangeList { ranges: view.data_ranges(&path, window)?, properties }
            }
            None => self.live_share()?.range_list(self.asking()?, &path, window)?,
        };
        if let Some(from) = from {
            ranges.retain(|range| range.start >= from);
        }
        Ok((properties, ranges.into_iter().map(ChangedRange::Written).collect()))
    }

    fn changes_since(
        &self,
        previous: &SnapshotName,
        options: &DiffOptions,
    ) -> Result<(FileProperties, Vec<ChangedRange>), Refusal> {
        let (share, path) = (self.share()?, self.path()?);
        let of = self.snapshot()?;
        let since = self.engine()?.previous_snapshot(share, previous, of.as_ref())?;
        if let Some(of) = of {
            let (view, file) = self.snapshot_file(&of, &path)?;
            let window = options.bytes(file.size())?;
            let changes = view.changes_since(&since, &file.path, window, options.most)?;
            return Ok((file, changes));
        }
        let live = self.live_share()?;
        let RangeChanges { properties, changes } =
            live.changes_since(self.asking()?, &path, &since, options)?;
        Ok((properties, changes))
    }

    /// Where the page starts, if it is not the first.
    fn marker(&self) -> Result<Option<u64>, Refusal> {
        let number = |text: &str| text.parse().map_err(|_| ShareDenial::InvalidContinuationToken);
        Ok(self.request.query.get("marker").map(number).transpose()?)
    }
}

fn write_range(xml: &mut Xml, name: &str, range: &Range<u64>) {
    xml.open(name);
    xml.text("Start", &range.start.to_string());
    xml.text("End", &range.end.saturating_sub(1).to_string());
    xml.close(name);
}
