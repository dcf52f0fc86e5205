//! List Shares: all of them in the order of names, page by page.
//!
//! Decides the order within a name (snapshots, oldest first; the share; deleted ones, oldest first)
//! and the marker: the first entry of the next page, so that an entry that is removed meanwhile
//! does not hide another one.

use std::ops::Bound;
use std::sync::Arc;

use super::error::{FileServiceResult, ShareDenial};
use super::properties::ShareProperties;
use super::served::{Facts, LeaseView};
use super::{FileService, POISON, ShareSlot};
use crate::file::store::share::SnapshotName;
use crate::rules::Timestamp;
use crate::rules::lease::ShareLease;
use crate::rules::name::check_resource_name;

/// The most entries of a page, and the default.
pub const LIST_MAX: usize = 5_000;

/// The name and properties of a share, a snapshot or a deleted share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShareInfo {
    pub name: Arc<str>,
    /// Which snapshot, if it is one.
    pub snapshot: Option<SnapshotName>,
    /// That it was deleted, if it was.
    pub deleted: Option<ShareDeletion>,
    pub properties: ShareProperties,
    pub lease: LeaseView,
}

/// That a share was deleted, and how long it can be restored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShareDeletion {
    /// Tells it from others of its name.
    pub version: String,
    /// When it was deleted.
    pub when: Timestamp,
    /// Days left, a begun one counting as whole.
    pub remaining_days: u32,
}

/// The arguments of List Shares.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListOptions<'a> {
    /// Only names that begin so.
    pub prefix: &'a str,
    /// Where the last page said to go on.
    pub marker: Option<&'a str>,
    /// The most entries of the page; at least one is given, at most [`LIST_MAX`].
    pub limit: Option<usize>,
    pub snapshots: bool,
    pub deleted: bool,
    /// With metadata; else it is left out.
    pub metadata: bool,
}

/// A page of shares.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharePage {
    pub shares: Vec<ShareInfo>,
    /// Where to go on, if there are more.
    pub next: Option<String>,
}

impl ShareInfo {
    pub(super) fn served(
        name: &Arc<str>,
        snapshot: Option<&SnapshotName>,
        facts: &Facts,
        now: Timestamp,
    ) -> Self {
        Self {
            name: Arc::clone(name),
            snapshot: snapshot.cloned(),
            deleted: None,
            properties: facts.properties.clone(),
            lease: LeaseView::of(&facts.lease, now),
        }
    }

    /// Its place in the order.
    fn key(&self) -> ListingKey {
        let (rank, detail) = match (&self.snapshot, &self.deleted) {
            (Some(snapshot), _) => ('s', snapshot.to_string()),
            (None, Some(deleted)) => ('v', deleted.version.clone()),
            (None, None) => ('t', String::new()),
        };
        ListingKey { name: self.name.to_string(), rank, detail }
    }
}

/// A place in the order: name, then kind, then stamp or version.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ListingKey {
    name: String,
    rank: char,
    detail: String,
}

impl ListingKey {
    fn parse(marker: &str) -> Option<Self> {
        let (name, rest) = marker.split_once('/')?;
        check_resource_name(name).ok()?;
        let rank = rest.chars().next().filter(|rank| matches!(rank, 's' | 't' | 'v'))?;
        Some(Self { name: name.to_owned(), rank, detail: rest[1..].to_owned() })
    }

    fn marker(&self) -> String {
        format!("{}/{}{}", self.name, self.rank, self.detail)
    }
}

impl FileService {
    /// A page of the shares.
    pub fn list_shares(&self, options: &ListOptions<'_>) -> FileServiceResult<SharePage> {
        let from = match options.marker {
            None | Some("") => None,
            Some(text) => {
                Some(ListingKey::parse(text).ok_or(ShareDenial::InvalidContinuationToken)?)
            }
        };
        let limit = options.limit.unwrap_or(LIST_MAX).clamp(1, LIST_MAX);
        let first = from.as_ref().map_or(options.prefix, |from| options.prefix.max(&*from.name));
        let mut found = self.deleted_infos(options, first);
        found.extend(self.served_infos(options, first, limit));
        let mut found: Vec<_> = found.into_iter().map(|info| (info.key(), info)).collect();
        found.retain(|(key, _)| from.as_ref().is_none_or(|from| key >= from));
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        let next = found.get(limit).map(|(key, _)| key.marker());
        found.truncate(limit);
        let shares = found.into_iter().map(|(_, mut info)| {
            if !options.metadata {
                info.properties.metadata = crate::file::store::share::Metadata::default();
            }
            info
        });
        Ok(SharePage { shares: shares.collect(), next })
    }

    /// All that `options` ask for, whatever their limit and marker say.
    pub fn every_share(&self, options: &ListOptions<'_>) -> FileServiceResult<Vec<ShareInfo>> {
        let mut found = Vec::new();
        let mut marker = None;
        loop {
            let options = ListOptions { marker: marker.as_deref(), limit: None, ..*options };
            let page = self.list_shares(&options)?;
            found.extend(page.shares);
            marker = page.next;
            if marker.is_none() {
                return Ok(found);
            }
        }
    }

    /// Enough shares from the name `first` on to fill a page and say whether there are more. One
    /// more than that: the first name may be over but for its snapshots.
    fn served_infos(&self, options: &ListOptions<'_>, first: &str, limit: usize) -> Vec<ShareInfo> {
        let served: Vec<_> = self
            .slots()
            .range::<str, _>((Bound::Included(first), Bound::Unbounded))
            .take_while(|(name, _)| name.starts_with(options.prefix))
            .filter_map(|(_, slot)| match slot {
                ShareSlot::Served(served) => Some(Arc::clone(served)),
                ShareSlot::Coming | ShareSlot::Going => None,
            })
            .take(limit + 2)
            .collect();
        let now = self.now();
        let mut found = Vec::new();
        for served in served {
            let Ok(kept) = served.kept() else { continue };
            let name = served.share.name();
            if options.snapshots {
                found.extend(
                    kept.snapshots
                        .iter()
                        .map(|(stamp, facts)| ShareInfo::served(name, Some(stamp), facts, now)),
                );
            }
            found.push(ShareInfo::served(name, None, &kept.own, now));
        }
        found
    }

    fn deleted_infos(&self, options: &ListOptions<'_>, first: &str) -> Vec<ShareInfo> {
        if !options.deleted {
            return Vec::new();
        }
        let now = self.now();
        let deleted = self.deleted.lock().expect(POISON);
        deleted
            .range((first.to_owned(), String::new())..)
            .take_while(|((name, _), _)| name.starts_with(options.prefix))
            .filter_map(|((name, version), gone)| {
                let remaining_days = self.remaining_days(gone.when)?;
                Some(ShareInfo {
                    name: name.as_str().into(),
                    snapshot: None,
                    deleted: Some(ShareDeletion {
                        version: version.clone(),
                        when: gone.when,
                        remaining_days,
                    }),
                    properties: gone.properties.clone(),
                    lease: LeaseView::of(&ShareLease::default(), now),
                })
            })
            .collect()
    }
}
