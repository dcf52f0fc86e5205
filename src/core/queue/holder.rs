//! The request that made a change, as a refusal and `latchfs why` name it.
//!
//! Decides which fields of a request are kept and how long they may be. [`super::message`] decides
//! which request holds a message.

use std::fmt;

use super::tick::Tick;
use crate::core::Writer;

/// The most characters that are kept of each text a client sends about itself.
const TEXT_MAX: usize = 128;

/// A request, as messages name it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Requester {
    /// The operation, as the service's documents call it.
    pub operation: String,
    /// The ID that the client gave its request; empty if it gave none.
    pub request: String,
    /// `User-Agent`; empty if there was none.
    pub agent: String,
    /// The client's address.
    pub address: String,
}

impl Requester {
    /// A request with these facts, cut to what is kept.
    pub fn new(operation: &str, request: &str, agent: &str, address: &str) -> Self {
        let kept = |text: &str| text.chars().take(TEXT_MAX).collect();
        Self {
            operation: kept(operation),
            request: kept(request),
            agent: kept(agent),
            address: kept(address),
        }
    }
}

impl fmt::Display for Requester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.operation)?;
        if !self.request.is_empty() {
            write!(f, ", client request {}", self.request)?;
        }
        for fact in [&self.agent, &self.address] {
            if !fact.is_empty() {
                write!(f, ", {fact}")?;
            }
        }
        Ok(())
    }
}

/// The request that changed a message last, and when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Holder {
    /// The request.
    pub by: Requester,
    /// The moment of the change: no two changes of an account share one.
    pub at: Tick,
}

impl Holder {
    /// The request as the writer that all services tell of.
    pub fn writer(&self) -> Writer {
        let said = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        Writer {
            operation: self.by.operation.clone(),
            client_request: said(&self.by.request),
            user_agent: said(&self.by.agent),
            address: said(&self.by.address),
            when: self.at.timestamp(),
        }
    }
}

/// How long ago something was, for people: `0.8 s`, `3 min`, `2 h`, `5 d`.
pub fn ago(then: Tick, now: Tick) -> String {
    let span = now.timestamp().since(then.timestamp());
    match span.as_secs() {
        0..120 => {
            let tenths = (span.as_millis() + 50) / 100;
            format!("{}.{} s", tenths / 10, tenths % 10)
        }
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requester_is_told_by_what_it_sent() {
        let full = Requester::new("Get Messages", "5f-1", "azsdk-python", "127.0.0.1:9");
        let text = "Get Messages, client request 5f-1, azsdk-python, 127.0.0.1:9";
        assert_eq!(full.to_string(), text);
        assert_eq!(Requester::new("Get Messages", "", "", "").to_string(), "Get Messages");
    }

    #[test]
    fn what_a_client_says_of_itself_is_cut() {
        let requester = Requester::new("x", &"ä".repeat(129), &"b".repeat(128), "");
        assert_eq!(requester.request.chars().count(), 128);
        assert_eq!(requester.agent.len(), 128);
    }

    #[test]
    fn spans_are_told_in_the_unit_that_fits() {
        let told = |seconds: u64| ago(Tick(0), Tick(0).after(seconds));
        assert_eq!(ago(Tick(0), Tick(8_000_000)), "0.8 s");
        assert_eq!(ago(Tick(1), Tick(30_000_000)), "3.0 s");
        assert_eq!(ago(Tick(5), Tick(0)), "0.0 s");
        assert_eq!((&*told(119), &*told(120), &*told(7_199)), ("119.0 s", "2 min", "119 min"));
        assert_eq!((&*told(7_200), &*told(172_800)), ("2 h", "2 d"));
    }
}
