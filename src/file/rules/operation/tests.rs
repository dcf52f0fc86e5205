//! The tables of docs/semantics.md ("REST operations against opens") in `share_modes.txt`, and all
//! other columns of the demands.

use std::collections::HashSet;

use super::super::{Access, ShareMode};
use super::{Check, FileOperation, LeaseDemand, RangeDemand};

/// The columns beside access and share.
const OTHER_COLUMNS: &str = "
operation                                | pending | lease | copy | read-only | ranges  | handles
GetFileProperties                        | x       | read  | -    | -         | -       | -
GetFile                                  | x       | read  | -    | -         | overlap | -
ListRanges                               | x       | read  | -    | -         | -       | -
SetFileProperties                        | x       | write | x    | x         | -       | -
SetFileProperties attributes             | x       | write | x    | -         | -       | -
SetFileProperties resize                 | x       | write | x    | x         | any     | -
SetFileProperties resize attributes      | x       | write | x    | -         | any     | -
SetFileMetadata                          | x       | write | x    | x         | -       | -
PutRange                                 | x       | write | x    | x         | any     | -
ClearRange                               | x       | write | x    | x         | any     | -
CreateFileNew                            | x       | write | -    | -         | -       | -
CreateFileOver                           | x       | write | x    | x         | any     | -
DeleteFile                               | x       | write | x    | x         | -       | on it
CopySource                               | x       | -     | -    | -         | overlap | -
CopyDestinationOver                      | x       | write | x    | x         | any     | -
CopyDestinationOver ignore_read_only     | x       | write | x    | -         | any     | -
CopyStep                                 | x       | write | -    | -         | any     | -
AbortCopy                                | x       | write | -    | -         | -       | -
LeaseAcquire                             | x       | -     | x    | -         | -       | -
LeaseOther                               | x       | -     | x    | -         | -       | -
RenameSource                             | x       | write | x    | -         | -       | -
RenameTarget                             | x       | write | x    | x         | -       | on it
RenameTarget ignore_read_only            | x       | write | x    | -         | -       | on it
RenameDirectory                          | x       | -     | -    | -         | -       | below
CreateDirectory                          | x       | -     | -    | -         | -       | -
DeleteDirectory                          | x       | -     | -    | x         | -       | on it
GetDirectoryProperties                   | x       | -     | -    | -         | -       | -
SetDirectoryProperties                   | x       | -     | -    | -         | -       | -
SetDirectoryMetadata                     | x       | -     | -    | -         | -       | -
";

/// The lines of a table in `share_modes.txt`, below a heading that begins so.
fn share_modes(heading: &str) -> &'static str {
    let all = include_str!("share_modes.txt");
    let section = all.split("\n## ").find(|section| section.starts_with(heading)).expect(heading);
    section.split_once('\n').expect("a table below the heading").1
}

fn rows(table: &str) -> impl Iterator<Item = Vec<&str>> {
    table.trim().lines().map(|line| line.split('|').map(str::trim).collect())
}

/// The operations a column of that table speaks for.
fn column(name: &str) -> Vec<FileOperation> {
    use FileOperation as O;
    match name {
        "Create" => vec![O::CreateFileOver, O::CopyDestinationOver { ignore_read_only: false }],
        "Get" => vec![O::GetFile, O::CopySource],
        "Ranges" => vec![O::ListRanges],
        "Put" => vec![O::PutRange, O::ClearRange],
        "Props" => [(false, false), (false, true), (true, false), (true, true)]
            .map(|(resize, attributes)| O::SetFileProperties { resize, attributes })
            .into(),
        "Meta" => vec![O::SetFileMetadata],
        "Delete" => vec![O::DeleteFile, O::RenameTarget { ignore_read_only: false }],
        "Lease" => vec![O::LeaseAcquire],
        "Look" => vec![O::GetFileProperties],
        other => panic!("no column {other}"),
    }
}

/// Share modes against one handle, and operations that no handle of any kind allows.
fn answer(operation: FileOperation, handle: Access, share: ShareMode) -> &'static str {
    let demands = operation.demands();
    let both_count = !handle.is_empty() && !demands.access.is_empty();
    let tolerated = demands.access.allowed_by(share) && handle.allowed_by(demands.share);
    if demands.no_open_handles || both_count && !tolerated { "x" } else { "ok" }
}

#[test]
fn one_handle_refuses_by_its_share_set_as_in_the_table() {
    let mut table = rows(share_modes("by the share mode"));
    let columns = table.next().unwrap();
    let mut cells = 0;
    for row in table {
        let share = ShareMode::parse(row[0]).unwrap();
        for (name, expected) in columns.iter().zip(&row).skip(1) {
            for operation in column(name) {
                let answer = answer(operation, Access::R, share);
                assert_eq!(answer, *expected, "{operation:?} against share {share}");
            }
            cells += 1;
        }
    }
    assert_eq!(cells, 8 * 9);
}

