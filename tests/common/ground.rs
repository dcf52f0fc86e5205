//! File systems of their own for what a test stands on: small ones, such without extended
//! attributes, such that turn read-only. Only root makes them.

use std::ffi::CStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};

use super::need;
use super::served::wait_for;

/// The size of a file system in an image.
const IMAGE_BYTES: u64 = 64 << 20;

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

    /// A file system of that kind (`ext4`, `ext2`) in an image of its own; none if this machine
    /// cannot make one.
    #[track_caller]
    pub fn image(kind: &str) -> Option<Self> {
        let maker = format!("mkfs.{kind}");
        if !need::root() || !["mount", &maker].into_iter().all(need::client) {
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let image = tempfile::NamedTempFile::new().expect("a temporary file");
        image.as_file().set_len(IMAGE_BYTES).expect("a sparse file");
        succeeds(Command::new(maker).arg("-q").arg(image.path()));
        // The loop device keeps the image, whose name goes here.
        let how = ["-o", "loop", "-t", kind];
        succeeds(Command::new("mount").args(how).arg(image.path()).arg(folder.path()));
        Some(Self { folder, bound: Vec::new() })
    }

    /// Lets every change of the file system wait until the guard is gone.
    pub fn freeze(&self) -> Frozen<'_> {
        succeeds(Command::new("fsfreeze").arg("--freeze").arg(self.path()));
        Frozen(self)
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

/// A file system on which changes wait.
pub struct Frozen<'a>(&'a Ground);

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        succeeds(Command::new("fsfreeze").arg("--unfreeze").arg(self.0.path()));
    }
}

fn succeeds(command: &mut Command) {
    let done = command.output().expect("it can be started");
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}

impl Drop for Ground {
    fn drop(&mut self) {
        for path in self.bound.iter().map(PathBuf::as_path).chain([self.path()]) {
            // What is still in use goes when it is let go.
            let _ = rustix::mount::unmount(path, UnmountFlags::DETACH);
        }
    }
}
