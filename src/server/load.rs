//! Containers with blobs, queues with messages and tables with entities that a server is to have:
//! from a load file, or by name.
//!
//! Decides the form of the file, that all of it is checked before anything is made, and that what
//! exists stays as it is. The names and values that are allowed are decided by each service.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::fs::File;
use std::io::Read;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper::header::HeaderValue;
use schemars::{JsonSchema, Schema, schema_for};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::container_seed::upload;
use super::{Account, Accounts};
use crate::api::Loaded;
use crate::blob::rules::name::{check_blob, check_container, kept_name};
use crate::blob::rules::{BlobDenial, ContentProperties};
use crate::blob::service::{AccessConditions, BlobAt, BlobError, NewBlob, NewContainer};
use crate::http::xml::is_xml;
use crate::queue::rules::check_text;
use crate::rules::address::ObjectAddress;
use crate::rules::conditions::{Conditions, EtagList};
use crate::rules::name::check_resource_name;
use crate::rules::{Caller, Client, Context, Owner};
use crate::table::rest::json::read_entity;
use crate::table::rules::{EntityChange, EntityKey, TableDenial, TableName};
use crate::table::service::{TableError, Write};

/// The longest load file. Blobs that are files of their own do not count.
const LOAD_MAX: u64 = 64 << 20;

/// An object of JSON: serde alone also takes an array of its values.
#[derive(Debug, JsonSchema)]
#[schemars(transparent)]
struct Object<T>(T);

/// A load file: what a server is to have in Blob, Queue and Table. What exists stays as it is.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LoadFile {
    #[serde(default)]
    containers: Vec<Object<LoadContainer>>,
    #[serde(default)]
    queues: Vec<Object<LoadQueue>>,
    #[serde(default)]
    tables: Vec<Object<LoadTable>>,
}

#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LoadContainer {
    name: String,
    #[serde(default)]
    blobs: Vec<Object<LoadBlob>>,
}

/// A block blob: its content is either a text or a file.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LoadBlob {
    name: String,
    /// The content, in UTF-8
    text: Option<String>,
    /// The file that is the content; its path starts at the folder of the load file
    file: Option<PathBuf>,
    content_type: Option<String>,
}

#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LoadQueue {
    name: String,
    /// The texts of its messages, the first one first. A queue that exists gets none
    #[serde(default)]
    messages: Vec<String>,
}

#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LoadTable {
    name: String,
    #[serde(default)]
    entities: Vec<LoadEntity>,
}

/// An entity as Insert Entity takes it: `NAME@odata.type` gives a property another type than that
/// of its JSON value
#[derive(Debug, serde::Deserialize, JsonSchema)]
struct LoadEntity {
    #[serde(rename = "PartitionKey")]
    partition: String,
    #[serde(rename = "RowKey")]
    row: String,
    #[serde(flatten)]
    properties: Map<String, Value>,
}

/// What one account is to have, checked.
#[derive(Clone, Debug, Default)]
pub struct Load {
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
enum Step {
    Container(String),
    Blob { at: BlobAt, content: BlobContent, content_type: Option<String> },
    Queue { name: String, messages: Vec<String> },
    Table(TableName),
    Entity(TableName, Write),
}

#[derive(Clone, Debug)]
enum BlobContent {
    Text(Arc<str>),
    File(PathBuf),
}

/// The schema of a load file.
pub fn schema() -> Schema {
    schema_for!(LoadFile)
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Keys(PhantomData))
    }
}

struct Keys<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Keys<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

impl Load {
    /// Reads a load file.
    pub fn read(path: &Path) -> Result<Self, String> {
        let about = |why: &dyn Display| format!("{}: {why}", path.display());
        let file = File::open(path).map_err(|why| about(&why))?;
        let mut bytes = Vec::new();
        file.take(LOAD_MAX + 1).read_to_end(&mut bytes).map_err(|why| about(&why))?;
        if bytes.len() as u64 > LOAD_MAX {
            let why = format!("a load file has at most {LOAD_MAX} bytes: give blobs as files");
            return Err(about(&why));
        }
        let Object(load) =
            serde_json::from_slice::<Object<LoadFile>>(&bytes).map_err(|why| about(&why))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        load.checked(folder).map_err(|why| about(&why))
    }

    /// Containers, queues and tables of these names, with nothing in them.
    pub fn of_names(objects: impl IntoIterator<Item = ObjectAddress>) -> Result<Self, String> {
        let steps = objects.into_iter().map(|object| {
            let refused = |why: &dyn Display| format!("{object}: {why}");
            Ok(match &object {
                ObjectAddress::Container(name) => {
                    check_container(name).map_err(|why| refused(&why))?;
                    Step::Container(name.clone())
                }
                ObjectAddress::Queue(name) => {
                    check_resource_name(name).map_err(|why| refused(&why))?;
                    Step::Queue { name: name.clone(), messages: Vec::new() }
                }
                ObjectAddress::Table(name) => {
                    Step::Table(TableName::parse(name).map_err(|why| refused(&why))?)
                }
                _ => return Err(refused(&"only containers, queues and tables are made by name")),
            })
        });
        Ok(Self { steps: steps.collect::<Result<_, String>>()? })
    }

