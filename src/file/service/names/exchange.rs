//! Exchanging two names, as `renameat2(2)` with `RENAME_EXCHANGE` on the mount does.
//!
//! Each end is a momentary open with D that shares everything, and each directory of the two is
//! opened as the directory of a new name, as in a rename. Nothing is replaced, so opens that share
//! D do not refuse it. Opens below a directory refuse it, unless the mount behaves as POSIX
//! (`--unlink=posix`): then they move with the directory. The name lock is held exclusively, for
//! two files too: no open is added between the check of the directories and the exchange.

use super::super::error::Result;
use super::super::share::{Seen, Share, TryResult};
use super::rename::{check_momentary, is_directory};
use crate::file::rules::{Denial, SharePath};
use crate::file::store::share::{FoundFile, RenameHow};

/// How opens below a directory affect its move.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Below {
    Stays,
    /// They move with the directory.
    Moves,
}

impl Share {
    /// Finds the two and exchanges them. `moved` is called before the name lock is released.
    pub(crate) fn exchange_found(
        &self,
        one: &SharePath,
        other: &SharePath,
        below: Below,
        moved: &dyn Fn(),
    ) -> Result<()> {
        let find = || Ok((self.see(one)?, self.see(other)?));
        self.at_ends(
            find,
            |_| true,
            |(one, other), _| {
                self.exchange_ends(one, other, below)?;
                moved();
                let directory = is_directory(&one.found) || is_directory(&other.found);
                if directory && below == Below::Moves {
                    self.exchange_opens_below(&one.found.path, &other.found.path);
                }
                Ok(())
            },
        )
    }

    fn exchange_ends(&self, one: &Seen, other: &Seen, below: Below) -> TryResult<()> {
        let (from, to) = (&one.found, &other.found);
        self.check_ends(from, to, below)?;
        if from.stat.id == to.stat.id {
            return Ok(()); // Two names of one file: nothing to exchange.
        }
        for end in [from, to] {
            let parent = self.see(&end.path.parent().ok_or(Denial::ShareRoot)?)?;
            self.lock_seen(&parent, |_, latched| Ok(latched.state.check_renamed_into()?))?;
        }
        self.lock_both(one, other, |first, second| {
            check_momentary(first, &from.path)?;
            check_momentary(second, &to.path)?;
            self.disk().rename(&from.path, &to.path, RenameHow::Exchange)?;
            first.state.moved(&from.path, &to.path);
            second.state.moved(&to.path, &from.path);
            Ok(())
        })
    }

    /// Refuses exchanges that are impossible whatever the opens of the two share.
    fn check_ends(&self, one: &FoundFile, other: &FoundFile, below: Below) -> Result<()> {
        if one.path.is_root() || other.path.is_root() {
            return Err(Denial::ShareRoot.into());
        }
        if one.path.is_below(&other.path) || other.path.is_below(&one.path) {
            return Err(Denial::InvalidParameter("a directory cannot move below itself").into());
        }
        if below == Below::Moves {
            return Ok(());
        }
        for end in [one, other].into_iter().filter(|end| is_directory(end)) {
            if let Some(holder) = self.open_below(&end.path) {
                return Err(Denial::OpenBelow(Box::new(holder)).into());
            }
        }
        Ok(())
    }

    /// Moves the opens below two exchanged directories. The name lock is held exclusively, so that
    /// no open is added during the move.
    fn exchange_opens_below(&self, one: &SharePath, other: &SharePath) {
        self.follow_directories(|state| state.exchanged_below(one, other));
    }
}
