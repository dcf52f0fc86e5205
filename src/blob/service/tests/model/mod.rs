//! Random operations with time passing, on the service and on the reference: every answer and
//! every state equal.
//!
//! `LATCHFS_TEST_SEED` runs one seed, `LATCHFS_FULL` ten times as many steps.

mod steps;

use std::collections::{BTreeMap, HashSet};
use std::env;

use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};

use super::super::sweeper::sweep_once;
use super::reference::{Demand, Keep, Lease, Name, No};
use super::*;
use crate::rules::conditions::ConditionFailure;
use crate::rules::copy_status::CopyStatus;
use crate::rules::lease::{LeaseDenial, LeaseState};

const NAMES: [&str; 3] = ["a", "a/b", "c"];
const STEPS: usize = 10_000;
const DAY: u64 = 24 * 3_600;
const PAGES: usize = 4 * 512;

/// The refusal in the reference's words.
fn word(denial: &BlobDenial) -> No {
    use BlobDenial as D;
    match denial {
        D::BlobNotFound => "not found",
        D::BlobAlreadyExists => "exists",
        D::InvalidBlobType => "type",
        D::PendingCopyOperation => "pending",
        D::NoPendingCopyOperation => "no copy",
        D::SnapshotsPresent => "snapshots",
        D::InvalidBlockList => "list",
        D::AppendPositionConditionNotMet => "position",
        D::BlobIsSealed => "sealed",
        D::InvalidPageRange => "range",
        D::Condition(ConditionFailure::NotMet(_)) | D::CopyCondition(_) => "condition",
        D::Lease(denial) => match denial {
            LeaseDenial::LeaseIdMissing(_) => "lease ID missing",
            LeaseDenial::LeaseIdMismatchWithOperation(_) => "lease ID mismatch",
            LeaseDenial::LeaseNotPresentWithOperation(_) => "no lease",
            LeaseDenial::LeaseLost(_) => "lease lost",
            LeaseDenial::InfiniteLeaseDurationRequired => "infinite lease required",
            LeaseDenial::LeaseAlreadyPresent => "already present",
            LeaseDenial::LeaseIsBreakingAndCannotBeAcquired => "breaking: acquire",
            LeaseDenial::LeaseIsBreakingAndCannotBeChanged => "breaking: change",
            LeaseDenial::LeaseIsBrokenAndCannotBeRenewed => "broken: renew",
            LeaseDenial::LeaseIdMismatchWithLeaseOperation(_) => "lease mismatch",
            LeaseDenial::LeaseNotPresentWithLeaseOperation(_) => "lease not present",
            _ => "another lease refusal",
        },
        _ => "another refusal",
    }
}

fn answered<T>(answer: BlobResult<T>) -> Result<T, No> {
    answer.map_err(|error| match error {
        BlobError::Denied { denial, .. } => word(&denial),
        other @ BlobError::Store(_) => panic!("{other}"),
    })
}

struct Run {
    bench: Bench,
    options: BlobOptions,
    names: BTreeMap<&'static str, Name>,
    /// How long deleted states are kept, in seconds.
    retention: Option<u64>,
    now: u64,
    etags: HashSet<Etag>,
    random: TestRng,
    copies: u64,
    /// How often each operation was done, and not refused.
    done: BTreeMap<String, usize>,
}

