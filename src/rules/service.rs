//! The four services of a storage account, and their names in host names, in shared access
//! signatures and in resource names.

use std::fmt;

/// A service of a storage account.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ServiceKind {
    File,
    Blob,
    Queue,
    Table,
}

impl ServiceKind {
    pub const ALL: [Self; 4] = [Self::File, Self::Blob, Self::Queue, Self::Table];

    /// The second label of a host name (`ACCOUNT.file.SUFFIX`), and the first part of a resource
    /// in a service SAS.
    pub const fn label(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Blob => "blob",
            Self::Queue => "queue",
            Self::Table => "table",
        }
    }

    /// The name in sentences: the File service.
    pub const fn title(self) -> &'static str {
        match self {
            Self::File => "File",
            Self::Blob => "Blob",
            Self::Queue => "Queue",
            Self::Table => "Table",
        }
    }

    /// The letter in `ss` of an account SAS.
    pub const fn letter(self) -> char {
        match self {
            Self::File => 'f',
            Self::Blob => 'b',
            Self::Queue => 'q',
            Self::Table => 't',
        }
    }

    /// The key of its endpoint in a connection string.
    pub const fn endpoint_key(self) -> &'static str {
        match self {
            Self::File => "FileEndpoint",
            Self::Blob => "BlobEndpoint",
            Self::Queue => "QueueEndpoint",
            Self::Table => "TableEndpoint",
        }
    }

    /// The port that emulators use.
    pub const fn port(self) -> u16 {
        match self {
            Self::File => 10_004,
            Self::Blob => 10_000,
            Self::Queue => 10_001,
            Self::Table => 10_002,
        }
    }
}

impl fmt::Display for ServiceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_services_share_a_name_a_letter_or_a_port() {
        for (at, one) in ServiceKind::ALL.into_iter().enumerate() {
            for other in &ServiceKind::ALL[at + 1..] {
                assert_ne!(one.label(), other.label());
                assert_ne!(one.letter(), other.letter());
                assert_ne!(one.port(), other.port());
                assert_ne!(one.endpoint_key(), other.endpoint_key());
            }
        }
    }
}
