//! What the REST face costs: processor time of the server per request, and requests per second,
//! beside nginx with the same bytes and Azurite's blob service with the same signatures; then
//! start, memory and size.
//!
//! `cargo bench --bench rest`. nginx takes part if it is installed, Azurite if
//! `LATCHFS_BENCH_AZURITE` names a folder where npm installed `azurite` and `node`.
//! `LATCHFS_BENCH_DIR` names the disk, `LATCHFS_BENCH_SECONDS` how long each figure is measured.
//!
//! A figure is the best of three rounds; a round goes over all servers, so that a busy machine is
//! busy for all of them.

mod load;
mod process;
mod servers;

use std::env;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use load::{Ask, Connection, ask_once, pour};
use servers::Server;

const ROUNDS: usize = 3;
const SMALL: usize = 4 << 10;
const LARGE: usize = 4 << 20;
/// Files that are made before memory is looked at again.
const FILES: usize = 10_000;
const STARTS: usize = 5;
/// The account that everybody knows, and a place in it for the files.
const PLACE: &str = "/devstoreaccount1/bench";

/// One of those that are compared.
struct Column {
    name: &'static str,
    addr: SocketAddr,
    pid: u32,
    /// The requests of all rows, each with the status of its answer.
    asks: [(Ask, u16); 4],
}

const ROWS: [&str; 4] = ["GET 4 KiB", "GET 4 MiB", "PUT 4 KiB", "PUT 4 MiB"];

/// A measured cell.
#[derive(Clone, Copy)]
struct Figure {
    cpu_us: f64,
    per_second: f64,
}

fn main() {
    let quick = env::args().any(|word| word == "--test");
    let seconds = env::var("LATCHFS_BENCH_SECONDS").ok().and_then(|text| text.parse().ok());
    let duration = Duration::from_secs_f64(if quick { 0.05 } else { seconds.unwrap_or(2.0) });
    let disk = env::var_os("LATCHFS_BENCH_DIR").map_or_else(env::temp_dir, PathBuf::from);
    let folder = tempfile::tempdir_in(disk).expect("a temporary folder can be made");
    let place = |name: &str| {
        let place = folder.path().join(name);
        fs::create_dir(&place).expect("a folder can be made");
        place
    };
    let latchfs = servers::latchfs(&place("latchfs"));
    let nginx_place = place("nginx");
    let nginx = servers::nginx(&nginx_place);
    let azurite = servers::azurite(&place("azurite"));
    let mut columns = vec![of_latchfs(&latchfs)];
    columns.extend(nginx.iter().flat_map(|server| of_nginx(server, &nginx_place)));
    columns.extend(azurite.iter().map(of_azurite));
    let figures = measure(&columns, duration);
    print_table("Processor time of the server per request, us", &columns, &figures, |it| it.cpu_us);
    print_table("Requests per second", &columns, &figures, |it| it.per_second);
    print_ratios(&columns, &figures);
    drop((latchfs, nginx, azurite));
    print_sizes(&place("fresh"), if quick { 100 } else { FILES });
}

/// Bytes that are not all alike.
fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from(at % 251).expect("less than 256")).collect()
}

fn of_latchfs(server: &Server) -> Column {
    let share = Ask::signed("PUT", &format!("{PLACE}?restype=share"), &[], b"");
    ask_once(server.addr, &share, 201);
    let get = |name| Ask::signed("GET", &format!("{PLACE}/{name}"), &[], b"");
    let put = |name: &str, length: usize| {
        let (target, size) = (format!("{PLACE}/{name}"), length.to_string());
        let create = [("x-ms-type", "file"), ("x-ms-content-length", size.as_str())];
        ask_once(server.addr, &Ask::signed("PUT", &target, &create, b""), 201);
        let range = format!("bytes=0-{}", length - 1);
        let headers = [("x-ms-write", "update"), ("x-ms-range", range.as_str())];
        let write = Ask::signed("PUT", &format!("{target}?comp=range"), &headers, &bytes(length));
        ask_once(server.addr, &write, 201);
        write
    };
    let (small, large) = (put("small", SMALL), put("large", LARGE));
    let asks = [(get("small"), 200), (get("large"), 200), (small, 201), (large, 201)];
    Column { name: "latchfs", addr: server.addr, pid: server.pid(), asks }
}

fn of_nginx(server: &Server, place: &Path) -> Vec<Column> {
    for (name, length) in [("small", SMALL), ("large", LARGE)] {
        let file = place.join("files").join(name);
        fs::write(file, bytes(length)).expect("there is room");
    }
    let column = |(name, location)| {
        let get = |file| Ask::signed("GET", &format!("/{location}/{file}"), &[], b"");
        let put = |file, length| {
            let target = format!("/{location}/{location}-{file}");
            let ask = Ask::signed("PUT", &target, &[], &bytes(length));
            ask_once(server.addr, &ask, 201);
            ask
        };
        let (small, large) = (put("small", SMALL), put("large", LARGE));
        let asks = [(get("small"), 200), (get("large"), 200), (small, 204), (large, 204)];
        Column { name, addr: server.addr, pid: server.pid(), asks }
    };
    [("nginx, sendfile off", "off"), ("nginx, sendfile on", "on")].map(column).into()
}

