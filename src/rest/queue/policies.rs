//! Stored access policies of a queue. Times come back as they were sent.

use super::{no_content, queue_name, queues};
use crate::core::queue::QueuePolicy;
use crate::rest::call::Call;
use crate::rest::http::policies::{Bare, PolicyText, read_policies, write_policies};
use crate::rest::http::reply::Reply;
use crate::rest::service::Answer;

/// Get Queue ACL.
pub(super) async fn get(call: &Call<'_>) -> Answer {
    let policies = queues(call)?.policies(call.context, queue_name(call)?).await?;
    let xml = write_policies(policies.into_iter().map(sent), Bare::Written);
    Ok(Reply::ok().header("cache-control", "no-cache").xml(xml))
}

/// Set Queue ACL.
pub(super) async fn set(call: &Call<'_>) -> Answer {
    let policies = read_policies(&call.body)?.into_iter().map(kept).collect();
    queues(call)?.set_policies(call.context, queue_name(call)?, policies).await?;
    Ok(no_content())
}

/// A policy as it is kept.
fn kept(text: PolicyText) -> QueuePolicy {
    let PolicyText { id, start, expiry, permission } = text;
    QueuePolicy { id, start, expiry, permission }
}

/// A policy as it is sent.
fn sent(policy: QueuePolicy) -> PolicyText {
    let QueuePolicy { id, start, expiry, permission } = policy;
    PolicyText { id, start, expiry, permission }
}
