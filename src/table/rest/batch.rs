//! Entity group transactions: a multipart body to writes, and their outcome to a multipart body.
//!
//! Decides which parts a batch may have and how an answer is spelled, to the byte: clients split it
//! at its boundaries and look for headers in their own spelling. The engine decides whether the
//! writes are done.

use hyper::body::Incoming;
use hyper::{Method, StatusCode};

use super::entities::{insertion, letters_of_update, update};
use super::error::{refusal_of_form, within};
use super::headers::{Prefer, condition, json_type, level, verb};
use super::json::{MetadataLevel, Scope};
use super::locator::{Locator, write_entity};
use super::{TableCall, option_in, table_name};
use crate::http::auth::Permission;
use crate::http::frame::refusal::Refusal;
use crate::http::frame::routing::Verb;
use crate::http::frame::service::Answer;
use crate::http::multipart::{
    self, InnerRequest, Malformed, Part, boundary, header, inner_answer, inner_request, parts,
};
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::sync::random::new_guid;
use crate::table::rules::transaction::OPERATIONS_MAX;
use crate::table::rules::{
    EntityChange, EntityFields as _, EntityKey, How, Properties, Select, TableDenial, TableName,
    TransactionDenial, etag, transaction,
};
use crate::table::service::{TableError, Write, WrittenEntity};

/// Parts that are read before their number is refused.
const PARTS_MAX: usize = 1_000;

/// The headers of every part of an answer.
const PART_HEAD: [(&str, &str); 2] =
    [("Content-Type", "application/http"), ("Content-Transfer-Encoding", "binary")];

/// An operation of a transaction.
struct BatchOperation {
    table: TableName,
    write: Write,
    level: MetadataLevel,
    prefer: Option<Prefer>,
}

/// The entity whose operation made a transaction fail.
fn object(operations: &[BatchOperation], error: &TableError) -> String {
    let failed = match error {
        TableError::Fault(TransactionDenial { index, .. }) => operations.get(*index),
        TableError::Denied(_) | TableError::Store(_) => None,
    };
    let named = |one: &BatchOperation| {
        let key = &one.write.key;
        format!("{}/{}/{}", one.table.as_str(), key.partition, key.row)
    };
    failed.map(named).unwrap_or_default()
}

/// The content of a batch: changes, or one query.
enum Batch<'a> {
    Changes(Vec<Part<'a>>),
    Get(InnerRequest<'a>),
}

/// The entities that a batch of changes writes; none if it cannot be read.
pub(super) fn entities(request: &Request) -> Option<Vec<(String, EntityKey)>> {
    let content_type = request.headers.get("content-type")?.to_str().ok()?;
    let Batch::Changes(parts) = read_batch(content_type, &request.body).ok()? else { return None };
    let read = |part| read_operation(&request.address.account, part).ok();
    let named = |one: BatchOperation| (one.table.to_string(), one.write.key);
    parts.iter().map(|part| read(part).map(named)).collect()
}

/// One change set, or one GET by itself.
fn read_batch<'a>(content_type: &str, body: &'a [u8]) -> Result<Batch<'a>, Refusal> {
    let outer = parts(body, boundary(content_type).map_err(malformed)?, PARTS_MAX);
    let outer = outer.map_err(malformed)?;
    let [only] = outer.as_slice() else {
        let why = "a batch has one change set, or one GET by itself";
        return Err(refusal_of_form(TableDenial::invalid(why)));
    };
    let kind = header(&only.headers, "content-type").unwrap_or_default();
    if let Ok(inner) = boundary(kind) {
        let inner = parts(only.body, inner, PARTS_MAX).map_err(malformed)?;
        if inner.is_empty() {
            return Err(refusal_of_form(TableDenial::invalid("the change set has no operations")));
        }
        return Ok(Batch::Changes(inner));
    }
    let request = inner_request(only.body).map_err(malformed)?;
    if request.method == "GET" {
        return Ok(Batch::Get(request));
    }
    Err(refusal_of_form(TableDenial::invalid("a change stands in a change set")))
}

