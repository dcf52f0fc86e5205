//! Making, reading and removing directories.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::{DirEntryExt, MetadataExt};

use serde_json::json;

use crate::mount::fixture::{Fixture, errno, rounds, soon};
use crate::mount::program::Program;

#[test]
fn five_thousand_names_are_listed_once_each() {
    let Some(at) = Fixture::start() else { return };
    let names: HashSet<String> = (0..5000).map(|n| format!("name-{n:05}")).collect();
    for name in &names {
        fs::write(at.root.join(name), name).unwrap();
    }
    let listed: Vec<_> = fs::read_dir(&at.mnt).unwrap().map(|entry| entry.unwrap()).collect();
    assert_eq!(listed.len(), 5000);
    let seen: HashSet<String> =
        listed.iter().map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert!(seen == names);
    // With attributes, as `ls -l` reads.
    assert!(listed.iter().all(|entry| entry.metadata().unwrap().len() == 10));
}

#[test]
fn a_reader_goes_on_from_any_place_it_remembers() {
    let Some(at) = Fixture::start() else { return };
    let Some(mut program) = Program::start(&at.mnt) else { return };
    for n in 0..500 {
        fs::write(at.root.join(format!("n{n}")), "").unwrap();
    }
    program.ok("libc = ctypes.CDLL(None, use_errno=True)\n\
         libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p\n\
         libc.telldir.restype = ctypes.c_long\n\
         d = ctypes.c_void_p(libc.opendir(b'.'))\n\
         def step():\n\
         \x20   e = libc.readdir(d)\n\
         \x20   return ctypes.string_at(e + 19).decode() if e else None\n\
         seen, places = [], []\n\
         while True:\n\
         \x20   places.append(libc.telldir(d))\n\
         \x20   name = step()\n\
         \x20   if name is None: break\n\
         \x20   seen.append(name)\n\
         libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]\n\
         wrong = []\n\
         for i in range(0, len(seen), 37):\n\
         \x20   libc.seekdir(d, places[i])\n\
         \x20   if step() != seen[i]: wrong.append(i)\n");
    assert_eq!(program.ok("len(seen)"), json!(502));
    assert_eq!(program.ok("len(set(seen))"), json!(502));
    assert_eq!(program.ok("wrong"), json!([]));
    fs::write(at.root.join("new"), "").unwrap();
    program.ok("libc.rewinddir(d)");
    assert_eq!(program.ok("sum(1 for _ in iter(step, None))"), json!(503));
}

#[test]
fn a_listing_shows_the_numbers_that_stat_shows() {
    let Some(at) = Fixture::start() else { return };
    for n in 0..500 {
        let name = at.root.join(format!("n{n:03}"));
        fs::write(&name, "").unwrap();
        if n % 2 == 0 {
            fs::hard_link(name, at.root.join(format!("n{n:03}-too"))).unwrap();
        }
    }
    let looked_at: HashMap<_, _> = fs::read_dir(&at.root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .map(|name| (name.clone(), fs::metadata(at.mnt.join(name)).unwrap().ino()))
        .collect();
    // Only the first page comes with attributes: nobody asks for them meanwhile.
    let listed: Vec<_> = fs::read_dir(&at.mnt).unwrap().map(|entry| entry.unwrap()).collect();
    assert_eq!(listed.len(), 750);
    // Of a second name a listing with attributes shows a number that no file has.
    for entry in listed {
        let (name, seen) = (entry.file_name(), looked_at[&entry.file_name()]);
        let linked = fs::metadata(at.root.join(&name)).unwrap().nlink() > 1;
        let fits = entry.ino() == seen || linked && entry.ino() > 1 << 62;
        assert!(fits, "{name:?} is listed as {}, and is {seen}", entry.ino());
        assert_eq!(seen, fs::metadata(at.root.join(&name)).unwrap().ino(), "{name:?}");
    }
}

#[test]
fn a_directory_can_be_emptied_while_it_is_read() {
    let Some(at) = Fixture::start() else { return };
    for n in 0..1500 {
        fs::write(at.root.join(format!("n{n}")), "").unwrap();
    }
    let mut removed = 0;
    for entry in fs::read_dir(&at.mnt).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
        removed += 1;
    }
    assert_eq!(removed, 1500);
    assert_eq!(fs::read_dir(&at.mnt).unwrap().count(), 0);
}

