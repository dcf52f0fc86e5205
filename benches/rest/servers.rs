//! The servers that are compared, each a process of its own on a free port of this machine.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long a server may take to listen.
const READY: Duration = Duration::from_secs(30);

/// A running server. Ended when dropped.
pub struct Server {
    child: Child,
    pub addr: SocketAddr,
}

impl Server {
    /// Starts a program that is told its port, and waits until somebody listens there.
    fn start(command: impl FnOnce(u16) -> Command) -> Result<Self, String> {
        let port = free_port();
        let addr = SocketAddr::from(([127, 0, 0, 1], port));
        let mut command = command(port);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| error.to_string())?;
        let mut server = Self { child, addr };
        let end = Instant::now() + READY;
        while TcpStream::connect(addr).is_err() {
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(format!("it ended at once: {status}"));
            }
            if Instant::now() > end {
                return Err("it does not listen".to_owned());
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(server)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
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

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it has an address").port()
}

/// The program of this build, without a mount.
pub fn latchfs(folder: &Path) -> Server {
    Server::start(|port| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_latchfs"));
        command.args(["serve", "--no-mount", "--listen", &format!("127.0.0.1:{port}"), "--data"]);
        command.arg(folder.join("data"));
        command
    })
    .expect("latchfs starts")
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
    let started = Server::start(|port| {
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

/// Azurite's blob service, from the folder that `LATCHFS_BENCH_AZURITE` names.
pub fn azurite(folder: &Path) -> Option<Server> {
    let cure = "LATCHFS_BENCH_AZURITE names a folder with npm's azurite and node";
    let Some(home) = env::var_os("LATCHFS_BENCH_AZURITE").map(PathBuf::from) else {
        println!("Azurite: left out ({cure})");
        return None;
    };
    let modules = home.join("node_modules");
    let started = Server::start(|port| {
        let mut command = Command::new(modules.join(".bin/node"));
        command.arg(modules.join("azurite/dist/src/blob/main.js"));
        command.args(["--silent", "--disableTelemetry", "--skipApiVersionCheck"]);
        command.args(["--blobHost", "127.0.0.1", "--blobPort", &port.to_string(), "--location"]);
        command.arg(folder);
        command
    });
    left_out("Azurite", cure, started)
}

fn left_out(name: &str, cure: &str, started: Result<Server, String>) -> Option<Server> {
    started.map_err(|why| println!("{name}: left out ({why}; {cure})")).ok()
}

/// Waits for the first answer of a fresh server: from its start until `ask` is content.
pub fn time_to_answer(folder: &Path, ask: impl Fn(SocketAddr) -> bool) -> Duration {
    let port = free_port();
    let begun = Instant::now();
    let child = Command::new(env!("CARGO_BIN_EXE_latchfs"))
        .args(["serve", "--no-mount", "--listen", &format!("127.0.0.1:{port}"), "--data"])
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("latchfs starts: {error}"));
    let server = Server { child, addr: SocketAddr::from(([127, 0, 0, 1], port)) };
    loop {
        match TcpStream::connect(server.addr) {
            Ok(_) if ask(server.addr) => return begun.elapsed(),
            Err(error) if error.kind() != ErrorKind::ConnectionRefused => panic!("{error}"),
            _ => thread::sleep(Duration::from_micros(200)),
        }
        assert!(begun.elapsed() < READY, "latchfs does not answer");
    }
}
