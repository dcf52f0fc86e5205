//! The data directory of a server: the folders of its accounts, a lock, and the format version.
//!
//! ```text
//! <data>/<account>/files/<share>/      shares, plain directories
//! <data>/.latchfs/format               the format version
//! <data>/.latchfs/accounts/<account>/  the state of an account's shares and services
//! ```
//!
//! Decides where an account keeps its data, that one server alone serves a data directory, which
//! formats are served, and what a reset removes. The shares of an account are
//! [`crate::file::store::root::ShareRoot`]'s.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::folder::{Durability, Folder, make_all};
use crate::bench::saved::SavedStates;
use crate::file::store::root::{HIDDEN, RootError, about, about_io, lock_folder, make_private};
use crate::file::store::share::tree;

/// The format that this version writes: accounts are separate.
pub const FORMAT: u32 = 2;

const FORMAT_FILE: &str = "format";
const ACCOUNTS: &str = "accounts";
const FILES: &str = "files";

/// A data directory, held by this process alone for as long as the value lives.
#[derive(Debug)]
pub struct DataRoot {
    path: PathBuf,
    folder: PathBuf,
    /// On the data directory and on our folder: either can be removed or replaced while a server
    /// runs, and the other one still keeps a second server away.
    _locks: [OwnedFd; 2],
}

impl DataRoot {
    /// Opens the data directory at `path`, made if missing, for its owner alone.
    pub fn open(path: &Path) -> Result<Self, RootError> {
        let making = about_io("making the data directory", path);
        make_all(path, fs::DirBuilder::new().mode(0o700)).map_err(&making)?;
        let path = path.canonicalize().map_err(&making)?;
        check_not_nested(&path)?;
        let folder = path.join(HIDDEN);
        check_format(&path, &folder)?;
        let lock = lock_folder(&path, &path)?;
        make_private(&folder)?;
        let locks = [lock, lock_folder(&folder, &path)?];
        let format = format!("{FORMAT}\n");
        // A data directory on a full disk is served as well: the file is missing, not wrong.
        if !folder.join(FORMAT_FILE).exists()
            && let Err(error) = Folder::new(folder.clone()).write(
                FORMAT_FILE,
                format.as_bytes(),
                Durability::Synced,
            )
        {
            log::warn!("{}: {error}", folder.join(FORMAT_FILE).display());
        }
        Ok(Self { path, folder, _locks: locks })
    }

    /// Where the data directory is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Our folder in it: the control socket, the log and the state of all accounts.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the data of an account is.
    pub fn account_path(&self, account: &str) -> PathBuf {
        self.path.join(account)
    }

    /// Where the shares of an account are.
    pub fn files_path(&self, account: &str) -> PathBuf {
        self.account_path(account).join(FILES)
    }

    /// Where the state of an account is kept.
    pub fn state_path(&self, account: &str) -> PathBuf {
        self.folder.join(ACCOUNTS).join(account)
    }

    /// Removes the data of all accounts in the data directory at `path`. A directory without our
    /// folder is refused unless it is empty or missing; anything else in it stays.
    pub fn reset(path: &Path) -> Result<(), RootError> {
        if !path.exists() || is_empty(path)? {
            return Ok(());
        }
        let hidden = fs::symlink_metadata(path.join(HIDDEN));
        if !hidden.is_ok_and(|hidden| hidden.is_dir()) {
            return Err(RootError::NotOurs(path.to_owned()));
        }
        let root = Self::open(path)?;
        let accounts = root.folder.join(ACCOUNTS);
        if accounts.exists() {
            let data = tree::open_root(&root.path).map_err(about(path))?;
            for account in tree::names(&accounts).map_err(about(&accounts))? {
                tree::remove(&data, &account).map_err(about(&root.path.join(&account)))?;
            }
            let folder = tree::open_root(&root.folder).map_err(about(path))?;
            tree::remove(&folder, ACCOUNTS).map_err(about(&accounts))?;
        }
        // At last: data that is replaced in part must not be served without its note.
        SavedStates::at(&root.folder).end(Durability::Cached).map_err(about(&root.folder))
    }
}

fn is_empty(path: &Path) -> Result<bool, RootError> {
    let mut entries = fs::read_dir(path).map_err(about_io("looking into a directory", path))?;
    Ok(entries.next().is_none())
}

