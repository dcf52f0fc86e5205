//! What happened at a server, and what stands in the way of a file or an object: `events` and `why`
//! as the command line and the packages for Python and Node have them.
//!
//! Which events are kept is decided in [`crate::journal::ring`], their fields in
//! [`crate::journal::json`].

use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::error::Error;
use super::{Event, Server, ServiceKind};
use crate::api::{GetWhy, ObjectAddress, StreamRequest};
use crate::journal::json::EventPage;

/// The pause between two looks at the stream of events.
const PAUSE: Duration = Duration::from_millis(5);

/// Which events are meant; by default all that are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// Only events with a greater `seq`.
    pub after: u64,
    /// How long to wait for the first one.
    pub wait: Duration,
    /// Only events of these kinds, such as `refused` or `request`; all without one.
    pub kinds: Vec<String>,
    /// Only those of this service.
    pub service: Option<ServiceKind>,
}

impl Server {
    /// What has happened at the server, oldest first: requests, refusals, holds, gates.
    ///
    /// ```
    /// use latchfs::testing::{Access, EventQuery, Server, ShareMode};
    ///
    /// let server = Server::start()?;
    /// server.put("a.txt", b"x")?;
    /// let _hold = server.hold("a.txt", Access::RW, ShareMode::NONE)?;
    /// assert!(server.hold("a.txt", Access::R, ShareMode::RWD).is_err());
    /// let refused = EventQuery { kinds: vec!["refused".into()], ..EventQuery::default() };
    /// let events = server.events(&refused)?;
    /// assert_eq!(events[0].object.as_deref(), Some("file:share/a.txt"));
    /// # Ok::<(), latchfs::testing::Error>(())
    /// ```
    pub fn events(&self, query: &EventQuery) -> Result<Vec<Event>, Error> {
        let end = Instant::now() + query.wait;
        let mut request = StreamRequest {
            after: query.after,
            of_account: None,
            service: query.service.map(|service| service.to_string()),
            kinds: query.kinds.clone(),
        };
        let mut found = Vec::new();
        loop {
            let EventPage { events, last, newest, .. } = self.session()?.stream(&request);
            found.extend(events);
            request.after = last;
            // A page is bounded; the next one is there already.
            if last < newest {
                continue;
            }
            if !found.is_empty() || Instant::now() >= end {
                return Ok(found);
            }
            thread::sleep(PAUSE);
        }
    }

    /// What stands in the way of a file or an object, as `latchfs why --json` prints it. `target`
    /// is a path in the first share, or `file:SHARE/PATH`, `blob:CONTAINER/NAME`,
    /// `queue:NAME[/ID]`, `table:TABLE/PARTITION/ROW`.
    ///
    /// ```
    /// use latchfs::testing::{Access, Server, ShareMode};
    ///
    /// let server = Server::start()?;
    /// server.put("a.txt", b"x")?;
    /// let _hold = server.hold("a.txt", Access::RW, ShareMode::NONE)?;
    /// assert_eq!(server.why("a.txt")?["opens"][0]["share_mode"], "none");
    /// # Ok::<(), latchfs::testing::Error>(())
    /// ```
    pub fn why(&self, target: &str) -> Result<Value, Error> {
        let object = match ObjectAddress::read(target) {
            Some(_) => target.to_owned(),
            None => format!("file:{}/{target}", self.share()),
        };
        let told = serde_json::to_value(self.session()?.why(GetWhy { object })?);
        told.map_err(|error| Error::Failed(error.to_string()))
    }
}
