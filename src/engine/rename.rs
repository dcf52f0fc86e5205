//! Renaming: two names, up to two files, one step.
//!
//! Rules: SMB-RULES "Rename and link" for handles and the mount; what REST asks on top of that is
//! in [`super::rest_rename`]. Order of locks: the target's directory, then the two files by
//! identity. A directory is renamed under the share's name lock alone, since every path below it
//! changes.

use super::changes::Change;
use super::error::{Error, Result};
use super::open::Handle;
use super::rest_rename::{Renamed, RestRename};
use super::share::{Attempt, NAME_RETRIES_MAX, Share};
use super::table::Latched;
use crate::core::file::FileState;
use crate::core::name::same_name;
use crate::core::opens::Slot;
use crate::core::{Access, Denial, HandleId, Holder, Owner, ShareMode, SharePath};
use crate::store::{Case, Found, Kind, RenameHow, StoreError};

/// By whose rules a name moves.
#[derive(Clone, Copy)]
pub(super) enum RenameRules<'a> {
    /// Through a handle: its own rights count, not a momentary open's.
    Handle(Slot, HandleId),
    /// By name on the mount: a momentary open of the source with D that shares everything.
    Mount,
    /// By name on a mount that behaves as POSIX has it: opens of the target, or below a directory,
    /// keep nothing from moving (DESIGN section 4, `--unlink=posix`).
    Posix,
    /// By REST: momentary opens of both ends, with their lease IDs.
    Rest(&'a RestRename<'a>),
}

/// A rename as it was asked for.
#[derive(Clone, Copy)]
pub(super) struct Rename<'a> {
    pub to: &'a SharePath,
    /// An existing target may be replaced.
    pub replace: bool,
    pub rules: RenameRules<'a>,
}

/// What REST is told of the moved file; the others want nothing.
pub(super) type Moved = Option<Renamed>;

impl Share {
    /// Renames the file a handle is open on.
    pub fn rename_handle(&self, handle: &Handle, to: &SharePath, replace: bool) -> Result<()> {
        let (path, owner) = self.latched(handle, |latched, path| {
            let (open, _) = latched.state.get(handle.slot(), handle.id())?;
            Ok((path.clone(), open.owner.clone()))
        })?;
        let rules = RenameRules::Handle(handle.slot(), handle.id());
        let answer = self.rename_found(Rename { to, replace, rules }, || self.found_by(handle));
        self.note_refusal("rename", &path, &owner, answer.map(drop))?;
        self.tell(Change::Name(&path));
        self.tell(Change::Name(to));
        Ok(())
    }

    /// Renames by name, as `rename(2)` on the mount does: a momentary open of the source with D
    /// that shares everything.
    pub fn rename(
        &self,
        who: &Owner,
        from: &SharePath,
        to: &SharePath,
        replace: bool,
    ) -> Result<()> {
        self.rename_by_name(who, from, Rename { to, replace, rules: RenameRules::Mount })
    }

    /// The same, as POSIX has it: opens of the target go on without a name, those below a
    /// directory move with it.
    pub fn rename_posix(
        &self,
        who: &Owner,
        from: &SharePath,
        to: &SharePath,
        replace: bool,
    ) -> Result<()> {
        self.rename_by_name(who, from, Rename { to, replace, rules: RenameRules::Posix })
    }

    fn rename_by_name(&self, who: &Owner, from: &SharePath, rename: Rename<'_>) -> Result<()> {
        let answer = self.rename_found(rename, || Ok(self.find(from)?));
        self.note_refusal("rename", from, who, answer.map(drop))
    }

