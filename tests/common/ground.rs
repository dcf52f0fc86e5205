//! File systems of their own for what a test stands on: small ones, such without extended
//! attributes, such that turn read-only. Only root makes them.

use std::ffi::CStr;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};

use super::served::wait_for;

/// A mounted file system. Unmounted when dropped.
pub struct Ground {
    folder: tempfile::TempDir,
    /// Directories that are mounted on themselves.
    bound: Vec<PathBuf>,
}

impl Ground {
    /// A file system of that kind, `tmpfs` or `ramfs`.
    pub fn new(kind: &str, options: &CStr) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        rustix::mount::mount(kind, folder.path(), kind, MountFlags::empty(), options)
            .expect("root may mount");
        // A server that binds a directory here must not see it elsewhere too.
        let private = MountPropagationFlags::PRIVATE;
        rustix::mount::mount_change(folder.path(), private).expect("root may do that too");
        Self { folder, bound: Vec::new() }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Mounts a directory of it on itself, so that it can be made read-only alone.
    pub fn bind(&mut self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(&path).expect("a directory");
        rustix::mount::mount_bind(&path, &path).expect("root may bind");
        self.bound.push(path.clone());
        path
    }

    /// Lets nothing be written through a bound directory any more, or again, as soon as nobody
    /// has a file there open for writing: the mount gives up its own a moment after `close(2)`.
    pub fn set_read_only(&self, name: &str, read_only: bool) {
        let path = self.path().join(name);
        let how = if read_only { MountFlags::RDONLY } else { MountFlags::empty() };
        wait_for("nobody to write", || {
            rustix::mount::mount_remount(&path, MountFlags::BIND | how, c"").ok()
        });
    }

    /// Takes all the room there is left; given back with the file.
    pub fn fill(&self) -> PathBuf {
        let path = self.path().join("filler");
        let mut filler = fs::File::create(&path).expect("a file");
        let full = std::io::copy(&mut std::io::repeat(0), &mut filler).expect_err("it is small");
        assert_eq!(full.raw_os_error(), Some(libc::ENOSPC));
        path
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        for path in self.bound.iter().map(PathBuf::as_path).chain([self.path()]) {
            // What is still in use goes when it is let go.
            let _ = rustix::mount::unmount(path, UnmountFlags::DETACH);
        }
    }
}
