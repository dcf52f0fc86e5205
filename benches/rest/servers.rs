//! The servers that are compared, each a process of its own on free ports of this machine.

use std::env;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::process;

/// How long a server may take to listen.
const READY: Duration = Duration::from_secs(30);

/// What a server offers, each at an address of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    File,
    Blob,
    Queue,
    Table,
    /// Files by plain HTTP.
    Web,
    /// The HTTP API that controls the server.
    Admin,
}

impl Service {
    pub const COUNT: usize = 6;
}

/// A running server. Ended when dropped.
pub struct Server {
    child: Child,
    pub addrs: [Option<SocketAddr>; Service::COUNT],
}

impl Server {
    /// Starts a program that is told its ports, and waits until all of them are listened at.
    fn start<const N: usize>(
        services: [Service; N],
        command: impl FnOnce([u16; N]) -> Command,
    ) -> Result<Self, String> {
        let (ports, mut addrs) = (free_ports(), [None; Service::COUNT]);
        for (service, port) in services.iter().zip(ports) {
            addrs[*service as usize] = Some(SocketAddr::from(([127, 0, 0, 1], port)));
        }
        let mut command = command(ports);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| error.to_string())?;
        let mut server = Self { child, addrs };
        let end = Instant::now() + READY;
        while server.addrs.iter().flatten().any(|addr| TcpStream::connect(addr).is_err()) {
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(format!("it ended at once: {status}"));
            }
            if Instant::now() > end {
                return Err("it does not listen".to_owned());
            }
            thread::sleep(Duration::from_micros(200));
        }
        Ok(server)
    }

    /// Its processor time so far.
    pub fn cpu(&self) -> Duration {
        process::cpu(self.child.id())
    }

    /// Its bytes in memory.
    pub fn resident(&self) -> u64 {
        process::resident(self.child.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

/// Ports that are free while all of them are held.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port is free"));
    listeners.map(|listener| listener.local_addr().expect("it has an address").port())
}

/// The folder for data, on the disk that `LATCHFS_BENCH_DIR` names. Removed when dropped.
pub fn folder() -> tempfile::TempDir {
    let disk = env::var_os("LATCHFS_BENCH_DIR").map_or_else(env::temp_dir, PathBuf::from);
    tempfile::tempdir_in(disk).expect("a temporary folder can be made")
}

/// A program of latchfs without a mount, with its data in the folder or in memory.
pub fn latchfs(program: &Path, folder: Option<&Path>, more: &[&str]) -> Server {
    let services = [Service::File, Service::Blob, Service::Queue, Service::Table, Service::Admin];
    Server::start(services, |ports| {
        let mut command = Command::new(program);
        command.args(["serve", "--no-mount"]).args(more);
        match folder {
            Some(folder) => command.arg("--data").arg(folder.join("data")),
            None => command.arg("--in-memory"),
        };
        for (option, port) in
            ["--file", "--blob", "--queue", "--table", "--admin"].iter().zip(ports)
        {
            command.arg(option).arg(format!("127.0.0.1:{port}"));
        }
        command
    })
    .expect("latchfs starts")
}

/// The program of latchfs that is measured.
pub fn program() -> PathBuf {
    let given = env::var_os("LATCHFS_BENCH_PROGRAM");
    given.map_or_else(|| env!("CARGO_BIN_EXE_latchfs").into(), PathBuf::from)
}

/// The names of the programs of latchfs in the tables: the one that is measured, and the one that
/// `LATCHFS_BENCH_OTHER` names.
pub fn programs() -> Vec<(&'static str, PathBuf)> {
    let other = env::var_os("LATCHFS_BENCH_OTHER").map(|other| ("other latchfs", other.into()));
    [("latchfs", program())].into_iter().chain(other).collect()
}

/// nginx as Debian packages it: `/off/` and `/on/` serve the folder without and with `sendfile`,
/// and take PUT.
pub fn nginx(folder: &Path) -> Option<Server> {
    let files = folder.join("files");
    fs::create_dir_all(&files).expect("a folder can be made");
    let root = files.display();
    let at = |sendfile: &str| {
        format!("location /{sendfile}/ {{ alias {root}/; sendfile {sendfile}; dav_methods PUT; }}")
    };
    let temp = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|what| format!("{what}_temp_path {}/{what};", folder.display()))
        .join(" ");
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    let text = |port| {
        format!(
            "daemon off; {user} worker_processes auto; pid {0}/pid; error_log {0}/error crit;\n\
             events {{}}\n\
             http {{ access_log off; keepalive_requests 1000000; client_max_body_size 8m;\n\
             client_body_buffer_size 8m; {temp}\n\
             server {{ listen 127.0.0.1:{port}; {1} {2} }} }}\n",
            folder.display(),
            at("off"),
            at("on")
        )
    };
    let config = folder.join("nginx.conf");
    let started = Server::start([Service::Web], |[port]| {
        fs::write(&config, text(port)).expect("a file can be written");
        let mut command = Command::new(program_in_sbin("nginx"));
        command.arg("-c").arg(&config).arg("-e").arg(folder.join("error"));
        command
    });
    left_out("nginx", "install the package", started)
}

/// `PATH` of a user often lacks the folder.
fn program_in_sbin(name: &str) -> PathBuf {
    let full = Path::new("/usr/sbin").join(name);
    if full.exists() { full } else { name.into() }
}

/// Azurite, from the folder that `LATCHFS_BENCH_AZURITE` names, with `node` of that folder if npm
/// installed one there.
pub fn azurite(folder: &Path) -> Option<Server> {
    let cure = "LATCHFS_BENCH_AZURITE names a folder where npm installed azurite";
    let Some(home) = env::var_os("LATCHFS_BENCH_AZURITE").map(PathBuf::from) else {
        println!("Azurite: left out ({cure})");
        return None;
    };
    let modules = home.join("node_modules");
    let node = modules.join(".bin/node");
    let node = if node.exists() { node } else { "node".into() };
    let started = Server::start([Service::Blob, Service::Queue, Service::Table], |ports| {
        let mut command = Command::new(node);
        command.arg(modules.join("azurite/dist/src/azurite.js"));
        command.args(["--silent", "--disableTelemetry", "--skipApiVersionCheck"]);
        for (service, port) in ["blob", "queue", "table"].iter().zip(ports) {
            command.args([&format!("--{service}Host"), "127.0.0.1"]);
            command.args([&format!("--{service}Port"), &port.to_string()]);
        }
        command.arg("--location").arg(folder);
        command
    });
    left_out("Azurite", cure, started)
}

fn left_out(name: &str, cure: &str, started: Result<Server, String>) -> Option<Server> {
    started.map_err(|why| println!("{name}: left out ({why}; {cure})")).ok()
}
