//! What `QUERY_INFO` answers about the volume of a share. The values come from the operation.

use super::Writer;
use super::info::Info;

/// The bytes of a cluster, the unit in which sizes are told.
const CLUSTER: u64 = 4096;
const CLUSTER_SECTORS: u32 = 8;
const SECTOR: u32 = 512;
/// Names keep their case, and are Unicode.
const CASE_PRESERVED: u32 = 0x2;
const UNICODE: u32 = 0x4;
/// What clients and smbtorture take for an ordinary disk.
const FILE_SYSTEM: &str = "NTFS";
const DEVICE_DISK: u32 = 7;
/// The device is a file system that is mounted.
const DEVICE_MOUNTED: u32 = 0x20;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeState {
    /// Bytes that the share can have, and those that are free.
    pub total: u64,
    pub free: u64,
    pub label: String,
    /// A FILETIME.
    pub created: u64,
    pub serial: u32,
}

impl VolumeState {
    /// The information of a class; none for a class that is not offered.
    pub fn info(&self, class: u8) -> Option<Info> {
        let new = Writer::new;
        let (total, free) = (self.total / CLUSTER, self.free / CLUSTER);
        let per_cluster = |to: Writer| to.u32(CLUSTER_SECTORS).u32(SECTOR);
        Some(match class {
            1 => self.label(),
            3 => Info::fixed(per_cluster(new().u64(total).u64(free))),
            4 => Info::fixed(new().u32(DEVICE_DISK).u32(DEVICE_MOUNTED)),
            5 => Info::named(new().u32(CASE_PRESERVED | UNICODE).u32(255), FILE_SYSTEM),
            7 => Info::fixed(per_cluster(new().u64(total).u64(free).u64(free))),
            // Logical, physical for atomicity and performance; then aligned, no penalty.
            11 => Info::fixed(new().u32(SECTOR).u32(4096).u32(4096).u32(4096).u32(3).zeros(8)),
            _ => return None,
        })
    }

    /// Created, serial number, length of the label, no objects, reserved, label.
    fn label(&self) -> Info {
        let label = super::bytes::utf16(&self.label);
        let fields = Writer::new().u64(self.created).u32(self.serial).length(label.len()).u16(0);
        Info { fixed: fields.len(), bytes: fields.bytes(&label).done() }
    }
}
