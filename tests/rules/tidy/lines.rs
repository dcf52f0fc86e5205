//! Holds what can be seen line by line: headers, lengths, banned words, `unsafe`.

use super::tree::{File, Violation};

const FILE_LINES_MAX: usize = 600;
const LINE_COLUMNS_MAX: usize = 100;

/// The files of `src/` that may say `unsafe`: ioctls, and a thread with descriptors of its own.
const UNSAFE_FILES: [&str; 3] = ["src/client.rs", "src/file/mount/aside.rs", "src/main.rs"];

/// Put together here, so that this file does not break its own rule.
const BANNED_WORDS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// The file opens with `//!`.
pub fn check_header(file: &File) -> Vec<Violation> {
    if file.text.starts_with("//!") {
        return Vec::new();
    }
    let what = "the file does not open with '//!': say first what it decides and what it leaves";
    vec![file.violation(1, what)]
}

/// No file of `src/` and no line is too long to take in.
pub fn check_lengths(file: &File) -> Vec<Violation> {
    let mut found = Vec::new();
    let count = file.text.lines().count();
    if file.is_below("src") && count > FILE_LINES_MAX {
        let what = format!("{count} lines, more than {FILE_LINES_MAX}: the file wants to be two");
        found.push(file.violation(FILE_LINES_MAX + 1, what));
    }
    for (number, line) in file.lines() {
        let columns = line.chars().count();
        if columns > LINE_COLUMNS_MAX {
            let what = format!("{columns} columns, more than {LINE_COLUMNS_MAX}: break the line");
            found.push(file.violation(number, what));
        }
    }
    found
}

/// The compiler refuses `unsafe`; only its few files may lift that.
pub fn check_unsafe(file: &File) -> Vec<Violation> {
    if UNSAFE_FILES.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let lifts = |line: &str| {
        ["allow", "warn", "expect"].iter().any(|word| line.contains(&format!("{word}(unsafe_code")))
    };
    let lines = file.lines().filter(|(_, line)| lifts(line));
    let what = "unsafe outside its files: use rustix, or add it there";
    lines.map(|(number, _)| file.violation(number, what)).collect()
}

/// Nothing unfinished, no tabs, no blanks at the end of a line.
pub fn check_banned(file: &File) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, line) in file.lines() {
        let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        if let Some(word) = words.find(|word| BANNED_WORDS.contains(word)) {
            let what = format!("{word}: do it now, or say it in an issue");
            found.push(file.violation(number, what));
        }
        if line.contains('\t') {
            found.push(file.violation(number, "a tab: indent by blanks, write \\t in a text"));
        }
        if line.ends_with(char::is_whitespace) {
            found.push(file.violation(number, "blanks at the end of the line: drop them"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(check: fn(&File) -> Vec<Violation>, text: &str) -> Vec<usize> {
        let found = check(&File::sample("src/rules/id.rs", text));
        found.iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn a_file_without_a_header_is_found() {
        assert_eq!(lines(check_header, "// Not a header.\n"), [1]);
        assert_eq!(lines(check_header, "\n//! Too late.\n"), [1]);
        assert_eq!(lines(check_header, "//! What it decides.\n"), [0; 0]);
    }

    #[test]
    fn lengths_are_held_at_their_bound_and_past_it() {
        let wide = |columns| "ä".repeat(columns);
        assert_eq!(lines(check_lengths, &wide(100)), [0; 0]);
        assert_eq!(lines(check_lengths, &format!("\n{}", wide(101))), [2]);
        assert_eq!(lines(check_lengths, &"x\n".repeat(600)), [0; 0]);
        assert_eq!(lines(check_lengths, &"x\n".repeat(601)), [601]);
        let test = File::sample("tests/rules/tidy/mod.rs", &"x\n".repeat(601));
        assert_eq!(check_lengths(&test), []);
    }

    #[test]
    fn a_file_that_lifts_the_ban_on_unsafe_is_found() {
        let text = concat!("\n#[allow", "(unsafe_code, reason = \"no\")]");
        assert_eq!(lines(check_unsafe, text), [2]);
        assert_eq!(lines(check_unsafe, "// unsafe\nlet unsafe_code = \"unsafe\";"), [0; 0]);
        for file in UNSAFE_FILES {
            assert_eq!(check_unsafe(&File::sample(file, text)), []);
        }
    }

    #[test]
    fn unfinished_code_and_stray_blanks_are_found() {
        for word in BANNED_WORDS {
            assert_eq!(lines(check_banned, &format!("\n// {word}: later")), [2]);
            assert_eq!(lines(check_banned, &format!("// {word}S and A{word}")), [0; 0]);
        }
        assert_eq!(lines(check_banned, "a;\n\tb;\nc; \nd;\r\n"), [2, 3, 4]);
    }
}
