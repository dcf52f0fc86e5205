//! A server as a whole: what the command line and programs that embed latchfs start.
//!
//! ```text
//!   options      what a server is made of; Builder: the short way to say it
//!   running      Server: the parts in the order they start and stop
//!   data         the data directory, its accounts and shares; memory: data in memory
//!   services     the services that exist
//!   address      where a service listens, as a user writes it
//!   listeners    one listener for each service; tls: the certificate they show
//!   places       where shares are mounted; mounts: the mounts
//!   host         what clients of the control socket and the HTTP API can ask of the server
//!   hold         a file that is held open for a test
//!   event_file   events as lines of a file
//!   admin        the page, the HTTP API, metrics; health: what makes a server healthy
//!   error        why a server does not start
//! ```

mod address;
mod admin;
mod container_seed;
mod data;
mod error;
mod event_file;
#[cfg(any(feature = "cli", feature = "tls"))]
pub(crate) mod files;
mod health;
mod hold;
mod host;
mod listeners;
mod memory;
mod mounts;
mod options;
mod places;
mod running;
mod services;
mod tls;

pub use address::{ADMIN_PORT, AdminAddress, ListenAddress, Named, address_of};
pub use error::StartError;
pub use hold::{Hold, HoldError, HoldOptions};
pub use listeners::{ListenOptions, Listeners};
pub use options::{Builder, Data, EventOptions, FillProgress, Seed, SeedInto, ServerOptions};
pub use places::{MountPlace, real_path};
pub use running::{Server, Stop};
pub use services::{SERVICES, kinds};
pub use tls::Certificate;
