//! The calls of the API: a row each, with the type of its request and the type of its answer.
//!
//! The router, the OpenAPI document and the commands' client are all made of this table and of its
//! types: the fields of a request are the parameters of its call.

use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use hyper::Method;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::body::AdminResponse;
use super::call::{ApiCall, Call, has_body, name_in, read};
use super::calls::Api;
use super::openapi::Document;
use super::session::Session;
#[allow(clippy::wildcard_imports, reason = "the table names the types of all calls")]
use super::*;
use crate::bench::report::{IgnoreRule, Report};
use crate::journal::json::EventPage;

/// The parameter that names the account, which every call takes in its query.
pub const ACCOUNT: &str = "account";

/// A parameter in a path or a query.
#[derive(Debug)]
pub struct Param {
    pub name: String,
    pub in_path: bool,
    /// The type of its value.
    pub kind: ParameterKind,
    /// The call makes no sense without it.
    pub required: bool,
    pub about: String,
    pub schema: Value,
}

/// The type of a parameter.
#[derive(Debug)]
pub enum ParameterKind {
    Text,
    /// One of these words.
    Word(Vec<String>),
    Flag,
    /// A number from 0.
    Number {
        most: u64,
    },
}

pub struct Route {
    pub method: Method,
    pub path: &'static str,
    /// Its name in the OpenAPI document.
    pub id: &'static str,
    pub summary: &'static str,
    /// The status of an answer.
    pub status: u16,
    /// The statuses of errors that it has beside those that every call has.
    pub errors: &'static [u16],
    /// Only the control socket has it.
    pub for_owner: bool,
    /// The parameters in path and query, without the account.
    pub params: Vec<Param>,
    /// The shape of its body, if it takes one: a name, and the schema.
    pub body: Option<(String, Value)>,
    /// The name of the shape of its answer.
    pub answer: String,
    /// Refuses values that are not those of its request.
    pub check: fn(Value) -> Result<(), ApiFailure>,
    /// How it is carried out.
    pub run: RouteHandler,
}

impl Route {
    pub fn in_path(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|param| param.in_path && param.name == name)
    }

    pub fn in_query(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|param| !param.in_path && param.name == name)
    }
}

type Answered = Result<AdminResponse, ApiFailure>;
type AnsweredLater = Pin<Box<dyn Future<Output = Answered> + Send>>;

type Answers = dyn Fn(&Session, Value) -> Result<Value, ApiFailure> + Send + Sync;

/// How a call is carried out.
pub enum RouteHandler {
    /// As one request of a session, on a thread that may block.
    Plain(Box<Answers>),
    /// The same, for one that replaces all data.
    Replace(Box<Answers>),
    /// As a task: it waits for something, or its answer goes on.
    Task(Box<dyn Fn(Arc<Api>, ApiCall, Value) -> AnsweredLater + Send + Sync>),
}

fn plain<C: Call>(run: fn(&Session, C) -> Result<C::Answer, ApiFailure>) -> RouteHandler {
    RouteHandler::Plain(Box::new(move |session, values| Ok(json!(run(session, read(values)?)?))))
}

fn replace<C: Call>(run: fn(&Session, C) -> Result<C::Answer, ApiFailure>) -> RouteHandler {
    RouteHandler::Replace(Box::new(move |session, values| Ok(json!(run(session, read(values)?)?))))
}

fn task<C: Call, F: Future<Output = Answered> + Send + 'static>(
    run: fn(Arc<Api>, ApiCall, C) -> F,
) -> RouteHandler {
    RouteHandler::Task(Box::new(move |api, call, values| {
        let wanted = read(values);
        Box::pin(async move { run(api, call, wanted?).await })
    }))
}

/// All routes, and the shapes that they name.
pub struct Routes {
    pub routes: Vec<Route>,
    pub shapes: Map<String, Value>,
}

/// The routes; made once, of the types.
pub static ROUTES: LazyLock<Routes> = LazyLock::new(Routes::new);

