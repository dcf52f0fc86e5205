//! Opens that clients of the API keep: a connection of `api/control` each, which ends when it is
//! released, when its time is over, or with the connection of a client that asked for that.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::StatusCode;
use hyper::body::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::super::body::{AdminResponse, json as json_answer, json_stream};
use super::call::ApiCall;
use super::failure::ApiFailure;
use super::{Api, blocking, fields};
use crate::api::control::protocol::{HoldRequest, HoldRow, LockWanted};
use crate::api::control::{ControlAnswer, ControlConnection, ControlRequest};

/// The most opens that clients of the API hold at a time.
pub const HOLDS_MAX: usize = 1024;
/// The longest time of a hold.
pub const HOLD_TIME_MAX: Duration = Duration::from_hours(1);
/// The time of a hold that names none, in milliseconds.
const FOR_MS: u64 = 60_000;

/// A hold as it is asked for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewHold {
    path: String,
    share: Option<String>,
    access: Option<String>,
    share_mode: Option<String>,
    disposition: Option<String>,
    #[serde(default)]
    delete_on_close: bool,
    for_ms: Option<u64>,
    #[serde(default)]
    locks: Vec<LockWanted>,
    #[serde(default)]
    while_connected: bool,
}

/// The holds of clients of the API.
#[derive(Default)]
pub struct Holds {
    kept: Mutex<HoldTable>,
}

#[derive(Default)]
struct HoldTable {
    last: u64,
    /// Places of holds that are being asked for.
    asked: usize,
    holds: Vec<KeptHold>,
}

struct KeptHold {
    number: u64,
    held: HoldRow,
    client: String,
    until: Instant,
    connection: Arc<Mutex<ControlConnection>>,
    /// Releases it when its time is over.
    timer: Option<AbortHandle>,
    /// Dropped to end the answer of a client that keeps its connection.
    _answer: Option<mpsc::Sender<Bytes>>,
}

impl Drop for KeptHold {
    fn drop(&mut self) {
        if let Some(timer) = &self.timer {
            timer.abort();
        }
    }
}

/// A place for a hold that is being asked for.
struct HoldReservation<'a>(&'a Holds);

impl Drop for HoldReservation<'_> {
    fn drop(&mut self) {
        self.0.state().asked -= 1;
    }
}

impl Holds {
    fn state(&self) -> MutexGuard<'_, HoldTable> {
        // Nothing in here panics half done.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self) -> Result<HoldReservation<'_>, ApiFailure> {
        let mut state = self.state();
        if state.holds.len() + state.asked >= HOLDS_MAX {
            return Err(ApiFailure::busy(format!(
                "clients of the API hold {HOLDS_MAX} files already: release some"
            )));
        }
        state.asked += 1;
        Ok(HoldReservation(self))
    }

    /// Takes a hold out. Its end may wait for the disk, so the caller drops it elsewhere.
    fn take(&self, number: u64) -> Option<KeptHold> {
        let mut state = self.state();
        let at = state.holds.iter().position(|kept| kept.number == number)?;
        Some(state.holds.remove(at))
    }

    pub fn release_all(&self) {
        let holds = std::mem::take(&mut self.state().holds);
        drop(holds);
    }
}

/// Releases a hold when its client goes away.
struct WhileConnected {
    holds: Arc<Holds>,
    number: u64,
}

impl Drop for WhileConnected {
    fn drop(&mut self) {
        end_soon(&self.holds, self.number);
    }
}

/// Ends a hold on a thread that may block.
fn end_soon(holds: &Holds, number: u64) {
    let Some(kept) = holds.take(number) else { return };
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(move || drop(kept))),
        Err(_) => drop(kept),
    }
}

impl Api {
    /// Opens a file and keeps the open.
    pub(super) async fn hold(&self, call: ApiCall) -> Result<AdminResponse, ApiFailure> {
        let wanted: NewHold = call.body()?;
        let time = Duration::from_millis(wanted.for_ms.unwrap_or(FOR_MS));
        if time > HOLD_TIME_MAX {
            let most = HOLD_TIME_MAX.as_millis();
            return Err(ApiFailure::bad(format!("for_ms is at most {most}: hold again later")));
        }
        let _place = self.holds.enter()?;
        let while_connected = wanted.while_connected;
        let file = match &wanted.share {
            Some(share) => format!("file:{share}/{}", wanted.path.trim_start_matches('/')),
            None => wanted.path.clone(),
        };
        let request = ControlRequest::Hold(HoldRequest {
            share_name: wanted.share,
            path: wanted.path,
            access: wanted.access.unwrap_or_else(|| "r".to_owned()),
            share_mode: wanted.share_mode.unwrap_or_else(|| "none".to_owned()),
            disposition: wanted.disposition,
            delete_on_close: wanted.delete_on_close,
            locks: wanted.locks,
        });
        let (mut connection, account) = (self.connection(&call), call.account.clone());
        let (connection, answer) = blocking(move || {
            let answer = connection.answer(account.as_deref(), request);
            (connection, answer)
        })
        .await?;
        let ControlAnswer::Held(held) = ApiFailure::of(answer).map_err(|why| why.about(&file))?
        else {
            return Err(ApiFailure::failed("the server did not say which handle it gave"));
        };
        let value = fields(&held);
        let client = call.client.as_deref().unwrap_or_default().to_owned();
        let (sender, receiver) = mpsc::channel(1);
        let number = self.keep(held, client, time, connection, while_connected.then_some(&sender));
        if !while_connected {
            return Ok(json_answer(StatusCode::CREATED, &value));
        }
        // The channel has room for the one line.
        drop(sender.try_send(format!("{value}\n").into()));
        let guard = WhileConnected { holds: Arc::clone(&self.holds), number };
        Ok(json_stream(StatusCode::CREATED, receiver, guard))
    }

