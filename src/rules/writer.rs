//! The request that changed an object last: who sent it, and when it was committed.
//!
//! Decides how a refusal names that request. Each service decides which of its objects keep a
//! writer.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::id::Timestamp;

/// The longest client request ID and user agent that a record keeps, in bytes.
pub const WRITER_TEXT_MAX: usize = 128;

/// The request that changed an object last.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Writer {
    /// The operation, as the service's documentation names it: `Merge Entity`.
    pub operation: String,
    /// The name of the client, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// `x-ms-client-request-id` of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request: Option<String>,
    /// `User-Agent` of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// The address that the request came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// When the change was committed, by the service's clock.
    pub when: Timestamp,
}

/// The beginning of `text`, at most [`WRITER_TEXT_MAX`] bytes of it.
pub fn shortened(text: &str) -> &str {
    let mut end = text.len().min(WRITER_TEXT_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl Writer {
    /// The sentence part of a refusal: `changed 0.8 s ago by Merge Entity, client request 5f..`.
    pub fn told_at(&self, now: Timestamp) -> String {
        self.told_as("changed", now)
    }

    /// As [`Writer::told_at`], of a request that acted on a lease. Only the request that acquired
    /// the lease is named as the lessee.
    pub fn told_of_lease(&self, now: Timestamp) -> String {
        let verbs = [
            ("(renew)", "lease renewed"),
            ("(change)", "lease ID changed"),
            ("(release)", "lease released"),
            ("(break)", "lease broken"),
        ];
        let found = verbs.into_iter().find(|(action, _)| self.operation.ends_with(action));
        self.told_as(found.map_or("leased", |(_, verb)| verb), now)
    }

    /// As [`Writer::told_at`], with another verb than "changed": `leased 0.8 s ago by ..`.
    pub fn told_as(&self, done: &str, now: Timestamp) -> String {
        let mut text = format!("{done} {} ago by {}", Ago(now.since(self.when)), self.operation);
        if let Some(client) = &self.client {
            text.push_str(", client ");
            text.push_str(client);
        }
        if let Some(id) = &self.client_request {
            text.push_str(", client request ");
            text.push_str(id);
        }
        if let Some(agent) = &self.user_agent {
            text.push_str(", ");
            text.push_str(agent);
        }
        if let Some(address) = &self.address {
            text.push_str(", from ");
            text.push_str(address);
        }
        text
    }
}

/// How long ago something was, for people: `0.8 s`, `3 min`, `2 h`, `5 d`.
pub struct Ago(pub Duration);

impl fmt::Display for Ago {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_secs() {
            0..120 => write!(f, "{:.1} s", self.0.as_secs_f64()),
            seconds @ 120..7_200 => write!(f, "{} min", seconds / 60),
            seconds @ 7_200..172_800 => write!(f, "{} h", seconds / 3_600),
            seconds => write!(f, "{} d", seconds / 86_400),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_is_told_with_what_is_known() {
        let mut writer = Writer { operation: "Merge Entity".into(), ..Writer::default() };
        let now = Timestamp(800_000_000);
        assert_eq!(writer.told_at(now), "changed 0.8 s ago by Merge Entity");
        writer.client_request = Some("5f".into());
        writer.user_agent = Some("azsdk".into());
        writer.address = Some("127.0.0.1:5".into());
        let named = Writer { client: Some("A".into()), ..writer.clone() };
        let told = "changed 0.8 s ago by Merge Entity, client A, client request 5f, azsdk, from \
                    127.0.0.1:5";
        assert_eq!(named.told_at(now), told);
        assert_eq!(
            writer.told_at(now.after(Duration::from_secs(200))),
            "changed 3 min ago by Merge Entity, client request 5f, azsdk, from 127.0.0.1:5"
        );
    }

    #[test]
    fn who_broke_a_lease_is_not_told_as_the_lessee() {
        let told = |operation: &str| {
            let writer = Writer { operation: operation.into(), ..Writer::default() };
            writer.told_of_lease(Timestamp(0))
        };
        let leased = "leased 0.0 s ago by Lease Blob (acquire)";
        assert_eq!(told("Lease Blob (acquire)"), leased);
        let broken = "lease broken 0.0 s ago by Lease Container (break)";
        assert_eq!(told("Lease Container (break)"), broken);
    }

    #[test]
    fn spans_are_told_in_the_unit_that_fits() {
        let told = |seconds: u64| Ago(Duration::from_secs(seconds)).to_string();
        assert_eq!(Ago(Duration::from_millis(800)).to_string(), "0.8 s");
        assert_eq!((&*told(0), &*told(3)), ("0.0 s", "3.0 s"));
        assert_eq!((&*told(119), &*told(120), &*told(7_199)), ("119.0 s", "2 min", "119 min"));
        assert_eq!((&*told(7_200), &*told(172_800)), ("2 h", "2 d"));
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let text = "ä".repeat(WRITER_TEXT_MAX);
        assert_eq!(shortened(&text).len(), WRITER_TEXT_MAX);
        assert_eq!(shortened(&format!("x{text}")).len(), WRITER_TEXT_MAX - 1);
        assert_eq!(shortened("short"), "short");
    }
}
