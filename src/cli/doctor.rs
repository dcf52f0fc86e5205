//! `latchfs doctor`: what this machine lacks, and what to do about it. Asks no server.
//!
//! Decides what is essential: what a mount and the data directory cannot do without. The rest
//! costs speed or an option, and is said.

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use rustix::fs::XattrFlags;
use rustix::fs::inotify::{self, CreateFlags};
use serde::Serialize;

use super::EXIT_DIFFERENT;
use super::out::{Output, Paint};
use super::serve::DATA_DIR;
use crate::fuse::may_administer;

/// The first kernel with FUSE passthrough.
const PASSTHROUGH_SINCE: (u32, u32) = (6, 9);

/// Below this many directories that can be watched, large trees are read more often.
const WATCHES_MIN: u64 = 8192;

/// Say what this machine lacks
///
/// What a mount and the data cannot do without is missing or fine; the rest costs speed or an
/// option. Exits 1 if something is missing. No server is asked.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs doctor --data /srv/latchfs")]
pub struct Doctor {
    /// Where the shares are to be kept
    #[arg(long, value_name = "DIR", default_value = DATA_DIR, env = "LATCHFS_DATA")]
    data: PathBuf,

    #[command(flatten)]
    output: Output,
}

/// How it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    Fine,
    /// It could be better.
    Lacking,
    /// It will not do.
    Missing,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    what: &'static str,
    verdict: Verdict,
    finding: String,
    /// What to do.
    cure: Option<&'static str>,
}

impl Check {
    fn fine(what: &'static str, finding: impl Into<String>) -> Self {
        Self { what, verdict: Verdict::Fine, finding: finding.into(), cure: None }
    }

    fn lacking(what: &'static str, finding: impl Into<String>, cure: &'static str) -> Self {
        Self { what, verdict: Verdict::Lacking, finding: finding.into(), cure: Some(cure) }
    }

    fn missing(what: &'static str, finding: impl Into<String>, cure: &'static str) -> Self {
        Self { what, verdict: Verdict::Missing, finding: finding.into(), cure: Some(cure) }
    }
}

impl Doctor {
    /// Says it.
    pub fn run(&self) -> Result<ExitCode> {
        let checks = [
            fuse_device(),
            helper(),
            allow_other(),
            passthrough(),
            data_directory(&self.data),
            watches(),
        ];
        let missing = checks.iter().any(|check| check.verdict == Verdict::Missing);
        self.output.show(&checks, || words(&checks, Paint::of(&io::stdout())))?;
        Ok(if missing { ExitCode::from(EXIT_DIFFERENT) } else { ExitCode::SUCCESS })
    }
}

fn words(checks: &[Check], paint: Paint) -> String {
    let mut lines = Vec::new();
    for Check { what, verdict, finding, cure } in checks {
        let verdict = match verdict {
            Verdict::Fine => paint.good("fine   "),
            Verdict::Lacking => paint.poor("lacking"),
            Verdict::Missing => paint.bad("missing"),
        };
        lines.push(format!("{verdict}  {}: {finding}\n", paint.bold(what)));
        lines.extend(cure.map(|cure| format!("         {cure}\n")));
    }
    lines.concat()
}

fn fuse_device() -> Check {
    const WHAT: &str = "/dev/fuse";
    match File::options().read(true).write(true).open(WHAT) {
        Ok(_) => Check::fine(WHAT, "can be opened"),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Check::missing(
            WHAT,
            error.to_string(),
            "let this user open it (chmod 666 /dev/fuse), run as root, or serve --no-mount",
        ),
        Err(error) => Check::missing(
            WHAT,
            error.to_string(),
            "load the module (modprobe fuse), pass it into the container (--device /dev/fuse), or \
             serve --no-mount",
        ),
    }
}

fn helper() -> Check {
    const WHAT: &str = "fusermount3";
    if may_administer() {
        return Check::fine(WHAT, "not needed: this process may mount by itself");
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|dir| dir.join(WHAT)).find(|path| path.is_file());
    match found {
        Some(path) => Check::fine(WHAT, path.display().to_string()),
        None => Check::missing(
            WHAT,
            "not on the PATH, and needed to mount without root",
            "install fuse3, or run as root",
        ),
    }
}

