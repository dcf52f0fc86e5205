//! The messages of a queue: put, get, peek, clear.
//!
//! Decides how a message's text is read and written: to the letter. The server never decodes it;
//! base64 is the client's choice.

use hyper::body::Incoming;

use super::{no_content, queue_name, queues};
use crate::http::frame::call::Call;
use crate::http::frame::facts::fingerprint;
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::reply::Reply;
use crate::http::xml::{Element, Xml, invalid, is_xml};
use crate::queue::rules::parameters::{
    GET_VISIBILITY, NUMBER, NUMBER_OF_MESSAGES, TIME_TO_LIVE, VISIBILITY_TIMEOUT,
};
use crate::queue::rules::{Message, PutTimes};
use crate::queue::service::{NewMessage, Shown};
use crate::rules::given::GivenMessage;

const LIST: &str = "QueueMessagesList";
const MESSAGE: &str = "QueueMessage";
const TEXT: &str = "MessageText";

pub(super) async fn put(call: &Call<'_>, body: Incoming) -> Answer {
    let body = call.collect(body).await?;
    let query = &call.query;
    let times = PutTimes::read(query.get(VISIBILITY_TIMEOUT), query.get(TIME_TO_LIVE))?;
    let text = read_text(&body)?;
    let new = NewMessage { text, times };
    let put = queues(call)?.put_message(call.context, queue_name(call)?, new).await?;
    note(call, &put);
    let mut xml = Xml::default();
    xml.open(LIST);
    xml.open(MESSAGE);
    write_times(&mut xml, &put);
    write_receipt(&mut xml, &put);
    xml.close(MESSAGE);
    xml.close(LIST);
    Ok(Reply::created().xml(xml))
}

pub(super) async fn get(call: &Call<'_>, _: Incoming) -> Answer {
    let most = NUMBER.read(call.query.get(NUMBER_OF_MESSAGES))?;
    let visibility = GET_VISIBILITY.read(call.query.get(VISIBILITY_TIMEOUT))?;
    let queues = queues(call)?;
    let got = queues.get_messages(call.context, queue_name(call)?, most, visibility).await?;
    for Shown { message, .. } in &got {
        note(call, message);
    }
    Ok(listed(&got, true))
}

pub(super) fn peek(call: &Call<'_>) -> Answer {
    let most = NUMBER.read(call.query.get(NUMBER_OF_MESSAGES))?;
    let seen = queues(call)?.peek_messages(call.context, queue_name(call)?, most)?;
    Ok(listed(&seen, false))
}

pub(super) async fn clear(call: &Call<'_>, _: Incoming) -> Answer {
    queues(call)?.clear_messages(call.context, queue_name(call)?).await?;
    Ok(no_content())
}

/// Notes that the client was given a message and its receipt.
pub(super) fn note(call: &Call<'_>, message: &Message) {
    call.context.note(|given| {
        given.messages.push(GivenMessage {
            message: message.id.to_string(),
            receipt_given: Some(fingerprint(&message.receipt().to_string())),
            visible_until: message.visible_at.timestamp(),
            dequeue_count: message.dequeue_count.into(),
        });
    });
}

/// A list of messages; who takes them gets their receipts, who peeks does not.
fn listed(messages: &[Shown], receipts: bool) -> Reply {
    let mut xml = Xml::default();
    if messages.is_empty() {
        xml.empty(LIST);
    } else {
        xml.open(LIST);
        for Shown { message, text } in messages {
            xml.open(MESSAGE);
            write_times(&mut xml, message);
            if receipts {
                write_receipt(&mut xml, message);
            }
            xml.text("DequeueCount", &message.dequeue_count.to_string());
            xml.text(TEXT, text);
            xml.close(MESSAGE);
        }
        xml.close(LIST);
    }
    Reply::ok().header("cache-control", "no-cache").xml(xml)
}

fn write_times(xml: &mut Xml, message: &Message) {
    xml.text("MessageId", &message.id.to_string());
    xml.text("InsertionTime", &message.inserted.rfc1123());
    xml.text("ExpirationTime", &message.shown_expiry().rfc1123());
}

fn write_receipt(xml: &mut Xml, message: &Message) {
    xml.text("PopReceipt", &message.receipt().to_string());
    xml.text("TimeNextVisible", &message.visible_at.rfc1123());
}

/// The text of a message that is put or updated.
pub(crate) fn read_text(body: &[u8]) -> Result<String, Refusal> {
    let mut root = Element::read_exact(body, MESSAGE)?;
    let text = root.children.iter_mut().find(|child| child.name == TEXT);
    let text = text.ok_or_else(|| invalid("the element MessageText is missing"))?;
    if !text.children.is_empty() {
        return Err(invalid("MessageText has elements; escape the text of the message"));
    }
    if !text.text.chars().all(is_xml) {
        return Err(invalid("a character of MessageText is not allowed in XML 1.0"));
    }
    Ok(std::mem::take(&mut text.text))
}
