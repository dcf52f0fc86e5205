//! `latchfs mount`: one existing directory as a share, on a mount and through REST.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Arg, Args};

use super::locate::real_path;
use super::serve::ServiceArgs;
use crate::file::rules::name::is_share_name;
use crate::server::{Data, MountPoint};

/// The name of a share whose directory has a name that no share can have.
const ANY_NAME: &str = "share";

/// Serve one existing directory as a share, and mount it
///
/// The directory stays as it is: files that are in it are in the share, at once and both ways.
/// What a share has beside its files (leases, snapshots) is kept in --state. Runs in the
/// foreground until Ctrl-C, `latchfs stop` or `latchfs unmount`, which ends its REST service too.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  mkdir mnt && latchfs mount ~/reports mnt --default-share r")]
#[command(mut_args(off_unless_given))]
pub struct MountDirectory {
    /// The directory to serve
    #[arg(value_name = "SRC")]
    source: PathBuf,

    /// Where to mount it: an empty directory
    #[arg(value_name = "MNT")]
    target: PathBuf,

    /// Share name [default: the name of SRC, if a share can have it]
    #[arg(long, value_name = "NAME", env = "LATCHFS_NAME")]
    name: Option<String>,

    /// Where to keep the share's state [default: in the user's state directory]
    #[arg(long, value_name = "DIR", env = "LATCHFS_STATE")]
    state: Option<PathBuf>,

    #[command(flatten)]
    pub service: ServiceArgs,
}

impl MountDirectory {
    /// Serves until the server is stopped.
    pub fn run(&self) -> Result<ExitCode> {
        self.service.run(true, None, |options| {
            let source = self.source.canonicalize();
            let source = source.with_context(|| self.source.display().to_string())?;
            let target = real_path(&self.target)?;
            ensure!(
                !target.starts_with(&source) && !source.starts_with(&target),
                "{} and {}: mount point and source must not contain each other",
                self.target.display(),
                self.source.display()
            );
            let name = self.name.clone().unwrap_or_else(|| share_name(&source));
            options.listen.files_alone();
            options.mounts = vec![MountPoint::new(&name, &target)];
            options.data = Data::Existing { source, name, state: self.state.clone() };
            Ok(())
        })
    }
}

/// Says in the help that the other services are off; `latchfs serve` has default ports for them.
fn off_unless_given(argument: Arg) -> Arg {
    let service = match argument.get_id().as_str() {
        "blob" => "Blob",
        "queue" => "Queue",
        "table" => "Table",
        _ => return argument,
    };
    argument.help(format!("Address of the {service} service [default: off]"))
}

/// The directory's own name, if a share can have it.
fn share_name(source: &Path) -> String {
    let name = source.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    if is_share_name(&name) { name } else { ANY_NAME.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_named_after_its_directory_where_that_is_possible() {
        let named = |path: &str| share_name(Path::new(path));
        assert_eq!(named("/data/reports"), "reports");
        assert_eq!(named("/data/Reports-2026"), "reports-2026");
        assert_eq!([named("/"), named("/a"), named("/my files")], [ANY_NAME; 3]);
    }
}
