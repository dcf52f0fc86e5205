//! One message: update and delete, by its ID and pop receipt (S97).
//!
//! Decides how a receipt is read from the query: as it was sent, percent-decoded. A plus stands
//! for itself there, and an empty receipt is one, though a wrong one.

use hyper::body::Incoming;
use percent_encoding::percent_decode_str;

use super::messages::{note, read_text};
use super::{no_content, queue_name, queues, segments};
use crate::http::frame::call::Call;
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::request::Request;
use crate::queue::rules::QueueDenial;
use crate::queue::rules::parameters::{POP_RECEIPT, UPDATE_VISIBILITY, VISIBILITY_TIMEOUT};

pub(super) async fn update(call: &Call<'_>, body: Incoming) -> Answer {
    let body = call.collect(body).await?;
    let receipt = receipt(call)?;
    let visibility = UPDATE_VISIBILITY.read(call.query.get(VISIBILITY_TIMEOUT))?;
    // No body keeps the text.
    let text = if body.is_empty() { None } else { Some(read_text(&body)?) };
    let (queue, id, with) = (queue_name(call)?, id(call), (visibility, text));
    let queues = queues(call)?;
    let new = queues.update_message(call.context, queue, &id, &receipt, with).await?;
    note(call, &new);
    Ok(no_content()
        .header("x-ms-popreceipt", new.receipt())
        .header("x-ms-time-next-visible", new.visible_at.rfc1123()))
}

pub(super) async fn delete(call: &Call<'_>, _: Incoming) -> Answer {
    let receipt = receipt(call)?;
    let (queue, id) = (queue_name(call)?, id(call));
    queues(call)?.delete_message(call.context, queue, &id, &receipt).await?;
    Ok(no_content())
}

fn id(request: &Request) -> String {
    segments(request).pop().unwrap_or_default()
}

fn receipt(request: &Request) -> Result<String, Refusal> {
    let raw = request.uri.query().unwrap_or_default();
    let found = raw.split('&').find_map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        name.eq_ignore_ascii_case(POP_RECEIPT).then_some(value)
    });
    let value = found.ok_or(QueueDenial::MissingParameter(POP_RECEIPT))?;
    Ok(percent_decode_str(value).decode_utf8_lossy().into_owned())
}
