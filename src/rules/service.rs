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

    /// Its label, title, letter, key and port.
    const fn row(self) -> (&'static str, &'static str, char, &'static str, u16) {
        match self {
            Self::File => ("file", "File", 'f', "FileEndpoint", 10_004),
            Self::Blob => ("blob", "Blob", 'b', "BlobEndpoint", 10_000),
            Self::Queue => ("queue", "Queue", 'q', "QueueEndpoint", 10_001),
            Self::Table => ("table", "Table", 't', "TableEndpoint", 10_002),
        }
    }

    /// The second label of a host name (`ACCOUNT.file.SUFFIX`), and the first part of a resource
    /// in a service SAS.
    pub const fn label(self) -> &'static str {
        self.row().0
    }

    /// The name in sentences: the File service.
    pub const fn title(self) -> &'static str {
        self.row().1
    }

    /// The letter in `ss` of an account SAS.
    pub const fn letter(self) -> char {
        self.row().2
    }

    /// The key of its endpoint in a connection string.
    pub const fn endpoint_key(self) -> &'static str {
        self.row().3
    }

    /// The port that emulators use.
    pub const fn port(self) -> u16 {
        self.row().4
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
