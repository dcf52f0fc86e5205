//! Finds the operation of a request: the first row of a table whose shape matches.
//!
//! A shape consists of the method, the level of the path, `restype`, `comp`, and a header where
//! these are not enough. A request that matches no row is a bad request; one that differs only in
//! its method gets the answer for a wrong method. Each service has its own rows.

use hyper::{Method, StatusCode};

use super::refusal::Refusal;
use super::service::Operation;
use crate::http::auth::ResourceLevel;
use crate::http::request::Request;
use crate::rules::named::named;

/// The header that tells two operations apart whose requests are otherwise alike.
#[derive(Clone, Copy)]
pub enum When {
    Always,
    /// The header is there.
    Has(&'static str),
    /// The header has this value.
    Is(&'static str, &'static str),
}

/// The shape of a request, and the operation it asks for.
#[derive(Clone, Copy)]
pub struct RouteRow {
    /// The methods it may have.
    pub methods: &'static [Verb],
    /// How far its path may go.
    pub levels: &'static [ResourceLevel],
    /// The query parameter `restype`; empty for none.
    pub restype: &'static str,
    /// The query parameter `comp`; empty for none.
    pub comp: &'static str,
    /// The header that decides.
    pub when: When,
    pub operation: &'static Operation,
}

named! {
    /// A method that operations have.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Verb {
        Get = "GET",
        Head = "HEAD",
        Put = "PUT",
        Delete = "DELETE",
        Post = "POST",
        Merge = "MERGE",
        Patch = "PATCH",
    }
}

impl Verb {
    /// The verb of a method; none for one that no operation has.
    pub fn of(method: &Method) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name() == method.as_str())
    }
}

pub const GET: &[Verb] = &[Verb::Get];
/// GET, or HEAD for the headers alone.
pub const LOOK: &[Verb] = &[Verb::Get, Verb::Head];
pub const HEAD: &[Verb] = &[Verb::Head];
pub const PUT: &[Verb] = &[Verb::Put];
pub const DELETE: &[Verb] = &[Verb::Delete];
pub const POST: &[Verb] = &[Verb::Post];

/// The service as a whole.
pub const SERVICE: &[ResourceLevel] = &[ResourceLevel::Service];
pub const CONTAINER: &[ResourceLevel] = &[ResourceLevel::Container];
/// An object in a container.
pub const OBJECT: &[ResourceLevel] = &[ResourceLevel::Object];

/// A row that no header matters to.
pub const fn row(
    methods: &'static [Verb],
    levels: &'static [ResourceLevel],
    restype: &'static str,
    comp: &'static str,
    operation: &'static Operation,
) -> RouteRow {
    RouteRow { methods, levels, restype, comp, when: When::Always, operation }
}

/// A row that a header tells from its neighbours.
pub const fn row_when(
    methods: &'static [Verb],
    levels: &'static [ResourceLevel],
    (restype, comp): (&'static str, &'static str),
    when: When,
    operation: &'static Operation,
) -> RouteRow {
    RouteRow { methods, levels, restype, comp, when, operation }
}

/// The operation of the first row that fits. `preflight` is the one of OPTIONS: a preflight is
/// about another request, whatever that one names.
pub fn by_shape(
    rows: &[RouteRow],
    preflight: &'static Operation,
    request: &Request,
) -> Result<&'static Operation, Refusal> {
    if request.method == Method::OPTIONS {
        return Ok(preflight);
    }
    let level = request.address.level();
    let restype = request.query.get("restype").unwrap_or_default();
    let comp = request.query.get("comp").unwrap_or_default();
    let verb = Verb::of(&request.method);
    let named: Vec<_> = rows
        .iter()
        .filter(|row| row.levels.contains(&level))
        .filter(|row| row.restype.eq_ignore_ascii_case(restype))
        .filter(|row| row.comp.eq_ignore_ascii_case(comp))
        .collect();
    let of_verb = |row: &&&RouteRow| verb.is_some_and(|verb| row.methods.contains(&verb));
    for row in named.iter().filter(of_verb) {
        if row.when.holds(request)? {
            return Ok(row.operation);
        }
    }
    match named.iter().find(of_verb).map(|row| row.when) {
        Some(When::Is(name, _)) => {
            let text = request.required(name)?;
            Err(Refusal::header(name, text, "it names no action"))
        }
        _ if named.is_empty() => Err(unknown(restype, comp)),
        _ => Err(unsupported_verb()),
    }
}

/// The refusal of a method that the resource does not have.
pub fn unsupported_verb() -> Refusal {
    Refusal::explained(StatusCode::METHOD_NOT_ALLOWED, "UnsupportedHttpVerb", "")
}

fn unknown(restype: &str, comp: &str) -> Refusal {
    let (name, value) = if comp.is_empty() { ("restype", restype) } else { ("comp", comp) };
    if value.is_empty() {
        return Refusal::bad_because("InvalidUri", "the path alone names no operation");
    }
    Refusal::query(name, value, "it names no operation on this resource")
}

impl When {
    fn holds(self, request: &Request) -> Result<bool, Refusal> {
        Ok(match self {
            Self::Always => true,
            Self::Has(name) => request.headers.contains_key(name),
            Self::Is(name, value) => {
                request.header(name)?.is_some_and(|given| given.eq_ignore_ascii_case(value))
            }
        })
    }
}
