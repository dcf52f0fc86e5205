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
use super::footprint::Touches;
use super::host::HostedAccount;
use super::refusal::Refusal;
use crate::http::auth::{Needs, Permission, ResourceLevel, Signatures};
use crate::http::reply::Reply;
use crate::http::request::{Query, Request};
use crate::rules::footprint::Footprint;
use crate::rules::policy::StoredPolicy;
use crate::rules::service::ServiceKind;

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
    /// Whether a request signed by its headers must name a version. Queue and Table document
    /// `x-ms-version` as optional, File and Blob as required.
    pub needs_version: bool,
    /// How errors are written.
    pub errors: ErrorFormat,
    /// The texts that its SAS and Shared Key sign.
    pub signatures: &'static Signatures,
    /// The resource that an operation of that level addresses, as a SAS signs it: the container,
    /// and the path within it.
    pub target: fn(&Address, ResourceLevel) -> Addressed<'_>,
    /// The resource that a request addresses, as the command line names it, without the service.
    pub object: fn(&Request) -> String,
    /// What an operation reads and writes whose row does not say it.
    pub touches: fn(&Operation, &Request) -> Footprint,
    /// A stored access policy of a container.
    pub policy: fn(&dyn HostedAccount, container: &str, id: &str) -> Option<StoredPolicy>,
    /// Whether a request without credentials is served all the same.
    pub anonymous: fn(&dyn HostedAccount, &Request, &Operation) -> bool,
    /// Changes the answer of an operation, in a service that has something to change.
    pub answered: Option<fn(&Call<'_>, Answer) -> Answer>,
    /// The parts of the service properties, in the order they are shown.
    pub properties: &'static [&'static str],
}

impl Service {
    /// The path of an address without the account, as the service reads it: `container/blob`.
    pub fn named_path(&self, address: &Address) -> String {
        let (Some(container), path) = (self.target)(address, ResourceLevel::Container) else {
            return String::new();
        };
        format!("{container}/{path}").trim_end_matches('/').to_owned()
    }
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
    /// The name in the service's own description, with which the SDKs are generated: one for each
    /// function of a client.
    pub name: &'static str,
    /// The name in the service's documentation, where several functions are one operation.
    pub title: &'static str,
    /// The requirements on a SAS. `None` for a preflight, which a browser sends unsigned.
    pub needs: Option<Needs<'static>>,
    /// Whether it changes something. The secondary location only reads.
    pub changes: bool,
    /// Whether a SAS may override content headers of the answer.
    pub overridable: bool,
    /// What it reads and writes, where that is not what the service says of its like.
    pub touches: Option<Touches>,
    /// What it touches is in its body.
    pub by_body: bool,
    /// The function that carries it out.
    pub run: OperationHandler,
}

/// Where an operation is carried out.
pub enum OperationHandler {
    /// On the event loop, at once: one bounded read of the database or of memory.
    Read(fn(&Call<'_>) -> Answer),
    /// On the event loop, with the body as it comes. It waits for bytes and for the commit, and
    /// keeps no thread meanwhile.
    Change(for<'a> fn(&'a Call<'a>, Incoming) -> Working<'a>),
    /// On the bounded pool of threads that may block, with the whole body in memory.
    Work(fn(&Call<'_>) -> Answer),
}

/// The name of an operation in the service's own description, and its title.
pub type OperationNames = (&'static str, &'static str);

impl Operation {
    /// Whether credentials are needed, whether it changes something, and how it is carried out.
    pub const fn new(
        (name, title): OperationNames,
        level: ResourceLevel,
        permissions: &'static [Permission],
        (signed, changes, run): (bool, bool, OperationHandler),
    ) -> Self {
        let service_sas = match level {
            ResourceLevel::Object => Some(permissions),
            ResourceLevel::Service | ResourceLevel::Container => None,
        };
        let needs = Needs { level, or_level: None, permissions, service_sas };
        let needs = if signed { Some(needs) } else { None };
        Self { name, title, needs, changes, overridable: false, touches: None, by_body: false, run }
    }

    /// This operation, open to a service SAS with one of these permissions.
    #[must_use]
    pub const fn service_sas(mut self, permissions: &'static [Permission]) -> Self {
        if let Some(needs) = &mut self.needs {
            needs.service_sas = Some(permissions);
        }
        self
    }

    /// This operation, open to an account SAS of another level too.
    #[must_use]
    pub const fn or_level(mut self, level: ResourceLevel) -> Self {
        if let Some(needs) = &mut self.needs {
            needs.or_level = Some(level);
        }
        self
    }

    /// This operation, with what it reads and writes.
    #[must_use]
    pub const fn touches(self, touches: Touches) -> Self {
        Self { touches: Some(touches), ..self }
    }

    /// This operation, whose body says what it touches.
    #[must_use]
    pub const fn by_body(self) -> Self {
        Self { by_body: true, ..self }
    }

    /// This operation, with content headers that a SAS may override.
    #[must_use]
    pub const fn overridable(self) -> Self {
        Self { overridable: true, ..self }
    }
}

/// Declares the operations of a service, in rows: the static, its kind (see [`handler`]), the
/// names, level and permissions, and the method of the service's call that carries it out, or in
/// parentheses a function of a [`Call`]. `OPERATIONS` has them all.
macro_rules! operations {
    ($of:ident; $(
        $(#[$with:ident $args:tt])*
        $name:ident $kind:ident $names:tt $level:ident $needs:expr => $run:tt;
    )*) => {
        $(
            #[allow(unused_parens, reason = "a row has its names in parentheses")]
            pub(super) static $name: Operation = Operation::new(
                $names,
                ResourceLevel::$level,
                $needs,
                $crate::http::handler!($kind $of $run),
            )
            $(.$with $args)*;
        )*

        static OPERATIONS: &[&Operation] = &[$(&$name,)*];
    };
}

/// What [`Operation::new`] is told of the kind of an operation. `change` and `read_async` take the
/// body as it comes.
macro_rules! handler {
    (preflight $of:ident $run:tt) => { $crate::http::handler!(false, false, Read, $of $run) };
    (read $of:ident $run:tt) => { $crate::http::handler!(true, false, Read, $of $run) };
    (pool_read $of:ident $run:tt) => { $crate::http::handler!(true, false, Work, $of $run) };
    (pool_change $of:ident $run:tt) => { $crate::http::handler!(true, true, Work, $of $run) };
    (read_async $of:ident $run:ident) => { $crate::http::handler!(async false, $of $run) };
    (change $of:ident $run:ident) => { $crate::http::handler!(async true, $of $run) };
    ($signed:literal, $changes:literal, $kind:ident, $of:ident ($run:expr)) => {
        ($signed, $changes, $crate::http::frame::service::OperationHandler::$kind($run))
    };
    ($signed:literal, $changes:literal, $kind:ident, $of:ident $method:ident) => {
        $crate::http::handler!($signed, $changes, $kind, $of (|call| $of(call).$method()))
    };
    (async $changes:literal, $of:ident $method:ident) => {
        $crate::http::handler!(true, $changes, Change, $of (|call, body| {
            Box::pin($of(call).$method(body))
        }))
    };
}

pub(crate) use {handler, operations};
