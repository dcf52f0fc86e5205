//! Headers of the Table service: levels of metadata, `Prefer`, methods within methods.
//!
//! Decides how a request says which answer it wants. Each operation decides the content of its
//! answer.

use hyper::{Method, StatusCode};

use super::json::MetadataLevel;
use crate::http::frame::refusal::Refusal;
use crate::http::frame::routing::Verb;
use crate::http::reply::Reply;
use crate::table::rules::IfMatch;

/// The content type of JSON at a level.
pub(super) fn json_type(level: MetadataLevel) -> String {
    format!("application/json;odata={};streaming=true;charset=utf-8", level.name())
}

/// The level of metadata that a request wants; `$format` goes before `Accept`.
pub(super) fn level(accept: Option<&str>, format: Option<&str>) -> Result<MetadataLevel, Refusal> {
    let Some(wanted) = format.or(accept) else { return Ok(MetadataLevel::Minimal) };
    let mut accepted = None;
    for range in wanted.split(',') {
        let mut pieces = range.split(';').map(str::trim);
        let kind = pieces.next().unwrap_or_default().to_ascii_lowercase();
        if !matches!(kind.as_str(), "application/json" | "json" | "application/*" | "*/*" | "") {
            continue;
        }
        let said = pieces.find_map(|piece| {
            let (name, value) = piece.split_once('=')?;
            name.trim().eq_ignore_ascii_case("odata").then(|| value.trim().to_ascii_lowercase())
        });
        match said.as_deref() {
            Some("nometadata") => return Ok(MetadataLevel::None),
            Some("minimalmetadata") => return Ok(MetadataLevel::Minimal),
            Some("fullmetadata") => return Ok(MetadataLevel::Full),
            _ => accepted = Some(MetadataLevel::Minimal),
        }
    }
    accepted.ok_or_else(|| {
        let message = "Atom format is not supported. [latchfs: this service answers with \
                       application/json, and the request does not accept it]";
        Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "AtomFormatNotSupported", message)
    })
}

/// Whether an insertion is answered with the entity; as the request says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Prefer {
    Content,
    /// `return-no-content`.
    NoContent,
}

impl Prefer {
    pub(super) fn read(header: Option<&str>) -> Option<Self> {
        let words = header?.split([',', ';']).map(str::trim);
        words.into_iter().find_map(|word| match word.to_ascii_lowercase().as_str() {
            "return-content" => Some(Self::Content),
            "return-no-content" => Some(Self::NoContent),
            _ => None,
        })
    }

    /// The value of `Preference-Applied`.
    pub(super) const fn applied(self) -> &'static str {
        match self {
            Self::Content => "return-content",
            Self::NoContent => "return-no-content",
        }
    }
}

/// The verb of a request, which a POST may name in `X-HTTP-Method`. None for a method that the
/// service does not have.
pub(super) fn verb(method: &Method, named: &[&str]) -> Result<Option<Verb>, Refusal> {
    let bad = |code, message| Err(Refusal::bad(code, message));
    match named {
        [] => Ok(Verb::of(method)),
        _ if *method != Method::POST => {
            bad("XMethodNotUsingPost", "The X-HTTP-Method header requires the POST method.")
        }
        [one] => match one.trim().to_ascii_uppercase().as_str() {
            "MERGE" => Ok(Some(Verb::Merge)),
            "PATCH" => Ok(Some(Verb::Patch)),
            "PUT" => Ok(Some(Verb::Put)),
            "DELETE" => Ok(Some(Verb::Delete)),
            _ => {
                bad("XMethodIncorrectValue", "The value of the X-HTTP-Method header is incorrect.")
            }
        },
        _ => bad("XMethodIncorrectCount", "There are several X-HTTP-Method headers."),
    }
}

/// The condition of a write. `If-None-Match` has no meaning for entities.
pub(super) fn condition(
    if_match: Option<&str>,
    if_none_match: Option<&str>,
) -> Result<IfMatch, Refusal> {
    if if_none_match.is_some() {
        let message = "One of the request inputs is not valid. [latchfs: If-None-Match is not \
                       supported for entities; use If-Match]";
        return Err(Refusal::bad("InvalidInput", message));
    }
    IfMatch::parse(if_match).map_err(super::error::refusal_of_form)
}

/// A reply with what answers about tables and entities carry.
pub(super) fn reply(status: StatusCode) -> Reply {
    Reply::new(status)
        .header("cache-control", "no-cache")
        .header("x-content-type-options", "nosniff")
}

/// A reply with JSON.
pub(super) fn json(status: StatusCode, level: MetadataLevel, body: String) -> Reply {
    reply(status).bytes(&json_type(level), body)
}
