//! The properties of an entity as the bytes of a row.
//!
//! Decides the encoding: per property the name, a type tag and the value, in stored order. Values
//! are read in place, so that a filter walks a row without copying it.

use uuid::Uuid;

use crate::table::rules::{EdmType, Properties, Ticks, ValueRef};

pub(super) fn encode(properties: &Properties) -> Vec<u8> {
    let mut out = Vec::with_capacity(32 * properties.len());
    for (name, value) in properties.iter() {
        push_bytes(&mut out, name.as_bytes());
        out.push(tag(value.edm_type()));
        match value {
            ValueRef::String(text) => push_bytes(&mut out, text.as_bytes()),
            ValueRef::Binary(bytes) => push_bytes(&mut out, bytes),
            ValueRef::Boolean(value) => out.push(value.into()),
            ValueRef::Int32(value) => out.extend(value.to_le_bytes()),
            ValueRef::Int64(value) => out.extend(value.to_le_bytes()),
            ValueRef::Double(value) => out.extend(value.to_bits().to_le_bytes()),
            ValueRef::DateTime(ticks) => out.extend(ticks.0.to_le_bytes()),
            ValueRef::Guid(guid) => out.extend(guid.as_bytes()),
        }
    }
    out
}

/// Encoded properties that were checked.
#[derive(Clone, Copy)]
pub(super) struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    /// Checks that all of `bytes` can be read.
    pub(super) fn checked(bytes: &'a [u8]) -> Option<Self> {
        let mut rest = bytes;
        while !rest.is_empty() {
            next(&mut rest)?;
        }
        Some(Self(bytes))
    }

    /// Bytes that were checked before, or that [`encode`] made.
    pub(super) const fn known(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The properties in stored order.
    pub(super) fn iter(self) -> impl Iterator<Item = (&'a str, ValueRef<'a>)> {
        let mut rest = self.0;
        // Ends at the end: `checked` has read everything before.
        std::iter::from_fn(move || next(&mut rest))
    }
}

const fn tag(edm_type: EdmType) -> u8 {
    match edm_type {
        EdmType::String => 1,
        EdmType::Boolean => 2,
        EdmType::Int32 => 3,
        EdmType::Int64 => 4,
        EdmType::Double => 5,
        EdmType::DateTime => 6,
        EdmType::Guid => 7,
        EdmType::Binary => 8,
    }
}

fn next<'a>(rest: &mut &'a [u8]) -> Option<(&'a str, ValueRef<'a>)> {
    let name = take_text(rest)?;
    let [tag] = take(rest)?;
    let value = match tag {
        1 => ValueRef::String(take_text(rest)?),
        2 => ValueRef::Boolean(take::<1>(rest)? != [0]),
        3 => ValueRef::Int32(i32::from_le_bytes(take(rest)?)),
        4 => ValueRef::Int64(i64::from_le_bytes(take(rest)?)),
        5 => ValueRef::Double(f64::from_bits(u64::from_le_bytes(take(rest)?))),
        6 => ValueRef::DateTime(Ticks(i64::from_le_bytes(take(rest)?))),
        7 => ValueRef::Guid(Uuid::from_bytes(take(rest)?)),
        8 => ValueRef::Binary(take_bytes(rest)?),
        _ => return None,
    };
    Some((name, value))
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*taken)
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    std::str::from_utf8(take_bytes(rest)?).ok()
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take_length(rest)?;
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

/// A length in groups of seven bits, the lowest first; the high bit says that more follow.
fn take_length(rest: &mut &[u8]) -> Option<usize> {
    let mut length = 0;
    for shift in [0, 7, 14, 21] {
        let [byte] = take(rest)?;
        length |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(length);
        }
    }
    None
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut length = bytes.len();
    loop {
        let low = u8::try_from(length & 0x7f).unwrap_or_default();
        length >>= 7;
        if length == 0 {
            out.push(low);
            break;
        }
        out.push(low | 0x80);
    }
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::table::rules::Value;

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            "\\PC{0,200}".prop_map(Value::String),
            any::<bool>().prop_map(Value::Boolean),
            any::<i32>().prop_map(Value::Int32),
            any::<i64>().prop_map(Value::Int64),
            any::<f64>().prop_map(Value::Double),
            any::<i64>().prop_map(|ticks| Value::DateTime(Ticks(ticks))),
            any::<u128>().prop_map(|bits| Value::Guid(Uuid::from_u128(bits))),
            prop::collection::vec(any::<u8>(), 0..200).prop_map(Value::Binary),
        ]
    }

    proptest! {
        #[test]
        fn what_is_encoded_reads_back_equal(
            pairs in prop::collection::vec(("[a-z]{1,8}", value()), 0..10)
        ) {
            let bytes = encode(&Properties::new(pairs.clone()));
            let read: Vec<_> = Body::checked(&bytes).unwrap().iter().collect();
            let given: Vec<_> = pairs.iter().map(|(n, v)| (n.as_str(), v.as_ref())).collect();
            prop_assert_eq!(format!("{:?}", read), format!("{:?}", given));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Some(body) = Body::checked(&bytes) {
                body.iter().count();
            }
        }
    }

    #[test]
    fn long_values_and_cut_bytes() {
        let long = vec![7; 65_536];
        let pairs = vec![("p".to_owned(), Value::Binary(long.clone()))];
        let bytes = encode(&Properties::new(pairs));
        let read: Vec<_> = Body::checked(&bytes).unwrap().iter().collect();
        assert_eq!(read, [("p", ValueRef::Binary(&long))]);
        for cut in [1, 2, 3, 5, bytes.len() - 1] {
            assert!(Body::checked(&bytes[..cut]).is_none(), "{cut}");
        }
        assert!(Body::checked(&[]).is_some());
    }
}
