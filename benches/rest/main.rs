//! What requests cost: processor time of the server per request, and requests per second, beside
//! nginx with the same bytes and Azurite with the same signed requests; then resets and restores,
//! start, memory and size of the program.
//!
//! `cargo bench --bench rest`; a word behind `--` picks the rows that have it in their names.
//! nginx takes part if it is installed, Azurite if `LATCHFS_BENCH_AZURITE` names a folder where
//! npm installed it. `LATCHFS_BENCH_DIR` names the disk, `LATCHFS_BENCH_PROGRAM` another program
//! than this build's, and `LATCHFS_BENCH_OTHER` one that is measured beside it.
//!
//! A figure is the best of three rounds, with sixteen connections; a round goes over all
//! servers, so that a busy machine is busy for all of them.

mod load;
mod process;
mod rows;
mod servers;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use load::{Client, Cost, Request, pour};
use rows::{ROWS, Row, SMALL, Step};
use serde_json::json;
use servers::{Server, Service};

const ROUNDS: usize = 3;
/// Connections at a time. With one alone, the wake-ups of an idle core double every figure.
const CONNECTIONS: usize = 16;
/// Files that are made before memory is looked at again.
const FILES: usize = 10_000;
const STARTS: usize = 5;
/// How many times a request's cost Azurite's is to be.
const AZURITE_GOAL: f64 = 5.0;
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
    let costs = measure(&columns, &rows, quick);
    let title = format!("Processor time of the server per request, us; {CONNECTIONS} at a time");
    print_table(&title, &columns, &rows, &costs, |cost| cost.cpu_us);
    let title = format!("Requests per second; {CONNECTIONS} at a time");
    print_table(&title, &columns, &rows, &costs, |cost| cost.per_second);
    print_goals(&columns, &rows, &costs);
    drop(columns);
    if wanted.is_empty() {
        print_sizes(folder.path(), quick);
    }
}

