//! `$filter` by rule, and by random filters against a slow reading of the same rules.

use proptest::prelude::*;

use super::*;
use crate::table::rules::datetime::Ticks;
use crate::table::rules::entity::Properties;
use crate::table::rules::key::EntityKey;

struct Row {
    key: EntityKey,
    properties: Properties,
}

impl EntityFields for Row {
    fn partition(&self) -> &str {
        &self.key.partition
    }

    fn row(&self) -> &str {
        &self.key.row
    }

    fn timestamp(&self) -> Ticks {
        Ticks::parse("2026-01-05T10:00:00Z").unwrap()
    }

    fn properties(&self) -> impl Iterator<Item = (&str, ValueRef<'_>)> {
        self.properties.iter()
    }
}

fn row(pairs: &[(&str, Value)]) -> Row {
    let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    Row { key: EntityKey::new("p", "r"), properties: Properties::new(pairs) }
}

fn sample() -> Row {
    row(&[
        ("s", Value::String("it's".into())),
        ("b", Value::Boolean(true)),
        ("i", Value::Int32(3)),
        ("l", Value::Int64((1 << 53) + 1)),
        ("d", Value::Double(2.5)),
        ("t", Value::DateTime(Ticks::parse("2020-01-01T00:00:00.5Z").unwrap())),
        ("g", Value::Guid("c0ffee00-1234-5678-9abc-def012345678".parse().unwrap())),
        ("x", Value::Binary(vec![0x0a, 0xff])),
        ("n", Value::Double(f64::NAN)),
    ])
}

fn matches(text: &str) -> bool {
    Filter::parse(text).unwrap_or_else(|denial| panic!("{text}: {denial}")).matches(&sample())
}

#[test]
fn every_operator_works_on_every_type_t52_t56() {
    let cases = [
        ("s", "'it''s'", "'it'", "'jt'"),
        ("b", "true", "false", "true"),
        ("b", "True", "FALSE", "True"),
        ("i", "3", "2", "4"),
        ("l", "9007199254740993L", "9007199254740992", "9007199254740994L"),
        ("d", "2.5", "-1e3", "2.6d"),
        ("t", "datetime'2020-01-01T00:00:00.5'", "datetime'2019-12-31'", "datetime'2020-01-02'"),
        (
            "g",
            "guid'C0FFEE00-1234-5678-9abc-def012345678'",
            "guid'00000000-0000-0000-0000-000000000000'",
            "guid'd0ffee00-1234-5678-9abc-def012345678'",
        ),
        ("x", "X'0aFF'", "binary''", "X'0b'"),
    ];
    for (name, equal, below, above) in cases {
        for (text, expected) in [
            (format!("{name} eq {equal}"), true),
            (format!("{name} ne {equal}"), false),
            (format!("{name} ge {equal}"), true),
            (format!("{name} le {equal}"), true),
            (format!("{name} gt {equal}"), false),
            (format!("{name} lt {equal}"), false),
            (format!("{name} eq {below}"), false),
            (format!("{name} ne {below}"), true),
            (format!("{name} gt {below}"), true),
            (format!("{name} le {below}"), false),
            (format!("{below} lt {name}"), true),
        ] {
            assert_eq!(matches(&text), expected, "{text}");
        }
        if name != "b" {
            assert!(matches(&format!("{name} lt {above}")), "{name} {above}");
            assert!(!matches(&format!("{name} ge {above}")), "{name} {above}");
            assert!(matches(&format!("{above} gt {name}")), "{name} {above}");
        }
    }
}

#[test]
fn and_binds_tighter_than_or_and_not_spans_one_comparison_t53() {
    for (text, expected) in [
        ("true or false and false", true),
        ("(true or false) and false", false),
        ("not false and false", false),
        ("not (false and false)", true),
        ("not i gt 2", false),
        ("not i gt 2 or true", true),
        ("not not true", true),
        ("b", true),
        ("not b", false),
        ("(b)", true),
        ("((i)) eq ((3))", true),
        ("(i eq 3)and(b)", true),
        ("'a' lt 'b'", true),
        ("i eq i and i ne l", true),
        ("i lt l", true),
        (" \t i  eq\n3 ", true),
    ] {
        assert_eq!(matches(text), expected, "{text}");
    }
}

#[test]
fn numbers_match_by_value_t54() {
    for (text, expected) in [
        ("i eq 3L", true),
        ("i eq 3.0", true),
        ("l eq 9007199254740993", true),
        ("l eq 9007199254740992.0", false),
        ("d gt 2", true),
        ("d lt 3L", true),
        ("i lt 99999999999999999999999", true),
        ("i gt -99999999999999999999999", true),
    ] {
        assert_eq!(matches(text), expected, "{text}");
    }
}

