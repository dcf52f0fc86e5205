//! The blob or container that a request names, and its demands: conditions, lease ID, customer's
//! key.
//!
//! Decides how these headers are read. Which of them an operation takes is decided in
//! [`crate::blob::rules::operation`]; whether they hold, in the rules too.

use hyper::StatusCode;
use percent_encoding::percent_decode_str;

use super::BlobCall;
use crate::blob::rules::BlobOperation;
use crate::blob::rules::name::{ROOT, check_blob, check_container};
use crate::blob::rules::operation::Accepted;
use crate::blob::rules::tags::query::{TagLanguage, TagQuery};
use crate::blob::service::{AccessConditions, BlobAt, Selector, SourceAsked};
use crate::http::auth::{AuthError, GrantedBy, Permission};
use crate::http::frame::refusal::Refusal;
use crate::http::request::{Query, Request};
use crate::rules::conditions::{ConditionFailure, Conditions, EtagList};
use crate::rules::lease::LeaseClass;
use crate::rules::time::{parse_iso, parse_rfc1123};
use crate::rules::{NameError, Timestamp};

const LEASE_ID: &str = "x-ms-lease-id";
/// A condition on the tags of a copy's source.
pub(super) const SOURCE_IF_TAGS: &str = "x-ms-source-if-tags";

impl BlobCall<'_> {
    /// The container that the path names.
    pub(super) fn container_name(&self) -> Result<&str, Refusal> {
        let missing = || Refusal::bad("InvalidUri", "The path does not name a container.");
        let name = self.address.container.as_deref().ok_or_else(missing)?;
        check_container(name)?;
        Ok(name)
    }

    /// The blob that the path names, as it is. One that names an older state is refused.
    pub(super) fn blob_to_change(&self) -> Result<BlobAt, Refusal> {
        let at = self.blob_at()?;
        match at.selector {
            Selector::Current => Ok(at),
            Selector::Snapshot(_) => Err(older("snapshot", &self.query)),
            Selector::Version(_) => Err(older("versionid", &self.query)),
        }
    }

    /// The blob, snapshot or version that the path and the query name. A path of one segment that
    /// names no container is a blob of the root container.
    pub(super) fn blob_at(&self) -> Result<BlobAt, Refusal> {
        let at = if self.address.rest.is_empty() {
            BlobAt::new(ROOT, self.address.container.clone().unwrap_or_default())
        } else {
            let name = percent_decode_str(&self.address.rest).decode_utf8();
            let unreadable = |_| NameError::form(&self.address.rest, "it is no UTF-8 once decoded");
            BlobAt::new(self.container_name()?, name.map_err(unreadable)?)
        };
        check_blob(&at.container, &at.name)?;
        Ok(at.state(selector(&self.query)?))
    }

    /// The demands of the request on the blob or container.
    pub(super) fn asked(&self, operation: BlobOperation) -> Result<AccessConditions, Refusal> {
        let rules = operation.rules();
        let mut accepts = rules.accepts;
        if operation.name().starts_with("Container") && !accepts.0.is_empty() {
            accepts = self.container_conditions(accepts)?;
        }
        let tagging = matches!(operation, BlobOperation::BlobGetTags | BlobOperation::BlobSetTags);
        let (prefix, accepts) =
            if tagging { ("x-ms-blob-", Accepted("MNIUT")) } else { ("", accepts) };
        let conditions = conditions(self, prefix, accepts)?;
        conditions.check_combination(rules.form).map_err(combination)?;
        let takes_id = !matches!(rules.lease, LeaseClass::Ignored | LeaseClass::Action);
        let lease = if takes_id { self.lease_id(LEASE_ID)? } else { None };
        let key = self.customer_key()?;
        let tags = if accepts.has('T') { tag_query(self, "x-ms-if-tags")? } else { None };
        if tags.is_some() {
            self.check_letter(Permission::Tags)?;
        }
        if self.grant.encryption_scope.is_some() {
            self.scope_sent()?;
        }
        // A SAS that permits to create and not to write never overwrites.
        let only_new = !self.grant.permits(Permission::Write);
        Ok(AccessConditions { conditions, tags, lease, key, only_new })
    }

    /// The date of a header.
    pub(super) fn date(&self, name: &str) -> Result<Option<Timestamp>, Refusal> {
        self.header(name)?.map(|text| read_date(name, text)).transpose()
    }

    /// Refuses a SAS without a letter that the request takes beside those of its operation.
    pub(super) fn check_letter(&self, needed: Permission) -> Result<(), Refusal> {
        if self.grant.permits(needed) {
            return Ok(());
        }
        self.check_not_anonymous()?;
        let message = format!(
            "This request is not authorized to perform this operation using this permission. \
             [latchfs: this operation needs '{}']",
            needed.letter()
        );
        Err(Refusal::new(StatusCode::FORBIDDEN, "AuthorizationPermissionMismatch", message))
    }

    /// Refuses what a public container does not show to everybody.
    pub(super) fn check_not_anonymous(&self) -> Result<(), Refusal> {
        match self.grant.by {
            GrantedBy::Anonymous => Err(AuthError::NoCredentials.into()),
            _ => Ok(()),
        }
    }

    /// Containers document dates alone. The other conditions are evaluated too, because to ignore
    /// an If-Match would lose an update silently; in strict mode they are refused.
    fn container_conditions(&self, documented: Accepted) -> Result<Accepted, Refusal> {
        let letters = [
            ('M', "if-match"),
            ('N', "if-none-match"),
            ('I', "if-modified-since"),
            ('U', "if-unmodified-since"),
        ];
        let strict = self.engine()?.options().strict;
        for (letter, name) in letters {
            if strict && self.headers.contains_key(name) && !documented.has(letter) {
                let message = "Condition headers are not supported.";
                return Err(Refusal::bad("ConditionHeadersNotSupported", message));
            }
        }
        Ok(Accepted("MNIU"))
    }

    /// The demands of a copy on its source.
    pub(super) fn source_asked(&self, operation: BlobOperation) -> Result<SourceAsked, Refusal> {
        let accepts = operation.rules().source;
        let conditions = conditions(self, "x-ms-source-", accepts)?;
        let tags = if accepts.has('T') { tag_query(self, SOURCE_IF_TAGS)? } else { None };
        Ok(SourceAsked { conditions, tags, key: self.source_key(operation)? })
    }
}

