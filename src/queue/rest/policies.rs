//! Stored access policies of a queue. Times come back as they were sent.

use hyper::body::Incoming;

use super::{no_content, queue_name, queues};
use crate::http::frame::call::Call;
use crate::http::frame::service::Answer;
use crate::http::policies::{read_policies, write_policies};
use crate::http::reply::Reply;

pub(super) fn get(call: &Call<'_>) -> Answer {
    let policies = queues(call)?.policies(call.context, queue_name(call)?)?;
    let xml = write_policies(policies);
    Ok(Reply::ok().header("cache-control", "no-cache").xml(xml))
}

pub(super) async fn set(call: &Call<'_>, body: Incoming) -> Answer {
    let policies = read_policies(&call.collect(body).await?)?;
    queues(call)?.set_policies(call.context, queue_name(call)?, policies).await?;
    Ok(no_content())
}
