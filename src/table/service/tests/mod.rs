//! The Table service on a real database, without HTTP.

mod beside;
mod entities;
mod life;
mod model;
mod queries;
mod reference;

use std::future::Future;
use std::ops::ControlFlow;
use std::time::Duration;

use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::*;
use crate::rules::context::Caller;
use crate::rules::{Client, Owner, Timestamp};
use crate::table::rules::etag::etag;
use crate::table::rules::{
    self as rules, EntityFields, EntityKey, Filter, How, IfMatch, Properties, Top, Value,
};
use crate::table::store::EntityRef;

/// 2026-01-05T10:00:00Z.
const START: Timestamp = Timestamp(1_767_607_200_000_000_000);

struct Fixture {
    // Before the directory.
    service: Option<TableService>,
    runtime: Runtime,
    dir: TempDir,
    now: Timestamp,
}

/// The entities of a page as text, and at most `most` of them.
struct Texts {
    found: Vec<String>,
    most: usize,
}

impl EntitySink for Texts {
    fn add(&mut self, entity: &EntityRef<'_>) -> ControlFlow<()> {
        self.found.push(format!("{}/{}", entity.partition(), entity.row()));
        if self.found.len() == self.most {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

fn name(text: &str) -> TableName {
    TableName::parse(text).unwrap()
}

fn int(number: i32) -> Properties {
    Properties::new(vec![("i".into(), Value::Int32(number))])
}

fn open(folder: &Path) -> TableService {
    let journal = AccountJournal::default();
    TableService::open(&folder.join("table.db"), SyncMode::Normal, journal).unwrap()
}

impl Fixture {
    fn new() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let dir = TempDir::new().unwrap();
        let service = open(dir.path());
        Self { service: Some(service), runtime, dir, now: START }
    }

    fn with_table(table: &str) -> Self {
        let fixture = Self::new();
        fixture.wait(fixture.service().create_table(&fixture.context(), &name(table))).unwrap();
        fixture
    }

    fn service(&self) -> &TableService {
        self.service.as_ref().unwrap()
    }

    fn restart(&mut self) {
        self.service = None;
        self.service = Some(open(self.dir.path()));
    }

    fn context(&self) -> Context {
        let client = Arc::new(Client { session: 1, name: "test".to_owned() });
        let owner = Arc::new(Owner { client, pid: 0, program: None });
        Context::new(self.now, Caller::local(owner, ""))
    }

    fn advance(&mut self, by: Duration) {
        self.now = self.now.after(by);
    }

    fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    fn write(
        &self,
        table: &str,
        change: rules::EntityChange,
        (partition, row): (&str, &str),
        properties: Properties,
    ) -> TableResult<WrittenEntity> {
        let key = EntityKey::new(partition, row);
        let write = Write { change, key, properties };
        self.wait(self.service().write(&self.context(), &name(table), write))
    }

    fn insert(&self, table: &str, key: (&str, &str), number: i32) -> TableResult<WrittenEntity> {
        self.write(table, rules::EntityChange::Insert, key, int(number))
    }

    fn get(&self, table: &str, (partition, row): (&str, &str)) -> TableResult<StoredEntity> {
        let read = self.service().entity(&name(table), &EntityKey::new(partition, row));
        read.map(Arc::unwrap_or_clone)
    }

    fn page(
        &self,
        query: &EntityQuery,
        most: usize,
    ) -> TableResult<(Vec<String>, Option<EntityKey>)> {
        let page = Texts { found: Vec::new(), most };
        let (page, next) = self.service().query(query, page)?;
        Ok((page.found, next))
    }

    fn found(&self, table: &str, filter: &str) -> Vec<String> {
        let filter = Some(Filter::parse(filter).unwrap());
        let (found, next) = self
            .page(&EntityQuery { filter, ..EntityQuery::all(name(table)) }, usize::MAX)
            .unwrap();
        assert_eq!(next, None);
        found
    }
}

fn denied<T: std::fmt::Debug>(result: TableResult<T>) -> TableDenial {
    match result {
        Err(TableError::Denied(denial)) => denial,
        other => panic!("not refused: {other:?}"),
    }
}

fn with(how: How, condition: IfMatch) -> rules::EntityChange {
    rules::EntityChange::Write(how, condition)
}

fn tag_of(written: &WrittenEntity) -> IfMatch {
    IfMatch::Is(written.etag().unwrap())
}
