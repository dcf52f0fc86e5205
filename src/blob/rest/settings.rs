//! Changes of a blob that leave its content; its lease; snapshots and deletion.

use hyper::StatusCode;
use hyper::body::Incoming;

use super::BlobCall;
use super::body::DOCUMENT_MAX;
use super::headers::bad_tags;
use crate::blob::rules::BlobOperation;
use crate::blob::rules::deletion::DeleteBlobSnapshots;
use crate::blob::rules::tags::Tags;
use crate::blob::rules::tier::{TierChange, TierConditions};
use crate::blob::service::{BlobAt, DeleteBlob, LeaseAction, LeaseAnswer, Selector};
use crate::http::auth::Permission;
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::reply::Reply;
use crate::http::xml::Element;
use crate::rules::time::{iso, rfc1123};
use crate::sync::random;

const LEASE_ID: &str = "x-ms-lease-id";
const PROPOSED: &str = "x-ms-proposed-lease-id";

impl BlobCall<'_> {
    pub(super) async fn set_properties(self, _: Incoming) -> Answer {
        if let Some(reply) = self.set_page_properties().await? {
            return Ok(reply);
        }
        let (at, asked) = (self.blob_to_change()?, self.asked(BlobOperation::BlobSetHttpHeaders)?);
        let content = self.content_sent()?.unwrap_or_default().replacing();
        let set = self.engine()?.set_properties(self.cx(), &at, asked, content).await;
        let written = self.told(set)?;
        let mut reply = Reply::ok().etag(written.etag, written.modified);
        if written.state.kind == crate::blob::rules::BlobType::Page {
            reply.set("x-ms-blob-sequence-number", written.state.sequence_number);
        }
        Ok(reply)
    }

    pub(super) async fn set_metadata(self, _: Incoming) -> Answer {
        let (at, asked) = (self.blob_to_change()?, self.asked(BlobOperation::BlobSetMetadata)?);
        let metadata = self.metadata_sent()?;
        let set = self.engine()?.set_metadata(self.cx(), &at, asked, metadata).await;
        Ok(Reply::ok().blob_written(&self.told(set)?))
    }

    pub(super) async fn set_tags(self, body: Incoming) -> Answer {
        let document = self.collect_up_to(DOCUMENT_MAX, body).await?;
        let (at, asked) = (self.blob_at()?, self.asked(BlobOperation::BlobSetTags)?);
        self.sums_sent()?.check(&document)?;
        let tags = read_tags(&document)?;
        self.told(self.engine()?.set_tags(self.cx(), &at, asked, tags).await)?;
        Ok(Reply::new(StatusCode::NO_CONTENT))
    }

    pub(super) async fn set_tier(self, _: Incoming) -> Answer {
        self.set_tier_now().await
    }

    /// Set Blob Tier, also as a part of a batch.
    pub(super) async fn set_tier_now(self) -> Answer {
        let (at, asked) = (self.blob_at()?, self.asked(BlobOperation::BlobSetTier)?);
        let tier = self.tier_sent()?.ok_or_else(|| Refusal::missing_header("x-ms-access-tier"))?;
        let set = self.engine()?.set_tier(self.cx(), &at, asked, tier).await;
        Ok(match self.told(set)? {
            TierChange::Done => Reply::ok(),
            TierChange::Rehydrating => Reply::accepted(),
        })
    }

    pub(super) async fn set_immutability(self, _: Incoming) -> Answer {
        const UNTIL: &str = "x-ms-immutability-policy-until-date";
        let operation = BlobOperation::BlobSetImmutabilityPolicy;
        let (at, asked) = (self.blob_at()?, self.asked(operation)?);
        let policy = self.policy_sent()?.ok_or_else(|| Refusal::missing_header(UNTIL))?;
        let set = self.engine()?.set_immutability(self.cx(), &at, asked, policy).await;
        self.told(set)?;
        Ok(Reply::ok()
            .header(UNTIL, rfc1123(policy.until))
            .header("x-ms-immutability-policy-mode", policy.mode))
    }

    pub(super) async fn delete_immutability(self, _: Incoming) -> Answer {
        let operation = BlobOperation::BlobDeleteImmutabilityPolicy;
        let (at, asked) = (self.blob_at()?, self.asked(operation)?);
        self.told(self.engine()?.delete_immutability(self.cx(), &at, asked).await)?;
        Ok(Reply::ok())
    }

    pub(super) async fn set_legal_hold(self, _: Incoming) -> Answer {
        let (at, asked) = (self.blob_at()?, self.asked(BlobOperation::BlobSetLegalHold)?);
        self.required("x-ms-legal-hold")?;
        let hold = self.flag("x-ms-legal-hold")?;
        self.told(self.engine()?.set_legal_hold(self.cx(), &at, asked, hold).await)?;
        Ok(Reply::ok().header("x-ms-legal-hold", hold))
    }

    pub(super) async fn snapshot_blob(self, _: Incoming) -> Answer {
        let (at, asked) = (self.blob_to_change()?, self.asked(BlobOperation::BlobCreateSnapshot)?);
        let metadata = self.metadata_sent()?;
        let taken = self.engine()?.snapshot(self.cx(), &at, asked, metadata).await;
        let (moment, state) = self.told(taken)?;
        Ok(Reply::created()
            .etag(state.etag, state.modified)
            .header("x-ms-snapshot", iso(moment))
            .header("x-ms-request-server-encrypted", "true")
            .maybe("x-ms-version-id", state.version.map(iso)))
    }

    pub(super) async fn delete_blob(self, _: Incoming) -> Answer {
        self.delete_blob_now().await
    }

    /// Delete Blob, also as a part of a batch.
    pub(super) async fn delete_blob_now(self) -> Answer {
        const SNAPSHOTS: &str = "x-ms-delete-snapshots";
        let (at, asked) = (self.blob_at()?, self.asked(BlobOperation::BlobDelete)?);
        let snapshots = match self.header(SNAPSHOTS)? {
            None => None,
            Some("include") => Some(DeleteBlobSnapshots::Include),
            Some("only") => Some(DeleteBlobSnapshots::Only),
            Some(text) => {
                return Err(Refusal::header(SNAPSHOTS, text, "it must be include or only"));
            }
        };
        let permanent = match self.query.get("deletetype") {
            None => false,
            Some(text) if text.eq_ignore_ascii_case("permanent") => true,
            Some(text) => return Err(Refusal::query("deletetype", text, "it must be Permanent")),
        };
        self.check_delete_letter(&at, permanent)?;
        let tier = TierConditions {
            modified_since: self.date("x-ms-access-tier-if-modified-since")?,
            unmodified_since: self.date("x-ms-access-tier-if-unmodified-since")?,
        };
        let delete = DeleteBlob { snapshots, permanent, tier };
        let deleted = self.engine()?.delete_blob(self.cx(), &at, asked, delete).await;
        let deleted = self.told(deleted)?;
        Ok(Reply::accepted().header("x-ms-delete-type-permanent", deleted.permanent))
    }

    /// A SAS has a letter each for blobs, for versions and for what is kept after a deletion.
    fn check_delete_letter(&self, at: &BlobAt, permanent: bool) -> Result<(), Refusal> {
        let needed = match at.selector {
            _ if permanent => Permission::PermanentDelete,
            Selector::Version(_) => Permission::DeleteVersion,
            Selector::Current | Selector::Snapshot(_) => Permission::Delete,
        };
        self.check_letter(needed)
    }

    pub(super) async fn undelete_blob(self, _: Incoming) -> Answer {
        let at = self.blob_to_change()?;
        self.told(self.engine()?.undelete_blob(self.cx(), &at).await)?;
        Ok(Reply::ok())
    }

    pub(super) async fn lease_blob(self, _: Incoming) -> Answer {
        let action = self.lease_action()?;
        let at = self.blob_at()?;
        if at.selector != Selector::Current {
            let message = "The operation is not supported on a snapshot or version.";
            return Err(Refusal::bad("InvalidOperation", message));
        }
        let asked = self.asked(action.on_blob())?;
        let engine = self.engine()?;
        let done = engine.lease_blob(self.cx(), &at, asked.conditions, asked.tags, action).await;
        Ok(leased_reply(action, &self.told(done)?))
    }

    /// The action of a lease request; its form is checked before any state is looked at.
    pub(super) fn lease_action(&self) -> Result<LeaseAction, Refusal> {
        const ACTION: &str = "x-ms-lease-action";
        let id = |name: &str| self.lease_id(name)?.ok_or_else(|| Refusal::missing_header(name));
        let action = self.required(ACTION)?;
        match action.to_ascii_lowercase().as_str() {
            "acquire" => {
                const DURATION: &str = "x-ms-lease-duration";
                self.required(DURATION)?;
                let duration = self.parsed(DURATION, "it must be 15 to 60, or -1")?;
                let (proposed, fresh) = (self.lease_id(PROPOSED)?, random::lease_id());
                Ok(LeaseAction::Acquire { duration, proposed, fresh })
            }
            "renew" => Ok(LeaseAction::Renew(id(LEASE_ID)?)),
            "change" => Ok(LeaseAction::Change { current: id(LEASE_ID)?, proposed: id(PROPOSED)? }),
            "release" => Ok(LeaseAction::Release(id(LEASE_ID)?)),
            "break" => Ok(LeaseAction::Break(
                self.parsed("x-ms-lease-break-period", "it must be 0 to 60")?,
            )),
            _ => Err(Refusal::header(ACTION, action, "it names no action")),
        }
    }
}

/// The answer to a lease request.
pub(super) fn leased_reply(action: LeaseAction, leased: &LeaseAnswer) -> Reply {
    let reply = match action {
        LeaseAction::Acquire { .. } => Reply::created(),
        LeaseAction::Break(_) => Reply::accepted(),
        LeaseAction::Renew(_) | LeaseAction::Change { .. } | LeaseAction::Release(_) => Reply::ok(),
    };
    let reply = match leased.version {
        Some((etag, modified)) => reply.etag(etag, modified),
        None => reply,
    };
    reply.maybe("x-ms-lease-id", leased.id).maybe("x-ms-lease-time", leased.seconds)
}

pub(crate) fn read_tags(document: &[u8]) -> Result<Tags, Refusal> {
    let root = Element::read(document, "Tags")?;
    let set = root.child("TagSet");
    let tags = set.map(|set| set.children.as_slice()).unwrap_or_default();
    let text = |tag: &Element, name: &str| {
        tag.child(name).map(|child| child.text.clone()).unwrap_or_default()
    };
    let pairs = tags.iter().map(|tag| (text(tag, "Key"), text(tag, "Value")));
    Tags::new(pairs).map_err(|error| bad_tags(&error))
}