#[test]
fn other_kinds_differ_and_missing_properties_match_nothing_t55() {
    for operator in ["eq", "gt", "ge", "lt", "le"] {
        assert!(!matches(&format!("s {operator} 3")), "{operator}");
        assert!(!matches(&format!("n {operator} 3.0")), "{operator}");
        assert!(!matches(&format!("n {operator} n")), "{operator}");
    }
    assert!(matches("s ne 3") && matches("n ne 3.0") && matches("n ne n"));
    for operator in ["eq", "ne", "gt", "ge", "lt", "le"] {
        assert!(!matches(&format!("only {operator} 1")), "{operator}");
        assert!(matches(&format!("not (only {operator} 1)")), "{operator}");
        assert!(!matches(&format!("I {operator} 3")), "names have case");
    }
    assert!(!matches("only") && matches("not only") && !matches("i"));
}

#[test]
fn keys_and_timestamp_are_fields_t58() {
    assert!(matches("PartitionKey eq 'p' and RowKey ge 'r'"));
    assert!(matches("Timestamp eq datetime'2026-01-05T10:00:00Z'"));
    assert!(matches("Timestamp gt datetime'0001-01-01T00:00:00Z'"));
    assert!(!matches("Timestamp lt datetime'2026-01-05'"));
}

#[test]
fn what_the_service_does_not_have_is_a_syntax_error_t57() {
    for text in [
        "",
        " ",
        "startswith(s,'a')",
        "substringof('a',s)",
        "i add 1 eq 2",
        "i eq 1 add 2",
        "i eq null",
        "null eq i",
        "i eq eq",
        "eq eq eq",
        "i in (1,2)",
        "i has 1",
        "i eq 3 b",
        "aaa bbb ccc",
        "s eq 'open",
        "s eq \"x\"",
        "(i eq 3",
        "i eq 3)",
        "()",
        "i eq (3",
        "i EQ 3",
        "i eq 3 AND b",
        "5",
        "'text'",
        "(5)",
        "(not (5))",
        "(b and 5)",
        "not 'x'",
        "i eq 3 and",
        "and i eq 3",
        "not",
        "i eq 3 4",
        "(i eq 3) eq b",
        "i eq (b eq true)",
        "i eq 3.",
        "i eq .5",
        "i eq -",
        "i eq 3x",
        "i eq 3LL",
        "i eq 1e",
        "i eq 1.5L",
        "i eq 99999999999999999999L",
        "t eq datetime'zz'",
        "t eq datetime'2020'",
        "g eq guid'x'",
        "x eq X'0'",
        "x eq X'0g'",
        "x eq time'00:00'",
        "a-b eq 1",
        "a.b eq 1",
        "i eq 3;",
        "i = 3",
        "i eq '",
    ] {
        let refused = Filter::parse(text);
        assert!(matches!(refused, Err(TableDenial::InvalidInput(_))), "{text}: {refused:?}");
    }
}

#[test]
fn a_syntax_error_names_its_position() {
    let text = Filter::parse("aaa bbb ccc").unwrap_err().to_string();
    assert_eq!(text, "Syntax error at position 4 in 'aaa bbb ccc'.");
    let text = Filter::parse("ä eq 'x").unwrap_err().to_string();
    assert_eq!(text, "Syntax error at position 5 in 'ä eq 'x'.");
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels: usize| format!("{}b{}", "(".repeat(levels), ")".repeat(levels));
    assert!(Filter::parse(&nested(FILTER_DEPTH_MAX)).is_ok());
    assert!(Filter::parse(&nested(FILTER_DEPTH_MAX + 1)).is_err());
    assert!(Filter::parse(&nested(1_000)).is_err());
    assert!(Filter::parse(&format!("{}b", "not ".repeat(1_000))).is_err());
    assert!(Filter::parse(&"(".repeat(FILTER_BYTES_MAX)).is_err());
    assert!(Filter::parse(&format!("i eq {}3", "(".repeat(1_000))).is_err());
    assert!(Filter::parse(&"x".repeat(FILTER_BYTES_MAX + 1)).is_err());
}

#[test]
fn a_long_chain_is_one_level() {
    let chain = vec!["i eq 3"; 2_500].join(" and ");
    assert!(matches(&chain));
    let chain = vec!["i eq 4"; 2_500].join(" or ");
    assert!(!matches(&chain));
}

fn ranges(text: &str) -> Vec<Range> {
    Filter::parse(text).unwrap().ranges()
}

fn inside(ranges: &[Range], partition: &str, row: &str) -> bool {
    ranges.iter().any(|range| range.contains(partition, row))
}

