//! List Blobs, and Find Blobs by Tags.
//!
//! Decides what a listing leaves out: deleted states whose time is over. Order, prefixes and
//! positions are decided by the store; what an expression over tags means is decided in
//! [`crate::blob::rules::tags`].

use std::ops::Bound;

use super::change::{BlobRow, BlobView};
use super::{BlobResult, BlobService};
use crate::blob::rules::tags::Tags;
use crate::blob::rules::tags::query::{ComparisonKey, TagComparison, TagQuery};
use crate::blob::rules::{BlobDenial, BlobState, ContainerState};
use crate::blob::store::{ContainerId, ListedBlob, Retained, StateKey, TagSearch};
pub use crate::blob::store::{ListBlobs, ListPosition};
use crate::rules::comparison::ComparisonOperator;
use crate::rules::{Context, Timestamp};

/// A page of blobs.
#[derive(Debug, Default)]
pub struct ListPage {
    /// Blobs and prefixes, in order.
    pub items: Vec<BlobListItem>,
    /// Where the next page begins.
    pub next: Option<ListPosition>,
}

/// An entry of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BlobListItem {
    /// Names that begin alike.
    Prefix(String),
    /// A state of a blob.
    Blob(Box<ListedState>),
}

/// A state of a blob, as it is listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedState {
    pub name: String,
    /// The moment of a snapshot.
    pub snapshot: Option<Timestamp>,
    /// The version ID, where the account keeps versions.
    pub version: Option<Timestamp>,
    /// Whether it is the blob itself.
    pub is_current: bool,
    /// Whether it is uncommitted blocks and nothing else.
    pub is_uncommitted: bool,
    /// Whether it is the newest version of a deleted blob and stands for that blob.
    pub has_versions_only: bool,
    /// Of a deleted state that is kept, until when.
    pub deleted: Option<Retained>,
    pub state: BlobState,
}

/// A blob that was found by its tags.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundBlob {
    pub container: String,
    pub name: String,
    /// The tags that the expression compares.
    pub tags: Tags,
}

/// Blobs that were found, and container and name that the next page begins with.
pub type FoundPage = (Vec<FoundBlob>, Option<(String, String)>);

impl BlobService {
    pub fn list_blobs(
        &self,
        cx: &Context,
        container: &str,
        query: &ListBlobs,
    ) -> BlobResult<ListPage> {
        self.look(cx, |look| {
            let id = look.container(container)?.id;
            list(look, id, query)
        })
    }

    /// Find Blobs by Tags, in one container or in all. At least one tag must be compared.
    pub fn find_blobs(
        &self,
        cx: &Context,
        container: Option<&str>,
        query: &TagQuery,
        from: Option<&(String, String)>,
        max: usize,
    ) -> BlobResult<FoundPage> {
        if !query.conjuncts().iter().any(|one| matches!(one.key, ComparisonKey::Tag(_))) {
            return Err(BlobDenial::InvalidTagQuery.into());
        }
        self.look(cx, |look| {
            // The container of the request bounds the search, whatever the query says.
            let within = match container.or(container_of(query)) {
                Some(name) if container.is_some() => Some(look.container(name)?.id),
                Some(name) => match look.tx.container::<ContainerState>(name)? {
                    Some(row) => Some(row.id),
                    None => return Ok((Vec::new(), None)),
                },
                None => None,
            };
            find(look, within, query, from, max)
        })
    }
}

fn list(look: &BlobView<'_>, container: ContainerId, query: &ListBlobs) -> BlobResult<ListPage> {
    let listing = look.tx.list_blobs::<BlobState>(container, query)?;
    let kept = |row: &BlobRow| row.retained.is_none_or(|kept| kept.until > look.now);
    let items = listing.items.into_iter().filter_map(|item| match item {
        ListedBlob::Prefix(prefix) => Some(BlobListItem::Prefix(prefix)),
        ListedBlob::Blob(row) if !kept(&row) => None,
        ListedBlob::Blob(row) => {
            Some(BlobListItem::Blob(Box::new(ListedState::of(look.at_now(*row)))))
        }
        ListedBlob::DeletedWithVersions(row) => {
            let newest = ListedState::of(look.at_now(*row));
            Some(BlobListItem::Blob(Box::new(ListedState { has_versions_only: true, ..newest })))
        }
    });
    Ok(ListPage { items: items.collect(), next: listing.next })
}

impl ListedState {
    fn of(row: BlobRow) -> Self {
        let snapshot = match row.key {
            StateKey::Snapshot(moment) => Some(moment),
            _ => None,
        };
        Self {
            name: row.name,
            snapshot,
            version: row.record.version,
            is_current: row.key == StateKey::Current,
            is_uncommitted: row.key == StateKey::Uncommitted,
            has_versions_only: false,
            deleted: row.retained,
            state: row.record,
        }
    }
}

/// The container that an expression names.
fn container_of(query: &TagQuery) -> Option<&str> {
    let named = |one: &&TagComparison| {
        one.key == ComparisonKey::Container && one.operator == ComparisonOperator::Equal
    };
    query.conjuncts().into_iter().find(named).map(|one| one.value.as_str())
}

/// Reads the blobs that one comparison of the expression leaves, and tries the whole on each.
fn find(
    look: &BlobView<'_>,
    container: Option<ContainerId>,
    query: &TagQuery,
    from: Option<&(String, String)>,
    max: usize,
) -> BlobResult<FoundPage> {
    let conjuncts = query.conjuncts();
    let tags = || conjuncts.iter().filter(|one| matches!(one.key, ComparisonKey::Tag(_)));
    // An equality leaves fewest.
    let narrow =
        tags().find(|one| one.operator == ComparisonOperator::Equal).or_else(|| tags().next());
    let Some(TagComparison { key: ComparisonKey::Tag(key), operator, value }) = narrow else {
        return Err(BlobDenial::InvalidTagQuery.into());
    };
    let (low, high) = bounds(*operator, value);
    let from = from.map(|(container, name)| (container.as_str(), name.as_str()));
    let search = TagSearch { container, key, low, high, from, limit: max };
    let accept = |container: &str, row: &BlobRow| query.holds(container, &row.record.tags);
    let page = look.tx.find(&search, accept)?;
    let found = page.items.into_iter().map(|(container, row)| {
        let tags = row.record.tags.compared_in(query);
        FoundBlob { container, name: row.name, tags }
    });
    Ok((found.collect(), page.next))
}

fn bounds(operator: ComparisonOperator, value: &str) -> (Bound<&str>, Bound<&str>) {
    let (inside, outside) = (Bound::Included(value), Bound::Excluded(value));
    match operator {
        ComparisonOperator::Equal => (inside, inside),
        ComparisonOperator::NotEqual => (Bound::Unbounded, Bound::Unbounded),
        ComparisonOperator::Greater => (outside, Bound::Unbounded),
        ComparisonOperator::GreaterOrEqual => (inside, Bound::Unbounded),
        ComparisonOperator::Less => (Bound::Unbounded, outside),
        ComparisonOperator::LessOrEqual => (Bound::Unbounded, inside),
    }
}
