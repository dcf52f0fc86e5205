//! A replacement that fails half way: nothing is acknowledged until a start has completed it.

use super::*;
use crate::db::testing::Tmpfs;

#[test]
fn what_failed_half_way_ends_all_service_until_a_start_completes_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    prepare(&data);
    let bench = Bench::open(&data);
    // A share that is to be there after a reset, and cannot be made.
    fs::write(bench.root.files_path("two").join("taken"), "a file").unwrap();
    let wanted = BTreeMap::from([("two".to_owned(), BTreeSet::from(["taken".to_owned()]))]);
    let states = open(bench.root.folder(), &bench.accounts, wanted, Loads::default()).unwrap();
    let said = states.reset().unwrap_err().to_string();
    assert!(said.contains("taken") && said.contains("start the server again"), "{said}");
    assert_eq!(bench.accounts.halted(), Some(said.as_str()));
    let refused = [
        states.delete("saved"),
        states.save("saved").map(drop),
        states.restore("saved"),
        states.reset(),
    ];
    for refused in refused {
        assert_eq!(refused.unwrap_err().to_string(), said);
    }
    fs::remove_file(bench.root.files_path("two").join("taken")).unwrap();
    drop((states, bench));
    assert_eq!(Bench::open(&data).whole(), "none");
}

#[test]
fn a_full_disk_refuses_a_reset_with_the_cure_and_the_cure_works() {
    let Some(tmpfs) = Tmpfs::mount("200m") else { return };
    {
        let bench = Bench::open(tmpfs.path());
        bench.furnish("old");
        let large = bench.root.files_path("one").join("old/large");
        fs::write(large, vec![1; 40 << 20]).unwrap();
        tmpfs.fill_but(500 << 10);
        let refused = bench.states.reset().unwrap_err();
        assert!(matches!(refused, StateError::NoRoomToReset { .. }), "{refused}");
        assert!(refused.to_string().contains("start it with --reset"), "{refused}");
    }
    tmpfs.fill();
    DataRoot::reset(tmpfs.path()).unwrap();
    let bench = Bench::open(tmpfs.path());
    bench.furnish("new");
}

#[test]
fn a_reset_that_meets_a_damaged_database_names_the_cure_and_the_cure_works() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    Bench::open(&data).furnish("old");
    fs::write(data.join("two/blob.db"), "garbage".repeat(1000)).unwrap();
    {
        let bench = Bench::open(&data);
        let said = bench.states.reset().unwrap_err().to_string();
        assert!(said.contains("two/blob.db") && said.contains("latchfs serve --reset"), "{said}");
        assert_eq!(bench.accounts.halted(), None);
    }
    DataRoot::reset(&data).unwrap();
    let bench = Bench::open(&data);
    bench.furnish("new");
    assert_eq!(bench.whole(), "new");
}
