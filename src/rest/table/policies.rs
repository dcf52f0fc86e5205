//! Get and Set Table ACL: stored access policies as XML. Dates are given back as they were sent.

use hyper::StatusCode;

use super::TableCall;
use super::headers::reply;
use crate::core::table::Policy;
use crate::rest::http::policies::{Bare, PolicyText, read_policies, write_policies};
use crate::rest::http::reply::Reply;
use crate::rest::service::Answer;

impl TableCall<'_> {
    pub(super) async fn access_policy(self) -> Answer {
        let policies = self.service()?.policies(&self.table()?).await;
        let policies = policies.map_err(|error| self.refusal(&error))?;
        let xml = write_policies(policies.into_iter().map(sent), Bare::LeftOut);
        Ok(Reply::ok().xml(xml))
    }

    pub(super) async fn set_access_policy(self) -> Answer {
        let policies = read_policies(&self.body)?.into_iter().map(kept).collect();
        let set = self.service()?.set_policies(self.context, &self.table()?, policies).await;
        set.map_err(|error| self.refusal(&error))?;
        Ok(reply(StatusCode::NO_CONTENT))
    }
}

/// A policy as it is kept.
fn kept(text: PolicyText) -> Policy {
    let PolicyText { id, start, expiry, permission } = text;
    Policy { id, start, expiry, permission }
}

/// A policy as it is sent.
fn sent(policy: Policy) -> PolicyText {
    let Policy { id, start, expiry, permission } = policy;
    PolicyText { id, start, expiry, permission }
}
