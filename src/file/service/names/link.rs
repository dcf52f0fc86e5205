//! Hard links: adds a name to a file.
//!
//! A name that the link replaces follows the same rule as the target of a rename.

use super::super::error::{FileError, Result};
use super::super::opens::open::Handle;
use super::super::opens::table::Latched;
use super::super::requests::Asking;
use super::super::requests::momentary::ask;
use super::super::share::{Missed, Seen, Share, TryResult, retry};
use super::rename::is_directory;
use crate::file::rules::operation::FileOperation;
use crate::file::rules::{Denial, SharePath};
use crate::file::store::share::{FileKind, FoundFile, Record};
use crate::rules::Context;

impl Share {
    /// Adds a name to the file of a handle; the handle needs no right for it (di35).
    pub fn link_handle(&self, handle: &Handle, to: &SharePath, replace: bool) -> Result<()> {
        let any_name = |_: &mut Latched, _: &SharePath| Ok(());
        self.link_found(to, replace, || self.found_by(handle), any_name)
    }

    /// Adds a name to a file, as `link(2)` on the mount does: a momentary open, which is refused if
    /// the name is pending. A link through a handle is not (dp48).
    pub fn link(&self, cx: &Context, from: &SharePath, to: &SharePath) -> Result<()> {
        let not_pending = |latched: &mut Latched, path: &SharePath| {
            latched.state.check_not_pending(path).map_err(FileError::from)
        };
        let answer = self.link_found(to, false, || Ok(self.find(from)?), not_pending);
        self.note_refusal("link", from, cx.owner(), answer)
    }

    /// Adds a name to a file over REST. The bytes stay as they are: a lease ID need not be sent,
    /// and one that is sent must match.
    pub(crate) fn link_file(
        &self,
        asking: Asking<'_>,
        from: &SharePath,
        to: &SharePath,
    ) -> Result<()> {
        let find = || {
            let found = self.find(from)?;
            match found.stat.kind {
                FileKind::File | FileKind::Directory => Ok(found),
                FileKind::Symlink | FileKind::Special => Err(Denial::NotFound.into()),
            }
        };
        let look = FileOperation::GetFileProperties;
        self.link_found(to, false, find, |latched, path| {
            ask(look, latched, (path, &Record::default()), asking.lease_id, None)
        })
    }

    /// Finds the file and links it if `check` allows it; repeated while names change.
    fn link_found(
        &self,
        to: &SharePath,
        replace: bool,
        find: impl Fn() -> Result<FoundFile>,
        check: impl Fn(&mut Latched, &SharePath) -> Result<()>,
    ) -> Result<()> {
        let _names = self.names()?;
        retry(|| {
            let source = self.see_by(&find)?;
            if is_directory(&source.found) {
                return Err(Denial::IsDirectory.into());
            }
            // The source is asked first, and again when it is linked.
            if let Some(cell) = self.table().get(source.found.stat.id) {
                check(&mut cell.latch(), &source.found.path)?;
            }
            self.link_source(&source, (to, replace), &check)
        })
    }

    fn link_source(
        &self,
        source: &Seen,
        (to, replace): (&SharePath, bool),
        check: impl Fn(&mut Latched, &SharePath) -> Result<()>,
    ) -> TryResult<()> {
        if replace && let Ok(target) = self.see(to) {
            if is_directory(&target.found) {
                return Err(Denial::NameTaken.into());
            }
            if target.found.stat.id == source.found.stat.id {
                return Ok(());
            }
            self.clear_for_link(source, &target)?;
        }
        let mut moved = false;
        let make = |to: &SharePath| {
            let linked = self.lock_seen(source, |_, latched| {
                check(latched, &source.found.path)?;
                Ok(self.disk().link(&source.found.path, to)?)
            });
            linked.map_err(|missed| match missed {
                Missed::Failed(error) => error,
                Missed::Moved => {
                    moved = true;
                    Denial::NotFound.into()
                }
            })
        };
        let answer = self.make_entry(to, make, |_, ()| Ok(()));
        if moved { Err(Missed::Moved) } else { Ok(answer?) }
    }

    /// Removes the target of a replacing link, if the source is there to take its place.
    fn clear_for_link(&self, source: &Seen, target: &Seen) -> TryResult<()> {
        self.lock_both(source, target, |_, replaced| {
            let FoundFile { path, stat } = &target.found;
            self.check_replaced(replaced, &target.found)?;
            let links = self.links(path, stat.id, false);
            self.remove_name(path, stat.id, false)?;
            self.forget_file(replaced, stat.id, links);
            Ok(())
        })
    }
}
