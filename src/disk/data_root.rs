//! The data directory of a server: the folders of its accounts, a lock, and the format version.
//!
//! ```text
//! <data>/<account>/files/<share>/      shares, plain directories
//! <data>/.latchfs/format               the format version
//! <data>/.latchfs/server               the server that has the data directory
//! <data>/.latchfs/accounts/<account>/  the state of an account's shares and services
//! <data>/.latchfs/replacing            the replacement of all data that is under way
//! ```
//!
//! Decides where an account keeps its data, that one server alone serves a data directory, which
//! formats are served, and what `--reset` removes. What is in the folders of an account is decided
//! by its services; how all data is replaced while it is served, in `bench/states`.

use std::fs;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::error::StoreError;
use super::folder::{Durability, Folder, make_all};
use super::lock::{ServedElsewhere, leave_note, lock_folder};
use super::tree;

/// The name of our folder in a data directory. No share and no account can have this name.
pub const HIDDEN: &str = ".latchfs";
/// The note of a replacement of all data in our folder: a start that finds it completes the
/// replacement.
pub(crate) const REPLACING: &str = "replacing";
/// The format that this version writes: accounts are separate.
pub const FORMAT: u32 = 2;

const FORMAT_FILE: &str = "format";
const ACCOUNTS: &str = "accounts";
const FILES: &str = "files";

/// Why a data directory, or a folder of our own in it, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataRootError {
    /// Another server has the directory.
    #[error("{0}")]
    Served(ServedElsewhere),
    /// The data directory was made by latchfs 0.1, which had one account.
    #[error("{}", .0.message())]
    OldLayout(OldLayout),
    /// The data directory was made by a newer latchfs.
    #[error(
        "{} has data format {found}; this latchfs knows format {known}. Use a newer latchfs, or \
         another --data", path.display()
    )]
    NewerFormat {
        path: PathBuf,
        /// The format it says it has.
        found: u32,
        /// The newest format that this program knows.
        known: u32,
    },
    /// The file with the format of the data directory cannot be understood.
    #[error(
        "{} is damaged: it holds no data format. Remove it if this latchfs or an older one made \
         the data directory, or choose another --data", .0.display()
    )]
    DamagedFormat(PathBuf),
    /// The data directory lies in the data of another one.
    #[error(
        "{} lies in the data directory {}: choose another --data", path.display(), data.display()
    )]
    Nested {
        path: PathBuf,
        /// The one that it lies in.
        data: PathBuf,
    },
    /// Only what latchfs made is thrown away.
    #[error(
        "{} is not a latchfs data directory, so --reset does not empty it: choose another, or \
         empty it yourself", .0.display()
    )]
    NotOurs(PathBuf),
    /// The store said no.
    #[error("{}: {source}", path.display())]
    Store {
        path: PathBuf,
        /// The error of the store.
        source: StoreError,
    },
}

/// Attaches the path an error is about.
pub(crate) fn about(path: &Path) -> impl Fn(StoreError) -> DataRootError {
    move |source| DataRootError::Store { path: path.to_owned(), source }
}

/// Attaches path and step to an error of the standard library.
pub(crate) fn about_io(
    what: &'static str,
    path: &Path,
) -> impl Fn(std::io::Error) -> DataRootError {
    move |error| {
        about(path)(match Errno::from_io_error(&error) {
            Some(errno) => StoreError::from_errno(what, errno),
            None => StoreError::Io { what, source: error },
        })
    }
}

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
    pub fn open(path: &Path) -> Result<Self, DataRootError> {
        let making = about_io("making the data directory", path);
        make_all(path, fs::DirBuilder::new().mode(0o700)).map_err(&making)?;
        let path = path.canonicalize().map_err(&making)?;
        check_not_nested(&path)?;
        let folder = path.join(HIDDEN);
        check_format(&path, &folder)?;
        let lock = lock_folder(&path, &path, &folder)?;
        make_private(&folder)?;
        let locks = [lock, lock_folder(&folder, &path, &folder)?];
        leave_note(&folder, &path);
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
    pub fn reset(path: &Path) -> Result<(), DataRootError> {
        if !path.exists() || is_empty(path)? {
            return Ok(());
        }
        let hidden = fs::symlink_metadata(path.join(HIDDEN));
        if !hidden.is_ok_and(|hidden| hidden.is_dir()) {
            return Err(DataRootError::NotOurs(path.to_owned()));
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
        match fs::remove_file(root.folder.join(REPLACING)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(about_io("ending a replacement of all data", &root.folder)(error))
            }
            _ => Ok(()),
        }
    }
}

fn is_empty(path: &Path) -> Result<bool, DataRootError> {
    let mut entries = fs::read_dir(path).map_err(about_io("looking into a directory", path))?;
    Ok(entries.next().is_none())
}

