//! Linking: one more name for a file.
//!
//! Rules: SMB-RULES "Rename and link". A name that is to be replaced must be free to go, by the
//! same rule as a rename's target.

use super::error::{Error, Result};
use super::open::Handle;
use super::rename::is_directory;
use super::share::{Attempt, NAME_RETRIES_MAX, Share};
use super::table::Latched;
use crate::core::{Denial, Owner, SharePath};
use crate::store::Found;

impl Share {
    /// Makes another name for the file a handle is open on; any handle will do (di35).
    pub fn link_handle(&self, handle: &Handle, to: &SharePath, replace: bool) -> Result<()> {
        let any_name = |_: &Latched, _: &SharePath| Ok(());
        self.link_found(to, replace, || self.found_by(handle), any_name)
    }

    /// Makes another name for a file, as `link(2)` on the mount does: a momentary open, which a
    /// pending name refuses. Through a handle it does not (dp48).
    pub fn link(&self, who: &Owner, from: &SharePath, to: &SharePath) -> Result<()> {
        let not_pending = |latched: &Latched, path: &SharePath| {
            latched.state.check_not_pending(path).map_err(Error::from)
        };
        let answer = self.link_found(to, false, || Ok(self.find(from)?), not_pending);
        self.note_refusal("link", from, who, answer)
    }

    /// Finds the file and links it if `check` allows it, again while names keep changing.
    fn link_found(
        &self,
        to: &SharePath,
        replace: bool,
        find: impl Fn() -> Result<Found>,
        check: impl Fn(&Latched, &SharePath) -> Result<()>,
    ) -> Result<()> {
        let _names = self.names()?;
        for _ in 0..NAME_RETRIES_MAX {
            let generation = self.generation();
            let source = find()?;
            if is_directory(&source) {
                return Err(Denial::IsDirectory.into());
            }
            // The source is asked first, and again when it is linked.
            if let Some(cell) = self.table.get(source.stat.id) {
                check(&cell.latch(), &source.path)?;
            }
            match self.link_source(&source, (to, replace), generation, &check) {
                Attempt::Done(answer) => return answer,
                Attempt::Again => {}
            }
        }
        Err(Denial::NotFound.into())
    }

    fn link_source(
        &self,
        source: &Found,
        (to, replace): (&SharePath, bool),
        generation: u64,
        check: impl Fn(&Latched, &SharePath) -> Result<()>,
    ) -> Attempt<()> {
        if replace && let Ok(target) = self.find(to) {
            if is_directory(&target) {
                return Attempt::Done(Err(Denial::NameTaken.into()));
            }
            if target.stat.id == source.stat.id {
                return Attempt::Done(Ok(()));
            }
            match self.clear_for_link(source, &target, generation) {
                Attempt::Done(Ok(())) => {}
                other => return other,
            }
        }
        let mut moved = false;
        let make = |to: &SharePath| {
            self.table.with(source.stat.id, |_, latched| {
                if !self.is_still(&source.path, source.stat.id, generation) {
                    moved = true;
                    return Err(Denial::NotFound.into());
                }
                check(latched, &source.path)?;
                self.dir.link(&source.path, to)?;
                self.names_changed();
                Ok(self.dir.stat(to)?)
            })
        };
        let answer = self.make_entry(to, make, |_, _| Ok(()));
        if moved { Attempt::Again } else { Attempt::Done(answer) }
    }

    /// Removes the target of a replacing link, if the source is there to take its place.
    fn clear_for_link(&self, source: &Found, target: &Found, generation: u64) -> Attempt<()> {
        self.table.with_two(source.stat.id, target.stat.id, |_, replaced| {
            if !self.is_still(&source.path, source.stat.id, generation)
                || !self.is_still(&target.path, target.stat.id, generation)
            {
                return Attempt::Again;
            }
            Attempt::Done(self.check_replaced(replaced, target).and_then(|()| {
                let links = self.links(&target.path, target.stat.id, false);
                self.remove_name(&target.path, target.stat.id, false)?;
                self.forget_file(replaced, target.stat.id, links)
            }))
        })
    }
}
