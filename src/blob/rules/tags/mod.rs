//! Tags of blobs: which are legal, and the expressions over them.
//!
//! Decides limits and characters. Expressions are in [`query`]; REST reads the XML of tags, and
//! the store finds blobs by tags.

pub mod query;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use query::{ComparisonKey, TagQuery};

/// Most tags of a blob.
pub const TAGS_MAX: usize = 10;
const KEY_MAX: usize = 128;
const VALUE_MAX: usize = 256;

/// The tags of a blob, by key. Keys and values are case-sensitive.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tags(BTreeMap<String, String>);

/// Why tags are refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TagError {
    #[error("The tags specified exceed the maximum permissible limit.")]
    TooMany,
    /// A key or value that is too long, empty where it must not be, or has a character that tags
    /// do not have.
    #[error("The tags specified are invalid. It contains characters that are not permitted.")]
    Invalid,
    /// A key that is there twice.
    #[error("The tags specified are invalid. A key is there more than once.")]
    Repeated,
}

impl Tags {
    /// Collects tags, or refuses them.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Result<Self, TagError> {
        let mut tags = BTreeMap::new();
        for (key, value) in pairs {
            if key.is_empty() || !is_legal(&key, KEY_MAX) || !is_legal(&value, VALUE_MAX) {
                return Err(TagError::Invalid);
            }
            if tags.insert(key, value).is_some() {
                return Err(TagError::Repeated);
            }
            if tags.len() > TAGS_MAX {
                return Err(TagError::TooMany);
            }
        }
        Ok(Self(tags))
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// The tags that an expression compares.
    #[must_use]
    pub fn compared_in(mut self, query: &TagQuery) -> Self {
        let compared = query.conjuncts();
        self.0.retain(|tag, _| {
            compared.iter().any(|one| matches!(&one.key, ComparisonKey::Tag(key) if key == tag))
        });
        self
    }

    /// Keys and values, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// How many there are, for `x-ms-tag-count`.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Letters and digits of ASCII, blank, and `+ - . / : = _`.
fn is_legal(text: &str, max: usize) -> bool {
    text.len() <= max
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" +-./:=_".contains(&byte))
}
