//! The tables of leases in `src/rules/lease/tests/tables.txt`, tried through HTTP on whatever can
//! be leased: blobs, containers, shares and files.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::http::Got;
use crate::common::pages::{page, section};

pub const A: &str = "00000000-0000-4000-8000-00000000000a";
pub const B: &str = "00000000-0000-4000-8000-00000000000b";
pub const C: &str = "00000000-0000-4000-8000-00000000000c";
pub const ID: &str = "x-ms-lease-id";

pub type Headers<'a> = &'a [(&'a str, &'a str)];

/// Sends a request: method, target, headers, body.
pub type Ask<'a> = &'a dyn Fn(&str, &str, Headers<'_>, &[u8]) -> Got;
/// Sends an operation to an address, with more headers.
pub type Send<'a> = Box<dyn Fn(&str, Headers<'_>) -> Got + 'a>;

/// A server, and one kind of object on it that can be leased.
pub struct Leased<'a> {
    pub ask: Ask<'a>,
    pub pass: &'a dyn Fn(Duration),
    /// What the codes call the object: `Blob`.
    pub noun: &'a str,
    /// Whether a refusal says who has the lease.
    pub tells: bool,
    made: Cell<usize>,
}

/// An operation on what is leased.
pub struct Use<'a> {
    /// The first word of the rows that it follows.
    pub class: &'a str,
    pub name: &'a str,
    /// The status of its success.
    pub ok: u16,
    /// Makes the object of that name; its address, as `/con/NAME?`, for parameters to follow.
    pub make: Box<dyn Fn(&str) -> String + 'a>,
    pub send: Send<'a>,
}

/// The rows of a table, without its head.
fn rows(heading: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let all = page("src/rules/lease/tests/tables.txt");
    let lines = section(&all, heading).lines().filter(|line| line.contains(" | "));
    let mut rows = lines.map(|line| line.split('|').map(|cell| cell.trim().to_owned()).collect());
    (rows.next().unwrap(), rows.collect())
}

fn id(letter: &str) -> Option<String> {
    match letter {
        "-" => None,
        "A" => Some(A.to_owned()),
        "B" => Some(B.to_owned()),
        "C" => Some(C.to_owned()),
        other => Some(other.to_owned()),
    }
}

/// The headers of a lease action: `acquire 15 A`, `change A B`, `break -`.
pub fn action(words: &str) -> Vec<(&'static str, String)> {
    const PROPOSED: &str = "x-ms-proposed-lease-id";
    let words: Vec<_> = words.split_whitespace().collect();
    let given: Vec<(_, Option<String>)> = match words[..] {
        ["acquire", seconds, proposed] => {
            vec![("x-ms-lease-duration", id(seconds)), (PROPOSED, id(proposed))]
        }
        ["renew" | "release", held] => vec![(ID, id(held))],
        ["change", from, to] => vec![(ID, id(from)), (PROPOSED, id(to))],
        ["break"] => vec![],
        ["break", period] => vec![("x-ms-lease-break-period", id(period))],
        _ => panic!("no action {words:?}"),
    };
    let mut headers = vec![("x-ms-lease-action", words[0].to_owned())];
    headers.extend(given.into_iter().filter_map(|(name, value)| Some((name, value?))));
    headers
}

