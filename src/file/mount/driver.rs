//! The kernel's requests, one method each: the arguments are unpacked and passed to the module that
//! answers.
//!
//! Decides only that names which are not UTF-8 are refused, since a share cannot hold them, and
//! that a request which panics ends alone.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, Errno, FileHandle, Filesystem, INodeNo,
    InitFlags, IoctlFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLock,
    ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use super::park::outlived;
use super::session::may_administer;
use super::state::State;
use super::{attrs, data, dirs, ioctl, locks, names, opens};

/// The caller of a request. `pid` is the calling *thread*, as the kernel names it.
#[derive(Clone, Copy, Debug)]
pub struct Requester {
    pub uid: u32,
    pub gid: u32,
    pub pid: u32,
}

impl From<&Request> for Requester {
    fn from(request: &Request) -> Self {
        Self { uid: request.uid(), gid: request.gid(), pid: request.pid() }
    }
}

/// The largest write the kernel sends at once.
const WRITE_MAX: u32 = 1 << 20;

/// The size of the kernel's background queue. Releases wait in it, so it must not fill up.
const BACKGROUND_MAX: u16 = 1024;

/// The stacking depth: the file system below may be stacked itself.
const STACK_DEPTH: u32 = 2;

/// The driver: a share behind a mount.
pub struct Driver(Arc<State>);

/// The name as text, or an answer that it cannot be.
macro_rules! text {
    ($name:expr, $reply:expr) => {
        match $name.to_str() {
            Some(name) => name,
            None => return $reply.error(Errno::EILSEQ),
        }
    };
}

impl Driver {
    /// A driver that answers the kernel for this mount.
    pub fn new(state: Arc<State>) -> Self {
        Self(state)
    }

    /// Serves a request. One that panics drops its reply, which answers `EIO`, and the thread goes
    /// on with the next.
    fn serve(&self, request: impl FnOnce(&Arc<State>)) {
        outlived(|| request(&self.0));
    }

    fn ask_kernel(&self, config: &mut KernelConfig) {
        let mut wanted = InitFlags::FUSE_ATOMIC_O_TRUNC
            | InitFlags::FUSE_DO_READDIRPLUS
            | InitFlags::FUSE_READDIRPLUS_AUTO
            | InitFlags::FUSE_PARALLEL_DIROPS
            | InitFlags::FUSE_POSIX_LOCKS
            | InitFlags::FUSE_HAS_IOCTL_DIR
            | InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP;
        if self.0.options.flock_as_share_mode {
            wanted |= InitFlags::FUSE_FLOCK_LOCKS;
        }
        let can = config.capabilities();
        let passthrough = InitFlags::FUSE_PASSTHROUGH | InitFlags::FUSE_HANDLE_KILLPRIV_V2;
        if self.0.options.passthrough
            && may_administer()
            && can.contains(passthrough)
            && config.set_max_stack_depth(STACK_DEPTH).is_ok()
        {
            wanted |= passthrough;
            self.0.passes.store(true, Ordering::Relaxed);
        }
        let passes = wanted.contains(passthrough);
        log::info!("data path: {}", if passes { "Passthrough" } else { "Direct" });
        let _ = config.add_capabilities(wanted & can);
        let _ = config.set_max_write(WRITE_MAX);
        let _ = config.set_max_background(BACKGROUND_MAX);
    }
}

