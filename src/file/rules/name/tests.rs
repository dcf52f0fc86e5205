//! Each rule of names, at its limit and past it.

use std::borrow::Cow;

use proptest::prelude::*;

use super::*;

#[test]
fn spellings_that_differ_in_case_are_one_name() {
    assert!(same_name("Dir", "dIR"));
    assert!(same_name("é", "É") && same_name("жук", "ЖУК") && same_name("ς", "Σ"));
    assert_eq!(fold("résumé.Txt"), "RÉSUMÉ.TXT");
    assert!(!same_name("a", "b") && !same_name("a", "aa"));
}

#[test]
fn a_character_whose_upper_case_is_longer_stays() {
    assert_eq!(fold("straße"), "STRAßE");
    assert!(!same_name("straße", "STRASSE"));
    assert!(!same_name("ﬁle", "file"));
}

#[test]
fn nothing_outside_ascii_passes_for_ascii() {
    assert!(same_name("i", "I"));
    assert!(!same_name("ı", "I") && !same_name("ı", "i"));
    assert!(!same_name("İ", "I") && !same_name("İ", "i"));
    assert!(!same_name("ſ", "s"));
    for letter in char::MIN..=char::MAX {
        assert!(letter.is_ascii() || !fold_char(letter).is_ascii());
    }
}

#[test]
fn composed_and_decomposed_letters_are_two_names() {
    assert!(!same_name("\u{e9}", "e\u{301}"));
}

#[test]
fn a_folded_name_is_borrowed() {
    assert!(matches!(fold("ABC-1.TXTß"), Cow::Borrowed(_)));
    assert!(matches!(fold("ABc"), Cow::Owned(_)));
}

proptest! {
    #[test]
    fn no_text_makes_the_rules_panic(text in any::<String>()) {
        let _ = check_component(&text);
    }

    #[test]
    fn folding_twice_changes_nothing(text in any::<String>()) {
        let once = fold(&text).into_owned();
        prop_assert!(same_name(&text, &once));
        prop_assert_eq!(&fold(&once), &once);
    }
}
