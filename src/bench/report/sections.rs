//! The findings so far, from mark to mark, and how they are read.
//!
//! Decides which findings are one, how many are kept, and which of them are ignored.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::finding::{Evidence, Finding, Level, ReportRule};
use super::found::Found;
use super::past::Past;
use super::shape::shape;
use super::untested::{Tried, TriedKey, message};
use crate::rules::glob;

/// The most findings that are kept, and the most counts of what was tried.
pub const FINDINGS_MAX: usize = 10_000;
/// The most marks that are remembered.
pub const MARKS_MAX: usize = 10_000;
/// The most rules by which findings are ignored.
pub const IGNORES_MAX: usize = 1_000;

/// What was found in a run so far, or since a mark.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// The mark that it begins at; none: all since the start of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// How many requests were looked at.
    pub requests: u64,
    /// Rows or findings did not fit in memory: there may be more.
    pub incomplete: bool,
    /// How many findings rules of `ignore` have hidden.
    pub ignored: u64,
    /// The findings, the worst first.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether it has a finding of this level or above, or may have one that did not fit.
    pub fn fails(&self, level: Level) -> bool {
        self.incomplete || self.findings.iter().any(|finding| finding.level >= level)
    }
}

/// A rule by which findings are ignored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct IgnoreRule {
    pub id: u64,
    pub rule: ReportRule,
    /// A pattern of objects as findings name them: `*` is any text without a slash, `**` any text.
    pub object: String,
    /// Why the findings are no bugs.
    pub why: String,
}

impl IgnoreRule {
    /// Whether it hides a finding. The pattern of a finding of several objects has stars, so that
    /// a rule for one of them does not hide it.
    fn hides(&self, finding: &Finding) -> bool {
        let fits = |object: &str| glob::matches(self.object.as_bytes(), object.as_bytes());
        let alone = finding.count == 1;
        let object = finding.evidence.last().map(|last| &*last.object).filter(|_| alone);
        self.rule == finding.rule && (fits(&finding.object) || object.is_some_and(fits))
    }
}

