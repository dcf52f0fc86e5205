//! A full disk: known before a body is taken, nothing half is left, and space heals it.

use super::{CURRENT, bytes, quiet, read_all, state_and_reader};
use crate::blob::store::{BlobStore, BlobTx, BodyRole, ContentError, ContentPlan, WriteTx};
use crate::db::testing::Tmpfs;
use crate::db::{DbError, Purpose, SyncMode};

fn plan(length: u64) -> ContentPlan {
    ContentPlan { length: Some(length), role: BodyRole::Whole, md5: false }
}

#[test]
fn a_body_that_does_not_fit_is_refused_before_it_is_taken() {
    let Some(tmpfs) = Tmpfs::mount("20m") else { return };
    let store = BlobStore::open_with(tmpfs.path(), SyncMode::Normal, quiet()).unwrap();
    let c = store.write(|tx| tx.add_container("c", &"")).unwrap().unwrap();
    assert!(matches!(store.content(plan(100 << 20)), Err(DbError::Full { .. })));
    // A promise takes no space: there can be more of them than fit.
    let promises: Vec<_> = (0..20).map(|_| store.content(plan(10 << 20)).unwrap()).collect();
    let part = ContentPlan { role: BodyRole::Part, ..plan(10 << 20) };
    let parts: Vec<_> = (0..3).map(|_| store.content(part).unwrap()).collect();
    drop((promises, parts));
    let mut writer = store.content(plan(10 << 20)).unwrap();
    let sent = bytes(1, 10 << 20);
    writer.write(&sent).unwrap();
    let content = writer.finish().unwrap();
    let id = store.write(move |tx| tx.put(c, "blob", CURRENT, &"", content)).unwrap();
    store.settle().unwrap();
    assert!(read_all(&mut store.read(|tx| tx.reader(id)).unwrap()) == sent);
}

#[test]
fn blobs_can_be_deleted_when_not_one_byte_is_free() {
    let Some(tmpfs) = Tmpfs::mount("40m") else { return };
    let store = BlobStore::open_with(tmpfs.path(), SyncMode::Normal, quiet()).unwrap();
    let c = store.write(|tx| tx.add_container("c", &"")).unwrap().unwrap();
    // In rows, in a segment, in files of their own.
    for (count, size) in [(0..40, 10_000), (40..60, 100_000), (60..64, 2 << 20)] {
        for number in count {
            super::put(&store, c, &format!("{number}"), &bytes(number, size));
        }
    }
    tmpfs.fill();
    // Each has a name of its own: what is replaced would find space where the log begins again.
    let full = (0..20_000).find_map(|number| {
        let name = format!("{number:08}");
        store.write(move |tx| tx.set_setting(&name, Some(&name.repeat(500)))).err()
    });
    assert!(matches!(full, Some(DbError::Full { .. })), "{full:?}");
    for number in 0..64 {
        let delete = || {
            store.write_for(Purpose::Delete, move |tx| {
                let found = tx.state::<String>(c, &number.to_string(), CURRENT)?;
                found.map_or(Ok(()), |row| tx.remove(row.id))
            })
        };
        // Deletions go on while checkpoints let the log begin again.
        super::wait_until("a deletion", || match delete() {
            Ok(()) => true,
            Err(DbError::Full { .. }) if number > 20 => false,
            Err(error) => panic!("blob {number}: {error}"),
        });
    }
    // The content goes, although the disk may be too full to move the log.
    super::wait_until("the content to go", || {
        store.database.request_checkpoint();
        rustix::fs::statvfs(tmpfs.path()).unwrap().f_bavail * 4096 > 8 << 20
    });
    super::put(&store, c, "new", &bytes(1, 4 << 20));
}

