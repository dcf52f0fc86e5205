//! Random operations with time passing, clock steps and restarts, against the reference.
//!
//! A failure names seed and step. `LATCHFS_TEST_SEED` runs another seed; `LATCHFS_FULL` makes the
//! run ten times as long.

use std::collections::HashMap;

use super::reference::{Condition, Reference, Refused, Step};
use super::*;

const STEPS: u64 = 10_000;
const TABLES: [&str; 3] = ["aaa", "bbb", "ccc"];
const PARTITIONS: [&str; 4] = ["", "p", "p'", "q"];
const ROWS: [&str; 6] = ["", "1", "10", "2", "ä", "😀"];
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).expect("below a usize")
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

type RowKey = (String, String);

struct World {
    fixture: Fixture,
    reference: Reference,
    random: Random,
    /// The ETag of each entity at each version of the reference, and all ETags ever given.
    tags: HashMap<(usize, RowKey), String>,
    last: Option<Ticks>,
    refused: usize,
}

impl World {
    fn values(&mut self) -> Vec<(String, Value)> {
        let mut names = NAMES.to_vec();
        let count = self.random.below(NAMES.len());
        (0..count)
            .map(|_| {
                let name = names.remove(self.random.below(names.len()));
                let number = i32::try_from(self.random.below(3)).expect("small");
                let value = match self.random.below(4) {
                    0 => Value::Int32(number),
                    1 => Value::String(format!("text {number}")),
                    2 => Value::Boolean(number == 1),
                    _ => Value::Int64(number.into()),
                };
                (name.to_owned(), value)
            })
            .collect()
    }

    fn step_of_entity(&mut self) -> Step {
        let condition = self.random.of(&[
            Condition::Absent,
            Condition::Any,
            Condition::Current,
            Condition::Current,
            Condition::Stale,
        ]);
        let how = self.random.of(&[How::Replace, How::Merge]);
        match self.random.below(6) {
            0 | 1 => Step::Insert(self.values()),
            2 => Step::Delete(condition),
            _ => Step::Write(how, condition, self.values()),
        }
    }

    fn write(&self, table: usize, key: &RowKey, step: &Step) -> Write {
        let tag = |condition: &Condition| match condition {
            Condition::Absent => IfMatch::Absent,
            Condition::Any => IfMatch::Any,
            Condition::Current => {
                let tag = self.tags.get(&(table, key.clone()));
                IfMatch::Is(tag.cloned().unwrap_or_else(|| "W/\"none\"".into()))
            }
            Condition::Stale => IfMatch::Is(etag(Ticks(1))),
        };
        let (change, values) = match step {
            Step::Insert(values) => (rules::EntityChange::Insert, values.clone()),
            Step::Write(how, condition, values) => (with(*how, tag(condition)), values.clone()),
            Step::Delete(condition) => (rules::EntityChange::Delete(tag(condition)), Vec::new()),
        };
        let key = EntityKey::new(&*key.0, &*key.1);
        Write { change, key, properties: Properties::new(values) }
    }

    /// Remembers the new ETag; it must be later than all before.
    fn note(&mut self, table: usize, written: &WrittenEntity, at_once: Option<Ticks>) {
        let key = (written.key.partition.clone(), written.key.row.clone());
        match written.ticks {
            Some(ticks) => {
                assert!(Some(ticks) > self.last || Some(ticks) == at_once, "ETags rise");
                self.last = Some(ticks);
                self.tags.insert((table, key), etag(ticks));
            }
            None => {
                self.tags.remove(&(table, key));
            }
        }
    }

    fn one(&mut self, table: usize) -> Result<(), String> {
        let key = self.key();
        let step = self.step_of_entity();
        let write = self.write(table, &key, &step);
        let context = self.fixture.context();
        let real =
            self.fixture.wait(self.fixture.service().write(&context, &name(TABLES[table]), write));
        let expected = self.reference.step(TABLES[table], &key, &step);
        match (real, expected) {
            (Ok(written), Ok(())) => {
                self.note(table, &written, None);
                Ok(())
            }
            (Err(TableError::Denied(denial)), Err(refused)) if same(&denial, refused) => {
                self.refused += 1;
                Ok(())
            }
            (real, expected) => Err(format!("{step:?} {key:?}: {real:?}, not {expected:?}")),
        }
    }

    fn transaction(&mut self, table: usize) -> Result<(), String> {
        let partition = self.random.of(&PARTITIONS).to_owned();
        let mut rows = ROWS.to_vec();
        let steps: Vec<_> = (0..=self.random.below(4))
            .map(|_| {
                let row = rows.remove(self.random.below(rows.len()));
                ((partition.clone(), row.to_owned()), self.step_of_entity())
            })
            .collect();
        let writes =
            steps.iter().map(|(key, step)| (name(TABLES[table]), self.write(table, key, step)));
        let writes = writes.collect();
        let context = self.fixture.context();
        let real = self.fixture.wait(self.fixture.service().transact(&context, writes));
        match (real, self.reference.transact(TABLES[table], &steps)) {
            (Ok(all), Ok(())) => {
                let mut first = None;
                for written in &all {
                    self.note(table, written, first);
                    first = first.or(written.ticks);
                }
                Ok(())
            }
            (Err(TableError::Fault(fault)), Err((index, refused)))
                if fault.index == index && same(&fault.denial, refused) =>
            {
                self.refused += 1;
                Ok(())
            }
            (real, expected) => Err(format!("{steps:?}: {real:?}, not {expected:?}")),
        }
    }

