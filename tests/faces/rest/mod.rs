//! The REST face from outside: real HTTP against a server in this process.

mod authorised;
mod beside;
mod conflicts;
mod copies;
mod directories;
mod elsewhere;
mod files;
mod fixture;
mod handles;
mod leases;
mod limits;
mod links;
mod listener;
mod listing;
mod observed;
mod pages;
mod ports;
mod ranges;
mod refusals_change_nothing;
mod service;
mod share_answers;
mod shares;
mod snapshots;
mod stalls;
mod structured;
#[cfg(feature = "tls")]
mod tls;
