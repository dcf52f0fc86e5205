//! A server for tests, in the process of the test: data in memory, free ports, a clock, gates,
//! faults and events.
//!
//! ```text
//!   controls     gates, faults and the clock
//!   explain      what happened, and what stands in the way
//!   files        files that a test puts into a share and reads back
//!   explore      a test in every order of its clients' requests
//!   error        what can go wrong
//! ```
//!
//! Everything that a test starts ends with its value: a [`Hold`] is released, a [`Gate`] and a
//! [`Fault`] are removed, the [`Server`] stops. What a hold, a gate or a fault does is decided in
//! [`crate::engine`]; how a server is put together in [`crate::server`].
//!
//! ```
//! use latchfs::testing::{Access, Denial, Server, ShareMode};
//!
//! let server = Server::start()?;
//! server.put("a.txt", b"x")?;
//! let hold = server.hold("a.txt", Access::RW, ShareMode::NONE)?;
//! let refused = server.get("a.txt").unwrap_err();
//! assert!(matches!(refused.denial(), Some(Denial::SharingViolation { .. })));
//! drop(hold);
//! assert_eq!(server.get("a.txt")?, b"x");
//! # Ok::<(), latchfs::testing::Error>(())
//! ```
//!
//! The program under test is given [`connection_string`](crate::server::Server::connection_string),
//! or an [`endpoint`](crate::server::Server::endpoint) where the builder was told
//! [`no_auth`](crate::server::Builder::no_auth).
//!
//! Requests are stopped by a gate and made to fail by a fault, the clock is turned, and all data is
//! saved, put back or removed:
//!
//! ```
//! use std::time::Duration;
//!
//! use latchfs::testing::{Action, FaultOptions, GateOptions, Point, Server};
//!
//! let server = Server::start()?;
//! server.save_state("empty")?;
//! // The next Put Blob stops before anything is checked, and goes on when released.
//! let put = GateOptions::new("Put Blob", "docs/*");
//! let gate = server.gate(GateOptions { at: Point::Received, times: Some(1), ..put })?;
//! // ... start the client that puts a blob, then gate.wait(1, Duration::from_secs(10))? ...
//! assert_eq!(gate.release(None), 0);
//! // The acknowledgement of the next deletion is lost: it is done, and nobody is told.
//! let delete = FaultOptions::new("Delete Blob", "docs/*", Action::DropAfter);
//! let fault = server.fault(FaultOptions { times: Some(1), ..delete })?;
//! assert_eq!(fault.met(), 0);
//! // A lease of a minute runs out now.
//! server.clock().advance(Duration::from_secs(61));
//! server.restore_state("empty")?;
//! server.reset()?;
//! let sdk = server.connection_string();
//! assert!(sdk.contains("BlobEndpoint=http://127.0.0.1:"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_docs)]

mod controls;
mod error;
mod explain;
mod explore;
mod files;

use std::ops::Deref;

pub use controls::{Clock, Fault, FaultOptions, Gate, GateOptions};
pub use error::Error;
pub use explain::EventQuery;
pub use explore::{Explore, Explored, Race, Run, Work};

pub use crate::api::{Action, Requests};
pub use crate::bench::controls::Point;
pub use crate::file::rules::{Access, Denial, ShareMode};
pub use crate::journal::json::EventRow as Event;
pub use crate::rules::service::ServiceKind;
use crate::server::{self, Builder};
pub use crate::server::{Hold, HoldOptions};

/// The share that a server has unless others are named.
pub const SHARE: &str = "share";

/// A server for tests. Stops when dropped; [`server::Server`] says where its services are.
pub struct Server {
    server: server::Server,
    share: String,
}

impl Server {
    /// Starts a server with the share [`SHARE`], on free ports of this machine, in memory.
    pub fn start() -> Result<Self, Error> {
        Self::start_with(|builder| builder.share(SHARE))
    }

    /// Starts a server that `change` has said more about. The first share that it names is the one
    /// that paths of this type's methods are in.
    pub fn start_with(change: impl FnOnce(Builder) -> Builder) -> Result<Self, Error> {
        let server = change(server::Server::builder()).start()?;
        let share = server.shares().first().map_or(SHARE, String::as_str).to_owned();
        Ok(Self { server, share })
    }

    /// The share that paths are in.
    pub fn share(&self) -> &str {
        &self.share
    }

    /// Opens a file as a second client and holds it until the value is dropped.
    pub fn hold(&self, path: &str, access: Access, share_mode: ShareMode) -> Result<Hold, Error> {
        let options = HoldOptions { access, share_mode, ..HoldOptions::new(&self.share, path) };
        self.hold_with(&options)
    }

    /// Opens any file in any way and holds it until the value is dropped.
    pub fn hold_with(&self, options: &HoldOptions) -> Result<Hold, Error> {
        Ok(self.server.hold(options)?)
    }

    /// Stops requests over HTTP until the test lets them go.
    pub fn gate(&self, options: GateOptions) -> Result<Gate<'_>, Error> {
        Gate::add(self, options)
    }

    /// Has requests over HTTP fail, come late or lose their answer.
    pub fn fault(&self, options: FaultOptions) -> Result<Fault<'_>, Error> {
        Fault::add(self, options)
    }

    /// The clock of the server.
    pub fn clock(&self) -> Clock<'_> {
        Clock::of(self)
    }
}

impl Deref for Server {
    type Target = server::Server;

    fn deref(&self) -> &server::Server {
        &self.server
    }
}