impl<'a> Leased<'a> {
    pub fn new((noun, tells): (&'a str, bool), ask: Ask<'a>, pass: &'a dyn Fn(Duration)) -> Self {
        Self { ask, pass, noun, tells, made: Cell::new(0) }
    }

    pub fn act(&self, at: &str, words: &str) -> Got {
        let headers = action(words);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        (self.ask)("PUT", &format!("{at}comp=lease"), &headers, b"")
    }

    fn head(&self, at: &str, headers: Headers<'_>) -> Got {
        (self.ask)("HEAD", at.trim_end_matches(['?', '&']), headers, b"")
    }

    /// All that a client reads of the object; nothing if it is gone.
    fn look(&self, at: &str) -> Option<(BTreeMap<String, String>, Vec<u8>)> {
        let mut got = (self.ask)("GET", at.trim_end_matches(['?', '&']), &[], b"");
        got.headers.retain(|name, _| name != "date" && name != "x-ms-request-id");
        (got.status == 200).then(|| (got.headers.into_iter().collect(), got.body))
    }

    /// The state of the lease with the letter of its ID, which is `X` for the one made up.
    fn show(&self, at: &str, fresh: &str) -> String {
        let got = self.head(at, &[]).is(200);
        let state = got.header("x-ms-lease-state");
        let locked = if matches!(state, "leased" | "breaking") { "locked" } else { "unlocked" };
        assert_eq!(got.header("x-ms-lease-status"), locked, "{state}");
        let known = [("A", A), ("B", B), ("C", C), ("X", fresh)];
        let knows = |id: &str| {
            let got = self.head(at, &[(ID, id)]);
            got.status == 200 || got.code() == "LeaseLost"
        };
        let letters = known.iter().filter(|(_, id)| !id.is_empty() && knows(id));
        let letters: Vec<_> = letters.map(|(letter, _)| format!("({letter})")).collect();
        format!("{}{}{}", state[..1].to_uppercase(), &state[1..], letters.concat())
    }

    /// An object whose lease is in that state, thirty seconds after it was acquired.
    fn bring(&self, make: &dyn Fn(&str) -> String, state: &str) -> String {
        self.made.set(self.made.get() + 1);
        let at = make(&format!("n{}", self.made.get()));
        let seconds = match (state, self.noun) {
            ("Infinite(A)", _) | (_, "File") => "-1",
            ("Expired(A)", _) => "30",
            _ => "60",
        };
        if state != "Available" {
            self.act(&at, &format!("acquire {seconds} A")).is(201);
        }
        (self.pass)(Duration::from_secs(20));
        match (state, self.noun) {
            ("Breaking(A)", _) => self.act(&at, "break 20").is(202),
            ("Broken(A)", "File") => self.act(&at, "break").is(202),
            ("Broken(A)", _) => self.act(&at, "break 0").is(202),
            _ => self.head(&at, &[]).is(200),
        };
        (self.pass)(Duration::from_secs(10));
        at
    }

    /// Fails unless the request was refused as the table calls it.
    #[track_caller]
    fn is_refused(&self, got: Got, word: &str) {
        let noun = self.noun;
        let (status, code) = match word {
            "missing" => (412, "LeaseIdMissing".to_owned()),
            "mismatch" => (412, format!("LeaseIdMismatchWith{noun}Operation")),
            "absent" => (412, format!("LeaseNotPresentWith{noun}Operation")),
            "lost" => (412, "LeaseLost".to_owned()),
            "finite" => (412, "InfiniteLeaseDurationRequired".to_owned()),
            "taken" => (409, "LeaseAlreadyPresent".to_owned()),
            "wrong ID" => (409, "LeaseIdMismatchWithLeaseOperation".to_owned()),
            "no lease" => (409, "LeaseNotPresentWithLeaseOperation".to_owned()),
            "breaking, acquired" => (409, "LeaseIsBreakingAndCannotBeAcquired".to_owned()),
            "breaking, changed" => (409, "LeaseIsBreakingAndCannotBeChanged".to_owned()),
            "broken, renewed" => (409, "LeaseIsBrokenAndCannotBeRenewed".to_owned()),
            "bad duration" | "bad period" => (400, "InvalidHeaderValue".to_owned()),
            "no duration" => (400, "MissingRequiredHeader".to_owned()),
            other => panic!("no refusal {other}"),
        };
        let text = got.refused(status, &code).text();
        if self.tells && matches!(word, "missing" | "taken") && !text.is_empty() {
            let by = |what: &str, action: &str| text.contains(what) && text.contains(action);
            let leased = by("[latchfs: leased", "(acquire)");
            assert!(leased || by("[latchfs: lease broken", "(break)"), "{text}");
        }
    }

    /// Tries every cell of a table of actions. No action changes what is leased.
    pub fn try_actions(&self, heading: &str, make: impl Fn(&str) -> String) {
        let (head, rows) = rows(heading);
        for row in rows {
            for (state, expected) in head.iter().zip(&row).skip(1) {
                let at = self.bring(&make, state);
                let told = format!("{} when {state}", row[0]);
                let version = || {
                    let head = self.head(&at, &[]).is(200);
                    ["etag", "last-modified"].map(|name| head.header(name).to_owned())
                };
                let before = version();
                let words: Vec<_> = row[0].split(' ').collect();
                let (got, ok) = match words[..] {
                    ["time"] => {
                        (self.pass)(Duration::from_mins(1));
                        (None, 200)
                    }
                    ["acquire", proposed] => {
                        let seconds = if self.noun == "File" { "-1" } else { "15" };
                        (Some(self.act(&at, &format!("acquire {seconds} {proposed}"))), 201)
                    }
                    ["break", ..] => (Some(self.act(&at, &row[0])), 202),
                    _ => (Some(self.act(&at, &row[0])), 200),
                };
                assert_eq!(version(), before, "{told}");
                let mut fresh = String::new();
                if let Some(got) = got {
                    if !expected.contains("Available") && !expected.contains('(') {
                        self.is_refused(got, expected);
                        assert_eq!(self.show(&at, ""), *state, "a refusal changed it: {told}");
                        continue;
                    }
                    let got = got.is(ok);
                    assert_eq!(got.header("etag"), before[0], "{told}");
                    let named = match words[..] {
                        ["acquire" | "renew", id] | ["change", _, id] => id,
                        _ => "",
                    };
                    match named {
                        "" => assert_eq!(got.header(ID), "", "{told}"),
                        "-" => got.header(ID).clone_into(&mut fresh),
                        named => assert_eq!(got.header(ID), id(named).unwrap(), "{told}"),
                    }
                    assert!(named != "-" || fresh.len() == 36, "{told}: {fresh}");
                }
                assert_eq!(self.show(&at, &fresh), *expected, "{told}");
            }
        }
    }

    /// Takes every walk of the table, each on an object of its own.
    pub fn try_walks(&self, make: impl Fn(&str) -> String) {
        for row in rows("walks of a timed lease").1 {
            self.made.set(self.made.get() + 1);
            let at = make(&format!("n{}", self.made.get()));
            for step in row[1].split("; ") {
                let told = format!("{}: {step}", row[0]);
                if let Some(seconds) = step.strip_prefix('+') {
                    (self.pass)(Duration::from_secs_f64(seconds.parse().unwrap()));
                } else if let Some(shown) = step.strip_prefix("lasts ") {
                    let got = self.head(&at, &[]).is(200);
                    assert_eq!(
                        got.header("x-ms-lease-duration"),
                        shown.trim_matches('-'),
                        "{told}"
                    );
                } else if step.ends_with(')') || step == "Available" {
                    assert_eq!(self.show(&at, ""), step, "{told}");
                } else {
                    let (asked, expected) = step.split_once(" -> ").unwrap_or((step, ""));
                    let got = self.act(&at, asked);
                    match expected.parse::<u64>() {
                        Ok(_) => {
                            assert_eq!(got.is(202).header("x-ms-lease-time"), expected, "{told}");
                        }
                        Err(_) if expected.is_empty() => {
                            assert!(got.status < 300, "{told}: {got:?}");
                        }
                        Err(_) => self.is_refused(got, expected),
                    }
                }
            }
        }
    }

    /// Tries every use in every state of the table, with and without an ID. A refused one changes
    /// nothing. Where `forgets` is false, what is written keeps the ID of a lease that is over.
    pub fn try_uses(&self, heading: &str, uses: &[Use<'_>], forgets: bool) {
        let (head, rows) = rows(heading);
        for one in uses {
            let mut tried = 0;
            for row in &rows {
                let (class, letter) = row[0].split_once(' ').unwrap();
                if class != one.class {
                    continue;
                }
                for (state, expected) in head.iter().zip(row).skip(1) {
                    let at = self.bring(&*one.make, state);
                    let told = format!("{} with {letter} when {state}", one.name);
                    let before = self.look(&at);
                    let id = id(letter);
                    let headers: Vec<_> = id.iter().map(|id| (ID, id.as_str())).collect();
                    let got = (one.send)(&at, &headers);
                    tried += 1;
                    if !expected.starts_with("ok") {
                        self.is_refused(got, expected);
                        assert_eq!(self.look(&at), before, "a refusal changed it: {told}");
                        continue;
                    }
                    assert_eq!(got.status, one.ok, "{told}: {got:?}");
                    if self.look(&at).is_some() {
                        let forgotten = forgets && expected.ends_with("Available");
                        let after = if forgotten { "Available" } else { state };
                        assert_eq!(
                            self.show(&at, ""),
                            after.replace("Infinite", "Leased"),
                            "{told}"
                        );
                    }
                }
            }
            assert!(tried > 0, "no row for {}", one.class);
        }
    }
}