impl Filesystem for Driver {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        self.ask_kernel(config);
        Ok(())
    }

    fn destroy(&mut self) {
        self.0.park.stop();
        self.0.pool.stop();
        opens::end_all(&self.0);
        self.0.end();
    }

    fn lookup(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.serve(|state| names::lookup(state, req.into(), (parent.0, text!(name, reply)), reply));
    }

    fn forget(&self, _: &Request, ino: INodeNo, nlookup: u64) {
        self.serve(|state| state.nodes.forget(ino.0, nlookup));
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.serve(|state| attrs::get(state, ino.0, reply));
    }

    fn setattr(
        &self,
        req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let changes = attrs::Changes { mode, uid, gid, size, atime, mtime };
        self.serve(|state| attrs::set(state, req.into(), ino.0, fh.map(|fh| fh.0), changes, reply));
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        self.serve(|state| names::readlink(state, ino.0, reply));
    }

    fn mknod(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _rdev: u32,
        reply: ReplyEntry,
    ) {
        self.serve(|state| {
            names::mknod(state, req.into(), (parent.0, text!(name, reply)), mode, reply);
        });
    }

    fn mkdir(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        self.serve(|state| {
            names::mkdir(state, req.into(), (parent.0, text!(name, reply)), mode, reply);
        });
    }

    fn unlink(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.serve(|state| {
            names::remove(state, req.into(), (parent.0, text!(name, reply)), false, reply);
        });
    }

    fn rmdir(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.serve(|state| {
            names::remove(state, req.into(), (parent.0, text!(name, reply)), true, reply);
        });
    }

    fn symlink(
        &self,
        req: &Request,
        parent: INodeNo,
        link_name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let at = (parent.0, text!(link_name, reply));
        self.serve(|state| {
            names::symlink(state, req.into(), at, text!(target.as_os_str(), reply), reply);
        });
    }

    fn rename(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (from, to) = ((parent.0, text!(name, reply)), (newparent.0, text!(newname, reply)));
        self.serve(|state| names::rename(state, req.into(), from, to, flags, reply));
    }

    fn link(
        &self,
        req: &Request,
        ino: INodeNo,
        newparent: INodeNo,
        newname: &OsStr,
        reply: ReplyEntry,
    ) {
        self.serve(|state| {
            names::link(state, req.into(), ino.0, (newparent.0, text!(newname, reply)), reply);
        });
    }

    fn open(&self, req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        self.serve(|state| opens::open(state, req.into(), ino.0, flags.0, reply));
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let at = (parent.0, text!(name, reply));
        self.serve(|state| opens::create(state, req.into(), at, (mode, flags), reply));
    }

    fn read(
        &self,
        _: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.serve(|state| {
            data::read(state, fh.0, (offset, size), lock_owner.map(|owner| owner.0), reply);
        });
    }

    fn write(
        &self,
        req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        flags: OpenFlags,
        lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let offset = (flags.0 & libc::O_APPEND == 0).then_some(offset);
        let lock_owner = lock_owner.map(|owner| owner.0);
        self.serve(|state| data::write(state, req.into(), fh.0, (offset, data), lock_owner, reply));
    }

    fn flush(
        &self,
        _: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        self.serve(|state| opens::flush(state, fh.0, lock_owner.0, reply));
    }

    fn release(
        &self,
        _: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.serve(|state| opens::release(state, fh.0, reply));
    }

    fn fsync(&self, _: &Request, _ino: INodeNo, fh: FileHandle, datasync: bool, reply: ReplyEmpty) {
        self.serve(|state| data::sync(state, fh.0, datasync, reply));
    }

    fn opendir(&self, req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        self.serve(|state| dirs::open(state, req.into(), ino.0, reply));
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        reply: ReplyDirectory,
    ) {
        self.serve(|state| dirs::read(state, ino.0, fh.0, offset, reply));
    }

    fn readdirplus(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        reply: ReplyDirectoryPlus,
    ) {
        self.serve(|state| dirs::read_plus(state, ino.0, fh.0, offset, reply));
    }

    fn releasedir(
        &self,
        _: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.serve(|state| dirs::release(state, fh.0, reply));
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, fh: FileHandle, _: bool, reply: ReplyEmpty) {
        self.serve(|state| attrs::sync_dir(state, fh.0, reply));
    }

    fn statfs(&self, _: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        self.serve(|state| attrs::statfs(state, reply));
    }

    fn setxattr(
        &self,
        _: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        self.serve(|state| {
            attrs::set_xattr(state, ino.0, (text!(name, reply), value), flags, reply);
        });
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        self.serve(|state| attrs::get_xattr(state, ino.0, text!(name, reply), size, reply));
    }

    fn listxattr(&self, _: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        self.serve(|state| attrs::list_xattr(state, ino.0, size, reply));
    }

    fn removexattr(&self, _: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.serve(|state| attrs::remove_xattr(state, ino.0, text!(name, reply), reply));
    }

    fn access(&self, _: &Request, ino: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        self.serve(|state| attrs::access(state, ino.0, mask, reply));
    }

    fn getlk(
        &self,
        _: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        lock_owner: LockOwner,
        start: u64,
        end: u64,
        typ: i32,
        pid: u32,
        reply: ReplyLock,
    ) {
        let wanted = locks::Wanted { owner: lock_owner.0, start, end, kind: typ, pid };
        self.serve(|state| locks::get(state, fh.0, wanted, reply));
    }

    fn setlk(
        &self,
        req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        lock_owner: LockOwner,
        start: u64,
        end: u64,
        typ: i32,
        pid: u32,
        sleep: bool,
        reply: ReplyEmpty,
    ) {
        let wanted = locks::Wanted { owner: lock_owner.0, start, end, kind: typ, pid };
        self.serve(|state| locks::set(state, req.into(), fh.0, wanted, sleep, reply));
    }

    fn ioctl(
        &self,
        req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: IoctlFlags,
        cmd: u32,
        in_data: &[u8],
        _out_size: u32,
        reply: ReplyIoctl,
    ) {
        self.serve(|state| ioctl::ioctl(state, req.into(), fh.0, (cmd, in_data), reply));
    }

    fn fallocate(
        &self,
        _: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.serve(|state| data::allocate(state, fh.0, (offset, length), mode, reply));
    }

    fn lseek(
        &self,
        _: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        self.serve(|state| data::seek(state, fh.0, offset, whence, reply));
    }

    fn copy_file_range(
        &self,
        _: &Request,
        _ino_in: INodeNo,
        fh_in: FileHandle,
        offset_in: u64,
        _ino_out: INodeNo,
        fh_out: FileHandle,
        offset_out: u64,
        len: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        self.serve(|state| {
            data::copy(state, (fh_in.0, offset_in), (fh_out.0, offset_out), len, reply);
        });
    }
}
