//! Files of shares as commands print them, beside the addresses of objects
//! ([`crate::rules::address`]).

use crate::file::rules::name::{is_share_name, split_account};
pub use crate::rules::address::ObjectAddress;

/// A file of a share as commands print it: `[ACCOUNT/]SHARE:/PATH`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrintedFile {
    /// The account; the one that is meant anyway without it.
    pub account: Option<String>,
    pub share: String,
    /// The path within it, without a slash before it.
    pub path: String,
}

impl PrintedFile {
    /// The file that the text is; `None` if it is something else. `file:SHARE/PATH` is read too.
    pub fn read(text: &str) -> Option<Self> {
        if let Some(ObjectAddress::File { share, path }) = ObjectAddress::read(text) {
            return Some(Self { account: None, share, path });
        }
        let (name, path) = text.split_once(":/")?;
        let (account, share) = split_account(name);
        let letters = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let url = path.starts_with('/');
        let known = !url && is_share_name(share) && account.is_none_or(letters);
        let account = account.map(str::to_owned);
        known.then(|| Self { account, share: share.to_owned(), path: path.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_it_is_printed() {
        let read = |text: &str| {
            PrintedFile::read(text).map(|printed| (printed.account, printed.share, printed.path))
        };
        assert_eq!(read("docs:/a/b").unwrap(), (None, "docs".into(), "a/b".into()));
        assert_eq!(read("file:docs/a/b").unwrap(), (None, "docs".into(), "a/b".into()));
        let second = (Some("second".into()), "docs".into(), String::new());
        assert_eq!(read("second/docs:/").unwrap(), second);
        for other in ["docs", "a/b/docs:/c", "/mnt/docs:/c", "DOCS:/c", "http://x", "./docs:/a"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
