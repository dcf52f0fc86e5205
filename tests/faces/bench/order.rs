//! Is there an order of some requests in which a model gives the answers that clients saw?
//!
//! A request takes effect at one moment between its start and its end. A request whose answer was
//! lost has taken effect or has not.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

/// What a service is, for the requests of a test.
pub trait Model: Clone + Eq + Hash + Debug {
    type Ask: Debug;
    type Answer: Debug;

    /// The service after a request, if this can be its answer. `None`: the answer was lost.
    fn after(&self, ask: &Self::Ask, answer: Option<&Self::Answer>) -> Vec<Self>;
}

/// A request and what became of it.
#[derive(Debug)]
pub struct Done<M: Model> {
    pub ask: M::Ask,
    /// `None`: the connection ended without an answer.
    pub answer: Option<M::Answer>,
    /// When it was sent and when its answer was there, as numbers that rise.
    pub start: usize,
    pub end: usize,
}

/// True if the model gives these answers in some order that keeps what was before what.
pub fn can_happen<M: Model>(first: &M, requests: &[Done<M>]) -> bool {
    assert!(requests.len() < 32, "an order of so many is not looked for");
    search(first.clone(), requests, 0, &mut HashSet::new())
}

fn search<M: Model>(
    model: M,
    requests: &[Done<M>],
    taken: u32,
    dead_ends: &mut HashSet<(u32, M)>,
) -> bool {
    let left = || requests.iter().enumerate().filter(|(index, _)| taken & (1 << index) == 0);
    if left().next().is_none() {
        return true;
    }
    if dead_ends.contains(&(taken, model.clone())) {
        return false;
    }
    for (index, next) in left() {
        // Nothing that ended before it began may still be to come.
        if left().any(|(_, other)| other.end < next.start) {
            continue;
        }
        let mut outcomes = model.after(&next.ask, next.answer.as_ref());
        if next.answer.is_none() {
            outcomes.push(model.clone());
        }
        let taken = taken | (1 << index);
        if outcomes.into_iter().any(|model| search(model, requests, taken, dead_ends)) {
            return true;
        }
    }
    dead_ends.insert((taken, model));
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter: an answer is what it was before one was added.
    impl Model for u32 {
        type Ask = ();
        type Answer = u32;

        fn after(&self, (): &(), answer: Option<&u32>) -> Vec<Self> {
            if answer.is_none_or(|answer| answer == self) { vec![self + 1] } else { Vec::new() }
        }
    }

    fn done(answer: Option<u32>, start: usize, end: usize) -> Done<u32> {
        Done { ask: (), answer, start, end }
    }

    #[test]
    fn an_order_is_found_if_there_is_one_and_only_then() {
        assert!(can_happen(&0, &[done(Some(1), 0, 3), done(Some(0), 1, 2)]));
        assert!(!can_happen(&0, &[done(Some(1), 0, 1), done(Some(0), 2, 3)]), "the first is over");
        assert!(!can_happen(&0, &[done(Some(0), 0, 3), done(Some(0), 1, 2)]), "a lost update");
        assert!(can_happen(&0, &[done(None, 0, 1), done(Some(1), 2, 3)]), "done, answer lost");
        assert!(can_happen(&0, &[done(None, 0, 1), done(Some(0), 2, 3)]), "lost as a whole");
    }
}
