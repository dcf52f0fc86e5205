//! Blind retry and stale receipt: what a client does again, or too late, because an answer or a
//! moment was lost.

use super::finding::{Level, ReportRule};
use super::found::Found;
use super::past::{Past, Step, Unanswered};
use super::row::{ReportRow, is_append};
use crate::journal::row::AnswerEnd;
use crate::rules::asked::{Asked, Fingerprint};

/// How many receipts of a message a client is remembered to have.
const RECEIPTS_MAX: usize = 4;

/// Judges a request that may repeat one whose answer was lost, and remembers one whose answer is.
pub fn retried(past: &mut Past, row: &ReportRow<'_>, step: &Step) -> Option<Found> {
    let body = row.request.given.body;
    // A repetition by the program has another trace.
    let asked = || Asked { trace: None, ..row.asked().clone() };
    let found = first_attempt(past, step, body, asked).and_then(|first| {
        let one = past.name(step.client);
        let is_doubled = is_append(row.operation()) && row.asked().append_position.is_none();
        let (level, message) = match row.request.status {
            Some(404 | 409 | 412) => (
                Level::Warn,
                format!(
                    "{one} did not get the answer and sent the request again, which was refused \
                     because the first one had been carried out"
                ),
            ),
            _ if row.is_done() && is_doubled => (
                Level::Error,
                format!(
                    "{one} did not get the answer and sent the request again: it is done twice"
                ),
            ),
            _ => return None,
        };
        let steps = vec![first, step.clone()];
        Some(Found::new(ReportRule::BlindRetry, level, steps, message))
    });
    let changed = !row.request.given.changed.is_empty() || !row.request.given.messages.is_empty();
    if row.request.answer != AnswerEnd::Sent && row.is_done() && changed {
        past.unanswered(Unanswered { step: step.clone(), body, asked: asked() });
    }
    found
}

/// The same request, whose answer was lost. It is forgotten.
fn first_attempt(
    past: &mut Past,
    step: &Step,
    body: Option<u64>,
    asked: impl Fn() -> Asked,
) -> Option<Step> {
    if past.seen(step.client, step.object)?.unanswered.is_empty() {
        return None;
    }
    let asked = asked();
    let unanswered = &mut past.entry(step.client, step.object)?.unanswered;
    let at = unanswered.iter().position(|one| {
        one.step.operation == step.operation && one.body == body && one.asked == asked
    })?;
    let first = unanswered.remove(at)?.step;
    past.is_recent(&first).then_some(first)
}

/// Remembers that a client was given a message with a receipt.
pub fn given(past: &mut Past, receipt: Fingerprint, step: &Step) {
    past.of_object(step.object).given = Some((receipt, step.clone()));
    if let Some(entry) = past.entry(step.client, step.object) {
        if entry.receipts.len() >= RECEIPTS_MAX {
            entry.receipts.remove(0);
        }
        entry.receipts.push((receipt, step.clone()));
    }
}

/// Judges the use of a receipt.
pub fn receipt_used(past: &Past, receipt: Fingerprint, step: &Step) -> Option<Found> {
    let (latest, again) = past.seen_object(step.object).given.as_ref()?;
    if *latest == receipt {
        return None;
    }
    let receipts = &past.seen(step.client, step.object)?.receipts;
    let (_, first) = receipts.iter().find(|(own, _)| *own == receipt)?;
    let (one, two) = (past.name(step.client), past.name(again.client));
    let message = if again.operation == "Update Message" {
        format!("{one} used the receipt of a message after {two} had got a new one for it")
    } else {
        format!(
            "{one} used the receipt of a message that {two} had been given again by then: the work \
             took longer than the message was invisible"
        )
    };
    let steps = vec![first.clone(), again.clone(), step.clone()];
    Some(Found::new(ReportRule::StaleReceipt, Level::Warn, steps, message))
}
