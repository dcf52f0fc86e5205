//! The shell and the small tools: redirections, mv, install, ln, truncate, dd.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use crate::programs::desk::{Desk, noise, ready};

#[test]
fn redirections_heredocs_and_pipes_write_what_they_say() {
    if !ready(&["bash"]) {
        return;
    }
    let desk = Desk::new();
    desk.sh("echo one > f; echo two >> f; cat <<END > heredoc
line $((1 + 1))
END
seq 100000 | sort -rn > sorted; sort -n sorted -o sorted
exec 3<> both; echo written >&3; exec 3>&-
set -C; (echo no > f) 2> refused && exit 1; set +C
echo fresh >| f; : > empty; cat f heredoc > joined; tee copy < joined > /dev/null
while read -r line; do echo \"<$line>\"; done < joined > quoted");
    let read = |name: &str| fs::read_to_string(desk.behind(name)).unwrap();
    assert_eq!(read("f"), "fresh\n");
    assert_eq!(read("heredoc"), "line 2\n");
    assert_eq!(read("both"), "written\n");
    assert_eq!(read("copy"), "fresh\nline 2\n");
    assert_eq!(read("quoted"), "<fresh>\n<line 2>\n");
    assert_eq!(read("empty"), "");
    assert!(read("refused").contains("cannot overwrite existing file"), "{}", read("refused"));
    let numbers: Vec<u32> = read("sorted").lines().map(|line| line.parse().unwrap()).collect();
    assert!(numbers.iter().copied().eq(1..=100_000));
    desk.finish();
}

#[test]
fn mv_moves_within_and_across_directories_and_over_what_is_there() {
    if !ready(&["mv"]) {
        return;
    }
    let desk = Desk::new();
    desk.sh("mkdir a b; echo 1 > a/x; mv a/x a/y; mv a/y b/z; echo 2 > a/w; mv -f a/w b/z
mv b c; echo 3 > c/new; mv c/new CASE; mv CASE case
mkdir full && for i in $(seq 50); do echo $i > full/$i; done; mv full moved; mv moved a/
echo out > leaves; mv leaves \"$BESIDE/\"; mv \"$BESIDE/leaves\" returned
mv -n returned c/z; mv --backup=simple returned c/z");
    assert_eq!(desk.sh("ls -A . a c"), ".:\na\nc\ncase\n\na:\nmoved\n\nc:\nz\nz~\n");
    assert_eq!(fs::read_to_string(desk.behind("c/z~")).unwrap(), "2\n");
    assert_eq!(fs::read_to_string(desk.on("c/z")).unwrap(), "out\n");
    assert_eq!(fs::read_to_string(desk.on("a/moved/50")).unwrap(), "50\n");
    assert_eq!(fs::read_dir(desk.behind("a/moved")).unwrap().count(), 50);
    desk.finish();
}

#[test]
fn a_directory_can_be_renamed_right_after_its_files_were_written() {
    if !ready(&["bash"]) {
        return;
    }
    let desk = Desk::new();
    desk.sh("for i in $(seq 100); do
    mkdir work; echo $i > work/one; cat work/one > work/two; mv work done$i
done");
    for i in 1..=100 {
        let two = fs::read_to_string(desk.behind(&format!("done{i}/two"))).unwrap();
        assert_eq!(two, format!("{i}\n"));
    }
    desk.finish();
}

#[test]
fn install_ln_chmod_touch_and_truncate_leave_what_they_promise() {
    if !ready(&["install"]) {
        return;
    }
    let desk = Desk::new();
    desk.sh("echo '#!/bin/sh' > tool; echo 'echo ran' >> tool
install -D -m 0755 tool bin/tool; install -m 0640 tool bin/tool2; install -m 0755 tool bin/tool
ln bin/tool bin/hard; ln -s tool bin/soft; ln -sf hard bin/soft; ln -f bin/tool2 bin/hard2
touch -d '2001-02-03 04:05:06 UTC' bin/tool2; chmod u+x,o-r bin/tool2
truncate -s 1M big; truncate -s 10 big; truncate -s +5 big");
    assert_eq!(desk.run("bin/soft", &[]), "ran\n");
    let meta = |path: &str| fs::metadata(desk.behind(path)).unwrap();
    assert_eq!(meta("bin/tool").ino(), meta("bin/hard").ino());
    assert_eq!(meta("bin/tool").nlink(), 2);
    assert_eq!(fs::metadata(desk.on("bin/tool")).unwrap().nlink(), 2);
    assert_eq!(fs::read_link(desk.on("bin/soft")).unwrap().to_str(), Some("hard"));
    assert_eq!(meta("bin/tool2").permissions().mode() & 0o7777, 0o740);
    assert_eq!(meta("bin/tool2").mtime(), 981_173_106);
    assert_eq!(fs::metadata(desk.on("bin/hard2")).unwrap().mtime(), 981_173_106);
    desk.sh(
        "stat -c %h bin/hard bin/tool > /dev/null; rm bin/hard; [ $(stat -c %h bin/tool) = 1 ]",
    );
    assert_eq!((meta("big").len(), fs::metadata(desk.on("big")).unwrap().len()), (15, 15));
    desk.finish();
}

#[test]
fn dd_writes_synced_direct_sparse_and_in_the_middle() {
    if !ready(&["dd"]) {
        return;
    }
    let desk = Desk::new();
    fs::write(desk.beside("noise"), noise(4 << 20, 1)).unwrap();
    desk.sh("exec 2> \"$BESIDE/err\" || true
dd if=\"$BESIDE/noise\" of=synced bs=64K conv=fsync
dd if=\"$BESIDE/noise\" of=appended bs=1M oflag=append conv=notrunc,fdatasync
dd if=synced of=middle bs=4K seek=16 count=2
dd if=\"$BESIDE/noise\" of=synced bs=4K count=1 seek=3 skip=9 conv=notrunc,fsync
dd if=/dev/zero of=direct bs=1M count=2 oflag=direct conv=fsync
dd if=direct of=/dev/null bs=1M iflag=direct");
    let whole = noise(4 << 20, 1);
    assert!(fs::read(desk.on("appended")).unwrap() == whole);
    let mut expected = whole.clone();
    expected[3 * 4096..4 * 4096].copy_from_slice(&whole[9 * 4096..10 * 4096]);
    assert!(fs::read(desk.behind("synced")).unwrap() == expected);
    let middle = fs::read(desk.behind("middle")).unwrap();
    assert_eq!(middle.len(), 18 * 4096);
    assert!(middle[..16 * 4096].iter().all(|byte| *byte == 0));
    assert!(middle[16 * 4096..] == whole[..2 * 4096]);
    assert_eq!(fs::read(desk.behind("direct")).unwrap(), vec![0; 2 << 20]);
    desk.finish();
}