/// What makes two findings one.
type FindingKey = (ReportRule, Level, String, Vec<String>, Vec<&'static str>);

/// The findings between two marks.
#[derive(Debug, Default)]
struct Section {
    mark: Option<String>,
    requests: u64,
    findings: HashMap<FindingKey, Finding>,
    tried: BTreeMap<TriedKey, Tried>,
}

#[derive(Debug)]
pub struct Sections {
    /// Never empty.
    all: Vec<Section>,
    /// How many findings and counts there are in all of them.
    kept: usize,
    pub incomplete: bool,
    ignores: Vec<IgnoreRule>,
    last_ignore: u64,
}

impl Default for Sections {
    fn default() -> Self {
        let all = vec![Section::default()];
        Self { all, kept: 0, incomplete: false, ignores: Vec::new(), last_ignore: 0 }
    }
}

impl Sections {
    /// Begins a section. If there are too many marks, the oldest one is forgotten.
    pub fn mark(&mut self, name: &str) {
        if self.all.len() > MARKS_MAX {
            let oldest = self.all.remove(1);
            self.kept -= self.all[0].add_all(&oldest);
        }
        self.all.push(Section { mark: Some(name.to_owned()), ..Section::default() });
    }

    fn last(&mut self) -> &mut Section {
        self.all.last_mut().expect("there is always a section")
    }

    pub fn count_request(&mut self) {
        self.last().requests += 1;
    }

    pub fn add(&mut self, past: &Past, found: Found) {
        let found = found.lowered(past);
        let Some(object) = found.object() else { return };
        let object = shape(&past.seen_object(object).name);
        let clients: Vec<_> =
            found.clients().into_iter().map(|id| past.name(id).to_owned()).collect();
        let crowd = clients.iter().map(|name| crowd(name)).collect();
        let mut operations: Vec<_> = found.steps.iter().map(|step| step.operation).collect();
        operations.dedup();
        let key = (found.rule, found.level, object, crowd, operations);
        let is_room = self.kept < FINDINGS_MAX;
        let section = self.all.last_mut().expect("there is always a section");
        if let Some(same) = section.findings.get_mut(&key) {
            same.count += 1;
            return;
        }
        if !is_room {
            self.incomplete = true;
            return;
        }
        let (rule, level, object, _, operations) = key.clone();
        let finding = Finding {
            rule,
            level,
            object,
            count: 1,
            clients,
            operations: operations.into_iter().map(str::to_owned).collect(),
            message: found.message,
            advice: rule.advice().to_owned(),
            mark: section.mark.clone(),
            evidence: found.steps.iter().map(|step| past.evidence(step)).collect(),
        };
        section.findings.insert(key, finding);
        self.kept += 1;
    }

    pub fn tried(&mut self, key: TriedKey, refused: bool, seq: u64) {
        let is_room = self.kept < FINDINGS_MAX;
        let section = self.all.last_mut().expect("there is always a section");
        let is_new = !section.tried.contains_key(&key);
        if is_new && !is_room {
            self.incomplete = true;
            return;
        }
        self.kept += usize::from(is_new);
        let tried = section.tried.entry(key).or_insert(Tried { first: seq, ..Tried::default() });
        tried.could += 1;
        tried.refused += u64::from(refused);
    }

    /// The findings of at least this level since a mark; none if there is no such mark.
    pub fn report(&self, since: Option<&str>, level: Level) -> Option<Report> {
        let from = match since {
            Some(name) => self.all.iter().rposition(|one| one.mark.as_deref() == Some(name))?,
            None => 0,
        };
        let mut whole = Section::default();
        for section in &self.all[from..] {
            whole.add_all(section);
        }
        let mut findings: Vec<_> = whole.findings.into_values().collect();
        findings.sort_by_cached_key(|one| (std::cmp::Reverse(one.level), first(one), one.rule));
        findings.extend(untested(&whole.tried));
        let all = findings.len();
        findings.retain(|finding| !self.ignores.iter().any(|ignore| ignore.hides(finding)));
        let ignored = (all - findings.len()) as u64;
        findings.retain(|finding| finding.level >= level);
        let since = since.map(str::to_owned);
        let (requests, incomplete) = (whole.requests, self.incomplete);
        Some(Report { since, requests, incomplete, ignored, findings })
    }

    pub fn ignores(&self) -> &[IgnoreRule] {
        &self.ignores
    }

    /// Adds a rule; none if there are too many.
    pub fn ignore(&mut self, rule: ReportRule, object: String, why: String) -> Option<IgnoreRule> {
        if self.ignores.len() >= IGNORES_MAX {
            return None;
        }
        self.last_ignore += 1;
        let ignore = IgnoreRule { id: self.last_ignore, rule, object, why };
        self.ignores.push(ignore.clone());
        Some(ignore)
    }

    /// Removes a rule; false if there is none of this number.
    pub fn heed(&mut self, id: u64) -> bool {
        let before = self.ignores.len();
        self.ignores.retain(|ignore| ignore.id != id);
        self.ignores.len() < before
    }
}

impl Section {
    /// Adds what a later section has. Returns how many findings and counts were there already.
    fn add_all(&mut self, later: &Self) -> usize {
        self.requests += later.requests;
        let mut same = 0;
        for (key, finding) in &later.findings {
            match self.findings.get_mut(key) {
                Some(there) => {
                    there.count += finding.count;
                    same += 1;
                }
                None => drop(self.findings.insert(key.clone(), finding.clone())),
            }
        }
        for (key, tried) in &later.tried {
            match self.tried.get_mut(key) {
                Some(there) => {
                    there.could += tried.could;
                    there.refused += tried.refused;
                    same += 1;
                }
                None => drop(self.tried.insert(key.clone(), *tried)),
            }
        }
        same
    }
}

/// What clients have in common that are one for a count: the threads of a program, `worker-7`.
fn crowd(name: &str) -> String {
    shape(name.split(", thread ").next().unwrap_or_default())
}

/// The number of the first row of a finding.
fn first(finding: &Finding) -> u64 {
    finding.evidence.first().map_or(0, |row| row.seq)
}

/// What could be refused and never was. Causes that have refused other requests in the same
/// container come first.
fn untested(tried: &BTreeMap<TriedKey, Tried>) -> Vec<Finding> {
    let occurred: BTreeSet<_> = tried
        .iter()
        .filter(|(_, tried)| tried.refused > 0)
        .map(|(key, _)| (&key.container, key.cause))
        .collect();
    let mut never: Vec<_> = tried.iter().filter(|(_, tried)| tried.refused == 0).collect();
    never.sort_by_key(|(key, tried)| {
        (!occurred.contains(&(&key.container, key.cause)), tried.first)
    });
    never
        .into_iter()
        .map(|(key, tried)| Finding {
            rule: ReportRule::NeverTested,
            level: Level::Info,
            object: key.container.clone(),
            count: tried.could,
            clients: Vec::new(),
            operations: vec![key.operation.to_owned()],
            message: message(key, *tried),
            advice: ReportRule::NeverTested.advice().to_owned(),
            mark: None,
            evidence: Vec::<Evidence>::new(),
        })
        .collect()
}
