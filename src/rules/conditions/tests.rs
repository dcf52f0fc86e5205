//! The tables of conditions in `tables.txt`: each condition alone, each pair, a missing object, and
//! the answers of copies. The tests of the faces try the same tables through HTTP.

use super::copy::{CopyKind, CopyRefusal, source_failure};
use super::{Condition, ConditionFailure, ConditionForm, Conditions, EtagList, Subject};
use crate::rules::Timestamp;

/// The rows of the table that stands below a heading.
fn rows(heading: &str) -> impl Iterator<Item = Vec<&'static str>> {
    let all = include_str!("tables.txt");
    let below = all.split("\n## ").find_map(|part| part.strip_prefix(heading)).expect("the table");
    let lines = below.lines().filter(|line| line.contains(" | ")).skip(1);
    lines.map(|line| line.split('|').map(str::trim).collect())
}

/// The object's version and the second of its last change.
const ETAG: &str = "0x8D1";
const CHANGED: i64 = 1_700_000_000;

fn second(seconds: i64) -> Timestamp {
    Timestamp(seconds * 1_000_000_000)
}

/// Changed half a second after [`CHANGED`], which no header can say.
fn object() -> Subject<'static> {
    let last_modified = Timestamp(CHANGED * 1_000_000_000 + 500_000_000);
    Subject { etag: ETAG, last_modified, tags_hold: true, lease_held: false }
}

/// Reads `M=same N=* U=past T=no L=yes`: M and N are `same`, `other`, `*` or `two`; I and U are
/// `past`, `same` or `future`; T=no fails the tags; L=yes holds the lease.
fn request(words: &str) -> (Conditions, Subject<'static>) {
    let mut conditions = Conditions::default();
    let mut object = object();
    let etags = |word: &str| {
        Some(EtagList::parse(match word {
            "same" => "\"0x8D1\"",
            "other" => "\"0x8D2\"",
            "*" => "*",
            "two" => "\"0x8D2\", \"0x8D1\"",
            "two others" => "\"0x8D2\", \"0x8D3\"",
            other => panic!("no ETag {other}"),
        }))
    };
    let date = |word: &str| {
        Some(second(match word {
            "past" => CHANGED - 1,
            "same" => CHANGED,
            "future" => CHANGED + 1,
            other => panic!("no date {other}"),
        }))
    };
    for word in words.split('&').map(str::trim).filter(|word| *word != "-") {
        match word.split_once('=').unwrap() {
            ("M", value) => conditions.if_match = etags(value),
            ("N", value) => conditions.if_none_match = etags(value),
            ("I", value) => conditions.if_modified_since = date(value),
            ("U", value) => conditions.if_unmodified_since = date(value),
            ("T", "no") => object.tags_hold = false,
            ("L", "yes") => object.lease_held = true,
            other => panic!("no condition {other:?}"),
        }
    }
    (conditions, object)
}

fn show(answer: Result<(), ConditionFailure>) -> String {
    match answer {
        Ok(()) => "ok".to_owned(),
        Err(ConditionFailure::TooMany) => "400 many".to_owned(),
        Err(ConditionFailure::Unsatisfiable) => "400 star".to_owned(),
        Err(ConditionFailure::NotFound) => "404".to_owned(),
        Err(ConditionFailure::AlreadyExists) => "409".to_owned(),
        Err(ConditionFailure::NotModified(condition)) => format!("304 {}", letter(condition)),
        Err(ConditionFailure::NotMet(condition)) => format!("412 {}", letter(condition)),
    }
}

fn letter(condition: Condition) -> char {
    match condition {
        Condition::Match => 'M',
        Condition::NoneMatch => 'N',
        Condition::ModifiedSince => 'I',
        Condition::UnmodifiedSince => 'U',
        Condition::Tags => 'T',
    }
}