/// The calls: method and path, name in the document, types of request and answer; the status of an
/// answer and the errors that not every call has; what it does, and how.
macro_rules! calls {
    ($($method:ident $path:literal $id:ident:
       $request:ident $({ $($field:ident: $type:ty)? })? => $answer:ty,
       $status:literal $errors:tt $summary:literal, $run:expr;)*) => {
        $($(
            #[doc = $summary]
            #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
            pub struct $request { $(pub $field: $type)? }
        )?)*

        $(impl Call for $request {
            type Answer = $answer;
            const METHOD: Method = Method::$method;
            const PATH: &'static str = $path;
        })*

        impl Routes {
            fn new() -> Self {
                let mut shapes = Shapes::new();
                let routes = vec![$(
                    shapes.route::<$request>(stringify!($id), $summary, $status, &$errors, $run),
                )*];
                Self { routes, shapes: shapes.end() }
            }
        }
    };
}

calls! {
    GET "/api/v1/openapi.json" document: GetDocument {} => Document, 200 []
        "This document", task(Api::document);
    GET "/api/v1/status" status: GetStatus {} => ServerStatus, 200 []
        "What is served, and where", plain(Session::status);
    GET "/api/v1/connection" connection: GetConnection {} => ConnectionInfo, 200 []
        "How an SDK connects to the services", plain(Session::connection);
    GET "/api/v1/handles" handles: GetHandles => HandleList, 200 [409]
        "Who has which file open", plain(Session::handles);
    DELETE "/api/v1/handles/{handle}" closeHandle: CloseHandle => Closed, 200 []
        "Closes a handle by force", plain(Session::close_handle);
    GET "/api/v1/holds" holds: GetHolds {} => HoldList, 200 []
        "Files that clients of the API hold open", task(Api::list_holds);
    POST "/api/v1/holds" hold: HoldOptions => HoldRow, 201 [409]
        "Opens a file and holds it open", task(Api::hold);
    DELETE "/api/v1/holds/{handle}" release: Release => Released, 200 []
        "Ends a hold", task(Api::release);
    GET "/api/v1/why" why: GetWhy => Explanation, 200 [409]
        "What stands in the way of a file or another object, and who changed it",
        plain(Session::why);
    GET "/api/v1/history" history: GetHistory => History, 200 []
        "The latest changes, oldest first", plain(Session::history);
    GET "/api/v1/objects" objects: GetObjects => ObjectList, 200 [409]
        "What is stored, one level at a time", plain(Session::objects);
    GET "/api/v1/clock" clock: GetClock {} => ClockState, 200 []
        "The clock of the server", plain(Session::clock);
    POST "/api/v1/clock" turnClock: TurnClock => ClockState, 200 []
        "Turns the clock forward, stops it or lets it run", plain(Session::turn_clock);
    GET "/api/v1/gates" gates: GetGates {} => GateList, 200 []
        "Gates, and the requests that wait at them", plain(Session::gates);
    POST "/api/v1/gates" addGate: NewGate => GateAdded, 201 []
        "Adds a gate: matching requests stop there", plain(Session::add_gate);
    DELETE "/api/v1/gates" removeGates: RemoveGates {} => Removed, 200 []
        "Removes all gates; the requests that wait go on", plain(Session::remove_gates);
    GET "/api/v1/gates/{id}" gate: GetGate { id: u64 } => GateEntry, 200 []
        "One gate", plain(Session::gate);
    DELETE "/api/v1/gates/{id}" removeGate: RemoveGate { id: u64 } => Removed, 200 []
        "Removes a gate; the requests that wait there go on", plain(Session::remove_gate);
    GET "/api/v1/gates/{id}/wait" waitAtGate: WaitAtGate => Waiting, 200 [408]
        "Waits until a number of requests wait at a gate", task(Api::wait_at_gate);
    POST "/api/v1/gates/{id}/release" releaseGate: ReleaseGate => Went, 200 []
        "Releases the requests of a gate, or the first N", plain(Session::release_gate);
    POST "/api/v1/requests/{id}/release" releaseRequest: ReleaseRequest => Went, 200 []
        "Lets one request that waits at a gate go", plain(Session::release_request);
    POST "/api/v1/requests/{id}/drop" dropRequest: DropRequest => Went, 200 []
        "Ends one request that waits at a gate", plain(Session::drop_request);
    GET "/api/v1/faults" faults: GetFaults {} => FaultList, 200 []
        "Faults that requests meet", plain(Session::faults);
    POST "/api/v1/faults" addFault: NewFault => FaultAdded, 201 []
        "Adds a fault for matching requests", plain(Session::add_fault);
    DELETE "/api/v1/faults" removeFaults: RemoveFaults {} => Removed, 200 []
        "Removes all faults", plain(Session::remove_faults);
    DELETE "/api/v1/faults/{id}" removeFault: RemoveFault { id: u64 } => Removed, 200 []
        "Removes a fault", plain(Session::remove_fault);
    GET "/api/v1/clients" clients: GetClients {} => ClientList, 200 []
        "Clients that have a name, each with a key of its own", plain(Session::clients);
    POST "/api/v1/clients" addClient: AddClient => ClientEntry, 201 [409]
        "Adds a client: the key that signs a request names the client in the journal",
        plain(Session::add_client);
    DELETE "/api/v1/clients/{name}" removeClient:
        RemoveClient { name: String } => ClientRemoved, 200 []
        "Removes a client", plain(Session::remove_client);
    POST "/api/v1/marks" mark: SetMark => MarkSet, 201 []
        "Sets a mark in the journal: a test begins", plain(Session::set_mark);
    GET "/api/v1/explorations" explorations: GetExplorations {} => ExplorationList, 200 []
        "The exploration under way, or the last one", plain(Session::explorations);
    POST "/api/v1/explorations" explore: CreateExploration => ExplorationCreated, 201 [409]
        "Begins an exploration: a test is run under every order of its clients' requests that \
         matters", plain(Session::create_exploration);
    GET "/api/v1/explorations/{id}" exploration: GetExploration { id: u64 } => Exploration, 200 []
        "What an exploration has found", plain(Session::exploration);
    DELETE "/api/v1/explorations/{id}" endExploration:
        EndExploration { id: u64 } => Exploration, 200 []
        "Ends an exploration: its keys are removed and the clock runs again",
        plain(Session::end_exploration);
    POST "/api/v1/explorations/{id}/runs" beginRun: BeginRun => RunBegun, 201 [409]
        "Begins the next run of an exploration", replace(Session::begin_run);
    GET "/api/v1/explorations/{id}/runs/{run}" run: GetRun => RunState, 200 []
        "How a run goes; with `wait_ms` once it no longer goes on", task(Api::watch_run);
    POST "/api/v1/explorations/{id}/runs/{run}/clients/{name}" tellClient:
        TellClient => ClientTold, 200 [408]
        "Says that a client begins or has ended", task(Api::tell_client);
    POST "/api/v1/explorations/{id}/runs/{run}/steps" takeStep: TakeStep => StepTaken, 200 [408]
        "A step that the server does not see by itself: answered when it is chosen",
        task(Api::take_step);
    POST "/api/v1/explorations/{id}/runs/{run}/end" endRun: EndRun => RunEnded, 200 []
        "Ends a run with the verdict of its test", plain(Session::end_run);
    GET "/api/v1/events" events: GetEvents => EventPage, 200 []
        "What happens, all services in one order: a page, or with `Accept: text/event-stream` as \
         server-sent events", task(Api::events);
    GET "/api/v1/report" report: GetReport => Report, 200 []
        "What went wrong between clients, or was never tried", plain(Session::report);
    GET "/api/v1/report/junit" reportJunit: GetJunit => Junit, 200 []
        "The report as a JUnit document", plain(Session::junit);
    GET "/api/v1/report/ignore" ignores: GetIgnores {} => IgnoreList, 200 []
        "Rules by which findings of the report are ignored", plain(Session::ignores);
    POST "/api/v1/report/ignore" addIgnore: AddIgnore => IgnoreRule, 201 []
        "Adds a rule by which findings are ignored", plain(Session::add_ignore);
    DELETE "/api/v1/report/ignore/{id}" removeIgnore: RemoveIgnore { id: u64 } => Removed, 200 []
        "Removes a rule by which findings are ignored", plain(Session::remove_ignore);
    GET "/api/v1/locks" locks: GetLocks => LockList, 200 [409]
        "Byte-range locks and their holders", plain(Session::locks);
    GET "/api/v1/pending" pending: GetPending {} => PendingList, 200 []
        "Files that are delete pending, with the handles that keep them", plain(Session::pending);
    GET "/api/v1/leases" leases: GetLeases {} => LeaseList, 200 []
        "Leases in force, of shares, files, containers and blobs", plain(Session::leases);
    GET "/api/v1/messages" messages: GetMessages => MessageList, 200 []
        "Messages that no Get returns yet", plain(Session::messages);
    POST "/api/v1/undelete" undelete: Undelete => Undeleted, 200 [409]
        "Takes the delete-pending mark from a file", plain(Session::undelete);
    POST "/api/v1/leases/break" breakLease: BreakLease => LeaseBroken, 200 [409]
        "Ends the lease of a file, share, blob or container", plain(Session::break_lease);
    GET "/api/v1/states" states: GetStates {} => StateList, 200 [409]
        "States that were saved", plain(Session::states);
    PUT "/api/v1/states/{name}" saveState: SaveState => StateEntry, 200 [409]
        "Saves all data under a name", plain(Session::save_state);
    DELETE "/api/v1/states/{name}" deleteState:
        DeleteState { name: String } => StateDeleted, 200 [409]
        "Deletes a saved state", plain(Session::delete_state);
    POST "/api/v1/states/{name}/restore" restoreState: RestoreState => StateRestored, 200 [409]
        "Replaces all data by a saved state", replace(Session::restore_state);
    POST "/api/v1/reset" reset: Reset => ResetDone, 200 [409]
        "Removes all data, gates, faults and holds; the clock shows the system's time",
        replace(Session::reset);

    DELETE "/api/v1/owner/handles" closeHandles: CloseHandles => Closed, 200 []
        "Closes a handle by force, or all", plain(Session::close_handles);
    POST "/api/v1/owner/gates/release" releaseGates: ReleaseGates => Went, 200 []
        "Releases requests at one gate or at all", plain(Session::release_gates);
    GET "/api/v1/owner/lease" lease: GetLease => LeaseShown, 200 [409]
        "The lease of a file, share, blob or container", plain(Session::lease);
    GET "/api/v1/owner/log" log: GetLog => EventPage, 200 []
        "The log of an account: who was granted, refused, closed", task(Api::log);
    GET "/api/v1/owner/shares" shares: GetShares => ShareList, 200 []
        "The shares of an account", plain(Session::list_shares);
    POST "/api/v1/owner/shares" createShare: CreateShare => ShareCreated, 201 [409]
        "Makes a share", plain(Session::create_share);
    DELETE "/api/v1/owner/shares/{name}" deleteShare: DeleteShare => Deleted, 200 [409]
        "Deletes a share", plain(Session::delete_share);
    GET "/api/v1/owner/snapshots" snapshots: GetSnapshots => SnapshotList, 200 []
        "The snapshots of a share, oldest first", plain(Session::list_snapshots);
    POST "/api/v1/owner/snapshots" createSnapshot: CreateSnapshot => SnapshotTaken, 201 [409]
        "Takes a snapshot of a share; lines of `files` and `bytes` say how far it is",
        task(Api::create_snapshot);
    DELETE "/api/v1/owner/snapshots/{snapshot}" deleteSnapshot: DeleteSnapshot => Deleted, 200 [409]
        "Deletes a snapshot", plain(Session::delete_snapshot);
    GET "/api/v1/owner/token" token: GetToken => TokenGiven, 200 []
        "A bearer token that --oauth basic accepts, and how programs get their own",
        plain(Session::token);
    POST "/api/v1/owner/load" load: LoadInto => Loaded, 200 []
        "Makes what a load file names and the account does not have", plain(Session::load);
    POST "/api/v1/owner/runs" startRun: StartRun => RunStarted, 201 []
        "Gives the opens of the asking process and all it starts a share mode, until the \
         connection ends", task(Api::start_run);
    POST "/api/v1/owner/unmount" unmount: Unmount => Unmounted, 200 []
        "Unmounts a share", plain(Session::unmount);
    POST "/api/v1/owner/stop" stop: Stop => Stopping, 200 []
        "Stops the server; the answer ends with it", task(Api::stop_server);
}