/// Refuses a data directory that lies in the data of an account of another one, or in that one's
/// own folder: two servers would rule the same files.
fn check_not_nested(path: &Path) -> Result<(), RootError> {
    for above in path.ancestors().skip(1) {
        let hidden = above.join(HIDDEN);
        let below = path.strip_prefix(above).ok().and_then(|rest| rest.iter().next());
        let is_data = |name| name == HIDDEN || hidden.join(ACCOUNTS).join(name).is_dir();
        if hidden.join(FORMAT_FILE).is_file() && below.is_some_and(is_data) {
            return Err(RootError::Nested { path: path.to_owned(), data: above.to_owned() });
        }
    }
    Ok(())
}

/// Refuses a data directory of another format.
fn check_format(path: &Path, folder: &Path) -> Result<(), RootError> {
    let format = folder.join(FORMAT_FILE);
    let found = match fs::read(&format) {
        Ok(bytes) => bytes,
        Err(_) if OldLayout::is_in(folder) => {
            return Err(RootError::OldLayout(OldLayout { data: path.to_owned() }));
        }
        Err(_) => return Ok(()),
    };
    let number = str::from_utf8(&found).ok().and_then(|text| text.trim().parse::<u32>().ok());
    match number {
        Some(FORMAT) => Ok(()),
        Some(found) => Err(RootError::NewerFormat { path: path.to_owned(), found, known: FORMAT }),
        None => Err(RootError::DamagedFormat(format)),
    }
}

/// A data directory of latchfs 0.1, whose sub-directories are the shares of one account.
#[derive(Debug)]
pub struct OldLayout {
    data: PathBuf,
}

impl OldLayout {
    /// The folders of 0.1 in our folder of the data directory.
    const FOLDERS: [&str; 3] = ["shares", "snapshots", "deleted"];

    fn is_in(folder: &Path) -> bool {
        folder.join(Self::FOLDERS[0]).is_dir() && !folder.join(ACCOUNTS).exists()
    }

    /// The error message: the cause, and the commands that move the data.
    pub fn message(&self) -> String {
        let data = self.data.display();
        let account = "devstoreaccount1";
        let [shares, snapshots, deleted] = Self::FOLDERS;
        format!(
            "{data} was made by latchfs 0.1, which had one account. Move its data with\n  \
             cd '{data}' && mkdir -p {account}/{FILES} {HIDDEN}/{ACCOUNTS}/{account} &&\n  \
             find . -mindepth 1 -maxdepth 1 -type d ! -name {account} ! -name {HIDDEN} \
             -exec mv -t {account}/{FILES} {{}} + &&\n  \
             mv {HIDDEN}/{shares} {HIDDEN}/{snapshots} {HIDDEN}/{deleted} \
             {HIDDEN}/{ACCOUNTS}/{account}/\n\
             or start elsewhere with --data DIR"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::saved::{Note, Replacement};
    use crate::file::store::root::ShareRoot;

    fn shares(root: &DataRoot, account: &str) -> ShareRoot {
        ShareRoot::open_at(&root.files_path(account), &root.state_path(account)).unwrap()
    }

    #[test]
    fn a_reset_removes_every_account_and_leaves_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let root = DataRoot::open(&path).unwrap();
        for account in ["one", "two"] {
            shares(&root, account).create_share("docs").unwrap();
        }
        fs::write(path.join("one/files/docs/a.txt"), "hello").unwrap();
        fs::write(path.join("notes"), "not ours").unwrap();
        let states = SavedStates::at(root.folder());
        let accounts = vec!["one".to_owned()];
        states.begin(&Note { by: Replacement::Reset, accounts }).unwrap();
        assert!(matches!(DataRoot::reset(&path), Err(RootError::Served(_))));
        drop(root);
        DataRoot::reset(&path).unwrap();
        assert_eq!(states.begun().unwrap(), None);
        assert!(!path.join("one").exists() && !path.join("two").exists());
        assert!(path.join("notes").exists());
        let root = DataRoot::open(&path).unwrap();
        assert!(shares(&root, "one").shares().unwrap().is_empty());
    }

    #[test]
    fn a_directory_that_is_not_ours_is_not_reset() {
        let folder = tempfile::tempdir().unwrap();
        DataRoot::reset(&folder.path().join("missing")).unwrap();
        DataRoot::reset(folder.path()).unwrap();
        let precious = folder.path().join("docs");
        fs::create_dir(&precious).unwrap();
        assert!(matches!(DataRoot::reset(folder.path()), Err(RootError::NotOurs(_))));
        assert!(precious.exists());
        // A link of that name does not make it ours.
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join(HIDDEN)).unwrap();
        assert!(matches!(DataRoot::reset(folder.path()), Err(RootError::NotOurs(_))));
    }