fn read_operation(account: &str, part: &Part<'_>) -> Result<BatchOperation, Refusal> {
    let request = inner_request(part.body).map_err(malformed)?;
    let get = |name| header(&request.headers, name);
    let named =
        request.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("x-http-method"));
    let named: Vec<_> = named.map(|(_, value)| *value).collect();
    let method = Method::from_bytes(request.method.as_bytes()).unwrap_or_default();
    let condition = || condition(get("if-match"), get("if-none-match"));
    let (table, write) = match (verb(&method, &named)?, inner_locator(account, request.target)?) {
        (Some(Verb::Post), Locator::Table(table)) => (table, insertion(request.body)?),
        (Some(Verb::Put), Locator::Entity(table, key)) => {
            (table, update(How::Replace, condition()?, key, request.body)?)
        }
        (Some(Verb::Merge | Verb::Patch), Locator::Entity(table, key)) => {
            (table, update(How::Merge, condition()?, key, request.body)?)
        }
        (Some(Verb::Delete), Locator::Entity(table, key)) => {
            let change = EntityChange::Delete(condition()?);
            (table, Write { change, key, properties: Properties::default() })
        }
        _ => {
            let why = format!("{} {} is not a change", request.method, request.target);
            return Err(refusal_of_form(TableDenial::invalid(why.escape_debug())));
        }
    };
    let table = table_name(&table)?;
    write.key.check().map_err(refusal_of_form)?;
    let query = request.target.split_once('?').map_or("", |(_, query)| query);
    let format = option_in(query, "$format");
    let level = level(get("accept"), format.as_deref()).unwrap_or_default();
    Ok(BatchOperation { table, write, level, prefer: Prefer::read(get("prefer")) })
}

/// The resource that the target of an operation names. The host is ignored.
fn inner_locator(account: &str, target: &str) -> Result<Locator, Refusal> {
    let path = match target.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => target.trim_start_matches('/'),
    };
    // A question mark in a key is escaped.
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let within = path.strip_prefix(account).and_then(|rest| rest.strip_prefix('/'));
    Locator::parse(within.unwrap_or(path)).map_err(refusal_of_form)
}

