//! Calls that only the owner of the server has, by the control socket: runs, snapshots,
//! unmounts, and the stop.
//!
//! A run lasts as long as the connection of its client, so that a client that is killed leaves
//! nothing behind.

use std::path::PathBuf;
use std::sync::Arc;

use hyper::StatusCode;
use hyper::body::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::body::{AdminResponse, json_stream};
use super::call::ApiCall;
use super::calls::{Api, blocking, drop_elsewhere};
use super::failure::ApiFailure;
use super::hold::read_share_mode;
use super::serving::Serving;
use super::session::Session;
use super::shares::CreateSnapshot;

/// How many lines of progress wait for a client that does not read.
const LINES_AHEAD: usize = 8;

/// From now on the asking process and all it starts open with this share mode.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartRun {
    /// The share mode of their opens
    pub share_mode: String,
    /// On this mount alone
    pub mount: Option<PathBuf>,
}

/// A run has started. It ends with the answer.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunStarted {
    pub pid: u32,
}

/// Unmounts a share.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unmount {
    pub path: PathBuf,
    /// At once, though programs use it
    #[serde(default)]
    pub lazy: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Unmounted {
    pub unmounted: PathBuf,
}

/// Stops the server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stop {}

/// The process that is stopping. The answer ends with it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Stopping {
    pub stopping: u32,
}

impl Session {
    pub fn unmount(&self, Unmount { path, lazy }: Unmount) -> Result<Unmounted, ApiFailure> {
        self.serving.unmount(&path, lazy)?;
        Ok(Unmounted { unmounted: path })
    }
}

/// An answer that begins with a line and goes on until the client leaves; `guard` ends with it.
fn kept_open(line: &Value, guard: impl Send + Sync + 'static) -> AdminResponse {
    let (sender, receiver) = mpsc::channel::<Bytes>(1);
    // The channel has room for the one line.
    drop(sender.try_send(format!("{line}\n").into()));
    json_stream(StatusCode::CREATED, receiver, (sender, guard))
}

/// Ends the policy of a process tree.
struct Run {
    serving: Arc<dyn Serving>,
    number: u64,
}

impl Drop for Run {
    fn drop(&mut self) {
        self.serving.end_run(self.number);
    }
}

/// Drops a value on a thread that may block.
struct Elsewhere<T: Send + 'static>(Option<T>);

impl<T: Send + 'static> Drop for Elsewhere<T> {
    fn drop(&mut self) {
        drop_elsewhere(self.0.take());
    }
}

impl Api {
    pub(super) async fn start_run(
        self: Arc<Self>,
        call: ApiCall,
        wanted: StartRun,
    ) -> Result<AdminResponse, ApiFailure> {
        call.peer.check_may_stay()?;
        let session = self.session(&call)?;
        let (pid, number) = (session.owner.pid, session.owner.client.session);
        let run = self.blocking(call.peer, move || {
            let share = read_share_mode(&wanted.share_mode)?;
            session.serving.start_run(number, pid, share, wanted.mount.as_deref())?;
            Ok::<_, ApiFailure>(Run { serving: Arc::clone(&session.serving), number })
        });
        let run = Elsewhere(Some(run.await??));
        Ok(kept_open(&json!(RunStarted { pid }), run))
    }

    /// Takes a snapshot. An error that comes before any progress has its status; a later one is the
    /// last line.
    pub(super) async fn create_snapshot(
        self: Arc<Self>,
        call: ApiCall,
        wanted: CreateSnapshot,
    ) -> Result<AdminResponse, ApiFailure> {
        call.peer.check_may_stay()?;
        let session = self.session(&call)?;
        let (sender, mut lines) = mpsc::channel::<Result<Bytes, ApiFailure>>(LINES_AHEAD);
        let place = self.thread(call.peer).await?;
        tokio::spawn(blocking(move || {
            let taken = session.create_snapshot(&wanted, |progress| {
                // A client that does not read misses how far it was.
                drop(sender.try_send(Ok(format!("{}\n", json!(progress)).into())));
            });
            let line = taken.map(|taken| format!("{}\n", json!(taken)).into());
            drop(sender.blocking_send(line));
            drop(place);
        }));
        let ended = || ApiFailure::failed("the server met an error of its own; its log has more");
        let mut next = Some(lines.recv().await.ok_or_else(ended)??);
        let (sender, receiver) = mpsc::channel(LINES_AHEAD);
        tokio::spawn(async move {
            while let Some(line) = next {
                if sender.send(line).await.is_err() {
                    return;
                }
                next = match lines.recv().await {
                    Some(Ok(line)) => Some(line),
                    Some(Err(failure)) => Some(failure.line().into()),
                    None => None,
                };
            }
        });
        Ok(json_stream(StatusCode::CREATED, receiver, ()))
    }

    /// Stops the server once the first line of the answer is on its way.
    pub(super) async fn stop_server(
        self: Arc<Self>,
        _: ApiCall,
        Stop {}: Stop,
    ) -> Result<AdminResponse, ApiFailure> {
        let (sender, receiver) = mpsc::channel::<Bytes>(1);
        let line = format!("{}\n", json!(Stopping { stopping: std::process::id() }));
        drop(sender.try_send(line.into()));
        let serving = Arc::clone(&self.serving);
        tokio::spawn(async move {
            // There is room again once the line was taken, or its client is gone.
            drop(sender.reserve().await);
            tokio::task::yield_now().await;
            serving.shut_down();
            // The answer ends with the server.
            std::future::pending::<()>().await;
            drop(sender);
        });
        Ok(json_stream(StatusCode::OK, receiver, ()))
    }
}
