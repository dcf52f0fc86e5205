//! The dependence relation, on the real services. Two requests whose footprints do not conflict
//! give the same answers and the same data in both orders; and where an operation reads or writes
//! something, another one exists with which its order makes a difference.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use hyper::{HeaderMap, Uri};
use latchfs::bench::explore::Footprint;
use latchfs::clock::{ClockChange, SystemClock, TimeSource as _};
use latchfs::http::frame::{Address, Operation, footprint_of};
use latchfs::http::request::{Query, Request};
use latchfs::rules::service::ServiceKind;
use latchfs::server::SERVICES;

use super::every_operation;
use super::lines::{Known, Line};
use crate::common::bench::Bench;
use crate::common::http::{ACCOUNT, Got, Kept};
use crate::common::random::{Random, seeds, steps};

/// Operations whose order cannot make a difference: they tell what never changes, or are refused.
const ALONE: [&str; 14] = [
    "BlobGetAccountInfo",
    "BlobQuery",
    "BlobSetExpiry",
    "ContainerGetAccountInfo",
    "ContainerRename",
    "PageBlobCopyIncremental",
    "ServiceGetAccountInfo",
    "ServiceGetStatistics",
    "ServiceGetUserDelegationKey",
    "ServicePreflight",
    "ShareCreatePermission",
    "ShareGetPermission",
    // The same as the lists that are not Arrow.
    "ContainerListBlobFlatSegmentArrow",
    "ContainerListBlobHierarchySegmentArrow",
];

/// Operations that are conflicts of everything: their parts are operations of their own.
const BATCHES: [&str; 2] = ["ServiceSubmitBatch", "ContainerSubmitBatch"];

/// The requests of a service.
#[derive(Default)]
pub struct Pool {
    pub service: &'static str,
    pub before: Vec<&'static str>,
    pub requests: Vec<&'static str>,
    pub looks: Vec<&'static str>,
    ordered: Vec<(&'static str, &'static str)>,
}

pub fn pools() -> Vec<Pool> {
    let mut pools: Vec<Pool> = Vec::new();
    for line in include_str!("pairs.txt").lines() {
        let Some((mark, text)) = line.split_once(' ') else { continue };
        if mark == "=" {
            pools.push(Pool { service: text, ..Pool::default() });
        }
        let Some(pool) = pools.last_mut() else { continue };
        match mark {
            "." => pool.before.push(text),
            ">" => pool.requests.push(text),
            "?" => pool.looks.push(text),
            "|" => pool.ordered.push(text.split_once(" || ").unwrap()),
            _ => assert_eq!(mark, "=", "{line}"),
        }
    }
    pools
}

/// A request of a pool, with its alternatives chosen. One may be a value that is known later.
pub fn chosen(line: &str, random: &mut Random) -> String {
    let (mut out, mut rest) = (String::new(), line);
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let mut depth = 1;
        let end = after.find(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth == 0
        });
        let inner = &after[..end.unwrap()];
        if inner.starts_with('"') || !inner.contains('|') {
            // An object of JSON, or a value.
            out.push('{');
            rest = after;
        } else {
            out.push_str(random.pick(&inner.split('|').collect::<Vec<_>>()));
            rest = &after[inner.len() + 1..];
        }
    }
    out + rest
}

/// A server whose clock stands, and connections to its services.
pub struct Place {
    bench: Bench,
    connections: BTreeMap<&'static str, Kept>,
    pub known: Known,
}

impl Place {
    pub fn new() -> Self {
        let bench = Bench::start();
        bench.controls().clock.turn(ClockChange::Freeze).unwrap();
        let connect = |kind: &ServiceKind| {
            (kind.label(), Kept::connect(bench.addr(*kind)).expect("a connection"))
        };
        let connections = ServiceKind::ALL.iter().map(connect).collect();
        Self { known: Known::new(&bench), bench, connections }
    }

    /// Empties the server, and makes what the requests need.
    pub fn begin(&mut self, before: &[&str], state: &[String]) {
        self.bench.reset();
        self.bench.controls().clock.turn(ClockChange::Freeze).unwrap();
        self.known = Known::new(&self.bench);
        self.known.set("seen", "\"0x1\"");
        for line in before {
            let got = self.send(line);
            assert!(got.status < 300, "{line}: {}", got.text());
        }
        for line in state {
            self.send(line);
        }
    }

