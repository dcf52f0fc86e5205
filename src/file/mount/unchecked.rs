//! Opens files without the rules, to measure the cost of the driver alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use fuser::{BackingId, Errno, FileHandle, FopenFlags, ReplyOpen};

use super::errno::errno;
use super::state::State;
use crate::file::service::OpenFor;

/// Open files that are in no table.
#[derive(Debug, Default)]
pub struct Unchecked(Mutex<(u64, HashMap<u64, Arc<BackingId>>)>);

const POISON: &str = "unchecked opens are only kept and dropped";

impl Unchecked {
    fn keep(&self, backing: Arc<BackingId>) -> u64 {
        let mut inside = self.0.lock().expect(POISON);
        inside.0 += 1;
        let fh = inside.0;
        inside.1.insert(fh, backing);
        fh
    }

    /// The open of that number has ended.
    pub fn release(&self, fh: u64) {
        self.0.lock().expect(POISON).1.remove(&fh);
    }
}

/// `open(2)` of a file that exists, with kernel passthrough.
pub fn open(state: &State, node: u64, reply: ReplyOpen) {
    let Some(path) = state.nodes.path(node) else { return reply.error(Errno::ESTALE) };
    let found = match state.share().lookup(&path) {
        Ok(found) => found,
        Err(error) => return reply.error(errno(&error)),
    };
    let backing = state.backing(found.stat.id, true, || {
        let fd =
            state.share().backing(&found.path, OpenFor::Path).map_err(std::io::Error::other)?;
        reply.open_backing(fd)
    });
    match backing {
        Ok(backing) => {
            let fh = FileHandle(state.unchecked.keep(Arc::clone(&backing)));
            reply.opened_passthrough(fh, FopenFlags::empty(), &backing);
        }
        Err(error) => reply.error(Errno::from(error)),
    }
}
