//! Who sent a request: the name of its client, and how that name is known.
//!
//! Decides which of several ways to know a client goes first, and how sure each one is. The
//! process behind a connection is looked up in the journal, when a row is read.

use std::collections::HashSet;
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
    /// By its process, and the clock sequence of its request IDs.
    Thread,
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
            Self::Key | Self::Header | Self::Thread => true,
            Self::Process | Self::Address => false,
        }
    }
}

/// The name of a client.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Identity {
    pub name: Arc<str>,
    pub by: ClientBy,
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

/// The clock sequences of request IDs so far.
#[derive(Debug, Default)]
pub struct ClockSequences {
    /// With the node of the ID.
    seen: HashSet<(u64, u16)>,
    /// How many came for the first time since one came again.
    fresh: usize,
}

impl ClockSequences {
    /// The most that are remembered: among more, one that is drawn for each ID would repeat by
    /// chance.
    const SEEN_MAX: usize = 256;
    /// So many in a row that none had before are drawn for each ID.
    const FRESH_MAX: usize = 64;

    /// The clock sequence of a request's ID; none if it is no UUID of version 1, or tells no
    /// thread.
    pub fn of(&mut self, id: &str) -> Option<ClockSequence> {
        let mut digits = id.splitn(5, '-').skip(2);
        let (version, sequence, node) = (digits.next()?, digits.next()?, digits.next()?);
        if version.len() != 4 || !version.starts_with('1') || node.len() != 12 {
            return None;
        }
        let number = u16::from_str_radix(sequence, 16).ok()? & 0x3fff;
        let node = u64::from_str_radix(node, 16).ok()?;
        if self.fresh > Self::FRESH_MAX {
            return None;
        }
        if self.seen.len() >= Self::SEEN_MAX && !self.seen.contains(&(node, number)) {
            self.seen.clear();
        }
        let repeated = !self.seen.insert((node, number));
        self.fresh = if repeated { 0 } else { self.fresh + 1 };
        Some(ClockSequence { number, repeated })
    }
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
    fn a_clock_sequence_that_repeats_tells_threads_apart_and_one_drawn_each_time_does_not() {
        let id = |number: u16| format!("5f0c1a22-0000-11ee-{:04x}-0242ac120002", 0x8000 | number);
        let mut threads = ClockSequences::default();
        let found = [1, 2, 1, 2].map(|number| threads.of(&id(number)).unwrap());
        let numbers = found.map(|found| (found.number, found.repeated));
        assert_eq!(numbers, [(1, false), (2, false), (1, true), (2, true)]);
        for other in ["5f0c1a22-0000-41ee-8001-0242ac120002", "mine", "", "1-1-1-1-1"] {
            assert_eq!(threads.of(other), None, "{other}");
        }
        let mut drawn = ClockSequences::default();
        let told = (0..1_000).filter(|number| drawn.of(&id(*number)).is_some()).count();
        assert_eq!(told, ClockSequences::FRESH_MAX + 1);
    }

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
