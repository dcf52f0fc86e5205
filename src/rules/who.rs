//! Who sent a request: the name of its client, and how that name is known.
//!
//! Decides which of several ways to know a client goes first, and how sure each one is. The
//! process behind a connection is looked up in the journal, when a row is read.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// How a client is known, the surest first.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum ClientBy {
    /// By the client key that signed the request, or the SAS of the request.
    Key,
    /// By the header `x-latchfs-client`.
    Header,
    /// By the trace ID of the header `traceparent`.
    Trace,
    /// By its process, and the clock sequence of its request IDs.
    Thread,
    /// By its process.
    Process,
    /// By the address that it connects from.
    #[default]
    Address,
}

impl ClientBy {
    /// False if several clients may have one name: the threads of a process, or the programs that
    /// share a connection.
    pub const fn is_strong(self) -> bool {
        match self {
            Self::Key | Self::Header | Self::Trace | Self::Thread => true,
            Self::Process | Self::Address => false,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Header => "header",
            Self::Trace => "trace",
            Self::Thread => "thread",
            Self::Process => "process",
            Self::Address => "address",
        }
    }
}

/// The name of a client.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Identity {
    pub name: Arc<str>,
    pub by: ClientBy,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.by {
            ClientBy::Key | ClientBy::Header => write!(f, "client {}", self.name),
            ClientBy::Trace | ClientBy::Thread | ClientBy::Process | ClientBy::Address => {
                f.write_str(&self.name)
            }
        }
    }
}

/// What is known of the sender of a request when the request comes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Who {
    /// The connection: `REST 127.0.0.1:5`, `mount docs`.
    pub connection: Arc<str>,
    /// The name, if the request itself gives it.
    pub named: Option<Identity>,
    /// The clock sequence of the request's ID, which tells the threads of a process apart.
    pub thread: Option<ClockSequence>,
}

/// The clock sequence of a request ID that is a UUID of version 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ClockSequence {
    pub number: u16,
    /// An earlier request had it too: it is not drawn for each ID.
    pub repeated: bool,
}

impl Who {
    /// A sender with a name, for callers that know it.
    pub fn named(name: &str, by: ClientBy) -> Self {
        Self { named: Some(Identity { name: name.into(), by }), ..Self::default() }
    }

    /// The client, if its process, where it has one here, is `process`: `python3 (pid 7)`.
    pub fn identity(&self, process: Option<&str>) -> Identity {
        if let Some(named) = &self.named {
            return named.clone();
        }
        match (process, self.thread) {
            (None, _) => Identity { name: Arc::clone(&self.connection), by: ClientBy::Address },
            (Some(process), None) => Identity { name: process.into(), by: ClientBy::Process },
            (Some(process), Some(ClockSequence { number, repeated })) => Identity {
                name: format!("{process}, thread {number:04x}").into(),
                by: if repeated { ClientBy::Thread } else { ClientBy::Process },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_surest_way_to_know_a_client_names_it() {
        let connection: Arc<str> = "REST 127.0.0.1:5".into();
        let once = ClockSequence { number: 0x3a, repeated: false };
        let again = ClockSequence { repeated: true, ..once };
        let named = || Who::named("A", ClientBy::Key).named;
        let process = Some("python3 (pid 7)");
        for (named, thread, process, name, by) in [
            (named(), Some(again), process, "A", ClientBy::Key),
            (None, Some(again), process, "python3 (pid 7), thread 003a", ClientBy::Thread),
            (None, Some(once), process, "python3 (pid 7), thread 003a", ClientBy::Process),
            (None, None, process, "python3 (pid 7)", ClientBy::Process),
            (None, Some(again), None, "REST 127.0.0.1:5", ClientBy::Address),
        ] {
            let who = Who { connection: Arc::clone(&connection), named, thread };
            assert_eq!(who.identity(process), Identity { name: name.into(), by });
        }
        assert!(ClientBy::Thread.is_strong() && !ClientBy::Process.is_strong());
        assert!(ClientBy::Key < ClientBy::Header && ClientBy::Process < ClientBy::Address);
    }
}