    pub fn send(&mut self, line: &str) -> Got {
        let line = self.known.read(line);
        let got = line.send_over(self.connections.get_mut(line.service.label()).unwrap());
        self.known.keep(&line, &got);
        if got.status < 300 && !got.header("etag").is_empty() {
            self.known.set("seen", got.header("etag"));
        }
        got
    }

    pub fn touched(&self, line: &str) -> (&'static Operation, Footprint) {
        touched(&self.known.read(line))
    }

    /// The answers of both requests in this order, and the data after them.
    fn both(&mut self, [first, second]: [&str; 2], looks: &[&str]) -> (Got, Got, Vec<Got>) {
        // Both say what they knew before.
        let known = self.known.clone();
        let one = self.send(first);
        self.known = known.clone();
        let other = self.send(second);
        self.known = known;
        (one, other, looks.iter().map(|look| self.send(look)).collect())
    }
}

/// What a request asks for, and what it touches.
fn touched(line: &Line) -> (&'static Operation, Footprint) {
    let service = SERVICES.iter().find(|service| service.kind == line.service).unwrap();
    let target = format!("/{ACCOUNT}{}", line.target);
    let uri: Uri = target.parse().unwrap();
    let (_, path) = uri.path()[1..].split_once('/').unwrap();
    let (container, rest) = path.split_once('/').unwrap_or((path, ""));
    let address = Address {
        account: ACCOUNT.to_owned(),
        secondary: false,
        endpoint: format!("http://h/{ACCOUNT}/"),
        container: Some(container.replace("%27", "'")).filter(|name| !name.is_empty()),
        rest: rest.to_owned(),
    };
    let mut headers = HeaderMap::new();
    for (name, value) in &line.headers {
        let name: hyper::header::HeaderName = name.parse().unwrap();
        headers.append(name, value.parse().unwrap());
    }
    let now = SystemClock.now();
    let request = Request {
        method: line.method.parse().unwrap(),
        query: Query::read(uri.query().unwrap_or_default()),
        uri,
        headers,
        body: line.body.clone().into(),
        peer: ([127, 0, 0, 1], 1).into(),
        https: false,
        address,
        id: String::new(),
        now,
        outside: now,
        spelled: Vec::new(),
    };
    let operation = (service.route)(&request).unwrap_or_else(|_| panic!("{line:?}"));
    (operation, footprint_of(service, operation, &request))
}

/// Answers as text, without times, and with a number for each ETag, ID and receipt: equal if they
/// say the same.
pub fn said<'a>(answers: impl IntoIterator<Item = &'a Got>) -> Vec<String> {
    let mut seen = Vec::new();
    answers.into_iter().map(|got| stable(got, &mut seen)).collect()
}

