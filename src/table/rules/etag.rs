//! The ETag of an entity and the `If-Match` that is compared with it.
//!
//! Decides the spelling, which is derived from the entity's timestamp, and the legal values of
//! `If-Match`. The effect on a write is decided in [`super::change`].

use super::datetime::Ticks;
use super::denial::TableDenial;

const BEGIN: &str = "W/\"datetime'";
const END: &str = "'\"";

/// Appends `W/"datetime'2021-04-08T14%3A34%3A34.7905688Z'"`.
pub fn write(ticks: Ticks, out: &mut String) {
    out.push_str(BEGIN);
    ticks.write_with(out, "%3A");
    out.push_str(END);
}

/// The ETag of an entity written at `ticks`.
pub fn etag(ticks: Ticks) -> String {
    let mut out = String::with_capacity(48);
    write(ticks, &mut out);
    out
}

/// The condition of a request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum IfMatch {
    /// No header: an update is an upsert (S93), a deletion is refused (S90).
    #[default]
    Absent,
    /// `*`: any state, as long as the entity exists (S83).
    Any,
    Is(String),
}

impl IfMatch {
    /// Reads the header. Only `*` or one weak ETag are legal.
    pub fn parse(header: Option<&str>) -> Result<Self, TableDenial> {
        let Some(text) = header.map(str::trim).filter(|text| !text.is_empty()) else {
            return Ok(Self::Absent);
        };
        if text == "*" {
            return Ok(Self::Any);
        }
        let inner = text.strip_prefix("W/\"").and_then(|rest| rest.strip_suffix('"'));
        match inner {
            Some(inner) if !inner.contains('"') => Ok(Self::Is(text.to_owned())),
            _ => Err(TableDenial::InvalidInput(format!(
                "The etag value '{}' specified in one of the request headers is not valid. Please \
                 make sure only one etag value is specified and is valid.",
                text.escape_debug()
            ))),
        }
    }

    /// True if an entity written at `ticks` fulfils the condition. A client may leave colons as
    /// they are where the service escapes them.
    pub fn holds(&self, ticks: Ticks) -> bool {
        match self {
            Self::Absent | Self::Any => true,
            Self::Is(given) => {
                let own = etag(ticks);
                *given == own || given.replace(':', "%3A").replace("%3a", "%3A") == own
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks() -> Ticks {
        Ticks::parse("2021-04-08T14:34:34.7905688Z").unwrap()
    }

    #[test]
    fn an_etag_is_the_timestamp_in_the_services_spelling_t1() {
        assert_eq!(etag(ticks()), "W/\"datetime'2021-04-08T14%3A34%3A34.7905688Z'\"");
        let whole = Ticks::parse("2021-04-08T14:34:34Z").unwrap();
        assert_eq!(etag(whole), "W/\"datetime'2021-04-08T14%3A34%3A34Z'\"");
    }

    #[test]
    fn a_condition_is_a_star_or_one_weak_etag_t17() {
        assert_eq!(IfMatch::parse(None), Ok(IfMatch::Absent));
        assert_eq!(IfMatch::parse(Some(" ")), Ok(IfMatch::Absent));
        assert_eq!(IfMatch::parse(Some("*")), Ok(IfMatch::Any));
        assert_eq!(IfMatch::parse(Some("W/\"x\"")), Ok(IfMatch::Is("W/\"x\"".into())));
        for bad in ["bad", "\"x\"", "W/x", "W/\"", "W/\"a\", W/\"b\"", "*, W/\"a\"", "W/\"a", "'"] {
            let refused = IfMatch::parse(Some(bad));
            assert!(matches!(refused, Err(TableDenial::InvalidInput(_))), "{bad}");
        }
        let text = IfMatch::parse(Some("bad")).unwrap_err().to_string();
        assert!(text.starts_with("The etag value 'bad' specified in one of the request headers"));
    }

    #[test]
    fn the_whole_text_is_compared_but_colons_may_stand_plain() {
        let holds = |text: &str| IfMatch::parse(Some(text)).unwrap().holds(ticks());
        assert!(holds("*") && holds(&etag(ticks())));
        assert!(holds("W/\"datetime'2021-04-08T14:34:34.7905688Z'\""));
        assert!(holds("W/\"datetime'2021-04-08T14%3a34%3a34.7905688Z'\""));
        assert!(!holds("W/\"datetime'2021-04-08T14%3A34%3A34.7905689Z'\""));
        assert!(!holds("W/\"x\"") && !holds("W/\"\""));
    }
}
