//! Each rule of names, at its limit and past it.

use std::borrow::Cow;

use proptest::prelude::*;

use super::*;

fn rest(raw: &str) -> Result<String, FileNameError> {
    rest_path(raw, false).map(|path| path.as_str().to_owned())
}

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

#[test]
fn a_path_is_decoded_once() {
    assert_eq!(rest("/Dir%20A/b"), Ok("Dir A/b".into()));
    assert_eq!(rest("a%2525"), Ok("a%25".into()));
    assert_eq!(rest("a+b%2B"), Ok("a+b+".into()));
    assert_eq!(rest("caf%C3%A9/%f0%9f%98%80"), Ok("café/😀".into()));
    assert_eq!(rest("café"), Ok("café".into()));
}

#[test]
fn an_encoded_slash_separates() {
    assert_eq!(rest("Dir%20A%2Fsub%2ff"), Ok("Dir A/sub/f".into()));
    assert_eq!(rest("a/%2e%2e/b"), Err(FileNameError::OnlyDots("..".into())));
    assert_eq!(rest("a%2F%2Fb"), Err(FileNameError::Empty));
}

#[test]
fn one_slash_at_either_end_is_dropped() {
    assert_eq!(rest("/dir/"), Ok("dir".into()));
    assert_eq!(rest("dir%2F"), Ok("dir".into()));
    assert_eq!(rest("/"), Ok(String::new()));
    assert_eq!(rest(""), Ok(String::new()));
    assert_eq!(rest("dir//"), Err(FileNameError::Empty));
    assert_eq!(rest("//dir"), Err(FileNameError::Empty));
}

#[test]
fn a_broken_escape_is_refused() {
    for raw in ["%", "a%2", "%g0", "%0g", "%+1", "%%20", "%é"] {
        assert_eq!(rest(raw), Err(FileNameError::BadEscape), "{raw}");
    }
}

#[test]
fn bytes_that_are_no_utf8_are_refused() {
    // A stray continuation byte, a cut character, an overlong slash, an unpaired surrogate.
    for raw in ["%80", "%C3", "%C0%AF", "%ED%A0%80"] {
        assert_eq!(rest(raw), Err(FileNameError::NotUtf8), "{raw}");
    }
}

#[test]
fn trailing_dots_are_trimmed_from_each_component_unless_allowed() {
    assert_eq!(rest("dir./a.txt..."), Ok("dir/a.txt".into()));
    let kept = rest_path("dir./a.txt...", true).unwrap();
    assert_eq!(kept.as_str(), "dir./a.txt...");
    assert_eq!(rest("CON."), Err(FileNameError::Reserved("CON".into())));
}

#[test]
fn a_component_of_dots_only_is_refused() {
    for dots in [".", "..", "...", "a/.../b"] {
        assert!(matches!(rest(dots), Err(FileNameError::OnlyDots(_))), "{dots}");
    }
    for dots in [".", "..", "a/../b"] {
        let refused = rest_path(dots, true);
        assert!(matches!(refused, Err(FileNameError::OnlyDots(_))), "{dots}");
    }
    assert_eq!(rest_path("...", true).unwrap().as_str(), "...");
}

#[test]
fn a_component_has_at_most_255_utf16_units() {
    assert!(rest(&"a".repeat(255)).is_ok());
    assert_eq!(rest(&"a".repeat(256)), Err(FileNameError::ComponentTooLong("a".repeat(256))));
    assert!(rest(&"é".repeat(255)).is_ok());
    assert!(rest(&"😀".repeat(127)).is_ok());
    assert!(matches!(rest(&"😀".repeat(128)), Err(FileNameError::ComponentTooLong(_))));
    // Trimmed dots do not count.
    assert!(rest(&format!("{}.", "a".repeat(255))).is_ok());
}

#[test]
fn a_path_has_at_most_2048_utf16_units() {
    // Eight components of 255 and their separators make 2,048.
    let at_limit = format!("{}/", "a".repeat(255)).repeat(8);
    let at_limit = &at_limit[..2048];
    assert_eq!(rest(at_limit).map(|path| path.len()), Ok(2047));
    assert!(rest(&format!("{}/b", &at_limit[..2046])).is_ok());
    assert_eq!(rest(&format!("{}/b", &at_limit[..2047])), Err(FileNameError::PathTooLong));
}

#[test]
fn a_path_has_at_most_250_components() {
    assert!(rest(&"a/".repeat(250)).is_ok());
    assert_eq!(rest(&"a/".repeat(251)), Err(FileNameError::TooDeep));
}

#[test]
fn forbidden_characters_are_refused() {
    for letter in "\"\\:|<>*?".chars() {
        let component = format!("a{letter}b");
        assert_eq!(
            check_component(&component),
            Err(FileNameError::Forbidden { component: component.clone(), character: letter })
        );
    }
    assert!(check_component("a/b").is_err());
    assert!(check_component("a b!#$%&'()+,-.;=@[]^_`{}~").is_ok());
}

#[test]
fn control_characters_are_refused() {
    for raw in ["%00", "a%1F", "%0A", "%7f", "%C2%81"] {
        assert!(matches!(rest(raw), Err(FileNameError::Control(_))), "{raw}");
    }
}

#[test]
fn device_names_are_reserved_in_any_case() {
    for name in ["LPT1", "lpt9", "COM1", "Com9", "PRN", "aux", "Nul", "CON", "clock$"] {
        assert_eq!(check_component(name), Err(FileNameError::Reserved(name.into())));
    }
    for name in ["LPT0", "COM10", "COM", "CON1", "con.txt", "CLOCK", "COMé", "1"] {
        assert_eq!(check_component(name), Ok(()), "{name}");
    }
}

#[test]
fn share_names_follow_their_rule() {
    for name in ["abc", "a-b", "0-9-a", "123", &"a".repeat(63)] {
        assert_eq!(check_share_name(name), Ok(()), "{name}");
    }
    for name in ["", "ab", &"a".repeat(64)] {
        assert_eq!(check_share_name(name), Err(FileNameError::ShareLength));
    }
    for name in ["-ab", "ab-", "a--b", "---"] {
        assert_eq!(check_share_name(name), Err(FileNameError::ShareHyphen));
    }
    for (name, letter) in [("aBc", 'B'), ("a.b", '.'), ("a_b", '_'), ("abé", 'é')] {
        assert_eq!(check_share_name(name), Err(FileNameError::ShareCharacter(letter)));
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_rules_panic(text in any::<String>(), dots in any::<bool>()) {
        let _ = check_component(&text);
        let _ = check_share_name(&text);
        if let Ok(path) = rest_path(&text, dots) {
            prop_assert!(path.components().all(|name| check_component(name).is_ok()));
        }
    }

    #[test]
    fn escapes_never_panic(text in "[%/.a-fA-F0-9+é]{0,40}", dots in any::<bool>()) {
        if let Ok(path) = rest_path(&text, dots) {
            prop_assert!(!path.as_str().starts_with('/') && !path.as_str().ends_with('/'));
        }
    }

    #[test]
    fn folding_twice_changes_nothing(text in any::<String>()) {
        let once = fold(&text).into_owned();
        prop_assert!(same_name(&text, &once));
        prop_assert_eq!(&fold(&once), &once);
    }
}
