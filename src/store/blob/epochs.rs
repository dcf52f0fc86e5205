//! Tells when no reader can need an unlinked file any more: readers enter an epoch before they
//! look into the database, and leave it when they have opened what they found.
//! Which files are unlinked is decided in [`super::reclaim`].

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub(super) struct Epochs {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    now: u64,
    /// Epochs with readers, oldest first, and how many each has.
    active: VecDeque<(u64, usize)>,
}

/// A reader's stay in its epoch.
pub(super) struct Stay {
    epochs: Arc<Epochs>,
    epoch: u64,
}

impl Epochs {
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

    /// True if no reader is left in `epoch` or an older one.
    pub(super) fn is_over(&self, epoch: u64) -> bool {
        self.lock().active.front().is_none_or(|(oldest, _)| *oldest > epoch)
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_over_when_its_readers_and_older_ones_have_left() {
        let epochs = Arc::new(Epochs::default());
        assert!(epochs.is_over(epochs.advance()));
        let old = epochs.enter();
        let first = epochs.advance();
        let young = epochs.enter();
        let second = epochs.advance();
        assert!(!epochs.is_over(first) && !epochs.is_over(second));
        let again = old.again();
        drop(old);
        drop(young);
        assert!(!epochs.is_over(first) && !epochs.is_over(second));
        drop(again);
        assert!(epochs.is_over(first) && epochs.is_over(second));
    }

    #[test]
    fn readers_of_a_later_epoch_do_not_count() {
        let epochs = Arc::new(Epochs::default());
        let first = epochs.advance();
        let _late = epochs.enter();
        assert!(epochs.is_over(first));
    }
}
