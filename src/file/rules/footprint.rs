//! What operations on files read and write, however a client names the file.
//!
//! A file is a resource below its directories. The entry of a file in a list is one of its
//! directory's names; it tells of the file's size and times, so each write of a file writes it too.
//! The entry of the directory itself has times that change with its names. Files that hard links
//! make one are two here.

use super::fold;
use crate::rules::footprint::{Footprint, Resource, Time};
use crate::rules::service::ServiceKind;

/// The names in a directory.
const NAMES: &str = "$names";

/// A share of an account, with all in it.
pub fn share(account: &str, share: &str) -> Resource {
    let service = format!("{}:{account}", ServiceKind::File);
    Resource::new([service, share.to_ascii_lowercase()])
}

/// A file or a directory, with all below it, and its entries.
#[derive(Debug)]
pub struct FileResources {
    pub file: Resource,
    /// In its directory's list, and in the one above.
    pub entries: Vec<Resource>,
}

impl FileResources {
    /// Of that path in a share: names, with slashes between.
    pub fn new(account: &str, share_name: &str, path: &str) -> Self {
        let names: Vec<_> = path
            .split('/')
            // Dots at the end of a name do not count, unless a client says so.
            .map(|name| fold(name.trim_end_matches('.')).into_owned())
            .filter(|name| !name.is_empty())
            .collect();
        let top = || share(account, share_name).below("file");
        let at = |depth: usize| names[..depth].iter().fold(top(), |at, name| at.below(name));
        let entry = |depth: usize| at(depth).below(NAMES).below(&names[depth]);
        let entries = (names.len().saturating_sub(2)..names.len()).map(entry).collect();
        Self { file: at(names.len()), entries }
    }

    pub fn read(self) -> Footprint {
        Footprint::of([self.file], []).timed(Time::ReadsIfLeased)
    }

    pub fn written(self) -> Footprint {
        Footprint::of([], [self.file].into_iter().chain(self.entries)).timed(Time::ReadsIfLeased)
    }

    /// The properties of a directory: its times change with its names.
    pub fn directory_read(self) -> Footprint {
        let names = self.file.below(NAMES);
        Footprint::of([names].into_iter().chain(self.entries), []).timed(Time::ReadsIfLeased)
    }

    /// The names in a directory that begin so.
    pub fn listed(self, prefix: &str) -> Footprint {
        let names = self.file.below(NAMES).below_prefix(fold(prefix));
        Footprint::of([names].into_iter().chain(self.entries), []).timed(Time::ReadsIfLeased)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_meets_its_directories_their_lists_and_other_spellings_of_its_name() {
        let at = |path| FileResources::new("acc", "docs", path);
        let written = || at("a/b/c.txt").written();
        for other in [
            at("A/B/C.TXT").read(),
            at("a/b/c.txt.").read(),
            at("a").written(),
            at("").written(),
            at("a/b").listed("c"),
            at("a/b").listed("C.t"),
            at("a").listed(""),
            at("a/b").directory_read(),
        ] {
            assert!(written().conflicts(&other), "{other:?}");
        }
        for other in [
            at("a/b/d.txt").written(),
            at("a/b/c").written(),
            at("a/b").listed("d"),
            at("").listed(""),
            FileResources::new("acc", "other", "a/b/c.txt").written(),
        ] {
            assert!(!written().conflicts(&other), "{other:?}");
        }
    }
}
