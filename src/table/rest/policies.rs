//! Get and Set Table ACL: stored access policies as XML. Dates are given back as they were sent.

use hyper::StatusCode;
use hyper::body::Incoming;

use super::TableCall;
use super::headers::reply;
use crate::http::frame::service::Answer;
use crate::http::policies::{read_policies, write_policies};
use crate::http::reply::Reply;

impl TableCall<'_> {
    pub(super) fn access_policy(self) -> Answer {
        let policies = self.service()?.policies(&self.table()?);
        let policies = policies.map_err(|error| self.refusal(&error))?;
        let xml = write_policies(policies);
        Ok(Reply::ok().xml(xml))
    }

    pub(super) async fn set_access_policy(self, body: Incoming) -> Answer {
        let policies = read_policies(&self.collect(body).await?)?;
        let set = self.service()?.set_policies(self.context, &self.table()?, policies).await;
        set.map_err(|error| self.refusal(&error))?;
        Ok(reply(StatusCode::NO_CONTENT))
    }
}
