//! Fills a container before the first request is served: the blobs are made in a container that no
//! request can name, which then takes the name in one transaction.
//!
//! Decides that only a container without blobs is filled. The caller provides the blobs.

use super::access::BlobAt;
use super::change::BlobView;
use super::{BlobError, BlobResult, BlobService};
use crate::blob::rules::{BlobOperation, BlobState, ContainerState};
use crate::blob::store::{BlobStore, BlobTx, ContainerId, ListBlobs, WriteTx};
use crate::db::DbService as _;
use crate::db::Purpose;
use crate::rules::Context;

/// The container that is being filled. No request can name it.
const FILLING: &str = "$filling";

impl BlobService {
    /// Begins to fill a container; what an earlier filling left is removed. `None` if the
    /// container has blobs already. The result turns names into addresses to put blobs at.
    pub async fn begin_filling(
        &self,
        cx: &Context,
        name: &str,
    ) -> BlobResult<Option<impl Fn(String) -> BlobAt + use<>>> {
        let name = name.to_owned();
        let begun = self.change(cx, move |change| {
            if container_in_use(change, &name)?.is_some_and(|(_, used)| used) {
                return Ok(false);
            }
            remove_filling(change.tx)?;
            let state = ContainerState::new(change.etag()?, change.now);
            Ok(change.tx.add_container(FILLING, &state)?.is_some())
        });
        Ok(begun.await?.then_some(|name| BlobAt::new(FILLING, name)))
    }

    /// Gives what was filled its name. A container of that name keeps its properties. False if it
    /// has got blobs meanwhile.
    pub async fn end_filling(&self, cx: &Context, name: &str) -> BlobResult<bool> {
        let name = name.to_owned();
        self.change(cx, move |change| {
            let mut filled = change.container(FILLING)?;
            if let Some((there, used)) = container_in_use(change, &name)? {
                if used {
                    remove_filling(change.tx)?;
                    return Ok(false);
                }
                filled.record = change.container(&name)?.record;
                change.tx.delete_container(there, None)?;
            } else {
                let etags = (None, Some(filled.record.etag));
                let writer = change.writer(BlobOperation::ContainerCreate, &name, None, etags);
                filled.record.writer = Some(writer);
            }
            change.tx.update_container(filled.id, &filled.record)?;
            Ok(change.tx.restore_container(filled.id, &name)?)
        })
        .await
    }

    /// Gives a filling up.
    pub async fn cancel_filling(&self, cx: &Context) -> BlobResult<()> {
        self.delete(cx, |change| remove_filling(change.tx)).await
    }
}

/// The container of that name, and whether it has blobs.
fn container_in_use(look: &BlobView<'_>, name: &str) -> BlobResult<Option<(ContainerId, bool)>> {
    let Some(row) = look.tx.container::<ContainerState>(name)? else { return Ok(None) };
    let any = ListBlobs { limit: 1, uncommitted: true, deleted: true, ..ListBlobs::default() };
    let used = !look.tx.list_blobs::<BlobState>(row.id, &any)?.items.is_empty();
    Ok(Some((row.id, used)))
}

fn has_filling(tx: &BlobTx<'_>) -> BlobResult<Option<ContainerId>> {
    Ok(tx.container::<ContainerState>(FILLING)?.map(|row| row.id))
}

fn remove_filling(tx: &WriteTx<'_>) -> BlobResult<()> {
    match has_filling(tx)? {
        Some(id) => Ok(tx.delete_container(id, None)?),
        None => Ok(()),
    }
}

/// Removes what a filling left that the end of an earlier server cut off.
pub(super) fn remove_cut_off(store: &BlobStore) -> BlobResult<()> {
    if store.read::<_, BlobError>(has_filling)?.is_none() {
        return Ok(());
    }
    // On a full disk too: else the service does not open, and nothing can be deleted.
    store.write_for(Purpose::Delete, remove_filling)
}
