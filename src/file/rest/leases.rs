//! Leases of shares, snapshots and files. No action moves `ETag` or Last-Modified.

use super::FileCall;
use super::share::share_version;
use crate::file::service::Asking;
use crate::file::service::shares::ShareRef;
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::reply::Reply;
use crate::rules::LeaseId;
use crate::rules::lease::{LeaseAction, Leased};
use crate::sync::random;

const LEASE_ID: &str = "x-ms-lease-id";
const PROPOSED: &str = "x-ms-proposed-lease-id";

impl FileCall<'_> {
    fn lease_header(&self, name: &str) -> Result<LeaseId, Refusal> {
        self.request.lease_id(name)?.ok_or_else(|| Refusal::missing_header(name))
    }

    /// The action, which the table has found to be one; a period only a share's break has.
    fn lease_action(&self, of_share: bool) -> Result<LeaseAction, Refusal> {
        let action = self.request.required("x-ms-lease-action")?;
        Ok(match action.to_ascii_lowercase().as_str() {
            "acquire" => {
                let what = "it must be a number of seconds, or -1";
                let duration = self.request.parsed("x-ms-lease-duration", what)?;
                let (proposed, fresh) = (self.request.lease_id(PROPOSED)?, random::lease_id());
                LeaseAction::Acquire { duration, proposed, fresh }
            }
            "renew" => LeaseAction::Renew(self.lease_header(LEASE_ID)?),
            "change" => {
                let current = self.lease_header(LEASE_ID)?;
                LeaseAction::Change { current, proposed: self.lease_header(PROPOSED)? }
            }
            "release" => LeaseAction::Release(self.lease_header(LEASE_ID)?),
            _ if of_share => {
                let what = "it must be a number of seconds";
                LeaseAction::Break(self.request.parsed("x-ms-lease-break-period", what)?)
            }
            _ => LeaseAction::Break(None),
        })
    }

    pub(super) fn lease_share(&self) -> Answer {
        let action = self.lease_action(true)?;
        let snapshot = self.snapshot()?;
        // The lease ID is the action's own: it is no condition on the share.
        let at = ShareRef { name: self.share()?, snapshot: snapshot.as_ref(), lease_id: None };
        let (leased, version) = self.engine()?.lease(&at, action)?;
        Ok(share_version(replied(action, leased), version))
    }

    pub(super) fn lease_file(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.path()?);
        let action = self.lease_action(false)?;
        let asking = Asking { cx: self.cx(), lease_id: None };
        let (leased, file) = share.lease_file(asking, &path, action)?;
        Ok(replied(action, leased).version(file.etag(), file.last_modified()))
    }
}

fn replied(action: LeaseAction, (id, seconds): Leased) -> Reply {
    let reply = match action {
        LeaseAction::Acquire { .. } => Reply::created(),
        LeaseAction::Break(_) => Reply::accepted(),
        LeaseAction::Renew(_) | LeaseAction::Change { .. } | LeaseAction::Release(_) => Reply::ok(),
    };
    reply.maybe(LEASE_ID, id).maybe("x-ms-lease-time", seconds)
}
