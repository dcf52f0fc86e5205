//! A terminal with a shell, in a folder of its own, and whatever the shell left behind.
//!
//! Programs see a terminal, so they show what people see; the shell reads its commands from a pipe,
//! so it shows no prompts and says nothing of its jobs. One command is typed at a time.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Instant;

use rustix::fs::{CWD, FileType, Mode};
use rustix::mount::UnmountFlags;
use tempfile::TempDir;

use crate::common::served::{LATCHFS, PATIENCE};

/// What the folder is called on the pages.
const SHOWN_FOLDER: &str = "/tmp/demo";

/// What ends the output of a command; no command prints it.
const END: &str = "--- the command has ended ---";

/// A terminal. What runs in its folder ends with it.
pub struct Terminal {
    folder: TempDir,
    /// `script`, which makes the terminal.
    child: Child,
    commands: File,
    output: Receiver<Vec<u8>>,
}

impl Terminal {
    /// Starts a shell in a new folder that finds `latchfs` and the programs in `more`.
    pub fn start(more: &[&Path]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pipe = tempfile::tempdir().unwrap();
        let pipe = pipe.path().join("commands");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        // Open for both, so that it does not wait for the shell, nor the shell sees an end.
        let commands = File::options().read(true).write(true).open(&pipe).unwrap();
        let bin = Path::new(LATCHFS).parent().unwrap().to_owned();
        let usual = std::env::var_os("PATH").unwrap_or_default();
        let more = more.iter().map(|path| path.to_path_buf());
        let path = [bin].into_iter().chain(more).chain(std::env::split_paths(&usual));
        let mut child = Command::new("script")
            .args(["--quiet", "--flush", "--command"])
            .arg(format!("exec bash --norc --noprofile {}", pipe.display()))
            .arg("/dev/null")
            .current_dir(folder.path())
            .env("PATH", std::env::join_paths(path).unwrap())
            .envs([("LC_ALL", "C.UTF-8"), ("NO_COLOR", "1"), ("RUST_LOG", "error")])
            // Nobody else's port, and no other run's.
            .env("LATCHFS_LISTEN", "127.0.0.1:0")
            .env("XDG_RUNTIME_DIR", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut shown = child.stdout.take().unwrap();
        let (sender, output) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = shown.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let mut terminal = Self { folder, child, commands, output };
        // The pipe's folder may go when the shell has it open.
        terminal.run("true", str::is_empty).unwrap();
        terminal
    }

    /// Puts a file into its folder.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// Types a command, and waits until it has ended and all that was shown is as wanted: a job in
    /// the background shows something in its own time. Fails with what was shown instead.
    pub fn run(&mut self, command: &str, wanted: impl Fn(&str) -> bool) -> Result<(), String> {
        // What the command left as its status is there for the next one.
        let line = format!("{command}\nstatus=$?; echo '{END}'; (exit $status)\n");
        self.commands.write_all(line.as_bytes()).unwrap();
        let deadline = Instant::now() + PATIENCE;
        let mut bytes = Vec::new();
        loop {
            let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
            let text = text.replace(&*self.folder.path().to_string_lossy(), SHOWN_FOLDER);
            // With the line break: it would otherwise be taken for output of the next command.
            if let Some((before, after)) = text.split_once(&format!("{END}\n")) {
                let seen = format!("{before}{after}");
                if wanted(&seen) {
                    return Ok(());
                }
            }
            match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(more) => bytes.extend(more),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return Err(text.replace(END, ""));
                }
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // With the terminal go the shell and its jobs; a server in the background is asked.
        drop(self.child.kill());
        drop(self.child.wait());
        let mut stop = Command::new(LATCHFS);
        // No other server of this user is stopped.
        stop.arg("stop").current_dir(self.folder.path());
        stop.env("XDG_RUNTIME_DIR", self.folder.path());
        drop(stop.stdout(Stdio::null()).stderr(Stdio::null()).status());
        let mount = self.folder.path().join("latchfs-mnt");
        // Nothing may be mounted there any more.
        let _ = rustix::mount::unmount(&mount, UnmountFlags::DETACH);
    }
}
