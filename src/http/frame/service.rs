//! A service as the HTTP front end sees it: a table of operations, and the few functions in which
//! services differ.
//!
//! Decides the fields of an entry: the shape of the request, the permissions that a SAS needs, the
//! kind of body and the function that carries the request out. Each service has its table in its
//! own folder; adding one touches no other.

use std::borrow::Cow;
use std::pin::Pin;

use hyper::body::Incoming;
use hyper::{Method, Uri};

use super::address::Address;
use super::call::Call;
use super::refusal::Refusal;
use crate::http::auth::{Needs, Permission, ResourceLevel, Signatures};
use crate::http::reply::Reply;
use crate::http::request::{Query, Request};
use crate::rules::policy::StoredPolicy;
use crate::rules::service::ServiceKind;
use crate::server::Account;

/// The answer to a request.
pub type Answer = Result<Reply, Refusal>;

/// An answer that is being worked on.
pub type Working<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// A container, and the path within it.
pub type Addressed<'a> = (Option<&'a str>, Cow<'a, str>);

pub struct Service {
    pub kind: ServiceKind,
    /// The operation a request asks for.
    pub route: fn(&Request) -> Result<&'static Operation, Refusal>,
    /// Every operation, for the coverage page.
    pub operations: &'static [&'static Operation],
    /// The oldest version of the service.
    pub first_version: &'static str,
    /// How errors are written.
    pub errors: ErrorFormat,
    /// The texts that its SAS and Shared Key sign.
    pub signatures: &'static Signatures,
    /// The resource that an operation of that level addresses, as a SAS signs it: the container,
    /// and the path within it.
    pub target: fn(&Address, ResourceLevel) -> Addressed<'_>,
    /// The resource that a request addresses, as the command line names it, without the service.
    pub object: fn(&Request) -> String,
    /// A stored access policy of a container.
    pub policy: fn(&Account, container: &str, id: &str) -> Option<StoredPolicy>,
    /// Whether a request without credentials is served all the same.
    pub anonymous: fn(&Account, &Request, &Operation) -> bool,
    /// Whether the service of an account is open.
    pub is_open: fn(&Account) -> bool,
    /// Opens it. May wait.
    pub open: fn(&Account) -> Result<(), Refusal>,
    /// The parts of the service properties, in the order they are shown.
    pub properties: &'static [&'static str],
}

/// How errors are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorFormat {
    Xml,
    /// As JSON with the code in `odata.error`.
    Json,
    /// As XML with the code in `m:code`: the Table service writes so where it answers with XML.
    ODataXml,
}

impl ErrorFormat {
    /// The format for a request. The Table service answers with XML about itself, access policies
    /// and preflights, which is what a `comp` or OPTIONS says.
    pub fn of(self, method: &Method, uri: &Uri) -> Self {
        let named = || Query::read(uri.query().unwrap_or_default()).get("comp").is_some();
        match self {
            Self::Json if *method == Method::OPTIONS || named() => Self::ODataXml,
            other => other,
        }
    }
}

/// An operation of a service.
pub struct Operation {
    /// The name in the service's own description.
    pub name: &'static str,
    /// The requirements on a SAS. `None` for a preflight, which a browser sends unsigned.
    pub needs: Option<Needs<'static>>,
    /// Whether it changes something. The secondary location only reads.
    pub changes: bool,
    /// Whether a SAS may override content headers of the answer.
    pub overridable: bool,
    /// The function that carries it out.
    pub run: OperationHandler,
}

/// How an operation is carried out.
pub enum OperationHandler {
    /// On a thread that may block, with the whole body in memory.
    Whole(fn(&Call<'_>) -> Answer),
    /// On the event loop, with the whole body in memory. It waits for the engine without blocking.
    Async(for<'a> fn(&'a Call<'a>) -> Working<'a>),
    /// On the event loop, with the body as it comes.
    Streamed(for<'a> fn(&'a Call<'a>, Incoming) -> Working<'a>),
}

impl Operation {
    /// An operation that only reads, with the whole body in memory.
    pub const fn read(
        name: &'static str,
        level: ResourceLevel,
        permissions: &'static [Permission],
        run: fn(&Call<'_>) -> Answer,
    ) -> Self {
        Self::reading(name, level, permissions, OperationHandler::Whole(run))
    }

    const fn reading(
        name: &'static str,
        level: ResourceLevel,
        permissions: &'static [Permission],
        run: OperationHandler,
    ) -> Self {
        Self {
            name,
            needs: Some(Needs {
                level,
                or_level: None,
                permissions,
                service_sas: match level {
                    ResourceLevel::Object => Some(permissions),
                    ResourceLevel::Service | ResourceLevel::Container => None,
                },
            }),
            changes: false,
            overridable: false,
            run,
        }
    }

    /// An operation that changes something, with the whole body in memory.
    pub const fn write(
        name: &'static str,
        level: ResourceLevel,
        permissions: &'static [Permission],
        run: fn(&Call<'_>) -> Answer,
    ) -> Self {
        Self { changes: true, ..Self::read(name, level, permissions, run) }
    }

    /// An operation that only reads, on the event loop.
    pub const fn read_async(
        name: &'static str,
        level: ResourceLevel,
        permissions: &'static [Permission],
        run: for<'a> fn(&'a Call<'a>) -> Working<'a>,
    ) -> Self {
        Self::reading(name, level, permissions, OperationHandler::Async(run))
    }

    /// An operation that changes something, on the event loop.
    pub const fn write_async(
        name: &'static str,
        level: ResourceLevel,
        permissions: &'static [Permission],
        run: for<'a> fn(&'a Call<'a>) -> Working<'a>,
    ) -> Self {
        Self { changes: true, ..Self::read_async(name, level, permissions, run) }
    }

    /// The operation that a browser asks for before it sends a request from another origin.
    pub const fn preflight(run: fn(&Call<'_>) -> Answer) -> Self {
        Self { needs: None, ..Self::read("ServicePreflight", ResourceLevel::Service, &[], run) }
    }

    /// This operation, open to a service SAS with one of these permissions.
    #[must_use]
    pub const fn service_sas(self, permissions: &'static [Permission]) -> Self {
        let needs = match self.needs {
            Some(needs) => Some(Needs { service_sas: Some(permissions), ..needs }),
            None => None,
        };
        Self { needs, ..self }
    }

    /// This operation, open to an account SAS of another level too.
    #[must_use]
    pub const fn or_level(self, level: ResourceLevel) -> Self {
        let needs = match self.needs {
            Some(needs) => Some(Needs { or_level: Some(level), ..needs }),
            None => None,
        };
        Self { needs, ..self }
    }

    /// This operation, with content headers that a SAS may override.
    #[must_use]
    pub const fn overridable(self) -> Self {
        Self { overridable: true, ..self }
    }

    /// This operation, carried out while its body arrives.
    #[must_use]
    pub const fn streamed(self, run: for<'a> fn(&'a Call<'a>, Incoming) -> Working<'a>) -> Self {
        Self { run: OperationHandler::Streamed(run), ..self }
    }
}
