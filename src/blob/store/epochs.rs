//! Tells when no reader can need an unlinked file any more: readers enter an epoch before they
//! look into the database, and leave it when they have opened what they found. Chores wait here
//! for the end of an epoch.
//! Which files are unlinked is decided in [`super::reclaim`].

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::janitor::{Chore, Chores};

pub(super) struct Epochs {
    state: Mutex<State>,
    chores: Arc<Chores>,
}

#[derive(Default)]
struct State {
    now: u64,
    /// Epochs with readers, oldest first, and how many each has.
    active: VecDeque<(u64, usize)>,
    /// Chores that wait until an epoch is over.
    waiting: Vec<(u64, Chore)>,
}

impl State {
    /// The oldest epoch with readers; without readers, later than any.
    fn oldest(&self) -> u64 {
        self.active.front().map_or(u64::MAX, |(epoch, _)| *epoch)
    }
}

/// A reader's stay in its epoch.
pub(super) struct Stay {
    epochs: Arc<Epochs>,
    epoch: u64,
}

impl Epochs {
    /// `chores` gets the chores whose epoch is over.
    pub(super) fn new(chores: Arc<Chores>) -> Self {
        Self { state: Mutex::default(), chores }
    }

    pub(super) fn enter(self: &Arc<Self>) -> Stay {
        let mut state = self.lock();
        let now = state.now;
        match state.active.back_mut() {
            Some((epoch, readers)) if *epoch == now => *readers += 1,
            _ => state.active.push_back((now, 1)),
        }
        drop(state);
        Stay { epochs: Arc::clone(self), epoch: now }
    }

    /// Ends the present epoch and returns it. Readers that enter from now on see all that was
    /// committed before this call.
    pub(super) fn advance(&self) -> u64 {
        let mut state = self.lock();
        state.now += 1;
        state.now - 1
    }

    /// Adds the chore when no reader is left in `epoch` or an older one: now, or when the last of
    /// them leaves.
    pub(super) fn when_over(&self, epoch: u64, chore: Chore) {
        let mut state = self.lock();
        if epoch < state.oldest() {
            drop(state);
            self.chores.add(chore);
        } else {
            state.waiting.push((epoch, chore));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stay {
    /// Another stay in the same epoch.
    pub(super) fn again(&self) -> Self {
        let mut state = self.epochs.lock();
        let place = state.active.iter_mut().rev().find(|(epoch, _)| *epoch == self.epoch);
        place.expect("an epoch with a reader is active").1 += 1;
        drop(state);
        Self { epochs: Arc::clone(&self.epochs), epoch: self.epoch }
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let mut state = self.epochs.lock();
        let place = state.active.iter_mut().rev().find(|(epoch, _)| *epoch == self.epoch);
        place.expect("an epoch with a reader is active").1 -= 1;
        while state.active.front().is_some_and(|(_, readers)| *readers == 0) {
            state.active.pop_front();
        }
        let oldest = state.oldest();
        let over: Vec<_> = state.waiting.extract_if(.., |(epoch, _)| *epoch < oldest).collect();
        drop(state);
        for (_, chore) in over {
            self.epochs.chores.add(chore);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs() -> Arc<Epochs> {
        Arc::new(Epochs::new(Arc::default()))
    }

    /// A chore that waits for the epoch, and whether it was added.
    fn wait_for(epochs: &Epochs, epoch: u64) -> impl Fn() -> bool {
        let chore = move || Chore::Drop(epoch.cast_signed());
        epochs.when_over(epoch, chore());
        move || epochs.chores.contains(&chore())
    }

    #[test]
    fn an_epoch_is_over_when_its_readers_and_older_ones_have_left() {
        let epochs = epochs();
        assert!(wait_for(&epochs, epochs.advance())());
        let old = epochs.enter();
        let first = wait_for(&epochs, epochs.advance());
        let young = epochs.enter();
        let second = wait_for(&epochs, epochs.advance());
        assert!(!first() && !second());
        let again = old.again();
        drop(old);
        drop(young);
        assert!(!first() && !second());
        drop(again);
        assert!(first() && second());
    }

    #[test]
    fn readers_of_a_later_epoch_do_not_count() {
        let epochs = epochs();
        let old = epochs.enter();
        let first = wait_for(&epochs, epochs.advance());
        let _late = epochs.enter();
        let second = wait_for(&epochs, epochs.advance());
        drop(old);
        assert!(first() && !second());
    }
}
