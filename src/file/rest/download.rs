//! The bytes of a file on their way out, read piece by piece when there is room to send them.
//!
//! Decides how much is held in memory for one answer: all of a range that one request could have
//! written, which the engine read as a whole (S3); of a longer one a piece, which is read when the
//! last one was handed on. What is in the memory of the system is read at once; for what is not, a
//! thread that may block is asked. A file that became shorter on the way ends the connection: the
//! client was promised more.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http_body_util::BodyExt;
use hyper::body::Bytes;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::file::rules::SharePath;
use crate::file::service::FileReader;
use crate::file::service::shares::SnapshotView;
use crate::http;
use crate::http::frame::refusal::Refusal;
use crate::http::reply::ReplyBody;
use crate::http::sending::{PIECE_BYTES, Pieces, Room};

/// Where bytes come from.
#[derive(Debug)]
pub enum DownloadSource {
    /// A file of the share.
    Live(Box<FileReader>),
    /// A file of a snapshot.
    Snapshot(Arc<SnapshotView>, SharePath),
}

/// A range of a file, to be sent.
#[derive(Debug)]
pub struct FileDownload {
    pub source: DownloadSource,
    pub range: Range<u64>,
}

impl FileDownload {
    /// How many bytes there are to send.
    pub fn length(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// The body of an answer: all of it where it is in memory already.
    pub fn content(mut self) -> ReplyBody {
        let length = self.length();
        match self.all_now() {
            Some(bytes) => ReplyBody::Bytes(bytes),
            None => ReplyBody::Stream(length, Box::new(self).start().boxed()),
        }
    }

    /// Reads a piece from `offset` on; empty at the end of the file.
    fn piece(&self, offset: u64) -> Result<Bytes, Refusal> {
        let wanted = self.wanted(offset);
        match &self.source {
            DownloadSource::Live(reader) => {
                let mut room = Room::empty();
                let filled = reader.read_at(offset, room.first(wanted))?;
                Ok(room.piece(filled))
            }
            DownloadSource::Snapshot(view, path) => Ok(view.read(path, offset, wanted)?.into()),
        }
    }

    /// Reads a piece from `offset` on; `None` if that would wait for the disk.
    fn piece_now(&self, offset: u64) -> Result<Option<Bytes>, Refusal> {
        let DownloadSource::Live(reader) = &self.source else { return Ok(None) };
        let mut room = Room::empty();
        let read = reader.read_now(offset, room.first(self.wanted(offset)))?;
        Ok(read.map(|filled| room.piece(filled)))
    }

    fn wanted(&self, offset: u64) -> usize {
        let left = self.range.end.saturating_sub(offset);
        usize::try_from(left).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES))
    }

    /// All of it, if it was read when the request was admitted.
    pub fn all_now(&mut self) -> Option<Bytes> {
        let length = self.length();
        let DownloadSource::Live(reader) = &mut self.source else { return None };
        let bytes = reader.take_bytes()?;
        (bytes.len() as u64 == length).then(|| bytes.into())
    }

    /// All of it, for a range that fits in memory.
    pub fn read_all(&self) -> Result<Vec<u8>, Refusal> {
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < self.length() {
            let piece = self.piece(self.range.start + bytes.len() as u64)?;
            if piece.is_empty() {
                break;
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }

    pub fn start(self) -> FileBody {
        let range = self.range.clone();
        FileBody::new(FileReading { download: Arc::new(self), waiting: None }, range)
    }
}

/// A download under way, as a body.
pub type FileBody = http::sending::Sending<FileReading>;

/// A file that is being read.
#[derive(Debug)]
pub struct FileReading {
    download: Arc<FileDownload>,
    /// A piece that is waited for.
    waiting: Option<JoinHandle<Result<Bytes, Refusal>>>,
}

impl Pieces for FileReading {
    fn poll_piece(
        &mut self,
        range: Range<u64>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Bytes>> {
        let offset = range.start;
        let waiting = if let Some(waiting) = &mut self.waiting {
            waiting
        } else {
            match self.download.piece_now(offset) {
                Ok(Some(bytes)) => return Poll::Ready(Ok(bytes)),
                Ok(None) => {}
                Err(refusal) => return Poll::Ready(Err(failed(refusal))),
            }
            let download = Arc::clone(&self.download);
            self.waiting.insert(spawn_blocking(move || download.piece(offset)))
        };
        let read = ready!(Pin::new(waiting).poll(context));
        self.waiting = None;
        Poll::Ready(read.map_err(io::Error::other).and_then(|piece| piece.map_err(failed)))
    }
}

fn failed(refusal: Refusal) -> io::Error {
    io::Error::other(refusal.message)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;

    use hyper::body::Body as _;

    use super::*;
    use crate::clock::SystemClock;
    use crate::file::service::shares::NewShare;
    use crate::file::service::{Asking, FileOptions, FileService, IO_MAX};
    use crate::journal::AccountJournal;
    use crate::rules::{Client, Owner};

    /// Longer than what is read as a whole.
    const LENGTH: u64 = (IO_MAX + 3 * PIECE_BYTES) as u64;

    /// The download of a file of several pieces, all zeros, and the file itself.
    fn download(length: u64) -> (FileDownload, File, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let engine = FileService::open(
            folder.path(),
            FileOptions::default(),
            Arc::new(SystemClock),
            AccountJournal::default(),
        )
        .unwrap();
        engine.create_share("docs", NewShare::default()).unwrap();
        let file = File::create(folder.path().join("docs/f")).unwrap();
        file.set_len(length).unwrap();
        let client = Arc::new(Client { session: 1, name: "rest".into() });
        let who = Owner { client, pid: 0, program: None };
        let cx = crate::rules::Context::local(engine.share("docs").unwrap().now(), who, "test");
        let asking = Asking { cx: &cx, lease_id: None };
        let path = SharePath::new("f").unwrap();
        let reader = engine.share("docs").unwrap().open_reader(asking, &path, None).unwrap();
        let range = reader.range();
        (FileDownload { source: DownloadSource::Live(Box::new(reader)), range }, file, folder)
    }

    fn within<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
    }

    #[test]
    fn a_piece_is_read_when_there_is_room_for_it_and_not_before() {
        let (download, file, _folder) = download(LENGTH);
        let mut sending = download.start();
        within(async {
            let first = sending.frame().await.unwrap().unwrap().into_data().unwrap();
            assert!(first.len() <= PIECE_BYTES && first.iter().all(|byte| *byte == 0));
            file.write_all_at(b"new", LENGTH - 3).unwrap();
            assert_eq!(sending.size_hint().exact(), Some(LENGTH - first.len() as u64));
            let rest = sending.collect().await.unwrap().to_bytes();
            assert_eq!((rest.len() + first.len()) as u64, LENGTH);
            assert!(rest.ends_with(b"new"));
        });
    }

    #[test]
    fn what_one_request_can_write_is_read_as_a_whole() {
        let (mut short, file, _folder) = download(IO_MAX as u64);
        file.write_all_at(b"new", 0).unwrap();
        let bytes = short.all_now().unwrap();
        assert!(bytes.len() == IO_MAX && bytes.iter().all(|byte| *byte == 0));
        assert!(download(LENGTH).0.all_now().is_none());
    }

    #[test]
    fn a_file_that_became_shorter_ends_the_download_badly() {
        let (download, file, _folder) = download(LENGTH);
        let mut sending = download.start();
        within(async {
            sending.frame().await.unwrap().unwrap();
            file.set_len(1).unwrap();
            let error = sending.frame().await.unwrap().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        });
    }
}