/// Starts all servers that there are.
fn columns(folder: &Path) -> Vec<Column> {
    let place = |name: &str| {
        let place = folder.join(name);
        fs::create_dir(&place).expect("a folder can be made");
        place
    };
    let mut columns = Vec::new();
    for (name, program) in servers::programs() {
        let server = servers::latchfs(&program, Some(&place(name)), &[]);
        rows::prepare(&mut Client::of(&server));
        rows::prepare_files(&mut Client::of(&server));
        columns.push(Column { name, server, step: |row| Some(row.latchfs) });
    }
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
fn measure(columns: &[Column], rows: &[&Row], quick: bool) -> Vec<Costs> {
    let mut best = vec![vec![None; columns.len()]; rows.len()];
    let new_clients = |column: &Column| -> Vec<Client> {
        (0..CONNECTIONS).map(|_| Client::of(&column.server)).collect()
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
                let first = (round + 1) * 100_000;
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
            cell(cost("Azurite").map(|it| it / own), Some(AZURITE_GOAL), |it, goal| it >= goal);
        println!("| {} | {nginx} | {azurite} |", row.name);
    }
}

/// Resets and restores, start, memory and size of each program.
fn print_sizes(folder: &Path, quick: bool) {
    let programs = servers::programs();
    let names: Vec<_> = programs.iter().map(|(name, _)| *name).collect();
    println!("\n| | {} |\n|---|{}", names.join(" | "), "---:|".repeat(names.len()));
    let print = |what: &str, cells: Vec<String>| println!("| {what} | {} |", cells.join(" | "));

    for (place, disk) in [("in memory", None), ("on disk", Some(folder))] {
        let states = states(&programs, disk, if quick { 1 } else { STATES });
        for (what, times) in STATE_ROWS.iter().zip(states) {
            let cells = times.into_iter().map(|time| format!("{time:.1?}")).collect();
            print(&format!("{what}, {place}"), cells);
        }
    }
    let mut starts = vec![Vec::new(); programs.len()];
    for number in 0..if quick { 1 } else { STARTS } {
        for ((name, program), starts) in programs.iter().zip(&mut starts) {
            let place = folder.join(format!("start {name} {number}"));
            starts.push(start(program, &place, &[]));
        }
    }
    let starts: Vec<_> = starts.into_iter().map(median).collect();
    print(
        &format!("start to first 200 of each service, median of {STARTS}"),
        starts.iter().map(|(took, _)| format!("{took:.1?}")).collect(),
    );
    print(
        "processor time of that start",
        starts.iter().map(|(_, used)| format!("{used:.1?}")).collect(),
    );
    // Older programs have no `--load`.
    let took = median((0..3).map(|number| loaded(folder, number)).collect());
    println!(
        "| `--load` of {LOADED} more than that start | {:.1?} |",
        took.saturating_sub(starts[0].0)
    );
    let files = if quick { 100 } else { FILES };
    let memory: Vec<_> =
        programs.iter().map(|(name, program)| memory(program, &folder.join(name), files)).collect();
    print("resident, idle", memory.iter().map(|(idle, _)| mega(*idle)).collect());
    print(
        &format!("resident, after {files} files of 4 KiB"),
        memory.iter().map(|(_, after)| mega(*after)).collect(),
    );
    let size = |program| mega(fs::metadata(program).expect("it was built").len());
    print("program", programs.iter().map(|(_, program)| size(program)).collect());
}

fn median<T: Ord + Copy>(mut figures: Vec<T>) -> T {
    figures.sort_unstable();
    figures[figures.len() / 2]
}

fn mega(bytes: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    let mega = bytes as f64 / 1e6;
    format!("{mega:.1} MB")
}

/// Until a new server has answered in each service: the time, and its processor time.
fn start(program: &Path, folder: &Path, more: &[&str]) -> (Duration, Duration) {
    let begun = Instant::now();
    let server = servers::latchfs(program, Some(folder), more);
    let mut client = Client::of(&server);
    for service in [Service::File, Service::Blob, Service::Queue] {
        client.ask(service, Request::new("GET", "/?comp=list", 200));
    }
    let accept = [("accept", "application/json")];
    client.ask(Service::Table, Request::new("GET", "/Tables", 200).headers(&accept));
    (begun.elapsed(), server.cpu())
}

/// Bytes in memory of a new server, and after so many files.
fn memory(program: &Path, folder: &Path, files: usize) -> (u64, u64) {
    let server = servers::latchfs(program, Some(&folder.join("fresh")), &[]);
    let idle = server.resident();
    let mut client = Client::of(&server);
    client.ask(Service::File, Request::new("PUT", "/bench?restype=share", 201));
    (0..files).for_each(|number| rows::put_file(&mut client, &format!("file{number:05}")));
    (idle, server.resident())
}

/// What the tests of an application have, or more, in each service.
const OBJECTS: usize = 100;
const STATES: usize = 20;
const STATE_ROWS: [&str; 3] = [
    "reset with 100 objects in each service",
    "restore of them after a reset",
    "restore where nothing changed",
];

/// The median times of resets and restores, by row and program.
fn states(programs: &[(&str, PathBuf)], disk: Option<&Path>, rounds: usize) -> Vec<Vec<Duration>> {
    let mut clients: Vec<_> = programs
        .iter()
        .map(|(name, program)| {
            let folder = disk.map(|disk| disk.join(name).join("states"));
            let server = servers::latchfs(program, folder.as_deref(), &[]);
            let mut client = Client::of(&server);
            rows::prepare(&mut client);
            rows::prepare_files(&mut client);
            for number in 0..OBJECTS {
                rows::put_blob(&mut client, &format!("blob{number}"), SMALL);
                rows::put_file(&mut client, &format!("file{number}"));
                rows::put_message(&mut client, "bench", "");
                rows::insert(&mut client, number);
            }
            control(&mut client, "PUT", "states/full");
            (server, client)
        })
        .collect();
    let mut times = vec![vec![Vec::new(); programs.len()]; STATE_ROWS.len()];
    for _ in 0..rounds {
        for (column, (_, client)) in clients.iter_mut().enumerate() {
            let calls = ["reset", "states/full/restore", "states/full/restore"];
            for (times, call) in times.iter_mut().zip(calls) {
                let begun = Instant::now();
                control(client, "POST", call);
                times[column].push(begun.elapsed());
            }
        }
    }
    times.into_iter().map(|row| row.into_iter().map(median).collect()).collect()
}

fn control(client: &mut Client, method: &str, path: &str) {
    let target = format!("/api/v1/{path}");
    let headers = [("x-latchfs-client", "bench"), ("content-type", "application/json")];
    let request = Request::new(method, &target, 200).headers(&headers);
    client.ask(Service::Admin, request.body(b"{}"));
}

/// What a start takes longer that has so much to make.
const LOADED: &str = "100 containers, 1,000 blobs and 1,000 entities";

fn loaded(folder: &Path, number: usize) -> Duration {
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
    let arguments = ["--load", &file.to_string_lossy()];
    start(&servers::program(), &folder.join(format!("loaded{number}")), &arguments).0
}
