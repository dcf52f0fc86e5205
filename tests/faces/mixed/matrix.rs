//! The whole table: one handle of each access and share mode against every REST operation on the
//! file. What is expected is written out by class of operation.

use std::fs;

use crate::common::calls::Call;
use crate::common::meeting::{Meeting, SETS, Subject};

/// What a class of operations asks of the handles of others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    Looks,
    /// That they share R.
    Reads,
    /// That they share W.
    Writes,
    /// That they share W and D.
    Replaces,
    /// That they share D.
    Moves,
    /// That there are none.
    Removes,
    /// That they share everything, and neither write nor delete.
    Leases,
}

/// Every operation, by class and in the order they are tried: what may change the file for the
/// next comes late.
const CLASSES: [(Class, &[Call]); 7] = [
    (Class::Looks, &[Call::Head, Call::Metadata, Call::ListHandles, Call::ForceClose]),
    // On a file without a lease: refused, by the lease and not by the handle.
    (Class::Looks, &[Call::Change, Call::Release, Call::Break]),
    (Class::Reads, &[Call::Get, Call::Ranges, Call::PutFrom, Call::CopyFrom]),
    (
        Class::Writes,
        &[
            Call::Put,
            Call::Clear,
            Call::PutOnto,
            Call::SetHeaders,
            Call::SetAttributes,
            Call::Resize,
            Call::SetMetadata,
            Call::Abort,
        ],
    ),
    (Class::Replaces, &[Call::Create, Call::CopyOnto]),
    (Class::Removes, &[Call::Delete, Call::RenameOnto]),
    (Class::Leases, &[Call::Acquire]),
];

/// Last, as the file is elsewhere afterwards.
const MOVES: [Call; 1] = [Call::RenameFrom];

/// What a handle that counts lets through by its share mode; `x` is a violation.
/// The columns are Reads, Writes, Replaces, Moves.
const SHARED: [(&str, [char; 4]); 8] = [
    ("none", ['x', 'x', 'x', 'x']),
    ("r", ['+', 'x', 'x', 'x']),
    ("w", ['x', '+', 'x', 'x']),
    ("d", ['x', 'x', 'x', '+']),
    ("rw", ['+', '+', 'x', 'x']),
    ("rd", ['+', 'x', 'x', '+']),
    ("wd", ['x', '+', '+', '+']),
    ("rwd", ['+', '+', '+', '+']),
];

fn lets_through(class: Class, access: &str, share: &str) -> bool {
    let (_, columns) = SHARED.iter().find(|(row, _)| *row == share).unwrap();
    // 1.4: an attribute-only handle denies nothing; it is a handle all the same.
    let column = |place: usize| access == "none" || columns[place] == '+';
    match class {
        Class::Looks => true,
        Class::Reads => column(0),
        Class::Writes => column(1),
        Class::Replaces => column(2),
        Class::Moves => column(3),
        Class::Removes => false,
        // 2.4: by the access if the share mode is full, and by the share mode in 2.3.
        Class::Leases => access == "none" || (access, share) == ("r", "rwd"),
    }
}

/// What the call is answered once nothing stands in its way.
fn unhindered(call: Call) -> &'static str {
    match call {
        Call::Change | Call::Release | Call::Break => "LeaseNotPresentWithLeaseOperation",
        Call::Abort => "NoPendingCopyOperation",
        _ => "ok",
    }
}

/// One call against one handle: the answer, and that a refusal has changed nothing.
fn check(file: &Subject<'_>, (access, share): (&str, &str), class: Class, call: Call) {
    let through = lets_through(class, access, share);
    let before = (!through).then(|| file.etag());
    let got = file.call(call);
    let seen = if got.status == call.done() { "ok" } else { got.code() };
    let wanted = if through { unhindered(call) } else { "SharingViolation" };
    assert_eq!(seen, wanted, "{call:?} against open({access}; {share}): {}", got.text());
    if let Some(before) = before {
        assert_eq!(got.status, 409, "{call:?}");
        assert_eq!(file.etag(), before, "{call:?} against open({access}; {share})");
    }
    if call == Call::Acquire && through {
        file.answers("ok", &[Call::Break]);
    }
}

fn each_access(name: &str, test: impl Fn(&Meeting, &str, &str)) {
    let Some(at) = Meeting::start() else { return };
    at.directory(name);
    for access in SETS {
        for share in SETS {
            test(&at, access, share);
        }
    }
}

