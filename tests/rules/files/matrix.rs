//! An open on the mount against REST operations, beside the table of share modes.

use crate::files::fixture::{Call, Fixture, code};

const SV: &str = "SharingViolation";

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
