//! The stream of events: a page at a time, or as server-sent events.
//!
//! Decides how many clients may follow at a time, how many pages are made at a time, and how far a
//! follower may be behind: events that it does not read in time are lost to it, and their number is
//! reported. The content of an event and the length of a page are decided in [`super::log`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::StatusCode;
use hyper::body::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{sleep, timeout};

use super::body::{AdminResponse, json as json_answer, stream};
use super::call::ApiCall;
use super::calls::{Api, blocking};
use super::failure::ApiFailure;
use super::log::{GetLog, StreamRequest};
use super::site::Peer;
use crate::journal::Journal;
use crate::journal::json::{EventPage, KINDS};

/// The path of the stream.
pub const PATH: &str = "/api/v1/events";

/// The most owners, and the most strangers, that follow the stream as server-sent events at a time.
pub const FOLLOWERS_MAX: usize = 32;

/// The most pages that are made at a time for each of them. A page takes several times its length
/// while it is made.
pub const PAGES_MAX: usize = 4;

/// How many pages wait for a follower that does not read.
const PAGES_AHEAD: usize = 2;

/// How many pages a follower is sent at once in a [`WINDOW`]. When more events come, they are sent
/// together at its end, and adding one wakes no thread meanwhile.
const PAGES_AT_ONCE: u32 = 16;

const WINDOW: Duration = Duration::from_millis(20);

/// How often a follower to whom nothing happens is sent a comment: a client that is gone is
/// noticed then.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// Asks for events of the stream.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct GetEvents {
    /// Events after the one of this number; all that are kept without it
    pub after: Option<u64>,
    /// For how long a page waits for its first event; 0 without it
    #[schemars(range(max = 600_000))]
    pub wait_ms: Option<u64>,
    /// Of this service alone: file, blob, queue or table
    #[schemars(extend("enum" = ["file", "blob", "queue", "table"]))]
    pub service: Option<String>,
    /// Of these kinds alone, with commas between
    #[schemars(extend("pattern" = kinds_pattern()))]
    pub kind: Option<String>,
    /// The token, for clients that send no headers
    pub token: Option<String>,
}

fn kinds_pattern() -> String {
    let word = KINDS.join("|");
    format!("^({word})(,({word}))*$")
}

/// The kinds that a text names.
fn kinds(text: Option<&str>) -> Result<Vec<String>, ApiFailure> {
    let kind = |word: &str| {
        let known = || format!("there is no kind '{word}', only {}", KINDS.join(", "));
        KINDS.contains(&word).then(|| word.to_owned()).ok_or_else(|| ApiFailure::bad(known()))
    };
    text.into_iter().flat_map(|text| text.split(',')).map(kind).collect()
}

impl Api {
    /// Events: one page, or a stream of all further ones.
    pub(super) async fn events(
        self: Arc<Self>,
        call: ApiCall,
        of: GetEvents,
    ) -> Result<AdminResponse, ApiFailure> {
        let wanted = StreamRequest {
            after: of.after.or(call.last_event).unwrap_or_default(),
            of_account: call.account.clone(),
            service: of.service,
            kinds: kinds(of.kind.as_deref())?,
        };
        let journal = Arc::clone(&self.serving.controls().journal);
        // An account that is not there has no events.
        let session = self.session(&ApiCall { account: None, ..call.clone() })?;
        let ask = move |request: StreamRequest| session.stream(&request);
        let pages = Arc::clone(&self.places(call.peer).pages);
        let reader = Reader { ask: Box::new(ask), journal, wanted, pages };
        if call.follows {
            call.peer.check_may_stay()?;
            return self.follow(call.peer, reader);
        }
        let patience = Duration::from_millis(of.wait_ms.unwrap_or_default());
        if !patience.is_zero() {
            call.peer.check_may_stay()?;
        }
        let Made { page, permit } = reader.first_page(patience).await?;
        let answer = json_answer(StatusCode::OK, &json!(page));
        drop(permit);
        Ok(answer)
    }

    fn follow(&self, peer: Peer, reader: Reader) -> Result<AdminResponse, ApiFailure> {
        let place = Arc::clone(&self.places(peer).followers).try_acquire_owned().map_err(|_| {
            ApiFailure::busy(format!("{FOLLOWERS_MAX} clients follow the events already"))
        })?;
        let (sender, receiver) = mpsc::channel(PAGES_AHEAD);
        tokio::spawn(send_all(reader, sender, place));
        Ok(stream(StatusCode::OK, "text/event-stream", receiver, ()))
    }

