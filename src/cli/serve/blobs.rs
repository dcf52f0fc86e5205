//! Options of `serve` that say how copies and the Blob service behave where the real service takes
//! its time or has a setting of the account.

use std::time::Duration;

use clap::Args;
use clap::builder::BoolishValueParser;

use crate::server::ServerOptions;

/// The longest delay: a day.
const DELAY_MAX: u64 = 86_400;

/// How blobs behave
#[derive(Debug, Args)]
#[command(next_help_heading = "Behaviour")]
pub struct Blobs {
    /// Keep a version of a blob whenever it is overwritten or deleted
    #[arg(long, env = "LATCHFS_BLOB_VERSIONING", value_parser = BoolishValueParser::new())]
    #[arg(hide_short_help = true)]
    pub blob_versioning: bool,

    /// Seconds that copies of blobs and files stay pending, so that they can be aborted
    #[arg(long, value_name = "SECONDS", default_value_t = 0, env = "LATCHFS_COPY_DELAY")]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=DELAY_MAX), hide_short_help = true)]
    pub copy_delay: u64,

    /// Seconds until changed policies and public access of a container take effect
    #[arg(long, value_name = "SECONDS", default_value_t = 0, env = "LATCHFS_ACL_DELAY")]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=DELAY_MAX), hide_short_help = true)]
    pub acl_delay: u64,
}

impl Blobs {
    pub fn apply(&self, options: &mut ServerOptions) {
        let copy_delay = Duration::from_secs(self.copy_delay);
        options.listen.copy_delay = copy_delay;
        options.blob.copy_delay = copy_delay;
        options.blob.acl_delay = Duration::from_secs(self.acl_delay);
        options.blob.versioning = self.blob_versioning;
    }
}
