//! The `ETag`: one number that moves with every change of a file, from whichever side.
//!
//! Decides what it is made of: identity, size, the inode's change time, and the record's counter of
//! changes. The kernel moves the change time with every write, truncation, attribute and name
//! change, and no program can set it back, so changes made directly in the directory count as well.
//! Reads and leases change none of these. [`Granularity`] says whether the change time is fine
//! enough to tell two quick changes apart; where it is not, the engine raises the counter.

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::data;
use super::record::Record;
use super::stat::Stat;
use crate::disk::error::{StoreError, doing};

/// A stamp of one version of a file. Equal stamps mean an unchanged file; they have no order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ETag(u64);

/// Bits that carry information; the rest spells `8D`, so that a tag looks like the service's
/// (15 digits).
const TAG_BITS: u32 = 52;

impl ETag {
    /// Of a file as `stat` and `record` describe it. The same on every build and after a restart.
    pub fn of(stat: &Stat, record: &Record) -> Self {
        let words = [
            stat.id.ino,
            stat.id.born.cast_unsigned(),
            stat.size,
            stat.changed.0.cast_unsigned(),
            record.changes,
        ];
        Self(words.into_iter().fold(0, mix) >> (u64::BITS - TAG_BITS) | 0x8D << TAG_BITS)
    }
}

/// One round of splitmix64. Written out here, since a hasher of the standard library may change
/// with the compiler, and tags must not.
fn mix(state: u64, word: u64) -> u64 {
    let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15) ^ word;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl fmt::Display for ETag {
    /// The form in a header, quotes included.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"0x{:X}\"", self.0)
    }
}

/// How well the kernel's change times tell two changes apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Granularity {
    /// A change after a look always has another time (multigrain times, Linux 6.13 and later).
    Fine,
    /// Changes within a tick of the kernel's clock share a time: [`Record::changes`] has to tell
    /// them apart.
    Coarse,
}

/// So many writes in a row take far less than a tick (1 to 10 ms), so on a coarse kernel two of
/// them share one even if the machine stalls a few times.
const PROBE_WRITES: u32 = 64;

impl Granularity {
    /// Tries it out with a nameless file on the file system of the open directory `dir`.
    pub fn probe(dir: impl AsFd) -> Result<Self, StoreError> {
        let file = scratch_file(dir)?;
        let mut before = Stat::of(&file)?.changed;
        for _ in 0..PROBE_WRITES {
            data::write_at(&file, b"x", 0)?;
            let after = Stat::of(&file)?.changed;
            if after == before {
                return Ok(Self::Coarse);
            }
            before = after;
        }
        Ok(Self::Fine)
    }
}