/// Tries every cell of a table whose columns are the four forms; returns how many there were.
fn try_forms(heading: &str, exists: bool) -> usize {
    let mut cells = 0;
    for fields in rows(heading) {
        let [row, answers @ ..] = &fields[..] else { panic!("an empty row") };
        let forms = [
            ConditionForm::Read,
            ConditionForm::Create,
            ConditionForm::Update,
            ConditionForm::UpdateExisting,
        ];
        assert_eq!(answers.len(), forms.len(), "{row}");
        let (conditions, object) = request(row);
        for (form, expected) in forms.into_iter().zip(answers) {
            let answer = show(conditions.evaluate(form, exists.then_some(object)));
            assert_eq!(answer, *expected, "{row} by {form:?}");
            cells += 1;
        }
    }
    cells
}

#[test]
fn conditions_on_an_object_follow_the_table() {
    assert_eq!(try_forms("on an object", true), 45 * 4);
}

#[test]
fn conditions_on_a_missing_object_follow_the_table() {
    assert_eq!(try_forms("on nothing", false), 11 * 4);
}

#[test]
fn a_combination_is_refused_before_the_object_is_known() {
    for fields in rows("on an object") {
        let (conditions, _) = request(fields[0]);
        for (form, expected) in
            [(ConditionForm::Read, fields[1]), (ConditionForm::Create, fields[2])]
        {
            let refused = conditions.check_combination(form).is_err();
            assert_eq!(refused, expected.starts_with("400"), "{} by {form:?}", fields[0]);
        }
    }
}

#[test]
fn only_a_request_without_any_of_the_four_is_empty() {
    assert!(Conditions::default().is_empty());
    for words in ["M=*", "N=*", "I=past", "U=past"] {
        assert!(!request(words).0.is_empty(), "{words}");
    }
}

#[test]
fn refusals_of_copies_follow_the_table() {
    let kinds = [
        CopyKind::CopyBlob,
        CopyKind::CopyBlobFromUrl,
        CopyKind::PutBlobFromUrl,
        CopyKind::PartFromUrl,
    ];
    let mut cells = 0;
    for fields in rows("refusals of copies") {
        let (side, name) = fields[0].split_once(' ').unwrap();
        let failed = [
            Condition::Match,
            Condition::NoneMatch,
            Condition::ModifiedSince,
            Condition::UnmodifiedSince,
            Condition::Tags,
        ]
        .into_iter()
        .find(|condition| name == letter(*condition).to_string())
        .unwrap();
        for (kind, expected) in kinds.into_iter().zip(&fields[1..]) {
            let refusal = match side {
                "source" => kind.source_refusal(failed),
                _ => kind.target_refusal(failed),
            };
            let shown = match refusal {
                CopyRefusal::ConditionNotMet => "412",
                CopyRefusal::SourceConditionNotMet => "412 source",
                CopyRefusal::TargetConditionNotMet => "412 target",
                CopyRefusal::SourceNotVerified => "412 verify",
                CopyRefusal::SourceNotModified => "304 verify",
            };
            assert_eq!(shown, *expected, "{} of {kind:?}", fields[0]);
            cells += 1;
        }
    }
    assert_eq!(cells, 10 * 4);
}

#[test]
fn the_first_source_condition_that_fails_is_named() {
    for (words, failed) in [
        ("-", None),
        ("M=same", None),
        ("M=*", None),
        ("M=other", Some('M')),
        ("N=same", Some('N')),
        ("N=*", Some('N')),
        ("N=other", None),
        ("I=past", None),
        ("I=same", Some('I')),
        ("U=same", None),
        ("U=past", Some('U')),
        ("T=no", Some('T')),
        ("M=same & U=past", None),
        ("N=other & I=same", None),
        ("M=same & I=same", Some('I')),
        ("N=other & U=past", Some('U')),
        ("I=same & U=past", Some('I')),
        ("M=other & T=no", Some('M')),
    ] {
        let (conditions, source) = request(words);
        assert_eq!(source_failure(&conditions, &source).map(letter), failed, "{words}");
    }
}
