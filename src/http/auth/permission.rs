//! The letters of a SAS: what it permits (`sp`), and on what (`srt`).
//!
//! Decides the meaning of each letter. The tables of operations say which letters an operation
//! needs.

/// Something a SAS may permit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Permission {
    /// `r`: contents, properties, metadata.
    Read,
    /// `a`: add messages, entities, appended blocks.
    Add,
    /// `c`: make a new one.
    Create,
    /// `w`: make or change one.
    Write,
    /// `d`: delete.
    Delete,
    /// `l`: list what is below.
    List,
    /// `u`: update messages, entities.
    Update,
    /// `p`: take messages.
    Process,
    /// `x`: delete a version.
    DeleteVersion,
    /// `y`: delete for good.
    PermanentDelete,
    /// `t`: tags.
    Tags,
    /// `f`: find by tags.
    Find,
    /// `i`: immutability policies and legal holds.
    Immutability,
}

impl Permission {
    const ALL: [Self; 13] = [
        Self::Read,
        Self::Add,
        Self::Create,
        Self::Write,
        Self::Delete,
        Self::List,
        Self::Update,
        Self::Process,
        Self::DeleteVersion,
        Self::PermanentDelete,
        Self::Tags,
        Self::Find,
        Self::Immutability,
    ];

    /// Its letter in `sp`.
    pub const fn letter(self) -> char {
        match self {
            Self::Read => 'r',
            Self::Add => 'a',
            Self::Create => 'c',
            Self::Write => 'w',
            Self::Delete => 'd',
            Self::List => 'l',
            Self::Update => 'u',
            Self::Process => 'p',
            Self::DeleteVersion => 'x',
            Self::PermanentDelete => 'y',
            Self::Tags => 't',
            Self::Find => 'f',
            Self::Immutability => 'i',
        }
    }

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