    fn keep(
        &self,
        held: HoldRow,
        client: String,
        time: Duration,
        connection: ControlConnection,
        answer: Option<&mpsc::Sender<Bytes>>,
    ) -> u64 {
        let mut state = self.holds.state();
        state.last += 1;
        let number = state.last;
        let (until, answer) = (Instant::now() + time, answer.cloned());
        state.holds.push(KeptHold {
            number,
            held,
            client,
            until,
            connection: Arc::new(Mutex::new(connection)),
            timer: None,
            _answer: answer,
        });
        let holds = Arc::clone(&self.holds);
        // Under the lock: the timer cannot end the hold before it is known here.
        let timer = tokio::spawn(async move {
            sleep(time).await;
            end_soon(&holds, number);
        });
        if let Some(kept) = state.holds.last_mut() {
            kept.timer = Some(timer.abort_handle());
        }
        number
    }

    pub(super) async fn list_holds(&self) -> Result<Value, ApiFailure> {
        let rows = self.holds_with_state().await?.into_iter().map(|(_, row)| row);
        Ok(json!({ "holds": rows.collect::<Vec<_>>() }))
    }

    /// Forgets the holds whose handles were closed by force.
    pub(super) async fn forget_closed_holds(&self) -> Result<(), ApiFailure> {
        for (number, row) in self.holds_with_state().await? {
            if row["open"] == false {
                end_soon(&self.holds, number);
            }
        }
        Ok(())
    }

    /// All holds as rows, by number.
    async fn holds_with_state(&self) -> Result<Vec<(u64, Value)>, ApiFailure> {
        // Whether a hold is open is asked without the list's lock: the engine may make it wait.
        let row = |kept: &KeptHold| {
            let left = kept.until.saturating_duration_since(Instant::now());
            let mut row = fields(&kept.held);
            row["client"] = json!(kept.client);
            row["expires_in_ms"] = json!(u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
            (kept.number, row, kept.held.clone(), Arc::clone(&kept.connection))
        };
        let kept: Vec<_> = self.holds.state().holds.iter().map(row).collect();
        blocking(move || {
            let mut rows = Vec::new();
            for (number, mut row, held, connection) in kept {
                let holding = ControlRequest::Holding { handle: held.handle, wait_ms: 0 };
                let answer = ask(&connection, &held.account, holding);
                row["open"] = json!(matches!(answer, ControlAnswer::Holding { open: true }));
                rows.push((number, row));
            }
            rows
        })
        .await
    }

    pub(super) async fn release(&self, call: &ApiCall) -> Result<Value, ApiFailure> {
        let handle = call.id("handle")?;
        let first = self.serving.accounts().first().name().to_string();
        let account = call.account.clone().unwrap_or(first);
        let share = call.text("share");
        let number = {
            let state = self.holds.state();
            let meant = |kept: &&KeptHold| {
                kept.held.handle == handle
                    && kept.held.account == account
                    && share.as_ref().is_none_or(|share| kept.held.share_name == *share)
            };
            let mut found = state.holds.iter().filter(meant);
            let first = found.next().map(|kept| kept.number);
            if found.next().is_some() {
                return Err(ApiFailure::bad(format!(
                    "handle {handle} is held in several shares: add share=NAME"
                )));
            }
            first
        };
        let kept = number.and_then(|number| self.holds.take(number));
        let kept = kept.ok_or_else(|| {
            ApiFailure::not_found(format!("no client of the API holds handle {handle}"))
        })?;
        let answer = blocking(move || {
            let answer = ask(&kept.connection, &account, ControlRequest::Release { handle });
            drop(kept);
            answer
        });
        Ok(fields(ApiFailure::of(answer.await?)?))
    }
}

fn ask(
    connection: &Mutex<ControlConnection>,
    account: &str,
    request: ControlRequest,
) -> ControlAnswer {
    let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
    connection.answer(Some(account), request)
}
