//! Small models of a blob, an entity and a queue, and the requests that clients of each send.

use std::net::SocketAddr;

use super::order::Model;
use crate::common::http::{Got, Kept};
use crate::common::random::Random;

/// What one client sends, and how its answer reads.
pub trait Client: Model {
    /// The operations that gates and faults of the test name.
    const OPERATIONS: &'static [&'static str];

    /// A random request, `number` of all of the round, given the answers that the client has had.
    fn plan(random: &mut Random, number: usize, had: &[Self::Answer]) -> Self::Ask;

    /// Sends it. `None`: the connection ended without an answer; an error was refused by a fault.
    fn send(at: SocketAddr, object: &str, ask: &Self::Ask) -> Sent<Self::Answer>;
}

/// What became of a request.
pub enum Sent<A> {
    Answered(A),
    Lost,
    /// A fault answered: nothing was done.
    Refused,
}

/// A value with versions: a blob with its `ETag`s, an entity with its own. The number of a write is
/// its value and its version.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Versioned<const BLOB: bool>(Option<usize>);

pub type Blob = Versioned<true>;
pub type Entity = Versioned<false>;

impl<const BLOB: bool> Default for Versioned<BLOB> {
    fn default() -> Self {
        Self(None)
    }
}

/// The version that a request is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum If {
    Any,
    /// None may be there.
    Absent,
    /// The one of that write, with its `ETag`.
    Is(usize, String),
}

#[derive(Clone, Debug)]
pub enum Ask {
    Read,
    Write(usize, If),
    Remove(If),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The value that was read or written, with its `ETag`.
    Value(usize, String),
    Removed,
    NotFound,
    /// The condition does not hold.
    Mismatch,
    /// It is there already.
    Exists,
}

impl<const BLOB: bool> Model for Versioned<BLOB> {
    type Ask = Ask;
    type Answer = Answer;

    fn after(&self, ask: &Ask, answer: Option<&Answer>) -> Vec<Self> {
        let (next, code) = self.step(ask);
        let same = answer.is_none_or(|answer| match (answer, &code) {
            (Answer::Value(read, _), Answer::Value(held, _)) => read == held,
            (answer, code) => answer == code,
        });
        if same { vec![next] } else { Vec::new() }
    }
}

impl<const BLOB: bool> Versioned<BLOB> {
    /// What the service does, and its answer; the `ETag`s of answers are left empty.
    fn step(&self, ask: &Ask) -> (Self, Answer) {
        let value = |number| Answer::Value(number, String::new());
        match ask {
            Ask::Read => (self.clone(), self.0.map_or(Answer::NotFound, value)),
            Ask::Write(_, If::Absent) if self.0.is_some() => (self.clone(), Answer::Exists),
            Ask::Write(_, If::Is(..)) if self.0.is_none() && !BLOB => {
                (self.clone(), Answer::NotFound)
            }
            Ask::Write(_, If::Is(wanted, _)) if self.0 != Some(*wanted) => {
                (self.clone(), Answer::Mismatch)
            }
            Ask::Write(number, _) => (Self(Some(*number)), value(*number)),
            // A blob that is not there has no ETag that could match; an entity is looked for first.
            Ask::Remove(If::Is(..)) if self.0.is_none() && BLOB => (self.clone(), Answer::Mismatch),
            Ask::Remove(_) if self.0.is_none() => (self.clone(), Answer::NotFound),
            Ask::Remove(If::Is(wanted, _)) if self.0 != Some(*wanted) => {
                (self.clone(), Answer::Mismatch)
            }
            Ask::Remove(_) => (Self(None), Answer::Removed),
        }
    }
}