    /// A page of the log of an account.
    pub(super) async fn log(
        self: Arc<Self>,
        call: ApiCall,
        of: GetLog,
    ) -> Result<AdminResponse, ApiFailure> {
        let patience = Duration::from_millis(of.wait_ms);
        let _place = self.wait(call.peer, patience)?;
        let session = Arc::new(self.session(&call)?);
        let end = Instant::now() + patience;
        let mut of = of;
        loop {
            let (asked, wanted) = (Arc::clone(&session), of.clone());
            let page = self.blocking(call.peer, move || asked.log(&wanted)).await??;
            let left = end.saturating_duration_since(Instant::now());
            if !page.events.is_empty() || page.lost > 0 || left.is_zero() {
                return Ok(json_answer(StatusCode::OK, &json!(page)));
            }
            of.after = page.last;
            if page.last == page.newest {
                // The next look tells whether anything came.
                drop(timeout(left, self.serving.controls().journal.wait_past(page.last)).await);
            }
        }
    }
}

struct Reader {
    /// Asks [`super::log`] for a page.
    ask: Box<dyn FnMut(StreamRequest) -> EventPage + Send>,
    journal: Arc<Journal>,
    wanted: StreamRequest,
    pages: Arc<Semaphore>,
}

/// A page that is not written yet, one of [`PAGES_MAX`].
struct Made {
    page: EventPage,
    permit: OwnedSemaphorePermit,
}

impl Reader {
    /// The next page. The reader goes on after it.
    async fn page(mut self) -> Result<(Self, Made), ApiFailure> {
        let permit = Arc::clone(&self.pages).acquire_owned().await;
        let permit = permit.map_err(|_| ApiFailure::failed("no more pages are made"))?;
        // Programs behind process ids are looked up: that may wait.
        blocking(move || {
            let page = (self.ask)(self.wanted.clone());
            self.wanted.after = page.last;
            (self, Made { page, permit })
        })
        .await
    }

    /// The next page that has events, or what there is when `patience` is over.
    async fn first_page(self, patience: Duration) -> Result<Made, ApiFailure> {
        let end = Instant::now() + patience;
        let mut reader = self;
        let mut lost = 0;
        loop {
            let (next, Made { mut page, permit }) = reader.page().await?;
            reader = next;
            lost += page.lost;
            page.lost = lost;
            let left = end.saturating_duration_since(Instant::now());
            if !page.events.is_empty() || left.is_zero() {
                return Ok(Made { page, permit });
            }
            drop(permit);
            if page.last == page.newest {
                // The next look tells whether anything came.
                drop(timeout(left, reader.journal.wait_past(page.last)).await);
            }
        }
    }
}

/// Sends pages until the client is gone.
async fn send_all(reader: Reader, sender: mpsc::Sender<Bytes>, _place: OwnedSemaphorePermit) {
    let mut reader = reader;
    let mut text = String::from("retry: 1000\n\n");
    let mut pace = Pace { since: Instant::now(), pages: 0 };
    loop {
        let (last, newest) = match reader.page().await {
            Ok((next, Made { page, permit })) => {
                reader = next;
                write_page(&mut text, &page);
                drop(permit);
                (page.last, page.newest)
            }
            Err(failure) => return log::error!("events are no longer sent: {failure:?}"),
        };
        if !text.is_empty() && sender.send(std::mem::take(&mut text).into()).await.is_err() {
            return;
        }
        if last < newest {
            continue;
        }
        let pause = pace.after_page(Instant::now());
        let next = async {
            sleep(pause).await;
            if timeout(SIGN_OF_LIFE, reader.journal.wait_past(last)).await.is_err() {
                text.push_str(": nothing new\n\n");
            }
        };
        tokio::select! {
            () = next => {}
            () = sender.closed() => return,
        }
    }
}

/// How many pages were sent since the beginning of a window.
struct Pace {
    since: Instant,
    pages: u32,
}

impl Pace {
    /// The pause before the page that follows one that was sent now.
    fn after_page(&mut self, now: Instant) -> Duration {
        let left = WINDOW.saturating_sub(now.saturating_duration_since(self.since));
        if left.is_zero() {
            *self = Self { since: now, pages: 0 };
        }
        self.pages += 1;
        if self.pages < PAGES_AT_ONCE { Duration::ZERO } else { left }
    }
}

