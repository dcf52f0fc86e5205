//! The table of mounts, and the processes that use a mount: read from `/proc`.
//!
//! The source of a latchfs mount names its share and, if there is one, the control socket of its
//! server: `latchfs:[<account>/]<share>:<socket>`. The kernel keeps the source, so every process
//! can read it, and it goes with the mount.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::aside;
use crate::file::rules::name::split_account;

const PREFIX: &str = "latchfs:";

/// How long a mount may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// One line of the table of mounts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mounted {
    pub path: PathBuf,
    /// The source, as `df` shows it.
    pub source: OsString,
    /// The kind of file system.
    pub kind: String,
    /// The minor number of its device, by which the kernel names a FUSE connection.
    pub device: u32,
}

/// The position of a latchfs mount among other mounts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Among {
    /// The mount is not here any more.
    Gone,
    /// Nothing is mounted on top of it or below it.
    Alone,
    /// Another file system is mounted on top of it or below it, at this path.
    Under(PathBuf),
}

/// The position of the mount of `device` on `path`.
pub fn among(path: &Path, device: u32) -> Among {
    stands(&all(), path, device)
}

fn stands(all: &[Mounted], path: &Path, device: u32) -> Among {
    let Some(ours) = all.iter().position(|m| m.path == path && m.device == device) else {
        return Among::Gone;
    };
    let over = all.iter().enumerate().rfind(|(at, other)| {
        let on_top = *at > ours && other.path == path;
        on_top || other.path != path && other.path.starts_with(path)
    });
    over.map_or(Among::Alone, |(_, other)| Among::Under(other.path.clone()))
}

/// The parsed source of a latchfs mount.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The account of the share, if it is not the server's first.
    pub account: Option<String>,
    pub share: String,
    /// Its server's control socket.
    pub control: Option<PathBuf>,
}

impl Mounted {
    /// Parses a source; `None` if the mount is not a latchfs.
    pub fn origin(&self) -> Option<Origin> {
        if self.kind != "fuse" && self.kind != "fuse.latchfs" {
            return None;
        }
        let rest = self.source.as_bytes().strip_prefix(PREFIX.as_bytes())?;
        let mut parts = rest.splitn(2, |byte| *byte == b':');
        let name = String::from_utf8(parts.next()?.to_vec()).ok()?;
        let (account, share) = split_account(&name);
        let (account, share) = (account.map(str::to_owned), share.to_owned());
        let control = parts.next().map(|path| PathBuf::from(OsStr::from_bytes(path)));
        Some(Origin { account, share, control })
    }
}

/// The source of a mount. A socket path that `fusermount3` would misread (it splits options at
/// commas) is left out; commands then need `--control`.
pub fn source(account: Option<&str>, share: &str, control: Option<&Path>) -> String {
    let share = &match account {
        Some(account) => format!("{account}/{share}"),
        None => share.to_owned(),
    };
    match control.and_then(Path::to_str) {
        Some(path) if !path.contains([',', '\\']) => format!("{PREFIX}{share}:{path}"),
        _ => format!("{PREFIX}{share}"),
    }
}

/// All mounts this process sees, in the order they were made.
pub fn all() -> Vec<Mounted> {
    let table = fs::read("/proc/self/mountinfo").unwrap_or_default();
    table.split(|byte| *byte == b'\n').filter_map(read_line).collect()
}

/// The mount that `path`, absolute and without links, lies on.
pub fn of_path(path: &Path) -> Option<Mounted> {
    let over = all().into_iter().filter(|mount| path.starts_with(&mount.path));
    // The longest mount point; of several on one place the last, which hides the others.
    over.max_by_key(|mount| mount.path.as_os_str().len())
}

/// Checks that the latchfs mount on `path` is there and answers; otherwise says what is wrong.
pub fn check(path: &Path) -> Result<(), String> {
    let ours = |mount: &Mounted| mount.path == path && mount.origin().is_some();
    if !all().iter().any(ours) {
        return Err("it is no longer mounted".to_owned());
    }
    // The kernel keeps no copy of what statfs(2) says: each is a question to the server.
    match aside::ask_once(path, ANSWER_MAX, |path| rustix::fs::statfs(path)) {
        Ok(Some(Ok(_))) => Ok(()),
        Ok(Some(Err(errno))) => Err(format!("it cannot be looked at: {errno}")),
        Ok(None) => Err(format!("it did not answer within {} s", ANSWER_MAX.as_secs())),
        Err(error) => Err(format!("no thread can be had to look at it: {error}")),
    }
}