/// Refuses a data directory that lies in the data of an account of another one, or in that one's
/// own folder: two servers would rule the same files.
fn check_not_nested(path: &Path) -> Result<(), DataRootError> {
    for above in path.ancestors().skip(1) {
        let hidden = above.join(HIDDEN);
        let below = path.strip_prefix(above).ok().and_then(|rest| rest.iter().next());
        let is_data = |name| name == HIDDEN || hidden.join(ACCOUNTS).join(name).is_dir();
        if hidden.join(FORMAT_FILE).is_file() && below.is_some_and(is_data) {
            return Err(DataRootError::Nested { path: path.to_owned(), data: above.to_owned() });
        }
    }
    Ok(())
}

/// Refuses a data directory of another format.
fn check_format(path: &Path, folder: &Path) -> Result<(), DataRootError> {
    let format = folder.join(FORMAT_FILE);
    let found = match fs::read(&format) {
        Ok(bytes) => bytes,
        Err(_) if OldLayout::is_in(folder) => {
            return Err(DataRootError::OldLayout(OldLayout { data: path.to_owned() }));
        }
        Err(_) => return Ok(()),
    };
    let number = str::from_utf8(&found).ok().and_then(|text| text.trim().parse::<u32>().ok());
    match number {
        Some(FORMAT) => Ok(()),
        Some(found) => {
            Err(DataRootError::NewerFormat { path: path.to_owned(), found, known: FORMAT })
        }
        None => Err(DataRootError::DamagedFormat(format)),
    }
}

/// Makes a folder for the owner alone; an existing one is left as it is.
pub(crate) fn make_folder(path: &Path) -> Result<(), DataRootError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    let made = builder.create(path);
    made.map_err(about_io("making a state folder", path))
}

/// Makes a folder that is latchfs's own by its name: an existing one is closed to other users.
pub(crate) fn make_private(path: &Path) -> Result<(), DataRootError> {
    make_folder(path)?;
    let failed = about_io("making a state folder", path);
    let mode = fs::metadata(path).map_err(&failed)?.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(&failed)?;
    }
    Ok(())
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

    /// Makes what an account with one share has.
    fn furnish(root: &DataRoot, account: &str) {
        fs::create_dir_all(root.files_path(account).join("docs")).unwrap();
        fs::create_dir_all(root.state_path(account).join("shares")).unwrap();
    }

    #[test]
    fn a_reset_removes_every_account_and_leaves_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let root = DataRoot::open(&path).unwrap();
        for account in ["one", "two"] {
            furnish(&root, account);
        }
        fs::write(path.join("one/files/docs/a.txt"), "hello").unwrap();
        fs::write(path.join("notes"), "not ours").unwrap();
        let note = root.folder().join(REPLACING);
        std::os::unix::fs::symlink("reset of one", &note).unwrap();
        assert!(matches!(DataRoot::reset(&path), Err(DataRootError::Served(_))));
        drop(root);
        DataRoot::reset(&path).unwrap();
        assert!(fs::symlink_metadata(note).is_err());
        assert!(!path.join("one").exists() && !path.join("two").exists());
        assert!(path.join("notes").exists());
        let root = DataRoot::open(&path).unwrap();
        assert!(!root.state_path("one").exists());
    }

    #[test]
    fn a_directory_that_is_not_ours_is_not_reset() {
        let folder = tempfile::tempdir().unwrap();
        DataRoot::reset(&folder.path().join("missing")).unwrap();
        DataRoot::reset(folder.path()).unwrap();
        let precious = folder.path().join("docs");
        fs::create_dir(&precious).unwrap();
        assert!(matches!(DataRoot::reset(folder.path()), Err(DataRootError::NotOurs(_))));
        assert!(precious.exists());
        // A link of that name does not make it ours.
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join(HIDDEN)).unwrap();
        assert!(matches!(DataRoot::reset(folder.path()), Err(DataRootError::NotOurs(_))));
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
        fs::create_dir_all(old.path().join(HIDDEN).join(OldLayout::FOLDERS[0])).unwrap();
        let error = DataRoot::open(old.path()).unwrap_err().to_string();
        assert!(error.contains("made by latchfs 0.1") && error.contains("mkdir -p"), "{error}");
        assert!(!old.path().join(HIDDEN).join(FORMAT_FILE).exists());
    }

    #[test]
    fn a_data_directory_is_served_once_also_when_its_own_folder_was_removed() {
        let folder = tempfile::tempdir().unwrap();
        let root = DataRoot::open(folder.path()).unwrap();
        fs::remove_dir_all(root.folder()).unwrap();
        assert!(matches!(DataRoot::open(folder.path()), Err(DataRootError::Served(_))));
        assert!(!folder.path().join(HIDDEN).exists());
        drop(root);
        DataRoot::open(folder.path()).unwrap();
    }

    #[test]
    fn the_data_of_another_data_directory_is_no_data_directory() {
        let folder = tempfile::tempdir().unwrap();
        let root = DataRoot::open(folder.path()).unwrap();
        furnish(&root, "one");
        for inside in ["one", "one/files/docs/inner", ".latchfs/inner"] {
            let path = folder.path().join(inside);
            let refused = DataRoot::open(&path);
            assert!(matches!(refused, Err(DataRootError::Nested { .. })), "{inside}: {refused:?}");
            assert!(!path.join(HIDDEN).exists());
        }
        DataRoot::open(&folder.path().join("beside")).unwrap();
    }
}
