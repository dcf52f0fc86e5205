//! Those of the numbered behaviours that opens, marks and locks decide by themselves, without
//! REST. A test is named after its number.

use std::sync::Arc;

use latchfs::file::rules::create::{Disposition, OpenRequest, Options};
use latchfs::file::rules::ranges::{ByteRange, LockKind};
use latchfs::file::rules::{Access, Attributes, ShareMode, SharePath};
use latchfs::file::service::{Handle, Result, Share, Unlinked};
use latchfs::rules::{Client, Context, Owner};

use super::matrices::violates;
use super::player::{FreshShare, Op, Player, status};
use crate::common::names::ShareNames as _;

const SUCCESS: &str = "STATUS_SUCCESS";
const VIOLATION: &str = "STATUS_SHARING_VIOLATION";
const PENDING: &str = "STATUS_DELETE_PENDING";

/// A share with one file `f` that says `hello`.
struct World {
    fresh: FreshShare,
    who: Context,
}

fn path(text: &str) -> SharePath {
    SharePath::new(text).unwrap()
}

fn request(access: &str, share: &str) -> OpenRequest {
    OpenRequest::plain(Access::parse(access).unwrap(), ShareMode::parse(share).unwrap())
}

impl World {
    fn new() -> Self {
        let client = Client { session: 1, name: "test".into() };
        let who = Owner { client: Arc::new(client), pid: 0, program: None };
        let fresh = FreshShare::new();
        let who = Context::local(fresh.share().now(), who, "test");
        let world = Self { fresh, who };
        let h =
            world.make("f", OpenRequest { disposition: Disposition::Create, ..request("RW", "") });
        world.share().write(&h, 0, b"hello").unwrap();
        world.close(&h);
        world
    }

    fn share(&self) -> &Share {
        self.fresh.share()
    }

    fn open_as(&self, name: &str, request: &OpenRequest) -> Result<Handle> {
        self.share().open(&self.who, &path(name), request).map(|opened| opened.handle)
    }

    fn make(&self, name: &str, request: OpenRequest) -> Handle {
        self.open_as(name, &request).unwrap()
    }

    /// Opens `f`.
    fn open(&self, access: &str, share: &str) -> Result<Handle> {
        self.open_as("f", &request(access, share))
    }

    /// What an open of `f` is answered; it is closed again.
    fn try_open(&self, access: &str, share: &str) -> &'static str {
        self.try_open_as("f", &request(access, share))
    }

    fn try_open_as(&self, name: &str, request: &OpenRequest) -> &'static str {
        let answer = self.open_as(name, request);
        if let Ok(handle) = &answer {
            self.close(handle);
        }
        status(&answer)
    }

    fn close(&self, handle: &Handle) {
        self.share().close(handle).unwrap();
    }

    fn mark(&self, handle: &Handle, delete: bool) -> &'static str {
        status(&self.share().set_disposition(handle, delete))
    }

    /// Marks `f` through a handle of its own, closed again; `keeper` is what keeps it alive.
    fn pending(&self) -> Handle {
        let keeper = self.open("RWD", "RWD").unwrap();
        let deleter = self.open("D", "RWD").unwrap();
        assert_eq!(self.mark(&deleter, true), SUCCESS);
        self.close(&deleter);
        keeper
    }

    fn names(&self) -> Vec<String> {
        let listed = self.share().list(&SharePath::root(), None, usize::MAX).unwrap();
        listed.into_iter().map(|entry| entry.name).collect()
    }
}

/// What the second open of a fresh file is answered.
fn after(first: (&str, &str), second: (&str, &str)) -> &'static str {
    let world = World::new();
    world.open(first.0, first.1).unwrap();
    world.try_open(second.0, second.1)
}

#[test]
fn b001_a_reader_that_shares_write_and_a_writer_that_shares_read_get_along() {
    assert_eq!(after(("R", "W"), ("W", "R")), SUCCESS);
}

#[test]
fn b002_a_second_writer_is_refused_for_its_access() {
    assert_eq!(after(("W", "R"), ("W", "W")), VIOLATION);
}