#[test]
fn a_point_and_a_row_range_read_only_that_range_t60() {
    let read = ranges("PartitionKey eq 'p' and RowKey ge 'b' and RowKey lt 'd'");
    assert_eq!(read.len(), 1);
    for (row, within) in [("a", false), ("b", true), ("c~", true), ("d", false)] {
        assert_eq!(inside(&read, "p", row), within, "{row}");
    }
    assert!(!inside(&read, "o", "c") && !inside(&read, "q", "c"));
}

#[test]
fn several_points_are_several_ranges() {
    let read = ranges(
        "(PartitionKey eq 'b' and RowKey eq '2') or ('a' eq PartitionKey and RowKey eq '1' and i \
         gt 5)",
    );
    assert_eq!(read.len(), 2);
    assert!(inside(&read, "a", "1") && inside(&read, "b", "2"));
    assert!(!inside(&read, "a", "2") && !inside(&read, "b", "1"));
}

#[test]
fn what_cannot_match_reads_nothing_and_what_does_not_narrow_reads_all() {
    assert_eq!(ranges("PartitionKey eq 'a' and PartitionKey eq 'b'"), []);
    assert_eq!(ranges("PartitionKey eq 5"), []);
    assert_eq!(ranges("PartitionKey gt 'b' and PartitionKey lt 'a'"), []);
    for all in ["i eq 3", "not PartitionKey eq 'a'", "PartitionKey ne 'a'", "RowKey eq 'r'", "true"]
    {
        assert_eq!(ranges(all), [Range::ALL], "{all}");
    }
    assert_eq!(ranges("PartitionKey eq 'a' or i eq 3"), [Range::ALL]);
}

#[test]
fn many_points_fall_back_to_a_coarser_answer() {
    let points: Vec<_> = (0..300).map(|n| format!("PartitionKey eq '{n:03}'")).collect();
    assert_eq!(ranges(&points[..200].join(" or ")).len(), 200);
    assert_eq!(ranges(&points.join(" or ")), [Range::ALL]);
    let product = format!("({}) and ({})", points[..100].join(" or "), points[..100].join(" or "));
    assert_eq!(ranges(&product).len(), 100);
}

/// A random filter as text, of comparisons over few names and values, so that matches are common.
fn filter_text() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["PartitionKey", "RowKey", "i", "s", "b", "only"]);
    let operator = prop::sample::select(vec!["eq", "ne", "gt", "ge", "lt", "le"]);
    let literal = prop::sample::select(vec!["'a'", "'b'", "'c'", "1", "2L", "1.5", "true"]);
    let comparison =
        (name, operator, literal, any::<bool>()).prop_map(|(name, op, value, swap)| {
            if swap { format!("{value} {op} {name}") } else { format!("{name} {op} {value}") }
        });
    comparison.prop_recursive(5, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} and {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} or {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} and {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} or {b}")),
            inner.prop_map(|a| format!("not ({a})")),
        ]
    })
}

proptest! {
    #[test]
    fn what_matches_lies_in_the_ranges(text in filter_text()) {
        let filter = Filter::parse(&text).unwrap();
        let read = filter.ranges();
        for pair in read.windows(2) {
            prop_assert!(pair[0].end < pair[1].start);
        }
        for partition in ["", "a", "b", "bb", "c"] {
            for key_row in ["", "a", "ab", "b", "c"] {
                let mut entity = row(&[("i", Value::Int32(1)), ("s", Value::String("b".into()))]);
                entity.key = EntityKey::new(partition, key_row);
                if filter.matches(&entity) {
                    prop_assert!(inside(&read, partition, key_row), "{partition} {key_row}");
                }
            }
        }
    }

    #[test]
    fn a_filter_and_its_negation_divide_all_entities(text in filter_text()) {
        let filter = Filter::parse(&text).unwrap();
        let negated = Filter::parse(&format!("not ({text})")).unwrap();
        prop_assert_ne!(filter.matches(&sample()), negated.matches(&sample()));
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,80}") {
        let _ = Filter::parse(&text).map(|filter| filter.ranges());
    }

    #[test]
    fn no_text_of_tokens_panics(
        tokens in prop::collection::vec(
            prop::sample::select(vec![
                "(", ")", "not ", " and ", " or ", "a", " eq ", " lt ", "'x'", "5", "5L", "1.5e3",
                "true", "datetime'2020-01-01'", "X'00'", "guid'", "'", "-", ".", "PartitionKey",
            ]),
            0..40,
        )
    ) {
        if let Ok(filter) = Filter::parse(&tokens.concat()) {
            filter.ranges();
            filter.matches(&sample());
        }
    }
}
