//! REST operations against one handle of the mount (behaviours 15-43).

use std::thread;

use crate::common::calls::Call;
use crate::common::meeting::{BYTES, Meeting, Subject};

const SV: &str = "SharingViolation";

/// What `calls` are answered, each on a file of its own that the mount side has open so.
#[track_caller]
fn expect(name: &str, (access, share): (&str, &str), expected: &[(&str, &[Call])]) {
    let Some(at) = Meeting::start() else { return };
    for (answer, calls) in expected {
        for call in *calls {
            let file = at.file(&format!("{name}-{call:?}"));
            let _holder = file.open(access, share);
            file.answers(answer, &[*call]);
        }
    }
}

#[test]
fn b015_share_none_refuses_get_file() {
    expect("b015", ("r", "none"), &[(SV, &[Call::Get])]);
}

#[test]
fn b016_share_none_refuses_list_ranges() {
    expect("b016", ("r", "none"), &[(SV, &[Call::Ranges])]);
}

#[test]
fn b017_share_none_refuses_put_range_and_the_sets() {
    expect("b017", ("r", "none"), &[(SV, &Call::PUTS), (SV, &Call::SETS)]);
}

#[test]
fn b018_share_none_refuses_create_over_delete_and_lease() {
    expect("b018", ("r", "none"), &[(SV, &Call::WHOLE)]);
}

#[test]
fn b019_share_none_hides_neither_properties_nor_the_name() {
    expect("b019", ("r", "none"), &[("ok", &Call::LOOKS)]);
    let Some(at) = Meeting::start() else { return };
    at.directory("b019");
    let _holder = at.file("b019/held").open("r", "none");
    assert_eq!(at.listing("b019"), ["held"]);
}

#[test]
fn b020_share_read_lets_reads_through() {
    expect("b020", ("r", "r"), &[("ok", &Call::READS)]);
}

#[test]
fn b021_share_read_refuses_all_that_writes() {
    expect("b021", ("r", "r"), &[(SV, &Call::PUTS), (SV, &Call::SETS), (SV, &Call::WHOLE)]);
}

#[test]
fn b022_share_write_refuses_get_file() {
    expect("b022", ("r", "w"), &[(SV, &[Call::Get])]);
}

#[test]
fn b023_a_writer_that_shares_read_refuses_put_range() {
    expect("b023", ("w", "r"), &[(SV, &[Call::Put])]);
}

#[test]
fn b024_share_write_lets_writes_through_and_no_list_of_ranges() {
    let writes: &[Call] = &[Call::Put, Call::SetMetadata];
    expect("b024", ("r", "w"), &[("ok", writes), (SV, &[Call::Ranges])]);
}

#[test]
fn b025_share_delete_refuses_everything_delete_file_too() {
    let refused = [&Call::READS[..], &Call::PUTS, &Call::SETS, &Call::WHOLE].concat();
    expect("b025", ("r", "d"), &[(SV, &refused)]);
}

#[test]
fn b026_share_read_write_refuses_what_takes_the_whole_file() {
    let through = [&Call::READS[..], &Call::PUTS, &Call::SETS].concat();
    expect("b026", ("r", "rw"), &[("ok", &through), (SV, &Call::WHOLE)]);
}

#[test]
fn b027_share_read_delete_lets_only_reads_through() {
    let refused = [&Call::PUTS[..], &Call::SETS, &Call::WHOLE].concat();
    expect("b027", ("r", "rd"), &[("ok", &Call::READS), (SV, &refused)]);
}

#[test]
fn b028_share_write_delete_lets_create_over_through() {
    let refused: &[Call] = &[Call::Get, Call::Delete, Call::Acquire];
    expect("b028", ("r", "wd"), &[("ok", &[Call::Create]), (SV, refused)]);
}

#[test]
fn b029_share_everything_refuses_only_delete_file() {
    let through = [&Call::LOOKS[..], &Call::READS, &Call::PUTS, &Call::SETS].concat();
    let whole: &[Call] = &[Call::Create, Call::Acquire];
    expect("b029", ("r", "rwd"), &[("ok", &through), ("ok", whole), (SV, &[Call::Delete])]);
}

#[test]
fn b030_rest_tolerates_what_an_open_holds() {
    expect("b030", ("rw", "rwd"), &[("ok", &[Call::Get, Call::Put])]);
}

#[test]
fn b031_an_open_for_attributes_alone_refuses_no_bytes() {
    expect("b031", ("none", "none"), &[("ok", &[Call::Get, Call::Put])]);
}

#[test]
fn b032_an_open_for_attributes_alone_refuses_delete_file() {
    expect("b032", ("none", "rwd"), &[(SV, &[Call::Delete])]);
}

#[test]
fn b033_after_the_close_delete_file_succeeds_and_the_file_is_gone() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b033");
    let holder = file.open("r", "rwd");
    file.answers(SV, &[Call::Delete]);
    holder.close();
    file.answers("ok", &[Call::Delete]);
    file.answers("ResourceNotFound", &[Call::Delete, Call::Head, Call::Get]);
    assert!(!file.path().exists());
}

