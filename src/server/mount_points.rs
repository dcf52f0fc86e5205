//! The mount points of shares, as users write them, and directories that are made for mounting.
//!
//! Mounting itself is in [`super::host`].

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::error::StartError;
use crate::file::rules::name::split_account;

/// A share and the directory it is mounted on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountPoint {
    /// The account; none for the first.
    pub account: Option<String>,
    /// The share.
    pub share: String,
    /// The mount point.
    pub path: PathBuf,
}

impl MountPoint {
    /// The place of a share that is given as `[ACCOUNT/]NAME`.
    pub fn new(share: &str, path: &Path) -> Self {
        let (account, share) = split_account(share);
        Self { account: account.map(str::to_owned), share: share.to_owned(), path: path.to_owned() }
    }
}

impl FromStr for MountPoint {
    type Err = String;

    /// Reads `[ACCOUNT/]NAME=DIR`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((share, path)) if !share.is_empty() && !path.is_empty() => {
                Ok(Self::new(share, Path::new(path)))
            }
            _ => Err("expected a share and a directory, as in docs=/mnt/docs".into()),
        }
    }
}

/// The shares to mount, with their mount points. Directories that were made for them are removed
/// when this is dropped.
#[derive(Debug, Default)]
pub struct MountPoints {
    /// The mounts to make.
    pub list: Vec<MountPoint>,
    /// Whether a mount that cannot be made is an error.
    pub required: bool,
    made: Vec<PathBuf>,
}

impl MountPoints {
    /// The mount points that a user named.
    pub fn named(named: &[MountPoint]) -> Result<Self, StartError> {
        let mut list = Vec::new();
        for place in named {
            let path = real_path(&place.path)
                .map_err(|source| StartError::MountPoint { path: place.path.clone(), source })?;
            list.push(MountPoint { path, ..place.clone() });
        }
        Ok(Self { list, required: true, made: Vec::new() })
    }

    /// One mount for each share of the first account, in or on `base`, which is made if missing.
    pub fn by_default(base: &Path, shares: &[String]) -> io::Result<Self> {
        let mut places = Self::default();
        places.make(base)?;
        for name in shares {
            let path = if shares.len() > 1 { base.join(name) } else { base.to_owned() };
            places.make(&path)?;
            places.list.push(MountPoint::new(name, &real_path(&path)?));
        }
        Ok(places)
    }

    fn make(&mut self, path: &Path) -> io::Result<()> {
        if make_place(path)? {
            // Absolute: it is removed wherever this process is by then.
            self.made.push(real_path(path)?);
        }
        Ok(())
    }
}

impl Drop for MountPoints {
    fn drop(&mut self) {
        for path in self.made.iter().rev() {
            if let Err(error) = fs::remove_dir(path) {
                log::debug!("{}: {error}", path.display());
            }
        }
    }
}

/// Makes a mount point; false if it exists. One with a dead mount on it exists, though it cannot
/// be looked at.
fn make_place(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => fs::create_dir(path).map(|()| true),
        _ => Ok(false),
    }
}

/// The path without links on the way. The last name is taken as it is, since it may not exist, or
/// be a link of the share.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    let absolute = std::env::current_dir()?.join(path);
    let last = absolute.components().next_back().map(|part| part.as_os_str().to_owned());
    let plain = last.filter(|name| name != ".." && name != "/");
    let Some(name) = plain else { return absolute.canonicalize() };
    // A mount point as such: its parent's real path and its name are its real path.
    let parent = absolute.parent().unwrap_or(Path::new("/"));
    Ok(parent.canonicalize()?.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_names_its_share_and_may_name_its_account() {
        let read = |text: &str| text.parse::<MountPoint>();
        let docs = read("docs=/mnt").unwrap();
        assert_eq!((docs.account, &*docs.share), (None, "docs"));
        let second = read("second/docs=/a=b").unwrap();
        assert_eq!((second.account.as_deref(), &*second.share), (Some("second"), "docs"));
        assert_eq!(second.path, Path::new("/a=b"));
        assert!(read("docs").is_err() && read("=x").is_err() && read("docs=").is_err());
    }
}
