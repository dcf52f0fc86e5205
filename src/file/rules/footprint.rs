//! What operations on files read and write, however a client names the file.
//!
//! A file is a resource below its directories. A list tells of sizes and times, and the times of a
//! directory change with its names: so a list reads all that is below the names it shows, and the
//! properties of a directory all that is in it. Files that hard links make one are two here.

use super::fold;
use crate::rules::footprint::{Footprint, Resource, Time};
use crate::rules::service::ServiceKind;

/// A share of an account, with all in it.
pub fn share(account: &str, share: &str) -> Resource {
    let service = format!("{}:{account}", ServiceKind::File);
    Resource::new([service, share.to_ascii_lowercase()])
}

/// A file or a directory, with all below it: names in a share, with slashes between.
pub fn file(account: &str, share_name: &str, path: &str) -> Resource {
    // Dots at the end of a name do not count, unless a client says so.
    let names = path.split('/').map(|name| fold(name.trim_end_matches('.')).into_owned());
    let names = names.filter(|name| !name.is_empty());
    names.fold(share(account, share_name).below("file"), Resource::below)
}

pub fn read(file: Resource) -> Footprint {
    Footprint::of([file], []).timed(Time::ReadsIfLeased)
}

pub fn written(file: Resource) -> Footprint {
    Footprint::of([], [file]).timed(Time::ReadsIfLeased)
}

/// The names in a directory that begin so.
pub fn listed(directory: Resource, prefix: &str) -> Footprint {
    read(directory.below_prefix(fold(prefix)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_meets_its_directories_their_lists_and_other_spellings_of_its_name() {
        let at = |path| file("acc", "docs", path);
        let change = written(at("a/b/c.txt"));
        for other in [
            read(at("A/B/C.TXT")),
            read(at("a/b/c.txt.")),
            written(at("a")),
            read(at("")),
            listed(at("a/b"), "c"),
            listed(at("a/b"), "C.t"),
            listed(at("a"), ""),
        ] {
            assert!(change.conflicts(&other), "{other:?}");
        }
        for other in [
            written(at("a/b/d.txt")),
            written(at("a/b/c")),
            listed(at("a/b"), "d"),
            listed(at(""), "b"),
            written(file("acc", "other", "a/b/c.txt")),
        ] {
            assert!(!change.conflicts(&other), "{other:?}");
        }
    }
}
