//! The latest changes of a service: reads of the journal.
//!
//! Decides which rows a service remembers: those of its account since its data was last replaced.
//! The service decides what a change is. No rule depends on what is remembered.

use super::ring::AccountJournal;
use super::row::{Change, Event};
use crate::rules::service::ServiceKind;
use crate::sync::{AtomicU64, Ordering};

/// The changes of a service of an account.
#[derive(Debug)]
pub struct History {
    journal: AccountJournal,
    service: ServiceKind,
    /// How often the data of the service was replaced.
    generation: AtomicU64,
}

impl History {
    pub fn new(journal: AccountJournal, service: ServiceKind) -> Self {
        Self { journal, service, generation: AtomicU64::new(0) }
    }

    /// Records changes that are committed.
    pub fn add(&self, committed: Vec<Change>) {
        let generation = self.generation.load(Ordering::SeqCst);
        for change in committed {
            self.journal.push(Event::Written { change: Box::new(change), generation });
        }
    }

    /// Forgets all changes: they were made to data that was replaced.
    pub fn clear(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    /// Changes that `wanted` holds for, the latest first.
    pub fn latest(&self, wanted: impl Fn(&Change) -> bool) -> Vec<Change> {
        let now = self.generation.load(Ordering::SeqCst);
        self.journal.journal().latest(usize::MAX, |row| match &*row.event {
            Event::Written { change, generation }
                if *generation == now
                    && row.account.as_ref() == Some(self.journal.account())
                    && change.object.service() == self.service
                    && wanted(change) =>
            {
                Some((**change).clone())
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::journal::{Journal, Reads};
    use crate::rules::Writer;
    use crate::rules::address::ObjectAddress;

    #[test]
    fn a_service_remembers_its_own_changes_since_its_data_was_replaced() {
        let journal = Arc::<Journal>::default();
        let of = |account: &str, service| {
            History::new(AccountJournal::new(Arc::clone(&journal), account), service)
        };
        let write = |history: &History, name: &str| {
            let object = ObjectAddress::read(&format!("{}:{name}", history.service)).unwrap();
            history.add(vec![Change { object, etag: None, by: Writer::default() }]);
        };
        let names = |history: &History| -> Vec<String> {
            history.latest(|_| true).iter().map(|change| change.object.to_string()).collect()
        };
        let one = of("one", ServiceKind::Blob);
        let others = [of("two", ServiceKind::Blob), of("one", ServiceKind::Queue)];
        write(&one, "a");
        for other in &others {
            write(other, "b");
        }
        write(&one, "c");
        assert_eq!(names(&one), ["blob:c", "blob:a"]);
        one.clear();
        assert_eq!(names(&one), [""; 0]);
        write(&one, "d");
        assert_eq!(names(&one), ["blob:d"]);
        assert_eq!(names(&others[1]), ["queue:b"]);
        // A change is no event, and takes no number.
        assert_eq!((journal.newest(), journal.after(0, 9, Reads::All).rows.len()), (0, 0));
    }
}