fn of_azurite(server: &Server) -> Column {
    let container = Ask::signed("PUT", &format!("{PLACE}?restype=container"), &[], b"");
    ask_once(server.addr, &container, 201);
    let get = |name| Ask::signed("GET", &format!("{PLACE}/{name}"), &[], b"");
    let put = |name, length| {
        let headers = [("x-ms-blob-type", "BlockBlob")];
        let ask = Ask::signed("PUT", &format!("{PLACE}/{name}"), &headers, &bytes(length));
        ask_once(server.addr, &ask, 201);
        ask
    };
    let (small, large) = (put("small", SMALL), put("large", LARGE));
    let asks = [(get("small"), 200), (get("large"), 200), (small, 201), (large, 201)];
    Column { name: "Azurite", addr: server.addr, pid: server.pid(), asks }
}

/// The best figure of each row and column.
fn measure(columns: &[Column], duration: Duration) -> Vec<Vec<Figure>> {
    let none = Figure { cpu_us: f64::MAX, per_second: 0.0 };
    let mut best = vec![vec![none; columns.len()]; ROWS.len()];
    for _ in 0..ROUNDS {
        for (row, cells) in best.iter_mut().enumerate() {
            for (column, cell) in columns.iter().zip(cells) {
                let (ask, status) = &column.asks[row];
                // Code and caches warm.
                pour(column.addr, ask, *status, duration / 10);
                let before = process::cpu(column.pid);
                let (answers, took) = pour(column.addr, ask, *status, duration);
                let used = process::cpu(column.pid).saturating_sub(before);
                #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
                let answers = answers as f64;
                cell.cpu_us = cell.cpu_us.min(used.as_secs_f64() * 1e6 / answers);
                cell.per_second = cell.per_second.max(answers / took.as_secs_f64());
            }
        }
    }
    best
}

fn print_table(
    title: &str,
    columns: &[Column],
    figures: &[Vec<Figure>],
    value: impl Fn(&Figure) -> f64,
) {
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    println!("\n{title}:\n\n| | {} |", names.join(" | "));
    println!("|---|{}", "---:|".repeat(names.len()));
    for (name, row) in ROWS.iter().zip(figures) {
        let cells: Vec<String> = row.iter().map(|figure| format!("{:.1}", value(figure))).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
}

/// The processor time of latchfs as a multiple of the others'.
fn print_ratios(columns: &[Column], figures: &[Vec<Figure>]) {
    let others: Vec<&str> = columns[1..].iter().map(|column| column.name).collect();
    println!("\nProcessor time of latchfs as a multiple of:\n\n| | {} |", others.join(" | "));
    println!("|---|{}", "---:|".repeat(others.len()));
    for (name, row) in ROWS.iter().zip(figures) {
        let ratio = |other: &Figure| format!("{:.3}", row[0].cpu_us / other.cpu_us);
        let cells: Vec<String> = row[1..].iter().map(ratio).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
}

/// Start, memory, size of the program.
fn print_sizes(folder: &Path, files: usize) {
    #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    let mega = |bytes: u64| bytes as f64 / 1e6;
    let list = Ask::signed("GET", "/devstoreaccount1/?comp=list", &[], b"");
    let answers = |addr| Connection::open(addr).send(&list) == 200;
    let start = |number| servers::time_to_answer(&folder.join(format!("start{number}")), answers);
    let mut starts: Vec<Duration> = (0..STARTS).map(start).collect();
    starts.sort_unstable();
    let program = fs::metadata(env!("CARGO_BIN_EXE_latchfs")).expect("it was built").len();

    let server = servers::latchfs(folder);
    let idle = process::resident(server.pid());
    ask_once(server.addr, &Ask::signed("PUT", &format!("{PLACE}?restype=share"), &[], b""), 201);
    let mut connection = Connection::open(server.addr);
    let (size, body) = (SMALL.to_string(), bytes(SMALL));
    let headers = [("x-ms-type", "file"), ("x-ms-content-length", size.as_str())];
    for number in 0..files {
        let target = format!("{PLACE}/file{number:05}");
        assert_eq!(connection.send(&Ask::signed("PUT", &target, &headers, &body)), 201);
    }
    let after = process::resident(server.pid());
    println!("\n| | |\n|---|---:|");
    println!("| start to first 200, median of {STARTS} | {:.1?} |", starts[STARTS / 2]);
    println!("| resident, idle | {:.1} MB |", mega(idle));
    println!("| resident, after {files} files of 4 KiB | {:.1} MB |", mega(after));
    println!("| program | {:.1} MB |", mega(program));
}
