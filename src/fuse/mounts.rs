//! What is mounted where, and who uses it: read from `/proc`.
//!
//! The source of a latchfs mount says which share it is and, where there is one, where its
//! server's control socket is: `latchfs:<share>:<socket>`. It is the kernel's own record, so it is
//! there for every user and every environment, and gone with the mount.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::outside;

const PREFIX: &str = "latchfs:";

/// How long a mount may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// One line of the table of mounts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mounted {
    /// The mount point.
    pub path: PathBuf,
    /// What is mounted, as `df` shows it.
    pub source: OsString,
    /// The kind of file system.
    pub kind: String,
}

/// What the source of a latchfs mount says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The share.
    pub share: String,
    /// Its server's control socket.
    pub control: Option<PathBuf>,
}

impl Mounted {
    /// What it says, if it is one of ours.
    pub fn origin(&self) -> Option<Origin> {
        if self.kind != "fuse" && self.kind != "fuse.latchfs" {
            return None;
        }
        let rest = self.source.as_bytes().strip_prefix(PREFIX.as_bytes())?;
        let mut parts = rest.splitn(2, |byte| *byte == b':');
        let share = String::from_utf8(parts.next()?.to_vec()).ok()?;
        let control = parts.next().map(|path| PathBuf::from(OsStr::from_bytes(path)));
        Some(Origin { share, control })
    }
}

/// The source of a mount. A socket whose path `fusermount3` would misread (it splits options at
/// commas) is left out: it can still be named.
pub fn source(share: &str, control: Option<&Path>) -> String {
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

/// Whether the latchfs mount on `path` is there and answers; else what is wrong, in words.
pub fn check(path: &Path) -> Result<(), String> {
    let ours = |mount: &Mounted| mount.path == path && mount.origin().is_some();
    if !all().iter().any(ours) {
        return Err("it is no longer mounted".to_owned());
    }
    // The kernel keeps no copy of what statfs(2) says: each is a question to the server.
    match outside::ask(Command::new("stat").args(["-f", "--"]).arg(path), ANSWER_MAX) {
        Ok(Some(status)) if status.success() => Ok(()),
        Ok(Some(_)) => Err("it cannot be looked at".to_owned()),
        Ok(None) => Err(format!("it did not answer within {} s", ANSWER_MAX.as_secs())),
        Err(error) => Err(format!("stat cannot be run to look at it: {error}")),
    }
}

fn read_line(line: &[u8]) -> Option<Mounted> {
    let mut fields = line.split(|byte| *byte == b' ');
    let path = unescape(fields.nth(4)?).into();
    let mut rest = fields.skip_while(|field| *field != b"-").skip(1);
    let kind = String::from_utf8(rest.next()?.to_vec()).ok()?;
    Some(Mounted { path, source: unescape(rest.next()?), kind })
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
    let mut users = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if pid != std::process::id() && uses(&entry.path(), path) {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            users.push(format!("{} (pid {pid})", name.trim()));
        }
    }
    users
}

fn uses(process: &Path, path: &Path) -> bool {
    let below = |link: PathBuf| fs::read_link(link).is_ok_and(|target| target.starts_with(path));
    below(process.join("cwd"))
        || below(process.join("root"))
        || below(process.join("exe"))
        || fs::read_dir(process.join("fd"))
            .into_iter()
            .flatten()
            .flatten()
            .any(|fd| below(fd.path()))
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
        let origin = mount.origin().unwrap();
        assert_eq!(origin.share, "docs");
        assert_eq!(origin.control.as_deref(), Some(Path::new("/d d/c.sock")));
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
        assert_eq!(source("docs", Some(Path::new("/d/c.sock"))), "latchfs:docs:/d/c.sock");
        assert_eq!(source("docs", Some(Path::new("/d,x/c.sock"))), "latchfs:docs");
        assert_eq!(source("docs", None), "latchfs:docs");
    }
}