fn scratch_file(dir: impl AsFd) -> Result<OwnedFd, StoreError> {
    let what = "making a file to probe change times";
    let mode = Mode::RUSR | Mode::WUSR;
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::openat(&dir, ".", flags | OFlags::TMPFILE, mode) {
        // The file system has no nameless files: a name, for a moment.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
            let name = format!(".latchfs-probe-{}", std::process::id());
            let flags = flags | OFlags::CREATE | OFlags::EXCL;
            let file = rustix::fs::openat(&dir, &name, flags, mode).map_err(doing(what))?;
            rustix::fs::unlinkat(&dir, &name, AtFlags::empty()).map_err(doing(what))?;
            Ok(file)
        }
        other => other.map_err(doing(what)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FileKind, Records};
    use super::*;
    use crate::disk::testing::{Ramfs, places};
    use crate::rules::{FileId, Timestamp};
    use std::collections::HashSet;
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::{FileExt, PermissionsExt};
    use std::path::Path;

    fn tag(path: &Path) -> ETag {
        ETag::of(&Stat::of(File::open(path).unwrap()).unwrap(), &Record::default())
    }

    fn fine(dir: &Path) -> bool {
        let granularity = Granularity::probe(File::open(dir).unwrap()).unwrap();
        if granularity == Granularity::Coarse {
            println!("SKIPPED: change times on {} are coarse", dir.display());
        }
        granularity == Granularity::Fine
    }

    #[test]
    fn a_tag_is_the_same_on_every_build() {
        let stat = Stat {
            id: FileId { ino: 12, born: 1_700_000_000_123_456_789 },
            kind: FileKind::File,
            size: 4096,
            allocated: 4096,
            links: 1,
            mode: 0o100_644,
            uid: 0,
            gid: 0,
            rdev: 0,
            created: Timestamp(1),
            accessed: Timestamp(2),
            written: Timestamp(3),
            changed: Timestamp(1_700_000_000_987_654_321),
        };
        let plain = ETag::of(&stat, &Record::default());
        assert_eq!(plain.to_string(), "\"0x8D161D3B5D645C3\"");

        let counted = Record { changes: 1, ..Record::default() };
        let mut all = HashSet::from([plain, ETag::of(&stat, &counted)]);
        let mut with = |change: fn(&mut Stat)| {
            let mut other = stat;
            change(&mut other);
            all.insert(ETag::of(&other, &Record::default()));
        };
        with(|stat| stat.id.ino += 1);
        with(|stat| stat.id.born += 1);
        with(|stat| stat.size += 1);
        with(|stat| stat.changed.0 += 1);
        assert_eq!(all.len(), 6);

        let mut read = stat;
        read.accessed.0 += 1;
        assert_eq!(ETag::of(&read, &Record::default()), plain);
    }

    #[test]
    fn a_thousand_quick_writes_have_a_thousand_tags() {
        for place in places() {
            if !fine(place.path()) {
                continue;
            }
            let file = File::create(place.path().join("f")).unwrap();
            let mut seen = HashSet::new();
            for _ in 0..1000 {
                file.write_all_at(b"same", 0).unwrap();
                assert!(seen.insert(ETag::of(&Stat::of(&file).unwrap(), &Record::default())));
            }
        }
    }

    #[test]
    fn where_times_are_coarse_the_counter_tells_writes_apart() {
        let Some(ramfs) = Ramfs::mount() else { return };
        if Granularity::probe(File::open(ramfs.path()).unwrap()).unwrap() == Granularity::Fine {
            println!("SKIPPED: change times on ramfs are fine");
            return;
        }
        let file = File::create(ramfs.path().join("f")).unwrap();
        let (mut plain, mut counted) = (HashSet::new(), HashSet::new());
        let mut record = Record::default();
        for _ in 0..1000 {
            file.write_all_at(b"same", 0).unwrap();
            record.changes += 1;
            let stat = Stat::of(&file).unwrap();
            plain.insert(ETag::of(&stat, &Record::default()));
            counted.insert(ETag::of(&stat, &record));
        }
        assert!(plain.len() < 1000, "the probe was right");
        assert_eq!(counted.len(), 1000);
    }

    #[test]
    fn every_kind_of_change_moves_the_tag() {
        for place in places() {
            if !fine(place.path()) {
                continue;
            }
            let path = place.path().join("f");
            fs::write(&path, b"bytes").unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            let old = Timestamp(1_000_000_000);
            let mut seen = HashSet::from([tag(&path)]);
            let mut moved = |what: &str| assert!(seen.insert(tag(&path)), "{what}");

            file.set_len(2).unwrap();
            moved("truncate");
            file.set_len(2).unwrap();
            file.write_all_at(b"b", 0).unwrap();
            data::set_times(&file, Some(old), Some(old)).unwrap();
            moved("write, then utimes to a past time");
            file.write_all_at(b"c", 0).unwrap();
            data::set_times(&file, Some(old), Some(old)).unwrap();
            moved("again, to the same past time");
            fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            moved("chmod");
            let records = Records::new(&place.path().join("state")).unwrap();
            let mut record = Record::default();
            record.metadata.insert("a", "1");
            records.save(&file, Stat::of(&file).unwrap().id, &mut record).unwrap();
            moved("record");
            data::clear_range(&file, 0..1).unwrap();
            moved("clear");
            let beside = place.path().join("g");
            fs::write(&beside, b"cb").unwrap();
            fs::rename(&beside, &path).unwrap();
            moved("replacement by a file of the same size");
        }
    }

    #[test]
    fn the_probe_leaves_nothing_behind_and_needs_a_directory() {
        let place = tempfile::tempdir().unwrap();
        let dir = File::open(place.path()).unwrap();
        Granularity::probe(&dir).unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);

        let file = File::create(place.path().join("f")).unwrap();
        let refused = Granularity::probe(&file);
        assert!(matches!(refused, Err(StoreError::NotADirectory)));
    }
}
