//! A service that is opened when it is first used.
//!
//! Decides that it is opened once, and never by a caller on an event loop. The service decides how
//! it is opened.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::db::{DbError, SyncMode};
use crate::sync::Mutex;
use crate::sync::front_end::assert_may_block;

const POISON: &str = "nothing panics while a service is opened";

/// A service with a database file of its own.
pub struct FirstUse<T> {
    /// None where there is no place for it: one directory is served as it is.
    file: Option<PathBuf>,
    sync: SyncMode,
    service: OnceLock<T>,
    opening: Mutex<()>,
}

impl<T> FirstUse<T> {
    /// A service whose database is `file`.
    pub fn at(file: Option<PathBuf>, sync: SyncMode) -> Self {
        Self { file, sync, service: OnceLock::new(), opening: Mutex::new(()) }
    }

    /// The service, if it is open.
    pub fn if_open(&self) -> Option<&T> {
        self.service.get()
    }

    /// The place of its data, which may not be there yet.
    pub fn place(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The service; `open` opens it if it is not.
    pub fn get<E: From<DbError>>(
        &self,
        open: impl FnOnce(&Path, SyncMode) -> Result<T, E>,
    ) -> Result<&T, E> {
        if let Some(service) = self.service.get() {
            return Ok(service);
        }
        let absent = || DbError::Io("one directory is served as it is, without a database".into());
        let file = self.file.as_deref().ok_or_else(absent)?;
        assert_may_block("the opening of a service");
        let _opening = self.opening.lock().expect(POISON);
        if self.service.get().is_none() {
            // Nobody else sets it while the lock is held.
            let _ = self.service.set(open(file, self.sync)?);
        }
        Ok(self.service.get().expect("it was set above"))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::sync::front_end::during;

    fn of(file: Option<&str>) -> FirstUse<u32> {
        FirstUse::at(file.map(PathBuf::from), SyncMode::Normal)
    }

    #[test]
    fn a_service_is_opened_once() {
        let (service, opened) = (of(Some("x.db")), Cell::new(0));
        let open = |file: &Path, _| {
            assert_eq!(file, Path::new("x.db"));
            opened.set(opened.get() + 1);
            Ok::<_, DbError>(7)
        };
        assert_eq!(service.if_open(), None);
        assert_eq!(service.get(open), Ok(&7));
        assert_eq!(service.get(open), Ok(&7));
        assert_eq!((service.if_open(), opened.get()), (Some(&7), 1));
    }

    #[test]
    fn a_failure_is_tried_again() {
        let service = of(Some("x.db"));
        assert_eq!(service.get(|_, _| Err(DbError::Closed)), Err(DbError::Closed));
        assert_eq!(service.get(|_, _| Ok::<_, DbError>(7)), Ok(&7));
    }

    #[test]
    fn an_event_loop_does_not_open_it() {
        let service = of(Some("x.db"));
        let open = || during("worker", || service.get(|_, _| Ok::<_, DbError>(7)).is_ok());
        assert!(catch_unwind(AssertUnwindSafe(open)).is_err());
        assert_eq!(service.if_open(), None);
    }

    #[test]
    fn without_a_place_there_is_no_service() {
        assert!(matches!(of(None).get(|_, _| Ok(7)), Err(DbError::Io(_))));
    }
}
