//! Requests about the report: its findings, and the rules by which some of them are ignored.
//!
//! Decides how they are written as JSON. What is found is decided in [`crate::bench::report`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::controls::Removed;
use super::failure::ApiFailure;
use super::routes::{GetIgnores, RemoveIgnore};
use super::session::Session;
use crate::bench::report::{IGNORES_MAX, IgnoreRule, Level, MARKS_MAX, Report, ReportRule, junit};

/// The longest pattern and the longest reason of an ignore rule, in bytes.
const TEXT_MAX: usize = 1_024;

/// Asks for what went wrong between clients, or was never tried.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct GetReport {
    /// What was found since this mark, the latest of the name; all without it
    pub since: Option<String>,
    /// Findings of this level and above: error, warn, hint or info; all without it
    #[schemars(extend("enum" = ["error", "warn", "hint", "info"]))]
    pub level: Option<String>,
}

/// Asks for the report as a `JUnit` document.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct GetJunit {
    /// What was found since this mark, the latest of the name; all without it
    pub since: Option<String>,
    /// Findings of this level and above are failures: error, warn or hint; error without it
    #[schemars(extend("enum" = ["error", "warn", "hint"]))]
    pub fail_on: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Junit {
    /// The document: XML.
    pub junit: String,
}

/// Adds a rule by which findings are ignored.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "rule": "lost-update", "object": "blob:status/*", "why": "the last writer wins, as intended",
}))]
pub struct AddIgnore {
    /// The rule of the findings, as in `lost-update`
    #[schemars(extend("enum" = ReportRule::ALL.map(ReportRule::name)))]
    pub rule: String,
    /// A pattern of their objects: `*` is any text without a slash, `**` any text
    pub object: String,
    /// Why they are no bugs
    pub why: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct IgnoreList {
    pub ignores: Vec<IgnoreRule>,
}

/// The level that a parameter names.
fn level_of(name: Option<&str>, without: Level) -> Result<Level, ApiFailure> {
    let level = name.map_or(Some(without), Level::read);
    level.ok_or_else(|| ApiFailure::bad("a level is error, warn, hint or info"))
}

impl Session {
    pub fn junit(&self, GetJunit { since, fail_on }: GetJunit) -> Result<Junit, ApiFailure> {
        let fails = level_of(fail_on.as_deref(), Level::Error)?;
        let report = self.report(GetReport { since, level: None })?;
        Ok(Junit { junit: junit(&report, fails) })
    }

    pub fn report(&self, GetReport { since, level }: GetReport) -> Result<Report, ApiFailure> {
        let level = level_of(level.as_deref(), Level::Info)?;
        let reporter = &self.serving.controls().report;
        reporter.with(|engine| engine.report(since.as_deref(), level)).ok_or_else(|| {
            let name = since.unwrap_or_default();
            ApiFailure::not_found(format!(
                "there is no mark '{name}': a mark is set by POST /api/v1/marks, and a server \
                 remembers the last {MARKS_MAX}"
            ))
        })
    }

    pub fn ignores(&self, _: GetIgnores) -> Result<IgnoreList, ApiFailure> {
        let reporter = &self.serving.controls().report;
        Ok(IgnoreList { ignores: reporter.with(|engine| engine.sections.ignores().to_vec()) })
    }

    pub fn add_ignore(&self, ignore: AddIgnore) -> Result<IgnoreRule, ApiFailure> {
        let AddIgnore { rule, object, why } = ignore;
        let rule = ReportRule::read(&rule).ok_or_else(|| {
            let known = ReportRule::ALL.map(ReportRule::name).join(", ");
            ApiFailure::bad(format!("there is no rule '{rule}', only {known}"))
        })?;
        for (name, text) in [("object", &object), ("why", &why)] {
            if text.trim().is_empty() || text.len() > TEXT_MAX {
                let message = format!("'{name}' is a text of 1 to {TEXT_MAX} bytes");
                return Err(ApiFailure::bad(message));
            }
        }
        let reporter = &self.serving.controls().report;
        reporter.with(|engine| engine.sections.ignore(rule, object, why)).ok_or_else(|| {
            ApiFailure::busy(format!("a server has at most {IGNORES_MAX} of them: remove one"))
        })
    }

    pub fn remove_ignore(&self, RemoveIgnore { id }: RemoveIgnore) -> Result<Removed, ApiFailure> {
        if self.serving.controls().report.with(|engine| engine.sections.heed(id)) {
            Ok(Removed { removed: 1 })
        } else {
            Err(ApiFailure::not_found(format!("there is no ignore rule {id}")))
        }
    }
}
