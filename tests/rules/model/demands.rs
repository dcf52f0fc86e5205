//! What each REST operation needs of a file, written down a second time, from docs/semantics.md:
//! access, share mode, delete pending, read-only, lease, copy, byte ranges.

use latchfs::file::rules::FileOperation;

use super::rules::{D, R, W};

/// The needs of one operation.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the yes-or-no columns of one table")]
pub struct Needs {
    pub access: u8,
    pub share: u8,
    pub nobody: bool,
    pub live: bool,
    pub lease_matters: bool,
    pub lease_guards: bool,
    pub no_copy: bool,
    pub writable: bool,
    pub unlocked: bool,
    pub readable_range: bool,
}

pub fn needs(operation: FileOperation) -> Needs {
    use FileOperation as O;
    let nothing = Needs {
        access: 0,
        share: R | W | D,
        nobody: false,
        live: false,
        lease_matters: false,
        lease_guards: false,
        no_copy: false,
        writable: false,
        unlocked: false,
        readable_range: false,
    };
    let live = Needs { live: true, ..nothing };
    let look = Needs { lease_matters: true, ..live };
    let change = Needs {
        access: W,
        lease_matters: true,
        lease_guards: true,
        no_copy: true,
        writable: true,
        ..live
    };
    let delete = Needs { access: D, nobody: true, ..change };
    let replace = Needs { access: W | D, unlocked: true, ..change };
    match operation {
        O::CreateDirectory | O::GetDirectoryProperties => live,
        O::SetDirectoryProperties | O::SetDirectoryMetadata => Needs { access: W, ..live },
        O::RenameDirectory => Needs { access: D, ..live },
        O::DeleteDirectory => Needs { access: D, nobody: true, writable: true, ..live },
        O::GetFileProperties => look,
        O::GetFile => Needs { access: R, readable_range: true, ..look },
        O::ListRanges => Needs { access: R, ..look },
        O::CopySource => Needs { access: R, readable_range: true, ..live },
        O::SetFileProperties { resize, attributes } => {
            Needs { writable: !attributes, unlocked: resize, ..change }
        }
        O::SetFileMetadata => change,
        O::PutRange | O::ClearRange => Needs { unlocked: true, ..change },
        O::CreateFileNew => Needs { lease_matters: true, lease_guards: true, ..live },
        O::CreateFileOver => replace,
        O::CopyDestinationOver { ignore_read_only } => {
            Needs { writable: !ignore_read_only, ..replace }
        }
        O::DeleteFile => delete,
        O::RenameTarget { ignore_read_only } => Needs { writable: !ignore_read_only, ..delete },
        O::RenameSource => Needs { access: D, writable: false, ..change },
        O::CopyStep => Needs { no_copy: false, writable: false, unlocked: true, ..change },
        O::AbortCopy => Needs { no_copy: false, writable: false, ..change },
        O::LeaseAcquire => Needs { access: R | W | D, share: R, no_copy: true, ..live },
        O::LeaseOther => Needs { no_copy: true, ..live },
    }
}
