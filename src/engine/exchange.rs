//! Exchanging two names, as `renameat2(2)` with `RENAME_EXCHANGE` on the mount does.
//!
//! Each end is a momentary open with D that shares everything, as in a rename; nothing is
//! replaced, so opens that share D do not stand in the way of either. Opens below a directory do,
//! unless the mount is POSIX's: then they move with it.

use super::error::Result;
use super::rename::{check_momentary, is_directory};
use super::share::{Attempt, NAME_RETRIES_MAX, Share};
use crate::core::{Denial, Owner, SharePath};
use crate::store::{Found, RenameHow};

/// What opens below a directory do to its move.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Below {
    /// They keep it where it is.
    Stays,
    /// They go with it.
    Moves,
}

impl Share {
    /// Lets two names change places.
    pub fn exchange(&self, who: &Owner, one: &SharePath, other: &SharePath) -> Result<()> {
        let answer = self.exchange_found(one, other, Below::Stays);
        self.note_refusal("exchange", one, who, answer)
    }

    /// The same, as POSIX has it: opens below a directory move with it.
    pub fn exchange_posix(&self, who: &Owner, one: &SharePath, other: &SharePath) -> Result<()> {
        let answer = self.exchange_found(one, other, Below::Moves);
        self.note_refusal("exchange", one, who, answer)
    }

    fn exchange_found(&self, one: &SharePath, other: &SharePath, below: Below) -> Result<()> {
        let find = || Ok::<_, super::Error>((self.find(one)?, self.find(other)?));
        let any_directory =
            |(one, other): &(Found, Found)| is_directory(one) || is_directory(other);
        for _ in 0..NAME_RETRIES_MAX {
            let directory = any_directory(&find()?);
            let _alone = directory.then(|| self.names_alone()).transpose()?;
            let _shared = if directory { None } else { Some(self.names()?) };
            let generation = self.generation();
            let ends = find()?;
            if any_directory(&ends) != directory {
                continue;
            }
            match self.exchange_ends(&ends.0, &ends.1, below, generation) {
                Attempt::Done(answer) => {
                    if directory && answer.is_ok() && below == Below::Moves {
                        self.exchange_opens_below(&ends.0.path, &ends.1.path);
                    }
                    return answer;
                }
                Attempt::Again => {}
            }
        }
        Err(Denial::NotFound.into())
    }

    fn exchange_ends(
        &self,
        one: &Found,
        other: &Found,
        below: Below,
        generation: u64,
    ) -> Attempt<()> {
        if let Err(denial) = self.check_ends(one, other, below) {
            return Attempt::Done(Err(denial.into()));
        }
        if one.stat.id == other.stat.id {
            return Attempt::Done(Ok(())); // Two names of one file: nothing to exchange.
        }
        self.table.with_two(one.stat.id, other.stat.id, |first, second| {
            if !self.is_still(&one.path, one.stat.id, generation)
                || !self.is_still(&other.path, other.stat.id, generation)
            {
                return Attempt::Again;
            }
            let allowed = check_momentary(first, &one.path)
                .and_then(|()| check_momentary(second, &other.path));
            Attempt::Done(allowed.and_then(|()| {
                self.dir.rename(&one.path, &other.path, RenameHow::Exchange)?;
                self.names_changed();
                first.state.moved(&one.path, &other.path);
                second.state.moved(&other.path, &one.path);
                Ok(())
            }))
        })
    }

    /// What no opens of the two could allow.
    fn check_ends(
        &self,
        one: &Found,
        other: &Found,
        below: Below,
    ) -> std::result::Result<(), Denial> {
        if one.path.is_root() || other.path.is_root() {
            return Err(Denial::ShareRoot);
        }
        if one.path.is_below(&other.path) || other.path.is_below(&one.path) {
            return Err(Denial::InvalidParameter("a directory cannot move below itself"));
        }
        if below == Below::Moves {
            return Ok(());
        }
        let directories = [one, other].into_iter().filter(|end| is_directory(end));
        match directories.into_iter().find_map(|end| self.open_below(&end.path)) {
            Some(holder) => Err(Denial::OpenBelow(Box::new(holder))),
            None => Ok(()),
        }
    }

    /// The opens below two directories that changed places follow them. The name lock is held
    /// alone, so that none comes in meanwhile.
    fn exchange_opens_below(&self, one: &SharePath, other: &SharePath) {
        self.follow_directories(|state| state.exchanged_below(one, other));
    }
}
