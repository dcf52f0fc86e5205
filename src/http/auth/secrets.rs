//! Secrets of a request in what is kept or shown of it: signatures, tokens, customers' keys.
//!
//! Decides which parts of a URL and of a text to sign are secrets. A secret of one request must not
//! reach those who may read a copy, an answer or the stream of events.

use super::request::decoded;

/// Headers whose value is a secret.
const HEADERS: [&str; 3] =
    ["x-ms-copy-source-authorization", "x-ms-encryption-key", "x-ms-source-encryption-key"];

/// The parameter whose value is a secret.
const SIGNATURE: &str = "sig";

/// Stands for a secret.
const MASK: &str = "***";

/// A URL without its signature. Names are decoded before they are compared, as authorisation does.
pub fn without_signature(url: &str) -> String {
    let Some((place, query)) = url.split_once('?') else { return url.to_owned() };
    let is_signature = |pair: &&str| {
        pair.split_once('=').is_some_and(|(name, _)| decoded(name).eq_ignore_ascii_case(SIGNATURE))
    };
    let kept: Vec<_> = query.split('&').filter(|pair| !is_signature(pair)).collect();
    if kept.is_empty() { place.to_owned() } else { format!("{place}?{}", kept.join("&")) }
}

/// A text to sign without secrets. Its lines are `NAME:VALUE` for headers and parameters.
pub(super) fn masked(text: &str) -> String {
    let lines = text.split('\n').map(|line| match line.split_once(':') {
        Some((name, _)) if name == SIGNATURE || HEADERS.contains(&name) => {
            format!("{name}:{MASK}")
        }
        Some((name, url)) if url.contains("://") => format!("{name}:{}", without_signature(url)),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_kept_without_its_signature_and_otherwise_as_it_was_named() {
        let kept = [
            ("http://h/a/s/f", "http://h/a/s/f"),
            ("http://h/a/s/f?sig=x%3D", "http://h/a/s/f"),
            ("http://h/a/s/f?sv=1&SIG=x&sr=f", "http://h/a/s/f?sv=1&sr=f"),
            ("http://h/a/s/f?sv=1&s%69g=x&%53iG=y", "http://h/a/s/f?sv=1"),
            ("http://h/a/s/f?sharesnapshot=t&sigma=1", "http://h/a/s/f?sharesnapshot=t&sigma=1"),
        ];
        for (url, expected) in kept {
            assert_eq!(without_signature(url), expected);
        }
    }

    #[test]
    fn a_text_to_sign_is_shown_without_secrets() {
        let text = "PUT\n\n\nx-ms-copy-source:https://h/c/b?sv=1&s%69g=SECRET\n\
                    x-ms-copy-source-authorization:Bearer SECRET\nx-ms-encryption-key:SECRET\n\
                    x-ms-source-encryption-key:SECRET\nx-ms-meta-a:1\n/acc/acc/c/b\nsig:SECRET\n\
                    sv:1";
        let shown = "PUT\n\n\nx-ms-copy-source:https://h/c/b?sv=1\n\
                     x-ms-copy-source-authorization:***\nx-ms-encryption-key:***\n\
                     x-ms-source-encryption-key:***\nx-ms-meta-a:1\n/acc/acc/c/b\nsig:***\nsv:1";
        assert_eq!(masked(text), shown);
    }
}