    /// Makes what the account does not have. May wait. What was made before an error stays.
    pub fn apply(&self, account: &Account) -> Result<Loaded, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.map_err(|why| format!("starting a runtime: {why}"))?;
        let mut loaded = Loaded::default();
        for step in &self.steps {
            let made = runtime.block_on(step.apply(account));
            loaded.count(step, made.map_err(|why| format!("{}: {why}", step.address()))?);
        }
        Ok(loaded)
    }
}

impl LoadFile {
    /// The steps of the file, each checked as its service checks it.
    fn checked(self, folder: &Path) -> Result<Load, String> {
        let mut found = Found::default();
        for Object(LoadContainer { name, blobs }) in self.containers {
            let object = ObjectAddress::Container(name.clone());
            found
                .add(&object, || check_container(&name).map(|()| Step::Container(name.clone())))?;
            for Object(mut blob) in blobs {
                blob.name = kept_name(blob.name.into()).into_owned();
                let object =
                    ObjectAddress::Blob { container: name.clone(), name: blob.name.clone() };
                found.add(&object, || blob.step(&name, folder))?;
            }
        }
        for Object(LoadQueue { name, messages }) in self.queues {
            let object = ObjectAddress::Queue(name.clone());
            found.add(&object, || queue(name, messages))?;
        }
        for Object(LoadTable { name, entities }) in self.tables {
            let object = ObjectAddress::Table(name.to_lowercase());
            let parsed = TableName::parse(&name).map_err(|why| format!("table:{name}: {why}"))?;
            found.add(&object, || Ok::<_, String>(Step::Table(parsed.clone())))?;
            for entity in entities {
                let (table, partition) = (name.to_lowercase(), entity.partition.clone());
                let object = ObjectAddress::Entity { table, partition, row: entity.row.clone() };
                found.add(&object, || entity.step(parsed.clone()))?;
            }
        }
        Ok(Load { steps: found.steps })
    }
}

/// The steps so far, and the objects that they make.
#[derive(Default)]
struct Found {
    steps: Vec<Step>,
    named: BTreeSet<String>,
}

impl Found {
    fn add<E: Display>(
        &mut self,
        object: &ObjectAddress,
        step: impl FnOnce() -> Result<Step, E>,
    ) -> Result<(), String> {
        if !self.named.insert(object.to_string()) {
            return Err(format!("{object} is named twice"));
        }
        self.steps.push(step().map_err(|why| format!("{object}: {why}"))?);
        Ok(())
    }
}

impl LoadBlob {
    fn step(self, container: &str, folder: &Path) -> Result<Step, String> {
        check_blob(container, &self.name).map_err(|why| why.to_string())?;
        if let Some(given) = &self.content_type
            && HeaderValue::from_str(given).is_err()
        {
            return Err(format!("content_type {given:?} is no value of a header"));
        }
        let content = match (self.text, self.file) {
            (Some(text), None) => BlobContent::Text(text.into()),
            (None, Some(file)) => {
                let file = folder.join(file);
                let found = file.metadata().map_err(|why| format!("{}: {why}", file.display()))?;
                if !found.is_file() {
                    return Err(format!("{} is not a file", file.display()));
                }
                BlobContent::File(file)
            }
            _ => return Err("give either text or file".to_owned()),
        };
        let at = BlobAt::new(container, self.name);
        Ok(Step::Blob { at, content, content_type: self.content_type })
    }
}

fn queue(name: String, messages: Vec<String>) -> Result<Step, String> {
    check_resource_name(&name).map_err(|why| why.to_string())?;
    for (at, text) in messages.iter().enumerate() {
        check_text(text).map_err(|why| format!("message {at}: {why}"))?;
        if !text.chars().all(is_xml) {
            return Err(format!("message {at}: a character is not allowed in XML 1.0"));
        }
    }
    Ok(Step::Queue { name, messages })
}

impl LoadEntity {
    fn step(self, table: TableName) -> Result<Step, TableDenial> {
        let properties = read_entity(Value::Object(self.properties).to_string().as_bytes())?;
        let key = EntityKey { partition: self.partition, row: self.row };
        let write = Write { change: EntityChange::Insert, key, properties: properties.properties };
        write.check()?;
        Ok(Step::Entity(table, write))
    }
}

impl Step {
    /// The object that it makes.
    fn address(&self) -> ObjectAddress {
        match self {
            Self::Container(name) => ObjectAddress::Container(name.clone()),
            Self::Blob { at: BlobAt { container, name, .. }, .. } => {
                ObjectAddress::Blob { container: container.clone(), name: name.clone() }
            }
            Self::Queue { name, .. } => ObjectAddress::Queue(name.clone()),
            Self::Table(name) => ObjectAddress::Table(name.to_string()),
            Self::Entity(table, Write { key: EntityKey { partition, row }, .. }) => {
                let (partition, row) = (partition.clone(), row.clone());
                ObjectAddress::Entity { table: table.to_string(), partition, row }
            }
        }
    }

