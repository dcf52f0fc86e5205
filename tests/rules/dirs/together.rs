//! All of it at once on a few names: nobody waits for ever, and nothing is left behind.

use std::sync::mpsc;
use std::time::Duration;

use latchfs::file::service::{
    CopyOptions, Metadata, PAGE_MAX, PageOptions, PropertyChanges, RestRename, WhichHandles,
};

use crate::common::names::ShareNames as _;
use crate::dirs::fixture::{Fixture, asking, caller, copy_file, path};

const ROUNDS: u32 = 300;
const NAMES: [&str; 6] = ["a", "b", "dir/a", "dir/b", "dir", "dir/sub"];

/// One operation of many, picked by number. Any answer will do: who wins is others' business.
fn act(it: &Fixture, number: u32) {
    let (share, who) = (it.share(), caller("rest"));
    let pick = |number: u32| path(NAMES[number as usize % NAMES.len()]);
    let (one, other) = (pick(number / 9), pick(number / 9 + number / 54 + 1));
    let options = CopyOptions { id: number.to_string(), ..CopyOptions::default() };
    let all = PageOptions { prefix: "", after: None, limit: PAGE_MAX, smb: true, pending: false };
    let rename =
        RestRename { directory: number.is_multiple_of(2), replace: true, ..RestRename::default() };
    match number % 9 {
        0 => drop(share.rest_rename(&who, &one, &other, &rename)),
        1 => drop(share.exchange(&who, &one, &other)),
        2 => {
            drop(copy_file(share, asking(&who), (share, &one), &other, &options));
        }
        3 => drop(share.delete_directory(&who, &one)),
        4 => {
            let (properties, metadata) = (PropertyChanges::default(), Metadata::default());
            drop(share.create_directory(&who, &one, &properties, &metadata));
        }
        5 => drop(share.list_page(&one, all)),
        6 => drop(share.rename(&who, &one, &other, true)),
        7 => drop(share.force_close_handles(&who, &path(""), WhichHandles::All, true)),
        _ => drop(share.unlink(&who, &one)),
    }
}

#[test]
fn operations_on_the_same_names_do_not_wait_for_each_other_for_ever() {
    let (done, waiting) = mpsc::channel();
    std::thread::spawn(move || {
        let it = Fixture::new();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let it = &it;
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let number = (round * 4 + thread).wrapping_mul(0x9E37_79B1) >> 8;
                        it.file_if_possible(NAMES[round as usize % 4]);
                        act(it, number);
                    }
                });
            }
        });
        done.send(it.share().files_in_use()).unwrap();
    });
    let in_use = waiting.recv_timeout(Duration::from_mins(2)).expect("they wait for each other");
    assert_eq!(in_use, 0, "no file is in use once nobody acts");
}
