//! Makes a failing order short: fewer faults, turns of the clock, switches between clients, steps.
//!
//! Decides which shorter orders are tried. The run decides whether one fails in the same way.

use std::collections::BTreeSet;

use super::token::{Choice, written};

/// The most runs that are spent on it.
pub const SHRINK_MAX: u32 = 40;

#[derive(Debug)]
pub struct Shrink {
    /// The shortest order so far.
    pub best: Vec<Choice>,
    tried: BTreeSet<String>,
    runs: u32,
}

/// How far an order is from a plain one.
fn cost(order: &[Choice]) -> (usize, usize, usize, usize) {
    let drops = order.iter().filter(|choice| choice.is_drop()).count();
    let turns = order.iter().filter(|choice| choice.client().is_none()).count();
    (drops, turns, switches(order), order.len())
}

/// How many times another client goes on.
pub fn switches(order: &[Choice]) -> usize {
    let clients: Vec<_> = order.iter().filter_map(Choice::client).collect();
    clients.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

impl Shrink {
    /// `passed` are orders that were run and did not fail.
    pub fn new(failing: Vec<Choice>, passed: BTreeSet<String>) -> Self {
        Self { best: failing, tried: passed, runs: 0 }
    }

    /// The next order to try; `None` if the best one is good enough.
    pub fn next(&mut self) -> Option<Vec<Choice>> {
        if self.runs >= SHRINK_MAX {
            return None;
        }
        let next = candidates(&self.best)
            .filter(|order| cost(order) < cost(&self.best))
            .find(|order| self.tried.insert(written(order)))?;
        self.runs += 1;
        Some(next)
    }

    /// An order was run and failed in the same way.
    pub fn failed(&mut self, order: Vec<Choice>) {
        self.tried.insert(written(&order));
        if cost(&order) < cost(&self.best) {
            self.best = order;
        }
    }
}

/// Orders with one difference: an answer that is not dropped, a turn of the clock less, or the next
/// step of the client before pulled forward to where another one goes on.
fn candidates(order: &[Choice]) -> impl Iterator<Item = Vec<Choice>> {
    let without_faults = (0..order.len()).filter_map(|at| {
        let mut changed = order.to_vec();
        match &order[at] {
            Choice::Drop(..) => changed[at] = order[at].sent(),
            Choice::Advance(_) => drop(changed.remove(at)),
            _ => return None,
        }
        Some(changed)
    });
    let pulled = (1..order.len()).filter_map(|at| {
        let before = order[..at].iter().rev().find_map(Choice::client)?;
        let same = |choice: &Choice| choice.client() == Some(before);
        if same(&order[at]) {
            return None;
        }
        let next = at + order[at..].iter().position(same)?;
        let mut changed = order.to_vec();
        let step = changed.remove(next);
        changed.insert(at, step);
        Some(changed)
    });
    without_faults.chain(pulled).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::super::token::Token;
    use super::*;

    fn order(text: &str) -> Vec<Choice> {
        Token::read(&format!("{text}~0000"), &["A".into(), "B".into()]).unwrap().choices
    }

    /// Shrinks an order that fails if it `fails`, as clients that do all they are asked would.
    fn shrunk(failing: &str, fails: impl Fn(&str) -> bool) -> String {
        let mut shrink = Shrink::new(order(failing), BTreeSet::new());
        while let Some(next) = shrink.next() {
            if fails(&written(&next)) {
                shrink.failed(next);
            }
        }
        written(&shrink.best)
    }

    #[test]
    fn an_order_loses_what_its_failure_does_not_need() {
        assert_eq!(shrunk("A.B!.A.+16.B.A", |_| true), "A3.B2");
        assert_eq!(shrunk("A.B.A.B.A.B", |order| order.contains("A.B2.A")), "A.B2.A2.B");
        assert_eq!(shrunk("A!.B.A", |order| order.contains('!')), "A!.A.B");
        assert_eq!(shrunk("A2.B2", |_| true), "A2.B2");
    }

    #[test]
    fn the_number_of_its_runs_is_bounded() {
        let long = "A.B.".repeat(100);
        let mut shrink = Shrink::new(order(long.trim_end_matches('.')), BTreeSet::new());
        let runs = std::iter::from_fn(|| shrink.next()).count();
        assert_eq!(runs, SHRINK_MAX as usize);
    }
}
