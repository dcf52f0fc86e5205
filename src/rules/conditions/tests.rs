//! The tables of conditions, written out as data: each condition alone, each pair, a missing
//! object, and the answers of copies.

use super::copy::{CopyKind, CopyRefusal, source_failure};
use super::{Condition, ConditionFailure, ConditionForm, Conditions, EtagList, Subject};
use crate::rules::Timestamp;

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
fn try_forms(table: &str, exists: bool) -> usize {
    let mut cells = 0;
    for line in table.trim().lines().skip(1) {
        let fields: Vec<_> = line.split('|').map(str::trim).collect();
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

const ON_AN_OBJECT: &str = "
conditions              | read     | create   | update   | update existing
-                       | ok       | ok       | ok       | ok
M=same                  | ok       | ok       | ok       | ok
M=other                 | 412 M    | 412 M    | 412 M    | 412 M
M=*                     | ok       | ok       | ok       | ok
M=two                   | ok       | 400 many | 400 many | 400 many
M=two others            | 412 M    | 400 many | 400 many | 400 many
N=same                  | 304 N    | 412 N    | 412 N    | 412 N
N=other                 | ok       | ok       | ok       | ok
N=*                     | 400 star | 409      | ok       | ok
N=* & L=yes             | 400 star | ok       | ok       | ok
N=same & L=yes          | 304 N    | 412 N    | 412 N    | 412 N
N=two                   | 304 N    | 400 many | 400 many | 400 many
N=two others            | ok       | 400 many | 400 many | 400 many
I=past                  | ok       | ok       | ok       | ok
I=same                  | 304 I    | 412 I    | 412 I    | 412 I
I=future                | 304 I    | 412 I    | 412 I    | 412 I
U=past                  | 412 U    | 412 U    | 412 U    | 412 U
U=same                  | ok       | ok       | ok       | ok
U=future                | ok       | ok       | ok       | ok
T=no                    | 412 T    | 412 T    | 412 T    | 412 T
M=same & T=no           | 412 T    | 412 T    | 412 T    | 412 T
M=other & T=no          | 412 M    | 412 M    | 412 M    | 412 M
N=* & L=yes & T=no      | 400 star | 412 T    | 412 T    | 412 T
M=same & U=past         | 412 U    | ok       | ok       | ok
M=same & U=same         | ok       | ok       | ok       | ok
M=other & U=same        | 412 M    | 412 M    | 412 M    | 412 M
M=other & U=past        | 412 M    | 412 M    | 412 M    | 412 M
N=other & I=future      | ok       | ok       | ok       | ok
N=other & I=past        | ok       | ok       | ok       | ok
N=same & I=past         | ok       | 412 N    | 412 N    | 412 N
N=same & I=same         | 304 N    | 412 N    | 412 N    | 412 N
N=* & I=future          | 400 star | 409      | ok       | ok
M=same & N=other        | ok       | 400 many | 400 many | 400 many
M=same & N=same         | 304 N    | 400 many | 400 many | 400 many
M=same & I=past         | ok       | 400 many | 400 many | 400 many
M=same & I=future       | 304 I    | 400 many | 400 many | 400 many
N=other & U=same        | ok       | 400 many | 400 many | 400 many
N=other & U=past        | 412 U    | 400 many | 400 many | 400 many
I=past & U=same         | ok       | 400 many | 400 many | 400 many
I=past & U=past         | 412 U    | 400 many | 400 many | 400 many
I=same & U=same         | 304 I    | 400 many | 400 many | 400 many
M=other & N=same & I=same & U=past  | 412 M | 400 many | 400 many | 400 many
M=same & N=same & I=past & U=same   | ok    | 400 many | 400 many | 400 many
M=same & N=same & I=same & U=same   | 304 N | 400 many | 400 many | 400 many
M=same & N=other & I=same & U=past  | 412 U | 400 many | 400 many | 400 many
";

#[test]
fn conditions_on_an_object_follow_the_table() {
    assert_eq!(try_forms(ON_AN_OBJECT, true), 45 * 4);
}

const ON_NOTHING: &str = "
conditions      | read     | create   | update   | update existing
-               | 404      | ok       | 404      | 404
M=same          | 404      | 412 M    | 412 M    | 404
M=*             | 404      | 412 M    | 412 M    | 404
M=same & U=past | 404      | 412 M    | 412 M    | 404
M=two           | 404      | 400 many | 400 many | 400 many
N=same          | 404      | ok       | 404      | 404
N=*             | 400 star | ok       | 404      | 404
I=future        | 404      | ok       | 404      | 404
U=past          | 404      | ok       | 404      | 404
T=no            | 404      | ok       | 404      | 404
I=past & U=same | 404      | 400 many | 400 many | 400 many
";

#[test]
fn conditions_on_a_missing_object_follow_the_table() {
    assert_eq!(try_forms(ON_NOTHING, false), 11 * 4);
}

#[test]
fn a_combination_is_refused_before_the_object_is_known() {
    for line in ON_AN_OBJECT.trim().lines().skip(1) {
        let fields: Vec<_> = line.split('|').map(str::trim).collect();
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

/// Columns: Copy Blob, Copy Blob From URL, Put Blob From URL, the parts From URL.
const COPIES: &str = "
failed   | copy       | copy from url | put from url | part
source M | 412 source | 412 verify    | 412 source   | 412 verify
source N | 412 source | 304 verify    | 412 source   | 304 verify
source I | 412 source | 304 verify    | 304 verify   | 304 verify
source U | 412 source | 412 verify    | 412 verify   | 412 verify
source T | 412        | 412           | 412          | 412
target M | 412 target | 412           | 412 target   | 412
target N | 412 target | 412           | 412 target   | 412
target I | 412 target | 412           | 412          | 412
target U | 412 target | 412           | 412          | 412
target T | 412        | 412           | 412          | 412
";

#[test]
fn refusals_of_copies_follow_the_table() {
    let kinds = [
        CopyKind::CopyBlob,
        CopyKind::CopyBlobFromUrl,
        CopyKind::PutBlobFromUrl,
        CopyKind::PartFromUrl,
    ];
    let mut cells = 0;
    for line in COPIES.trim().lines().skip(1) {
        let fields: Vec<_> = line.split('|').map(str::trim).collect();
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