/// The beginning of the paths that only the control socket has.
const OWNERS: &str = "/api/v1/owner/";

/// Makes routes and shapes of types.
struct Shapes {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
}

impl Shapes {
    fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        let requests = settings().for_deserialize().into_generator();
        let mut answers = settings().for_serialize().into_generator();
        answers.subschema_for::<ErrorAnswer>();
        Self { requests, answers }
    }

    fn route<C: Call>(
        &mut self,
        id: &'static str,
        summary: &'static str,
        status: u16,
        errors: &'static [u16],
        run: RouteHandler,
    ) -> Route {
        let mut request = C::json_schema(&mut self.requests).to_value();
        settle(&mut request);
        let in_path: Vec<_> = C::PATH.split('/').filter_map(name_in).collect();
        let properties = request.get_mut("properties").and_then(Value::as_object_mut);
        let mut properties = properties.map(std::mem::take).unwrap_or_default();
        let required = request["required"].as_array().cloned().unwrap_or_default();
        let is_required = |name: &str| required.iter().any(|one| one == name);
        let mut params = Vec::new();
        for name in &in_path {
            let schema = properties.remove(*name).unwrap_or_default();
            params.push(Param::new(name, schema, true, true));
        }
        let mut body = None;
        if has_body(&C::METHOD) {
            let left = required.iter().filter(|name| !in_path.iter().any(|part| name == part));
            request["required"] = left.cloned().collect();
            request["properties"] = properties.into();
            request["additionalProperties"] = false.into();
            if request.get("examples").is_none() {
                request["examples"] = json!([{}]);
            }
            body = Some((C::schema_name().into_owned(), request));
        } else {
            params.extend(properties.into_iter().map(|(name, schema)| {
                let required = is_required(&name);
                Param::new(&name, schema, false, required)
            }));
        }
        let answer = self.answers.subschema_for::<C::Answer>().to_value();
        let answer = answer["$ref"].as_str().and_then(|path| path.rsplit('/').next());
        Route {
            method: C::METHOD,
            path: C::PATH,
            id,
            summary,
            status,
            errors,
            for_owner: C::PATH.starts_with(OWNERS),
            params,
            body,
            answer: answer.expect("an answer is a named type").to_owned(),
            check: |values| read::<C>(values).map(drop),
            run,
        }
    }

    /// The shapes that requests and answers name.
    fn end(mut self) -> Map<String, Value> {
        let mut shapes = self.requests.take_definitions(true);
        shapes.extend(self.answers.take_definitions(true));
        shapes.values_mut().for_each(settle);
        shapes
    }
}