fn allow_other() -> Check {
    const WHAT: &str = "user_allow_other";
    if may_administer() {
        return Check::fine(WHAT, "not needed: root may let other users in");
    }
    let conf = fs::read_to_string("/etc/fuse.conf").unwrap_or_default();
    if conf.lines().any(|line| line.trim() == WHAT) {
        return Check::fine(WHAT, "set in /etc/fuse.conf");
    }
    Check::lacking(
        WHAT,
        "not set: --allow-other will be refused",
        "add the line user_allow_other to /etc/fuse.conf",
    )
}

fn passthrough() -> Check {
    const WHAT: &str = "kernel passthrough";
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    if version(release) < Some(PASSTHROUGH_SINCE) {
        return Check::lacking(
            WHAT,
            format!("Linux {release} has none: reads and writes go through latchfs"),
            "a kernel of 6.9 or newer makes them as fast as the disk",
        );
    }
    if !may_administer() {
        return Check::lacking(
            WHAT,
            "not without root: reads and writes go through latchfs",
            "run as root for the speed of the disk",
        );
    }
    Check::fine(WHAT, format!("Linux {release}: reads and writes at the speed of the disk"))
}

/// Major and minor number of a release such as `6.18.2-generic`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|letter: char| !letter.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Probed where it is, or where it would be made.
fn data_directory(data: &Path) -> Check {
    const WHAT: &str = "data directory";
    let absolute = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
    let there = absolute.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("/"));
    let probe = match tempfile::tempfile_in(there) {
        Ok(probe) => probe,
        Err(error) => {
            return Check::missing(
                WHAT,
                format!("{} cannot be written: {error}", there.display()),
                "choose another with --data",
            );
        }
    };
    match rustix::fs::fsetxattr(&probe, "user.latchfs.probe", b"1", XattrFlags::empty()) {
        Ok(()) => Check::fine(WHAT, format!("{} has extended attributes", there.display())),
        Err(errno) => Check::lacking(
            WHAT,
            format!("{} has no extended attributes ({errno})", there.display()),
            "works; metadata is kept beside the files and does not follow them outside latchfs",
        ),
    }
}

fn watches() -> Check {
    const WHAT: &str = "inotify";
    let limit = |name: &str| -> Option<u64> {
        let path = Path::new("/proc/sys/fs/inotify").join(name);
        fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    let instances = limit("max_user_instances").unwrap_or_default();
    let watches = limit("max_user_watches").unwrap_or_default();
    // Every share takes one; other programs of the user may have taken them all.
    if let Err(errno) = inotify::init(CreateFlags::CLOEXEC) {
        return Check::lacking(
            WHAT,
            format!(
                "none to be had of {instances} ({errno}): large directories are read more often"
            ),
            "end programs that watch files, or sysctl fs.inotify.max_user_instances=1024",
        );
    }
    if watches < WATCHES_MIN {
        return Check::lacking(
            WHAT,
            format!("only {watches} watches: large directories are read more often"),
            "sysctl fs.inotify.max_user_watches=65536",
        );
    }
    Check::fine(WHAT, format!("{instances} instances, {watches} watches"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_releases_are_compared_by_number() {
        assert_eq!(version("6.18.44-fc"), Some((6, 18)));
        assert!(version("6.10.0") > Some(PASSTHROUGH_SINCE));
        assert!(version("5.15.0-generic") < Some(PASSTHROUGH_SINCE));
        assert_eq!(version("unknown"), None);
    }

    #[test]
    fn a_data_directory_that_is_not_there_yet_is_probed_where_it_would_be() {
        let folder = tempfile::tempdir().unwrap();
        let check = data_directory(&folder.path().join("a/b"));
        assert_ne!(check.verdict, Verdict::Missing, "{check:?}");
        assert!(check.finding.contains(folder.path().to_str().unwrap()), "{check:?}");
        assert!(!folder.path().join("a").exists());
    }

    #[test]
    fn what_is_wrong_comes_with_its_cure() {
        let checks = [Check::missing("thing", "broken", "mend it"), Check::fine("other", "good")];
        let text = words(&checks, Paint::NONE);
        assert_eq!(text, "missing  thing: broken\n         mend it\nfine     other: good\n");
    }
}
