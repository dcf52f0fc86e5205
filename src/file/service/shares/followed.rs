//! Follows the share of a name: a front end that serves a share for long, such as a mount,
//! continues with the share that replaces it.
//!
//! Decides in which order a follower learns of another share: before the share is there, and when
//! it is. The follower decides what it does then.

use std::sync::{Arc, Weak};

use super::super::share::Share;
use super::error::FileServiceResult;
use super::{FileService, POISON};
use crate::sync::{Mutex, RwLock};

/// Told when another share takes the name.
pub trait Follower: Send + Sync {
    /// This share comes next. No request has found it yet.
    fn coming(&self, next: &Arc<Share>);

    /// This share has the name now, and the one before is gone. No lock is held that a lookup of
    /// a name needs.
    fn replaced(&self, now: &Arc<Share>);
}

/// The share of a name.
pub struct Followed {
    now: RwLock<Arc<Share>>,
    followers: Mutex<Vec<Weak<dyn Follower>>>,
    /// Held while followers are told, so that the share they are told of last is the one that has
    /// the name: a share can be made and replaced while others are still being told of it.
    telling: Mutex<()>,
}

impl Followed {
    /// A share that no other takes the place of.
    pub fn alone(share: Arc<Share>) -> Arc<Self> {
        let (followers, telling) = (Mutex::default(), Mutex::default());
        Arc::new(Self { now: RwLock::new(share), followers, telling })
    }

    /// The share that has the name now. One that was deleted keeps it until another is made.
    pub fn share(&self) -> Arc<Share> {
        Arc::clone(&self.now.read().expect(POISON))
    }

    /// Has a follower told of the next share.
    pub fn follow(&self, follower: Weak<dyn Follower>) {
        let mut followers = self.followers.lock().expect(POISON);
        followers.retain(|known| known.strong_count() > 0);
        followers.push(follower);
    }

    fn followers(&self) -> Vec<Arc<dyn Follower>> {
        self.followers.lock().expect(POISON).iter().filter_map(Weak::upgrade).collect()
    }

    /// Gives the name to another share; false if that has it already.
    fn set(&self, next: &Arc<Share>) -> bool {
        if Arc::ptr_eq(&self.share(), next) {
            return false;
        }
        self.followers().iter().for_each(|follower| follower.coming(next));
        *self.now.write().expect(POISON) = Arc::clone(next);
        true
    }

    fn tell(&self) {
        let _telling = self.telling.lock().expect(POISON);
        let now = self.share();
        self.followers().iter().for_each(|follower| follower.replaced(&now));
    }
}

/// Followers who are still to be told that a share has taken a name.
#[must_use]
pub(crate) struct Untold(Vec<Arc<Followed>>);

impl Untold {
    /// Tells them. Not under any lock: a follower may have the kernel look names up.
    pub(crate) fn tell(self) {
        self.0.iter().for_each(|followed| followed.tell());
    }
}

impl FileService {
    /// The share of that name, now and when another has taken the name.
    pub fn follow(&self, name: &str) -> FileServiceResult<Arc<Followed>> {
        // Looked at under the lock: a share that takes the name from now on is published after it.
        let mut followed = self.followed.lock().expect(POISON);
        let share = self.share(name)?;
        if let Some(known) = followed.get(name).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let new = Followed::alone(share);
        followed.insert(name.to_owned(), Arc::downgrade(&new));
        Ok(new)
    }

    /// The names of shares that have followers.
    pub(crate) fn followed_names(&self) -> Vec<String> {
        let mut followed = self.followed.lock().expect(POISON);
        followed.retain(|_, known| known.strong_count() > 0);
        followed.keys().cloned().collect()
    }

    /// Gives the names of these shares to them.
    pub(super) fn publish(&self, shares: &[Arc<Share>]) -> Untold {
        let mut untold = Vec::new();
        for share in shares {
            let known = self.followed.lock().expect(POISON).get(&**share.name()).cloned();
            let known = known.and_then(|known| known.upgrade());
            untold.extend(known.filter(|followed| followed.set(share)));
        }
        Untold(untold)
    }
}
