//! Create Symbolic Link, Get Symbolic Link and Create Hard Link.
//!
//! Decides what REST does with links: it makes both kinds, reads symbolic ones, and follows none.
//! The names themselves follow the rules of `symlink(2)` and `link(2)` on the mount
//! ([`super::super::opens`], [`super::super::names`]).

use super::super::error::Result;
use super::super::opens::Creation;
use super::super::share::{ChangeNotice, Share};
use super::file_properties::{FileProperties, SmbProperties};
use super::momentary::Asking;
use crate::disk::StoreError;
use crate::file::rules::SharePath;
use crate::file::rules::operation::FileOperation;
use crate::file::store::share::{FileKind, FoundFile, Record, ShareDir};
use crate::rules::Context;
use crate::rules::lease::FileLease;

impl Share {
    /// Makes a symbolic link with that text, which is stored as it is and not followed.
    pub fn create_symbolic_link(
        &self,
        cx: &Context,
        path: &SharePath,
        text: &str,
        creation: Creation,
    ) -> Result<FileProperties> {
        let make = |path: &SharePath| {
            let stat = self.make_symlink(path, text, creation)?;
            self.flush_name(path).inspect_err(|_| self.unmake(path, stat))?;
            Ok(stat)
        };
        let (name, operation) = ("Create Symbolic Link", FileOperation::CreateFileNew);
        let stat = self.make_free(name, (cx, path), operation, || {
            self.make_entry(path, make, |_, made| Ok(made))
        })?;
        self.properties_as(path, stat, Record::default(), FileLease::default())
    }

    /// A symbolic link and its text; none if the name is not that of a symbolic link.
    pub fn symbolic_link(&self, path: &SharePath) -> Result<Option<(SmbProperties, String)>> {
        let _names = self.names()?;
        Ok(symbolic_link_in(self.disk(), path)?)
    }

    /// Gives the file `from` the name `to` too.
    pub fn create_hard_link(
        &self,
        asking: Asking<'_>,
        from: &SharePath,
        to: &SharePath,
    ) -> Result<FileProperties> {
        let wants = FileOperation::CreateFileNew.wants();
        let answer = self.when_free(&[from, to], wants, || self.link_file(asking, from, to));
        self.note_refusal("Create Hard Link", from, asking.cx.owner(), answer)?;
        self.flush_left(to);
        self.tell(ChangeNotice::Attributes(from));
        self.tell(ChangeNotice::Attributes(to));
        let FoundFile { path, stat } = self.find(to)?;
        let record = self.record(&path, stat.id)?;
        self.properties_as(&path, stat, record, FileLease::default())
    }
}

/// A symbolic link of a share or a snapshot, and its text.
pub(crate) fn symbolic_link_in(
    dir: &ShareDir,
    path: &SharePath,
) -> std::result::Result<Option<(SmbProperties, String)>, StoreError> {
    let FoundFile { path, stat } = dir.lookup(path)?;
    if stat.kind != FileKind::Symlink {
        return Ok(None);
    }
    let smb = SmbProperties::of(&stat, &Record::default());
    Ok(Some((smb, dir.read_link(&path)?)))
}
