//! The operations of the Table service: one file a resource.
//!
//! ```text
//!   operations   the table: permissions and function of each operation; which one is asked for
//!   headers      levels of metadata, Prefer, conditions
//!   error        status, code and message of each refusal
//!   tables       create, list, get, delete; their access policies
//!   entities     insert, get, update, merge, delete; query: pages of them
//!   batch        entity group transactions
//!   json         entities as JSON at three levels of metadata
//!   locator      tables and entities in URLs; token: where a page ends
//! ```
//!
//! Each operation reads its headers, calls the engine once, and spells the answer.

mod batch;
mod entities;
mod error;
mod footprint;
mod headers;
pub mod json;
mod locator;
pub mod operations;
mod query;
mod tables;
mod token;

pub(crate) use error::refusal_of_opening;

use std::ops::Deref;

use hyper::StatusCode;
use hyper::body::{Bytes, Incoming};
use percent_encoding::percent_decode_str;

use self::json::{MetadataLevel, Scope};
use self::locator::Locator;
use crate::http::auth::{GrantedBy, Permission, SasScope, TableScope};
use crate::http::frame::call::Call;
use crate::http::frame::refusal::Refusal;
use crate::http::request::Request;
use crate::table::rules::range::Edge;
use crate::table::rules::{EntityKey, Position, Range, TableDenial, TableName};
use crate::table::service::{TableError, TableService};

/// Bytes of a request body.
const BODY_BYTES_MAX: usize = 4 << 20;

/// A request to the Table service that was authorised.
#[derive(Clone, Copy)]
struct TableCall<'a>(&'a Call<'a>);

impl<'a> Deref for TableCall<'a> {
    type Target = Call<'a>;

    fn deref(&self) -> &Call<'a> {
        self.0
    }
}

impl<'a> TableCall<'a> {
    /// The service of the account.
    fn service(self) -> Result<&'a TableService, Refusal> {
        self.0.service()
    }

    /// Receives the body, which has a limit of its own.
    async fn body(self, body: Incoming) -> Result<Bytes, Refusal> {
        let body = self.collect(body).await?;
        if body.len() <= BODY_BYTES_MAX {
            return Ok(body);
        }
        let message = "The request body is too large and exceeds the maximum permissible limit.";
        Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestBodyTooLarge", message)
            .with("MaxLimit", BODY_BYTES_MAX.to_string()))
    }

    fn refusal(self, error: &TableError) -> Refusal {
        error::refusal(error, self.0.context.now)
    }

    /// The URL of the service without a slash at its end.
    fn base(self) -> &'a str {
        self.0.request.address.endpoint.trim_end_matches('/')
    }

    /// The level of metadata and the addresses of the answer.
    fn scope(self) -> Result<Scope<'a>, Refusal> {
        let level = self.level()?;
        Ok(Scope { level, base: self.base(), account: &self.0.request.address.account })
    }

    fn level(self) -> Result<MetadataLevel, Refusal> {
        headers::level(self.header("accept")?, option(self.0.request, "$format").as_deref())
    }

    /// The table that the path names.
    fn table(self) -> Result<TableName, Refusal> {
        match locator(self.0.request)? {
            Locator::Table(name) | Locator::TableEntry(name) | Locator::Entity(name, _) => {
                table_name(&name)
            }
            _ => Err(Refusal::bad("InvalidUri", "The path does not name a table.")),
        }
    }

    /// The entity that the path names. Its keys are checked.
    fn entity(self) -> Result<(TableName, EntityKey), Refusal> {
        let Locator::Entity(name, key) = locator(self.0.request)? else {
            return Err(Refusal::bad("InvalidUri", "The path does not name an entity."));
        };
        let table = table_name(&name)?;
        key.check().map_err(error::refusal_of_form)?;
        Ok((table, key))
    }

    /// The table and the keys of the request's SAS, if it has one.
    fn table_sas(self) -> Option<&'a TableScope> {
        match &self.0.grant.by {
            GrantedBy::Sas { scope: SasScope::Table(scope), .. } => Some(scope),
            _ => None,
        }
    }

    /// The keys that the request may touch.
    fn reach(self) -> Range {
        self.table_sas().map_or(Range::ALL, reach)
    }

    /// Refuses an entity that the request's SAS does not reach.
    fn check_reach(self, key: &EntityKey) -> Result<(), Refusal> {
        if self.reach().contains(&key.partition, &key.row) {
            return Ok(());
        }
        let message = "This request is not authorized to perform this operation. [latchfs: the \
                       entity lies outside the key range of the shared access signature]";
        Err(Refusal::new(StatusCode::FORBIDDEN, "AuthorizationFailure", message))
    }

    /// Refuses a table that the request's SAS is not for.
    fn check_table(self, table: &TableName) -> Result<(), Refusal> {
        let named = self.table_sas().map(|scope| scope.table.as_str());
        if named.is_none_or(|named| named.eq_ignore_ascii_case(table.as_str())) {
            return Ok(());
        }
        let message = "This request is not authorized to perform this operation. [latchfs: the \
                       shared access signature is for another table]";
        Err(Refusal::new(StatusCode::FORBIDDEN, "AuthorizationFailure", message))
    }

    /// Refuses a request whose SAS lacks one of these letters.
    fn check_letters(self, needed: &[Permission]) -> Result<(), Refusal> {
        if needed.iter().all(|one| self.0.grant.permits(*one)) {
            return Ok(());
        }
        let letters: String = needed.iter().map(|one| one.letter()).collect();
        let message = format!(
            "This request is not authorized to perform this operation using this permission. \
             [latchfs: it takes '{letters}']"
        );
        let code = "AuthorizationPermissionMismatch";
        Err(Refusal::new(StatusCode::FORBIDDEN, code, message))
    }
}

