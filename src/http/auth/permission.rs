//! The letters of a SAS: what it permits (`sp`), and on what (`srt`).
//!
//! Decides the meaning of each letter. The tables of operations say which letters an operation
//! needs.

use crate::rules::named::named;

named! {
    /// Something a SAS may permit.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum Permission,
    /// Its letter in `sp`.
    letter: char {
        /// Contents, properties, metadata.
        Read = 'r',
        /// Add messages, entities, appended blocks.
        Add = 'a',
        /// Make a new one.
        Create = 'c',
        /// Make or change one.
        Write = 'w',
        Delete = 'd',
        /// List what is below.
        List = 'l',
        /// Update messages, entities.
        Update = 'u',
        /// Take messages.
        Process = 'p',
        DeleteVersion = 'x',
        /// Delete for good.
        PermanentDelete = 'y',
        Tags = 't',
        Find = 'f',
        /// Immutability policies and legal holds.
        Immutability = 'i',
    }
}

impl Permission {
    const fn bit(self) -> u16 {
        1 << self as u8
    }
}

/// A set of permissions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Permissions(u16);

impl Permissions {
    /// Of letters in any order. One that is not known permits nothing that can be asked for
    /// here, and does not hurt the others: newer clients send letters of other services.
    pub fn of_letters(text: &str) -> Self {
        let known = Permission::ALL.into_iter().filter(|one| text.contains(one.letter()));
        Self(known.fold(0, |bits, one| bits | one.bit()))
    }

    /// Whether it is in the set.
    pub const fn contains(self, permission: Permission) -> bool {
        self.0 & permission.bit() != 0
    }

    /// The letters of the set.
    pub fn letters(self) -> String {
        let held: Vec<_> = Permission::ALL.into_iter().filter(|one| self.contains(*one)).collect();
        letters(&held)
    }
}

pub(super) fn letters(permissions: &[Permission]) -> String {
    permissions.iter().map(|one| one.letter()).collect()
}

/// The kind of resource that an operation is about; `srt` lists those that an account SAS reaches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ResourceLevel {
    /// `s`: the service, such as List Shares.
    Service,
    /// `c`: a container (share, queue, table) as a whole, such as Create Share.
    Container,
    /// `o`: an object in a container (file, directory, blob, message, entity).
    Object,
}

impl ResourceLevel {
    /// Its letter in `srt`.
    pub const fn letter(self) -> char {
        match self {
            Self::Service => 's',
            Self::Container => 'c',
            Self::Object => 'o',
        }
    }

    /// As a refusal calls it.
    pub(super) const fn noun(self) -> &'static str {
        match self {
            Self::Service => "the service (s)",
            Self::Container => "containers as a whole (c)",
            Self::Object => "objects in containers (o)",
        }
    }
}
