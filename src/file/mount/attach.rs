//! Mounts a FUSE device on a directory and unmounts it: directly where the process has the
//! privilege, otherwise through `fusermount3`.
//!
//! The FUSE library is not used for this: it unmounts a path a second time after an unmount, and
//! could take away another file system that was mounted there since.
//!
//! A mount whose server died answers `ENOTCONN` to everything until it is taken away. The mount
//! which takes its place is put below it first, where the kernel can do that (Linux 6.5, and the
//! privilege to mount): in a moment without a mount a program could write into the bare directory,
//! beside the share.

use std::ffi::CString;
use std::fs;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{CWD, Dir, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, OpenTreeFlags,
    UnmountFlags,
};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use super::mounts::{self, openers_of};
use super::session::{MountError, is_bounded_root};
use crate::sync::front_end;

const DEVICE: &str = "/dev/fuse";
const HELPER: &str = "fusermount3";
const SUBTYPE: &str = "latchfs";

/// The variable that tells the helper on which descriptor to pass the device.
const HELPER_SOCKET: &str = "_FUSE_COMMFD";

/// A mount to be made.
#[derive(Debug)]
pub struct Attachment {
    /// The source that the table of mounts shows.
    pub source: String,
    /// The mount is read-only.
    pub read_only: bool,
    /// Other users may enter; the kernel then checks permission bits.
    pub allow_other: bool,
}

impl Attachment {
    /// Mounts on a directory; returns the device from which requests are read.
    pub fn attach(&self, path: &Path) -> Result<OwnedFd, MountError> {
        match self.by_ourselves(path) {
            Err(Errno::PERM | Errno::ACCESS) if is_bounded_root() => Err(MountError::NoRight),
            Err(Errno::PERM | Errno::ACCESS) => self.by_helper(path),
            Err(Errno::NOENT | Errno::NXIO | Errno::NODEV) => {
                Err(MountError::NoFuse(Errno::NOENT.into()))
            }
            Err(errno) => Err(MountError::System { path: path.to_owned(), source: errno.into() }),
            Ok(device) => Ok(device),
        }
    }

    /// Mounts below what is mounted on a directory; nothing of it is seen until that is unmounted.
    pub fn attach_beneath(&self, path: &Path) -> rustix::io::Result<OwnedFd> {
        let device = open_device()?;
        let context = rustix::mount::fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
        rustix::mount::fsconfig_set_string(&context, "source", self.source.as_str())?;
        rustix::mount::fsconfig_set_string(&context, "subtype", SUBTYPE)?;
        // The permission bits are those that the server tells.
        for (key, value) in connection_options(&device, libc::S_IFDIR) {
            rustix::mount::fsconfig_set_string(&context, key, value)?;
        }
        for option in self.access_options() {
            rustix::mount::fsconfig_set_flag(&context, *option)?;
        }
        let mut flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        if self.read_only {
            rustix::mount::fsconfig_set_flag(&context, "ro")?;
            flags |= MountAttrFlags::MOUNT_ATTR_RDONLY;
        }
        rustix::mount::fsconfig_create(&context)?;
        let mount = rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags)?;
        let how = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_BENEATH;
        rustix::mount::move_mount(mount, "", CWD, path, how)?;
        Ok(device)
    }

    fn by_ourselves(&self, path: &Path) -> rustix::io::Result<OwnedFd> {
        let device = open_device()?;
        let root_mode = fs::metadata(path).map_or(libc::S_IFDIR, |meta| meta.mode());
        let connection = connection_options(&device, root_mode);
        let mut data: Vec<_> =
            connection.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        data.extend(self.access_options().iter().map(ToString::to_string));
        let data = CString::new(data.join(",")).map_err(|_| Errno::INVAL)?;
        let mut flags = MountFlags::NOSUID | MountFlags::NODEV;
        if self.read_only {
            flags |= MountFlags::RDONLY;
        }
        let kind = format!("fuse.{SUBTYPE}");
        rustix::mount::mount(self.source.as_str(), path, kind, flags, data.as_c_str())?;
        Ok(device)
    }

    fn access_options(&self) -> &'static [&'static str] {
        if self.allow_other { &["allow_other", "default_permissions"] } else { &[] }
    }

    fn by_helper(&self, path: &Path) -> Result<OwnedFd, MountError> {
        front_end::assert_may_block("the helper that mounts");
        let system = |source| MountError::System { path: path.to_owned(), source };
        let (ours, theirs) = UnixStream::pair().map_err(system)?;
        let (name, kind) = (format!("fsname={}", self.source), format!("subtype={SUBTYPE}"));
        let mut options = vec![name.as_str(), kind.as_str(), "nosuid", "nodev"];
        options.push(if self.read_only { "ro" } else { "rw" });
        options.extend(self.access_options());
        let helper = Command::new(HELPER)
            .args(["-o", &options.join(","), "--"])
            .arg(path)
            // Its standard input, as the one descriptor that needs no care to be handed down.
            .env(HELPER_SOCKET, "0")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(MountError::NoHelper)?;
        let device = receive(&ours);
        let said = helper.wait_with_output().map_err(system)?.stderr;
        match device {
            Ok(Some(device)) => Ok(device),
            Ok(None) => Err(MountError::Helper(one_line(&said))),
            Err(errno) => Err(system(errno.into())),
        }
    }
}

/// The options that tie a mount to its device and its owner, of a root directory with that mode.
fn connection_options(device: &OwnedFd, root_mode: u32) -> [(&'static str, String); 4] {
    [
        ("fd", device.as_raw_fd().to_string()),
        ("rootmode", format!("{root_mode:o}")),
        ("user_id", rustix::process::getuid().to_string()),
        ("group_id", rustix::process::getgid().to_string()),
    ]
}

fn open_device() -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
}

