//! The races: who meets whom on which file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use latchfs::file::rules::Denial;
use latchfs::file::rules::create::Disposition::{Create, Open, OpenIf, OverwriteIf, Supersede};
use latchfs::file::service::FileError;
use shuttle::thread;

use super::explore;
use super::world::{Held, Tally, World, ask, ask_delete_on_close, ask_directory};
use crate::common::asking::{caller, path};

fn at_once(world: &World, acts: &[fn(&World)]) {
    let threads: Vec<_> = acts
        .iter()
        .map(|&act| {
            let world = world.clone();
            thread::spawn(move || act(&world))
        })
        .collect();
    for thread in threads {
        thread.join().expect("an act of the scenario failed");
    }
}

fn open_and_close(world: &World, name: &str, access: &str, share: &str) {
    if let Some(held) = world.open("opener", name, &ask(access, share, OpenIf)) {
        world.close(held);
    }
}

fn some(count: &AtomicU64) -> bool {
    count.load(Ordering::Relaxed) > 0
}

fn both_ways(tally: &Tally) -> bool {
    some(&tally.granted) && some(&tally.refused)
}

#[test]
fn opens_that_exclude_each_other_are_never_granted_together() {
    let tally = explore("opens of one file", |world| {
        world.file("f");
        at_once(
            world,
            &[
                |world| open_and_close(world, "f", "r", "r"),
                |world| open_and_close(world, "f", "w", "none"),
                |world| open_and_close(world, "f", "rw", "rw"),
            ],
        );
    });
    assert!(both_ways(&tally), "{tally:?}");
}

#[test]
fn a_file_belongs_to_its_maker_before_anybody_else_meets_it() {
    let tally = explore("opens of a new file", |world| {
        at_once(
            world,
            &[
                |world| open_and_close(world, "new", "w", "none"),
                |world| open_and_close(world, "new", "r", "none"),
                |world| {
                    if let Some(held) = world.open("maker", "new", &ask("rw", "r", Create)) {
                        world.close(held);
                    }
                },
            ],
        );
        assert!(world.exists("new"));
    });
    assert!(both_ways(&tally), "{tally:?}");
}

#[test]
fn a_new_file_is_not_unlinked_or_renamed_from_under_its_maker() {
    let tally = explore("unlink and rename of a new file", |world| {
        world.file("other");
        at_once(
            world,
            &[
                |world| open_and_close(world, "new", "w", "rw"),
                |world| world.unlink("remover", "new"),
                |world| drop(world.rename("mover", "new", "moved")),
                |world| drop(world.rename("replacer", "other", "new")),
            ],
        );
    });
    assert!(some(&tally.removed) && some(&tally.renamed), "{tally:?}");
}

#[test]
fn a_name_goes_once_and_with_its_last_open() {
    let tally = explore("deleting", |world| {
        world.file("f");
        at_once(
            world,
            &[
                |world| world.unlink("remover", "f"),
                |world| open_and_close(world, "f", "r", "rwd"),
                |world| {
                    let request = ask_delete_on_close("r", "rwd", Open);
                    if let Some(held) = world.open("deleter", "f", &request) {
                        world.close(held);
                    }
                },
                |world| {
                    if let Some(held) = world.open("rival", "f", &ask("r", "rw", Open)) {
                        // Not shared for deletion: nobody takes it away.
                        world.check_alive(&held);
                        world.close(held);
                    }
                },
            ],
        );
    });
    assert!(some(&tally.removed) && some(&tally.granted), "{tally:?}");
}

#[test]
fn marks_unmarks_and_forced_closes_leave_nothing_behind() {
    let tally = explore("marks", |world| {
        world.file("f");
        let victim = world.open("victim", "f", &ask("rwd", "rwd", Open)).expect("alone");
        let id = victim.handle.id();
        let forcing = world.clone();
        let forcer = thread::spawn(move || {
            forcing.force_close(id);
            assert!(!forcing.force_close(id), "a handle is closed once");
        });
        at_once(
            world,
            &[
                |world| {
                    if let Some(held) = world.open("marker", "f", &ask("d", "rwd", Open)) {
                        world.dispose(&held, true);
                        world.dispose(&held, false);
                        world.dispose(&held, true);
                        world.close(held);
                    }
                },
                |world| match world.share.undelete(&caller("admin"), &path("f")) {
                    Ok(_) | Err(FileError::Denied(_)) => {}
                    Err(error) => panic!("{error}"),
                },
                |world| open_and_close(world, "f", "w", "rwd"),
            ],
        );
        forcer.join().expect("it is closed once");
        // Its place in the table, and its file's, may be somebody else's by now.
        let other = world.open("other", "f", &ask("w", "none", OpenIf));
        world.close(victim);
        let third = world.open("third", "f", &ask("r", "none", OpenIf));
        for held in other.into_iter().chain(third) {
            world.close(held);
        }
    });
    assert!(some(&tally.granted), "{tally:?}");
}

#[test]
fn a_closed_handle_ends_nobody_elses_open() {
    let tally = explore("reused places", |world| {
        world.file("f");
        // The file stays in the table, so that places in its list of opens are used again.
        let keeper = world.open("keeper", "f", &ask("r", "rwd", Open)).expect("alone");
        let victim = world.open("victim", "f", &ask("r", "rwd", Open)).expect("both share");
        let id = victim.handle.id();
        let (forcing, closing) = (world.clone(), world.clone());
        let threads = [
            thread::spawn(move || {
                forcing.force_close(id);
            }),
            thread::spawn(move || closing.close(victim)),
        ];
        at_once(
            world,
            &[
                |world| open_and_close(world, "f", "r", "rwd"),
                |world| open_and_close(world, "f", "r", "rd"),
            ],
        );
        for thread in threads {
            thread.join().expect("each ends the victim's open, or finds it ended");
        }
        world.close(keeper);
    });
    assert!(some(&tally.granted), "{tally:?}");
}