#[test]
fn a_whole_tree_can_be_made_and_removed() {
    let Some(at) = Fixture::start() else { return };
    for dir in 0..8 {
        for file in 0..20 {
            fs::create_dir_all(at.path(&format!("t/{dir}/sub"))).unwrap();
            fs::write(at.path(&format!("t/{dir}/sub/{file}")), "x").unwrap();
        }
    }
    fs::remove_dir_all(at.path("t")).unwrap();
    assert!(!at.root.join("t").exists());
}

#[test]
fn a_directory_goes_right_after_its_last_file_was_removed_while_open() {
    let Some(at) = Fixture::start() else { return };
    for round in 0..rounds(300) {
        fs::create_dir(at.path("d")).unwrap();
        let file = fs::File::create(at.path("d/f")).unwrap();
        fs::remove_file(at.path("d/f")).unwrap();
        drop(file);
        assert_eq!(errno(fs::remove_dir(at.path("d"))), 0, "round {round}");
    }
}

#[test]
fn a_directory_moves_right_after_what_is_below_it_was_closed() {
    let Some(at) = Fixture::start() else { return };
    fs::create_dir_all(at.path("a/sub")).unwrap();
    fs::write(at.path("a/sub/f"), "").unwrap();
    let mut names = ["a", "b"];
    for round in 0..rounds(300) {
        let [from, to] = names;
        drop(fs::File::open(at.path(&format!("{from}/sub/f"))).unwrap());
        assert_eq!(fs::read_dir(at.path(&format!("{from}/sub"))).unwrap().count(), 1);
        assert_eq!(errno(fs::rename(at.path(from), at.path(to))), 0, "round {round}");
        names = [to, from];
    }
}

#[test]
fn the_working_directory_that_was_removed_is_not_found() {
    let Some(at) = Fixture::start() else { return };
    let Some(mut program) = Program::start(&at.mnt) else { return };
    program.ok("os.mkdir('d'); os.chdir('d'); os.rmdir('../d')");
    let gone = |program: &mut Program| program.run("os.stat('.')") == Err(libc::ENOENT);
    // The kernel may know its attributes for a moment.
    soon("it is gone", || gone(&mut program));
    assert_eq!(program.fails("os.open('f', os.O_CREAT)"), libc::ENOENT);
}

#[test]
fn a_tree_deeper_than_a_path_is_long_is_made_used_moved_and_removed() {
    let Some(at) = Fixture::start() else { return };
    let Some(mut program) = Program::start(&at.mnt) else { return };
    program.ok("deep = 'd' * 200; top = os.open('.', os.O_RDONLY)");
    program.ok("for _ in range(15): os.mkdir(deep); os.chdir(deep)");
    program.ok("os.fchdir(top); os.mkdir('below'); os.chdir('below')");
    program.ok("for _ in range(15): os.mkdir(deep); os.chdir(deep)");
    program.ok("with open('file', 'w') as f: f.write('text')");
    // Both halves can be named; together they are longer than any path.
    program.ok("os.fchdir(top); inner = '/'.join([deep] * 15)");
    program.ok("os.rename('below', inner + '/below')");
    program.ok("os.chdir(inner); os.chdir('below/' + '/'.join([deep] * 10))");
    program.ok("os.chdir('/'.join([deep] * 5))");
    assert_eq!(program.ok("open('file').read()"), serde_json::json!("text"));
    program.ok("with open('more', 'w') as f: f.write('more')");
    assert_eq!(program.ok("sorted(os.listdir('.'))"), serde_json::json!(["file", "more"]));
    program.ok("os.fchdir(top); import shutil; shutil.rmtree(deep)");
    assert_eq!(program.ok("os.listdir('.')"), serde_json::json!([]));
}
