//! Security descriptors. There are no access lists to keep: whoever has the key of the account may
//! do everything, so every file shows the same owner and one entry for everybody.

use super::Writer;

pub const OWNER: u32 = 0x1;
pub const GROUP: u32 = 0x2;
pub const DACL: u32 = 0x4;

/// S-1-5-32-544, the administrators.
const ADMINISTRATORS: [u8; 16] = [1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 32, 2, 0, 0];
/// S-1-1-0, everybody.
const EVERYBODY: [u8; 12] = [1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
const ALL_ACCESS: u32 = 0x001F_01FF;
/// Self-relative, with a DACL.
const SELF_RELATIVE: u16 = 0x8000;
const DACL_PRESENT: u16 = 0x4;

/// The descriptor of any file, with the parts that are asked for.
pub fn descriptor(parts: u32) -> Vec<u8> {
    let mut tail = Vec::new();
    let mut part = |asked: u32, bytes: &[u8]| {
        if parts & asked == 0 {
            return 0;
        }
        let at = 20 + tail.len();
        tail.extend_from_slice(bytes);
        at
    };
    let owner = part(OWNER, &ADMINISTRATORS);
    let group = part(GROUP, &ADMINISTRATORS);
    let list = part(DACL, &access_list());
    let control = SELF_RELATIVE | if list == 0 { 0 } else { DACL_PRESENT };
    let head = Writer::new().u8(1).u8(0).u16(control).length(owner).length(group).u32(0);
    head.length(list).bytes(&tail).done()
}

/// Everybody may do everything.
fn access_list() -> Vec<u8> {
    let entry = Writer::new().u8(0).u8(0).u16(20).u32(ALL_ACCESS).bytes(&EVERYBODY).done();
    Writer::new().u8(2).u8(0).short_length(8 + entry.len()).u16(1).u16(0).bytes(&entry).done()
}
