//! Insert, get, update, merge and delete one entity.
//!
//! Decides how a request becomes a write and how its outcome is spelled, for single requests and
//! for the operations of a transaction. The effect of the write is decided in
//! [`crate::table::rules::change`].

use hyper::StatusCode;
use hyper::body::Incoming;

use super::error::refusal_of_form;
use super::headers::{Prefer, condition, json, reply};
use super::json::{EntityBody, read_entity};
use super::locator::{Locator, write_entity};
use super::{TableCall, locator, option, table_name};
use crate::http::auth::Permission;
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::multipart::boundary;
use crate::table::rules::{
    EntityChange, EntityFields as _, EntityKey, How, IfMatch, Properties, Select, TableDenial,
    TableName, etag,
};
use crate::table::service::{TableError, Write, WrittenEntity};

/// The version from which on an update without a condition is an upsert.
const UPSERT_SINCE: &str = "2011-08-18";

impl TableCall<'_> {
    pub(super) fn get_entity(self) -> Answer {
        let scope = self.scope()?;
        let (table, key) = self.entity()?;
        self.check_reach(&key)?;
        self.check_options()?;
        let select = option(self.request, "$select");
        let select = Select::parse(select.as_deref()).map_err(refusal_of_form)?;
        let entity = self.service()?.entity(&table, &key);
        let entity = entity.map_err(|error| self.refusal(&error))?;
        let body = scope.entity(table.as_str(), &*entity, &select);
        Ok(json(StatusCode::OK, scope.level, body).header("etag", etag::etag(entity.timestamp())))
    }

    pub(super) async fn insert_entity(self, body: Incoming) -> Answer {
        let body = self.body(body).await?;
        if let Locator::Beneath(name) = locator(self.request)? {
            return Err(self.refuse_beneath(&name, &body)?);
        }
        let scope = self.scope()?;
        let prefer = Prefer::read(self.header("prefer")?);
        let table = self.table()?;
        let write = insertion(&body)?;
        self.check_reach(&write.key)?;
        let object = format!("{}/{}/{}", table.as_str(), write.key.partition, write.key.row);
        let written = self.write(&table, write).await;
        let written = written.map_err(|refusal| refusal.about(object))?;
        let mut location = format!("{}/", scope.base);
        write_entity(table.as_str(), (&written.key.partition, &written.key.row), &mut location);
        let answer = match (prefer, &written.inserted) {
            (None | Some(Prefer::Content), Some(entity)) => {
                let body = scope.entity(table.as_str(), &**entity, &Select::default());
                json(StatusCode::CREATED, scope.level, body)
            }
            _ => reply(StatusCode::NO_CONTENT).header("dataserviceid", &location),
        };
        Ok(answer
            .header("location", location)
            .maybe("preference-applied", prefer.map(Prefer::applied))
            .maybe("etag", written.etag()))
    }

    /// The refusal of a POST whose path goes on after the table `name`: the service takes such a
    /// request for an insertion into that table.
    fn refuse_beneath(self, name: &str, body: &[u8]) -> Result<Refusal, Refusal> {
        let kind = self.header("content-type")?.unwrap_or_default();
        if boundary(kind).is_ok() {
            let message = "None of the provided media types are supported. [latchfs: a transaction \
                           is sent to $batch of the account, not of a table]";
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return Err(Refusal::new(status, "MediaTypeNotSupported", message));
        }
        self.service()?.table(&table_name(name)?).map_err(|error| match error {
            TableError::Denied(TableDenial::ResourceNotFound) => {
                refusal_of_form(TableDenial::TableNotFound)
            }
            other => self.refusal(&other),
        })?;
        insertion(body)?;
        Ok(refusal_of_form(TableDenial::beneath(name)))
    }

    pub(super) async fn replace_entity(self, body: Incoming) -> Answer {
        self.update(How::Replace, body).await
    }

    pub(super) async fn merge_entity(self, body: Incoming) -> Answer {
        self.update(How::Merge, body).await
    }

    async fn update(self, how: How, body: Incoming) -> Answer {
        let body = self.body(body).await?;
        let (table, key) = self.entity()?;
        self.check_reach(&key)?;
        let condition = self.condition()?;
        let version = self.header("x-ms-version")?;
        if condition == IfMatch::Absent && version.is_some_and(|version| version < UPSERT_SINCE) {
            return Err(refusal_of_form(TableDenial::MissingIfMatch));
        }
        self.check_letters(letters_of_update(&condition))?;
        let write = update(how, condition, key, &body)?;
        let written = self.write(&table, write).await?;
        Ok(reply(StatusCode::NO_CONTENT).maybe("etag", written.etag()))
    }

    pub(super) async fn delete_entity(self, _: Incoming) -> Answer {
        let (table, key) = self.entity()?;
        self.check_reach(&key)?;
        let change = EntityChange::Delete(self.condition()?);
        let write = Write { change, key, properties: Properties::default() };
        self.write(&table, write).await?;
        Ok(reply(StatusCode::NO_CONTENT))
    }

    fn condition(self) -> Result<IfMatch, Refusal> {
        condition(self.header("if-match")?, self.header("if-none-match")?)
    }

    async fn write(self, table: &TableName, write: Write) -> Result<WrittenEntity, Refusal> {
        let written = self.service()?.write(self.context, table, write).await;
        written.map_err(|error| self.refusal(&error))
    }
}

/// The letters that an update takes; an upsert may insert too.
pub(super) const fn letters_of_update(condition: &IfMatch) -> &'static [Permission] {
    match condition {
        IfMatch::Absent => &[Permission::Add, Permission::Update],
        _ => &[Permission::Update],
    }
}

/// The write that an insertion asks for: its body has both keys.
pub(super) fn insertion(body: &[u8]) -> Result<Write, Refusal> {
    let EntityBody { keys, properties } = read_entity(body).map_err(refusal_of_form)?;
    let [Some(partition), Some(row)] = keys.map_err(refusal_of_form)? else {
        return Err(refusal_of_form(TableDenial::PropertiesNeedValue));
    };
    Ok(Write { change: EntityChange::Insert, key: EntityKey { partition, row }, properties })
}

/// The write that an update asks for: the keys of its URL count, not those of its body.
pub(super) fn update(
    how: How,
    condition: IfMatch,
    key: EntityKey,
    body: &[u8],
) -> Result<Write, Refusal> {
    let given = read_entity(body).map_err(refusal_of_form)?;
    Ok(Write { change: EntityChange::Write(how, condition), key, properties: given.properties })
}