fn read_line(line: &[u8]) -> Option<Mounted> {
    let mut fields = line.split(|byte| *byte == b' ');
    let device = std::str::from_utf8(fields.nth(2)?).ok()?.split_once(':')?.1.parse().ok()?;
    let path = unescape(fields.nth(1)?).into();
    let mut rest = fields.skip_while(|field| *field != b"-").skip(1);
    let kind = String::from_utf8(rest.next()?.to_vec()).ok()?;
    Some(Mounted { path, source: unescape(rest.next()?), kind, device })
}

/// The kernel writes blanks and the like as a backslash and three octal digits.
fn unescape(text: &[u8]) -> OsString {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        if let (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) =
            (first, tail)
        {
            plain.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
            rest = after;
        } else {
            plain.push(*first);
            rest = tail;
        }
    }
    OsString::from_vec(plain)
}

/// Processes with a descriptor, program or working directory below a mount point.
pub fn users_of(path: &Path) -> Vec<String> {
    processes(|process| uses(process, path))
}

/// Processes with a descriptor below a mount point.
pub fn openers_of(path: &Path) -> Vec<String> {
    processes(|process| has_open(process, path))
}

/// Processes other than this one, by name and pid. `wanted` looks at their folders in `/proc`.
fn processes(wanted: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut users = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if pid != std::process::id() && wanted(&entry.path()) {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            users.push(format!("{} (pid {pid})", name.trim()));
        }
    }
    users
}

fn uses(process: &Path, path: &Path) -> bool {
    let links = ["cwd", "root", "exe"];
    links.iter().any(|link| leads_below(&process.join(link), path)) || has_open(process, path)
}

fn has_open(process: &Path, path: &Path) -> bool {
    let descriptors = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    descriptors.into_iter().any(|descriptor| leads_below(&descriptor.path(), path))
}

fn leads_below(link: &Path, path: &Path) -> bool {
    fs::read_link(link).is_ok_and(|target| target.starts_with(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_table_is_read_with_its_blanks() {
        let line =
            br"36 35 0:47 / /mnt/a\040b rw,nosuid shared:1 - fuse latchfs:docs:/d\040d/c.sock rw";
        let mount = read_line(line).unwrap();
        assert_eq!(mount.path, Path::new("/mnt/a b"));
        assert_eq!(mount.device, 47);
        let origin = mount.origin().unwrap();
        assert_eq!(origin.share, "docs");
        assert_eq!(origin.control.as_deref(), Some(Path::new("/d d/c.sock")));
    }

    #[test]
    fn a_mount_is_told_from_what_others_mounted_over_it() {
        let mount = |path: &str, device| Mounted {
            path: path.into(),
            source: "x".into(),
            kind: "fuse".into(),
            device,
        };
        let below = mount("/mnt/a", 1);
        let standing = |others: &[Mounted]| stands(others, Path::new("/mnt/a"), 1);
        assert_eq!(standing(&[mount("/mnt/a", 2)]), Among::Gone);
        assert_eq!(standing(&[mount("/mnt/a", 2), below.clone()]), Among::Alone);
        let beside = mount("/mnt/ab", 3);
        assert_eq!(standing(&[below.clone(), beside]), Among::Alone);
        let on_top = mount("/mnt/a", 3);
        assert_eq!(standing(&[below.clone(), on_top]), Among::Under("/mnt/a".into()));
        let inside = mount("/mnt/a/d", 3);
        assert_eq!(standing(&[below, inside]), Among::Under("/mnt/a/d".into()));
    }

    #[test]
    fn mounts_of_others_and_broken_lines_say_nothing() {
        let line = b"36 35 0:47 / /mnt rw - ext4 latchfs:docs rw";
        assert_eq!(read_line(line).unwrap().origin(), None);
        assert_eq!(read_line(b""), None);
        assert_eq!(read_line(b"36 35 0:47 / /mnt rw -"), None);
    }

    #[test]
    fn a_socket_that_would_be_misread_is_left_out_of_the_source() {
        assert_eq!(source(None, "docs", Some(Path::new("/d/c.sock"))), "latchfs:docs:/d/c.sock");
        assert_eq!(source(None, "docs", Some(Path::new("/d,x/c.sock"))), "latchfs:docs");
        assert_eq!(source(None, "docs", None), "latchfs:docs");
        assert_eq!(source(Some("second"), "docs", None), "latchfs:second/docs");
    }
}
