//! Through a real mount.
use latchfs::engine::*;
use latchfs::fuse::*;
use std::fs;
use std::io::{Read, Write};
use std::sync::Arc;

#[test]
fn first() {
    let tmp = tempfile::tempdir().unwrap();
    let (root, state, mnt) =
        (tmp.path().join("root"), tmp.path().join("state"), tmp.path().join("mnt"));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&mnt).unwrap();
    let share = Arc::new(
        Share::open_directory(
            "s",
            &root,
            &state,
            ShareOptions::default(),
            Arc::new(SystemClock),
            Arc::new(EventLog::default()),
        )
        .unwrap(),
    );
    let _ = env_logger::builder().filter_level(log::LevelFilter::Debug).is_test(false).try_init();
    let mut mount = Mount::start(Arc::clone(&share), &mnt, MountOptions::default()).unwrap();
    fs::write(mnt.join("a.txt"), "hello").unwrap();
    assert_eq!(fs::read_to_string(root.join("a.txt")).unwrap(), "hello");
    assert_eq!(fs::read_to_string(mnt.join("A.TXT")).unwrap(), "hello");
    fs::create_dir(mnt.join("d")).unwrap();
    fs::write(mnt.join("d/x"), "1").unwrap();
    let names: Vec<_> =
        fs::read_dir(mnt.join("d")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["x"]);
    let mut f = fs::File::open(mnt.join("d/x")).unwrap();
    fs::remove_file(mnt.join("d/x")).unwrap();
    assert!(mnt.join("d/x").exists());
    assert_eq!(fs::File::open(mnt.join("d/x")).unwrap_err().raw_os_error(), Some(16));
    let mut s = String::new();
    f.read_to_string(&mut s).unwrap();
    drop(f);
    assert!(!mnt.join("d/x").exists());
    fs::remove_dir(mnt.join("d")).unwrap();
    fs::rename(mnt.join("a.txt"), mnt.join("b.txt")).unwrap();
    let mut g = fs::OpenOptions::new().append(true).open(mnt.join("b.txt")).unwrap();
    g.write_all(b" world").unwrap();
    assert_eq!(fs::read_to_string(root.join("b.txt")).unwrap(), "hello world");
    drop(g);
    mount.unmount().unwrap();
    assert_eq!(share.files_in_use(), 0);
}
