//! `latchfs hold`: a second client for tests and shell scripts, that can also ask for what
//! `open(2)` cannot.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use clap::builder::BoolishValueParser;

use super::locate::{Where, answered, refused};
use super::out;
use super::time::duration;
use crate::control::protocol;
use crate::control::{Answer, Client, Request};

/// Hold a file open with an access and a share mode
///
/// Prints the handle as a line of JSON when the open is granted, and holds it until --for runs
/// out, standard input closes (if it is a pipe), or it is killed. Exits 16 if somebody else holds
/// the file in a way that excludes this, and names him.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  latchfs hold latchfs-mnt/a.txt --access rw --share r --for 30s"
)]
pub struct Hold {
    /// The file, on a mount
    path: PathBuf,

    /// What to open it for: letters r, w, d, or none
    #[arg(long, default_value = "r", env = "LATCHFS_ACCESS")]
    access: String,

    /// What others may do meanwhile: letters r, w, d, or none
    #[arg(long, value_name = "MODE", default_value = "none", env = "LATCHFS_SHARE")]
    share: String,

    /// For how long: 30s, 500ms, 5m
    #[arg(long = "for", value_name = "TIME", value_parser = duration, env = "LATCHFS_FOR")]
    time: Option<Duration>,

    /// Mark the file for deletion when this open closes; needs access d
    #[arg(long, env = "LATCHFS_DELETE_ON_CLOSE", value_parser = BoolishValueParser::new())]
    delete_on_close: bool,

    /// open, create, open-if, overwrite, overwrite-if or supersede
    #[arg(long, default_value = "open", env = "LATCHFS_DISPOSITION")]
    disposition: String,

    #[command(flatten)]
    server: Where,
}

/// Why a hold ends.
enum End {
    Input,
    Server,
}

impl Hold {
    /// Holds it.
    pub fn run(&self) -> Result<ExitCode> {
        let target = self.server.target(&self.path)?;
        let mut server = Client::connect(&target.control)?;
        let request = Request::Hold(protocol::Hold {
            share_name: target.share_name,
            path: target.path,
            access: self.access.clone(),
            share: self.share.clone(),
            disposition: Some(self.disposition.clone()),
            delete_on_close: self.delete_on_close,
        });
        let held = match answered(server.ask(&request)?)? {
            Answer::Held(held) => held,
            other => return refused(self.path.display(), &other),
        };
        out::print(&(serde_json::to_string(&held)? + "\n"))?;
        self.wait(server)
    }

    fn wait(&self, mut server: Client) -> Result<ExitCode> {
        let (ends, end) = channel();
        watch_input(ends.clone());
        thread::spawn(move || {
            server.wait_for_end();
            // The receiver goes with the process.
            drop(ends.send(End::Server));
        });
        let ended = match self.time {
            Some(time) => end.recv_timeout(time),
            None => end.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match ended {
            Ok(End::Input) | Err(RecvTimeoutError::Timeout) => Ok(ExitCode::SUCCESS),
            Ok(End::Server) | Err(RecvTimeoutError::Disconnected) => {
                bail!("the server has stopped, and with it the hold")
            }
        }
    }
}

/// Tells of the end of standard input, if it is a pipe or a socket. A job in the background must
/// not read a terminal, and a script's jobs have `/dev/null`, which is at its end from the start.
fn watch_input(ends: Sender<End>) {
    let Ok(input) = io::stdin().as_fd().try_clone_to_owned().map(File::from) else { return };
    let kind = input.metadata().map(|metadata| metadata.file_type());
    if kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket()) {
        thread::spawn(move || {
            drop(io::copy(&mut &input, &mut io::sink()));
            drop(ends.send(End::Input));
        });
    }
}
