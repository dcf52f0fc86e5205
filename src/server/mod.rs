//! A server as a whole. The command line starts it, and so do programs that embed latchfs.
//!
//! ```text
//!   account         an account and its services; all accounts of a server
//!   service_properties  CORS rules and the like, kept on disk
//!   options         the options of a server; Builder: the short form for embedding programs
//!   running         Server: its parts, in the order they start and stop
//!   data            the data directory, its accounts and shares
//!   states          the parts of all data, which are saved and replaced together
//!   memory          data in memory
//!   container_seed  fills a container with the files of a directory
//!   load            load files: what Blob, Queue and Table hold at first
//!   address         the address of a service, as a user writes it
//!   listeners       one listener for each service
//!   tls             the certificate of the listeners
//!   mount_points    the mount points of shares
//!   mounts          the mounts
//!   hosted          accounts as the listeners see them
//!   host            what clients of the control socket and the HTTP API can ask of the server
//!   event_file      events as lines of a file
//!   files           files that are replaced as a whole, for readers in other processes
//!   admin           the admin address: page, HTTP API, metrics
//!   health          what makes a server healthy
//!   error           why a server does not start
//! ```

#![warn(missing_docs)]

pub(crate) mod account;
mod address;
mod admin;
mod container_seed;
mod data;
mod error;
mod event_file;
#[cfg(any(feature = "cli", feature = "tls"))]
pub(crate) mod files;
mod health;
mod host;
mod hosted;
mod listeners;
mod load;
mod memory;
mod mount_points;
mod mounts;
mod options;
mod running;
pub(crate) mod service_properties;
mod smb;
mod states;
mod tls;

pub use crate::api::{Hold, HoldError, HoldOptions};
pub use account::{Account, AccountOptions, Accounts};
pub use address::{ADMIN_PORT, ListenAddress, OptionalAddress, ServiceAddresses, address_of};
pub use error::StartError;
pub use listeners::{ListenOptions, Listeners, SERVICES, kinds};
pub use load::schema as load_schema;
pub use mount_points::{MountPoint, real_path};
pub use options::{Builder, Data, EventOptions, FillProgress, Seed, SeedInto, ServerOptions};
pub use running::{Server, Stop};
pub use service_properties::{PropertyParts, ServiceProperties};
pub use tls::Certificate;
