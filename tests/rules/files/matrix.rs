//! One open on the mount against each REST operation: behaviours 15-36.

use crate::files::fixture::{BYTES, Call, Fixture, code};

const SV: &str = "SharingViolation";

/// The answers of `calls`, each on a file of its own that the mount holds open so.
#[track_caller]
fn expect(access: &str, share: &str, calls: &[Call], wanted: &str) {
    let fixture = Fixture::new();
    for call in calls {
        let path = fixture.file();
        let handle = fixture.open(&path, access, share);
        let answer = fixture.call(fixture.rest(), &path, *call);
        assert_eq!(code(&answer), wanted, "{call:?} against open({access}; {share})");
        fixture.share.close(&handle).unwrap();
    }
}

const SETS: [Call; 3] = [Call::SetProperties, Call::Resize, Call::SetMetadata];
const PUTS: [Call; 2] = [Call::Put, Call::Clear];
const WHOLE: [Call; 3] = [Call::Create, Call::Delete, Call::Acquire];
const LOOKS: [Call; 2] = [Call::Get, Call::ListRanges];

#[test]
fn b015_share_none_refuses_get_file() {
    expect("r", "none", &[Call::Get], SV);
}

#[test]
fn b016_share_none_refuses_list_ranges() {
    expect("r", "none", &[Call::ListRanges], SV);
}

#[test]
fn b017_share_none_refuses_put_range_and_the_sets() {
    expect("r", "none", &PUTS, SV);
    expect("r", "none", &SETS, SV);
}

#[test]
fn b018_share_none_refuses_create_over_delete_and_lease() {
    expect("r", "none", &WHOLE, SV);
}

#[test]
fn b019_share_none_does_not_hide_the_properties() {
    expect("r", "none", &[Call::Head], "ok");
    expect("rwd", "none", &[Call::Head], "ok");
}

#[test]
fn b020_share_read_lets_reads_through() {
    expect("r", "r", &LOOKS, "ok");
}

#[test]
fn b021_share_read_refuses_all_that_writes() {
    expect("r", "r", &PUTS, SV);
    expect("r", "r", &SETS, SV);
    expect("r", "r", &WHOLE, SV);
}

#[test]
fn b022_share_write_refuses_get_file() {
    expect("r", "w", &[Call::Get], SV);
}

#[test]
fn b023_a_writer_that_shares_read_refuses_put_range() {
    expect("w", "r", &[Call::Put], SV);
}

#[test]
fn b024_share_write_lets_writes_through_and_no_list_of_ranges() {
    expect("r", "w", &PUTS, "ok");
    expect("r", "w", &SETS, "ok");
    expect("r", "w", &[Call::ListRanges], SV);
}

#[test]
fn b025_share_delete_refuses_everything_delete_file_too() {
    expect("r", "d", &LOOKS, SV);
    expect("r", "d", &PUTS, SV);
    expect("r", "d", &SETS, SV);
    expect("r", "d", &WHOLE, SV);
    expect("r", "d", &[Call::Head], "ok");
}

#[test]
fn b026_share_read_write_refuses_what_takes_the_whole_file() {
    expect("r", "rw", &LOOKS, "ok");
    expect("r", "rw", &PUTS, "ok");
    expect("r", "rw", &SETS, "ok");
    expect("r", "rw", &WHOLE, SV);
}

#[test]
fn b027_share_read_delete_lets_only_reads_through() {
    expect("r", "rd", &LOOKS, "ok");
    expect("r", "rd", &PUTS, SV);
    expect("r", "rd", &SETS, SV);
    expect("r", "rd", &WHOLE, SV);
}

#[test]
fn b028_share_write_delete_lets_create_over_through() {
    expect("r", "wd", &[Call::Create], "ok");
    expect("r", "wd", &PUTS, "ok");
    expect("r", "wd", &SETS, "ok");
    expect("r", "wd", &LOOKS, SV);
    expect("r", "wd", &[Call::Delete, Call::Acquire], SV);
}

#[test]
fn b029_share_everything_refuses_only_delete_file() {
    for call in Call::ALL {
        expect("r", "rwd", &[call], if call == Call::Delete { SV } else { "ok" });
    }
}

#[test]
fn b030_rest_tolerates_what_an_open_holds() {
    expect("rw", "rwd", &[Call::Get, Call::Put], "ok");
}

#[test]
fn b031_an_open_for_attributes_alone_refuses_no_bytes() {
    expect("none", "none", &[Call::Get, Call::Put], "ok");
}

#[test]
fn b032_an_open_for_attributes_alone_refuses_delete_file() {
    expect("none", "rwd", &[Call::Delete], SV);
}

#[test]
fn b033_after_the_close_delete_file_succeeds_and_the_file_is_gone() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let handle = fixture.open(&path, "r", "rwd");
    assert_eq!(code(&fixture.call(fixture.rest(), &path, Call::Delete)), SV);
    fixture.share.close(&handle).unwrap();
    assert_eq!(code(&fixture.call(fixture.rest(), &path, Call::Delete)), "ok");
    assert_eq!(code(&fixture.call(fixture.rest(), &path, Call::Delete)), "ResourceNotFound");
    assert_eq!(code(&fixture.head(&path)), "ResourceNotFound");
    assert_eq!(fixture.share.files_in_use(), 0);
}

#[test]
fn b034_of_two_rest_writers_the_last_one_wins() {
    let fixture = Fixture::new();
    let path = fixture.file();
    fixture.put(&path, 0, b"first").unwrap();
    fixture.put(&path, 3, b"last").unwrap();
    assert_eq!(fixture.get(&path, None).unwrap(), b"firlast789");
}

#[test]
fn b035_a_resize_is_a_write_to_the_share_check() {
    expect("r", "r", &[Call::Resize], SV);
}

#[test]
fn b036_clearing_a_range_is_one_too() {
    expect("w", "r", &[Call::Clear], SV);
}

#[test]
fn a_refused_write_changes_nothing() {
    let fixture = Fixture::new();
    for call in Call::WRITES {
        let path = fixture.file();
        let before = fixture.head(&path).unwrap();
        let handle = fixture.open(&path, "r", "r");
        assert_eq!(code(&fixture.call(fixture.rest(), &path, call)), SV);
        assert_eq!(fixture.head(&path).unwrap(), before, "{call:?}");
        assert_eq!(fixture.get(&path, None).unwrap(), BYTES);
        fixture.share.close(&handle).unwrap();
    }
}

#[test]
fn a_refusal_names_the_holder_in_the_event_log() {
    use latchfs::journal::Happening;
    let fixture = Fixture::new();
    let path = fixture.file();
    let held = fixture.open(&path, "r", "r");
    for call in Call::WRITES {
        let last = fixture.events.file_events().len();
        assert_eq!(code(&fixture.call(fixture.rest(), &path, call)), SV);
        let events = fixture.events.file_events();
        assert_eq!(events.len(), last + 1, "{call:?}");
        let Happening::Refused { cause, .. } = &events[last].what else { panic!("{events:?}") };
        let holder = cause.holder.as_ref().map(|holder| holder.handle);
        assert_eq!(holder, Some(held.id()), "{call:?}");
    }
}
