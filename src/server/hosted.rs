//! Accounts as the listeners of their services see them.

use std::any::Any;
use std::sync::Arc;

use super::account::{Account, Accounts};
use crate::bench::Controls;
use crate::blob::rest::refusal_of_opening as of_blob;
use crate::clock::TimeSource;
use crate::http::frame::{Host, HostedAccount, PropertyParts, Refusal};
use crate::journal::AccountJournal;
use crate::rules::service::ServiceKind;
use crate::table::rest::refusal_of_opening as of_table;

impl Host for Accounts {
    fn names(&self) -> Vec<String> {
        self.iter().map(|account| account.name().to_string()).collect()
    }

    fn account(&self, name: &str) -> Option<Arc<dyn HostedAccount>> {
        self.get(name).map(|account| Arc::clone(account) as Arc<dyn HostedAccount>)
    }

    fn clock(&self) -> Arc<dyn TimeSource> {
        Arc::clone(self.first().clock())
    }

    fn controls(&self) -> &Arc<Controls> {
        Self::controls(self)
    }

    fn halted(&self) -> Option<&str> {
        Self::halted(self)
    }
}

impl HostedAccount for Account {
    fn name(&self) -> &Arc<str> {
        Self::name(self)
    }

    fn clock(&self) -> &Arc<dyn TimeSource> {
        Self::clock(self)
    }

    fn journal(&self) -> &AccountJournal {
        Self::journal(self)
    }

    fn open_service(&self, kind: ServiceKind) -> Option<&dyn Any> {
        match kind {
            ServiceKind::File => Some(self.file()),
            ServiceKind::Blob => self.open_blob().map(|blob| blob as &dyn Any),
            ServiceKind::Queue => self.open_queue().map(|queue| queue as &dyn Any),
            ServiceKind::Table => self.open_table().map(|table| table as &dyn Any),
        }
    }

    fn service(&self, kind: ServiceKind) -> Result<&dyn Any, Refusal> {
        match kind {
            ServiceKind::File => {}
            ServiceKind::Blob => self.blob().map(drop).map_err(of_blob)?,
            ServiceKind::Queue => self.queue().map(drop)?,
            ServiceKind::Table => self.table().map(drop).map_err(|error| of_table(&error))?,
        }
        Ok(self.open_service(kind).expect("it was opened above"))
    }

    fn properties(&self, kind: ServiceKind) -> Arc<PropertyParts> {
        Self::properties(self, kind).get()
    }

    fn set_properties(
        &self,
        kind: ServiceKind,
        parts: PropertyParts,
        apply: &dyn Fn(),
    ) -> Result<(), Refusal> {
        Ok(Self::properties(self, kind).set_then(parts, apply)?)
    }
}

#[cfg(test)]
mod tests {
    use crate::server::SERVICES;

    #[test]
    fn every_operation_has_the_name_that_its_documentation_gives_it() {
        for service in SERVICES {
            for operation in service.operations {
                assert!(operation.title.contains(' '), "{} of {}", operation.name, service.kind);
            }
        }
    }

    #[test]
    fn the_coverage_page_is_what_the_routes_and_the_server_say() {
        for coverage in [crate::file::rest::coverage(), crate::blob::rest::coverage()] {
            coverage.check(|folder, name| {
                let account = super::Account::in_folder(folder, name);
                std::sync::Arc::new(super::Accounts::new(account, []))
            });
        }
    }
}
