//! The values of properties: the eight Edm types, and how two values compare.
//!
//! Decides which values compare with each other (numbers of all types by value, other types only
//! with their own) and the size of a single value. The JSON form of a value is decided in
//! `table/rest`.

use std::cmp::Ordering;

use uuid::Uuid;

use super::datetime::Ticks;
use super::number;
use crate::rules::named::named;

/// UTF-16 units of a string: 64 KiB.
pub const STRING_UNITS_MAX: usize = 32_768;
/// Bytes of a binary value.
pub const BINARY_BYTES_MAX: usize = 65_536;

named! {
    /// The type of a value.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum EdmType,
    /// The name that annotations carry: `Edm.Int64`.
    name: &'static str {
        String = "Edm.String",
        Boolean = "Edm.Boolean",
        Int32 = "Edm.Int32",
        Int64 = "Edm.Int64",
        Double = "Edm.Double",
        DateTime = "Edm.DateTime",
        Guid = "Edm.Guid",
        Binary = "Edm.Binary",
    }
}

impl EdmType {
    /// The type of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }
}

/// A value that owns its text or bytes.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    String(String),
    Boolean(bool),
    Int32(i32),
    Int64(i64),
    Double(f64),
    DateTime(Ticks),
    Guid(Uuid),
    Binary(Vec<u8>),
}

/// A value whose text or bytes are borrowed, from a stored record for example.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ValueRef<'a> {
    String(&'a str),
    Boolean(bool),
    Int32(i32),
    Int64(i64),
    Double(f64),
    DateTime(Ticks),
    Guid(Uuid),
    Binary(&'a [u8]),
}

impl Value {
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::String(text) => ValueRef::String(text),
            Self::Boolean(value) => ValueRef::Boolean(*value),
            Self::Int32(value) => ValueRef::Int32(*value),
            Self::Int64(value) => ValueRef::Int64(*value),
            Self::Double(value) => ValueRef::Double(*value),
            Self::DateTime(value) => ValueRef::DateTime(*value),
            Self::Guid(value) => ValueRef::Guid(*value),
            Self::Binary(bytes) => ValueRef::Binary(bytes),
        }
    }
}

impl ValueRef<'_> {
    pub fn to_owned(self) -> Value {
        match self {
            Self::String(text) => Value::String(text.to_owned()),
            Self::Boolean(value) => Value::Boolean(value),
            Self::Int32(value) => Value::Int32(value),
            Self::Int64(value) => Value::Int64(value),
            Self::Double(value) => Value::Double(value),
            Self::DateTime(value) => Value::DateTime(value),
            Self::Guid(value) => Value::Guid(value),
            Self::Binary(bytes) => Value::Binary(bytes.to_vec()),
        }
    }

    pub const fn edm_type(self) -> EdmType {
        match self {
            Self::String(_) => EdmType::String,
            Self::Boolean(_) => EdmType::Boolean,
            Self::Int32(_) => EdmType::Int32,
            Self::Int64(_) => EdmType::Int64,
            Self::Double(_) => EdmType::Double,
            Self::DateTime(_) => EdmType::DateTime,
            Self::Guid(_) => EdmType::Guid,
            Self::Binary(_) => EdmType::Binary,
        }
    }

    /// The order of two values; none if their types do not compare, or one is NaN.
    pub fn order(self, other: ValueRef<'_>) -> Option<Ordering> {
        use ValueRef as V;
        match (self, other) {
            (V::String(one), V::String(two)) => Some(one.cmp(two)),
            (V::Boolean(one), V::Boolean(two)) => Some(one.cmp(&two)),
            (V::DateTime(one), V::DateTime(two)) => Some(one.cmp(&two)),
            (V::Guid(one), V::Guid(two)) => Some(one.cmp(&two)),
            (V::Binary(one), V::Binary(two)) => Some(one.cmp(two)),
            (V::Double(one), V::Double(two)) => one.partial_cmp(&two),
            (V::Double(one), two) => number::compare(two.integer()?, one).map(Ordering::reverse),
            (one, V::Double(two)) => number::compare(one.integer()?, two),
            (one, two) => Some(one.integer()?.cmp(&two.integer()?)),
        }
    }

    fn integer(self) -> Option<i64> {
        match self {
            Self::Int32(value) => Some(value.into()),
            Self::Int64(value) => Some(value),
            _ => None,
        }
    }

    /// Bytes that the value counts for in the limit of an entity.
    pub fn counted_bytes(self) -> usize {
        match self {
            Self::String(text) => 2 * utf16_units(text) + 4,
            Self::Binary(bytes) => bytes.len() + 4,
            Self::DateTime(_) | Self::Double(_) | Self::Int64(_) => 8,
            Self::Int32(_) => 4,
            Self::Guid(_) => 16,
            Self::Boolean(_) => 1,
        }
    }

    /// True if the value exceeds the limit of its type.
    pub fn is_too_large(self) -> bool {
        match self {
            // A string has at most as many units as bytes.
            Self::String(text) => {
                text.len() > STRING_UNITS_MAX && utf16_units(text) > STRING_UNITS_MAX
            }
            Self::Binary(bytes) => bytes.len() > BINARY_BYTES_MAX,
            _ => false,
        }
    }
}

