//! Renaming: two names, up to two files, one step.
//!
//! The rules are those of docs/semantics.md, "Rename"; what REST asks on top of them is in
//! [`crate::file::service::requests::rename`]. Order of locks: the target's directory, then the two
//! files by identity. A directory is renamed under the share's name lock alone, since every path
//! below it changes.

use super::super::error::{FileError, Result};
use super::super::opens::open::{Handle, check_gets_entries};
use super::super::opens::table::Latched;
use super::super::requests::momentary::ask_new;
use super::super::share::{Attempt, ChangeNotice, Missed, Seen, Share, Target, TryResult};
use super::delete::{NameRules, REMOVES};
use super::exchange::Below;
use crate::disk::StoreError;
use crate::file::rules::name::same_name;
use crate::file::rules::opens::OpenSlot;
use crate::file::rules::{Access, Denial, Holder, ShareMode, SharePath};
use crate::file::service::FileProperties;
use crate::file::service::requests::rename::{RestMove, RestRename};
use crate::file::store::share::{Case, FileKind, FoundFile, RenameHow};
use crate::rules::{Context, HandleId, Timestamp};

/// How `renameat2(2)` moves a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MoveHow {
    NoReplace,
    Replace,
    Exchange,
}

/// The rules by which a name is moved.
#[derive(Clone, Copy)]
pub(crate) enum RenameRules<'a> {
    /// Through a handle: its own rights count, not a momentary open's.
    Handle(OpenSlot, HandleId),
    /// By name on the mount: a momentary open of the source with D that shares everything.
    Mount,
    /// By name on a mount that behaves as POSIX: opens of the target or below a directory refuse
    /// nothing.
    Posix,
    /// By REST, at that moment: momentary opens of both ends, with their lease IDs.
    Rest(&'a RestRename<'a>, Timestamp),
}

#[derive(Clone, Copy)]
pub(crate) struct Rename<'a> {
    pub to: &'a SharePath,
    /// An existing target may be replaced.
    pub replace: bool,
    pub rules: RenameRules<'a>,
}

/// The moved file, for the answer of REST; `None` for the others.
pub(crate) type RenamedForRest = Option<FileProperties>;

impl Share {
    /// Renames the file a handle is open on.
    pub fn rename_handle(&self, handle: &Handle, to: &SharePath, replace: bool) -> Result<()> {
        let (path, owner) = self.latched(handle, |latched, path| {
            let (open, _) = latched.state.get(handle.slot(), handle.id())?;
            Ok((path.clone(), open.owner.clone()))
        })?;
        let rules = RenameRules::Handle(handle.slot(), handle.id());
        let rename = Rename { to, replace, rules };
        let answer = self.rename_found(rename, || self.found_by(handle), &|| ());
        self.note_refusal("rename", &path, &owner, answer.map(drop))?;
        self.tell(ChangeNotice::Name(&path));
        self.tell(ChangeNotice::Name(to));
        Ok(())
    }

    /// `renameat2(2)`. `moved` is called once the names have moved on the disk, before others can
    /// look for them there.
    pub fn mount_rename(
        &self,
        attempt: Attempt,
        cx: &Context,
        (from, to): (&SharePath, &SharePath),
        (how, rules): (MoveHow, NameRules),
        moved: &dyn Fn(),
    ) -> Option<Result<()>> {
        let (operation, answer) = match how {
            MoveHow::Exchange => {
                let below = if rules == NameRules::Posix { Below::Moves } else { Below::Stays };
                ("exchange", self.exchange_found(from, to, below, moved))
            }
            MoveHow::NoReplace | MoveHow::Replace => {
                let replace = how == MoveHow::Replace;
                let rules = match rules {
                    NameRules::Nt => RenameRules::Mount,
                    NameRules::Posix => RenameRules::Posix,
                };
                let rename = Rename { to, replace, rules };
                let renamed = self.rename_found(rename, || Ok(self.find(from)?), moved);
                ("rename", renamed.map(drop))
            }
        };
        // Only the target of a rename is refused because it is open at all.
        let refused = match &answer {
            Err(FileError::Denied(Denial::Open(_))) => to,
            _ => from,
        };
        let told = (operation, from, cx.owner());
        self.final_answer(attempt, told, (Target::Names(&[refused]), REMOVES), answer)
    }

    /// Finds the source and moves it; repeated while names change. `moved` is called before the
    /// name lock is released.
    pub(crate) fn rename_found(
        &self,
        rename: Rename<'_>,
        find: impl Fn() -> Result<FoundFile>,
        moved: &dyn Fn(),
    ) -> Result<RenamedForRest> {
        let any_directory = |source: &Seen| is_directory(&source.found);
        self.at_ends(
            || self.see_by(&find),
            any_directory,
            |source, directory| {
                let renamed = self.rename_source(source, rename)?;
                moved();
                if directory && matches!(rename.rules, RenameRules::Posix) {
                    self.move_opens_below(&source.found.path, rename.to)?;
                }
                Ok(renamed)
            },
        )
    }

