//! Attaching a FUSE device to a directory and taking it away again: by ourselves where we may, else
//! through `fusermount3`, which may for us.
//!
//! The FUSE library could do it too, but it unmounts once more what is unmounted already, and
//! would hit whatever is mounted there by then.

use std::ffi::CString;
use std::fs;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use super::session::MountError;

const DEVICE: &str = "/dev/fuse";
const HELPER: &str = "fusermount3";
const SUBTYPE: &str = "latchfs";

/// Tells the helper on which descriptor it hands the device over.
const HELPER_SOCKET: &str = "_FUSE_COMMFD";

/// What is to be attached.
#[derive(Debug)]
pub struct Attachment {
    /// Shown as what is mounted.
    pub source: String,
    /// Nothing can be changed.
    pub read_only: bool,
    /// Other users may enter; the kernel then checks permission bits.
    pub allow_other: bool,
}

impl Attachment {
    /// Mounts on a directory; the device on which the kernel asks.
    pub fn attach(&self, path: &Path) -> Result<OwnedFd, MountError> {
        match self.by_ourselves(path) {
            Err(Errno::PERM | Errno::ACCESS) => self.by_helper(path),
            Err(Errno::NOENT | Errno::NXIO | Errno::NODEV) => {
                Err(MountError::NoFuse(Errno::NOENT.into()))
            }
            Err(errno) => Err(MountError::System { path: path.to_owned(), source: errno.into() }),
            Ok(device) => Ok(device),
        }
    }

    fn by_ourselves(&self, path: &Path) -> rustix::io::Result<OwnedFd> {
        let device = rustix::fs::open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let root_mode = fs::metadata(path).map_or(libc::S_IFDIR, |meta| meta.mode());
        let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
        let mut data = format!(
            "fd={},rootmode={root_mode:o},user_id={uid},group_id={gid}",
            device.as_raw_fd()
        );
        for option in self.access_options() {
            data = data + "," + option;
        }
        let data = CString::new(data).map_err(|_| Errno::INVAL)?;
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

/// The descriptor that comes through a socket; none if the other end closes without one.
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

/// How a mount is taken away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detach {
    /// Only if nobody uses it.
    Unused,
    /// At once; who uses it goes on until it closes.
    Lazily,
}

/// Takes the mount on a directory away; `EBUSY` if it is in use.
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

/// The helper says in words what went wrong.
fn detach_by_helper(path: &Path, how: Detach) -> io::Result<()> {
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