#[test]
fn the_access_of_a_handle_matters_only_to_a_lease() {
    for name in ["Create", "Get", "Ranges", "Put", "Props", "Meta", "Delete", "Look"] {
        for operation in column(name) {
            for share in ShareMode::ALL {
                let by_reader = answer(operation, Access::R, share);
                for access in Access::ALL.into_iter().filter(|access| !access.is_empty()) {
                    assert_eq!(answer(operation, access, share), by_reader, "{operation:?}");
                }
            }
        }
    }
}

#[test]
fn a_lease_is_acquired_against_readers_only() {
    let table = share_modes("by the access");
    for row in rows(table).skip(1) {
        let access = Access::parse(row[0]).unwrap();
        let answer = answer(FileOperation::LeaseAcquire, access, ShareMode::RWD);
        assert_eq!(answer, row[1], "against access {access}");
    }
    assert_eq!(rows(table).count(), 1 + 8);
}

#[test]
fn an_attribute_only_handle_stops_nothing_but_what_wants_no_handle() {
    for operation in FileOperation::ALL {
        let expected = if operation.demands().no_open_handles { "x" } else { "ok" };
        assert_eq!(answer(operation, Access::NONE, ShareMode::NONE), expected, "{operation:?}");
    }
}

#[test]
fn every_operation_shares_everything_except_a_lease() {
    for operation in FileOperation::ALL {
        let lease = operation == FileOperation::LeaseAcquire;
        let expected = if lease { ShareMode::R } else { ShareMode::RWD };
        assert_eq!(operation.demands().share, expected, "{operation:?}");
    }
}

#[test]
fn access_outside_the_share_table_is_as_listed() {
    use FileOperation as O;
    for (operation, access) in [
        (O::CreateFileNew, ""),
        (O::CopyStep, "w"),
        (O::AbortCopy, "w"),
        (O::LeaseOther, ""),
        (O::RenameSource, "d"),
        (O::RenameDirectory, "d"),
        (O::CreateDirectory, ""),
        (O::DeleteDirectory, "d"),
        (O::GetDirectoryProperties, ""),
        (O::SetDirectoryProperties, "w"),
        (O::SetDirectoryMetadata, "w"),
    ] {
        assert_eq!(Some(operation.demands().access), Access::parse(access), "{operation:?}");
    }
}

/// The name of the variant, then its flags that are set.
fn name(operation: FileOperation) -> String {
    let debug = format!("{operation:?}").replace(['{', '}', ','], " ");
    let words: Vec<_> = debug.split_whitespace().collect();
    let flags = words[1..].chunks(2).filter(|pair| pair[1] == "true");
    let flags = flags.map(|pair| pair[0].trim_end_matches(':'));
    [words[0]].into_iter().chain(flags).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_other_columns_are_as_listed_for_every_operation() {
    let mark = |refused| if refused { "x" } else { "-" };
    let mut found = Vec::new();
    for operation in FileOperation::ALL {
        let demands = operation.demands();
        found.push(vec![
            name(operation),
            mark(demands.refused_while_pending).to_owned(),
            match demands.lease {
                LeaseDemand::None => "-",
                LeaseDemand::ReadCondition => "read",
                LeaseDemand::Write => "write",
            }
            .to_owned(),
            mark(demands.refused_by_pending_copy).to_owned(),
            mark(demands.refused_if_read_only).to_owned(),
            match demands.ranges {
                RangeDemand::None => "-",
                RangeDemand::ReadOverlap => "overlap",
                RangeDemand::AnyLock => "any",
            }
            .to_owned(),
            match (demands.no_open_handles, demands.no_handles_below) {
                (false, false) => "-",
                (true, false) => "on it",
                (false, true) => "below",
                (true, true) => "on it and below",
            }
            .to_owned(),
        ]);
    }
    let listed: Vec<_> = rows(OTHER_COLUMNS).skip(1).collect();
    for (found, listed) in found.iter().zip(&listed) {
        assert_eq!(found, listed);
    }
    assert_eq!(found.len(), listed.len());
}

/// The variants as the source declares them: the compiler cannot say that a list is complete.
fn declared() -> HashSet<&'static str> {
    let (_, from) = include_str!("mod.rs").split_once("pub enum FileOperation {\n").unwrap();
    let (body, _) = from.split_once("\n}").unwrap();
    let variants = body.lines().filter_map(|line| line.strip_prefix("    "));
    let variants = variants.filter(|line| line.starts_with(char::is_uppercase));
    variants.map(|line| line.trim_end_matches([',', '{', ' '])).collect()
}

#[test]
fn every_operation_is_in_the_list_once() {
    let distinct: HashSet<_> = FileOperation::ALL.into_iter().collect();
    assert_eq!(distinct.len(), FileOperation::ALL.len());
    let names = FileOperation::ALL.map(name);
    let listed: HashSet<_> = names.iter().filter_map(|name| name.split(' ').next()).collect();
    assert_eq!(listed, declared());
    assert_eq!(listed.len(), 24);
}

#[test]
fn checks_are_made_in_the_documented_order() {
    let order = Check::ORDER.map(|check| format!("{check:?}")).join(" > ");
    assert_eq!(order, "DeletePending > Lease > PendingCopy > ReadOnly > ShareModes > ByteRanges");
}
