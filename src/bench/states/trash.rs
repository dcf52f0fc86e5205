//! A folder whose entries are removed in the background: what takes long to remove is moved there.
//!
//! Decides that a stop does not wait for a removal: the next start goes on with it.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use crate::disk::error::{StoreError, failing};
use crate::disk::tree;

/// The folder, and the thread that empties it. Dropping it ends the thread.
#[derive(Debug)]
pub struct Trash {
    folder: PathBuf,
    next: AtomicU64,
    stop: Arc<AtomicBool>,
    /// Takes the names of what is to be removed.
    bin: Option<Sender<String>>,
    thread: Option<JoinHandle<()>>,
}

/// A folder in the trash. It is removed after the value is dropped.
#[derive(Debug)]
pub struct Scrap {
    path: PathBuf,
    name: String,
    bin: Option<Sender<String>>,
}

impl Scrap {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scrap {
    fn drop(&mut self) {
        if let Some(bin) = &self.bin {
            // If the thread has ended, the next start removes it.
            let _ = bin.send(std::mem::take(&mut self.name));
        }
    }
}

impl Trash {
    /// Starts to remove what an earlier process left in `folder`.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let left = tree::names(folder)?;
        let number = |name: &String| name.parse::<u64>().ok();
        let next = left.iter().filter_map(number).max().map_or(1, |last| last.saturating_add(1));
        let (bin, thrown) = channel::<String>();
        let stop = Arc::new(AtomicBool::new(false));
        let (at, stopping) = (folder.to_owned(), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("latchfs-trash".to_owned())
            .spawn(move || {
                for name in left.into_iter().chain(thrown) {
                    remove(&at, &name, &stopping);
                }
            })
            .map_err(failing("starting a thread"))?;
        let (folder, next) = (folder.to_owned(), AtomicU64::new(next));
        Ok(Self { folder, next, stop, bin: Some(bin), thread: Some(thread) })
    }

    /// A new folder in it.
    pub fn scrap(&self) -> Result<Scrap, StoreError> {
        let name = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let path = self.folder.join(&name);
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&path).map_err(failing("making a folder for replaced data"))?;
        Ok(Scrap { path, name, bin: self.bin.clone() })
    }
}

impl Drop for Trash {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.bin.take());
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            log::error!("the thread that removes replaced data panicked");
        }
    }
}

fn remove(folder: &Path, name: &str, stop: &AtomicBool) {
    let removed = tree::open_root(folder)
        .and_then(|dir| tree::remove_until(dir, name, || stop.load(Ordering::Relaxed)));
    if let Err(error) = removed {
        let path = folder.join(name);
        log::warn!("{}: replaced data stays until the next start: {error}", path.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::{Duration, Instant};

    fn wait_until(done: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(30);
        while !done() {
            assert!(Instant::now() < end, "it was not removed");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn what_is_in_the_trash_goes_in_the_background_also_what_an_earlier_process_left() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("trash");
        fs::create_dir_all(folder.join("7/a/b")).unwrap();
        fs::write(folder.join("7/a/b/c"), "x").unwrap();
        let trash = Trash::open(&folder).unwrap();
        wait_until(|| tree::names(&folder).unwrap().is_empty());
        let [one, other] = [trash.scrap().unwrap(), trash.scrap().unwrap()];
        assert_eq!(one.path(), folder.join("8"));
        fs::write(one.path().join("file"), "x").unwrap();
        drop(other);
        wait_until(|| !folder.join("9").exists());
        assert!(one.path().join("file").exists(), "it is in use");
        drop(one);
        wait_until(|| tree::names(&folder).unwrap().is_empty());
    }
}
