//! Matches requests for gates and faults.
//!
//! Decides which parts of a request are compared, and how. What happens to a matching request is
//! decided by the engine.

use super::glob;
use super::service::ServiceKind;

/// A request, as far as patterns look at it.
#[derive(Clone, Copy)]
pub struct PatternSubject<'a> {
    /// The service that it was sent to.
    pub service: ServiceKind,
    /// The operation, as the SDKs' own definitions call it.
    pub operation: &'a str,
    /// The operation, as the service's documentation calls it.
    pub documented: &'a str,
    pub account: &'a str,
    /// The path of the request without the account: `container/blob`, `share/directory/file`.
    pub path: &'a str,
    /// The value of a header.
    pub header: &'a (dyn Fn(&str) -> Option<&'a str> + Sync),
}

/// Selects requests: those that match all of the given fields.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pattern {
    pub service: Option<ServiceKind>,
    /// Whose operation fits; case, spaces and hyphens do not count.
    pub operation: Option<String>,
    pub account: Option<String>,
    pub path: Option<String>,
    /// That have these headers, with values that fit.
    pub headers: Vec<(String, String)>,
}

impl Pattern {
    /// Whether a request is meant.
    pub fn matches(&self, seen: &PatternSubject<'_>) -> bool {
        let path = |glob: &String| {
            let (glob, path) = (glob.trim_matches('/'), seen.path.trim_matches('/'));
            let fits = |path: &str| glob::matches(glob.as_bytes(), path.as_bytes());
            // The name of a container, share, queue or table means all that is in it.
            let names_container = !glob.contains(['/', '(']);
            fits(path) || (names_container && fits(container(path)))
        };
        let header = |(name, glob): &(String, String)| {
            let fits = |value: &str| glob::matches_text(glob.as_bytes(), value.as_bytes());
            (seen.header)(name).is_some_and(fits)
        };
        self.service.is_none_or(|service| service == seen.service)
            && (self.names(seen.documented) || self.names(seen.operation))
            && self.account.as_deref().is_none_or(|account| account == seen.account)
            && self.path.as_ref().is_none_or(path)
            && self.headers.iter().all(header)
    }

    /// Whether requests for that operation can be meant. A call on a mount, or over SMB, is meant
    /// only by a pattern that begins with `Mount` or `SMB`: one that means all requests over HTTP
    /// must not stop the programs of the machine.
    pub fn names(&self, operation: &str) -> bool {
        let wanted = self.operation.as_deref().map(folded);
        for is_named in [is_on_mount, is_over_smb] {
            if is_named(operation) && !wanted.as_deref().is_some_and(is_named) {
                return false;
            }
        }
        wanted.is_none_or(|glob| glob::matches(glob.as_bytes(), folded(operation).as_bytes()))
    }
}

/// The container, share, queue or table of a path. In the path of an entity, `rows(PartitionKey=`,
/// parentheses follow the name; in that of a table, `Tables('rows')`, they enclose it.
fn container(path: &str) -> &str {
    let inner = path.strip_prefix("Tables('").and_then(|rest| rest.strip_suffix("')"));
    inner.unwrap_or_else(|| path.split(['/', '(']).next().unwrap_or(path))
}

/// True for the name of a call on a mount, as in `Mount Open`.
pub fn is_on_mount(operation: &str) -> bool {
    begins(operation, "mount")
}

/// True for the name of a request of an SMB client, as in `SMB Create`.
pub fn is_over_smb(operation: &str) -> bool {
    begins(operation, "smb")
}

fn begins(operation: &str, word: &str) -> bool {
    operation.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// `Put Blob`, `put-blob` and `PutBlob` are one operation.
fn folded(operation: &str) -> String {
    let letters = operation.chars().filter(|letter| !matches!(letter, ' ' | '-' | '_'));
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen<'a>(header: &'a (dyn Fn(&str) -> Option<&'a str> + Sync)) -> PatternSubject<'a> {
        PatternSubject {
            service: ServiceKind::Blob,
            operation: "BlockBlobUpload",
            documented: "Put Blob",
            account: "one",
            path: "docs/a.txt",
            header,
        }
    }

    #[test]
    fn calls_on_a_mount_and_over_smb_are_meant_only_by_name() {
        let names = |glob: Option<&str>| {
            Pattern { operation: glob.map(str::to_owned), ..Pattern::default() }.names("Mount Open")
        };
        assert_eq!([Some("mount-open"), Some("Mount *"), Some("mount*")].map(names), [true; 3]);
        assert_eq!([None, Some("*"), Some("*Open"), Some("Mount")].map(names), [false; 4]);
        let smb = |glob: Option<&str>| {
            Pattern { operation: glob.map(str::to_owned), ..Pattern::default() }.names("SMB Create")
        };
        assert_eq!([Some("smb-create"), Some("SMB *"), Some("SmbCreate")].map(smb), [true; 3]);
        assert_eq!([None, Some("*"), Some("*Create"), Some("Mount *")].map(smb), [false; 4]);
    }

    #[test]
    fn all_that_a_pattern_gives_must_fit() {
        let agent = |name: &str| (name == "user-agent").then_some("tests/1");
        let seen = seen(&agent);
        let some = |text: &str| Some(text.to_owned());
        let header = |name: &str, glob: &str| vec![(name.to_owned(), glob.to_owned())];
        let all = Pattern::default();
        for fitting in [
            all.clone(),
            Pattern { service: Some(ServiceKind::Blob), ..all.clone() },
            Pattern { operation: some("put-blob"), ..all.clone() },
            Pattern { operation: some("Put*"), ..all.clone() },
            Pattern { operation: some("BlockBlob_Upload"), ..all.clone() },
            Pattern { account: some("one"), path: some("/docs/*"), ..all.clone() },
            Pattern { headers: header("user-agent", "t*1"), ..all.clone() },
        ] {
            assert!(fitting.matches(&seen), "{fitting:?}");
        }
        for other in [
            Pattern { service: Some(ServiceKind::File), ..all.clone() },
            Pattern { operation: some("put"), ..all.clone() },
            Pattern { account: some("two"), ..all.clone() },
            Pattern { path: some("doc"), ..all.clone() },
            Pattern { path: some("docs/a"), ..all.clone() },
            Pattern { headers: header("if-match", "*"), ..all.clone() },
        ] {
            assert!(!other.matches(&seen), "{other:?}");
        }
    }

    #[test]
    fn the_name_of_a_container_alone_means_all_that_is_in_it() {
        for (glob, path, fits) in [
            ("docs", "docs", true),
            ("docs", "docs/a/b.txt", true),
            ("/docs/", "docs/a", true),
            ("do*", "docs/a/b.txt", true),
            ("docs", "docs2/a", false),
            ("docs/a", "docs/a/b", false),
            ("docs/*", "docs/a/b", false),
            ("jobs", "jobs/messages/1", true),
            ("rows", "rows(PartitionKey='p',RowKey='r')", true),
            ("rows", "Tables('rows')", true),
            ("rows", "rows2()", false),
            ("rows(*", "rows(PartitionKey='p',RowKey='r')", true),
        ] {
            let pattern = Pattern { path: Some(glob.to_owned()), ..Pattern::default() };
            let seen = PatternSubject { path, ..seen(&|_| None) };
            assert_eq!(pattern.matches(&seen), fits, "{glob} {path}");
        }
    }
}
