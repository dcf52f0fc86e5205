//! The same programs on a mount that a user without privilege made.
//!
//! Nobody but that user sees the mount, so the scripts compare by themselves.

use crate::common::need;
use crate::common::user::Place;

/// Runs a script on such a mount; `$BESIDE` is a directory that is on no mount.
fn on_a_mount(programs: &[&str], script: &str) {
    on_a_mount_with(programs, |_| String::new(), script);
}

/// The same, after some commands that make ready for it.
fn on_a_mount_with(programs: &[&str], prepare: impl FnOnce(&Place) -> String, script: &str) {
    if !programs.iter().all(|program| need::client(program)) {
        return;
    }
    let Some(place) = Place::new() else { return };
    let before = prepare(&place);
    let _server = place.serve(&[]);
    let home = place.home();
    let script = format!(
        "set -eu; export HOME={home} LC_ALL=C BESIDE={home}/beside; mkdir -p $BESIDE; cd mnt\n\
         {before}\n{script}",
        home = home.display()
    );
    let done = place.shell(&script);
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{}\n--- stdout\n{out}\n--- stderr\n{err}", done.status);
}

#[test]
fn git_adds_commits_clones_and_packs_without_root() {
    on_a_mount(
        &["git"],
        "git config --global user.name Someone
         git config --global user.email someone@example.invalid
         git config --global safe.directory '*'
         git init -q r && cd r
         for i in $(seq 40); do echo $i > f$i; done
         git add . && git commit -qm one
         echo more >> f1 && git rm -q f2 && git mv f3 g3 && git commit -qam two
         git gc -q --prune=now && git fsck --full --strict
         test -z \"$(git status --porcelain)\"
         cd .. && git clone -q r copy && diff -r --exclude=.git r copy",
    );
}

#[test]
fn read_only_files_are_copied_packed_and_synchronised_without_root() {
    on_a_mount(
        &["tar", "rsync"],
        "mkdir $BESIDE/from && cd $BESIDE/from
         mkdir d && echo one > d/one && echo two > two && chmod 444 two && chmod 400 d/one
         chmod 555 d && ln -s two link && cd - > /dev/null
         cp -a $BESIDE/from copied && diff -r $BESIDE/from copied
         test \"$(stat -c %a copied/two copied/d/one copied/d | xargs)\" = '444 400 555'
         tar -C $BESIDE -cf $BESIDE/from.tar from
         tar -xf $BESIDE/from.tar && diff -r $BESIDE/from from
         test \"$(stat -c %a from/two)\" = 444
         rsync -a $BESIDE/from/ synced/ && diff -r $BESIDE/from synced
         tar -cf $BESIDE/back.tar copied && cp -a synced $BESIDE/back && diff -r synced $BESIDE/back
         chmod -R u+w copied from synced && rm -rf copied from synced && test -z \"$(ls)\"",
    );
}

#[test]
fn a_database_is_written_and_checked_without_root() {
    on_a_mount(
        &["sqlite3"],
        "for mode in delete wal; do
             sqlite3 $mode.db \"pragma journal_mode=$mode; create table t(n integer);
                 with recursive c(n) as (select 1 union all select n+1 from c where n < 2000)
                 insert into t select n from c;\" > /dev/null
             sums=$(sqlite3 $mode.db 'select sum(n) from t; pragma integrity_check;' | xargs)
             test \"$sums\" = '2001000 ok'
         done",
    );
}

#[test]
fn cargo_builds_and_rebuilds_a_crate_without_root() {
    // The toolchain itself: what rustup installs may be below a home that is closed to others.
    let toolchain = |place: &Place| {
        let told = std::process::Command::new("rustc").args(["--print", "sysroot"]).output();
        let sysroot = String::from_utf8(told.unwrap().stdout).unwrap();
        let shown = place.show(std::path::Path::new(sysroot.trim_end()));
        format!("export PATH={}/bin:$PATH", shown.display())
    };
    on_a_mount_with(
        &["cargo", "rustc", "cc"],
        toolchain,
        "mkdir -p hello/src && cd hello
         printf '%s\\n' '[package]' 'name = \"hello\"' 'edition = \"2021\"' > Cargo.toml
         echo 'mod said; fn main() { println!(\"{}\", said::WORDS); }' > src/main.rs
         echo 'pub const WORDS: &str = \"built on a share\";' > src/said.rs
         cargo build --offline --quiet
         test \"$(target/debug/hello)\" = 'built on a share'
         echo 'pub const WORDS: &str = \"built again\";' > src/said.rs
         cargo build --offline --quiet
         test \"$(target/debug/hello)\" = 'built again'
         cargo test --offline --quiet > /dev/null
         cargo clean --quiet && test ! -e target",
    );
}