fn write_page(text: &mut String, page: &EventPage) {
    if page.lost > 0 {
        let data = json!({ "lost": page.lost });
        text.extend(["event: lost\ndata: ", &data.to_string(), "\n\n"]);
    }
    for row in &page.events {
        // JSON on one line: a line break in a value is written as an escape.
        let (seq, data) = (row.seq.to_string(), json!(row).to_string());
        text.extend(["id: ", &seq, "\nevent: ", &row.event, "\ndata: ", &data, "\n\n"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::TestClock;
    use crate::journal::row::ServerChange;
    use crate::journal::{Event, Reads};

    fn happen(journal: &Journal) {
        let by = String::new();
        let change =
            ServerChange { kind: "clock", by, id: None, detail: String::new(), is_barrier: false };
        journal.push(None, Event::Changed(change));
    }

    /// A reader of a journal of the newest four events.
    fn reader() -> (Arc<Journal>, Reader) {
        let journal = Arc::new(Journal::keeping(Arc::<TestClock>::default(), [4, 4]));
        let asked = Arc::clone(&journal);
        let ask = move |request: StreamRequest| {
            let page = asked.after(request.after, usize::MAX, Reads::All);
            let row = |seq| json!({ "seq": seq, "time": "", "system": "", "event": "clock" });
            let rows = page.rows.iter().map(|entry| row(entry.seq));
            let events = rows.map(|row| serde_json::from_value(row).unwrap()).collect();
            let (lost, last, newest) = (page.lost, page.last, page.newest);
            EventPage { events, lost, last, newest }
        };
        let wanted = StreamRequest::default();
        let pages = Arc::new(Semaphore::new(1));
        let reader = Reader { ask: Box::new(ask), journal: Arc::clone(&journal), wanted, pages };
        (journal, reader)
    }

    #[tokio::test]
    async fn a_follower_that_stalls_loses_events_and_is_told_how_many() {
        let (events, reader) = reader();
        let places = Arc::new(Semaphore::new(1));
        let place = Arc::clone(&places).try_acquire_owned().unwrap();
        let (sender, mut receiver) = mpsc::channel(PAGES_AHEAD);
        let follower = tokio::spawn(send_all(reader, sender.clone(), place));
        // As many pages as wait for the follower, and the one that waits for a place among them.
        for page in 0..=PAGES_AHEAD {
            happen(&events);
            let ahead = PAGES_AHEAD - page.min(PAGES_AHEAD);
            while sender.capacity() > ahead.saturating_sub(1) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        // Nobody who adds waits for it.
        (0..100).for_each(|_| happen(&events));
        drop(sender);
        let (mut text, end) = (String::new(), "id: 103\n");
        while !text.contains(end) {
            let page = timeout(Duration::from_secs(20), receiver.recv()).await.unwrap().unwrap();
            text.push_str(std::str::from_utf8(&page).unwrap());
        }
        let numbers: Vec<u64> =
            text.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect();
        let lost: Vec<u64> = text
            .lines()
            .filter_map(|line| line.strip_prefix("data: {\"lost\":")?.strip_suffix('}'))
            .map(|number| number.parse().unwrap())
            .collect();
        assert!(numbers.is_sorted() && numbers.len() < 20, "{numbers:?}");
        assert_eq!(numbers.len() as u64 + lost.iter().sum::<u64>(), 103, "{text}");
        drop(receiver);
        follower.await.unwrap();
        assert_eq!(places.available_permits(), 1, "the place is free again");
    }

    #[test]
    fn events_are_sent_at_once_until_they_come_too_fast() {
        let start = Instant::now();
        let mut pace = Pace { since: start, pages: 0 };
        // A client that answers each event: a page in two milliseconds.
        for step in 0..1_000 {
            assert_eq!(pace.after_page(start + step * WINDOW / 10), Duration::ZERO, "{step}");
        }
        let start = start + 1_000 * WINDOW;
        let pauses = [(); 20].map(|()| pace.after_page(start));
        let at_once = pauses.iter().take_while(|pause| pause.is_zero()).count();
        assert_eq!(at_once, PAGES_AT_ONCE as usize - 1);
        assert_eq!(pauses[at_once], WINDOW);
        assert_eq!(pace.after_page(start + WINDOW), Duration::ZERO);
    }

    #[tokio::test]
    async fn a_page_waits_for_its_first_event() {
        let (events, reader) = reader();
        let page = tokio::spawn(reader.first_page(Duration::from_secs(20)));
        tokio::task::yield_now().await;
        happen(&events);
        assert_eq!(page.await.unwrap().unwrap().page.events.len(), 1);
    }

    #[tokio::test]
    async fn a_reader_that_waits_for_events_keeps_no_other_from_its_page() {
        let (_events, waiting) = reader();
        let pages = Arc::clone(&waiting.pages);
        let waiting = tokio::spawn(waiting.first_page(Duration::from_secs(20)));
        tokio::task::yield_now().await;
        let (_, mut other) = reader();
        other.pages = Arc::clone(&pages);
        let made = timeout(Duration::from_secs(10), other.first_page(Duration::ZERO)).await;
        let made = made.unwrap().unwrap();
        assert_eq!(pages.available_permits(), 0, "a page that is not written yet counts");
        drop(made);
        waiting.abort();
    }

    #[test]
    fn a_page_is_written_as_events_with_their_numbers_and_what_was_lost() {
        let row = json!({
            "seq": 7, "time": "t", "system": "s", "event": "request", "path": "a\nb",
        });
        let events = vec![serde_json::from_value(row).unwrap()];
        let mut text = String::new();
        write_page(&mut text, &EventPage { events, lost: 3, last: 7, newest: 7 });
        assert!(
            text.starts_with("event: lost\ndata: {\"lost\":3}\n\nid: 7\nevent: request\ndata: ")
        );
        assert_eq!(text.lines().count(), 7, "{text}");
    }
}
