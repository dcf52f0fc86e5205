//! Copies whose bytes come from elsewhere: at once, stretch by stretch, aborted, broken off.

use latchfs::file::rules::Denial;
use latchfs::file::service::{
    Awaiting, CopyOptions, CopyStatus, FILE_SIZE_MAX, FileProperties, HttpHeaders, Metadata,
    Obstacle, RemoteSource, Result, StartedRemote,
};

use crate::dirs::fixture::{Fixture, asking, caller, denial, path};

const STRETCH: u64 = 4 << 20;

fn from(size: u64) -> RemoteSource {
    let headers =
        HttpHeaders { content_type: Some("text/plain".to_owned()), ..HttpHeaders::default() };
    RemoteSource { size, headers, metadata: [("a", "1")].into_iter().collect::<Metadata>() }
}

fn start(
    it: &Fixture,
    source: &RemoteSource,
    bytes: Option<&[u8]>,
    to: &str,
) -> Result<StartedRemote> {
    let options = CopyOptions { id: "1".into(), source: "http://there/x".into(), ..<_>::default() };
    let who = caller("rest");
    it.share().start_copy_from_remote(asking(&who), source, bytes, &path(to), &options)
}

fn start_long(it: &Fixture, to: &str) -> (FileProperties, Awaiting) {
    let started = start(it, &from(STRETCH + 3), None, to).unwrap();
    assert_eq!(started.copied.copy().unwrap().status, CopyStatus::Pending);
    (started.copied, started.rest.expect("more than one stretch is under way"))
}

#[test]
fn what_is_there_is_copied_at_once_with_headers_and_metadata() {
    let it = Fixture::new();
    it.file("to", b"older and longer");
    for (to, bytes) in [("to", &b"hello"[..]), ("new", b"")] {
        let started = start(&it, &from(bytes.len() as u64), Some(bytes), to).unwrap();
        assert!(started.rest.is_none());
        assert_eq!(started.copied.copy().unwrap().status, CopyStatus::Success);
        assert_eq!(it.bytes(to), bytes);
        let who = caller("rest");
        let file = it.share().file_properties(asking(&who), &path(to)).unwrap();
        assert_eq!(file.headers().content_type.as_deref(), Some("text/plain"));
        assert_eq!(file.metadata().iter().collect::<Vec<_>>(), [("a", "1")]);
    }
    assert!(start(&it, &from(0), None, "empty").unwrap().rest.is_none());
}

#[test]
fn a_length_that_is_not_the_one_said_or_that_no_file_has_changes_nothing() {
    let it = Fixture::new();
    it.file("to", b"kept");
    assert!(matches!(
        denial(start(&it, &from(4), Some(b"abc"), "to")),
        Denial::InvalidParameter(_)
    ));
    let too_long = denial(start(&it, &from(FILE_SIZE_MAX + 1), None, "to"));
    assert_eq!(too_long, Denial::FileTooLarge { max: FILE_SIZE_MAX });
    assert_eq!(it.bytes("to"), b"kept");
}

#[test]
fn bytes_are_taken_stretch_by_stretch_and_the_last_ends_the_copy() {
    let it = Fixture::new();
    let (_, mut awaiting) = start_long(&it, "to");
    assert_eq!(awaiting.wanted(), STRETCH);
    let first = vec![7; usize::try_from(STRETCH).unwrap()];
    assert!(it.share().copy_next(&mut awaiting, &first).unwrap().is_none());
    assert_eq!(awaiting.wanted(), 3);
    let ended = it.share().copy_next(&mut awaiting, b"end").unwrap().expect("it was the last");
    assert_eq!(ended.copy().unwrap().status, CopyStatus::Success);
    assert_eq!(ended.copy().unwrap().progress.done, STRETCH + 3);
    assert!(it.bytes("to") == [&first[..], b"end"].concat());
}

#[test]
fn it_keeps_others_from_the_file_until_it_is_aborted() {
    let it = Fixture::new();
    it.file("to", b"before");
    let (_, mut awaiting) = start_long(&it, "to");
    let again = start(&it, &from(1), Some(b"x"), "to");
    assert_eq!(denial(again), Denial::CopyPending);
    let who = caller("rest");
    it.share().abort_copy(asking(&who), &path("to"), "1").unwrap();
    let first = vec![7; usize::try_from(STRETCH).unwrap()];
    let ended = it.share().copy_next(&mut awaiting, &first).unwrap().expect("it was aborted");
    assert_eq!(ended.copy().unwrap().status, CopyStatus::Aborted);
    assert_eq!(it.bytes("to"), b"");
}

#[test]
fn bytes_that_do_not_come_or_are_too_few_end_it_and_the_reason_is_kept() {
    let it = Fixture::new();
    let (_, awaiting) = start_long(&it, "to");
    it.share().copy_broke_off(&awaiting, "the line is dead");
    let who = caller("rest");
    let copy = |name: &str| {
        let file = it.share().file_properties(asking(&who), &path(name)).unwrap();
        file.record.copy.unwrap()
    };
    assert_eq!(copy("to").status, CopyStatus::Failed);
    assert_eq!(copy("to").description.as_deref(), Some("the line is dead"));
    let (_, mut awaiting) = start_long(&it, "short");
    assert!(it.share().copy_next(&mut awaiting, b"few").is_err());
    assert_eq!(copy("short").status, CopyStatus::Failed);
    let (_, awaiting) = start_long(&it, "dropped");
    let obstacles = it.share().why(&path("dropped")).unwrap();
    assert!(matches!(&obstacles[..], [Obstacle::Copy(_)]));
    drop(awaiting);
    assert_eq!(copy("dropped").status, CopyStatus::Failed);
}