    fn key(&mut self) -> RowKey {
        (self.random.of(&PARTITIONS).to_owned(), self.random.of(&ROWS).to_owned())
    }

    fn table_step(&mut self, table: usize) -> Result<(), String> {
        let (context, wanted) = (self.fixture.context(), name(TABLES[table]));
        let create = self.random.below(3) > 0;
        let service = self.fixture.service();
        let (real, expected) = if create {
            let real = self.fixture.wait(service.create_table(&context, &wanted));
            (real, self.reference.create(TABLES[table]))
        } else {
            let real = self.fixture.wait(service.delete_table(&context, &wanted));
            self.tags.retain(|(of, _), _| *of != table);
            (real, self.reference.delete(TABLES[table]))
        };
        match (real, expected) {
            (Ok(()), Ok(())) => Ok(()),
            (Err(TableError::Denied(denial)), Err(refused)) if same(&denial, refused) => Ok(()),
            (real, expected) => Err(format!("create {create}: {real:?}, not {expected:?}")),
        }
    }

    /// All entities of a table, through pages of a random size.
    fn compare(&mut self, table: usize) -> Result<(), String> {
        let Some(rows) = self.reference.tables.get(TABLES[table]) else { return Ok(()) };
        let top = Top(1 + self.random.below(7));
        let mut query = EntityQuery { top, ..EntityQuery::all(name(TABLES[table])) };
        let mut found = Vec::new();
        loop {
            let page = Whole(Vec::new());
            let answer = self.fixture.service().query(&query, page);
            let (page, next) = answer.map_err(|error| error.to_string())?;
            found.extend(page.0);
            let Some(next) = next else { break };
            query.from = Some(next);
        }
        let expected: Vec<_> =
            rows.iter().map(|(key, entity)| (key.clone(), entity.values.clone())).collect();
        if found == expected { Ok(()) } else { Err(format!("{found:?}, not {expected:?}")) }
    }

    fn step(&mut self) -> Result<(), String> {
        let table = self.random.below(TABLES.len());
        match self.random.below(100) {
            0..60 => self.one(table),
            60..85 => self.transaction(table),
            85..90 => self.table_step(table),
            90..98 => self.compare(table),
            98 => {
                let second = i64::try_from(self.random.below(3_000)).expect("small") - 1_000;
                self.fixture.now = Timestamp(self.fixture.now.0 + second * 1_000_000_000);
                Ok(())
            }
            _ if self.random.below(20) == 0 => {
                self.fixture.restart();
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

struct Whole(Vec<(RowKey, Vec<(String, Value)>)>);

impl EntitySink for Whole {
    fn add(&mut self, entity: &EntityRef<'_>) -> ControlFlow<()> {
        let values = entity.properties().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let key = (entity.partition().to_owned(), entity.row().to_owned());
        self.0.push((key, values.collect()));
        ControlFlow::Continue(())
    }
}

fn same(denial: &TableDenial, refused: Refused) -> bool {
    match refused {
        Refused::TableNotFound => *denial == TableDenial::TableNotFound,
        Refused::ResourceNotFound => *denial == TableDenial::ResourceNotFound,
        Refused::EntityAlreadyExists => matches!(denial, TableDenial::EntityAlreadyExists(Some(_))),
        Refused::ConditionNotMet => {
            matches!(denial, TableDenial::UpdateConditionNotSatisfied(Some(_)))
        }
        Refused::MissingHeader => *denial == TableDenial::MissingIfMatch,
        Refused::TableAlreadyExists => *denial == TableDenial::TableAlreadyExists,
    }
}

fn number_from(variable: &str, otherwise: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.map_or(otherwise, |text| text.parse().expect("a number"))
}

#[test]
fn random_operations_agree_with_the_reference() {
    let seed = number_from("LATCHFS_TEST_SEED", 77);
    println!("tables: seed {seed}");
    let mut world = World {
        fixture: Fixture::new(),
        reference: Reference::default(),
        random: Random(seed),
        tags: HashMap::new(),
        last: None,
        refused: 0,
    };
    let times = if std::env::var_os("LATCHFS_FULL").is_some() { 10 } else { 1 };
    let steps = STEPS * times;
    for step in 0..steps {
        let agreed = world.step();
        assert!(agreed.is_ok(), "seed {seed}, step {step}: {}", agreed.unwrap_err());
    }
    assert!(world.refused as u64 > steps / 20, "refusals are tested too: {}", world.refused);
}
