//! The differences between services in the texts that are signed: a row for each service.
//!
//! Decides which fields each version of a SAS signs. The text is made of them in [`super::sas`],
//! and everything around it is the same for all.

use super::delegation::KEY_FIELDS;
use super::error::AuthError;
use super::grant::SasScope;
use super::permission::ResourceLevel;
use super::request::{AuthTarget, RequestView, SignedQuery};
use super::sas::{self, REQUEST, RESOURCE, STATE, table};
use super::shared_key::{self, IsSigned, Scheme};
use crate::rules::service::ServiceKind;

/// Parameters in the order of the text, each group with the `sv` from which it is signed.
pub type SasFields = &'static [(&'static str, &'static [&'static str])];

/// What a SAS reaches, and the spelling of the resource in the text.
pub type Reach = Result<(SasScope, String), AuthError>;

/// The texts that requests to a service sign.
#[derive(Clone, Copy, Debug)]
pub struct Signatures {
    pub kind: ServiceKind,
    /// What a service SAS signs.
    pub service_sas: SasFields,
    /// What a service SAS signs if it is made with a user delegation key; empty if there is none.
    pub delegation_sas: SasFields,
    pub reach: fn(&AuthTarget<'_>, &SignedQuery) -> Reach,
    /// Tries the texts of Shared Key and Shared Key Lite that known clients sign, the likeliest
    /// first; the first one is the one by the book.
    pub shared_key: fn(&RequestView<'_>, account: &str, Scheme, IsSigned<'_>) -> bool,
    /// Whether a bearer token at that level needs `x-ms-file-request-intent`.
    pub needs_intent: fn(ResourceLevel) -> bool,
}

impl PartialEq for Signatures {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

impl Eq for Signatures {}

/// From this `sv` on the resource type and the snapshot are signed.
const SNAPSHOT_SINCE: &str = "2018-11-09";
/// From this `sv` on the encryption scope is signed.
pub(super) const SCOPE_SINCE: &str = "2020-12-06";
/// From these on a delegated SAS signs users, the users of the key, and request headers.
const USERS_SINCE: &str = "2020-02-10";
const KEY_USERS_SINCE: &str = "2025-07-05";
const REQUEST_SINCE: &str = "2026-04-06";

const START: &[&str] = &["sp", "st", "se", RESOURCE];
const POLICY: &[&str] = &["si", "sip", "spr", "sv"];
const KEY_USERS: &[&str] = &["skdutid", "sduoid"];
const PLACE: &[&str] = &["sip", "spr", "sv"];
/// The parameters of a service SAS that replace response headers.
const OVERRIDES: &[&str] = &["rscc", "rscd", "rsce", "rscl", "rsct"];

pub static FILE: Signatures = Signatures {
    kind: ServiceKind::File,
    service_sas: &[("", START), ("", POLICY), ("", OVERRIDES)],
    delegation_sas: &[
        ("", START),
        ("", &KEY_FIELDS),
        ("", KEY_USERS),
        ("", PLACE),
        ("", OVERRIDES),
    ],
    reach: |target, query| sas::by_type(target, query, "s", &["f"]),
    shared_key: shared_key::texts,
    // A bearer passes by the access control of files and directories, and must say that it means
    // to. Shares and the service have none.
    needs_intent: |level| matches!(level, ResourceLevel::Object),
};

pub static BLOB: Signatures = Signatures {
    kind: ServiceKind::Blob,
    service_sas: &[
        ("", START),
        ("", POLICY),
        (SNAPSHOT_SINCE, &["sr", STATE]),
        (SCOPE_SINCE, &["ses"]),
        ("", OVERRIDES),
    ],
    delegation_sas: &[
        ("", START),
        ("", &KEY_FIELDS),
        (USERS_SINCE, &["saoid", "suoid", "scid"]),
        (KEY_USERS_SINCE, KEY_USERS),
        ("", PLACE),
        (SNAPSHOT_SINCE, &["sr", STATE]),
        (SCOPE_SINCE, &["ses"]),
        (REQUEST_SINCE, &[REQUEST]),
        ("", OVERRIDES),
    ],
    reach: |target, query| sas::by_type(target, query, "c", &["b", "bs", "bv"]),
    shared_key: shared_key::texts,
    needs_intent: |_| false,
};

/// There is no `sr`, because a queue and its messages are all that can be meant.
pub static QUEUE: Signatures = Signatures {
    kind: ServiceKind::Queue,
    service_sas: &[("", START), ("", POLICY)],
    delegation_sas: &[("", START), ("", &KEY_FIELDS), ("", KEY_USERS), ("", PLACE)],
    reach: |target, _| sas::whole(target),
    shared_key: shared_key::texts_of_queues,
    needs_intent: |_| false,
};

pub static TABLE: Signatures = Signatures {
    kind: ServiceKind::Table,
    service_sas: &[("", START), ("", POLICY), ("", &["spk", "srk", "epk", "erk"])],
    delegation_sas: &[],
    reach: table::reach,
    shared_key: table::texts,
    needs_intent: |_| false,
};