#[test]
fn b003_a_second_writer_is_refused_for_its_share_mode() {
    assert_eq!(after(("W", "W"), ("W", "R")), VIOLATION);
}

#[test]
fn b004_share_none_refuses_a_reader_until_it_closes() {
    let world = World::new();
    let first = world.open("RW", "none").unwrap();
    assert_eq!(world.try_open("R", "RWD"), VIOLATION);
    world.close(&first);
    assert_eq!(world.try_open("R", "RWD"), SUCCESS);
}

#[test]
fn b005_an_attribute_only_open_does_not_deny() {
    assert_eq!(after(("none", "none"), ("RWD", "none")), SUCCESS);
}

#[test]
fn b006_an_attribute_only_open_is_not_denied() {
    assert_eq!(after(("R", "none"), ("none", "none")), SUCCESS);
}

#[test]
fn b007_readers_that_share_reading_all_get_in() {
    let world = World::new();
    for _ in 0..11 {
        world.open("R", "R").unwrap();
    }
}

#[test]
fn b008_a_reader_that_shares_reading_denies_deleting() {
    assert_eq!(after(("R", "R"), ("D", "RWD")), VIOLATION);
}

#[test]
fn b009_an_open_for_deleting_must_be_shared_by_those_who_come() {
    assert_eq!(after(("D", "R"), ("R", "R")), VIOLATION);
    assert_eq!(after(("D", "R"), ("R", "RD")), SUCCESS);
}

#[test]
fn b010_every_pair_of_opens_follows_the_symmetric_formula() {
    const SETS: [&str; 8] = ["", "R", "W", "D", "RW", "RD", "WD", "RWD"];
    let world = World::new();
    for (access1, share1) in SETS.iter().flat_map(|access| SETS.map(|share| (*access, share))) {
        let first = world.open(access1, share1).unwrap();
        for (access2, share2) in SETS.iter().flat_map(|access| SETS.map(|share| (*access, share))) {
            let refused = violates(access1, share1, access2, share2);
            let expected = if refused { VIOLATION } else { SUCCESS };
            let pair = format!("{access1} sharing {share1}, {access2} sharing {share2}");
            assert_eq!(world.try_open(access2, share2), expected, "{pair}");
        }
        world.close(&first);
    }
}

#[test]
fn b011_a_close_lifts_the_denial_of_that_open_alone() {
    let world = World::new();
    let _denies_writing = world.open("R", "RD").unwrap();
    let denies_deleting = world.open("R", "RW").unwrap();
    let _denies_nothing = world.open("R", "RWD").unwrap();
    assert_eq!([world.try_open("W", "RWD"), world.try_open("D", "RWD")], [VIOLATION; 2]);
    world.close(&denies_deleting);
    assert_eq!(world.try_open("D", "RWD"), SUCCESS);
    assert_eq!(world.try_open("W", "RWD"), VIOLATION);
}

#[test]
fn b012_a_path_in_another_case_is_the_same_file() {
    let world = World::new();
    let create = OpenRequest { disposition: Disposition::Create, ..request("RW", "none") };
    let directory = Options { directory: true, ..Options::default() };
    world.make("Dir", OpenRequest { options: directory, ..create });
    world.make("Dir/File.TXT", create);
    assert_eq!(world.try_open_as("dir/file.txt", &request("R", "RWD")), VIOLATION);
}

#[test]
fn b013_a_read_only_file_is_opened_for_reading_only() {
    let world = World::new();
    let create = OpenRequest {
        disposition: Disposition::Create,
        attributes: Attributes::READ_ONLY,
        ..request("R", "RWD")
    };
    world.make("ro", create);
    assert_eq!(world.try_open_as("ro", &request("W", "RWD")), "STATUS_ACCESS_DENIED");
    assert_eq!(world.try_open_as("ro", &request("R", "RWD")), SUCCESS);
}

