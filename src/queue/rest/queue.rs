//! Queues as a whole: create, delete, metadata. No condition is read: the last writer wins (S102).

use hyper::StatusCode;
use hyper::body::Incoming;

use super::{no_content, queue_name, queues};
use crate::http::frame::call::Call;
use crate::http::frame::service::Answer;
use crate::http::reply::Reply;
use crate::queue::service::Created;

pub(super) async fn create(call: &Call<'_>, _: Incoming) -> Answer {
    let (name, metadata) = (queue_name(call)?, call.metadata()?);
    let made = queues(call)?.create_queue(call.context, name, metadata).await?;
    Ok(Reply::new(match made {
        Created::New => StatusCode::CREATED,
        Created::Existed => StatusCode::NO_CONTENT,
    }))
}

pub(super) async fn delete(call: &Call<'_>, _: Incoming) -> Answer {
    queues(call)?.delete_queue(call.context, queue_name(call)?).await?;
    Ok(no_content())
}

pub(super) fn properties(call: &Call<'_>) -> Answer {
    let info = queues(call)?.queue_info(call.context, queue_name(call)?)?;
    let reply = Reply::ok().header("cache-control", "no-cache");
    Ok(reply.header("x-ms-approximate-messages-count", info.messages).metadata(&info.metadata))
}

pub(super) async fn set_metadata(call: &Call<'_>, _: Incoming) -> Answer {
    let (name, metadata) = (queue_name(call)?, call.metadata()?);
    queues(call)?.set_metadata(call.context, name, metadata).await?;
    Ok(no_content())
}