impl TableCall<'_> {
    pub(super) async fn batch(self, body: Incoming) -> Answer {
        let body = self.body(body).await?;
        let content_type = self.header("content-type")?.unwrap_or_default();
        match read_batch(content_type, &body)? {
            Batch::Get(request) => Ok(self.single_get(&request)),
            Batch::Changes(parts) => match self.transact(&parts).await {
                Ok(answers) => Ok(answer(&answers)),
                Err(fault) => Ok(answer(&[self.error_part(&fault)])),
            },
        }
    }

    async fn transact(self, parts: &[Part<'_>]) -> Result<Vec<String>, Refusal> {
        if parts.len() > OPERATIONS_MAX {
            let text =
                "The batch request operation exceeds the maximum 100 changes per change set.";
            let denial = TableDenial::InvalidInput(text.into());
            return Err(within(OPERATIONS_MAX - 1, refusal_of_form(denial)));
        }
        let account = &self.address.account;
        let mut operations = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            let operation = read_operation(account, part).map_err(|fault| within(index, fault))?;
            operations.push(operation);
        }
        let keys = operations.iter().map(|one| (one.table.as_str(), &one.write.key));
        transaction::check(keys).map_err(|fault| self.refusal(&fault.into()))?;
        for (index, operation) in operations.iter().enumerate() {
            self.check_operation(operation).map_err(|refusal| within(index, refusal))?;
        }
        let writes = operations.iter().map(|one| (one.table.clone(), one.write.clone())).collect();
        let written = self.service()?.transact(self.context, writes).await;
        let written =
            written.map_err(|error| self.refusal(&error).about(object(&operations, &error)))?;
        Ok(operations.iter().zip(&written).map(|(one, done)| self.part(one, done)).collect())
    }

    /// Checks the permissions of a SAS for one operation.
    fn check_operation(self, operation: &BatchOperation) -> Result<(), Refusal> {
        self.check_letters(match &operation.write.change {
            EntityChange::Insert => &[Permission::Add],
            EntityChange::Write(_, condition) => letters_of_update(condition),
            EntityChange::Delete(_) => &[Permission::Delete],
        })?;
        self.check_table(&operation.table)?;
        self.check_reach(&operation.write.key)
    }

    fn part(self, operation: &BatchOperation, written: &WrittenEntity) -> String {
        let mut head = PartHeaders::default();
        let applied = operation.prefer.map(Prefer::applied);
        let inserts = matches!(operation.write.change, EntityChange::Insert);
        let mut location = format!("{}/", self.base());
        write_entity(
            operation.table.as_str(),
            (&written.key.partition, &written.key.row),
            &mut location,
        );
        if let (Some(applied), true) = (applied, inserts) {
            head.push("Preference-Applied", applied);
        }
        let entity = match operation.prefer {
            Some(Prefer::NoContent) => None,
            _ => written.inserted.as_deref(),
        };
        let mut body = String::new();
        if let Some(entity) = entity {
            let (level, base) = (operation.level, self.base());
            let scope = Scope { level, base, account: &self.address.account };
            body = scope.entity(operation.table.as_str(), entity, &Select::default());
            head.push("Content-Type", json_type(level));
        }
        head.push("DataServiceVersion", "3.0;");
        if inserts {
            head.push("Location", &location);
        }
        if inserts && entity.is_none() {
            head.push("DataServiceId", &location);
        }
        if let Some(etag) = written.etag() {
            head.push("ETag", etag);
        }
        let status = if entity.is_some() { (201, "Created") } else { (204, "No Content") };
        inner_answer(status, head.0, &body)
    }

    fn error_part(self, refusal: &Refusal) -> String {
        self.0.note_part(refusal);
        let mut head = PartHeaders::default();
        head.push("DataServiceVersion", "3.0;");
        head.push("Content-Type", json_type(MetadataLevel::Minimal));
        let status = refusal.status;
        let reason = status.canonical_reason().unwrap_or_default();
        inner_answer(
            (status.as_u16(), reason),
            head.0,
            &refusal.json(self.site.options.error_names, &self.stamp()),
        )
    }

    fn single_get(self, request: &InnerRequest<'_>) -> Reply {
        let answer = match self.inner_get(request) {
            Ok(answer) => answer,
            Err(refusal) => self.error_part(&refusal),
        };
        accepted(|batch| batch.part(PART_HEAD, &answer))
    }

    fn inner_get(self, request: &InnerRequest<'_>) -> Result<String, Refusal> {
        let Locator::Entity(table, key) = inner_locator(&self.address.account, request.target)?
        else {
            return Err(refusal_of_form(TableDenial::invalid("a GET in a batch names one entity")));
        };
        let table = table_name(&table)?;
        key.check().map_err(refusal_of_form)?;
        self.check_letters(&[Permission::Read])?;
        self.check_table(&table)?;
        self.check_reach(&key)?;
        let level = level(header(&request.headers, "accept"), None)?;
        let entity = self.service()?.entity(&table, &key);
        let entity = entity.map_err(|error| self.refusal(&error))?;
        let scope = Scope { level, base: self.base(), account: &self.address.account };
        let mut head = PartHeaders::default();
        head.push("DataServiceVersion", "3.0;");
        head.push("Content-Type", json_type(level));
        head.push("ETag", etag::etag(entity.timestamp()));
        let body = scope.entity(table.as_str(), &*entity, &Select::default());
        Ok(inner_answer((200, "OK"), head.0, &body))
    }
}

/// The headers of an answer within a part.
struct PartHeaders(Vec<(&'static str, String)>);

impl Default for PartHeaders {
    fn default() -> Self {
        Self(vec![
            ("X-Content-Type-Options", "nosniff".to_owned()),
            ("Cache-Control", "no-cache".to_owned()),
        ])
    }
}

impl PartHeaders {
    fn push(&mut self, name: &'static str, value: impl Into<String>) {
        self.0.push((name, value.into()));
    }
}

/// The answer with these parts in its change set.
fn answer(answers: &[String]) -> Reply {
    let mut changes = multipart::MultipartWriter::new(format!("changesetresponse_{}", new_guid()));
    for answer in answers {
        changes.part(PART_HEAD, answer);
    }
    let content_type = changes.content_type();
    let changes = changes.finish();
    accepted(|batch| batch.part([("Content-Type", &content_type)], &changes))
}

fn accepted(fill: impl FnOnce(&mut multipart::MultipartWriter)) -> Reply {
    let mut batch = multipart::MultipartWriter::new(format!("batchresponse_{}", new_guid()));
    fill(&mut batch);
    let content_type = batch.content_type();
    super::headers::reply(StatusCode::ACCEPTED).bytes(&content_type, batch.finish())
}

fn malformed(error: Malformed) -> Refusal {
    refusal_of_form(TableDenial::invalid(error))
}