    fn rename_source(&self, source: &Seen, rename: Rename<'_>) -> TryResult<RenamedForRest> {
        let (to, parent, target) = self.rename_target(&source.found, rename)?;
        self.lock_seen(&parent, |_, latched| {
            check_gets_entries(latched, &parent.found.path, true)?;
            latched.state.check_renamed_into()?;
            let Some(target) = target else {
                return self.lock_seen(source, |_, latched| {
                    match self.rename_to_free(latched, &source.found, &to, rename.rules) {
                        // Made since it was looked for: it is there to be replaced.
                        Err(FileError::Denied(Denial::NameTaken))
                            if rename.replace && !self.is_respelling(&source.found.path, &to) =>
                        {
                            Err(Missed::Moved)
                        }
                        answer => Ok(answer?),
                    }
                });
            };
            self.rename_over(source, &to, &target, rename)
        })
    }

    /// The spelling of the new name, its directory, and the file that has the name now. Refuses
    /// renames that are impossible whatever the opens share.
    fn rename_target(
        &self,
        source: &FoundFile,
        rename: Rename<'_>,
    ) -> Result<(SharePath, Seen, Option<Seen>)> {
        let to = rename.to;
        if source.path.is_root() || to.is_root() {
            return Err(Denial::ShareRoot.into());
        }
        let target = match self.see(to) {
            // Another spelling of the source's own name: only the spelling changes (di28).
            Ok(seen) if self.is_respelling(&source.path, &seen.found.path) => None,
            Ok(seen) => Some(seen),
            Err(StoreError::NotFound) => None,
            Err(error) => return Err(error.into()),
        };
        let (parent, name) = to.split().ok_or(Denial::ShareRoot)?;
        let parent = SharePath::new(parent)?;
        let parent = self.see_by(|| self.disk().lookup(&parent))?;
        let spelled = parent.found.path.join(name)?;
        // The second way leads through a link.
        if spelled.is_below(&source.path) || parent.found.stat.id == source.stat.id {
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
        source: &FoundFile,
        to: &SharePath,
        rules: RenameRules<'_>,
    ) -> Result<RenamedForRest> {
        self.check_source(latched, source, rules)?;
        if let RenameRules::Rest(options, _) = rules {
            ask_new(options.destination_lease, to)?;
        }
        let prepared = self.prepare_move(source, to, rules)?;
        let moved = self.move_name(latched, source, to, RenameHow::NoReplace);
        self.after_move(latched, to, prepared, moved)
    }

    /// Replaces the target, in one step of the file system, then gives the name the spelling that
    /// was asked for.
    fn rename_over(
        &self,
        source: &Seen,
        to: &SharePath,
        target: &Seen,
        rename: Rename<'_>,
    ) -> TryResult<RenamedForRest> {
        let (from, over) = (&source.found, &target.found);
        let same_file = over.stat.id == from.stat.id;
        let same_kind = is_directory(from) == is_directory(over);
        if matches!(rename.rules, RenameRules::Rest(..)) {
            // A file and a directory are never locked together by identity: that
            // order is for files, and a directory's lock may be held for an entry's.
            // Links and special files are not REST's to replace.
            if !rename.replace || same_file || over.stat.kind != FileKind::File {
                return self.refuse_taken(target);
            }
        } else if !rename.replace {
            return Err(Denial::NameTaken.into());
        } else if same_file {
            return Ok(None); // Two names of one file: rename(2) leaves both.
        } else if !same_kind {
            return Err(Denial::NameTaken.into()); // di30
        }
        self.lock_both(source, target, |latched, replaced| {
            self.check_both(latched, from, replaced, over, rename)?;
            let there = &over.path;
            let links = self.links(there, over.stat.id, is_directory(over));
            let prepared = self.prepare_move(from, there, rename.rules)?;
            self.keep_nameless(replaced, there, is_directory(over));
            let moved = if same_kind {
                self.move_name(latched, from, there, RenameHow::Replace)
            } else {
                self.replace_by_directory(latched, from, over)
            };
            if moved.is_err() {
                return Ok(self.after_move(latched, there, prepared, moved)?);
            }
            replaced.state.detach(there);
            self.forget_file(replaced, over.stat.id, links);
            let to = self.respell(latched, there, to);
            Ok(self.after_move(latched, to, prepared, moved)?)
        })
    }

    fn check_both(
        &self,
        latched: &mut Latched,
        source: &FoundFile,
        replaced: &mut Latched,
        target: &FoundFile,
        rename: Rename<'_>,
    ) -> Result<()> {
        if let RenameRules::Rest(options, _) = rename.rules {
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

    /// Checks that the target of a rename or link may be replaced: not while it is open, whatever
    /// the opens share (di22-di25, dp21, dp60), nor if it is read-only (di26, our rule), leased, or
    /// a directory with entries.
    pub(crate) fn check_replaced(&self, replaced: &mut Latched, target: &FoundFile) -> Result<()> {
        replaced.state.check_nobody()?;
        replaced.state.check_access(Access::D, ShareMode::RWD)?;
        self.check_facts(target)
    }

    /// Checks what the disk knows about the target: attributes and emptiness.
    fn check_facts(&self, target: &FoundFile) -> Result<()> {
        let facts = self.delete_facts_of(&target.path, target.stat.id, is_directory(target))?;
        if facts.read_only {
            return Err(Denial::ReadOnly.into());
        }
        Ok(facts.check()?)
    }

    /// Checks that the source may be moved.
    fn check_source(
        &self,
        latched: &mut Latched,
        source: &FoundFile,
        rules: RenameRules<'_>,
    ) -> Result<()> {
        match rules {
            RenameRules::Handle(slot, id) => Ok(latched.state.check_rename(slot, id)?),
            RenameRules::Mount | RenameRules::Posix => check_momentary(latched, &source.path),
            RenameRules::Rest(options, _) => self.check_rest_source(latched, source, options),
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
        match self.disk().rename(from, to, RenameHow::NoReplace) {
            Ok(()) => {
                latched.state.moved(from, to);
                to
            }
            Err(error) => {
                log::warn!("{from} keeps its spelling, {to} was not possible: {error}");
                from
            }
        }
    }

    /// Replaces a file by a directory, which no file system does in one step: the two are
    /// exchanged first, which leaves no moment without the name.
    fn replace_by_directory(
        &self,
        latched: &mut Latched,
        source: &FoundFile,
        target: &FoundFile,
    ) -> Result<()> {
        self.move_name(latched, source, &target.path, RenameHow::Exchange)?;
        self.remove_name(&source.path, target.stat.id, false).inspect_err(|_| {
            // A refusal changes nothing. The first error is the one to tell.
            if self.disk().rename(&target.path, &source.path, RenameHow::Exchange).is_ok() {
                latched.state.moved(&target.path, &source.path);
            }
        })
    }

    fn move_name(
        &self,
        latched: &mut Latched,
        source: &FoundFile,
        to: &SharePath,
        how: RenameHow,
    ) -> Result<()> {
        if source.path != *to {
            self.disk().rename(&source.path, to, how)?;
            latched.state.moved(&source.path, to);
        }
        Ok(())
    }

    /// Makes the changes that can fail before the name moves, so that a refusal changes nothing.
    fn prepare_move(
        &self,
        source: &FoundFile,
        to: &SharePath,
        rules: RenameRules<'_>,
    ) -> Result<Option<RestMove>> {
        match rules {
            RenameRules::Handle(..) | RenameRules::Mount | RenameRules::Posix => Ok(None),
            RenameRules::Rest(options, now) => {
                self.prepare_rest_move(source, to, (options, now)).map(Some)
            }
        }
    }

    fn after_move(
        &self,
        latched: &mut Latched,
        to: &SharePath,
        prepared: Option<RestMove>,
        moved: Result<()>,
    ) -> Result<RenamedForRest> {
        match (prepared, moved) {
            (None, moved) => moved.map(|()| None),
            (Some(prepared), Ok(())) => self.after_rest_move(latched, prepared, to).map(Some),
            (Some(prepared), Err(error)) => {
                self.undo_rest_move(prepared);
                Err(error)
            }
        }
    }

    /// Moves the opens below a directory that was moved. The name lock is held exclusively, so that
    /// no open is added during the move.
    fn move_opens_below(&self, from: &SharePath, to: &SharePath) -> Result<()> {
        let to = self.disk().lookup(to)?.path;
        self.follow_directories(|state| state.moved_below(from, &to));
        Ok(())
    }

    /// True if both are one name in one directory, in any spelling where case does not count.
    fn is_respelling(&self, one: &SharePath, other: &SharePath) -> bool {
        let same = |one, other| match self.options().case {
            Case::Sensitive => one == other,
            Case::Insensitive => same_name(one, other),
        };
        one.parent() == other.parent()
            && one.name().zip(other.name()).is_some_and(|(one, other)| same(one, other))
    }

    /// An open of any file below a directory. Looks at all files in use: renaming a directory is
    /// rare, and an index would cost every open.
    pub(crate) fn open_below(&self, dir: &SharePath) -> Option<Holder> {
        for cell in self.table().cells() {
            let latched = cell.latch();
            let mut opens = latched.state.opens();
            if let Some((_, open, _)) = opens.find(|(_, _, path)| path.is_below(dir)) {
                return Some(open.holder());
            }
        }
        None
    }
}

/// The check of a momentary open with D that shares everything.
pub(crate) fn check_momentary(latched: &mut Latched, path: &SharePath) -> Result<()> {
    latched.state.check_not_pending(path)?;
    Ok(latched.state.check_access(Access::D, ShareMode::RWD)?)
}

pub(crate) fn is_directory(found: &FoundFile) -> bool {
    found.stat.kind == FileKind::Directory
}
