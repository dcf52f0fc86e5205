//! Shared access signatures: the text that is signed, for whoever makes or checks one.
//!
//! Decides the two texts, of the account SAS and of the service SAS for files. [`check`] holds a
//! request against them, [`make`] writes new ones.
//!
//! Source: FILEREST 3.2.

mod check;
mod make;

pub use check::Policies;
pub(super) use check::verify;
pub use make::{AccountSas, SAS_VERSION, ServiceSas};

use super::request::{Query, Target};

/// The letter of the file service in `ss`.
const FILE_SERVICE: char = 'f';

/// From this `sv` on an account SAS signs its encryption scope.
const SCOPE_SINCE: &str = "2020-12-06";

/// The parameters of a service SAS that replace response headers.
const OVERRIDES: [&str; 5] = ["rscc", "rscd", "rsce", "rscl", "rsct"];

/// What an account SAS signs: each field with a line feed behind it.
fn account_text(account: &str, query: &Query) -> String {
    let mut text = format!("{account}\n");
    for name in ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"] {
        push_line(&mut text, query.get(name));
    }
    if query.get("sv").is_some_and(|version| version >= SCOPE_SINCE) {
        push_line(&mut text, query.get("ses"));
    }
    text
}

/// What a service SAS signs; no line feed at its end. `resource` names a share or a file.
fn service_text(resource: &str, query: &Query) -> String {
    let mut text = String::new();
    for name in ["sp", "st", "se"] {
        push_line(&mut text, query.get(name));
    }
    push_line(&mut text, Some(resource));
    for name in ["si", "sip", "spr", "sv"].into_iter().chain(OVERRIDES) {
        push_line(&mut text, query.get(name));
    }
    text.pop();
    text
}

/// The share, with the account once, in path style too.
fn share_resource(account: &str, share: &str) -> String {
    format!("/file/{account}/{share}")
}

/// The file, as the client spelled it.
fn file_resource(target: &Target<'_>, share: &str) -> String {
    format!("{}/{}", share_resource(target.account, share), target.path)
}

fn push_line(text: &mut String, value: Option<&str>) {
    text.push_str(value.unwrap_or_default());
    text.push('\n');
}
