//! The pattern that objects with names of one shape have in common.

/// The shortest run of hexadecimal digits that stands for an ID, if a decimal digit is in it.
const HEX_MIN: usize = 8;
/// The lengths of the groups of a GUID.
const GUID: [usize; 5] = [8, 4, 4, 4, 12];

/// The object with `*` for each run of digits and each ID: `blob:orders/17.json` becomes
/// `blob:orders/*.json`.
pub fn shape(object: &str) -> String {
    let mut made = String::with_capacity(object.len());
    let mut rest = object;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let taken = if let Some(length) = guid(rest) {
            push_star(&mut made);
            length
        } else if end == 0 {
            made.push(first);
            first.len_utf8()
        } else {
            push_word(&mut made, &rest[..end]);
            end
        };
        rest = &rest[taken..];
    }
    made
}

/// The length of the GUID that a text begins with.
fn guid(text: &str) -> Option<usize> {
    let mut at = 0;
    for (number, length) in GUID.into_iter().enumerate() {
        if number > 0 {
            (text.as_bytes().get(at) == Some(&b'-')).then_some(())?;
            at += 1;
        }
        let group = text.as_bytes().get(at..at + length)?;
        group.iter().all(u8::is_ascii_hexdigit).then_some(())?;
        at += length;
    }
    Some(at)
}

fn push_word(made: &mut String, word: &str) {
    let is_hex = word.len() >= HEX_MIN && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex && word.bytes().any(|byte| byte.is_ascii_digit()) {
        return push_star(made);
    }
    for c in word.chars() {
        if c.is_ascii_digit() { push_star(made) } else { made.push(c) }
    }
}

fn push_star(made: &mut String) {
    if !made.ends_with('*') {
        made.push('*');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_ids_are_stars_and_the_rest_stays() {
        for (object, expected) in [
            ("blob:docs/a.txt", "blob:docs/a.txt"),
            ("blob:orders/17.json", "blob:orders/*.json"),
            ("blob:orders/2026/01/x-17-5.json", "blob:orders/*/*/x-*-*.json"),
            ("blob:test-6fa459ea-ee8a-3ca4-894e-db77e160355e/a", "blob:test-*/a"),
            ("blob:c/6fa459ea-ee8a-3ca4-894e-db77e160355", "blob:c/*-ee*a-*ca*-*e-*"),
            ("blob:c/6fa459eaee8a.bin", "blob:c/*.bin"),
            ("table:Rows/it's/r7", "table:Rows/it's/r*"),
            ("blob:c/defaced", "blob:c/defaced"),
            ("blob:ä/ö1", "blob:ä/ö*"),
            ("", ""),
        ] {
            assert_eq!(shape(object), expected, "{object}");
        }
    }
}