#[test]
fn b034_of_two_rest_writers_the_last_one_wins() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b034");
    thread::scope(|scope| {
        for letter in [b"a", b"b"] {
            let (at, target) = (&at, file.target());
            scope.spawn(move || at.put_range(&target, 0, &letter.repeat(10), &[]).is(201));
        }
    });
    let won = file.bytes();
    assert!(won == b"aaaaaaaaaa" || won == b"bbbbbbbbbb", "{won:?}");
    at.put_range(&file.target(), 0, b"first", &[]).is(201);
    at.put_range(&file.target(), 3, b"last", &[]).is(201);
    assert_eq!(file.bytes()[..7], *b"firlast");
    assert_eq!(std::fs::read(file.path()).unwrap()[..7], *b"firlast");
}

#[test]
fn b035_a_resize_is_a_write_to_the_share_check() {
    expect("b035", ("r", "r"), &[(SV, &[Call::Resize])]);
}

#[test]
fn b036_clearing_a_range_is_one_too() {
    expect("b036", ("w", "r"), &[(SV, &[Call::Clear])]);
}

#[test]
fn b037_a_range_from_a_url_needs_reading_of_its_source_and_writing_of_its_target() {
    expect("b037-source", ("r", "none"), &[(SV, &[Call::PutFrom])]);
    expect("b037-target", ("r", "r"), &[(SV, &[Call::PutOnto])]);
    expect("b037", ("r", "rw"), &[("ok", &[Call::PutFrom, Call::PutOnto])]);
}

#[test]
fn b038_a_copy_needs_reading_of_its_source_and_all_of_its_destination() {
    expect("b038-source", ("r", "w"), &[(SV, &[Call::CopyFrom])]);
    expect("b038-target", ("r", "r"), &[(SV, &[Call::CopyOnto])]);
    expect("b038", ("r", "rwd"), &[("ok", &[Call::CopyFrom, Call::CopyOnto])]);
}

#[test]
fn b039_a_new_name_in_a_directory_that_the_mount_has_open_can_be_made() {
    let Some(at) = Meeting::start() else { return };
    let directory = at.directory("b039");
    let holder = directory.open("rw", "none");
    at.file("b039/new");
    holder.close();
    let _listing = std::fs::read_dir(directory.path()).unwrap();
    at.file("b039/newer");
    assert!(at.path("b039/new").exists() && at.path("b039/newer").exists());
}

#[test]
fn b040_a_violation_says_so_in_status_header_and_body_and_names_the_holder() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b040");
    let holder = file.open("rw", "none");
    let got = file.call(Call::Get).refused(409, SV);
    assert_eq!(got.header("content-type"), "application/xml");
    let text = got.text();
    let prolog = "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>SharingViolation</Code>";
    assert!(text.trim_start_matches('\u{feff}').starts_with(prolog), "{text}");
    assert!(text.contains("\nRequestId:") && text.contains("\nTime:"), "{text}");
    assert!(text.contains(&format!("handle {}", holder.id())), "{text}");
    let pid = format!("(pid {})", std::process::id());
    assert!(text.contains(&pid), "the process and not its thread: {text}");
}

#[test]
fn b041_a_refused_head_has_a_code_and_neither_body_nor_type() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b041");
    let _keeper = file.pending();
    let got = file.call(Call::Head).refused(409, "SMBDeletePending");
    assert!(got.body.is_empty() && !got.headers.contains_key("content-type"), "{got:?}");
    let got = at.named("b041-none").call(Call::Head).refused(404, "ResourceNotFound");
    assert!(got.body.is_empty() && !got.headers.contains_key("content-type"), "{got:?}");
}

#[test]
fn b042_share_none_on_a_file_stops_nothing_of_the_share() {
    let Some(at) = Meeting::alone(&[]) else { return };
    let _holder = at.file("held").open("rw", "none");
    assert_eq!(at.listing(""), ["held"]);
    for look in ["", "&comp=metadata", "&comp=acl", "&comp=stats"] {
        at.get(&format!("/share?restype=share{look}")).is(200);
    }
    at.get("/?comp=list").is(200);
    at.put("/share?restype=share&comp=metadata", &[("x-ms-meta-a", "1")]).is(200);
    at.put("/share?restype=share&comp=properties", &[("x-ms-share-quota", "7")]).is(200);
    at.put("/share?restype=share&comp=acl", &[]).is(200);
    let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
    at.put("/share?restype=share&comp=lease", &acquire).is(201);
    at.put("/share?restype=share&comp=snapshot", &[]).is(201);
}

#[test]
fn b043_a_snapshot_is_read_while_the_live_file_is_locked() {
    let Some(at) = Meeting::alone(&[]) else { return };
    let file = at.file("held");
    let got = at.put("/share?restype=share&comp=snapshot", &[]).is(201);
    let snapshot = got.header("x-ms-snapshot").replace(':', "%3A");
    let _holder = file.open("rw", "none");
    file.answers(SV, &[Call::Get]);
    assert_eq!(read(&file, &snapshot), BYTES);
}

fn read(file: &Subject<'_>, snapshot: &str) -> Vec<u8> {
    file.at.get(&format!("{}?sharesnapshot={snapshot}", file.target())).is(200).body
}
