//! Messages: put, get, peek, clear; update and delete by ID and pop receipt (S97).
//!
//! Decides how a message's text is read and written: to the letter. The server never decodes it;
//! base64 is the client's choice. A receipt is read from the query as it was sent, percent-decoded:
//! a plus stands for itself there, and an empty receipt is one, though a wrong one.

use hyper::body::Incoming;
use percent_encoding::percent_decode_str;

use super::{QueueCall, no_content, segments};
use crate::http::frame::facts::fingerprint;
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::http::xml::{Element, Xml, invalid, is_xml};
use crate::queue::rules::parameters::{
    GET_VISIBILITY, NUMBER, NUMBER_OF_MESSAGES, POP_RECEIPT, TIME_TO_LIVE, UPDATE_VISIBILITY,
    VISIBILITY_TIMEOUT,
};
use crate::queue::rules::{Message, PutTimes, QueueDenial};
use crate::queue::service::{NewMessage, Shown};
use crate::rules::given::GivenMessage;

const LIST: &str = "QueueMessagesList";
const MESSAGE: &str = "QueueMessage";
const TEXT: &str = "MessageText";

impl QueueCall<'_> {
    pub(super) async fn put_message(self, body: Incoming) -> Answer {
        let body = self.collect(body).await?;
        let query = &self.query;
        let times = PutTimes::read(query.get(VISIBILITY_TIMEOUT), query.get(TIME_TO_LIVE))?;
        let text = read_text(&body)?;
        let new = NewMessage { text, times };
        let put = self.service()?.put_message(self.context, self.queue()?, new).await?;
        self.note(&put);
        let mut xml = Xml::default();
        xml.open(LIST);
        xml.open(MESSAGE);
        write_times(&mut xml, &put);
        write_receipt(&mut xml, &put);
        xml.close(MESSAGE);
        xml.close(LIST);
        Ok(Reply::created().xml(xml))
    }

    pub(super) async fn get_messages(self, _: Incoming) -> Answer {
        let most = NUMBER.read(self.query.get(NUMBER_OF_MESSAGES))?;
        let visibility = GET_VISIBILITY.read(self.query.get(VISIBILITY_TIMEOUT))?;
        let queues = self.service()?;
        let got = queues.get_messages(self.context, self.queue()?, most, visibility).await?;
        for Shown { message, .. } in &got {
            self.note(message);
        }
        Ok(listed(&got, true))
    }

    pub(super) fn peek_messages(self) -> Answer {
        let most = NUMBER.read(self.query.get(NUMBER_OF_MESSAGES))?;
        let seen = self.service()?.peek_messages(self.context, self.queue()?, most)?;
        Ok(listed(&seen, false))
    }

    pub(super) async fn clear_messages(self, _: Incoming) -> Answer {
        self.service()?.clear_messages(self.context, self.queue()?).await?;
        Ok(no_content())
    }

    pub(super) async fn update_message(self, body: Incoming) -> Answer {
        let body = self.collect(body).await?;
        let receipt = receipt(&self)?;
        let visibility = UPDATE_VISIBILITY.read(self.query.get(VISIBILITY_TIMEOUT))?;
        // No body keeps the text.
        let text = if body.is_empty() { None } else { Some(read_text(&body)?) };
        let (queue, id, with) = (self.queue()?, id(&self), (visibility, text));
        let queues = self.service()?;
        let new = queues.update_message(self.context, queue, &id, &receipt, with).await?;
        self.note(&new);
        Ok(no_content()
            .header("x-ms-popreceipt", new.receipt())
            .header("x-ms-time-next-visible", new.visible_at.rfc1123()))
    }

    pub(super) async fn delete_message(self, _: Incoming) -> Answer {
        let receipt = receipt(&self)?;
        let (queue, id) = (self.queue()?, id(&self));
        self.service()?.delete_message(self.context, queue, &id, &receipt).await?;
        Ok(no_content())
    }

    /// Notes that the client was given a message and its receipt.
    fn note(&self, message: &Message) {
        self.context.note(|given| {
            given.messages.push(GivenMessage {
                message: message.id.to_string(),
                receipt_given: Some(fingerprint(&message.receipt().to_string())),
                visible_until: message.visible_at.timestamp(),
                dequeue_count: message.dequeue_count.into(),
            });
        });
    }
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
