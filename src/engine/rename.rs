//! Renaming and linking: two names, up to two files, one step.
//!
//! Rules: SMB-RULES "Rename and link". Order of locks: the target's directory, then the two files
//! by identity. A directory is renamed under the share's name lock alone, since every path below
//! it changes.

use super::error::{Error, Result};
use super::open::Handle;
use super::share::{Attempt, NAME_RETRIES_MAX, Share};
use super::table::Latched;
use crate::core::name::same_name;
use crate::core::opens::Slot;
use crate::core::{Access, Denial, FileId, HandleId, Holder, Owner, ShareMode, SharePath};
use crate::store::{Found, Kind, RenameHow, Stat, StoreError};

/// The source of a rename, looked up.
struct Source {
    path: SharePath,
    stat: Stat,
    /// The handle that asks, if it is one: its own rights count, not a momentary open's.
    handle: Option<(Slot, HandleId)>,
}

impl Source {
    fn is_directory(&self) -> bool {
        self.stat.kind == Kind::Directory
    }
}

impl Share {
    /// Renames the file a handle is open on.
    pub fn rename_handle(&self, handle: &Handle, to: &SharePath, replace: bool) -> Result<()> {
        let (path, owner) = self.latched(handle, |latched, path| {
            let (open, _) = latched.state.get(handle.slot(), handle.id())?;
            Ok((path.clone(), open.owner.clone()))
        })?;
        let answer = self.rename_found(to, replace, || {
            let path = self.latched(handle, |_, path| Ok(path.clone()))?;
            let stat = self.dir.stat(&path)?;
            Ok(Source { path, stat, handle: Some((handle.slot(), handle.id())) })
        });
        self.note_refusal("rename", &path, &owner, answer)
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
        let answer = self.rename_found(to, replace, || {
            let Found { path, stat } = self.dir.lookup(from)?;
            Ok(Source { path, stat, handle: None })
        });
        self.note_refusal("rename", from, who, answer)
    }

    /// Finds the source and moves it, again while names keep changing.
    fn rename_found(
        &self,
        to: &SharePath,
        replace: bool,
        find: impl Fn() -> Result<Source>,
    ) -> Result<()> {
        const POISON: &str = "nothing panics under the name lock";
        for _ in 0..NAME_RETRIES_MAX {
            let directory = find()?.is_directory();
            let alone = directory.then(|| self.names.write().expect(POISON));
            let _shared = alone.is_none().then(|| self.names.read().expect(POISON));
            let generation = self.generation();
            let source = find()?;
            if source.is_directory() != directory {
                continue;
            }
            match self.rename_source(&source, to, replace, generation) {
                Attempt::Done(answer) => return answer,
                Attempt::Again => {}
            }
        }
        Err(Denial::NotFound.into())
    }