    /// Whether it made something: false if the object exists.
    async fn apply(&self, account: &Account) -> Result<bool, String> {
        let cx = context(account);
        match self {
            Self::Container(name) => {
                let blob = account.blob().map_err(|why| why.to_string())?;
                made(blob.create_container(&cx, name, NewContainer::default()).await, exists)
            }
            Self::Blob { at, content, content_type } => {
                let blob = account.blob().map_err(|why| why.to_string())?;
                let content_type = content_type.clone();
                let content_type = ContentProperties { content_type, ..Default::default() };
                let new = NewBlob { content: content_type, ..NewBlob::default() };
                let only_new = Conditions { if_none_match: Some(EtagList::Any), ..<_>::default() };
                let asked = AccessConditions { conditions: only_new, ..<_>::default() };
                let put = match content {
                    BlobContent::Text(text) => {
                        upload(&blob, &cx, at, asked, new, &mut text.as_bytes(), text.len() as u64)
                            .await
                    }
                    BlobContent::File(path) => {
                        let about = |why| format!("{}: {why}", path.display());
                        let mut file = File::open(path).map_err(about)?;
                        let length = file.metadata().map_err(about)?.len();
                        upload(&blob, &cx, at, asked, new, &mut file, length).await
                    }
                };
                made(put?, exists)
            }
            Self::Queue { name, messages } => {
                let queue = account.queue().map_err(|why| why.to_string())?;
                let filled = queue.create_filled(&cx, name, messages.clone()).await;
                filled.map_err(|why| why.to_string())
            }
            Self::Table(name) => {
                let table = account.table().map_err(|why| why.to_string())?;
                made(table.create_table(&cx, name).await, is_there)
            }
            Self::Entity(name, write) => {
                let table = account.table().map_err(|why| why.to_string())?;
                made(table.write(&cx, name, write.clone()).await, is_there)
            }
        }
    }
}

fn context(account: &Account) -> Context {
    let client = Arc::new(Client { session: 0, name: "latchfs load".into() });
    let owner = Arc::new(Owner { client, pid: std::process::id(), program: None });
    Context::new(account.clock().now(), Caller::local(owner, "Load"))
}

/// Whether something was made, of a result whose refusal may say that it exists.
fn made<T, E: Display>(result: Result<T, E>, exists: fn(&E) -> bool) -> Result<bool, String> {
    match result {
        Ok(_) => Ok(true),
        Err(error) if exists(&error) => Ok(false),
        Err(error) => Err(error.to_string()),
    }
}

fn exists(error: &BlobError) -> bool {
    matches!(
        error,
        BlobError::Denied {
            denial: BlobDenial::ContainerAlreadyExists | BlobDenial::BlobAlreadyExists,
            ..
        }
    )
}

fn is_there(error: &TableError) -> bool {
    matches!(
        error,
        TableError::Denied(TableDenial::TableAlreadyExists | TableDenial::EntityAlreadyExists(_))
    )
}

impl Loaded {
    fn count(&mut self, step: &Step, made: bool) {
        let place = match step {
            _ if !made => &mut self.existed,
            Step::Container(_) => &mut self.containers,
            Step::Blob { .. } => &mut self.blobs,
            Step::Queue { messages, .. } => {
                self.messages += messages.len();
                &mut self.queues
            }
            Step::Table(_) => &mut self.tables,
            Step::Entity(..) => &mut self.entities,
        };
        *place += 1;
    }
}

/// What the accounts of a server have after a start and after a reset.
#[derive(Clone, Debug, Default)]
pub struct Loads(Vec<(String, PathBuf, Load)>);

impl Loads {
    /// Reads and checks what the options name; `first` is the account where none is named.
    pub fn of_options(
        files: &[PathBuf],
        objects: &[(Option<String>, ObjectAddress)],
        first: &str,
    ) -> Result<Self, String> {
        let mut loads = Vec::new();
        for file in files {
            let load = Load::read(file).map_err(|why| format!("--load {why}"))?;
            loads.push((first.to_owned(), file.clone(), load));
        }
        // After the files: a queue that exists gets no messages.
        let mut by_account = BTreeMap::<_, Vec<_>>::new();
        for (account, object) in objects {
            by_account.entry(account.as_deref().unwrap_or(first)).or_default().push(object.clone());
        }
        for (account, objects) in by_account {
            loads.push((account.to_owned(), PathBuf::new(), Load::of_names(objects)?));
        }
        Ok(Self(loads))
    }

    /// The accounts that are named.
    pub fn accounts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(account, ..)| account.as_str())
    }

    /// Makes what the accounts do not have; notes for the user come back.
    pub fn apply(&self, accounts: &Accounts) -> Result<Vec<String>, String> {
        let mut notes = Vec::new();
        for (account, file, load) in &self.0 {
            let Some(account) = accounts.get(account) else { continue };
            let named = !file.as_os_str().is_empty();
            let about = |why| if named { format!("--load {}: {why}", file.display()) } else { why };
            let loaded = load.apply(account).map_err(about)?;
            if named && loaded.existed > 0 {
                let (file, existed) = (file.display(), loaded.existed);
                notes.push(format!("--load {file}: {existed} existed and stay as they are"));
            }
        }
        Ok(notes)
    }
}