fn stable(got: &Got, seen: &mut Vec<String>) -> String {
    const OWN: [&str; 6] =
        ["date", "last-modified", "server", "x-ms-popreceipt", "x-ms-request-id", "content-md5"];
    let mut headers: Vec<_> = got.headers.iter().collect();
    headers.sort();
    let kept = headers.iter().filter(|(name, _)| {
        let is_time = name.ends_with("-time") || name.ends_with("-on");
        !OWN.contains(&name.as_str())
            && !is_time
            && (name.as_str() != "content-length" || got.body.is_empty())
    });
    let mut text = format!("{} ", got.status);
    for (name, value) in kept {
        let _ = writeln!(text, "{name}: {value}");
    }
    text += &got.text();
    // These differ each time, and a receipt in how many words it has, too.
    for name in ["<PopReceipt>", "RequestId:"] {
        while let Some((before, after)) = text.split_once(name) {
            let is_value = |c: char| c.is_ascii_alphanumeric() || "-+/=".contains(c);
            text = format!("{before}{}", after.trim_start_matches(is_value));
        }
    }
    let mut out = String::new();
    let mut rest = &*text;
    while !rest.is_empty() {
        if let Some(length) = time_at(rest) {
            out.push_str("TIME");
            rest = &rest[length..];
            continue;
        }
        let is_own = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let length = rest.find(|c| !is_own(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let is_file = ["Id>", "-id: "].iter().any(|name| out.ends_with(name)) && digits > 0;
        // An ID may have more letters than digits.
        let is_id = is_file || (word.len() >= 6 && digits * 3 >= word.len());
        if is_id || (word.len() >= 16 && digits > 0) {
            let at = seen.iter().position(|known| known == word).unwrap_or_else(|| {
                seen.push(word.to_owned());
                seen.len() - 1
            });
            let _ = write!(out, "#{at}");
        } else {
            out.push_str(word);
        }
        let mut others = after.chars();
        if let Some(other) = others.next() {
            out.push(other);
        }
        rest = others.as_str();
    }
    out
}

/// The length of the time that a text begins with.
fn time_at(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_day = bytes.len() >= 29 && bytes[3..5] == *b", " && bytes[26..29] == *b"GMT";
    if is_day {
        return Some(29);
    }
    let digits = |range: std::ops::Range<usize>| {
        bytes.get(range).is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    let is_iso = digits(0..4) && digits(5..7) && digits(8..10) && bytes.get(10) == Some(&b'T');
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-:.%".contains(c);
    is_iso.then(|| text.find(|c| !is_part(c)).unwrap_or(text.len()))
}

#[test]
fn requests_whose_footprints_do_not_conflict_give_the_same_in_both_orders() {
    let mut place = Place::new();
    let (mut independent, mut conflicting, mut equal) = (0, 0, 0);
    let mut wrong = Vec::new();
    for seed in seeds(1) {
        let mut random = Random::new(seed);
        for pool in pools() {
            for _ in 0..steps(60) {
                let some = |random: &mut Random| chosen(random.pick(&pool.requests), random);
                let state: Vec<_> = (0..random.below(6)).map(|_| some(&mut random)).collect();
                let (one, other) = (some(&mut random), some(&mut random));
                place.begin(&pool.before, &state);
                let conflicts = place.touched(&one).1.conflicts(&place.touched(&other).1);
                let (a, b, data) = place.both([&one, &other], &pool.looks);
                place.begin(&pool.before, &state);
                let (d, c, after) = place.both([&other, &one], &pool.looks);
                let forth = said([&a, &b].into_iter().chain(&data));
                let back = said([&c, &d].into_iter().chain(&after));
                let is_equal = forth == back;
                if conflicts {
                    conflicting += 1;
                    equal += u32::from(is_equal);
                } else {
                    independent += 1;
                    if !is_equal {
                        let differ = forth.iter().zip(&back).find(|(forth, back)| forth != back);
                        wrong.push(format!("{state:#?}\n{one}\n{other}\n{differ:#?}"));
                    }
                }
            }
        }
    }
    println!("{independent} independent; {conflicting} conflict, {equal} of them without need");
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(independent > conflicting / 2, "{independent} of {}", independent + conflicting);
}

#[test]
fn every_operation_conflicts_with_one_whose_order_makes_a_difference() {
    let mut place = Place::new();
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    let mut check = |place: &mut Place, before: &[&str], pair: [&str; 2], looks: &[&str]| {
        place.begin(before, &[]);
        let [one, other] = pair.map(|line| place.touched(line));
        seen.extend([&one, &other].map(|touched| touched.0.name));
        // The data only where the answers are the same: one file is large.
        let differ = [&[], looks].into_iter().any(|looks| {
            place.begin(before, &[]);
            let (a, b, data) = place.both(pair, looks);
            place.begin(before, &[]);
            let (d, c, after) = place.both([pair[1], pair[0]], looks);
            said([&a, &b].into_iter().chain(&data)) != said([&c, &d].into_iter().chain(&after))
        });
        if !differ {
            wrong.push(format!("{} || {}: the order makes no difference", pair[0], pair[1]));
        } else if !one.1.conflicts(&other.1) {
            wrong.push(format!("{} || {}: no conflict", pair[0], pair[1]));
        }
    };
    for pool in pools() {
        for (one, other) in &pool.ordered {
            check(&mut place, &pool.before, [one, other], &pool.looks);
        }
    }
    // A copy that is to be aborted must stay pending; a pair above shows what that touches.
    let aborts = ["BlobAbortCopyFromURL", "FileAbortCopy"];
    let rows = every_operation::rows().into_iter();
    for row in rows.filter(|row| !aborts.contains(&row.operation)) {
        let Some(look) = row.look else { continue };
        let needs_box = !row.before.iter().any(|line| line.contains("/box?restype=container"));
        let made = needs_box.then_some("PUT blob /box?restype=container");
        let before: Vec<_> = made.into_iter().chain(row.before).collect();
        check(&mut place, &before, [row.request.1, look], &[]);
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    let all = SERVICES.iter().flat_map(|service| service.operations);
    let all = all.map(|operation| operation.name);
    let missing: BTreeSet<_> = all
        .filter(|name| !seen.contains(name) && !ALONE.contains(name) && !BATCHES.contains(name))
        .collect();
    assert!(missing.is_empty(), "no pair shows what they touch: {missing:?}");
}
