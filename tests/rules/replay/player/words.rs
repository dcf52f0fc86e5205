//! The words of a script: how accesses, share modes, dispositions, options, attributes and ranges
//! are spelled. A word that means nothing is an invalid parameter, as on the wire.

use super::script::RangeArg;
use latchfs::file::rules::create::{CreateAction, Disposition, Options};
use latchfs::file::rules::ranges::{ByteRange, LockKind};
use latchfs::file::rules::{Access, Attributes, Denial, Rights, ShareMode};
use latchfs::file::service::Result;

const ACCESS_TEXT: &str = "an access is made of R, W, A, X, D, a and w, or is the name of a right";

/// The ranges of a request: a list, or a single one by `off` and `len` as traces have it.
pub fn all_ranges(
    ranges: &[RangeArg],
    off: Option<u64>,
    len: Option<u64>,
    mode: Option<&String>,
) -> Result<Vec<RangeArg>> {
    match (ranges, off, len) {
        ([], Some(offset), Some(length)) => {
            Ok(vec![RangeArg { offset, length, kind: mode.cloned() }])
        }
        ([_, ..], None, None) => Ok(ranges.to_vec()),
        _ => Err(Denial::InvalidParameter("give either ranges, or off and len").into()),
    }
}

/// A range of bytes.
pub fn byte_range(range: &RangeArg) -> Result<ByteRange> {
    Ok(ByteRange::new(range.offset, range.length).map_err(|_| Denial::InvalidLockRange)?)
}

pub fn lock_kind(range: &RangeArg) -> Result<LockKind> {
    match range.kind.as_deref() {
        Some("EX") => Ok(LockKind::Exclusive),
        Some("SH") => Ok(LockKind::Shared),
        _ => Err(Denial::InvalidParameter("a lock is EX or SH").into()), // br41
    }
}

/// Letters, the name of one right, or none, which is spelled as in a share mode.
pub fn rights(text: &str) -> Result<Rights> {
    if let Some(right) = Rights::by_name(text) {
        return Ok(right);
    }
    let text = if Access::parse(text) == Some(Access::NONE) { "" } else { text };
    let mut rights = Rights::SYNCHRONIZE;
    for letter in text.chars() {
        rights |= match letter {
            'R' => Rights::READ_DATA,
            'W' => Rights::WRITE_DATA,
            'A' | 'P' => Rights::APPEND_DATA,
            'X' => Rights::EXECUTE,
            'D' => Rights::DELETE,
            'a' => Rights::READ_ATTRIBUTES,
            'w' => Rights::WRITE_ATTRIBUTES,
            _ => return Err(Denial::InvalidParameter(ACCESS_TEXT).into()),
        };
    }
    Ok(rights)
}

/// Reads a share mode.
pub fn share_mode(text: &str) -> Result<ShareMode> {
    Ok(ShareMode::parse(text)
        .ok_or(Denial::InvalidParameter("a share mode is made of R, W and D"))?)
}

pub fn disposition(text: &str) -> Result<Disposition> {
    Ok(match text {
        "OPEN" => Disposition::Open,
        "CREATE" => Disposition::Create,
        "OPEN_IF" => Disposition::OpenIf,
        "OVERWRITE" => Disposition::Overwrite,
        "OVERWRITE_IF" => Disposition::OverwriteIf,
        "SUPERSEDE" => Disposition::Supersede,
        _ => return Err(Denial::InvalidParameter("no such disposition").into()),
    })
}

/// Options, joined by commas.
pub fn options(text: &str) -> Result<Options> {
    let mut options = Options::default();
    for option in text.split(',').filter(|option| !option.is_empty()) {
        match option {
            "DELETE_ON_CLOSE" => options.delete_on_close = true,
            "DIRECTORY_FILE" => options.directory = true,
            "NON_DIRECTORY_FILE" => options.non_directory = true,
            _ => return Err(Denial::InvalidParameter("no such option").into()),
        }
    }
    Ok(options)
}

/// Attributes, joined by commas.
pub fn attributes(text: Option<&str>) -> Result<Attributes> {
    let mut attributes = Attributes::default();
    for name in text.unwrap_or_default().split(',').filter(|name| !name.is_empty()) {
        attributes |= match name {
            "READONLY" => Attributes::READ_ONLY,
            "HIDDEN" => Attributes::HIDDEN,
            "SYSTEM" => Attributes::SYSTEM,
            "NORMAL" => Attributes::default(),
            _ => return Err(Denial::InvalidParameter("no such attribute").into()),
        };
    }
    Ok(attributes)
}

/// The action on the name, as `out` spells it.
pub fn action_name(action: CreateAction) -> &'static str {
    match action {
        CreateAction::Opened => "OPENED",
        CreateAction::Created => "CREATED",
        CreateAction::Overwritten => "OVERWRITTEN",
        CreateAction::Superseded => "SUPERSEDED",
    }
}