/// The resource that the path of a request names.
fn locator(request: &Request) -> Result<Locator, Refusal> {
    let address = &request.address;
    if percent_decode_str(request.uri.path()).decode_utf8().is_err() {
        return Err(error::refusal_of_form(TableDenial::invalid("the path is no UTF-8")));
    }
    let segment = address.container.as_deref().unwrap_or_default();
    // A slash in a key is escaped: what follows one is no part of a name.
    if !address.rest.is_empty() {
        return Ok(Locator::Beneath(segment.to_owned()));
    }
    Locator::of_segment(segment).map_err(error::refusal_of_form)
}

fn table_name(text: &str) -> Result<TableName, Refusal> {
    TableName::parse(text).map_err(error::refusal_of_form)
}

/// A query option, decoded. Names of options are compared without case, an empty value counts as
/// none. A plus is a blank unless the value has escaped blanks: then it stands for itself.
fn option(request: &Request, name: &str) -> Option<String> {
    option_in(request.uri.query()?, name)
}

/// The same in a query.
fn option_in(query: &str, name: &str) -> Option<String> {
    query.split('&').find_map(|pair| {
        let (given, value) = pair.split_once('=')?;
        let given = percent_decode_str(given).decode_utf8_lossy();
        if !given.eq_ignore_ascii_case(name) || value.is_empty() {
            return None;
        }
        let plain = if value.contains("%20") { value.to_owned() } else { value.replace('+', " ") };
        Some(percent_decode_str(&plain).decode_utf8_lossy().into_owned())
    })
}

/// The keys that a table SAS reaches: from the first to the last, both included. Without a row
/// key an end is the end of its partition.
fn reach(scope: &TableScope) -> Range {
    let start = match scope.first.clone() {
        [Some(partition), Some(row)] => Position::before(EntityKey { partition, row }),
        [Some(partition), None] => Position::of_partition(Edge::before(partition)),
        [None, _] => Position::START,
    };
    let end = match scope.last.clone() {
        [Some(partition), Some(row)] => Position::after(EntityKey { partition, row }),
        [Some(partition), None] => Position::of_partition(Edge::after(partition)),
        [None, _] => Position::End,
    };
    Range { start, end }
}
