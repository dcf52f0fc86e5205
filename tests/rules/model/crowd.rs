//! Several threads on few files, and what must hold whatever the order of their steps.
//!
//! A span of an open begins after the engine granted it and ends before the engine is asked to
//! end it: it lies within the open's real life, so two spans that overlap and exclude each other
//! are a real conflict. An open that does not share D looks for its file at the end of its span:
//! it must still be there, under the same name.

use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use latchfs::clock::SystemClock;
use latchfs::file::rules::create::{Disposition, OpenRequest, Options};
use latchfs::file::rules::{Access, Denial, Rights, ShareMode};
use latchfs::file::service::{Case, FileError, Handle, Share};
use latchfs::journal::{AccountJournal, Happening, Journal, Reads};
use latchfs::rules::{Context, FileId, HandleId};

use super::random::{Random, seeds, steps};
use super::rules::{D, exclude};
use crate::common::asking::{caller, entries, open_share, path};
use crate::common::names::ShareNames as _;

const THREADS: u64 = 4;
/// For each thread, unless time is up before.
const STEPS: usize = 15_000;
const TIME_MAX: Duration = Duration::from_secs(5);
const OPENS_MAX: usize = 4;
const EVENTS_MAX: usize = 1 << 22;
const PATHS: [&str; 6] = ["a", "b", "d", "d/a", "d/b", "A"];

const NOTING: &str = "nobody panics while it notes something";

/// An open from its grant on.
#[derive(Clone, Copy, Debug)]
struct Span {
    handle: HandleId,
    file: FileId,
    access: u8,
    share: u8,
    from: u64,
}

/// What the threads share.
struct Crowd {
    share: Share,
    time: AtomicU64,
    spans: Mutex<Vec<Span>>,
    /// When somebody began to end an open.
    ends: Mutex<HashMap<HandleId, u64>>,
}

struct Member<'a> {
    crowd: &'a Crowd,
    who: Context,
    random: Random,
    held: Vec<(Handle, Span)>,
}

impl Crowd {
    fn tick(&self) -> u64 {
        self.time.fetch_add(1, Ordering::SeqCst)
    }

    fn ends_now(&self, handle: HandleId) {
        let now = self.tick();
        self.ends.lock().expect(NOTING).entry(handle).or_insert(now);
    }
}

/// A refusal is an answer; a failure of the disk is none.
fn answered<T>(answer: Result<T, FileError>) -> Option<T> {
    match answer {
        Ok(done) => Some(done),
        Err(FileError::Denied(_)) => None,
        Err(FileError::Store(error)) => panic!("the disk could not: {error}"),
    }
}

impl Member<'_> {
    fn step(&mut self) {
        let (name, to) = (path(self.random.pick(&PATHS)), path(self.random.pick(&PATHS)));
        let share = &self.crowd.share;
        match self.random.below(100) {
            _ if self.held.len() >= OPENS_MAX => self.close(),
            0..40 => self.open(),
            40..62 => self.close(),
            62..70 => {
                answered(share.unlink(&self.who, &name));
            }
            70..72 => {
                answered(share.rmdir(&self.who, &name));
            }
            72..80 => {
                let replace = self.random.once_in(2);
                answered(share.rename(&self.who, &name, &to, replace));
            }
            80..83 => {
                answered(share.link(&self.who, &name, &to));
            }
            83..90 => {
                let delete = self.random.once_in(2);
                if let Some((handle, _)) = self.held.last() {
                    answered(share.set_disposition(handle, delete));
                }
            }
            90..95 => {
                if let Some((handle, _)) = self.held.last() {
                    answered(share.write(handle, 0, b"some bytes"));
                    answered(share.read(handle, 0, 100));
                }
            }
            _ => self.force_somebody(),
        }
    }

    fn open(&mut self) {
        let access = u8::try_from(self.random.below(8)).expect("three bits");
        let tolerated = if self.random.once_in(2) { 7 } else { self.random.below(8) };
        let tolerated = u8::try_from(tolerated).expect("three bits");
        let name = self.random.pick(&PATHS);
        let request = OpenRequest {
            rights: Rights::from(Access::from_bits(access)),
            disposition: self.random.pick(&[Disposition::Open, Disposition::OpenIf]),
            options: Options {
                delete_on_close: access & D != 0 && self.random.once_in(3),
                directory: name == "d",
                non_directory: false,
            },
            ..OpenRequest::plain(Access::NONE, ShareMode::from_bits(tolerated))
        };
        let Some(opened) = answered(self.crowd.share.open(&self.who, &path(name), &request)) else {
            return;
        };
        let (handle, file) = (opened.handle.id(), opened.handle.file());
        let from = self.crowd.tick();
        let span = Span { handle, file, access, share: tolerated, from };
        self.crowd.spans.lock().expect(NOTING).push(span);
        self.held.push((opened.handle, span));
    }

    fn close(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let number = self.random.below(self.held.len());
        let (handle, span) = self.held.swap_remove(number);
        match self.crowd.share.stat_handle(&handle) {
            Ok(stat) => assert_eq!(stat.id, span.file, "another file is under the name: {span:?}"),
            Err(FileError::Denied(Denial::HandleClosed)) => {}
            Err(error) => panic!("{span:?} lost its file: {error}"),
        }
        self.crowd.ends_now(span.handle);
        match self.crowd.share.close(&handle) {
            Ok(()) | Err(FileError::Denied(Denial::HandleClosed)) => {}
            Err(error) => panic!("closing: {error}"),
        }
    }

    fn force_somebody(&mut self) {
        let victim = {
            let spans = self.crowd.spans.lock().expect(NOTING);
            let recent = spans.len().min(8);
            (recent > 0).then(|| spans[spans.len() - 1 - self.random.below(recent)])
        };
        if let Some(span) = victim {
            self.crowd.ends_now(span.handle);
            answered(self.crowd.share.force_close(&self.who, span.handle));
        }
    }
}

