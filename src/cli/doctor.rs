//! `latchfs doctor`: checks this machine's requirements, and says what to do.
//!
//! Decides which requirements are essential: those of mounts and of the data directory. A lack of
//! another one costs speed or an option, and is a warning.

use std::env;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use rustix::fs::XattrFlags;
use serde::Serialize;

use super::EXIT_DIFFERENT;
use super::locate;
use super::out::{Output, Paint};
use super::serve::{DATA_DIR, RunningServer, running};
use crate::api::{GetStatus, ServerStatus};
use crate::file::mount::{is_bounded_root, may_administer};
use crate::rules::service::ServiceKind;

/// The first kernel with FUSE passthrough.
const PASSTHROUGH_SINCE: (u32, u32) = (6, 9);

/// Below this many descriptors, connections and open files are few.
const DESCRIPTORS_MIN: u64 = 1024;

/// The number of overlayfs in the answer of `statfs`.
const OVERLAYFS: rustix::fs::FsWord = 0x794c_7630;

/// Check this machine's requirements
///
/// Each check is ok, warn (it costs speed or an option) or fail (a mount or the data cannot do
/// without). Exits 1 if a check fails. The services over HTTP need no mount: --no-mount leaves out
/// the checks of mounts. No server is needed; one that runs is named where it has a port.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs doctor --data /srv/latchfs")]
pub struct Doctor {
    /// Data directory
    #[arg(long, value_name = "DIR", default_value = DATA_DIR, env = "LATCHFS_DATA")]
    data: PathBuf,

    /// Leave out what only mounts need
    #[arg(long, env = "LATCHFS_NO_MOUNT")]
    no_mount: bool,

    #[command(flatten)]
    output: Output,
}

/// How it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum CheckVerdict {
    Ok,
    /// Costs speed or an option.
    Warn,
    /// A mount or the data cannot do without.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct DoctorCheck {
    what: &'static str,
    verdict: CheckVerdict,
    finding: String,
    /// The advice to the user.
    cure: Option<&'static str>,
}

impl DoctorCheck {
    fn ok(what: &'static str, finding: impl Into<String>) -> Self {
        Self { what, verdict: CheckVerdict::Ok, finding: finding.into(), cure: None }
    }

    fn warn(what: &'static str, finding: impl Into<String>, cure: &'static str) -> Self {
        Self { what, verdict: CheckVerdict::Warn, finding: finding.into(), cure: Some(cure) }
    }

    fn fail(what: &'static str, finding: impl Into<String>, cure: &'static str) -> Self {
        Self { what, verdict: CheckVerdict::Fail, finding: finding.into(), cure: Some(cure) }
    }
}

impl Doctor {
    pub fn run(&self) -> Result<ExitCode> {
        let mut checks = Vec::new();
        if !self.no_mount {
            checks.extend([fuse_device(), helper(), allow_other(), passthrough()]);
        }
        let can_mount = all_well(&checks);
        let others = [data_directory(&self.data), descriptors(), ports()];
        let can_serve = all_well(&others);
        checks.extend(others);
        self.output.show(&checks, || {
            let summary = if can_serve && !can_mount { WITHOUT_MOUNT } else { "" };
            words(&checks, Paint::of(&io::stdout())) + summary
        })?;
        let all = can_mount && can_serve;
        Ok(if all { ExitCode::SUCCESS } else { ExitCode::from(EXIT_DIFFERENT) })
    }
}

/// Three services keep some MiB each, for deletions on a full disk.
const FREE_MIN: u64 = 32 << 20;

/// The summary where a mount alone is impossible.
const WITHOUT_MOUNT: &str = "\
No mount can be made here. File, Blob, Queue and Table over HTTP work without one: start with
`latchfs serve --no-mount`; `latchfs doctor --no-mount` checks what that needs.
";

/// Whether no check fails.
fn all_well(checks: &[DoctorCheck]) -> bool {
    checks.iter().all(|check| check.verdict != CheckVerdict::Fail)
}

fn words(checks: &[DoctorCheck], paint: Paint) -> String {
    let mut lines = Vec::new();
    for DoctorCheck { what, verdict, finding, cure } in checks {
        let verdict = match verdict {
            CheckVerdict::Ok => paint.good("ok  "),
            CheckVerdict::Warn => paint.poor("warn"),
            CheckVerdict::Fail => paint.bad("fail"),
        };
        lines.push(format!("{verdict}  {}: {finding}\n", paint.bold(what)));
        lines.extend(cure.map(|cure| format!("      {cure}\n")));
    }
    lines.concat()
}