/// The conditions of a request that an operation takes. `prefix` comes before the usual names.
fn conditions(request: &Request, prefix: &str, accepts: Accepted) -> Result<Conditions, Refusal> {
    let text = |letter, name: &str| {
        let name = format!("{prefix}{name}");
        if !accepts.has(letter) {
            return Ok(None);
        }
        Ok::<_, Refusal>(request.header(&name)?.map(|text| (name, text)))
    };
    let etags =
        |letter, name| Ok::<_, Refusal>(text(letter, name)?.map(|(_, text)| EtagList::parse(text)));
    let date = |letter, name| match text(letter, name)? {
        None => Ok(None),
        Some((name, text)) => read_date(&name, text).map(Some),
    };
    Ok(Conditions {
        if_match: etags('M', "if-match")?,
        if_none_match: etags('N', "if-none-match")?,
        if_modified_since: date('I', "if-modified-since")?,
        if_unmodified_since: date('U', "if-unmodified-since")?,
    })
}

fn read_date(name: &str, text: &str) -> Result<Timestamp, Refusal> {
    let why = "it must be a date like Mon, 05 Jan 2026 10:00:00 GMT";
    parse_rfc1123(text).ok_or_else(|| Refusal::header(name, text, why))
}

fn tag_query(request: &Request, name: &str) -> Result<Option<TagQuery>, Refusal> {
    let Some(text) = request.header(name)? else { return Ok(None) };
    let query = TagQuery::parse(text, TagLanguage::Condition);
    query.map(Some).map_err(|error| Refusal::header(name, text, &error.to_string()))
}

fn combination(failure: ConditionFailure) -> Refusal {
    match failure {
        ConditionFailure::Unsatisfiable => Refusal::bad(
            "UnsatisfiableCondition",
            "The request includes an unsatisfiable condition for this operation.",
        ),
        _ => Refusal::bad(
            "MultipleConditionHeadersNotSupported",
            "Multiple condition headers are not supported.",
        ),
    }
}

/// The state that a query names.
pub(super) fn selector(query: &Query) -> Result<Selector, Refusal> {
    match (moment(query, "snapshot")?, moment(query, "versionid")?) {
        (None, None) => Ok(Selector::Current),
        (Some(moment), None) => Ok(Selector::Snapshot(moment)),
        (None, Some(moment)) => Ok(Selector::Version(moment)),
        (Some(_), Some(_)) => Err(Refusal::bad(
            "MutuallyExclusiveQueryParameters",
            "The query parameters snapshot and versionid are mutually exclusive.",
        )),
    }
}

/// A moment in a query.
pub(super) fn moment(query: &Query, name: &str) -> Result<Option<Timestamp>, Refusal> {
    let Some(text) = query.get(name) else { return Ok(None) };
    let moment = parse_iso(text);
    moment.map(Some).ok_or_else(|| Refusal::query(name, text, "it is not a time"))
}

fn older(name: &str, query: &Query) -> Refusal {
    let value = query.get(name).unwrap_or_default();
    Refusal::query(name, value, "snapshots and versions cannot be changed")
}
