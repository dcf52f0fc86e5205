//! Continuation tokens: how a header names the next key of a query.
//!
//! Decides the form `1!N!B`: B is the base64 of the key with `=` written `-`, N is the length of
//! B. A token names the next entity; it carries no filter.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::table::rules::denial::TableDenial;

/// Bytes of the longest token that is read: a key of 512 units has at most 1,536 bytes.
const TOKEN_MAX: usize = 4_096;

/// The token for a key. It is never empty, also for an empty key.
pub fn write(key: &str) -> String {
    let body = STANDARD.encode(key).replace('=', "-");
    format!("1!{}!{body}", body.len())
}

/// The key that a token names; none for an empty one.
pub fn read(token: &str) -> Result<Option<String>, TableDenial> {
    if token.is_empty() {
        return Ok(None);
    }
    decode(token).map(Some).ok_or_else(|| {
        let shown: String = token.chars().take(64).collect();
        TableDenial::invalid(format!("'{}' is not a continuation token", shown.escape_debug()))
    })
}

fn decode(token: &str) -> Option<String> {
    if token.len() > TOKEN_MAX {
        return None;
    }
    let (length, body) = token.strip_prefix("1!")?.split_once('!')?;
    let length: usize = length.parse().ok()?;
    if length != body.len() || body.contains('=') {
        return None;
    }
    String::from_utf8(STANDARD.decode(body.replace('-', "=")).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_token_is_base64_with_its_length_t48() {
        assert_eq!(write("pk1"), "1!4!cGsx");
        assert_eq!(write("p"), "1!4!cA--");
        assert_eq!(write(""), "1!0!");
        assert_eq!(read("1!4!cA--"), Ok(Some("p".into())));
        assert_eq!(read("1!0!"), Ok(Some(String::new())));
        assert_eq!(read(""), Ok(None));
    }

    #[test]
    fn a_broken_token_is_refused_t50() {
        for bad in [
            "x",
            "1!",
            "1!4",
            "2!4!cGsx",
            "1!5!cGsx",
            "1!4!cGs=",
            "1!4!c*sx",
            "1!4!/////",
            "1!4!////",
            "1!-4!cGsx",
            "1!4!cGsx!",
            &format!("1!8000!{}", "A".repeat(8000)),
        ] {
            assert!(matches!(read(bad), Err(TableDenial::InvalidInput(_))), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn every_key_survives_its_token(key in "\\PC{0,64}") {
            prop_assert_eq!(read(&write(&key)), Ok(Some(key)));
        }

        #[test]
        fn no_token_panics(token in "[1!A-Za-z0-9=-]{0,40}") {
            let _ = read(&token);
        }
    }
}
