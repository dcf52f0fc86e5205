//! Turns the percent-encoded path of a request into a legal path within a share.
//!
//! Decides decoding, splitting and trimming. The operation, and where the share's name ends in the
//! path, are decided in `http/`.

use super::super::path::{PathError, SharePath};
use super::{DEPTH_MAX, FileNameError, PATH_UNITS_MAX, check_component, units};

/// Reads the part of a request's path that follows the share's name.
///
/// Decoded once, as UTF-8: `%2525` is `%25`, `%2F` separates like `/` (clients send it for nested
/// paths), and `+` is a plus. One slash at either end is dropped. Without
/// `allow_trailing_dot`, dots at the end of each component are trimmed.
pub fn rest_path(raw_path: &str, allow_trailing_dot: bool) -> Result<SharePath, FileNameError> {
    let decoded = percent_decode(raw_path)?;
    let text = decoded.strip_prefix('/').unwrap_or(&decoded);
    let text = text.strip_suffix('/').unwrap_or(text);
    if text.is_empty() {
        return Ok(SharePath::root());
    }
    let mut path = String::with_capacity(text.len());
    for (depth, part) in text.split('/').enumerate() {
        if depth == DEPTH_MAX {
            return Err(FileNameError::TooDeep);
        }
        let name = if allow_trailing_dot { part } else { trim_dots(part)? };
        check_component(name)?;
        if depth > 0 {
            path.push('/');
        }
        path.push_str(name);
    }
    if units(&path) > PATH_UNITS_MAX {
        return Err(FileNameError::PathTooLong);
    }
    SharePath::new(&path).map_err(|error| match error {
        PathError::EmptyComponent => FileNameError::Empty,
        PathError::Dots => FileNameError::OnlyDots(path),
        PathError::Nul => FileNameError::Control(path),
    })
}

fn trim_dots(part: &str) -> Result<&str, FileNameError> {
    let name = part.trim_end_matches('.');
    if name.is_empty() && !part.is_empty() {
        return Err(FileNameError::OnlyDots(part.into()));
    }
    Ok(name)
}

fn percent_decode(raw: &str) -> Result<String, FileNameError> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = tail;
            continue;
        }
        let (&[high, low], tail) = tail.split_first_chunk().ok_or(FileNameError::BadEscape)?;
        bytes.push(hex_digit(high)? << 4 | hex_digit(low)?);
        rest = tail;
    }
    String::from_utf8(bytes).map_err(|_| FileNameError::NotUtf8)
}

fn hex_digit(digit: u8) -> Result<u8, FileNameError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        b'A'..=b'F' => Ok(digit - b'A' + 10),
        _ => Err(FileNameError::BadEscape),
    }
}
