//! A server of one service in a process of its own, to be killed: the process is the test that
//! starts it, which the variable [`SERVE`] tells to serve.

use std::env;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;

use latchfs::db::SyncMode;
use latchfs::disk::DataRoot;
use latchfs::http::auth::Admission;
use latchfs::http::frame::Service;
use latchfs::http::server::{RestOptions, RestServer};
use latchfs::server::{AccountOptions, Accounts};

use crate::common::http::ACCOUNT;
use crate::common::served::wait_for;

/// Names the folder that the process is to serve.
const SERVE: &str = "LATCHFS_TEST_SERVE";
/// Says that each write is synced.
const ALWAYS: &str = "LATCHFS_TEST_ALWAYS";

/// A server under way. It is killed when dropped.
pub struct Killed {
    child: Child,
    pub addr: SocketAddr,
}

/// Serves until the process is killed, if this process is the server. The address is written to a
/// file.
pub fn serve_if_told(service: &'static Service) {
    let Some(folder) = env::var_os(SERVE) else { return };
    let folder = Path::new(&folder);
    let root = DataRoot::open(folder).unwrap();
    let mut options = AccountOptions::default();
    options.file.share.sync_always = env::var_os(ALWAYS).is_some();
    let accounts = Accounts::open(&root, ACCOUNT, [""; 0], &options).unwrap();
    let options = RestOptions::new(Admission::Everyone);
    let server = RestServer::start(Arc::new(accounts), service, options).unwrap();
    fs::write(folder.join("address.new"), server.addr().to_string()).unwrap();
    fs::rename(folder.join("address.new"), folder.join("address")).unwrap();
    loop {
        thread::park();
    }
}

impl Killed {
    /// Starts a server on a folder; `test` is the full name of the test that calls
    /// [`serve_if_told`].
    pub fn start(test: &str, folder: &Path) -> Self {
        Self::start_with(test, folder, SyncMode::Normal)
    }

    pub fn start_with(test: &str, folder: &Path, sync: SyncMode) -> Self {
        let file = folder.join("address");
        drop(fs::remove_file(&file));
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", test, "--include-ignored"]).env(SERVE, folder);
        if sync == SyncMode::Always {
            command.env(ALWAYS, "1");
        }
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        let addr = wait_for("the address", || fs::read_to_string(&file).ok()?.parse().ok());
        Self { child, addr }
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have been killed already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