#[test]
fn a_deleted_container_goes_to_its_last_row_when_not_one_byte_is_free() {
    let Some(tmpfs) = Tmpfs::mount("64m") else { return };
    let store = BlobStore::open_with(tmpfs.path(), SyncMode::Normal, quiet()).unwrap();
    let c = store.write(|tx| tx.add_container("c", &"")).unwrap().unwrap();
    // Few at a time: the WAL stays short, and so does the ballast.
    for slice in 0..100 {
        let numbers = slice * 100..(slice + 1) * 100;
        let bodies: Vec<_> =
            numbers.map(|n| (n.to_string(), super::whole(&store, &bytes(n, 2_000)))).collect();
        let puts = move |tx: &WriteTx<'_>| {
            bodies
                .into_iter()
                .try_for_each(|(name, content)| tx.put(c, &name, CURRENT, &"", content).map(drop))
        };
        store.write(puts).unwrap();
        store.database.checkpoint().unwrap();
    }
    tmpfs.fill();
    let rows = |tx: &BlobTx<'_>| {
        let sql = "SELECT (SELECT count(*) FROM blob) + (SELECT count(*) FROM doomed)";
        Ok::<_, DbError>(tx.conn.query_row(sql, [], |row| row.get::<_, i64>(0))?)
    };
    // The rows need more WAL than the ballast has room for, and a reader keeps the WAL from
    // beginning again.
    let delete = |tx: &BlobTx<'_>| {
        assert_eq!(rows(tx)?, 10_000);
        store.write_for(Purpose::Delete, move |tx| tx.delete_container(c, None))?;
        store.shared.chores.wait_until_idle();
        store.read(rows)
    };
    assert_ne!(store.read(delete).unwrap(), 0);
    super::wait_until("the removal of all rows", || store.read(rows).unwrap() == 0);
}

#[test]
fn a_body_of_unknown_length_meets_the_end_of_the_disk_while_it_comes() {
    let Some(tmpfs) = Tmpfs::mount("10m") else { return };
    let store = BlobStore::open_with(tmpfs.path(), SyncMode::Normal, quiet()).unwrap();
    let c = store.write(|tx| tx.add_container("c", &"")).unwrap().unwrap();
    let plan_unknown = ContentPlan { length: None, ..plan(0) };
    let mut writer = store.content(plan_unknown).unwrap();
    let chunk = bytes(1, 1 << 20);
    let failed = (0..20).find_map(|_| writer.write(&chunk).err());
    assert!(matches!(failed, Some(ContentError::Store(DbError::Full { .. }))), "{failed:?}");
    drop(writer);
    store.settle().unwrap();
    // The space is there again.
    let mut writer = store.content(plan(3 << 20)).unwrap();
    writer.write(&bytes(2, 3 << 20)).unwrap();
    let content = writer.finish().unwrap();
    store.write(move |tx| tx.put(c, "blob", CURRENT, &"", content)).unwrap();
}

#[test]
fn a_commit_that_does_not_fit_leaves_the_old_state_and_no_content() {
    let Some(tmpfs) = Tmpfs::mount("16m") else { return };
    let store = BlobStore::open_with(tmpfs.path(), SyncMode::Normal, quiet()).unwrap();
    let c = store.write(|tx| tx.add_container("c", &"")).unwrap().unwrap();
    let put = |name: &str, sent: &[u8]| -> Result<(), DbError> {
        let mut writer = store.content(plan(sent.len() as u64))?;
        writer.write(sent).map_err(|error| DbError::Io(error.to_string()))?;
        let content = writer.finish().map_err(|error| DbError::Io(error.to_string()))?;
        let name = name.to_owned();
        store.write(move |tx| tx.put(c, &name, CURRENT, &"", content)).map(drop)
    };
    put("blob", b"old").unwrap();
    let ballast = tmpfs.path().join("ballast");
    std::fs::write(&ballast, vec![1; 10 << 20]).unwrap();
    // Rows fill the rest of the disk. A refusal asks for a checkpoint, which may free space for the
    // next commit: the disk is full when the overwrite is refused too.
    let (mut count, mut expected) = (0, b"old".to_vec());
    loop {
        assert!(count < 1000, "the disk never gets full");
        match put(&format!("filler {count}"), &bytes(count, 16_000)) {
            Ok(()) => {
                count += 1;
                continue;
            }
            Err(error) => assert!(matches!(error, DbError::Full { .. }), "{error:?}"),
        }
        let overwriting = bytes(1000 + count, 16_000);
        match put("blob", &overwriting) {
            Ok(()) => expected = overwriting,
            Err(error) => {
                assert!(matches!(error, DbError::Full { .. }), "{error:?}");
                break;
            }
        }
    }
    let (_, mut reader) = state_and_reader::<String>(&store, c, "blob").unwrap();
    assert!(read_all(&mut reader) == expected);
    for number in 0..count {
        let name = format!("filler {number}");
        let (_, mut reader) = state_and_reader::<String>(&store, c, &name).unwrap();
        assert!(read_all(&mut reader) == bytes(number, 16_000));
    }
    std::fs::remove_file(ballast).unwrap();
    put("blob", b"new").unwrap();
}
