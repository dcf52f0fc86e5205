//! Applies gates and faults to requests of SMB clients, named by their commands: `SMB Create`.
//!
//! Decides which status a fault answers with. Which gates and faults apply to a request is decided
//! in [`crate::bench::controls`]. A request at a gate keeps no thread, and stalls no other one.

use std::sync::Arc;

use tokio::time::timeout;

use super::connection::Ended;
use super::footprint;
use super::operations::Call;
use super::server::Site;
use super::status::Status;
use super::wire::Command;
use crate::bench::controls::{FaultAction, Passed, Point, Visitor};
use crate::bench::explore::{Entry, Staged, Step};
use crate::journal::Event;
use crate::rules::asked::Asked;
use crate::rules::pattern::PatternSubject;
use crate::rules::service::ServiceKind;

/// The commands that gates and faults can name.
const COMMANDS: [Command; 11] = [
    Command::Create,
    Command::Close,
    Command::Flush,
    Command::Read,
    Command::Write,
    Command::Lock,
    Command::Ioctl,
    Command::QueryDirectory,
    Command::ChangeNotify,
    Command::QueryInfo,
    Command::SetInfo,
];

/// The names of those.
pub fn call_names() -> impl Iterator<Item = &'static str> {
    COMMANDS.into_iter().map(Command::name)
}

/// A request as gates and faults see it.
pub struct Visit {
    visitor: Visitor,
    command: Command,
    drops: bool,
    /// The request is one of an exploration's client.
    staged: Option<Staged>,
}

pub enum Arrival {
    /// It goes on; the value is for [`leave`].
    Goes(Option<Box<Visit>>),
    Refused(Status),
}

impl Visit {
    fn new(command: Command, call: &Call) -> Self {
        let visitor = Visitor {
            service: ServiceKind::File,
            account: Arc::clone(&call.session.account),
            operation: command.name().to_owned(),
            path: call.place(command),
            who: call.session.who.clone(),
            client_request: None,
            user_agent: None,
            asked: Asked::default(),
        };
        Self { visitor, command, drops: false, staged: None }
    }

    fn seen(&self) -> PatternSubject<'_> {
        PatternSubject {
            service: ServiceKind::File,
            operation: self.command.name(),
            documented: self.command.name(),
            account: &self.visitor.account,
            path: &self.visitor.path,
            header: &|_| None,
        }
    }
}

/// A request before it is carried out.
pub async fn arrive(command: Command, call: &Call) -> Result<Arrival, Ended> {
    let controls = call.connection.site.accounts.controls();
    if !controls.are_set() {
        return Ok(Arrival::Goes(None));
    }
    let mut visit = Visit::new(command, call);
    let visitor = || visit.visitor.clone();
    let mut passed = controls.gates.pass(Point::Received, &visit.seen(), visitor).await;
    // Pipes are of no share.
    if call.tree.share.is_some() {
        let step = || Step {
            operation: command.name().to_owned(),
            object: format!("{}:{}", ServiceKind::File, visit.visitor.path),
            fingerprint: footprint::fingerprint(command, call, &visit.visitor.path),
            footprint: footprint::of(command, call, &visit.visitor.path),
            can_drop: true,
        };
        match controls.enter_stage(&call.session.who, None, visitor, step) {
            Entry::Passes => {}
            Entry::Ends => return Err(Ended),
            Entry::Waits(place, staged) => {
                visit.staged = Some(staged);
                passed = controls.gates.wait(place).await;
            }
        }
    }
    visit.drops = passed.map_err(|_| Ended)? == Passed::AnswerDropped;
    let possible =
        |action: &FaultAction| !matches!(action, FaultAction::Cut(_) | FaultAction::Slow(_));
    let Some(fault) = controls.faults.meet_of(&visit.seen(), possible) else {
        return Ok(Arrival::Goes(Some(Box::new(visit))));
    };
    let met = Event::Fault { fault: fault.id, visitor: Box::new(visit.visitor.clone()) };
    controls.journal.push(Some(Arc::clone(&visit.visitor.account)), met);
    match fault.action {
        FaultAction::Answer { status, code } => return Ok(Arrival::Refused(named(status, code))),
        FaultAction::Delay(time) => {
            let mut ended = controls.faults.delayed();
            if timeout(time, ended.changed()).await.is_ok() {
                return Err(Ended);
            }
        }
        FaultAction::DropBefore => return Err(Ended),
        _ => visit.drops = true,
    }
    Ok(Arrival::Goes(Some(Box::new(visit))))
}

/// A request that is done and not answered yet.
pub async fn leave(site: &Site, visit: Option<Box<Visit>>, status: Status) -> Result<(), Ended> {
    let Some(mut visit) = visit else { return Ok(()) };
    let gates = &site.accounts.controls().gates;
    let visitor = || visit.visitor.clone();
    let passed = gates.pass(Point::Committed, &visit.seen(), visitor).await;
    if let Some(staged) = &mut visit.staged {
        staged.status = Some(status.http());
    }
    if visit.drops || passed.is_err() { Err(Ended) } else { Ok(()) }
}

/// The status that a fault answers with: the one that its code names, without the underscores, or
/// the one nearest to its HTTP status.
fn named(status: u16, code: &str) -> Status {
    Status::by_code(code).unwrap_or(match status {
        401 | 403 => Status::ACCESS_DENIED,
        404 => Status::OBJECT_NAME_NOT_FOUND,
        409 | 412 => Status::SHARING_VIOLATION,
        507 => Status::DISK_FULL,
        503 => Status::INSUFFICIENT_RESOURCES,
        _ => Status::UNEXPECTED_IO_ERROR,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_has_the_status_of_its_code_or_the_one_nearest_to_its_http_status() {
        let codes =
            [(500, "SharingViolation"), (404, "DELETEPENDING"), (404, "Nothing"), (400, "x")];
        let found = codes.map(|(status, code)| named(status, code));
        let expected = [
            Status::SHARING_VIOLATION,
            Status::DELETE_PENDING,
            Status::OBJECT_NAME_NOT_FOUND,
            Status::UNEXPECTED_IO_ERROR,
        ];
        assert_eq!(found, expected);
    }
}
