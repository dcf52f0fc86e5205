//! What requests cost: processor time of the server per request, and requests per second, beside
//! nginx with the same bytes and Azurite with the same signed requests; then start, memory and
//! size of the program.
//!
//! `cargo bench --bench rest`; a word behind `--` picks the rows that have it in their names.
//! nginx takes part if it is installed, Azurite if `LATCHFS_BENCH_AZURITE` names a folder where
//! npm installed it. `LATCHFS_BENCH_DIR` names the disk, `LATCHFS_BENCH_PROGRAM` another program
//! than this build's.
//!
//! A figure is the best of three rounds, with one connection and with sixteen; a round goes over
//! all servers, so that a busy machine is busy for all of them.

mod load;
mod process;
mod rows;
mod servers;

use std::env;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use load::{Client, Cost, Request, pour};
use rows::{ROWS, Row, SMALL, Step};
use serde_json::json;
use servers::{Server, Service};

const ROUNDS: usize = 3;
/// Connections at a time.
const CONNECTIONS: [usize; 2] = [1, 16];
/// Files that are made before memory is looked at again.
const FILES: usize = 10_000;
const STARTS: usize = 5;
/// Azurite is sent this part of the requests.
const SLOW: usize = 5;

/// One of those that are compared.
struct Column {
    name: &'static str,
    server: Server,
    step: fn(&Row) -> Option<Step>,
}

/// The costs of a row, one for each column that has it.
type Costs = Vec<Option<Cost>>;

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let quick = words.iter().any(|word| word == "--test");
    let wanted: Vec<_> = words.iter().filter(|word| !word.starts_with("--")).collect();
    let named =
        |row: &&Row| wanted.is_empty() || wanted.iter().any(|word| row.name.contains(*word));
    let rows: Vec<&Row> = ROWS.iter().filter(named).collect();
    let folder = servers::folder();
    let columns = columns(folder.path());
    for connections in CONNECTIONS {
        let costs = measure(&columns, &rows, connections, quick);
        let title =
            format!("Processor time of the server per request, us; {connections} at a time");
        print_table(&title, &columns, &rows, &costs, |cost| cost.cpu_us);
        let title = format!("Requests per second; {connections} at a time");
        print_table(&title, &columns, &rows, &costs, |cost| cost.per_second);
        print_goals(&columns, &rows, &costs);
    }
    drop(columns);
    if wanted.is_empty() {
        print_sizes(folder.path(), if quick { 100 } else { FILES });
    }
}

/// Starts all servers that there are.
fn columns(folder: &Path) -> Vec<Column> {
    let place = |name: &str| {
        let place = folder.join(name);
        fs::create_dir(&place).expect("a folder can be made");
        place
    };
    let latchfs = servers::latchfs(&place("latchfs"));
    rows::prepare(&mut Client::of(&latchfs));
    rows::prepare_files(&mut Client::of(&latchfs));
    let mut columns =
        vec![Column { name: "latchfs", server: latchfs, step: |row| Some(row.latchfs) }];
    let off: fn(&Row) -> Option<Step> = |row| row.nginx.map(|steps| steps[0]);
    let on: fn(&Row) -> Option<Step> = |row| row.nginx.map(|steps| steps[1]);
    for (name, step) in [("nginx, sendfile off", off), ("nginx, sendfile on", on)] {
        let place = place(&name.replace([',', ' '], "-"));
        if let Some(server) = servers::nginx(&place) {
            for (name, length) in [("small", SMALL), ("large", rows::LARGE), ("overwritten", 1)] {
                let file = place.join("files").join(name);
                fs::write(file, rows::bytes(length)).expect("there is room");
            }
            columns.push(Column { name, server, step });
        }
    }
    if let Some(server) = servers::azurite(&place("azurite")) {
        rows::prepare(&mut Client::of(&server));
        columns.push(Column { name: "Azurite", server, step: |row| row.azurite });
    }
    columns
}

/// The best cost of each row and column.
fn measure(columns: &[Column], rows: &[&Row], connections: usize, quick: bool) -> Vec<Costs> {
    let mut best = vec![vec![None; columns.len()]; rows.len()];
    let new_clients = |column: &Column| -> Vec<Client> {
        (0..connections).map(|_| Client::of(&column.server)).collect()
    };
    let mut clients: Vec<Vec<Client>> = columns.iter().map(new_clients).collect();
    for round in 0..ROUNDS {
        for (row, cells) in rows.iter().zip(&mut best) {
            for ((column, clients), cell) in columns.iter().zip(&mut clients).zip(cells) {
                let Some(step) = (column.step)(row) else { continue };
                // A slow server is measured as well with fewer.
                let fewer = if column.name == "Azurite" { SLOW } else { 1 };
                let requests = if quick { 16 } else { row.requests / fewer };
                // The same for all rows, and of no other round.
                let first = (connections * ROUNDS + round) * 100_000;
                let cost = pour(&column.server, clients, (first, requests), step);
                *cell = Some(cell.unwrap_or(Cost::NONE).or_better(cost));
            }
        }
    }
    best
}