#[test]
fn b014_the_opens_of_a_client_that_goes_away_end() {
    let world = World::new();
    let mut client = Player::new(world.share());
    let open = Op::Open {
        conn: "A".into(),
        h: "a".into(),
        name: "f".into(),
        access: "W".into(),
        share: "none".into(),
        disp: "OPEN".into(),
        opts: String::new(),
        attrs: None,
    };
    assert_eq!(client.step(&open).status, SUCCESS);
    assert_eq!(world.try_open("R", "RWD"), VIOLATION);
    assert_eq!(client.step(&Op::DropConnection { conn: "A".into() }).status, "-");
    assert_eq!(world.try_open("R", "none"), SUCCESS);
}

#[test]
fn b044_an_open_for_deleting_marks_nothing() {
    let world = World::new();
    let deleter = world.open("D", "RWD").unwrap();
    assert!(!world.share().standard(&deleter).unwrap().delete_pending);
    assert_eq!(world.try_open("R", "RWD"), SUCCESS);
    world.close(&deleter);
    assert_eq!(world.names(), ["f"]);
}

#[test]
fn b049_a_pending_file_refuses_new_opens_and_serves_those_it_has() {
    let world = World::new();
    let keeper = world.pending();
    assert_eq!([world.try_open("R", "RWD"), world.try_open("none", "RWD")], [PENDING; 2]);
    world.share().write(&keeper, 0, b"HE").unwrap();
    assert_eq!(world.share().read(&keeper, 0, 9).unwrap(), b"HEllo");
}

#[test]
fn b050_a_pending_name_cannot_be_created() {
    let world = World::new();
    let _keeper = world.pending();
    for disposition in Disposition::ALL {
        let expected = match disposition {
            Disposition::Create => "STATUS_OBJECT_NAME_COLLISION",
            _ => PENDING,
        };
        let create = OpenRequest { disposition, ..request("RW", "RWD") };
        assert_eq!(world.try_open_as("f", &create), expected, "{disposition:?}");
    }
}

#[test]
fn b051_a_mark_taken_back_leaves_an_ordinary_file() {
    let world = World::new();
    let keeper = world.pending();
    assert_eq!(world.mark(&keeper, false), SUCCESS);
    assert_eq!(world.try_open("R", "RWD"), SUCCESS);
    world.close(&keeper);
    assert_eq!(world.names(), ["f"]);
}

#[test]
fn b052_the_last_close_removes_a_pending_file_and_frees_its_name() {
    let world = World::new();
    let keeper = world.pending();
    assert_eq!(world.names(), ["f"]);
    world.close(&keeper);
    assert_eq!(world.names(), [""; 0]);
    assert_eq!(world.try_open("R", "RWD"), "STATUS_OBJECT_NAME_NOT_FOUND");
    let create = OpenRequest { disposition: Disposition::Create, ..request("R", "RWD") };
    assert_eq!(world.try_open_as("f", &create), SUCCESS);
}

fn delete_on_close() -> OpenRequest {
    let options = Options { delete_on_close: true, ..Options::default() };
    OpenRequest { options, ..request("D", "RWD") }
}

#[test]
fn b054_delete_on_close_marks_when_that_handle_closes() {
    let world = World::new();
    let deleter = world.make("f", delete_on_close());
    let other = world.open("R", "RWD").unwrap();
    assert!(!world.share().standard(&other).unwrap().delete_pending);
    world.close(&deleter);
    assert!(world.share().standard(&other).unwrap().delete_pending);
    assert_eq!(world.try_open("R", "RWD"), PENDING);
    world.close(&other);
    assert_eq!(world.names(), [""; 0]);
}

#[test]
fn b055_a_delete_on_close_handle_closed_by_force_leaves_the_file() {
    let world = World::new();
    let deleter = world.make("f", delete_on_close());
    assert_eq!(world.share().force_close(&world.who, deleter.id()).unwrap(), 1);
    assert_eq!(world.mark(&deleter, true), "STATUS_FILE_CLOSED");
    assert_eq!(world.try_open("RWD", "none"), SUCCESS);
    assert_eq!(world.names(), ["f"]);
}

