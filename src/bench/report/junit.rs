//! The report as a `JUnit` document, which CI systems show: a test case for each finding, and one
//! for the report itself. Findings below the level that fails pass, with their text as output.

use std::fmt::Write as _;

use super::finding::{Evidence, Finding, Level};
use super::sections::Report;

const CLASS: &str = "latchfs.report";
const INCOMPLETE: &str =
    "<failure message=\"the report is incomplete: not everything fitted in memory\"/>";

/// The document. Findings of `fails` and above are failures; what was never tested is left out.
pub fn document(report: &Report, fails: Level) -> String {
    let found: Vec<_> =
        report.findings.iter().filter(|finding| finding.level > Level::Info).collect();
    let failures = found.iter().filter(|finding| finding.level >= fails).count();
    let failures = failures + usize::from(report.incomplete);
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<testsuites>\n<testsuite name=\"{CLASS}\" \
         tests=\"{}\" failures=\"{failures}\" errors=\"0\" skipped=\"0\" time=\"0\">\n",
        found.len() + 1
    );
    let _ = writeln!(
        text,
        "<testcase classname=\"{CLASS}\" name=\"requests looked at: {}\" time=\"0\">{}</testcase>",
        report.requests,
        if report.incomplete { INCOMPLETE } else { "" }
    );
    for finding in found {
        text += &case(finding, finding.level >= fails);
    }
    text + "</testsuite>\n</testsuites>\n"
}

fn case(finding: &Finding, fails: bool) -> String {
    let Finding { rule, level, object, count, message, advice, mark, evidence, .. } = finding;
    let rule = rule.name();
    let mark = mark.as_ref().map(|mark| format!(" in {mark}")).unwrap_or_default();
    let name = escaped(&format!("{rule} of {object}{mark}"));
    let rows: Vec<_> = evidence.iter().map(line).collect();
    let level = level.name();
    let body = format!("{level}, {count} times\n{message}.\n{}\n{advice}\n", rows.join("\n"));
    let (body, message) = (escaped(&body), escaped(message));
    let inside = if fails {
        format!("<failure type=\"{rule}\" message=\"{message}\">{body}</failure>")
    } else {
        format!("<system-out>{body}</system-out>")
    };
    format!("<testcase classname=\"{CLASS}\" name=\"{name}\" time=\"0\">{inside}</testcase>\n")
}

fn line(row: &Evidence) -> String {
    let etag = row.etag.as_deref().unwrap_or("-");
    format!("{} {} {} {} {} {etag}", row.seq, row.time, row.client, row.operation, row.object)
}

/// The text as XML has it, in an attribute too. Characters that XML lacks are question marks.
fn escaped(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => made += "&amp;",
            '<' => made += "&lt;",
            '>' => made += "&gt;",
            '"' => made += "&quot;",
            '\n' => made.push('\n'),
            _ if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => made.push('?'),
            _ => made.push(letter),
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::super::tests::Script;
    use super::*;

    #[test]
    fn what_fails_is_a_failure_and_the_rest_passes_with_its_text() {
        let mut script = Script::run("mark test_a; S put <b>; A get <b>; B put <b>; A put <b>;");
        script.go_on("A put d empty; B get d; A put d; A put e new");
        let report = script.engine.report(None, Level::Info).unwrap();
        let text = document(&report, Level::Error);
        assert!(text.contains("tests=\"3\" failures=\"1\" errors=\"0\""), "{text}");
        assert!(text.contains("name=\"lost-update of blob:c/&lt;b&gt; in test_a\""), "{text}");
        assert!(text.contains("<failure type=\"lost-update\" message=\"A read it, B"), "{text}");
        assert!(text.contains("<system-out>warn, 1 times\n"), "{text}");
        assert!(text.contains("3 1970-01-01T00:00:00.0000000Z B Put Blob blob:c/&lt;b&gt; v2"));
        assert!(!text.contains("never"), "what was never tested is no test: {text}");
        let incomplete = Report { incomplete: true, ..report.clone() };
        assert!(document(&incomplete, Level::Error).contains("failures=\"2\""));
        let cured = |incomplete| Report { incomplete, findings: Vec::new(), ..report.clone() };
        assert!(cured(true).fails(Level::Error) && !cured(false).fails(Level::Info));
        let strict = document(&report, Level::Warn);
        assert!(strict.contains("failures=\"2\"") && !strict.contains("<system-out>"), "{strict}");
        assert_eq!(escaped("\u{1b}[2J\u{0}\u{fffe}ä"), "?[2J??ä");
    }
}