fn fuse_device() -> DoctorCheck {
    const WHAT: &str = "/dev/fuse";
    match File::options().read(true).write(true).open(WHAT) {
        Ok(_) => DoctorCheck::ok(WHAT, "can be opened"),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => DoctorCheck::fail(
            WHAT,
            error.to_string(),
            "let this user open it (chmod 666 /dev/fuse), run as root, or serve --no-mount",
        ),
        Err(error) => DoctorCheck::fail(
            WHAT,
            error.to_string(),
            "load the module (modprobe fuse), pass it into the container (--device /dev/fuse), or \
             serve --no-mount",
        ),
    }
}

fn helper() -> DoctorCheck {
    const WHAT: &str = "fusermount3";
    if may_administer() {
        return DoctorCheck::ok(WHAT, "not needed: this process may mount by itself");
    }
    if is_bounded_root() {
        return DoctorCheck::fail(
            "CAP_SYS_ADMIN",
            "missing: root may not mount here",
            "run the container with --cap-add SYS_ADMIN, or serve --no-mount",
        );
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|dir| dir.join(WHAT)).find(|path| path.is_file());
    match found {
        Some(path) => DoctorCheck::ok(WHAT, path.display().to_string()),
        None => DoctorCheck::fail(
            WHAT,
            "not on the PATH, and needed to mount without root",
            "install fuse3, or run as root",
        ),
    }
}

fn allow_other() -> DoctorCheck {
    const WHAT: &str = "user_allow_other";
    if may_administer() {
        return DoctorCheck::ok(WHAT, "not needed: root may let other users in");
    }
    let conf = fs::read_to_string("/etc/fuse.conf").unwrap_or_default();
    if conf.lines().any(|line| line.trim() == WHAT) {
        return DoctorCheck::ok(WHAT, "set in /etc/fuse.conf");
    }
    DoctorCheck::warn(
        WHAT,
        "not set: --allow-other will be refused",
        "add the line user_allow_other to /etc/fuse.conf",
    )
}

fn passthrough() -> DoctorCheck {
    const WHAT: &str = "kernel passthrough";
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    if version(release) < Some(PASSTHROUGH_SINCE) {
        return DoctorCheck::warn(
            WHAT,
            format!("Linux {release} has none: reads and writes go through latchfs"),
            "a kernel of 6.9 or newer makes them as fast as the disk",
        );
    }
    if !may_administer() {
        return DoctorCheck::warn(
            WHAT,
            "not without CAP_SYS_ADMIN: reads and writes go through latchfs",
            "run as root, and a container with --cap-add SYS_ADMIN, for the speed of the disk",
        );
    }
    DoctorCheck::ok(WHAT, format!("Linux {release}: reads and writes at the speed of the disk"))
}

/// Major and minor number of a release such as `6.18.2-generic`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|letter: char| !letter.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The free bytes of a disk that has fewer than the services need to start with.
fn few_bytes_free(file: &File) -> Option<u64> {
    let seen = rustix::fs::fstatvfs(file).ok()?;
    let free = seen.f_bavail.saturating_mul(seen.f_frsize);
    // Some file systems do not tell how much they have.
    (seen.f_blocks > 0 && free < FREE_MIN).then_some(free)
}

/// Probed where it is, or where it would be made.
fn data_directory(data: &Path) -> DoctorCheck {
    const WHAT: &str = "data directory";
    let absolute = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
    let there = absolute.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("/"));
    let probe = match tempfile::tempfile_in(there) {
        Ok(probe) => probe,
        Err(error) => {
            return DoctorCheck::fail(
                WHAT,
                format!("{} cannot be written: {error}", there.display()),
                "choose another with --data",
            );
        }
    };
    if let Some(free) = few_bytes_free(&probe) {
        return DoctorCheck::warn(
            WHAT,
            format!("{} has {} KiB of free space", there.display(), free >> 10),
            "make room on the disk: requests that store something are refused (507) without",
        );
    }
    if rustix::fs::fstatfs(&probe).is_ok_and(|seen| seen.f_type == OVERLAYFS) {
        return DoctorCheck::warn(
            WHAT,
            format!(
                "{} is on overlayfs: the first write to a file changes its ETag",
                there.display()
            ),
            "put it on a volume, or on tmpfs with --in-memory",
        );
    }
    match rustix::fs::fsetxattr(&probe, "user.latchfs.probe", b"1", XattrFlags::empty()) {
        Ok(()) => DoctorCheck::ok(WHAT, format!("{} has extended attributes", there.display())),
        Err(errno) => DoctorCheck::warn(
            WHAT,
            format!("{} has no extended attributes ({errno})", there.display()),
            "works; metadata is kept beside the files and does not follow them outside latchfs",
        ),
    }
}

