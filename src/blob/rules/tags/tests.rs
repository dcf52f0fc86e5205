//! Limits of tags, and expressions over them as a table and under random input.

use proptest::prelude::*;

use super::query::{TagLanguage, TagQuery};
use super::*;

fn tags(pairs: &[(&str, &str)]) -> Tags {
    let owned = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Tags::new(owned).unwrap()
}

fn refused(pairs: Vec<(String, String)>) -> Option<TagError> {
    Tags::new(pairs).err()
}

#[test]
fn a_blob_has_at_most_ten_tags_with_different_keys() {
    let many = |count: usize| (0..count).map(|n| (format!("k{n}"), "v".to_owned())).collect();
    assert_eq!(refused(many(10)), None);
    assert_eq!(refused(many(11)), Some(TagError::TooMany));
    assert_eq!(refused(many(10_000)), Some(TagError::TooMany));
    let pair = ("k".to_owned(), "v".to_owned());
    assert_eq!(refused(vec![pair.clone(), pair]), Some(TagError::Repeated));
}

#[test]
fn keys_and_values_have_their_characters_and_lengths() {
    for (key, value, legal) in [
        ("k", "", true),
        ("", "v", false),
        ("A z 0 +-./:=_", "A z 0 +-./:=_", true),
        ("k", "é", false),
        ("k", "a'b", false),
        ("k&", "v", false),
        (&"k".repeat(128), &"v".repeat(256), true),
        (&"k".repeat(129), "v", false),
        ("k", &"v".repeat(257), false),
    ] {
        let answer = refused(vec![(key.to_owned(), value.to_owned())]);
        assert_eq!(answer.is_none(), legal, "{key}={value}");
    }
}

/// Tried with the tags a=1, b=2, Status=Done, "odd key"=x in container `logs`.
const CONDITIONS: &str = r#"
"a" = '1'                         | true
a = '1'                           | true
a='1'                             | true
"a" = '2'                         | false
"a" <> '2'                        | true
"a" <> '1'                        | false
"a" > '0'                         | true
"a" > '1'                         | false
"a" >= '1'                        | true
"a" < '2'                         | true
"a" < '1'                         | false
"a" <= '1'                        | true
"missing" = ''                    | false
"missing" <> '1'                  | false
"odd key" = 'x'                   | true
"A" = '1'                         | false
"Status" = 'done'                 | false
"a" = '1' AND "b" = '2'           | true
"a" = '1' and "b" = '3'           | false
"a" = '0' OR "b" = '2'            | true
"a" = '0' or "b" = '0'            | false
"a" = '1' OR "a" = '2' AND "b" = '0'   | true
("a" = '1' OR "a" = '2') AND "b" = '0' | false
( ( "a" = '1' ) )                 | true
"a"='1'AND"b"='2'                 | true
"#;

#[test]
fn conditions_over_tags_follow_the_table() {
    let tags = tags(&[("a", "1"), ("b", "2"), ("Status", "Done"), ("odd key", "x")]);
    let mut rows = 0;
    for line in CONDITIONS.trim().lines() {
        let (text, expected) = line.rsplit_once('|').unwrap();
        let query = TagQuery::parse(text.trim(), TagLanguage::Condition).unwrap();
        assert_eq!(query.holds("logs", &tags).to_string(), expected.trim(), "{text}");
        rows += 1;
    }
    assert_eq!(rows, 25);
}

#[test]
fn finding_knows_the_container_but_neither_or_nor_inequality() {
    let tags = tags(&[("a", "1")]);
    let holds =
        |text| TagQuery::parse(text, TagLanguage::Find).map(|query| query.holds("logs", &tags));
    assert_eq!(holds("@container = 'logs' AND \"a\" = '1'"), Ok(true));
    assert_eq!(holds("@container='other' AND a='1'"), Ok(false));
    for text in ["a = '1' OR a = '2'", "a <> '2'", "(a = '1')"] {
        assert!(holds(text).is_err(), "{text}");
    }
    assert!(TagQuery::parse("@container = 'logs'", TagLanguage::Condition).is_err());
}

#[test]
fn a_blob_is_found_with_the_tags_that_the_expression_compares() {
    let query =
        TagQuery::parse("@container='logs' AND a='1' AND b>'0'", TagLanguage::Find).unwrap();
    let found = tags(&[("a", "1"), ("b", "2"), ("c", "3")]).compared_in(&query);
    assert_eq!(found, tags(&[("a", "1"), ("b", "2")]));
}

