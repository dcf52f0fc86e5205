//! Fills a container with the files of a directory: each is a block blob with the file's path as
//! its name.
//!
//! Decides which entries become blobs: regular files whose path is a legal name. The container is
//! filled as a whole or not at all, see `blob/service/filling`.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::StartError;
use super::options::FillProgress;
use crate::blob::rules::name::{check_blob, check_container};
use crate::blob::rules::{BlobOperation, BlobType};
use crate::blob::service::{
    AccessConditions, BlobAt, BlobResult, BlobService, BodyRole, ContentPlan, NewBlob,
};
use crate::clock::TimeSource;
use crate::file::service::shares::{CloneProgress, Control};
use crate::rules::{Caller, Client, Context, Owner};

/// Bytes copied in one step.
const PIECE_BYTES: usize = 1 << 20;

/// Fills `container`. What the user should know comes back.
pub fn fill(
    service: &BlobService,
    clock: &dyn TimeSource,
    container: &str,
    directory: &Path,
    progress: &mut FillProgress<'_>,
) -> Result<Vec<String>, StartError> {
    let seeding = |why: String| {
        StartError::Options(format!("--seed blob:{container}={}: {why}", directory.display()))
    };
    if check_container(container).is_err() {
        return Err(seeding("no container can have that name".into()));
    }
    if !directory.is_dir() {
        return Err(seeding("it is not a directory".into()));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(StartError::system("starting a runtime"))?;
    let mut filling =
        Filling { service, clock, container, progress, done: CloneProgress::default() };
    let filled = runtime.block_on(async {
        let filled = filling.run(directory).await;
        if filled.is_err() {
            // The first error is the one to tell; the next start removes what is left.
            let _ = service.cancel_filling(&filling.cx()).await;
        }
        filled
    });
    filled.map_err(seeding)
}

struct Filling<'a, 'p> {
    service: &'a BlobService,
    clock: &'a dyn TimeSource,
    container: &'a str,
    progress: &'a mut FillProgress<'p>,
    done: CloneProgress,
}

impl Filling<'_, '_> {
    fn cx(&self) -> Context {
        let client = Arc::new(Client { session: 0, name: "latchfs --seed".into() });
        let owner = Arc::new(Owner { client, pid: std::process::id(), program: None });
        Context::new(self.clock.now(), Caller::local(owner, "Seed"))
    }

    async fn run(&mut self, directory: &Path) -> Result<Vec<String>, String> {
        let begun = self.service.begin_filling(&self.cx(), self.container).await;
        let container = self.container;
        let filled =
            || format!("container {container} is not empty and is not filled: --reset empties it");
        let Some(address) = begun.map_err(|error| error.to_string())? else {
            return Ok(vec![filled()]);
        };
        let mut left = vec![directory.to_owned()];
        while let Some(folder) = left.pop() {
            for entry in fs::read_dir(&folder).map_err(|why| about(&folder, &why))? {
                let path = entry.map_err(|why| about(&folder, &why))?.path();
                let kind = fs::symlink_metadata(&path).map_err(|why| about(&path, &why))?;
                if kind.is_dir() {
                    left.push(path);
                } else if kind.is_file() {
                    let name = path.strip_prefix(directory).unwrap_or(&path);
                    let at = name.to_str().map(|name| address(name.to_owned()));
                    let at = at.filter(|at| check_blob(container, &at.name).is_ok());
                    let illegal = || format!("{}: no blob can have that name", path.display());
                    let at = at.ok_or_else(illegal)?;
                    self.put(&at, &path).await?;
                } else {
                    self.done.skipped += 1;
                }
                if (self.progress)(container, self.done) == Control::Cancel {
                    return Err("stopped before the container was filled: it stays empty".into());
                }
            }
        }
        let ended = self
            .service
            .end_filling(&self.cx(), container)
            .await
            .map_err(|error| error.to_string())?;
        let mut notes = Vec::new();
        if !ended {
            notes.push(filled());
        }
        if self.done.skipped > 0 {
            let skipped = self.done.skipped;
            notes.push(format!("container {container}: {skipped} entries are no files, left out"));
        }
        Ok(notes)
    }

    async fn put(&mut self, at: &BlobAt, path: &PathBuf) -> Result<(), String> {
        let mut file = File::open(path).map_err(|why| about(path, &why))?;
        let length = file.metadata().map_err(|why| about(path, &why))?.len();
        let (asked, new) = (AccessConditions::default(), NewBlob::default());
        let put = upload(self.service, &self.cx(), at, asked, new, &mut file, length).await;
        let put = put.map_err(|why| format!("{}: {why}", path.display()))?;
        put.map_err(|error| error.to_string())?;
        self.done.files_done += 1;
        self.done.bytes_done += length;
        Ok(())
    }
}

/// Puts a block blob. The outer error is one of the source or of the disk, the inner one the
/// service's.
pub async fn upload(
    service: &BlobService,
    cx: &Context,
    at: &BlobAt,
    asked: AccessConditions,
    mut new: NewBlob,
    source: &mut dyn Read,
    length: u64,
) -> Result<BlobResult<()>, String> {
    if let Err(refused) = service.check(cx, BlobOperation::BlockBlobUpload, at, &asked) {
        return Ok(Err(refused));
    }
    let plan = ContentPlan { length: Some(length), role: BodyRole::Whole, md5: true };
    let mut body = service.begin_body(plan).map_err(|error| error.to_string())?;
    let mut piece = vec![0; PIECE_BYTES.min(usize::try_from(length).unwrap_or(PIECE_BYTES))];
    let mut left = length;
    while left > 0 {
        let read = source.read(&mut piece).map_err(|why| why.to_string())?;
        body.write(&piece[..read]).map_err(|why| why.to_string())?;
        if read == 0 {
            break;
        }
        left = left.saturating_sub(read as u64);
    }
    let content = body.finish().map_err(|why| why.to_string())?;
    new.content.md5 = content.md5().map(Vec::from);
    Ok(service.put_blob(cx, at, asked, BlobType::Block, new, content).await.map(drop))
}

fn about(path: &Path, why: &std::io::Error) -> String {
    format!("{}: {why}", path.display())
}
