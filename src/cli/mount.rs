//! `latchfs mount`: one existing directory as a share, on a mount and through REST.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::locate::real_path;
use super::serve::{Places, Prepared, Service};
use crate::engine::{Engine, EngineOptions};
use crate::store::root::is_share_name;

/// What a share is called whose directory has a name that no share can have.
const ANY_NAME: &str = "share";

/// Serve one existing directory as a share, and mount it
///
/// The directory stays as it is: files that are in it are in the share, at once and both ways.
/// What a share has beside its files (leases, snapshots) is kept in --state. Runs in the
/// foreground until Ctrl-C, `latchfs stop` or `latchfs unmount`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  mkdir mnt && latchfs mount ~/reports mnt --default-share r")]
pub struct MountDirectory {
    /// The directory to serve
    #[arg(value_name = "SRC")]
    source: PathBuf,

    /// Where to mount it: an empty directory
    #[arg(value_name = "MNT")]
    target: PathBuf,

    /// What the share is called [default: as SRC is, if a share can be]
    #[arg(long, value_name = "NAME", env = "LATCHFS_NAME")]
    name: Option<String>,

    /// Where to keep the share's state [default: in the user's state directory]
    #[arg(long, value_name = "DIR", env = "LATCHFS_STATE")]
    state: Option<PathBuf>,

    #[command(flatten)]
    pub service: Service,
}

impl MountDirectory {
    /// Serves until somebody says stop.
    pub fn run(&self) -> Result<ExitCode> {
        self.service.run(|_| {
            let source = self.source.canonicalize();
            let source = source.with_context(|| self.source.display().to_string())?;
            let target = real_path(&self.target)?;
            ensure!(
                !target.starts_with(&source),
                "{} is or lies within {}, which it would show: choose a mount point outside",
                self.target.display(),
                self.source.display()
            );
            let name = self.name.clone().unwrap_or_else(|| share_name(&source));
            let share = self.service.mounts.share_options();
            let options = EngineOptions { share, ..EngineOptions::default() };
            let engine = Engine::serve_directory(&name, &source, self.state.as_deref(), options)?;
            Ok(Prepared {
                memory: None,
                places: Places::named(&[(name, target)])?,
                engine: Arc::new(engine),
                data: source.display().to_string(),
                notes: Vec::new(),
            })
        })
    }
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
