//! Files that a test writes into its share and reads back, under the same rules as other clients.

use super::error::Error;
use super::{Hold, Server};
use crate::file::rules::create::{Disposition, OpenRequest};
use crate::file::rules::{Access, ShareMode};
use crate::file::service::IO_MAX;
use crate::server::HoldError;

impl Server {
    /// Stores a file, with the directories above it. Refused as a program would be that replaces
    /// the file.
    pub fn put(&self, path: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = path.trim_matches('/');
        for (end, _) in path.match_indices('/') {
            self.open(&path[..end], Access::R, Disposition::OpenIf, true)?;
        }
        let file = self.open(path, Access::RW, Disposition::OverwriteIf, false)?;
        let mut offset = 0;
        for part in bytes.chunks(IO_MAX) {
            file.write(offset, part)?;
            offset += part.len() as u64;
        }
        Ok(())
    }

    /// Reads a file. Refused as a program would be that reads the file.
    pub fn get(&self, path: &str) -> Result<Vec<u8>, Error> {
        let file = self.open(path, Access::R, Disposition::Open, false)?;
        let mut bytes = Vec::new();
        loop {
            let part = file.read(bytes.len() as u64, IO_MAX)?;
            if part.is_empty() {
                return Ok(bytes);
            }
            bytes.extend(part);
        }
    }

    /// Opens a file or a directory for a moment, and shares it with everyone meanwhile.
    fn open(
        &self,
        path: &str,
        access: Access,
        disposition: Disposition,
        directory: bool,
    ) -> Result<Hold, Error> {
        let share = self.accounts().first().file().share(self.share()).map_err(HoldError::from)?;
        let mut request = OpenRequest::plain(access, ShareMode::RWD);
        request.disposition = disposition;
        request.options.directory = directory;
        request.options.non_directory = !directory;
        Ok(Hold::open_as(share, path, &request, &[])?)
    }
}