impl<const BLOB: bool> Client for Versioned<BLOB> {
    const OPERATIONS: &'static [&'static str] = if BLOB {
        &["Put Blob", "Get Blob", "Delete Blob", "*"]
    } else {
        &["Update Entity", "Insert Entity", "Delete Entity", "*"]
    };

    fn plan(random: &mut Random, number: usize, had: &[Answer]) -> Ask {
        let seen = had.iter().rev().find_map(|answer| match answer {
            Answer::Value(number, etag) => Some(If::Is(*number, etag.clone())),
            _ => None,
        });
        let condition = match random.below(4) {
            0 => If::Absent,
            1 => If::Any,
            _ => seen.clone().unwrap_or(If::Any),
        };
        match random.below(5) {
            0 => Ask::Remove(if random.once_in(2) { If::Any } else { seen.unwrap_or(If::Any) }),
            1 => Ask::Read,
            _ => Ask::Write(number, condition),
        }
    }

    fn send(at: SocketAddr, object: &str, ask: &Ask) -> Sent<Answer> {
        let got =
            if BLOB { blob_request(at, object, ask) } else { entity_request(at, object, ask) };
        let Some(got) = got else { return Sent::Lost };
        if got.status == 503 {
            return Sent::Refused;
        }
        let etag = got.header("etag").to_owned();
        Sent::Answered(match (got.status, ask) {
            (200, Ask::Read) => Answer::Value(number_in(&got.text()), etag),
            (201 | 204, Ask::Write(number, _)) => Answer::Value(*number, etag),
            (202 | 204, Ask::Remove(_)) => Answer::Removed,
            (404, _) => Answer::NotFound,
            (412, _) => Answer::Mismatch,
            (409, _) => Answer::Exists,
            _ => panic!("{ask:?}: {} {}", got.status, got.text()),
        })
    }
}

/// The number that a blob or an entity of the test holds.
fn number_in(text: &str) -> usize {
    let digits = text.rsplit_once('#').map_or(text, |(_, rest)| rest);
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().unwrap_or_else(|_| panic!("no number in {text}"))
}

fn condition(of: &If) -> Option<(&'static str, &str)> {
    match of {
        If::Any => None,
        If::Absent => Some(("if-none-match", "*")),
        If::Is(_, etag) => Some(("if-match", etag)),
    }
}

