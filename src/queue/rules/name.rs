//! Names of queues: 3 to 63 lower-case letters, digits and single inner hyphens.
//!
//! Decides which names are legal, and which of the service's two codes an illegal one gets.

use super::denial::QueueDenial;

/// The shortest name of a queue, in characters.
pub const NAME_LEAST: usize = 3;
/// The longest name of a queue, in characters.
pub const NAME_MOST: usize = 63;

/// Checks the name of a queue.
pub fn check_queue_name(name: &str) -> Result<(), QueueDenial> {
    let length = name.chars().count();
    if !(NAME_LEAST..=NAME_MOST).contains(&length) {
        return Err(QueueDenial::NameLength { length });
    }
    let legal = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    let why = if !name.bytes().all(legal) {
        "a queue's name has lower-case letters, digits and hyphens"
    } else if name.starts_with('-') || name.ends_with('-') {
        "a queue's name begins and ends with a letter or a digit"
    } else if name.contains("--") {
        "a queue's name has no two hyphens in a row"
    } else {
        return Ok(());
    };
    Err(QueueDenial::NameCharacters { why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legal_names_pass() {
        let longest = "a".repeat(63);
        for name in ["abc", "a-b", "1-2-3", "000", "messages", "metadata", &longest] {
            assert_eq!(check_queue_name(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn q29_a_wrong_length_and_wrong_characters_are_different_refusals() {
        let long = "a".repeat(64);
        for name in ["", "ab", "--", "A", &long] {
            let refused = check_queue_name(name);
            assert_eq!(refused, Err(QueueDenial::NameLength { length: name.len() }), "{name}");
        }
        for name in ["A_b", "a--b", "ab-", "-ab", "aBc", "a.b", "größe", "a/b", "a b", "---"] {
            let refused = check_queue_name(name);
            assert!(matches!(refused, Err(QueueDenial::NameCharacters { .. })), "{name}");
        }
    }
}
