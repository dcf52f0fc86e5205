//! Get and Set Share ACL. The document is read and written in [`crate::http::policies`]; what
//! a policy grants is decided in [`crate::http::auth`].

use super::FileCall;
use super::share::share_version;
use crate::http::frame::service::Answer;
use crate::http::policies::{read_timed_policies, write_policies};
use crate::http::reply::Reply;
use crate::rules::policy::SentPolicy;

impl FileCall<'_> {
    pub(super) fn access_policy(&self) -> Answer {
        let info = self.engine()?.properties(&self.share_ref(None)?)?;
        let policies = info.properties.policies.iter().map(SentPolicy::from);
        let xml = write_policies(policies);
        let properties = &info.properties;
        Ok(Reply::ok().xml(xml).version(properties.tag, properties.modified))
    }

    pub(super) fn set_access_policy(&self) -> Answer {
        let snapshot = self.snapshot()?;
        let at = self.share_ref(snapshot.as_ref())?;
        let policies = read_timed_policies(&self.request.body)?;
        Ok(share_version(Reply::ok(), self.engine()?.set_policies(&at, policies)?))
    }
}