fn descriptors() -> DoctorCheck {
    const WHAT: &str = "descriptors";
    match rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum {
        Some(most) if most < DESCRIPTORS_MIN => DoctorCheck::warn(
            WHAT,
            format!("only {most} at once: few connections and open files"),
            "raise the hard limit (ulimit -Hn 4096, or --ulimit nofile=4096 for a container)",
        ),
        Some(most) => DoctorCheck::ok(WHAT, format!("up to {most}")),
        None => DoctorCheck::ok(WHAT, "as many as there are"),
    }
}

/// The well-known ports, which a server takes unless it is told otherwise.
fn ports() -> DoctorCheck {
    const WHAT: &str = "ports";
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let ports = ServiceKind::ALL.map(ServiceKind::port);
    let taken: Vec<_> = ports.iter().copied().filter(|port| !is_free(port)).collect();
    if taken.is_empty() {
        return DoctorCheck::ok(WHAT, format!("{} are free on 127.0.0.1", list(&ports)));
    }
    let status = |server: RunningServer| locate::ask(&server.control, &GetStatus {}).ok();
    let servers: Vec<_> = running().into_iter().filter_map(status).collect();
    DoctorCheck::warn(
        WHAT,
        format!("in use on 127.0.0.1: {}", users(taken, &servers)),
        "`latchfs status` shows a latchfs that runs; take any free ports with --file 0",
    )
}

fn list(ports: &[u16]) -> String {
    ports.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Who has these ports: the servers of this user by name, all others together.
fn users(mut taken: Vec<u16>, servers: &[ServerStatus]) -> String {
    let mut users = Vec::new();
    for ServerStatus { pid, data, endpoints, .. } in servers {
        let has = |port: &u16| {
            let end = format!(":{port}");
            endpoints.values().filter_map(|url| url.split('/').nth(2)).any(|at| at.ends_with(&end))
        };
        let own: Vec<_> = taken.extract_if(.., |port| has(port)).collect();
        if !own.is_empty() {
            users.push(format!("{} by latchfs (pid {pid}, {data})", list(&own)));
        }
    }
    if !taken.is_empty() {
        users.push(format!("{} by another program", list(&taken)));
    }
    users.join("; ")
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
        assert_ne!(check.verdict, CheckVerdict::Fail, "{check:?}");
        assert!(check.finding.contains(folder.path().to_str().unwrap()), "{check:?}");
        assert!(!folder.path().join("a").exists());
    }

    #[test]
    fn a_port_that_a_latchfs_has_is_told_with_its_server() {
        let server = |pid: u32, port: u16| -> ServerStatus {
            let endpoints = serde_json::json!({ "blob": format!("http://127.0.0.1:{port}/a") });
            let status = serde_json::json!({
                "version": "", "pid": pid, "accounts": [], "shares": [], "mounts": [],
                "data": "/srv/data", "endpoints": endpoints,
            });
            serde_json::from_value(status).unwrap()
        };
        let by = "10000 by latchfs (pid 7, /srv/data)";
        assert_eq!(users(vec![10_000], &[server(7, 10_000)]), by);
        let both = users(vec![10_000, 10_004], &[server(8, 40_000), server(7, 10_000)]);
        assert_eq!(both, format!("{by}; 10004 by another program"));
    }

    #[test]
    fn what_is_wrong_comes_with_its_cure() {
        let checks =
            [DoctorCheck::fail("thing", "broken", "mend it"), DoctorCheck::ok("other", "good")];
        let text = words(&checks, Paint::NONE);
        assert_eq!(text, "fail  thing: broken\n      mend it\nok    other: good\n");
    }
}
