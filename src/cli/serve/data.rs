//! The data of `serve`: where it is, what it starts with, and which shares there are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;
use clap::builder::BoolishValueParser;

use super::memory::Memory;
use super::{DATA_DIR, Stop};
use crate::cli::progress::Moving;
use crate::engine::account::{Control, ListOptions, NewShare, Progress};
use crate::engine::{AccountError, Clock, Engine, EngineOptions, ShareOptions, SystemClock};
use crate::store::root::is_share_name;
use crate::store::{DataRoot, RootError, SnapshotError, StoreError};

/// The share that is made where there is none.
const FIRST_SHARE: &str = "share";

/// Where the data is
#[derive(Debug, Args)]
#[command(next_help_heading = "Data")]
pub struct Data {
    /// Where the shares are kept
    #[arg(long = "data", value_name = "DIR", default_value = DATA_DIR, env = "LATCHFS_DATA")]
    pub directory: PathBuf,

    /// A share to serve [default: all, or 'share']
    #[arg(long = "share", value_name = "NAME", env = "LATCHFS_SHARES", value_delimiter = ',')]
    pub shares: Vec<String>,

    /// Fill an empty share with a copy of a directory
    #[arg(long = "seed", value_name = "[NAME=]DIR", env = "LATCHFS_SEED", value_delimiter = ',')]
    #[arg(value_parser = seed)]
    pub seeds: Vec<Seed>,

    /// Keep the data in memory; it is gone at the end
    #[arg(long, env = "LATCHFS_IN_MEMORY", value_parser = BoolishValueParser::new())]
    pub in_memory: bool,

    /// Throw away the shares in --data, and start empty
    #[arg(long, env = "LATCHFS_RESET", value_parser = BoolishValueParser::new())]
    pub reset: bool,
}

/// What fills a share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    /// Which share; none where only one can be meant.
    share: Option<String>,
    directory: PathBuf,
}

/// Shares that are open and not yet to be reached.
pub struct Opened {
    pub engine: Arc<Engine>,
    /// Where the data is, for people.
    pub place: String,
    /// What they should know.
    pub notes: Vec<String>,
    /// Those to mount.
    pub names: BTreeSet<String>,
    /// Holds the data, where that is in memory; goes last.
    pub memory: Option<Memory>,
}

impl Data {
    /// Opens the data with all that was asked for; `more` are further shares to be made.
    pub fn open<'a>(
        &'a self,
        options: ShareOptions,
        more: impl Iterator<Item = &'a String>,
        stopped: &Receiver<Stop>,
    ) -> Result<Opened> {
        let memory = if self.in_memory { Some(Memory::new()?) } else { None };
        let data = memory.as_ref().map_or(self.directory.as_path(), Memory::data);
        if self.reset {
            DataRoot::reset(data).context("--reset")?;
        }
        let mut names: BTreeSet<String> = self.shares.iter().chain(more).cloned().collect();
        let notes = self.fill(data, &names, stopped)?;
        let options = EngineOptions { share: options, ..EngineOptions::default() };
        let engine = Engine::open(data, options).map_err(|error| with_cure(&error, data))?;
        make_shares(&engine, &mut names)?;
        let place = match &memory {
            Some(memory) => memory.words(),
            None => data.canonicalize().context("the data directory")?.display().to_string(),
        };
        Ok(Opened { memory, engine: Arc::new(engine), place, notes, names })
    }

    /// Fills the shares that are empty, and says which are not.
    fn fill(
        &self,
        data: &Path,
        named: &BTreeSet<String>,
        stopped: &Receiver<Stop>,
    ) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        if self.seeds.is_empty() {
            return Ok(notes);
        }
        let root = DataRoot::open(data)?;
        for Seed { share, directory } in &self.seeds {
            let share = match share {
                Some(share) => share.clone(),
                None => only_share(&root, named)?,
            };
            let moving = Moving::new(format!("Filling share {share}"));
            let mut progress = |done: Progress| {
                moving.at(done.files_done, done.bytes_done);
                if stopped.try_recv().is_ok() { Control::Cancel } else { Control::Continue }
            };
            let now = SystemClock.now();
            let filled = match root.fill_share(&share, directory, now, &mut progress) {
                Err(RootError::Fill(SnapshotError::Cancelled)) => {
                    bail!("stopped before share {share} was filled: it stays empty")
                }
                filled => filled.with_context(|| format!("--seed {}", directory.display()))?,
            };
            if !filled {
                notes.push(format!(
                    "share {share} has files already and stays as it is: --reset starts empty"
                ));
            }
        }
        Ok(notes)
    }
}

/// The share that is meant where none is named.
fn only_share(root: &DataRoot, named: &BTreeSet<String>) -> Result<String> {
    let there = root.shares()?;
    let mut meant = if named.is_empty() { there.iter().collect() } else { Vec::from_iter(named) };
    ensure!(meant.len() <= 1, "several shares are served: say which, as in --seed NAME=DIR");
    Ok(meant.pop().cloned().unwrap_or_else(|| FIRST_SHARE.to_owned()))
}

/// Makes the named shares that are missing. Where none is named, those there are, or a first one.
fn make_shares(engine: &Engine, names: &mut BTreeSet<String>) -> Result<()> {
    let there = share_names(engine)?;
    if names.is_empty() {
        names.extend(there.iter().cloned());
    }
    if names.is_empty() {
        names.insert(FIRST_SHARE.to_owned());
    }
    for name in names.iter().filter(|name| !there.contains(*name)) {
        engine.create_share(name, NewShare::default()).with_context(|| format!("share {name}"))?;
    }
    Ok(())
}

/// All shares.
pub fn share_names(engine: &Engine) -> Result<BTreeSet<String>> {
    let shares = engine.every_share(&ListOptions::default())?;
    Ok(shares.into_iter().map(|share| share.name.to_string()).collect())
}

fn with_cure(error: &AccountError, data: &Path) -> anyhow::Error {
    match error {
        AccountError::Root(RootError::Store { source: StoreError::PermissionDenied, path }) => {
            anyhow!(
                "{} may not be written: choose another data directory with --data, or give {} to \
                 this user",
                path.display(),
                data.display()
            )
        }
        error => anyhow!("{error}"),
    }
}

fn seed(text: &str) -> Result<Seed> {
    let (share, directory) = match text.split_once('=') {
        Some((name, directory)) if is_share_name(name) => (Some(name.to_owned()), directory),
        _ => (None, text),
    };
    if directory.is_empty() {
        bail!("a directory, or a share and a directory, as in docs=fixtures");
    }
    Ok(Seed { share, directory: directory.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_may_name_its_share() {
        let read = |text: &str| seed(text).map(|seed| (seed.share, seed.directory));
        assert_eq!(read("dir").unwrap(), (None, "dir".into()));
        assert_eq!(read("docs=dir").unwrap(), (Some("docs".into()), "dir".into()));
        assert_eq!(read("./a=b").unwrap(), (None, "./a=b".into()));
        assert!(read("docs=").is_err() && read("").is_err());
    }
}
