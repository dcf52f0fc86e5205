//! The Blob service of one account, through its methods: what is committed, seen and refused.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::blob::rules::{BlobDenial, BlobOperation, BlobType};
use crate::clock::ManualClock;
use crate::rules::conditions::{Conditions, EtagList};
use crate::rules::lease::LeaseId;
use crate::rules::{Caller, Client, Etag, Owner, Timestamp};

mod cache;
mod copies;
mod full_disk;
mod model;
mod reference;
mod states;
mod sweeping;
mod writes;

/// The moment that tests begin at.
const START: Timestamp = Timestamp(1_767_607_200_000_000_000);

/// A service with the container `c`, and a clock that moves when told.
struct Bench {
    service: BlobService,
    now: Timestamp,
    folder: tempfile::TempDir,
}

/// The service in `folder`, whose own clock stands still.
fn open(folder: &Path, options: BlobOptions, now: Timestamp) -> BlobService {
    let clock = Arc::new(ManualClock::new(now));
    BlobService::open(folder, SyncMode::Normal, options, clock, AccountJournal::default()).unwrap()
}

fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn id(last: u8) -> LeaseId {
    LeaseId::from_random_bytes([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last])
}

fn at(name: &str) -> BlobAt {
    BlobAt::new("c", name)
}

fn if_match(etag: Etag) -> AccessConditions {
    let if_match = Some(EtagList::parse(&etag.quoted()));
    AccessConditions {
        conditions: Conditions { if_match, ..Conditions::default() },
        ..AccessConditions::default()
    }
}

fn if_missing() -> AccessConditions {
    let if_none_match = Some(EtagList::Any);
    AccessConditions {
        conditions: Conditions { if_none_match, ..Conditions::default() },
        ..AccessConditions::default()
    }
}

fn denial<T>(result: BlobResult<T>) -> BlobDenial {
    match result {
        Err(BlobError::Denied { denial, .. }) => denial,
        Err(other) => panic!("not refused: {other:?}"),
        Ok(_) => panic!("not refused"),
    }
}

/// A request at that moment.
fn bench_cx(now: Timestamp) -> Context {
    let client = Arc::new(Client { session: 1, name: "test".into() });
    let owner = Arc::new(Owner { client, pid: 0, program: None });
    Context::new(now, Caller::local(owner, "test"))
}

impl Bench {
    fn new() -> Self {
        Self::with(BlobOptions::default())
    }

    fn with(options: BlobOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bench = Self { service: open(folder.path(), options, START), now: START, folder };
        let new = NewContainer::default();
        within(bench.service.create_container(&bench.cx(), "c", new)).unwrap();
        bench
    }

    /// The service closed and opened again, at the same moment.
    fn restarted(self, options: BlobOptions) -> Self {
        let Self { service, now, folder } = self;
        drop(service);
        Self { service: open(folder.path(), options, now), now, folder }
    }

    fn cx(&self) -> Context {
        self.cx_of("tester")
    }

    /// A request with this client request ID.
    fn cx_of(&self, request: &str) -> Context {
        let mut cx = bench_cx(self.now);
        cx.caller.request_id = Some(request.into());
        cx
    }

    fn pass(&mut self, seconds: u64) {
        self.now = self.now.after(Duration::from_secs(seconds));
    }

    /// Bytes on their way into a blob.
    fn body(&self, bytes: &[u8], part: bool) -> Content {
        let role = if part { BodyRole::Part } else { BodyRole::Whole };
        let plan = ContentPlan { length: Some(bytes.len() as u64), role, md5: false };
        let mut body = self.service.begin_body(plan).unwrap();
        body.write(bytes).unwrap();
        body.finish().unwrap()
    }

    fn put_asked(
        &self,
        name: &str,
        bytes: &[u8],
        asked: AccessConditions,
    ) -> BlobResult<WrittenBlob> {
        let body = self.body_whole(bytes);
        let new = NewBlob::default();
        within(self.service.put_blob(&self.cx(), &at(name), asked, BlobType::Block, new, body))
    }

    fn body_whole(&self, bytes: &[u8]) -> Content {
        self.body(bytes, false)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> WrittenBlob {
        self.put_asked(name, bytes, AccessConditions::default()).unwrap()
    }

    fn get_at(&self, at: &BlobAt) -> BlobResult<Vec<u8>> {
        let opened =
            within(self.service.open_blob(&self.cx(), at, AccessConditions::default(), None))?;
        let part = |at: u64| usize::try_from(at).unwrap();
        if let BlobContent::Whole(bytes) = &opened.content {
            return Ok(bytes[part(opened.range.start)..part(opened.range.end)].to_vec());
        }
        let mut bytes = vec![0; part(opened.range.end - opened.range.start)];
        if let BlobContent::Stored(mut content) = opened.content {
            let mut filled = 0;
            while filled < bytes.len() {
                let offset = opened.range.start + filled as u64;
                let read = content.read_at(offset, &mut bytes[filled..]).unwrap();
                assert!(read > 0, "the content ends early");
                filled += read;
            }
        }
        Ok(bytes)
    }

    fn get(&self, name: &str) -> BlobResult<Vec<u8>> {
        self.get_at(&at(name))
    }

    fn head(&self, name: &str) -> BlobResult<Blob> {
        self.head_at(&at(name))
    }

    fn head_at(&self, at: &BlobAt) -> BlobResult<Blob> {
        let operation = BlobOperation::BlobGetProperties;
        self.service.properties(&self.cx(), operation, at, &AccessConditions::default())
    }

    fn delete(&self, name: &str) -> BlobResult<DeletedBlob> {
        let delete = DeleteBlob::default();
        within(self.service.delete_blob(&self.cx(), &at(name), AccessConditions::default(), delete))
    }

    fn snapshot(&self, name: &str) -> Timestamp {
        let snapshot = within(self.service.snapshot(
            &self.cx(),
            &at(name),
            AccessConditions::default(),
            Vec::new(),
        ));
        snapshot.unwrap().0
    }
}

fn put_block(
    bench: &Bench,
    name: &str,
    block: &[u8],
    bytes: &[u8],
    asked: AccessConditions,
) -> BlobResult<()> {
    let body = bench.body(bytes, true);
    let operation = BlobOperation::BlockBlobStageBlock;
    let block = crate::blob::rules::blocks::BlockId::from_bytes(block.to_vec());
    within(bench.service.put_block(&bench.cx(), operation, &at(name), asked, block, body))
}

fn everything() -> ListBlobs {
    ListBlobs {
        limit: 5_000,
        snapshots: true,
        versions: true,
        deleted: true,
        uncommitted: true,
        ..ListBlobs::default()
    }
}
