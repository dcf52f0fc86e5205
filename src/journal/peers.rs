//! The processes behind connections from this machine, by the tables of the kernel in `/proc`.
//!
//! A connection is looked up soon after it comes, when an event of it is reported, and before a
//! fault closes it; never when a request is answered. Decides how often the tables are read, and
//! for how long an answer is trusted. A client on
//! another machine, in another network namespace, or of a user whose processes the server may not
//! look at has no process here.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::programs::process_and_program;
use crate::clock::{SystemClock, TimeSource as _};
use crate::rules::Timestamp;
use crate::rules::who::{Identity, Who};

/// Reading the tables takes at most one part in so many of the time, and at most [`AT_ONCE`] in a
/// row: a machine with many connections has long tables.
const SHARE_OF_TIME: u32 = 10;
const AT_ONCE: Duration = Duration::from_millis(500);

/// A process that was seen at an address is trusted for events of this long afterwards; then the
/// address may be another process's.
const TRUSTED: Duration = Duration::from_secs(10);

/// The most addresses that are remembered.
const KNOWN_MAX: usize = 4_096;

/// A process and its program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    pub program: Arc<str>,
}

/// What the tables have told. The addresses are those of the machine, so all servers of a process
/// share it.
static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(|| Mutex::new(Known::new()));

struct Known {
    by_address: HashMap<SocketAddr, Seen>,
    /// Connections that were open when the tables were read last, and whose process was not sought.
    unsought: HashSet<SocketAddr>,
    /// When that was, by the clock of the system.
    read: Timestamp,
    /// How long reading may still take, as of that moment.
    budget: (Duration, Instant),
}

struct Seen {
    /// None: no process that the server may look at has the connection open.
    process: Option<Process>,
    /// When the connection was seen last, by the clock of the system.
    at: Timestamp,
}

/// The process of a client that is named `REST ADDRESS` or `SMB ADDRESS`, which had an event at
/// `when`. A client whose connection is closed is known if an earlier event of it was reported in
/// time.
pub fn process_of(client: &str, when: Timestamp) -> Option<Process> {
    let address = client.strip_prefix("REST ").or_else(|| client.strip_prefix("SMB "))?;
    let address = address.parse().ok().map(canonical)?;
    if !address.ip().is_loopback() {
        return None;
    }
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let is_trusted = |seen: &Seen| when.since(seen.at) < TRUSTED;
    // A connection that is not in the tables after its event is closed.
    let is_due = when > known.read || known.unsought.contains(&address);
    if is_due && !known.by_address.get(&address).is_some_and(is_trusted) {
        known.look(address);
    }
    known.by_address.get(&address)?.process.clone()
}

/// The client of a request, whose process was found or not.
pub fn identity(who: &Who, process: Option<&Process>) -> Identity {
    let named = process.map(|Process { pid, program }| format!("{program} (pid {pid})"));
    who.identity(named.as_deref())
}

impl Known {
    fn new() -> Self {
        let budget = (AT_ONCE, Instant::now());
        let (by_address, unsought) = (HashMap::new(), HashSet::new());
        Self { by_address, unsought, read: Timestamp(0), budget }
    }

    /// Looks a connection up, unless that took too long a moment ago. Mostly it is one of a process
    /// that has had others.
    fn look(&mut self, sought: SocketAddr) {
        let begun = Instant::now();
        let (left, since) = self.budget;
        let budget = AT_ONCE.min(left + (begun - since) / SHARE_OF_TIME);
        if budget.is_zero() {
            return;
        }
        let at = SystemClock.now();
        let sockets = loopback_sockets();
        let known = self.by_address.values().filter_map(|seen| seen.process.as_ref());
        let known: HashSet<u32> = known.map(|process| process.pid).collect();
        let mut owners = owners(&sockets, known);
        let is_left = |address: &&SocketAddr| !owners.contains_key(address);
        self.unsought = sockets.values().filter(is_left).copied().collect();
        if self.unsought.contains(&sought) {
            owners = self::owners(&sockets, all_processes());
            self.unsought.clear();
        }
        if self.by_address.len() + owners.len() > KNOWN_MAX {
            self.by_address.clear();
        }
        // A connection of a program that the server may not look at: the next request of it would
        // have the tables read again.
        if sockets.values().any(|address| *address == sought) && !owners.contains_key(&sought) {
            self.by_address.insert(sought, Seen { process: None, at });
        }
        for (address, process) in owners {
            self.by_address.insert(address, Seen { process: Some(process), at });
        }
        self.read = at;
        self.budget = (budget.saturating_sub(begun.elapsed()), Instant::now());
    }
}