/// No two opens that exclude each other lived at once.
fn check_spans(crowd: &Crowd) -> usize {
    let ends = crowd.ends.lock().expect(NOTING);
    let mut by_file: HashMap<FileId, Vec<Span>> = HashMap::new();
    for span in crowd.spans.lock().expect(NOTING).iter() {
        by_file.entry(span.file).or_default().push(*span);
    }
    let mut together = 0;
    for spans in by_file.values_mut() {
        spans.sort_by_key(|span| span.from);
        let mut live: Vec<Span> = Vec::new();
        for new in spans {
            live.retain(|old| ends[&old.handle] > new.from);
            for old in &live {
                let clash = exclude((old.access, old.share), (new.access, new.share));
                assert!(!clash, "granted beside each other: {old:?} and {new:?}");
            }
            together += live.len();
            live.push(*new);
        }
    }
    together
}

/// The event log tells the same: each open granted as it was asked for, then closed, once.
fn check_events(journal: &AccountJournal, spans: &[Span]) -> usize {
    let page = journal.journal().after(0, usize::MAX, Reads::All);
    assert_eq!(page.lost, 0, "the journal was large enough");
    let mut open = HashMap::new();
    let mut removed = 0;
    for event in journal.file_events() {
        match event.what {
            Happening::Granted { handle, access, share } => {
                assert!(open.insert(handle, Some((access, share))).is_none(), "granted twice");
            }
            Happening::Closed { handle, .. } => {
                let was = open.insert(handle, None);
                assert!(matches!(was, Some(Some(_))), "{handle} closed, {was:?} before");
            }
            Happening::Removed => removed += 1,
            _ => {}
        }
    }
    assert_eq!(open.len(), spans.len());
    assert!(open.values().all(Option::is_none), "granted and never closed");
    removed
}

#[test]
fn a_crowd_gets_no_two_opens_that_exclude_each_other_and_leaves_nothing_behind() {
    let seed = seeds(1)[0];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (root, state) = (folder.path().join("share"), folder.path().join("state"));
    fs::create_dir_all(root.join("d")).expect("a folder for the share");
    let journal = Journal::keeping(Arc::new(SystemClock), [EVENTS_MAX; 2]);
    let events = AccountJournal::new(Arc::new(journal), "");
    let crowd = Crowd {
        share: open_share(&root, &state, Case::Insensitive, events.clone()),
        time: AtomicU64::new(0),
        spans: Mutex::default(),
        ends: Mutex::default(),
    };
    let end = Instant::now() + TIME_MAX * u32::try_from(steps(1)).expect("1 or 10");
    let member = |number: u64| {
        let who = caller(&format!("thread {number}"));
        let random = Random::new(seed * THREADS + number);
        let mut member = Member { crowd: &crowd, who, random, held: Vec::new() };
        let done = (0..steps(STEPS)).take_while(|_| Instant::now() < end);
        let done = done.map(|_| member.step()).count();
        while !member.held.is_empty() {
            member.close();
        }
        done
    };
    let done: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || member(n))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a member failed")).sum()
    });
    let together = check_spans(&crowd);
    let spans = crowd.spans.into_inner().expect(NOTING);
    let removed = check_events(&events, &spans);
    println!(
        "seed {seed}: {done} steps, {} opens, {together} pairs lived together, {removed} removals",
        spans.len()
    );
    assert!(together > 100 && removed > 100, "the run tested little");
    assert_eq!(crowd.share.files_in_use(), 0);
    let pending = entries(&state.join("pending"));
    assert!(pending.is_empty(), "{pending:?}");
    let before = entries(&root);
    drop(crowd.share);
    let again = open_share(&root, &state, Case::Insensitive, events);
    assert_eq!(again.files_in_use(), 0);
    assert_eq!(entries(&root), before, "a new start changed something");
}
