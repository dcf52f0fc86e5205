//! What a rule has found in one row, before findings of one shape are counted together.

use super::finding::{Level, ReportRule};
use super::past::{ClientId, ObjectId, Past, Step};

/// Something that a rule has found.
#[derive(Clone, Debug)]
pub struct Found {
    pub rule: ReportRule,
    pub level: Level,
    /// The rows that show it, in the order of their numbers. Never empty.
    pub steps: Vec<Step>,
    pub message: String,
}

impl Found {
    pub fn new(rule: ReportRule, level: Level, mut steps: Vec<Step>, message: String) -> Self {
        debug_assert!(!steps.is_empty());
        steps.sort_by_key(|step| step.seq);
        Self { rule, level, steps, message }
    }

    /// The object that it is about: that of the last row.
    pub fn object(&self) -> Option<ObjectId> {
        self.steps.last().map(|step| step.object)
    }

    /// The clients of its rows, each once, in their order.
    pub fn clients(&self) -> Vec<ClientId> {
        let mut clients = Vec::new();
        for step in &self.steps {
            if !clients.contains(&step.client) {
                clients.push(step.client);
            }
        }
        clients
    }

    /// At most a hint if one of its clients may be several, or another one.
    pub fn lowered(mut self, past: &Past) -> Self {
        let is_strong = |step: &Step| past.seen_client(step.client).is_strong;
        if !self.steps.iter().all(is_strong) {
            self.level = self.level.min(Level::Hint);
        }
        self
    }
}