    fn rename_source(
        &self,
        source: &Source,
        to: &SharePath,
        replace: bool,
        generation: u64,
    ) -> Attempt<()> {
        let (to, target) = match self.rename_target(source, to) {
            Ok(found) => found,
            Err(error) => return Attempt::Done(Err(error)),
        };
        let parent = match self.dir.lookup(&to.parent().unwrap_or_default()) {
            Ok(parent) => parent,
            Err(error) => return Attempt::Done(Err(error.into())),
        };
        self.table.with(parent.stat.id, |_, latched| {
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
                    Attempt::Done(self.move_name(latched, source, &to, RenameHow::NoReplace))
                }),
                Some(_) if !replace => Attempt::Done(Err(Denial::NameTaken.into())),
                Some(target) => self.rename_over(source, &to, &target, generation),
            }
        })
    }

    /// What the new name stands for now, and how it will be spelled. Refuses what no opens could
    /// allow.
    fn rename_target(&self, source: &Source, to: &SharePath) -> Result<(SharePath, Option<Found>)> {
        if source.path.is_root() || to.is_root() {
            return Err(Denial::ShareRoot.into());
        }
        if to.is_below(&source.path) {
            return Err(Denial::InvalidParameter("a directory cannot move below itself").into());
        }
        let target = match self.dir.lookup(to) {
            // Another spelling of the source's own name: only the spelling changes (di28).
            Ok(found) if is_respelling(&source.path, &found.path) => None,
            Ok(found) => Some(found),
            Err(StoreError::NotFound) => None,
            Err(error) => return Err(error.into()),
        };
        // Under the name lock alone no open can come in: what is below now is all there is.
        if source.is_directory()
            && let Some(holder) = self.open_below(&source.path)
        {
            return Err(Denial::OpenBelow(Box::new(holder)).into());
        }
        let (parent, name) = to.split().ok_or(Denial::ShareRoot)?;
        let parent = self.dir.lookup(&SharePath::new(parent)?)?.path;
        Ok((parent.join(name)?, target))
    }

    fn rename_over(
        &self,
        source: &Source,
        to: &SharePath,
        target: &Found,
        generation: u64,
    ) -> Attempt<()> {
        if target.stat.id == source.stat.id {
            return Attempt::Done(Ok(())); // Two names of one file: rename(2) leaves both.
        }
        if source.is_directory() != (target.stat.kind == Kind::Directory) {
            return Attempt::Done(Err(Denial::NameTaken.into())); // di30
        }
        self.table.with_two(source.stat.id, target.stat.id, |latched, replaced| {
            if !self.is_still(&source.path, source.stat.id, generation)
                || !self.is_still(&target.path, target.stat.id, generation)
            {
                return Attempt::Again;
            }
            Attempt::Done(self.check_replaced(replaced, target).and_then(|()| {
                self.move_name(latched, source, to, RenameHow::Replace)?;
                self.forget_file(replaced, target.stat.id, target.stat.links)
            }))
        })
    }

    /// May the target of a rename or link go? Not while anybody has it open, whatever it shares
    /// (di22-di25, dp21, dp60), nor if it is read-only (di26, our rule), leased, or a directory
    /// with entries.
    fn check_replaced(&self, replaced: &mut Latched, target: &Found) -> Result<()> {
        replaced.state.check_nobody()?;
        replaced.state.check_access(Access::D, ShareMode::RWD)?;
        let directory = target.stat.kind == Kind::Directory;
        let facts = self.delete_facts_of(&target.path, target.stat.id, directory)?;
        if facts.read_only {
            return Err(Denial::ReadOnly.into());
        }
        Ok(facts.check()?)
    }

    fn move_name(
        &self,
        latched: &mut Latched,
        source: &Source,
        to: &SharePath,
        how: RenameHow,
    ) -> Result<()> {
        if let Some((slot, id)) = source.handle {
            latched.state.check_rename(slot, id)?;
        } else {
            latched.state.check_not_pending(&source.path)?;
            latched.state.check_access(Access::D, ShareMode::RWD)?;
        }
        if source.path != *to {
            self.dir.rename(&source.path, to, how)?;
            self.names_changed();
            latched.state.moved(&source.path, to);
        }
        Ok(())
    }

    /// An open of anything below a directory. Looks at all files in use: renaming a directory is
    /// rare, and the way of an open stays free of the bookkeeping that would make this faster.
    fn open_below(&self, dir: &SharePath) -> Option<Holder> {
        self.table.cells().into_iter().find_map(|cell| {
            let latched = cell.latch();
            let below = latched.state.opens().find(|(_, _, path)| path.is_below(dir));
            below.map(|(_, open, _)| open.holder())
        })
    }

    /// Makes another name for the file a handle is open on; any handle will do (di35).
    pub fn link_handle(&self, handle: &Handle, to: &SharePath, replace: bool) -> Result<()> {
        let path = self.latched(handle, |latched, path| {
            if latched.state.is_directory() {
                return Err(Denial::IsDirectory.into());
            }
            Ok(path.clone())
        })?;
        self.link_file(&path, handle.file(), to, replace)
    }

    /// Makes another name for a file, as `link(2)` on the mount does.
    pub fn link(&self, who: &Owner, from: &SharePath, to: &SharePath) -> Result<()> {
        let answer = self.dir.lookup(from).map_err(Error::from).and_then(|found| {
            if found.stat.kind == Kind::Directory {
                return Err(Denial::IsDirectory.into());
            }
            self.link_file(&found.path, found.stat.id, to, false)
        });
        self.note_refusal("link", from, who, answer)
    }

    fn link_file(&self, from: &SharePath, id: FileId, to: &SharePath, replace: bool) -> Result<()> {
        let _names = self.names.read().expect("nothing panics under the name lock");
        if replace && let Ok(target) = self.dir.lookup(to) {
            if target.stat.kind == Kind::Directory {
                return Err(Denial::NameTaken.into());
            }
            if target.stat.id == id {
                return Ok(());
            }
            self.table.with(target.stat.id, |_, latched| {
                self.check_replaced(latched, &target)?;
                self.remove_name(&target.path, target.stat.id, false)?;
                self.forget_file(latched, target.stat.id, target.stat.links)
            })?;
        }
        let make = |to: &SharePath| {
            self.dir.link(from, to)?;
            Ok(self.dir.stat(to)?)
        };
        self.make_entry(to, make, |_, _| Ok(()))
    }
}

/// The same name in the same directory, spelled alike or not.
fn is_respelling(one: &SharePath, other: &SharePath) -> bool {
    one.parent() == other.parent()
        && one.name().zip(other.name()).is_some_and(|(one, other)| same_name(one, other))
}