#[test]
fn a_rename_takes_the_opens_along_and_replaces_nothing_that_is_open() {
    let tally = explore("renames", |world| {
        world.file("a");
        world.file("b");
        at_once(
            world,
            &[
                |world| drop(world.rename("mover", "a", "b")),
                |world| open_and_close(world, "a", "rw", "rwd"),
                |world| open_and_close(world, "b", "r", "rw"),
                |world| world.unlink("remover", "b"),
            ],
        );
    });
    assert!(some(&tally.renamed) && some(&tally.removed), "{tally:?}");
}

#[test]
fn two_renames_that_cross_do_not_wait_for_each_other() {
    let tally = explore("crossing renames", |world| {
        world.directory("d");
        world.directory("e");
        world.file("d/a");
        world.file("e/b");
        at_once(
            world,
            &[
                |world| drop(world.rename("one", "d/a", "e/b")),
                |world| drop(world.rename("other", "e/b", "d/a")),
                |world| drop(world.rename("third", "d", "moved")),
            ],
        );
    });
    assert!(some(&tally.renamed), "{tally:?}");
}

#[test]
fn a_replacing_rename_does_not_stop_at_a_target_that_just_appeared() {
    explore("rename onto a name in the making", |world| {
        world.file("a");
        at_once(
            world,
            &[
                |world| match world.rename("mover", "a", "b") {
                    Ok(()) | Err(Denial::Open(_)) => {}
                    Err(denial) => panic!("{denial}"),
                },
                |world| open_and_close(world, "b", "r", "rwd"),
            ],
        );
    });
}

#[test]
fn a_directory_is_not_renamed_or_removed_under_those_below_it() {
    let tally = explore("directories", |world| {
        world.directory("d");
        at_once(
            world,
            &[
                |world| drop(world.rename("mover", "d", "e")),
                |world| world.rmdir("remover", "d"),
                |world| open_and_close(world, "d/f", "w", "none"),
                |world| {
                    if let Some(held) = world.open("maker", "d", &ask_directory(OpenIf)) {
                        world.close(held);
                    }
                },
            ],
        );
    });
    assert!(some(&tally.renamed) && some(&tally.removed), "{tally:?}");
}

#[test]
fn a_link_made_through_a_handle_is_a_name_of_its_file() {
    let tally = explore("links", |world| {
        world.file("f");
        let held = world.open("linker", "f", &ask("r", "rwd", Open)).expect("alone");
        let linking = world.clone();
        let linker = thread::spawn(move || {
            match linking.share.link_handle(&held.handle, &path("g"), false) {
                Ok(()) => {
                    let linked = linking.share.lookup(&path("g")).expect("just made");
                    assert_eq!(linked.stat.id, held.handle.file());
                }
                Err(FileError::Denied(Denial::NameTaken)) => {}
                Err(error) => panic!("{error}"),
            }
            linking.close(held);
        });
        at_once(
            world,
            &[
                |world| drop(world.rename("mover", "f", "elsewhere")),
                |world| open_and_close(world, "f", "w", "rwd"),
                |world| world.unlink("remover", "elsewhere"),
            ],
        );
        linker.join().expect("a handle can be linked");
    });
    assert!(some(&tally.removed) && some(&tally.renamed), "{tally:?}");
}

#[test]
fn every_waiting_lock_gets_one_answer() {
    explore("waiting for locks", |world| {
        world.file("f");
        let open = |who| world.open(who, "f", &ask("rw", "rwd", Open)).expect("all share");
        let (answers, waiting) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let lock_and_close = |held: Held, closes: bool| {
            let (world, answers) = (world.clone(), Arc::clone(&answers));
            let waiting = Arc::clone(&waiting);
            thread::spawn(move || {
                let waits = u64::from(world.lock_later(&held, &answers));
                waiting.fetch_add(waits, Ordering::Relaxed);
                if closes {
                    world.close(held);
                    return None;
                }
                Some(held)
            })
        };
        let victim = open("victim");
        let id = victim.handle.id();
        let threads = [
            lock_and_close(open("patient"), false),
            lock_and_close(open("hasty"), true),
            lock_and_close(victim, true),
        ];
        let forcing = world.clone();
        let forcer = thread::spawn(move || forcing.force_close(id));
        let left: Vec<_> =
            threads.into_iter().filter_map(|thread| thread.join().expect("locks")).collect();
        forcer.join().expect("forces");
        // The others are gone, so that the patient one has the lock, and was told.
        assert_eq!(answers.load(Ordering::Relaxed), waiting.load(Ordering::Relaxed));
        for held in left {
            world.close(held);
        }
        assert_eq!(answers.load(Ordering::Relaxed), waiting.load(Ordering::Relaxed));
    });
}

#[test]
fn overwriting_is_kept_apart_like_writing() {
    let tally = explore("overwriting", |world| {
        world.file("f");
        at_once(
            world,
            &[
                |world| {
                    if let Some(held) = world.open("cutter", "f", &ask("w", "r", OverwriteIf)) {
                        world.close(held);
                    }
                },
                |world| {
                    if let Some(held) = world.open("replacer", "f", &ask("rwd", "rwd", Supersede)) {
                        world.dispose(&held, true);
                        world.close(held);
                    }
                },
                |world| open_and_close(world, "f", "r", "r"),
            ],
        );
    });
    assert!(both_ways(&tally), "{tally:?}");
}