    /// Finds the source and moves it, again while names keep changing.
    pub(super) fn rename_found(
        &self,
        rename: Rename<'_>,
        find: impl Fn() -> Result<Found>,
    ) -> Result<Moved> {
        for _ in 0..NAME_RETRIES_MAX {
            let directory = is_directory(&find()?);
            let _alone = directory.then(|| self.names_alone()).transpose()?;
            let _shared = if directory { None } else { Some(self.names()?) };
            let generation = self.generation();
            let source = find()?;
            if is_directory(&source) != directory {
                continue;
            }
            match self.rename_source(&source, rename, generation) {
                Attempt::Done(answer) => {
                    if directory && answer.is_ok() && matches!(rename.rules, RenameRules::Posix) {
                        self.move_opens_below(&source.path, rename.to)?;
                    }
                    return answer;
                }
                Attempt::Again => {}
            }
        }
        Err(Denial::NotFound.into())
    }

    fn rename_source(&self, source: &Found, rename: Rename<'_>, generation: u64) -> Attempt<Moved> {
        let (to, parent, target) = match self.rename_target(source, rename) {
            Ok(found) => found,
            Err(error) => return Attempt::Done(Err(error)),
        };
        self.table.with(parent.stat.id, |_, latched| {
            if !self.is_still(&parent.path, parent.stat.id, generation) {
                return Attempt::Again;
            }
            if let Some(holder) = latched.state.pending_holder(&parent.path) {
                let holder = Box::new(holder);
                let denial = Denial::ParentDeletePending { holder, renaming: true };
                return Attempt::Done(Err(denial.into()));
            }
            match target {
                None => self.table.with(source.stat.id, |_, latched| {
                    if !self.is_still(&source.path, source.stat.id, generation) {
                        return Attempt::Again;
                    }
                    match self.rename_to_free(latched, source, &to, rename.rules) {
                        // Made since it was looked for: it is there to be replaced.
                        Err(Error::Denied(Denial::NameTaken))
                            if rename.replace && !self.is_respelling(&source.path, &to) =>
                        {
                            Attempt::Again
                        }
                        answer => Attempt::Done(answer),
                    }
                }),
                Some(target) => self.rename_over(source, &to, &target, rename, generation),
            }
        })
    }

    /// How the new name will be spelled, the directory it will stand in, and what it stands for
    /// now. Refuses what no opens could allow.
    fn rename_target(
        &self,
        source: &Found,
        rename: Rename<'_>,
    ) -> Result<(SharePath, Found, Option<Found>)> {
        let to = rename.to;
        if source.path.is_root() || to.is_root() {
            return Err(Denial::ShareRoot.into());
        }
        let target = match self.find(to) {
            // Another spelling of the source's own name: only the spelling changes (di28).
            Ok(found) if self.is_respelling(&source.path, &found.path) => None,
            Ok(found) => Some(found),
            Err(StoreError::NotFound) => None,
            Err(error) => return Err(error.into()),
        };
        let (parent, name) = to.split().ok_or(Denial::ShareRoot)?;
        let parent = self.dir.lookup(&SharePath::new(parent)?)?;
        let spelled = parent.path.join(name)?;
        // The second way leads through a link.
        if spelled.is_below(&source.path) || parent.stat.id == source.stat.id {
            return Err(Denial::InvalidParameter("a directory cannot move below itself").into());
        }
        // Under the name lock alone no open can come in: what is below now is all there is.
        if is_directory(source)
            && !matches!(rename.rules, RenameRules::Posix)
            && let Some(holder) = self.open_below(&source.path)
        {
            return Err(Denial::OpenBelow(Box::new(holder)).into());
        }
        Ok((spelled, parent, target))
    }

    fn rename_to_free(
        &self,
        latched: &mut Latched,
        source: &Found,
        to: &SharePath,
        rules: RenameRules<'_>,
    ) -> Result<Moved> {
        self.check_source(latched, source, rules)?;
        if let RenameRules::Rest(options) = rules {
            options.check_free(to)?;
        }
        self.move_name(latched, source, to, RenameHow::NoReplace)?;
        self.after_move(latched, source, to, rules)
    }

