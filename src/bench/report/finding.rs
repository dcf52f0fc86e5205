//! A finding of the report: which rule, how sure, on what, by whom, and the rows that show it.
//!
//! Decides the names of rules and levels, and the advice that goes with a rule. What a rule finds
//! is decided in the file of its family; which findings are one is decided in [`super::sections`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How sure a finding is, and how bad.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Never tested.
    Info,
    /// The pattern without the overlap, or clients that are not surely told apart.
    Hint,
    /// It happened; the harm, if any, is outside storage.
    Warn,
    /// It happened, and stored data was lost or doubled.
    Error,
}

impl Level {
    /// All of them, the worst first.
    pub const ALL: [Self; 4] = [Self::Error, Self::Warn, Self::Hint, Self::Info];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Hint => "hint",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }

    /// The level of that name.
    pub fn read(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// What the report looks for.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ReportRule {
    LostUpdate,
    LaunderedEtag,
    CheckThenCreate,
    UnfencedLease,
    BlindRetry,
    StaleReceipt,
    PublishedEmpty,
    File,
    NeverTested,
}

impl ReportRule {
    pub const ALL: [Self; 9] = [
        Self::LostUpdate,
        Self::LaunderedEtag,
        Self::CheckThenCreate,
        Self::UnfencedLease,
        Self::BlindRetry,
        Self::StaleReceipt,
        Self::PublishedEmpty,
        Self::File,
        Self::NeverTested,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::LostUpdate => "lost-update",
            Self::LaunderedEtag => "laundered-etag",
            Self::CheckThenCreate => "check-then-create",
            Self::UnfencedLease => "unfenced-lease",
            Self::BlindRetry => "blind-retry",
            Self::StaleReceipt => "stale-receipt",
            Self::PublishedEmpty => "published-empty",
            Self::File => "file",
            Self::NeverTested => "never-tested",
        }
    }

    /// The rule of that name.
    pub fn read(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.name() == name)
    }

    /// What to do about it.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::LostUpdate => {
                "Send If-Match with the ETag of the read, and read again after a 412; or write \
                 under a lease of the object."
            }
            Self::LaunderedEtag => {
                "Send If-Match with the ETag that came with the content, not with a later one."
            }
            Self::CheckThenCreate => {
                "Create with If-None-Match: *, and take the refusal for the answer to the check."
            }
            Self::UnfencedLease => {
                "Lease the object that is written and send the lease ID with each write, or write \
                 with If-Match: the lock may be another client's by the time the write arrives."
            }
            Self::BlindRetry => {
                "Make the repetition harmless: look whether the first attempt was done, append \
                 with x-ms-blob-condition-appendpos, give a message an ID of its own."
            }
            Self::StaleReceipt => {
                "Renew the visibility with Update Message while the work lasts, use the receipt of \
                 the last answer, and make the work harmless when it is done twice."
            }
            Self::PublishedEmpty => {
                "Write the content with the request that creates the blob, or under another name \
                 and rename it."
            }
            Self::File => {
                "Lease the file, or hold it open without sharing writes, from read to write."
            }
            Self::NeverTested => "Write a test in which it is refused: a gate can give the order.",
        }
    }
}

/// A row of the journal that a finding is made of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The number of the row.
    pub seq: u64,
    /// When, by the clock of the server.
    pub time: String,
    pub client: String,
    pub operation: String,
    /// On which object, as `latchfs why` takes it.
    pub object: String,
    /// The `ETag` that it read, or that the object had afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The status of the answer; none if there was no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// Something that the report found, once or several times.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    pub rule: ReportRule,
    pub level: Level,
    /// The object, or the pattern of several: digits and GUIDs are `*`.
    pub object: String,
    /// How often it was found.
    pub count: u64,
    pub clients: Vec<String>,
    pub operations: Vec<String>,
    /// What happened the first time, in words.
    pub message: String,
    /// What to do about it.
    pub advice: String,
    /// The mark before the first time: the test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// The rows of the first time, in the order in which they were answered.
    pub evidence: Vec<Evidence>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_and_levels_are_read_by_the_names_that_they_have_in_json() {
        for rule in ReportRule::ALL {
            assert_eq!(serde_json::to_value(rule).unwrap(), rule.name());
            assert_eq!(ReportRule::read(rule.name()), Some(rule));
            assert!(rule.advice().ends_with('.'));
        }
        for level in Level::ALL {
            assert_eq!(serde_json::to_value(level).unwrap(), level.name());
            assert_eq!(Level::read(level.name()), Some(level));
        }
        assert!(Level::ALL.is_sorted_by(|one, other| one > other));
        assert_eq!((ReportRule::read("x"), Level::read("x")), (None, None));
    }
}