#[test]
fn every_operation_has_its_class() {
    let all = CLASSES.iter().flat_map(|(_, calls)| *calls).chain(&MOVES);
    let mut missing = Call::ASKING.to_vec();
    missing.extend([Call::ListHandles, Call::ForceClose]);
    for call in all {
        let place = missing.iter().position(|other| other == call);
        missing.remove(place.unwrap_or_else(|| panic!("{call:?} is twice in the table")));
    }
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_handle_meets_every_operation_on_its_file() {
    each_access("matrix", |at, access, share| {
        let file = at.file(&format!("matrix/{access}-{share}"));
        let holder = file.open(access, share);
        for (class, calls) in CLASSES {
            for call in calls {
                check(&file, (access, share), class, *call);
            }
        }
        check(&file, (access, share), Class::Moves, MOVES[0]);
        holder.close();
    });
}

// On a leased file there are handles for reading and for attributes only, whatever they share.
#[test]
fn no_handle_meets_the_lease_s_own_actions() {
    each_access("matrix-leased", |at, access, share| {
        let file = at.file(&format!("matrix-leased/{access}-{share}"));
        file.call(Call::Acquire).is(201);
        if !["none", "r"].contains(&access) {
            assert_eq!(file.open_errno(access, share), libc::EBUSY, "open({access}; {share})");
            return;
        }
        let _holder = file.open(access, share);
        file.answers("ok", &[Call::Change, Call::Break]);
    });
}

#[test]
fn every_handle_meets_every_operation_on_its_directory() {
    each_access("matrix-dirs", |at, access, share| {
        let directory = at.directory(&format!("matrix-dirs/{access}-{share}"));
        let holder = directory.open(access, share);
        check_directory(&directory, (access, share));
        holder.close();
    });
}

/// Class, method, target, headers, and the status of success.
type Row<'a> = (Class, &'a str, String, &'a [(&'a str, &'a str)], u16);

fn check_directory(directory: &Subject<'_>, (access, share): (&str, &str)) {
    let (at, target) = (directory.at, directory.target());
    let url = at.url(&directory.name);
    let renamed = directory.beside("-new").target();
    let file = [("x-ms-type", "file"), ("x-ms-content-length", "0")];
    let rows: [Row<'_>; 10] = [
        (Class::Looks, "GET", format!("{target}?restype=directory"), &[], 200),
        (Class::Looks, "GET", format!("{target}?restype=directory&comp=metadata"), &[], 200),
        (Class::Looks, "GET", format!("{target}?restype=directory&comp=list"), &[], 200),
        (Class::Looks, "GET", format!("{target}?comp=listhandles"), &[], 200),
        (
            Class::Writes,
            "PUT",
            format!("{target}?restype=directory&comp=properties"),
            &[("x-ms-file-attributes", "Directory")],
            200,
        ),
        (
            Class::Writes,
            "PUT",
            format!("{target}?restype=directory&comp=metadata"),
            &[("x-ms-meta-a", "1")],
            200,
        ),
        (Class::Removes, "DELETE", format!("{target}?restype=directory"), &[], 202),
        // A new name asks nothing of those who have its directory open.
        (Class::Looks, "PUT", format!("{target}/file"), &file, 201),
        (Class::Looks, "PUT", format!("{target}/sub?restype=directory"), &[], 201),
        (
            Class::Moves,
            "PUT",
            format!("{renamed}?restype=directory&comp=rename"),
            &[("x-ms-file-rename-source", &url)],
            200,
        ),
    ];
    for (class, method, target, headers, done) in rows {
        let got = at.ask(method, &target, headers, b"");
        if lets_through(class, access, share) {
            assert_eq!(got.status, done, "{method} {target}: {}", got.text());
        } else {
            got.refused(409, "SharingViolation");
        }
    }
}

#[test]
fn no_handle_meets_the_share_or_its_snapshots() {
    let Some(at) = Meeting::alone(&[]) else { return };
    let cells = || SETS.iter().flat_map(|access| SETS.map(|share| (*access, share)));
    let file = |(access, share): (&str, &str)| format!("{access}-{share}");
    for cell in cells() {
        fs::write(at.path(&file(cell)), "then").unwrap();
    }
    let got = at.put("/share?restype=share&comp=snapshot", &[]).is(201);
    let snapshot = got.header("x-ms-snapshot").replace(':', "%3A");
    for cell in cells() {
        let name = file(cell);
        at.wait_idle(&name);
        let holder = at.named(&name).open(cell.0, cell.1);
        let live = format!("/share/{name}");
        assert_eq!(at.get(&format!("{live}?sharesnapshot={snapshot}")).is(200).text(), "then");
        at.head(&format!("{live}?sharesnapshot={snapshot}")).is(200);
        at.get(&format!("{live}?comp=rangelist&sharesnapshot={snapshot}")).is(200);
        for look in ["", "&comp=metadata", "&comp=acl", "&comp=stats"] {
            at.get(&format!("/share?restype=share{look}")).is(200);
        }
        at.put("/share?restype=share&comp=metadata", &[("x-ms-meta-a", "1")]).is(200);
        assert!(at.listing("").contains(&name));
        holder.close();
    }
}