#[test]
fn what_is_no_expression_is_refused() {
    for text in [
        "",
        " ",
        "a",
        "a =",
        "a = 1",
        "a = '1",
        "\"a = '1'",
        "= '1'",
        "a = '1' AND",
        "AND a = '1'",
        "a = '1' b = '2'",
        "a == '1'",
        "a != '1'",
        "(a = '1'",
        "a = '1')",
        "a = \"1\"",
        "a ANDb",
        "a = '1' ANDb = '2'",
        "é = '1'",
        "\"\" = '1'",
        "\"a&\" = '1'",
        "a = 'b&c'",
        &format!("{} = '1'", "k".repeat(129)),
        &format!("a = '{}'", "v".repeat(257)),
    ] {
        assert!(TagQuery::parse(text, TagLanguage::Condition).is_err(), "{text}");
    }
}

#[test]
fn an_expression_to_find_compares_at_most_ten_tags_and_any_has_sixteen_brackets() {
    let joined = |count: usize| vec!["a = '1'"; count].join(" AND ");
    let find = |text: String| TagQuery::parse(&text, TagLanguage::Find).is_ok();
    assert!(find(format!("@container = 'c' AND {}", joined(10))));
    assert!(!find(joined(11)));
    assert!(TagQuery::parse(&joined(700), TagLanguage::Condition).is_ok());
    let nested = |depth: usize| format!("{}a = '1'{}", "(".repeat(depth), ")".repeat(depth));
    assert!(TagQuery::parse(&nested(16), TagLanguage::Condition).is_ok());
    assert!(TagQuery::parse(&nested(17), TagLanguage::Condition).is_err());
    assert!(TagQuery::parse(&"(".repeat(100_000), TagLanguage::Condition).is_err());
}

#[test]
fn an_index_may_start_from_the_comparisons_of_a_conjunction() {
    let conjuncts = |text| TagQuery::parse(text, TagLanguage::Condition).unwrap().conjuncts().len();
    assert_eq!(conjuncts("a = '1'"), 1);
    assert_eq!(conjuncts("a = '1' AND b = '2' AND (c = '3' OR d = '4')"), 2);
    assert_eq!(conjuncts("a = '1' OR b = '2'"), 0);
}

fn queries() -> impl Strategy<Value = String> {
    let comparison = ("[a-c]", "(=|<>|>|>=|<|<=)", "[0-2]?")
        .prop_map(|(key, operator, value)| format!("\"{key}\" {operator} '{value}'"));
    comparison.prop_recursive(3, 8, 2, |inner| {
        (inner.clone(), prop_oneof!["AND", "OR"], inner)
            .prop_map(|(left, word, right)| format!("({left} {word} {right})"))
    })
}

/// Evaluates a fully bracketed expression by taking it apart from outside.
fn reference(text: &str, tags: &Tags) -> bool {
    let Some(inner) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) else {
        let parts: Vec<_> = text.split(' ').collect();
        let Some(value) = tags.get(parts[0].trim_matches('"')) else { return false };
        let given = parts[2].trim_matches('\'');
        return match parts[1] {
            "=" => value == given,
            "<>" => value != given,
            ">" => value > given,
            ">=" => value >= given,
            "<" => value < given,
            _ => value <= given,
        };
    };
    let mut depth = 0;
    for (at, letter) in inner.char_indices() {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        for word in [" AND ", " OR "] {
            if depth == 0 && inner[at..].starts_with(word) {
                let (left, right) = (&inner[..at], &inner[at + word.len()..]);
                let (left, right) = (reference(left, tags), reference(right, tags));
                return if word == " AND " { left && right } else { left || right };
            }
        }
    }
    unreachable!("every bracket holds two expressions")
}

proptest! {
    #[test]
    fn expressions_agree_with_taking_them_apart(
        text in queries(),
        values in proptest::collection::vec(proptest::option::of("[0-2]"), 3),
    ) {
        let pairs = ["a", "b", "c"].into_iter().zip(values);
        let tags = Tags::new(pairs.filter_map(|(key, value)| Some((key.to_owned(), value?))))
            .unwrap();
        let query = TagQuery::parse(&text, TagLanguage::Condition).unwrap();
        prop_assert_eq!(query.holds("c", &tags), reference(&text, &tags));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in r#"[a-c"'()<>=@ ANDORéx]{0,40}"#, any in ".{0,40}") {
        for language in [TagLanguage::Condition, TagLanguage::Find] {
            for text in [&text, &any] {
                if let Ok(query) = TagQuery::parse(text, language) {
                    query.holds("c", &Tags::default());
                }
            }
        }
    }
}