    #[test]
    fn a_newer_format_and_the_layout_of_the_first_version_are_refused_untouched() {
        let folder = tempfile::tempdir().unwrap();
        drop(DataRoot::open(folder.path()).unwrap());
        let format = folder.path().join(HIDDEN).join(FORMAT_FILE);
        assert_eq!(fs::read_to_string(&format).unwrap(), "2\n");
        fs::write(&format, "3\n").unwrap();
        let error = DataRoot::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("has data format 3"), "{error}");
        for damaged in [&b""[..], b"two", b"\xFF\xFE"] {
            fs::write(&format, damaged).unwrap();
            let error = DataRoot::open(folder.path()).unwrap_err().to_string();
            let said = format!("{} is damaged: it holds no data format", format.display());
            assert!(error.starts_with(&said), "{error}");
            assert_eq!(fs::read(&format).unwrap(), damaged);
        }
        fs::remove_file(&format).unwrap();
        drop(DataRoot::open(folder.path()).unwrap());
        assert_eq!(fs::read_to_string(&format).unwrap(), "2\n");

        let old = tempfile::tempdir().unwrap();
        drop(ShareRoot::open(old.path()).unwrap());
        let error = DataRoot::open(old.path()).unwrap_err().to_string();
        assert!(error.contains("made by latchfs 0.1") && error.contains("mkdir -p"), "{error}");
        assert!(!old.path().join(HIDDEN).join(FORMAT_FILE).exists());
    }

    #[test]
    fn a_data_directory_is_served_once_also_when_its_own_folder_was_removed() {
        let folder = tempfile::tempdir().unwrap();
        let root = DataRoot::open(folder.path()).unwrap();
        fs::remove_dir_all(root.folder()).unwrap();
        assert!(matches!(DataRoot::open(folder.path()), Err(RootError::Served(_))));
        assert!(!folder.path().join(HIDDEN).exists());
        drop(root);
        DataRoot::open(folder.path()).unwrap();
    }

    #[test]
    fn the_data_of_another_data_directory_is_no_data_directory() {
        let folder = tempfile::tempdir().unwrap();
        let root = DataRoot::open(folder.path()).unwrap();
        shares(&root, "one").create_share("docs").unwrap();
        for inside in ["one", "one/files/docs/inner", ".latchfs/inner"] {
            let path = folder.path().join(inside);
            let refused = DataRoot::open(&path);
            assert!(matches!(refused, Err(RootError::Nested { .. })), "{inside}: {refused:?}");
            assert!(!path.join(HIDDEN).exists());
        }
        DataRoot::open(&folder.path().join("beside")).unwrap();
    }

    #[test]
    fn the_commands_in_the_message_move_the_data_of_the_first_version() {
        let old = tempfile::tempdir().unwrap();
        let shares_before = ShareRoot::open(old.path()).unwrap();
        shares_before.create_share("docs").unwrap();
        shares_before.create_share("other").unwrap();
        fs::write(old.path().join("docs/a.txt"), "hello").unwrap();
        drop(shares_before);
        let message = DataRoot::open(old.path()).unwrap_err().to_string();
        let commands: Vec<_> = message.lines().filter(|line| line.starts_with("  ")).collect();
        let done = std::process::Command::new("sh").arg("-c").arg(commands.join("\n")).status();
        assert!(done.unwrap().success(), "{message}");
        let root = DataRoot::open(old.path()).unwrap();
        assert_eq!(shares(&root, "devstoreaccount1").shares().unwrap(), ["docs", "other"]);
        let moved = root.files_path("devstoreaccount1").join("docs/a.txt");
        assert_eq!(fs::read_to_string(moved).unwrap(), "hello");
    }
}
