//! User metadata: names in any case, kept as they were written.
//!
//! Decides that names which differ only in ASCII case are the same. Which names are legal and how
//! much metadata an object may have is decided in [`super`].

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `x-ms-meta-*` pairs, ordered by name regardless of case.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Metadata(BTreeMap<String, Pair>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Pair {
    name: String,
    value: String,
}

impl Metadata {
    /// Sets `name`, in this spelling from now on.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<String>) {
        let (name, value) = (name.into(), value.into());
        self.0.insert(name.to_ascii_lowercase(), Pair { name, value });
    }

    /// The value of `name`, spelled in any case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(&name.to_ascii_lowercase()).map(|pair| &*pair.value)
    }

    /// Names as they were written, with values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.values().map(|pair| (&*pair.name, &*pair.value))
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Metadata {
    fn from_iter<T: IntoIterator<Item = (N, V)>>(pairs: T) -> Self {
        let mut metadata = Self::default();
        for (name, value) in pairs {
            metadata.insert(name, value);
        }
        metadata
    }
}

impl Serialize for Metadata {
    fn serialize<T: Serializer>(&self, to: T) -> Result<T::Ok, T::Error> {
        to.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<T: Deserializer<'de>>(from: T) -> Result<Self, T::Error> {
        from.deserialize_map(PairsVisitor)
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Metadata;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata names with values")
    }

    fn visit_map<T: MapAccess<'de>>(self, mut map: T) -> Result<Metadata, T::Error> {
        let mut metadata = Metadata::default();
        while let Some((name, value)) = map.next_entry::<String, String>()? {
            metadata.insert(name, value);
        }
        Ok(metadata)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_in_more_than_case_and_keep_their_spelling() {
        let mut metadata: Metadata = [("Zoo", "1"), ("apple", "2")].into_iter().collect();
        metadata.insert("ZOO", "3");
        assert_eq!(metadata.get("zoo"), Some("3"));
        assert_eq!(metadata.get("zo"), None);
        let pairs: Vec<_> = metadata.iter().collect();
        assert_eq!(pairs, [("apple", "2"), ("ZOO", "3")]);
        assert_eq!((metadata.len(), metadata.is_empty()), (2, false));
    }

    #[test]
    fn json_is_an_object_in_the_written_spelling() {
        let metadata: Metadata = [("Cat", "tabby \u{fc}"), ("b", "")].into_iter().collect();
        let json = serde_json::to_string(&metadata).unwrap();
        assert_eq!(json, "{\"b\":\"\",\"Cat\":\"tabby \u{fc}\"}");
        assert_eq!(serde_json::from_str::<Metadata>(&json).unwrap(), metadata);
    }
}