fn ask(
    at: SocketAddr,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Option<Got> {
    Kept::connect(at).unwrap().ask(method, target, headers, body.as_bytes()).ok()
}

fn blob_request(at: SocketAddr, name: &str, wanted: &Ask) -> Option<Got> {
    let target = format!("/box/{name}");
    match wanted {
        Ask::Read => ask(at, "GET", &target, &[], ""),
        Ask::Write(number, of) => {
            let mut headers = vec![("x-ms-blob-type", "BlockBlob")];
            headers.extend(condition(of));
            ask(at, "PUT", &target, &headers, &format!("#{number}"))
        }
        Ask::Remove(of) => ask(at, "DELETE", &target, condition(of).as_slice(), ""),
    }
}

fn entity_request(at: SocketAddr, name: &str, wanted: &Ask) -> Option<Got> {
    let target = format!("/Rows(PartitionKey='p',RowKey='{name}')");
    let json = ("content-type", "application/json");
    match wanted {
        Ask::Read => ask(at, "GET", &target, &[("accept", "application/json")], ""),
        Ask::Write(number, If::Absent) => {
            let body = format!(r##"{{"PartitionKey":"p","RowKey":"{name}","A":"#{number}"}}"##);
            ask(at, "POST", "/Rows", &[json, ("prefer", "return-no-content")], &body)
        }
        Ask::Write(number, of) => {
            let mut headers = vec![json];
            headers.extend(condition(of));
            ask(at, "PUT", &target, &headers, &format!(r##"{{"A":"#{number}"}}"##))
        }
        Ask::Remove(of) => {
            let condition = condition(of).unwrap_or(("if-match", "*"));
            ask(at, "DELETE", &target, &[condition], "")
        }
    }
}

/// A queue: its messages by number, each with the number of the request whose receipt counts, and
/// whether it can be seen.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Queue(Vec<(usize, usize, bool)>);

#[derive(Clone, Debug)]
pub enum QueueAsk {
    Put(usize),
    Take(usize),
    /// A message, by the receipt of a request; with the ID and the receipt as they were answered.
    Delete {
        message: usize,
        receipt: usize,
        id: String,
        pop: String,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueueAnswer {
    Put {
        number: usize,
        id: String,
        pop: String,
    },
    Took {
        message: usize,
        by: usize,
        id: String,
        pop: String,
    },
    Empty,
    Deleted,
    /// There is no such message.
    Gone,
    /// The receipt is not the last one.
    Stale,
}

impl Model for Queue {
    type Ask = QueueAsk;
    type Answer = QueueAnswer;

    fn after(&self, ask: &QueueAsk, answer: Option<&QueueAnswer>) -> Vec<Self> {
        let mut next = self.clone();
        match (ask, answer) {
            (QueueAsk::Put(number), None | Some(QueueAnswer::Put { .. })) => {
                next.0.push((*number, *number, true));
                vec![next]
            }
            (QueueAsk::Take(_), Some(QueueAnswer::Empty)) => {
                if self.0.iter().any(|(.., visible)| *visible) { Vec::new() } else { vec![next] }
            }
            (QueueAsk::Take(by), answer) => {
                let wanted = |message: usize| match answer {
                    Some(QueueAnswer::Took { message: took, .. }) => message == *took,
                    _ => true,
                };
                let visible = self.0.iter().enumerate().filter(|(_, one)| one.2 && wanted(one.0));
                let taken = |(index, _): (usize, &(usize, usize, bool))| {
                    let mut next = self.clone();
                    (next.0[index].1, next.0[index].2) = (*by, false);
                    next
                };
                visible.map(taken).collect()
            }
            (QueueAsk::Delete { message, receipt, .. }, answer) => {
                let found = self.0.iter().position(|one| one.0 == *message);
                let code = match found {
                    None => QueueAnswer::Gone,
                    Some(at) if self.0[at].1 != *receipt => QueueAnswer::Stale,
                    Some(at) => {
                        next.0.remove(at);
                        QueueAnswer::Deleted
                    }
                };
                if answer.is_none_or(|answer| *answer == code) { vec![next] } else { Vec::new() }
            }
            _ => Vec::new(),
        }
    }
}

impl Client for Queue {
    const OPERATIONS: &'static [&'static str] =
        &["Put Message", "Get Messages", "Delete Message", "*"];

    fn plan(random: &mut Random, number: usize, had: &[QueueAnswer]) -> QueueAsk {
        let receipts: Vec<_> = had
            .iter()
            .filter_map(|answer| match answer.clone() {
                QueueAnswer::Put { number, id, pop } => {
                    Some(QueueAsk::Delete { message: number, receipt: number, id, pop })
                }
                QueueAnswer::Took { message, by, id, pop } => {
                    Some(QueueAsk::Delete { message, receipt: by, id, pop })
                }
                _ => None,
            })
            .collect();
        match random.below(4) {
            1 if !receipts.is_empty() => receipts[random.below(receipts.len())].clone(),
            0 | 1 => QueueAsk::Put(number),
            _ => QueueAsk::Take(number),
        }
    }

    fn send(at: SocketAddr, queue: &str, wanted: &QueueAsk) -> Sent<QueueAnswer> {
        let messages = format!("/{queue}/messages");
        let got = match wanted {
            QueueAsk::Put(number) => {
                let text =
                    format!("<QueueMessage><MessageText>#{number}</MessageText></QueueMessage>");
                ask(at, "POST", &messages, &[], &text)
            }
            QueueAsk::Take(_) => ask(at, "GET", &messages, &[], ""),
            QueueAsk::Delete { id, pop, .. } => {
                ask(at, "DELETE", &format!("{messages}/{id}?popreceipt={pop}"), &[], "")
            }
        };
        let Some(got) = got else { return Sent::Lost };
        let text = got.text();
        let part = |name: &str| {
            let found =
                text.split_once(&format!("<{name}>")).and_then(|(_, rest)| rest.split_once('<'));
            found.map(|(part, _)| part.to_owned())
        };
        let (id, pop) = (part("MessageId"), part("PopReceipt").unwrap_or_default());
        Sent::Answered(match (got.status, wanted, id) {
            (503, ..) => return Sent::Refused,
            (201, QueueAsk::Put(number), Some(id)) => QueueAnswer::Put { number: *number, id, pop },
            (200, QueueAsk::Take(_), None) => QueueAnswer::Empty,
            (200, QueueAsk::Take(by), Some(id)) => {
                let message = number_in(&part("MessageText").unwrap_or_default());
                QueueAnswer::Took { message, by: *by, id, pop }
            }
            (204, QueueAsk::Delete { .. }, _) => QueueAnswer::Deleted,
            (404, QueueAsk::Delete { .. }, _) => QueueAnswer::Gone,
            (400, QueueAsk::Delete { .. }, _) => QueueAnswer::Stale,
            _ => panic!("{wanted:?}: {} {text}", got.status),
        })
    }
}
