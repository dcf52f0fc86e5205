//! Watches standard input: the end of a pipe tells a command that the process which started it is
//! gone.
//!
//! Decides which inputs count, and reads them to their end. What the command does then is decided
//! by the command.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::thread;

/// Standard input, if it is a pipe or a socket. A job in the background must not read a terminal,
/// and a script's jobs have `/dev/null`, which is at its end from the start.
pub fn pipe() -> Option<File> {
    let input = io::stdin().as_fd().try_clone_to_owned().map(File::from).ok()?;
    let kind = input.metadata().ok()?.file_type();
    (kind.is_fifo() || kind.is_socket()).then_some(input)
}

/// Calls `at_end` on a thread of its own when every writer of `input` has closed it or has died.
/// What they write is dropped.
pub fn watch(input: File, at_end: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = thread::Builder::new().name("latchfs-input".into());
    thread.spawn(move || {
        read_to_the_end(input);
        at_end();
    })?;
    Ok(())
}

fn read_to_the_end(mut input: impl Read) {
    let mut dropped = [0; 4096];
    loop {
        match input.read(&mut dropped) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // A socket whose other end was reset: the peer is gone too.
            Err(error) => return log::debug!("standard input: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_end_is_told_when_the_last_writer_is_gone_and_not_before() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let copy = theirs.try_clone().unwrap();
        let (ended, end) = channel();
        watch(File::from(std::os::fd::OwnedFd::from(ours)), move || ended.send(()).unwrap())
            .unwrap();
        theirs.write_all(&[b'x'; 10_000]).unwrap();
        drop(theirs);
        assert!(end.try_recv().is_err(), "a writer is left");
        drop(copy);
        end.recv_timeout(Duration::from_secs(20)).unwrap();
    }
}
