//! Options of `serve` and `mount` for people who look after a server: events, metrics, the log.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::logs::LogFormat;
use crate::server::{ListenAddress, OptionalAddress, ServiceAddresses};

/// The log of events
#[derive(Debug, Args)]
#[command(next_help_heading = "Events")]
pub struct EventArgs {
    /// Which events are kept for `latchfs events`
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Which::Refusals)]
    #[arg(env = "LATCHFS_EVENTS")]
    #[arg(hide_short_help = true)]
    pub events: Which,

    /// Whether requests, gates, opens and closes are recorded; off is for measurements
    #[arg(long, value_enum, value_name = "ON|OFF", default_value_t = Recording::On)]
    #[arg(env = "LATCHFS_JOURNAL")]
    #[arg(hide_short_help = true)]
    pub journal: Recording,

    /// Append all events to this file, a line of JSON each
    #[arg(long, value_name = "FILE", env = "LATCHFS_EVENT_LOG", hide_short_help = true)]
    pub event_log: Option<PathBuf>,
}

/// Which events are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Which {
    /// Refusals, forced closes, deletions
    Refusals,
    /// Grants and ordinary closes too
    All,
}

/// Whether requests are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Recording {
    /// All of them, the newest in memory
    On,
    /// Refusals, forced closes, deletions and what tests change
    Off,
}

/// The page, metrics, health and the log
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub struct Admin {
    /// Address of the page and the HTTP API, /metrics and /healthz: PORT, IP:PORT, or off
    /// [default: 127.0.0.1:10009, moved with --file, or a free port if it is taken; none if no
    /// service listens]
    #[arg(long, value_name = "ADDR", env = "LATCHFS_ADMIN", hide_short_help = true)]
    pub admin: Option<ListenAddress>,

    /// Format of the log
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", env = "LATCHFS_LOG_FORMAT")]
    #[arg(hide_short_help = true)]
    pub log_format: LogFormat,
}

impl Admin {
    /// Where the page is, beside services on these addresses.
    pub fn address(&self, services: &ServiceAddresses) -> OptionalAddress {
        OptionalAddress::of_page(self.admin, services)
    }
}