    /// Replaces the target, in one step of the file system, then gives the name the spelling that
    /// was asked for.
    fn rename_over(
        &self,
        source: &Found,
        to: &SharePath,
        target: &Found,
        rename: Rename<'_>,
        generation: u64,
    ) -> Attempt<Moved> {
        let same_file = target.stat.id == source.stat.id;
        let same_kind = is_directory(source) == is_directory(target);
        if matches!(rename.rules, RenameRules::Rest(_)) {
            // LOCKING 3.11. A file and a directory are never locked together by identity: that
            // order is for files, and a directory's lock may be held for an entry's.
            if !rename.replace || same_file || is_directory(target) {
                return self.refuse_taken(target, generation);
            }
        } else if !rename.replace {
            return Attempt::Done(Err(Denial::NameTaken.into()));
        } else if same_file {
            return Attempt::Done(Ok(None)); // Two names of one file: rename(2) leaves both.
        } else if !same_kind {
            return Attempt::Done(Err(Denial::NameTaken.into())); // di30
        }
        self.table.with_two(source.stat.id, target.stat.id, |latched, replaced| {
            if !self.is_still(&source.path, source.stat.id, generation)
                || !self.is_still(&target.path, target.stat.id, generation)
            {
                return Attempt::Again;
            }
            Attempt::Done(self.check_both(latched, source, replaced, target, rename).and_then(
                |()| {
                    let there = &target.path;
                    let links = self.links(there, target.stat.id, is_directory(target));
                    if same_kind {
                        self.move_name(latched, source, there, RenameHow::Replace)?;
                    } else {
                        // No file system replaces a file by a directory. Exchanging them first
                        // leaves no moment without the name.
                        self.move_name(latched, source, there, RenameHow::Exchange)?;
                        self.remove_name(&source.path, target.stat.id, false)?;
                    }
                    replaced.state.detach(there);
                    self.forget_file(replaced, target.stat.id, links)?;
                    let to = self.respell(latched, there, to);
                    self.after_move(latched, source, to, rename.rules)
                },
            ))
        })
    }

    fn check_both(
        &self,
        latched: &mut Latched,
        source: &Found,
        replaced: &mut Latched,
        target: &Found,
        rename: Rename<'_>,
    ) -> Result<()> {
        if let RenameRules::Rest(options) = rename.rules {
            self.check_source(latched, source, rename.rules)?;
            return self.check_rest_target(replaced, target, options);
        }
        if matches!(rename.rules, RenameRules::Posix) {
            check_momentary(replaced, &target.path)?;
            self.check_facts(target)?;
        } else {
            self.check_replaced(replaced, target)?;
        }
        self.check_source(latched, source, rename.rules)
    }

    /// May the target of a rename or link go? Not while anybody has it open, whatever it shares
    /// (di22-di25, dp21, dp60), nor if it is read-only (di26, our rule), leased, or a directory
    /// with entries.
    pub(super) fn check_replaced(&self, replaced: &mut Latched, target: &Found) -> Result<()> {
        replaced.state.check_nobody()?;
        replaced.state.check_access(Access::D, ShareMode::RWD)?;
        self.check_facts(target)
    }

    /// May it go, as far as the disk knows?
    fn check_facts(&self, target: &Found) -> Result<()> {
        let facts = self.delete_facts_of(&target.path, target.stat.id, is_directory(target))?;
        if facts.read_only {
            return Err(Denial::ReadOnly.into());
        }
        Ok(facts.check()?)
    }

    /// May the source move?
    fn check_source(
        &self,
        latched: &mut Latched,
        source: &Found,
        rules: RenameRules<'_>,
    ) -> Result<()> {
        match rules {
            RenameRules::Handle(slot, id) => Ok(latched.state.check_rename(slot, id)?),
            RenameRules::Mount | RenameRules::Posix => check_momentary(latched, &source.path),
            RenameRules::Rest(options) => self.check_rest_source(latched, source, options),
        }
    }

