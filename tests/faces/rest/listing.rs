//! A long directory, page by page through HTTP, while others add and remove names.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::rest::fixture::Fixture;

/// Names of a directory in the order of pages, with the time that each page took.
struct Walk {
    names: Vec<String>,
    times: Vec<Duration>,
}

fn walk(fixture: &Fixture, page: usize) -> Walk {
    let mut walked = Walk { names: Vec::new(), times: Vec::new() };
    let mut marker = String::new();
    loop {
        let target =
            format!("/docs/many?restype=directory&comp=list&maxresults={page}&marker={marker}");
        let begun = Instant::now();
        let got = fixture.get(&target).is(200);
        walked.times.push(begun.elapsed());
        let text = got.text();
        walked.names.extend(between(&text, "Name").map(str::to_owned));
        match between(&text, "NextMarker").next() {
            Some(next) if !next.is_empty() => next.clone_into(&mut marker),
            _ => return walked,
        }
    }
}

/// What stands in each element of that name.
fn between<'a>(xml: &'a str, element: &str) -> impl Iterator<Item = &'a str> {
    let (open, close) = (format!("<{element}>"), format!("</{element}>"));
    let mut rest = xml;
    std::iter::from_fn(move || {
        let (_, after) = rest.split_once(&open)?;
        let (inside, after) = after.split_once(&close)?;
        rest = after;
        Some(inside)
    })
}

/// Makes files that stay, lists them in pages, and then again while other names come and go.
fn list_many(files: usize, page: usize) -> [Walk; 2] {
    let fixture = Fixture::new();
    let many = fixture.on_disk("many");
    fs::create_dir(&many).unwrap();
    let stays: BTreeSet<String> = (0..files).map(|number| format!("stay{number:06}")).collect();
    for name in &stays {
        fs::File::create(many.join(name)).unwrap();
    }
    let quiet = walk(&fixture, page);
    assert!(quiet.names.iter().eq(&stays), "{} names", quiet.names.len());
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let headers = [("x-ms-type", "file"), ("x-ms-content-length", "0")];
            let mut round = 0;
            while !over.load(Ordering::Relaxed) {
                let name = format!("stay{:06}-goes", round * 7_919 % files);
                if round % 2 == 0 {
                    fs::write(many.join(&name), "").unwrap();
                    fs::remove_file(many.join(&name)).unwrap();
                } else {
                    let target = format!("/docs/many/{name}");
                    fixture.put(&target, &headers).is(201);
                    fixture.delete(&target).is(202);
                }
                round += 1;
            }
        });
        let mut busy = walk(&fixture, page);
        over.store(true, Ordering::Relaxed);
        busy.names.retain(|name| !name.ends_with("goes"));
        assert!(busy.names.iter().eq(&stays), "{} names", busy.names.len());
        [quiet, busy]
    })
}

#[test]
fn each_name_that_stays_comes_exactly_once() {
    let [quiet, busy] = list_many(5_000, 250);
    assert_eq!(quiet.times.len(), 20);
    assert!(busy.times.len() >= 20);
}

/// The time of a page: the best of many in a row, since others use the machine too.
fn best(times: &[Duration]) -> Duration {
    *times.iter().min().expect("some pages")
}

#[test]
#[ignore = "two hundred thousand files"]
fn the_last_page_of_200_000_files_takes_no_longer_than_the_first() {
    for Walk { times, .. } in list_many(200_000, 5_000) {
        let pages = times.len();
        // The very first reads the directory, which all others are spared.
        let (first, last) = (best(&times[1..pages / 4]), best(&times[pages * 3 / 4..]));
        println!("{pages} pages: {:?}, an early one {first:?}, a late one {last:?}", times[0]);
        assert!(pages >= 40 && last <= 3 * first);
    }
}
