//! Addresses of objects of the four services, as people type and read them:
//!
//! ```text
//!   blob:CONTAINER/NAME   queue:NAME/ID   table:TABLE/PARTITION/ROW   file:SHARE/PATH
//! ```
//!
//! An address may stop early: `blob:CONTAINER` is the container, `blob:` the service. Decides
//! nothing about names: what a service does not take, it refuses itself. Keys of entities have no
//! slashes, names of blobs may.

use std::fmt;

use super::service::ServiceKind;

/// The object or container that an address names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ObjectAddress {
    /// A service as a whole.
    Service(ServiceKind),
    /// A share, or a file or directory in it; no slash before the path, which may be empty.
    File {
        share: String,
        path: String,
    },
    Container(String),
    Blob {
        container: String,
        name: String,
    },
    Queue(String),
    Message {
        queue: String,
        id: String,
    },
    Table(String),
    /// All entities of a table with one partition key.
    Partition {
        table: String,
        partition: String,
    },
    Entity {
        table: String,
        partition: String,
        row: String,
    },
}

impl ObjectAddress {
    /// The address that the text is; `None` if it is something else, such as a path on a mount, or
    /// a file of a share as in `blob:/a.txt`, where the share is called blob.
    pub fn read(text: &str) -> Option<Self> {
        let (service, rest) = text.split_once(':')?;
        let service = ServiceKind::ALL.into_iter().find(|kind| kind.label() == service)?;
        if rest.starts_with('/') {
            return None;
        }
        if rest.is_empty() {
            return Some(Self::Service(service));
        }
        let (first, below) = match rest.split_once('/') {
            Some((first, below)) => (first.to_owned(), Some(below.to_owned())),
            None => (rest.to_owned(), None),
        };
        Some(match (service, below) {
            (ServiceKind::File, below) => {
                let path = below.unwrap_or_default().trim_matches('/').to_owned();
                Self::File { share: first, path }
            }
            (ServiceKind::Blob, Some(name)) if !name.is_empty() => {
                Self::Blob { container: first, name }
            }
            (ServiceKind::Blob, _) => Self::Container(first),
            (ServiceKind::Queue, Some(id)) if !id.is_empty() => Self::Message { queue: first, id },
            (ServiceKind::Queue, _) => Self::Queue(first),
            (ServiceKind::Table, None) => Self::Table(first),
            (ServiceKind::Table, Some(keys)) => match keys.split_once('/') {
                Some((partition, row)) => {
                    let (partition, row) = (partition.to_owned(), row.to_owned());
                    Self::Entity { table: first, partition, row }
                }
                None if keys.is_empty() => Self::Table(first),
                None => Self::Partition { table: first, partition: keys },
            },
        })
    }

    /// The service that it is of.
    pub fn service(&self) -> ServiceKind {
        match self {
            Self::Service(service) => *service,
            Self::File { .. } => ServiceKind::File,
            Self::Container(_) | Self::Blob { .. } => ServiceKind::Blob,
            Self::Queue(_) | Self::Message { .. } => ServiceKind::Queue,
            Self::Table(_) | Self::Partition { .. } | Self::Entity { .. } => ServiceKind::Table,
        }
    }

    /// Whether `other` is this, or lies below it. Names of tables have no case.
    pub fn holds(&self, other: &Self) -> bool {
        let table = |one: &str, two: &str| one.eq_ignore_ascii_case(two);
        match (self, other) {
            (Self::Service(service), other) => *service == other.service(),
            (Self::Container(name), Self::Blob { container, .. }) => name == container,
            (Self::Queue(name), Self::Message { queue, .. }) => name == queue,
            (
                Self::Table(name),
                Self::Table(other)
                | Self::Partition { table: other, .. }
                | Self::Entity { table: other, .. },
            ) => table(name, other),
            (
                Self::Partition { table: name, partition },
                Self::Entity { table: other, partition: key, .. },
            ) => table(name, other) && partition == key,
            (
                Self::Entity { table: name, partition, row },
                Self::Entity { table: other, partition: key, row: row_key },
            ) => table(name, other) && (partition, row) == (key, row_key),
            (one, other) => one == other,
        }
    }
}

impl fmt::Display for ObjectAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.service())?;
        match self {
            Self::Service(_) => Ok(()),
            Self::File { share, path } if path.is_empty() => f.write_str(share),
            Self::File { share: first, path: rest }
            | Self::Blob { container: first, name: rest }
            | Self::Message { queue: first, id: rest }
            | Self::Partition { table: first, partition: rest } => write!(f, "{first}/{rest}"),
            Self::Container(name) | Self::Queue(name) | Self::Table(name) => f.write_str(name),
            Self::Entity { table, partition, row } => write!(f, "{table}/{partition}/{row}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_printed() {
        for text in [
            "blob:",
            "blob:docs",
            "blob:docs/a/b.txt",
            "queue:work",
            "queue:work/5f-00",
            "table:Rows",
            "table:Rows/p",
            "table:Rows/p/r",
            "table:Rows//",
            "file:",
            "file:docs",
            "file:docs/a/b.txt",
        ] {
            let read = ObjectAddress::read(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(read.to_string(), text);
            assert!(read.holds(&read));
        }
        for (text, short) in [("blob:docs/", "blob:docs"), ("table:t/", "table:t")] {
            assert_eq!(ObjectAddress::read(text), ObjectAddress::read(short));
        }
        for text in ["blob", "blob:/a.txt", "/mnt/a", "docs:/a.txt", "http://x", "Blob:x", "a:b"] {
            assert_eq!(ObjectAddress::read(text), None, "{text}");
        }
    }

    #[test]
    fn an_address_holds_what_lies_below_it() {
        let address = |text| ObjectAddress::read(text).unwrap();
        for (one, other, holds) in [
            ("blob:", "blob:docs/a", true),
            ("blob:docs", "blob:docs/a", true),
            ("blob:docs", "blob:docs2/a", false),
            ("blob:docs/a", "blob:docs/a/b", false),
            ("queue:work", "queue:work/1", true),
            ("table:rows", "table:Rows/p/r", true),
            ("table:rows/p", "table:Rows/p/r", true),
            ("table:rows/p", "table:Rows/q/r", false),
            ("table:rows/p/r", "table:Rows/p/r", true),
            ("blob:", "queue:work", false),
        ] {
            assert_eq!(address(one).holds(&address(other)), holds, "{one} {other}");
        }
    }
}
