//! The NTSTATUS numbers, with their names. Which refusal has which is decided in
//! [`crate::file::rules::ntstatus`].

use std::fmt;

use crate::file::rules::{Denial, ntstatus};

/// The status of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub u32);

macro_rules! statuses {
    ($($name:ident = $number:literal),* $(,)?) => {
        impl Status {
            $(pub const $name: Self = Self($number);)*
        }

        const NAMES: &[(&str, Status)] = &[
            $((concat!("STATUS_", stringify!($name)), Status::$name)),*
        ];
    };
}

statuses! {
    SUCCESS = 0,
    PENDING = 0x103,
    NOTIFY_CLEANUP = 0x10B,
    NOTIFY_ENUM_DIR = 0x10C,
    BUFFER_OVERFLOW = 0x8000_0005,
    NO_MORE_FILES = 0x8000_0006,
    INVALID_INFO_CLASS = 0xC000_0003,
    INFO_LENGTH_MISMATCH = 0xC000_0004,
    INVALID_HANDLE = 0xC000_0008,
    INVALID_PARAMETER = 0xC000_000D,
    NO_SUCH_FILE = 0xC000_000F,
    INVALID_DEVICE_REQUEST = 0xC000_0010,
    END_OF_FILE = 0xC000_0011,
    MORE_PROCESSING_REQUIRED = 0xC000_0016,
    ACCESS_DENIED = 0xC000_0022,
    BUFFER_TOO_SMALL = 0xC000_0023,
    OBJECT_NAME_INVALID = 0xC000_0033,
    OBJECT_NAME_NOT_FOUND = 0xC000_0034,
    OBJECT_NAME_COLLISION = 0xC000_0035,
    OBJECT_PATH_NOT_FOUND = 0xC000_003A,
    OBJECT_PATH_SYNTAX_BAD = 0xC000_003B,
    SHARING_VIOLATION = 0xC000_0043,
    EAS_NOT_SUPPORTED = 0xC000_004F,
    FILE_LOCK_CONFLICT = 0xC000_0054,
    LOCK_NOT_GRANTED = 0xC000_0055,
    DELETE_PENDING = 0xC000_0056,
    LOGON_FAILURE = 0xC000_006D,
    RANGE_NOT_LOCKED = 0xC000_007E,
    DISK_FULL = 0xC000_007F,
    INSUFFICIENT_RESOURCES = 0xC000_009A,
    MEDIA_WRITE_PROTECTED = 0xC000_00A2,
    BAD_IMPERSONATION_LEVEL = 0xC000_00A5,
    IO_TIMEOUT = 0xC000_00B5,
    FILE_IS_A_DIRECTORY = 0xC000_00BA,
    NOT_SUPPORTED = 0xC000_00BB,
    NETWORK_NAME_DELETED = 0xC000_00C9,
    BAD_NETWORK_NAME = 0xC000_00CC,
    REQUEST_NOT_ACCEPTED = 0xC000_00D0,
    INTERNAL_ERROR = 0xC000_00E5,
    UNEXPECTED_IO_ERROR = 0xC000_00E9,
    DIRECTORY_NOT_EMPTY = 0xC000_0101,
    NOT_A_DIRECTORY = 0xC000_0103,
    TOO_MANY_OPENED_FILES = 0xC000_011F,
    CANCELLED = 0xC000_0120,
    CANNOT_DELETE = 0xC000_0121,
    FILE_CLOSED = 0xC000_0128,
    FS_DRIVER_REQUIRED = 0xC000_019C,
    INVALID_LOCK_RANGE = 0xC000_01A1,
    USER_SESSION_DELETED = 0xC000_0203,
    NOT_FOUND = 0xC000_0225,
    FILE_TOO_LARGE = 0xC000_0904,
}

impl Status {
    /// The status that an error code names: `SharingViolation`, in any case.
    pub fn by_code(code: &str) -> Option<Self> {
        let is_meant = |name: &str| {
            let letters = name.chars().skip("STATUS_".len()).filter(|letter| *letter != '_');
            letters.eq(code.chars().map(|letter| letter.to_ascii_uppercase()))
        };
        NAMES.iter().find(|(name, _)| is_meant(name)).map(|(_, status)| *status)
    }

    /// The HTTP status nearest to it, for rows of the journal.
    pub fn http(self) -> u16 {
        match self {
            _ if !self.is_failure() => 200,
            Self::OBJECT_NAME_NOT_FOUND | Self::OBJECT_PATH_NOT_FOUND | Self::NO_SUCH_FILE => 404,
            Self::ACCESS_DENIED | Self::CANNOT_DELETE | Self::MEDIA_WRITE_PROTECTED => 403,
            Self::SHARING_VIOLATION
            | Self::DELETE_PENDING
            | Self::OBJECT_NAME_COLLISION
            | Self::LOCK_NOT_GRANTED
            | Self::FILE_LOCK_CONFLICT
            | Self::RANGE_NOT_LOCKED
            | Self::DIRECTORY_NOT_EMPTY
            | Self::FILE_CLOSED => 409,
            Self::INSUFFICIENT_RESOURCES => 503,
            Self::INTERNAL_ERROR | Self::UNEXPECTED_IO_ERROR => 500,
            Self::DISK_FULL => 507,
            _ => 400,
        }
    }

    /// Not even done in part. Warnings are no failures.
    pub fn is_failure(self) -> bool {
        self.0 >> 30 == 3
    }
}

impl From<&Denial> for Status {
    fn from(denial: &Denial) -> Self {
        let name = ntstatus::name(denial);
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map_or(Self::UNEXPECTED_IO_ERROR, |(_, status)| *status)
    }
}

/// The name, or the number of a status without one here.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(_, status)| status == self) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "{:#010x}", self.0),
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_different_and_in_order() {
        assert!(NAMES.is_sorted_by(|one, next| one.1.0 < next.1.0));
        assert_eq!(Status::SHARING_VIOLATION.to_string(), "STATUS_SHARING_VIOLATION");
        assert_eq!(Status(0xC0FF_EE00).to_string(), "0xc0ffee00");
    }

    #[test]
    fn every_name_of_a_refusal_has_a_number() {
        let source = include_str!("../rules/ntstatus.rs");
        let names = source.split('"').filter(|text| text.starts_with("STATUS_"));
        let mut count = 0;
        for name in names {
            assert!(NAMES.iter().any(|(known, _)| *known == name), "{name}");
            count += 1;
        }
        assert!(count > 20, "{count} names are in that table");
    }

    #[test]
    fn warnings_and_interim_answers_are_no_failures() {
        assert!(Status::LOGON_FAILURE.is_failure());
        for status in [Status::SUCCESS, Status::PENDING, Status::BUFFER_OVERFLOW] {
            assert!(!status.is_failure(), "{status}");
        }
    }
}