/// UTF-16 units of a text, which the service's limits count in.
pub fn utf16_units(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() }
}

/// Reads a GUID: 32 hex digits with hyphens, in any case.
pub fn parse_guid(text: &str) -> Option<Uuid> {
    // The parser of the crate also takes braces, a URN and digits without hyphens.
    if text.len() == 36 { Uuid::try_parse(text).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_by_value_and_other_types_with_their_own_t54() {
        use Ordering::{Equal, Greater, Less};
        use ValueRef as V;
        let guid = |text| V::Guid(parse_guid(text).unwrap());
        let (low, high) = (
            guid("00000000-0000-0000-0000-0000000000ff"),
            guid("01000000-0000-0000-0000-000000000000"),
        );
        for (one, two, order) in [
            (V::Int32(3), V::Int64(3), Some(Equal)),
            (V::Int32(3), V::Double(3.0), Some(Equal)),
            (V::Double(3.5), V::Int64(3), Some(Greater)),
            (V::Int64((1 << 53) + 1), V::Int64(1 << 53), Some(Greater)),
            (V::Double(f64::NAN), V::Double(f64::NAN), None),
            (V::Int32(1), V::Double(f64::NAN), None),
            (V::String("a"), V::String("B"), Some(Greater)),
            (V::String("1"), V::Int32(1), None),
            (V::Boolean(false), V::Boolean(true), Some(Less)),
            (V::Boolean(true), V::Int32(1), None),
            (low, high, Some(Less)),
            (V::Binary(&[1]), V::Binary(&[1, 0]), Some(Less)),
            (V::DateTime(Ticks(1)), V::DateTime(Ticks(2)), Some(Less)),
            (V::DateTime(Ticks(1)), V::Int64(1), None),
        ] {
            assert_eq!(one.order(two), order, "{one:?} {two:?}");
            assert_eq!(two.order(one), order.map(Ordering::reverse), "{two:?} {one:?}");
        }
    }

    #[test]
    fn strings_and_binary_values_are_held_at_the_bound_and_past_it_t39() {
        let text = "x".repeat(STRING_UNITS_MAX);
        assert!(!ValueRef::String(&text).is_too_large());
        assert!(ValueRef::String(&format!("{text}x")).is_too_large());
        // Four bytes, two units each.
        let emoji = "😀".repeat(STRING_UNITS_MAX / 2);
        assert!(!ValueRef::String(&emoji).is_too_large());
        assert!(ValueRef::String(&format!("{emoji}x")).is_too_large());
        assert!(!ValueRef::Binary(&vec![0; BINARY_BYTES_MAX]).is_too_large());
        assert!(ValueRef::Binary(&vec![0; BINARY_BYTES_MAX + 1]).is_too_large());
    }

    #[test]
    fn a_guid_has_hyphens_and_any_case_t27() {
        let upper = parse_guid("C0FFEE00-1234-5678-9ABC-DEF012345678").unwrap();
        assert_eq!(upper.to_string(), "c0ffee00-1234-5678-9abc-def012345678");
        for bad in [
            "",
            "c0ffee00123456789abcdef012345678",
            "{c0ffee00-1234-5678-9abc-def01234567}",
            "g0ffee00-1234-5678-9abc-def012345678",
            "c0ffee0-01234-5678-9abc-def012345678",
        ] {
            assert_eq!(parse_guid(bad), None, "{bad}");
        }
    }

    #[test]
    fn types_are_found_by_name() {
        for known in EdmType::ALL {
            assert_eq!(EdmType::named(known.name()), Some(known));
        }
        assert_eq!(EdmType::named("Edm.Decimal"), None);
        assert_eq!(EdmType::named("edm.string"), None);
    }
}