fn print_table(
    title: &str,
    columns: &[Column],
    rows: &[&Row],
    costs: &[Costs],
    value: impl Fn(&Cost) -> f64,
) {
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    println!("\n{title}:\n\n| | {} |", names.join(" | "));
    println!("|---|{}", "---:|".repeat(names.len()));
    for (row, costs) in rows.iter().zip(costs) {
        let shown =
            |cost: &Option<Cost>| cost.map_or(String::new(), |it| format!("{:.1}", value(&it)));
        let cells: Vec<String> = costs.iter().map(shown).collect();
        println!("| {} | {} |", row.name, cells.join(" | "));
    }
}

/// What the processor time of latchfs is beside the others', and what it should be.
fn print_goals(columns: &[Column], rows: &[&Row], costs: &[Costs]) {
    println!("\n| processor time | multiple of nginx's, at most | Azurite's multiple, at least |");
    println!("|---|---:|---:|");
    for (row, costs) in rows.iter().zip(costs) {
        let cost = |name: &str| {
            let column = columns.iter().position(|column| column.name.starts_with(name))?;
            costs[column].map(|cost| cost.cpu_us)
        };
        let Some(own) = cost("latchfs") else { continue };
        let cell = |ratio: Option<f64>, goal: Option<f64>, met: fn(f64, f64) -> bool| {
            let Some(ratio) = ratio else { return String::new() };
            goal.map_or(format!("{ratio:.2}"), |goal| {
                let verdict = if met(ratio, goal) { "met" } else { "MISSED" };
                format!("{ratio:.2} ({goal} {verdict})")
            })
        };
        let nginx = cell(cost("nginx").map(|it| own / it), row.nginx_goal, |it, goal| it <= goal);
        let azurite =
            cell(cost("Azurite").map(|it| it / own), row.azurite_goal, |it, goal| it >= goal);
        println!("| {} | {nginx} | {azurite} |", row.name);
    }
}

/// Start, memory, size of the program.
fn print_sizes(folder: &Path, files: usize) {
    #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    let mega = |bytes: u64| bytes as f64 / 1e6;
    let start = |number| {
        let begun = Instant::now();
        let server = servers::latchfs(&folder.join(format!("start{number}")));
        first_answer(&server);
        (begun.elapsed(), server.cpu())
    };
    let mut starts: Vec<(Duration, Duration)> = (0..STARTS).map(start).collect();
    starts.sort_unstable();
    let program = fs::metadata(servers::program()).expect("it was built").len();

    let server = servers::latchfs(&folder.join("fresh"));
    let idle = server.resident();
    let mut client = Client::of(&server);
    client.ask(Service::File, Request::new("PUT", "/bench?restype=share", 201));
    let size = SMALL.to_string();
    let headers = [("x-ms-type", "file"), ("x-ms-content-length", size.as_str())];
    for number in 0..files {
        let target = format!("/bench/file{number:05}");
        let request = Request::new("PUT", &target, 201).headers(&headers);
        client.ask(Service::File, request.body(rows::bytes(SMALL)));
    }
    println!("\n| | |\n|---|---:|");
    let (took, used) = starts[STARTS / 2];
    println!("| start to first 200 of each service, median of {STARTS} | {took:.1?} |");
    println!("| processor time of that start | {used:.1?} |");
    println!("| `--load` of {LOADED} more than that start | {:.1?} |", loaded(folder, took));
    println!("| resident, idle | {:.1} MB |", mega(idle));
    println!("| resident, after {files} files of 4 KiB | {:.1} MB |", mega(server.resident()));
    println!("| program | {:.1} MB |", mega(program));
}

/// What a start takes longer that has so much to make.
const LOADED: &str = "100 containers, 1,000 blobs and 1,000 entities";

fn loaded(folder: &Path, start: Duration) -> Duration {
    let blob = |number| json!({ "name": format!("blob{number}"), "text": "x".repeat(SMALL) });
    let container = |number| {
        let blobs: Vec<_> = (0..10).map(blob).collect();
        json!({ "name": format!("container{number}"), "blobs": blobs })
    };
    let entity =
        |number| json!({ "PartitionKey": "p", "RowKey": format!("{number}"), "N": number });
    let containers: Vec<_> = (0..100).map(container).collect();
    let entities: Vec<_> = (0..1_000).map(entity).collect();
    let load =
        json!({ "containers": containers, "tables": [{ "name": "t00", "entities": entities }] });
    let file = folder.join("load.json");
    fs::write(&file, load.to_string()).expect("the file can be written");
    let begun = Instant::now();
    let server =
        servers::latchfs_with(&folder.join("loaded"), &["--load", &file.to_string_lossy()]);
    first_answer(&server);
    begun.elapsed().saturating_sub(start)
}

/// Asks each service once.
fn first_answer(server: &Server) {
    let mut client = Client::of(server);
    for service in [Service::File, Service::Blob, Service::Queue] {
        client.ask(service, Request::new("GET", "/?comp=list", 200));
    }
    let accept = [("accept", "application/json")];
    client.ask(Service::Table, Request::new("GET", "/Tables", 200).headers(&accept));
}
