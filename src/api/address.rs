//! Addresses as people type them, beside those of objects ([`crate::rules::address`]): files of
//! shares, and the path of the requests that a gate or a fault means. What a pattern matches is
//! decided in [`crate::rules::pattern`].

use crate::file::rules::name::{is_share_name, split_account};
pub use crate::rules::address::ObjectAddress;
use crate::rules::service::ServiceKind;

/// A file of a share as commands print it: `[ACCOUNT/]SHARE:/PATH`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrintedFile {
    /// The account; the one that is meant anyway without it.
    pub account: Option<String>,
    pub share: String,
    /// The path within it, without a slash before it.
    pub path: String,
}

impl PrintedFile {
    /// The file that the text is; `None` if it is something else. `file:SHARE/PATH` is read too.
    pub fn read(text: &str) -> Option<Self> {
        if let Some(ObjectAddress::File { share, path }) = ObjectAddress::read(text) {
            return Some(Self { account: None, share, path });
        }
        let (name, path) = text.split_once(":/")?;
        let (account, share) = split_account(name);
        let letters = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let url = path.starts_with('/');
        let known = !url && is_share_name(share) && account.is_none_or(letters);
        let account = account.map(str::to_owned);
        known.then(|| Self { account, share: share.to_owned(), path: path.to_owned() })
    }
}

/// The path of requests that a pattern means. An object may be named as commands print it, if its
/// address is the path of its requests: `blob:CONTAINER/NAME`, `file:SHARE/PATH`, `SHARE:/PATH`.
pub(super) fn request_path(
    service: Option<ServiceKind>,
    path: String,
) -> Result<(Option<ServiceKind>, Option<String>), String> {
    let (of, rest) = match path.split_once(':') {
        Some((share, within)) if within.starts_with('/') && is_share_name(share) => {
            (ServiceKind::File, format!("{share}{within}"))
        }
        Some((name, rest)) => match service_of(name) {
            Ok(of) => (of, rest.to_owned()),
            Err(_) => return Ok((service, Some(path))),
        },
        None => return Ok((service, Some(path))),
    };
    if let Some(service) = service.filter(|service| *service != of) {
        return Err(format!("'{path}' is not of the {} service", service.title()));
    }
    let form = match of {
        ServiceKind::File | ServiceKind::Blob => {
            return Ok((Some(of), Some(rest).filter(|rest| !rest.is_empty())));
        }
        ServiceKind::Queue => "QUEUE/messages or QUEUE/messages/ID",
        ServiceKind::Table => "TABLE() or TABLE(PartitionKey='P',RowKey='R')",
    };
    let of = of.title();
    Err(format!("'{path}': requests to the {of} service have paths such as {form}"))
}

/// The service of that name.
pub(super) fn service_of(name: &str) -> Result<ServiceKind, String> {
    let found = ServiceKind::ALL.into_iter().find(|kind| kind.label() == name);
    found.ok_or_else(|| format!("'{name}' is not a service: expected file, blob, queue or table"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_it_is_printed() {
        let read = |text: &str| {
            PrintedFile::read(text).map(|printed| (printed.account, printed.share, printed.path))
        };
        assert_eq!(read("docs:/a/b").unwrap(), (None, "docs".into(), "a/b".into()));
        assert_eq!(read("file:docs/a/b").unwrap(), (None, "docs".into(), "a/b".into()));
        let second = (Some("second".into()), "docs".into(), String::new());
        assert_eq!(read("second/docs:/").unwrap(), second);
        for other in ["docs", "a/b/docs:/c", "/mnt/docs:/c", "DOCS:/c", "http://x", "./docs:/a"] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn an_address_that_is_a_path_of_requests_names_its_service() {
        let read = |path: &str| request_path(None, path.to_owned());
        let path = |path: &str| Some(path.to_owned());
        assert_eq!(read("box/*").unwrap(), (None, path("box/*")));
        assert_eq!(read("blob:box/a:b").unwrap(), (Some(ServiceKind::Blob), path("box/a:b")));
        assert_eq!(read("blob:").unwrap(), (Some(ServiceKind::Blob), None));
        assert_eq!(read("docs:/a").unwrap(), (Some(ServiceKind::File), path("docs/a")));
        assert_eq!(read("file:docs/a").unwrap(), (Some(ServiceKind::File), path("docs/a")));
        assert_eq!(read("box/a:b").unwrap(), (None, path("box/a:b")));
        assert!(read("queue:jobs").is_err() && read("table:rows/p/r").is_err());
    }
}