/// The loopback connections of this network namespace: the inode of each socket, and its own
/// address.
fn loopback_sockets() -> HashMap<u64, SocketAddr> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    let lines = tables.iter().flatten().flat_map(|table| table.lines().skip(1));
    lines.filter_map(socket).filter(|(_, address)| address.ip().is_loopback()).collect()
}

/// A line of the table: `sl local_address rem_address st tx:rx tr:tm retrnsmt uid timeout inode`.
/// A socket that no process has any more waits in state 06 and has the inode 0.
fn socket(line: &str) -> Option<(u64, SocketAddr)> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (ip, port) = words.next()?.split_once(':')?;
    let inode = words.nth(7)?.parse().ok().filter(|inode| *inode != 0)?;
    let word = |at: usize| u32::from_str_radix(ip.get(at..at + 8)?, 16).ok();
    // Each word of an address is written as a number of this machine.
    let ip = if ip.len() == 8 {
        IpAddr::V4(Ipv4Addr::from(word(0)?.to_ne_bytes()))
    } else {
        let words = [word(0)?, word(8)?, word(16)?, word(24)?].map(u32::to_ne_bytes);
        let bytes: [u8; 16] = words.concat().try_into().ok()?;
        IpAddr::V6(Ipv6Addr::from(bytes))
    };
    Some((inode, canonical(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))))
}

fn all_processes() -> impl Iterator<Item = u32> {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    folders.filter_map(|folder| folder.file_name().to_str()?.parse().ok())
}

/// Those of some processes that have these sockets open, as far as the server may look at them.
fn owners(
    sockets: &HashMap<u64, SocketAddr>,
    processes: impl IntoIterator<Item = u32>,
) -> HashMap<SocketAddr, Process> {
    let mut found = HashMap::new();
    for pid in processes {
        let mut process = None;
        for fd in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
            let Some(address) = socket_inode(&fd).and_then(|inode| sockets.get(&inode)) else {
                continue;
            };
            let process = process.get_or_insert_with(|| process_and_program(pid).1);
            if let Some(program) = process.clone() {
                found.insert(*address, Process { pid, program });
            }
        }
    }
    found
}

/// The inode of a descriptor that is a socket: `socket:[INODE]`.
fn socket_inode(fd: &fs::DirEntry) -> Option<u64> {
    let target = fs::read_link(fd.path()).ok()?;
    target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// An IPv4 address that a socket for both families has, as the IPv4 address itself.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_client_on_this_machine_is_its_process() {
        for listens in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(listens) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let name = format!("REST {}", client.local_addr().unwrap());
            let now = SystemClock.now();
            let found = process_of(&name, now).expect("a process");
            assert_eq!(found.pid, std::process::id(), "{listens}");
            // Its events are known when it has hung up.
            drop(client);
            assert_eq!(process_of(&name, now), Some(found));
        }
    }

    #[test]
    fn clients_elsewhere_have_no_process() {
        for name in ["REST 192.0.2.1:5", "mount share", "page", "REST nonsense"] {
            assert_eq!(process_of(name, SystemClock.now()), None, "{name}");
        }
    }

    #[test]
    fn a_line_of_the_kernels_table_is_read() {
        let rest = "01 00000000:00000000 00:00000000 00000000  1000        0";
        let v4 = format!("  1: 0100007F:BEEF 0100007F:2710 {rest} 4711 1 0000000000000000 20");
        let v4_expected = (4711, "127.0.0.1:48879".parse().unwrap());
        assert_eq!(socket(&v4), Some(v4_expected));
        let mapped = "0000000000000000FFFF00000100007F:BEEF";
        let v6 = format!("  1: {mapped} {mapped} {rest} 4711 1");
        assert_eq!(socket(&v6), Some(v4_expected));
        let gone = format!("  1: 0100007F:BEEF 0100007F:2710 {rest} 0 1");
        assert_eq!(socket(&gone), None);
    }
}
