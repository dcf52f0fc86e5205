//! Whether what a terminal shows is what a page shows.
//!
//! Decides what may differ from run to run: handles, process ids, ports, times, request ids, how
//! long something is open, and the blanks that line a table up. A line of three dots on the page
//! stands for any lines.

/// Stands for any number of lines.
const ANY: &str = "...";

/// A number of this many digits or more is never the same twice.
const DIGITS_MIN: usize = 5;

/// What numbers of any length follow that differ from run to run.
const BEFORE: [&str; 3] = ["pid ", "127.0.0.1:", "for "];

/// True if `seen` is what the page shows.
pub fn fits(shown: &str, seen: &str) -> bool {
    let (shown, seen) = (lines(shown), lines(seen));
    let (shown, seen): (Vec<_>, Vec<_>) =
        (shown.iter().map(String::as_str).collect(), seen.iter().map(String::as_str).collect());
    fits_lines(&shown, &seen)
}

fn fits_lines(shown: &[&str], seen: &[&str]) -> bool {
    match shown.split_first() {
        None => seen.is_empty(),
        Some((&ANY, rest)) => (0..=seen.len()).any(|from| fits_lines(rest, &seen[from..])),
        Some((line, rest)) => seen.first() == Some(line) && fits_lines(rest, &seen[1..]),
    }
}

fn lines(text: &str) -> Vec<String> {
    text.trim_end().lines().map(masked).collect()
}

/// The line without what differs from run to run.
fn masked(line: &str) -> String {
    let words: Vec<_> = line.split_whitespace().collect();
    let line = words.join(" ");
    // A line of `latchfs handles`.
    let all = words.first().is_some_and(|word| word.len() > DIGITS_MIN && is_number(word));
    let mut text = String::new();
    let mut rest = line.as_str();
    while let Some(at) = rest.find(|letter: char| letter.is_ascii_digit()) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let (time, number) = (stamp(rest), digits(rest));
        let follows = BEFORE.iter().any(|word| text.ends_with(word));
        let length = if time > 0 { time } else { number };
        let volatile = all || time > 0 || number >= DIGITS_MIN || follows;
        text.push_str(if volatile { "#" } else { &rest[..length] });
        rest = &rest[length..];
    }
    without_ids(&(text + rest))
}

fn is_number(word: &str) -> bool {
    digits(word) == word.len()
}

fn digits(text: &str) -> usize {
    text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len()
}

/// How long the time is that the text starts with, as in `2026-11-16T10:00:00.0000000Z`.
fn stamp(text: &str) -> usize {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && !"-T:.Z".contains(letter));
    let time = &text[..end.unwrap_or(text.len())];
    let length = time.find('Z').map_or(0, |at| at + 1);
    if length >= 20 && time[..length].contains('T') { length } else { 0 }
}

/// Request ids are nobody's to foresee.
fn without_ids(line: &str) -> String {
    match line.split_once("RequestId:") {
        Some((before, _)) => format!("{before}RequestId:@"),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_does_not_count() {
        assert!(fits("cat (pid 812), handle 1099511627778", "cat (pid 41), handle 1099511627790"));
        assert!(fits("at 2026-11-16T10:00:00.0000000Z: no", "at 2026-12-01T01:02:03.4567890Z: no"));
        assert!(fits("http://127.0.0.1:10004/a", "http://127.0.0.1:43121/a\n"));
        assert!(fits("RequestId:1f-2", "RequestId:ab-cd-3"));
        let table = "1099511627778  share:/a  r  none  cat  812  3s";
        assert!(fits(table, "1099511627779  share:/a   r  none  cat  90311  0s"));
    }

    #[test]
    fn everything_else_counts() {
        assert!(!fits("409 SharingViolation", "404 SharingViolation"));
        assert!(!fits("closed 1", "closed 2"));
        assert!(!fits("a", "a\nb") && !fits("a\nb", "a"));
        assert!(!fits("access r", "access rw"));
        assert!(!fits("1099511627778 share:/a", "1099511627778 share:/b"));
    }

    #[test]
    fn three_dots_stand_for_any_lines() {
        assert!(fits("...", "a\nb") && fits("...", ""));
        assert!(fits("a\n...\nd", "a\nb\nc\nd"));
        assert!(!fits("a\n...\nd", "a\nb\nc"));
        assert!(!fits("a ...", "a b"));
    }
}