/// Makes a schema what the API means by it: an integer has the bounds of its type, and an object no
/// other fields.
fn settle(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.remove("title");
            if let Some(Value::String(format)) = object.remove("format") {
                let most = match format.as_str() {
                    "uint64" | "uint" => Some(u64::MAX),
                    "uint32" => Some(u32::MAX.into()),
                    "uint16" => Some(u16::MAX.into()),
                    _ => None,
                };
                if let Some(most) = most {
                    object.entry("maximum").or_insert_with(|| most.into());
                }
            }
            if let Some(one_of) = object.remove("anyOf") {
                object.insert("oneOf".to_owned(), one_of);
            }
            if object.contains_key("properties") {
                object.entry("additionalProperties").or_insert(Value::Bool(false));
            }
            let inner = object.iter_mut();
            let inner = inner.filter(|(name, _)| !matches!(name.as_str(), "examples" | "default"));
            inner.for_each(|(_, schema)| settle(schema));
        }
        Value::Array(list) => list.iter_mut().for_each(settle),
        _ => {}
    }
}

impl Param {
    fn new(name: &str, mut schema: Value, in_path: bool, required: bool) -> Self {
        // A parameter that is left out is not null.
        if let Some(Value::Array(types)) = schema.get("type")
            && let Some(first) = types.first().cloned()
        {
            schema["type"] = first;
        }
        if let Some(Value::Array(words)) = schema.get_mut("enum") {
            words.retain(|word| !word.is_null());
        }
        let about = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let about = about.replace('\n', " ");
        if let Value::Object(object) = &mut schema {
            object.remove("description");
            object.remove("default");
        }
        let words = schema.get("enum").and_then(Value::as_array);
        let kind = match (schema["type"].as_str(), words) {
            (_, Some(words)) => ParameterKind::Word(
                words.iter().filter_map(Value::as_str).map(Into::into).collect(),
            ),
            (Some("boolean"), _) => ParameterKind::Flag,
            (Some("integer"), _) => {
                ParameterKind::Number { most: schema["maximum"].as_u64().unwrap_or(u64::MAX) }
            }
            _ => ParameterKind::Text,
        };
        Self { name: name.to_owned(), in_path, kind, required, about, schema }
    }
}