/// Receives a descriptor through a socket; `None` if the other end closes without sending one.
fn receive(socket: &UnixStream) -> rustix::io::Result<Option<OwnedFd>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut handed = RecvAncillaryBuffer::new(&mut space);
    let bytes = &mut [IoSliceMut::new(&mut byte)];
    rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(socket, bytes, &mut handed, RecvFlags::CMSG_CLOEXEC)
    })?;
    let descriptors = handed.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    Ok(descriptors.flatten().next())
}

/// Ends the FUSE connection of that device: programs that wait on the mount, and those that come
/// later, get an error, and the workers end. For a mount that other mount namespaces still have.
pub fn abort(device: u32) -> io::Result<()> {
    match fs::write(format!("/sys/fs/fuse/connections/{device}/abort"), "1") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(abort_unmounted(device)?),
        done => done,
    }
}

/// Aborts the connection where the control file system of FUSE is not mounted: through a detached
/// mount of it.
fn abort_unmounted(device: u32) -> rustix::io::Result<()> {
    let context = rustix::mount::fsopen("fusectl", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(&context)?;
    let flags = FsMountFlags::FSMOUNT_CLOEXEC;
    let control = rustix::mount::fsmount(&context, flags, MountAttrFlags::empty())?;
    let path = format!("{device}/abort");
    let abort = rustix::fs::openat(control, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(abort, b"1").map(drop)
}

/// How a mount is taken away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detach {
    /// Only if no program uses it.
    Unused,
    /// At once; programs that use it keep their descriptors.
    Lazily,
}

/// Unmounts a directory; `EBUSY` if the mount is in use.
pub fn detach(path: &Path, how: Detach) -> io::Result<()> {
    let flags = match how {
        Detach::Unused => UnmountFlags::empty(),
        Detach::Lazily => UnmountFlags::DETACH,
    };
    match rustix::mount::unmount(path, flags) {
        Err(Errno::PERM) => detach_by_helper(path, how),
        done => Ok(done?),
    }
}

/// Unmounts through the helper, and maps its error text to an errno.
fn detach_by_helper(path: &Path, how: Detach) -> io::Result<()> {
    front_end::assert_may_block("the helper that unmounts");
    let flags = if how == Detach::Lazily { "-uz" } else { "-u" };
    let helper = Command::new(HELPER)
        .args([flags, "--"])
        .arg(path)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()?;
    if helper.status.success() {
        return Ok(());
    }
    let said = one_line(&helper.stderr);
    if said.contains("busy") {
        return Err(Errno::BUSY.into());
    }
    if said.contains("not found in") || said.contains("Invalid argument") {
        return Err(Errno::INVAL.into());
    }
    Err(io::Error::other(said))
}

fn one_line(said: &[u8]) -> String {
    String::from_utf8_lossy(said).lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

/// Whether a dead mount is there. It has to be the only one: one that something else is mounted
/// below is refused.
pub fn is_dead(path: &Path) -> Result<bool, MountError> {
    let dead = fs::metadata(path).is_err_and(|error| error.raw_os_error() == Some(libc::ENOTCONN));
    if !dead {
        return Ok(false);
    }
    let openers = openers_of(path);
    if !openers.is_empty() {
        log::warn!(
            "{}: {} still hold descriptors of the dead mount and can write to its files",
            path.display(),
            openers.join(", ")
        );
    }
    let below = mounts::all().into_iter().map(|mount| mount.path);
    let mut below = below.filter(|other| other != path && other.starts_with(path));
    match below.next() {
        Some(by) => Err(MountError::Covered { path: path.to_owned(), by }),
        None => Ok(true),
    }
}

/// Takes a dead mount away, if there is one.
pub fn clear_dead(path: &Path) -> Result<(), MountError> {
    if is_dead(path)? {
        take_away(path)?;
    }
    Ok(())
}

/// Mounts in the place of the dead mount on `path`, which has no links in it. `None` where that
/// cannot be done without a moment in which nothing is mounted; the dead mount is gone then.
pub fn replace(path: &Path, attachment: &Attachment) -> Result<Option<OwnedFd>, MountError> {
    let only = mounts::all().iter().filter(|mount| mount.path == path).count() == 1;
    let below = if only { beneath(path, attachment)? } else { None };
    take_away(path)?;
    Ok(below)
}

/// Mounts below the dead mount; `None` if that cannot be done.
fn beneath(path: &Path, attachment: &Attachment) -> Result<Option<OwnedFd>, MountError> {
    match has_entries(path) {
        Ok(false) => {}
        Ok(true) => return Err(MountError::NotEmpty(path.to_owned())),
        Err(errno) => {
            log::debug!("{}: the directory below is not seen: {errno}", path.display());
            return Ok(None);
        }
    }
    let mounted = attachment.attach_beneath(path);
    let failed = |errno| log::debug!("{}: mounting below: {errno}", path.display());
    Ok(mounted.map_err(failed).ok())
}

/// Whether the directory that a mount hides has entries: seen through a copy of the tree above it
/// that has no mounts in it.
fn has_entries(path: &Path) -> rustix::io::Result<bool> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(false) };
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = rustix::mount::open_tree(CWD, parent, flags)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let directory = rustix::fs::openat(tree, name, flags, Mode::empty())?;
    for entry in Dir::new(directory)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(true);
        }
    }
    Ok(false)
}

fn take_away(path: &Path) -> Result<(), MountError> {
    let system = |source| MountError::System { path: path.to_owned(), source };
    detach(path, Detach::Lazily).map_err(system)
}
