//! The options of `serve` for the place and the initial content of the data.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;

use super::DATA_DIR;
use crate::file::rules::name::{is_share_name, split_account};
use crate::server::{Seed, SeedInto};

/// Where the data is
#[derive(Debug, Args)]
#[command(next_help_heading = "Data")]
pub struct DataArgs {
    /// Data directory
    #[arg(short = 'l', long = "data", visible_alias = "location", value_name = "DIR")]
    #[arg(default_value = DATA_DIR, env = "LATCHFS_DATA")]
    pub directory: PathBuf,

    /// Share name [default: all, or 'share']
    #[arg(long = "share", value_name = "[ACCOUNT/]NAME", env = "LATCHFS_SHARES")]
    #[arg(value_delimiter = ',')]
    pub shares: Vec<String>,

    /// Container to make
    #[arg(long = "container", value_name = "[ACCOUNT/]NAME", env = "LATCHFS_CONTAINERS")]
    #[arg(value_delimiter = ',')]
    pub containers: Vec<String>,

    /// Make what a JSON file names and is not there: `latchfs load --help` describes it
    #[arg(long = "load", value_name = "FILE", env = "LATCHFS_LOAD", value_delimiter = ',')]
    pub loads: Vec<PathBuf>,

    /// Copy a directory into an empty share [ACCOUNT/]NAME or container blob:NAME
    #[arg(
        long = "seed",
        value_name = "[[blob:]NAME=]DIR",
        env = "LATCHFS_SEED",
        value_delimiter = ','
    )]
    #[arg(value_parser = seed)]
    pub seeds: Vec<Seed>,

    /// Keep the data in memory and remove it at the end
    #[arg(long, visible_alias = "inMemoryPersistence", env = "LATCHFS_IN_MEMORY")]
    pub in_memory: bool,

    /// Remove all data in --data first
    #[arg(long)]
    pub reset: bool,
}

/// Before the name of a container.
const BLOB: &str = "blob:";

fn seed(text: &str) -> Result<Seed> {
    let (into, directory) = match text.split_once('=') {
        Some((name, directory)) if is_share_name(name) => {
            (SeedInto::Share(Some(name.to_owned())), directory)
        }
        Some((name, directory)) if name.starts_with(BLOB) => {
            (SeedInto::Container(name[BLOB.len()..].to_owned()), directory)
        }
        Some((name, directory)) if !Path::new(text).exists() && share_of(name).is_some() => {
            let (account, share) = share_of(name).unwrap_or_default();
            (SeedInto::ShareOf(account, share), directory)
        }
        Some((name, _)) if is_misnamed(name) && !Path::new(text).exists() => bail!(
            "share name '{name}': expected 3 to 63 lower-case letters, digits and single hyphens; \
             a directory with = in its name is written ./{text}"
        ),
        _ if text.starts_with(BLOB) => bail!("expected a directory, as in blob:photos=fixtures"),
        _ => (SeedInto::Share(None), text),
    };
    if directory.is_empty() {
        bail!("expected a directory, or a share and a directory, as in docs=fixtures");
    }
    Ok(Seed { into, directory: directory.into() })
}

impl DataArgs {
    /// What `--share` names: shares of the first account, as `NAME`; and shares of any account, as
    /// `ACCOUNT/NAME`, each with its account.
    pub fn named_shares(&self) -> (Vec<String>, Vec<(String, String)>) {
        let (mut of_first, mut of_any) = (Vec::new(), Vec::new());
        for name in &self.shares {
            match split_account(name) {
                (None, share) => of_first.push(share.to_owned()),
                (Some(account), share) => of_any.push((account.to_owned(), share.to_owned())),
            }
        }
        (of_first, of_any)
    }
}

/// The account and the share of `ACCOUNT/NAME`; `None` if the text is a path.
fn share_of(text: &str) -> Option<(String, String)> {
    let (Some(account), share) = split_account(text) else { return None };
    let letters = !account.is_empty() && account.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (letters && is_share_name(share)).then(|| (account.to_owned(), share.to_owned()))
}

/// Whether the text before a `=` is meant as a name: it is no path.
fn is_misnamed(name: &str) -> bool {
    !name.contains('/') && !is_share_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_may_name_its_share() {
        let read = |text: &str| seed(text).map(|seed| (seed.into, seed.directory));
        let share = |name: Option<&str>| SeedInto::Share(name.map(str::to_owned));
        assert_eq!(read("dir").unwrap(), (share(None), "dir".into()));
        assert_eq!(read("docs=dir").unwrap(), (share(Some("docs")), "dir".into()));
        assert_eq!(read("./a=b").unwrap(), (share(None), "./a=b".into()));
        let container = SeedInto::Container("photos".to_owned());
        assert_eq!(read("blob:photos=dir").unwrap(), (container, "dir".into()));
        let second = SeedInto::ShareOf("second".to_owned(), "docs".to_owned());
        assert_eq!(read("second/docs=dir").unwrap(), (second, "dir".into()));
        assert!(read("docs=").is_err() && read("").is_err());
        let short = read("zz=dir").unwrap_err().to_string();
        assert!(short.starts_with("share name 'zz': expected 3 to 63"), "{short}");
        assert!(read("blob:photos=").is_err() && read("blob:photos").is_err());
    }
}
