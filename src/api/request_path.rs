//! The path of the requests that a gate or a fault means, as people type it.
//!
//! Decides which addresses of objects may stand for it. What a pattern matches is decided in
//! [`crate::rules::pattern`].

use crate::file::rules::name::is_share_name;
use crate::rules::service::ServiceKind;

/// The path of requests that a pattern means. An object may be named as commands print it, if its
/// address is the path of its requests: `blob:CONTAINER/NAME`, `file:SHARE/PATH`, `SHARE:/PATH`.
pub fn request_path(
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
pub fn service_of(name: &str) -> Result<ServiceKind, String> {
    let found = ServiceKind::ALL.into_iter().find(|kind| kind.label() == name);
    found.ok_or_else(|| format!("'{name}' is not a service: expected file, blob, queue or table"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