    /// Gives a name that was just replaced the spelling that was asked for (di28), and says which
    /// it has. It is the same name in either, so a failure is no reason to say that nothing was
    /// renamed.
    fn respell<'a>(
        &self,
        latched: &mut Latched,
        from: &'a SharePath,
        to: &'a SharePath,
    ) -> &'a SharePath {
        if from == to {
            return to;
        }
        match self.dir.rename(from, to, RenameHow::NoReplace) {
            Ok(()) => {
                self.names_changed();
                latched.state.moved(from, to);
                to
            }
            Err(error) => {
                log::warn!("{from} keeps its spelling, {to} was not possible: {error}");
                from
            }
        }
    }

    fn move_name(
        &self,
        latched: &mut Latched,
        source: &Found,
        to: &SharePath,
        how: RenameHow,
    ) -> Result<()> {
        if source.path != *to {
            self.dir.rename(&source.path, to, how)?;
            self.names_changed();
            latched.state.moved(&source.path, to);
        }
        Ok(())
    }

    fn after_move(
        &self,
        latched: &mut Latched,
        source: &Found,
        to: &SharePath,
        rules: RenameRules<'_>,
    ) -> Result<Moved> {
        match rules {
            RenameRules::Handle(..) | RenameRules::Mount | RenameRules::Posix => Ok(None),
            RenameRules::Rest(options) => {
                self.after_rest_move(latched, source.stat.id, to, options).map(Some)
            }
        }
    }

    /// The opens below a directory that moved follow it. The name lock is held alone, so that none
    /// comes in meanwhile.
    fn move_opens_below(&self, from: &SharePath, to: &SharePath) -> Result<()> {
        let to = self.dir.lookup(to)?.path;
        self.follow_directories(|state| state.moved_below(from, &to));
        Ok(())
    }

    /// Moves the names of all files in use by `step`, and what is written down of those that are
    /// pending: their deletion was promised for wherever they are.
    pub(super) fn follow_directories(&self, step: impl Fn(&mut FileState)) {
        for cell in self.table.cells() {
            let state = &mut cell.latch().state;
            let before = pending_names(state);
            step(state);
            for (from, to) in before.iter().zip(&pending_names(state)) {
                if from != to
                    && let Err(error) = self
                        .remember_pending(cell.id, to)
                        .and_then(|()| self.forget_pending(cell.id, from))
                {
                    log::error!("{to}: a restart may not know that it is to be deleted: {error}");
                }
            }
        }
    }

    /// The same name in the same directory, spelled alike or, where case does not count, not.
    fn is_respelling(&self, one: &SharePath, other: &SharePath) -> bool {
        let same = |one, other| match self.options.case {
            Case::Sensitive => one == other,
            Case::Insensitive => same_name(one, other),
        };
        one.parent() == other.parent()
            && one.name().zip(other.name()).is_some_and(|(one, other)| same(one, other))
    }

    /// An open of anything below a directory. Looks at all files in use: renaming a directory is
    /// rare, and the way of an open stays free of the bookkeeping that would make this faster.
    pub(super) fn open_below(&self, dir: &SharePath) -> Option<Holder> {
        self.table.cells().into_iter().find_map(|cell| {
            let latched = cell.latch();
            let below = latched.state.opens().find(|(_, _, path)| path.is_below(dir));
            below.map(|(_, open, _)| open.holder())
        })
    }
}

/// The names of a file that are delete pending, in an order that their moving does not change.
fn pending_names(state: &FileState) -> Vec<SharePath> {
    state.names().filter(|(_, pending)| *pending).map(|(path, _)| path.clone()).collect()
}

/// The check of a momentary open with D that shares everything (DESIGN section 4).
pub(super) fn check_momentary(latched: &mut Latched, path: &SharePath) -> Result<()> {
    latched.state.check_not_pending(path)?;
    Ok(latched.state.check_access(Access::D, ShareMode::RWD)?)
}

pub(super) fn is_directory(found: &Found) -> bool {
    found.stat.kind == Kind::Directory
}