#[test]
fn b056_who_does_not_share_deleting_keeps_the_file_from_becoming_pending() {
    let world = World::new();
    let reader = world.open("R", "RW").unwrap();
    assert_eq!(world.try_open("D", "RWD"), VIOLATION);
    assert_eq!(world.try_open_as("f", &delete_on_close()), VIOLATION);
    assert!(!world.share().standard(&reader).unwrap().delete_pending);
    assert_eq!(world.try_open("R", "RWD"), SUCCESS);
}

#[test]
fn b064_a_read_only_file_is_not_marked() {
    let world = World::new();
    let create = OpenRequest {
        disposition: Disposition::Create,
        attributes: Attributes::READ_ONLY,
        ..request("D", "RWD")
    };
    let handle = world.make("ro", create);
    assert_eq!(world.mark(&handle, true), "STATUS_CANNOT_DELETE");
    world.close(&handle);
    assert_eq!(world.names(), ["f", "ro"]);
}

#[test]
fn b065_a_directory_with_entries_is_not_marked() {
    let world = World::new();
    let create = OpenRequest { disposition: Disposition::Create, ..request("RD", "RWD") };
    let options = Options { directory: true, ..Options::default() };
    let directory = world.make("d", OpenRequest { options, ..create });
    let child = world.make("d/x", create);
    assert_eq!(world.mark(&directory, true), "STATUS_DIRECTORY_NOT_EMPTY");
    assert_eq!(world.mark(&child, true), SUCCESS);
    assert_eq!(world.mark(&directory, true), "STATUS_DIRECTORY_NOT_EMPTY", "pending, yet there");
    world.close(&child);
    assert_eq!(world.mark(&directory, true), SUCCESS);
}

#[test]
fn b067_unlink_by_name_marks_a_file_whose_opens_share_deleting() {
    let world = World::new();
    let unlink = || world.share().unlink(&world.who, &path("f"));
    let strict = world.open("R", "RW").unwrap();
    assert_eq!(status(&unlink()), VIOLATION);
    world.close(&strict);
    let lenient = world.open("R", "RWD").unwrap();
    assert_eq!(unlink().unwrap(), Unlinked::Pending);
    assert_eq!(world.try_open("R", "RWD"), PENDING);
    world.close(&lenient);
    assert_eq!(world.names(), [""; 0]);
}

#[test]
fn b068_rename_by_name_does_not_replace_an_open_file() {
    let world = World::new();
    let create = OpenRequest { disposition: Disposition::Create, ..request("R", "RWD") };
    let target = world.make("g", create);
    let rename = || world.share().rename(&world.who, &path("f"), &path("g"), true);
    assert_eq!(status(&rename()), "STATUS_ACCESS_DENIED");
    assert_eq!(world.names(), ["f", "g"]);
    world.close(&target);
    rename().unwrap();
    assert_eq!(world.names(), ["g"]);
}

#[test]
fn b125_two_owners_lock_one_file() {
    let world = World::new();
    let (one, other) = (world.open("RW", "RWD").unwrap(), world.open("RW", "RWD").unwrap());
    let lock = |handle, offset, length, kind| {
        let range = ByteRange::new(offset, length).unwrap();
        status(&world.share().lock(handle, &[(range, kind)]))
    };
    assert_eq!(lock(&one, 0, 10, LockKind::Exclusive), SUCCESS);
    assert_eq!(lock(&other, 9, 10, LockKind::Exclusive), "STATUS_LOCK_NOT_GRANTED");
    assert_eq!(lock(&other, 9, 10, LockKind::Shared), "STATUS_LOCK_NOT_GRANTED");
    assert_eq!(lock(&other, 10, 10, LockKind::Exclusive), SUCCESS, "adjacent");
    assert_eq!(lock(&one, 100, 10, LockKind::Shared), SUCCESS);
    assert_eq!(lock(&other, 105, 10, LockKind::Shared), SUCCESS, "both shared");
}
