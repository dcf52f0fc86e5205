//! Names: which two are the same, and which are legal over REST.
//!
//! Decides case folding and the limits of directory and file names. Names of shares are decided in
//! [`crate::rules::name`]; how a request's path becomes a [`super::SharePath`], in `file/rest`.
//! The mount is lenient: it takes any such path, as a POSIX program expects.

use std::borrow::Cow;

use crate::rules::name::check_resource_name;

#[cfg(test)]
mod tests;

/// Longest component, in UTF-16 units.
pub const COMPONENT_UNITS_MAX: usize = 255;
/// Longest path within a share, separators included, in UTF-16 units (same sources).
pub const PATH_UNITS_MAX: usize = 2048;
/// Most components of a path (same sources).
pub const DEPTH_MAX: usize = 250;

/// Why a name is refused over REST.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FileNameError {
    /// A `%` that two hexadecimal digits do not follow.
    #[error("a '%' in the path is not followed by two hexadecimal digits")]
    BadEscape,
    /// The decoded path is no UTF-8; an unpaired surrogate is one way.
    #[error("the path is not UTF-8 once decoded")]
    NotUtf8,
    /// An empty component, as in `a//b`.
    #[error("a path component is empty")]
    Empty,
    /// `.`, `..`, or nothing left once trailing dots are trimmed.
    #[error("'{0}' consists of dots only")]
    OnlyDots(String),
    #[error("'{0}' is longer than {COMPONENT_UNITS_MAX} characters")]
    ComponentTooLong(String),
    /// One of `" \ / : | < > * ?`.
    #[error("'{component}' holds the forbidden character '{character}'")]
    Forbidden {
        /// The component it is in.
        component: String,
        /// The first such character.
        character: char,
    },
    #[error("{0:?} holds a control character")]
    Control(String),
    /// The name of a device.
    #[error("'{0}' is a reserved device name")]
    Reserved(String),
    #[error("the path is longer than {PATH_UNITS_MAX} characters")]
    PathTooLong,
    #[error("the path is deeper than {DEPTH_MAX} components")]
    TooDeep,
}

/// The form in which two spellings of one name are equal: each character upper-cased if its
/// upper case is one character, as a Windows share does. No normalisation: a
/// composed and a decomposed letter stay two names.
pub fn fold(name: &str) -> Cow<'_, str> {
    if name.chars().all(|letter| fold_char(letter) == letter) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.chars().map(fold_char).collect())
}

/// True if the two names are spellings of one.
pub fn same_name(a: &str, b: &str) -> bool {
    a == b || a.chars().map(fold_char).eq(b.chars().map(fold_char))
}

fn fold_char(letter: char) -> char {
    if letter.is_ascii() {
        return letter.to_ascii_uppercase();
    }
    let mut upper = letter.to_uppercase();
    match (upper.next(), upper.next()) {
        // The dotless i and the long s are letters of their own to Windows, whatever Unicode
        // makes of them: nothing outside ASCII may pass for a name inside it.
        (Some(only), None) if !only.is_ascii() => only,
        _ => letter,
    }
}

/// Checks one directory or file name against the service's rules.
pub fn check_component(name: &str) -> Result<(), FileNameError> {
    if name.is_empty() {
        return Err(FileNameError::Empty);
    }
    if matches!(name, "." | "..") {
        return Err(FileNameError::OnlyDots(name.into()));
    }
    if units(name) > COMPONENT_UNITS_MAX {
        return Err(FileNameError::ComponentTooLong(name.into()));
    }
    if name.contains(char::is_control) {
        return Err(FileNameError::Control(name.into()));
    }
    if let Some(character) = name.chars().find(|&letter| is_forbidden(letter)) {
        return Err(FileNameError::Forbidden { component: name.into(), character });
    }
    if is_device(name) {
        return Err(FileNameError::Reserved(name.into()));
    }
    Ok(())
}

/// The account and the share of `[ACCOUNT/]SHARE`, as people type it and commands print it.
pub fn split_account(name: &str) -> (Option<&str>, &str) {
    match name.split_once('/') {
        Some((account, share)) => (Some(account), share),
        None => (None, name),
    }
}

/// True for a name that a share may have.
pub fn is_share_name(name: &str) -> bool {
    check_resource_name(name).is_ok()
}

/// Length as the service counts it: UTF-16 units.
pub fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

fn is_forbidden(letter: char) -> bool {
    matches!(letter, '"' | '\\' | '/' | ':' | '|' | '<' | '>' | '*' | '?')
}

/// True for the device names that Windows reserves, in any case. The whole component counts:
/// `con.txt` is an ordinary name.
fn is_device(name: &str) -> bool {
    let fixed = ["PRN", "AUX", "NUL", "CON", "CLOCK$"];
    if fixed.iter().any(|device| name.eq_ignore_ascii_case(device)) {
        return true;
    }
    matches!(name.as_bytes(), [port @ .., b'1'..=b'9']
        if port.eq_ignore_ascii_case(b"LPT") || port.eq_ignore_ascii_case(b"COM"))
}
