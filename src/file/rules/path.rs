//! Paths within a share: components joined by `/`, no leading slash, the root being empty.
//!
//! A [`SharePath`] is always well formed: no empty component, no `.`, no `..`, no NUL. Which
//! *names* are legal for whom is decided in [`super::name`].

use std::fmt;

use serde::{Deserialize, Serialize};

/// A path from the root of a share.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize)]
pub struct SharePath(Box<str>);

/// Why a text is no path within a share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PathError {
    /// An empty component, as in `a//b`.
    #[error("a path component is empty")]
    EmptyComponent,
    /// `.` or `..`: a path cannot leave the share.
    #[error("'.' and '..' are not allowed in a path")]
    Dots,
    #[error("a path cannot hold a NUL character")]
    Nul,
}

impl SharePath {
    /// The share's root directory.
    pub fn root() -> Self {
        Self::default()
    }

    /// Reads a path as the mount gives it; one slash at either end is dropped.
    pub fn new(text: &str) -> Result<Self, PathError> {
        let text = text.strip_prefix('/').unwrap_or(text);
        let text = text.strip_suffix('/').unwrap_or(text);
        if text.is_empty() {
            return Ok(Self::root());
        }
        text.split('/').try_for_each(check_component)?;
        Ok(Self(text.into()))
    }

    /// The entry `name` of this directory.
    pub fn join(&self, name: &str) -> Result<Self, PathError> {
        if name.contains('/') {
            return Err(PathError::EmptyComponent);
        }
        check_component(name)?;
        Ok(if self.is_root() {
            Self(name.into())
        } else {
            Self(format!("{}/{name}", self.0).into())
        })
    }

    /// True for the share's root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The directory that holds it; none for the root.
    pub fn parent(&self) -> Option<Self> {
        self.split().map(|(parent, _)| Self(parent.into()))
    }

    /// The last component; none for the root.
    pub fn name(&self) -> Option<&str> {
        self.split().map(|(_, name)| name)
    }

    /// Parent path and last component; none for the root.
    pub fn split(&self) -> Option<(&str, &str)> {
        if self.is_root() {
            return None;
        }
        Some(self.0.rsplit_once('/').unwrap_or(("", &self.0)))
    }

    /// The components from the root down.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|part| !part.is_empty())
    }

    /// True if `self` lies below the directory `dir`, letter for letter.
    pub fn is_below(&self, dir: &Self) -> bool {
        if dir.is_root() {
            return !self.is_root();
        }
        self.0.strip_prefix(&*dir.0).is_some_and(|rest| rest.starts_with('/'))
    }

    /// The path below `to` that `self` is below `from`; none if it is not below `from`.
    pub fn rebased(&self, from: &Self, to: &Self) -> Option<Self> {
        if !self.is_below(from) {
            return None;
        }
        let rest = self.0[from.0.len()..].trim_start_matches('/');
        Some(if to.is_root() { Self(rest.into()) } else { Self(format!("{}/{rest}", to.0).into()) })
    }

    /// The path as text, without a leading slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check_component(part: &str) -> Result<(), PathError> {
    match part {
        "" => Err(PathError::EmptyComponent),
        "." | ".." => Err(PathError::Dots),
        part if part.contains('\0') => Err(PathError::Nul),
        _ => Ok(()),
    }
}

impl fmt::Display for SharePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", self.0)
    }
}

impl<'de> Deserialize<'de> for SharePath {
    fn deserialize<T: serde::Deserializer<'de>>(from: T) -> Result<Self, T::Error> {
        let text = <std::borrow::Cow<'_, str>>::deserialize(from)?;
        Self::new(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_cannot_leave_the_share() {
        for text in ["..", "a/../b", "a/..", "./a", "a/./b", "/../etc"] {
            assert_eq!(SharePath::new(text), Err(PathError::Dots), "{text}");
        }
        assert_eq!(SharePath::new("a//b"), Err(PathError::EmptyComponent));
        assert_eq!(SharePath::new("a\0b"), Err(PathError::Nul));
        assert!(SharePath::root().join("a/b").is_err());
    }

    #[test]
    fn a_path_knows_its_parts() {
        let path = SharePath::new("/a/b/c/").unwrap();
        assert_eq!(path.as_str(), "a/b/c");
        assert_eq!(path.name(), Some("c"));
        assert_eq!(path.parent().unwrap().as_str(), "a/b");
        assert_eq!(path.components().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert!(SharePath::new("").unwrap().parent().is_none());
    }

    #[test]
    fn below_means_a_whole_component() {
        let below = |path: &str, dir: &str| {
            SharePath::new(path).unwrap().is_below(&SharePath::new(dir).unwrap())
        };
        assert!(below("a/b", "a") && below("a/b/c", "a") && below("a", ""));
        assert!(!below("ab", "a") && !below("a", "a") && !below("", ""));
    }

    #[test]
    fn a_path_moves_with_the_directory_it_is_below() {
        let path = |text: &str| SharePath::new(text).unwrap();
        let moved = |text: &str, from: &str, to: &str| path(text).rebased(&path(from), &path(to));
        assert_eq!(moved("a/b/c", "a", "x/y"), Some(path("x/y/b/c")));
        assert_eq!(moved("a/b/c", "a/b", ""), Some(path("c")));
        assert_eq!(moved("b", "", "x"), Some(path("x/b")));
        assert_eq!(moved("ab/c", "a", "x"), None);
    }
}