impl Run {
    fn new(seed: u64, options: BlobOptions) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let names = NAMES.into_iter().map(|name| (name, Name::default())).collect();
        let (bench, etags) = (Bench::with(options.clone()), HashSet::new());
        let done = BTreeMap::new();
        Self { bench, options, names, retention: None, now: 0, etags, random, copies: 0, done }
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.random.next_u32() % bound
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(u32::try_from(of.len()).unwrap()) as usize]
    }

    fn name(&mut self) -> &'static str {
        self.pick(&NAMES)
    }

    /// Small and large bytes: in the row, in a shared file, in a file of their own.
    fn bytes(&mut self) -> Vec<u8> {
        let length = self.pick(&[0, 1, 100, 5_000, 20_000, 20_000, 40_000]);
        vec![u8::try_from(self.below(250)).unwrap() + 1; length]
    }

    fn keep(&self) -> Keep {
        match self.retention {
            _ if self.options.versioning => Keep::Versions,
            Some(seconds) => Keep::Until(self.now + seconds),
            None => Keep::Nothing,
        }
    }

    /// The name as it is now, with the `ETag` that the service gave a copy which has ended.
    fn settled(&mut self, name: &str) -> Name {
        let now = self.now;
        let state = self.names.get_mut(name).unwrap();
        state.settle(now);
        if let Some(blob) = state.blob.as_mut().filter(|blob| blob.etag.is_none()) {
            let etag = self.bench.head(name).unwrap().state.etag;
            assert!(self.etags.insert(etag), "an ETag was given twice");
            blob.etag = Some(etag);
        }
        state.clone()
    }

    /// A name, mostly one with a blob of that type.
    fn name_of(&mut self, kind: BlobType) -> &'static str {
        let is = |name: &str| self.names[name].blob.as_ref().is_some_and(|it| it.kind == kind);
        let fitting: Vec<_> = NAMES.into_iter().filter(|name| is(name)).collect();
        if fitting.is_empty() || self.below(5) == 0 { self.name() } else { self.pick(&fitting) }
    }

    /// Random demands of a request; most of them hold.
    fn demand(&mut self, name: &str) -> Demand {
        if self.below(3) > 0 {
            let state = &self.names[name];
            let lease = state.blob.as_ref().map(|blob| blob.lease).or(state.uncommitted);
            let lease = match lease.unwrap_or_default().at(self.now) {
                Lease::Leased { id, .. } | Lease::Breaking { id, .. } => Some(id),
                _ => None,
            };
            return Demand { lease, ..Demand::default() };
        }
        let lease = self.pick(&[None, None, Some(1), Some(2), Some(9)]);
        let matches = self.pick(&[None, None, None, Some(true), Some(false)]);
        let star = matches.is_none() && self.below(4) == 0;
        Demand { lease, matches, star }
    }

    fn asked(&self, name: &str, demand: Demand) -> AccessConditions {
        let present = self.names[name].blob.as_ref().and_then(|blob| blob.etag);
        let mut asked = match demand.matches {
            Some(true) => if_match(present.unwrap_or(Etag::from_number(1))),
            Some(false) => if_match(Etag::from_number(1)),
            None if demand.star => if_missing(),
            None => AccessConditions::default(),
        };
        asked.lease = demand.lease.map(id);
        asked
    }

    /// Compares the outcome of a write, and takes over the reference's if it was done.
    fn wrote(
        &mut self,
        what: &str,
        name: &'static str,
        answer: BlobResult<Option<Etag>>,
        expected: Result<Name, No>,
    ) {
        let answer = answered(answer);
        let expected = match (&answer, expected) {
            (Ok(etag), Ok(mut after)) => {
                if let (Some(etag), Some(blob)) = (etag, &mut after.blob) {
                    assert!(self.etags.insert(*etag), "{what} {name}: an ETag was given twice");
                    blob.etag = Some(*etag);
                }
                self.names.insert(name, after);
                *self.done.entry(what.to_owned()).or_default() += 1;
                Ok(*etag)
            }
            (_, expected) => expected.map(|_| None),
        };
        let outcome = |answer: Result<_, No>| answer.map(drop);
        assert_eq!(outcome(answer), outcome(expected), "{what} {name}");
    }

    fn set_retention(&mut self) {
        let days = if self.options.versioning { None } else { self.pick(&[None, Some(1)]) };
        self.retention = days.map(|days| u64::from(days) * DAY);
        let retention = Retention { days, permanent_delete: false };
        self.bench.service.set_retention(retention);
        self.options.retention = retention;
    }

    fn pass(&mut self) {
        let seconds = self.pick(&[0, 1, 2, 5, 5, 15, 60, DAY]);
        self.now += seconds;
        self.bench.pass(seconds);
    }

    fn restart(self) -> Self {
        let bench = self.bench.restarted(self.options.clone());
        Self { bench, ..self }
    }

    /// One name in the service as in the reference.
    fn compare(&mut self, name: &'static str) {
        let state = self.settled(name);
        let got = self.bench.get(name).ok();
        let expected = state.blob.as_ref().map(|blob| blob.bytes.clone());
        assert_eq!(got.map(Short), expected.map(Short), "the bytes of {name}");
        let Some(blob) = state.blob else { return };
        let head = self.bench.head(name).unwrap().state;
        assert_eq!((head.etag, head.kind), (blob.etag.unwrap(), blob.kind), "{name}");
        assert_eq!(head.sealed, blob.sealed, "{name}");
        let lease = match blob.lease.at(self.now) {
            Lease::Available => LeaseState::Available,
            Lease::Leased { .. } => LeaseState::Leased,
            Lease::Breaking { .. } => LeaseState::Breaking,
            Lease::Broken { .. } => LeaseState::Broken,
            Lease::Expired { .. } => LeaseState::Expired,
        };
        assert_eq!(head.lease.state(self.bench.now), lease, "the lease of {name}");
        let copying = head.copy.as_ref().is_some_and(|copy| copy.status == CopyStatus::Pending);
        assert_eq!(copying, blob.pending.is_some(), "the copy to {name}");
        let metadata = head.metadata.first().map_or("0", |(_, value)| value).to_owned();
        assert_eq!(metadata, blob.metadata.to_string(), "the metadata of {name}");
        let tag = head.tags.iter().next().map(|(_, value)| value.to_owned());
        assert_eq!(tag, blob.tag.map(|tag| tag.to_string()), "the tags of {name}");
    }

    /// Everything, with older states and the list.
    fn compare_all(&mut self) {
        let page = self.bench.service.list_blobs(&self.bench.cx(), "c", &everything());
        let listed: Vec<_> = page.unwrap().items.into_iter().filter_map(blob_of).collect();
        for name in NAMES {
            self.compare(name);
            let state = self.settled(name);
            let of = |wanted: &dyn Fn(&ListedState) -> bool| {
                listed.iter().filter(|one| one.name == name && wanted(one)).collect::<Vec<_>>()
            };
            let bytes = |selectors: Vec<Selector>| {
                let read = |state| self.bench.get_at(&at(name).state(state)).unwrap();
                let mut all: Vec<_> = selectors.into_iter().map(read).map(Short).collect();
                all.sort();
                all
            };
            let sorted = |all: &[Vec<u8>]| {
                let mut all: Vec<_> = all.iter().cloned().map(Short).collect();
                all.sort();
                all
            };
            let live = of(&|one| one.deleted.is_none() && one.snapshot.is_some());
            let live = live.iter().filter_map(|one| one.snapshot).map(Selector::Snapshot);
            assert_eq!(bytes(live.collect()), sorted(&state.snapshots), "snapshots of {name}");
            let old = of(&|one| {
                let plain = one.deleted.is_none() && one.snapshot.is_none();
                plain && !one.is_current && !one.is_uncommitted
            });
            let old = old.iter().filter_map(|one| one.state.version).map(Selector::Version);
            assert_eq!(bytes(old.collect()), sorted(&state.versions), "versions of {name}");
            let kept = state.kept.iter().filter(|kept| kept.until > self.now).count();
            assert_eq!(of(&|one| one.deleted.is_some()).len(), kept, "deleted states of {name}");
            assert_eq!(of(&|one| one.is_current).len(), usize::from(state.blob.is_some()));
            let uncommitted = of(&|one| one.is_uncommitted).len();
            assert_eq!(uncommitted, usize::from(state.uncommitted.is_some()), "{name}");
            let there = state.blob.as_ref().is_none_or(|blob| blob.kind == BlobType::Block);
            let any = state.blob.is_some() || state.uncommitted.is_some();
            if there && any {
                let (cx, asked) = (self.bench.cx(), AccessConditions::default());
                let place = at(name);
                let lists = self.bench.service.block_lists(&cx, &place, &asked).unwrap();
                assert_eq!(lists.uncommitted.len(), state.blocks.len(), "blocks of {name}");
            }
        }
    }

    /// Deletes the versions of a name that has many, so that a run takes no longer and longer.
    fn prune(&mut self, name: &'static str) {
        if self.names[name].versions.len() < 20 {
            return;
        }
        let cx = self.bench.cx();
        let page = self.bench.service.list_blobs(&cx, "c", &everything()).unwrap();
        for one in page.items.into_iter().filter_map(blob_of) {
            let version = one.state.version.filter(|_| one.snapshot.is_none() && !one.is_current);
            let Some(version) = version.filter(|_| one.name == name) else { continue };
            let (old, delete) = (at(name).state(Selector::Version(version)), DeleteBlob::default());
            let deleted =
                self.bench.service.delete_blob(&cx, &old, AccessConditions::default(), delete);
            within(deleted).unwrap();
        }
        self.names.get_mut(name).unwrap().versions.clear();
    }

    fn step(mut self) -> Self {
        match self.below(40) {
            0..=3 => self.put(BlobType::Block),
            4..=5 => self.put(BlobType::Append),
            6 => self.put(BlobType::Page),
            7..=9 => self.put_block(),
            10..=11 => self.commit(),
            12..=13 => self.append(),
            14 if self.below(4) == 0 => self.seal(),
            15..=16 => self.put_page(),
            17 => self.set_metadata(),
            18 => self.set_tags(),
            19..=20 => self.snapshot(),
            21..=23 => self.delete(),
            24 => self.undelete(),
            25..=27 => self.copy(),
            28 => self.abort(),
            29..=33 => self.lease(),
            34..=35 => self.read(),
            36 => self.set_retention(),
            37 => {
                let clock: Arc<dyn TimeSource> = Arc::new(ManualClock::new(self.bench.now));
                sweep_once(&self.bench.service.store, &clock).unwrap();
            }
            38 if self.below(20) == 0 => return self.restart(),
            _ => self.pass(),
        }
        self
    }
}

/// Bytes that a failure shows in short.
#[derive(PartialEq, Eq, PartialOrd, Ord, Clone)]
struct Short(Vec<u8>);

impl std::fmt::Debug for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes, {:?}", self.0.len(), self.0.first())
    }
}

fn blob_of(item: BlobListItem) -> Option<ListedState> {
    match item {
        BlobListItem::Blob(blob) => Some(*blob),
        BlobListItem::Prefix(_) => None,
    }
}

fn run(seed: u64, options: BlobOptions) {
    let seed = env::var("LATCHFS_TEST_SEED").map_or(seed, |text| text.parse().unwrap());
    let steps = if env::var_os("LATCHFS_FULL").is_some() { STEPS * 10 } else { STEPS };
    // Three of these share the steps.
    let steps = steps / 3;
    println!("seed {seed}, {steps} steps, {options:?}");
    let mut run = Run::new(seed, options);
    for step in 0..steps {
        run = run.step();
        if step % 20 == 0 {
            run.compare_all();
            for name in NAMES {
                run.prune(name);
            }
        }
    }
    run.compare_all();
    println!("done: {:?}", run.done);
    let kinds = if run.options.copy_delay.is_zero() { 12 } else { 13 };
    assert_eq!(run.done.len(), kinds, "an operation was never done");
    assert!(run.done.values().all(|times| *times >= 3), "an operation was hardly ever done");
}

#[test]
fn the_service_answers_as_the_reference() {
    run(1, BlobOptions::default());
}

#[test]
fn the_service_answers_as_the_reference_with_versions() {
    run(2, BlobOptions { versioning: true, ..BlobOptions::default() });
}

#[test]
fn the_service_answers_as_the_reference_with_copies_that_are_held_back() {
    let copy_delay = Duration::from_secs(4);
    run(3, BlobOptions { copy_delay, ..BlobOptions::default() });
}
