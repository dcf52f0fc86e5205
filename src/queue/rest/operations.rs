//! The operations of the Queue service: the shape of each request, what a SAS must permit, and the
//! function that carries it out; what operations on queues and messages read and write. All of them
//! look at the time: messages come back, and expire. A message is below its queue, beside other
//! messages.

use hyper::Method;

use super::{QueueCall, segments};
use crate::http::auth::Permission::{Add, Create, Delete, List, Process, Read, Update, Write};
use crate::http::auth::{QUEUE_SIGNATURES, ResourceLevel};
use crate::http::frame::footprint::{by_level, container};
use crate::http::frame::host::{HostedAccount, service};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::routing::{
    CONTAINER, DELETE, GET, LOOK, POST, PUT, RouteRow, SERVICE, by_shape, row, unsupported_verb,
};
use crate::http::frame::service::{ErrorFormat, Operation, Service, operations};
use crate::http::frame::service_operations::{
    preflight, service_properties, service_stats, set_service_properties, user_delegation_key,
};
use crate::http::request::Request;
use crate::queue::service::QueueService;
use crate::rules::footprint::{Footprint, Time};
use crate::rules::policy::StoredPolicy;
use crate::rules::service::ServiceKind;

pub static SERVICE_TABLE: Service = Service {
    kind: ServiceKind::Queue,
    route,
    operations: OPERATIONS,
    first_version: "2009-09-19",
    needs_version: false,
    errors: ErrorFormat::Xml,
    signatures: &QUEUE_SIGNATURES,
    target: |address, _| (address.container.as_deref(), address.path()),
    object,
    touches: |operation, request| by_level(ServiceKind::Queue, operation, request, of_messages),
    policy,
    anonymous: |_, _, _| false,
    answered: None,
    properties: &["Logging", "HourMetrics", "MinuteMetrics", "Cors"],
};

/// Messages have two shapes of paths, and no `comp`; the rest is a table.
fn route(request: &Request) -> Result<&'static Operation, Refusal> {
    let preflight = request.method == Method::OPTIONS;
    if preflight || request.address.level() != ResourceLevel::Object {
        return by_shape(&TABLE, &SERVICE_PREFLIGHT, request);
    }
    for name in ["comp", "restype"] {
        if let Some(value) = request.query.get(name) {
            return Err(Refusal::query(name, value, "it names no operation on messages"));
        }
    }
    let segments = segments(request);
    let [first, id @ ..] = &segments[..] else { return Err(no_resource()) };
    if !first.eq_ignore_ascii_case("messages") {
        return Err(no_resource());
    }
    let peeks =
        || request.query.get("peekonly").is_some_and(|text| text.eq_ignore_ascii_case("true"));
    Ok(match (&request.method, id) {
        (&Method::GET, []) if peeks() => &MESSAGES_PEEK,
        (&Method::GET, []) => &MESSAGES_DEQUEUE,
        (&Method::POST, []) => &MESSAGES_ENQUEUE,
        (&Method::DELETE, []) => &MESSAGES_CLEAR,
        (&Method::PUT, [_]) => &MESSAGE_ID_UPDATE,
        (&Method::DELETE, [_]) => &MESSAGE_ID_DELETE,
        (_, [] | [_]) => return Err(unsupported_verb()),
        _ => return Err(no_resource()),
    })
}

fn no_resource() -> Refusal {
    let message = "The requested URI does not represent any resource on the server.";
    Refusal::bad("InvalidUri", message)
}

/// The queue or the message that a request addresses.
fn object(request: &Request) -> String {
    let queue = request.address.container.as_deref().unwrap_or_default();
    match segments(request).as_slice() {
        [_, id] => format!("{queue}/{id}"),
        _ => queue.to_owned(),
    }
}

fn policy(account: &dyn HostedAccount, queue: &str, id: &str) -> Option<StoredPolicy> {
    service::<QueueService>(account, ServiceKind::Queue).ok()?.policy(queue, id)
}

operations! {
    QueueCall;

    SERVICE_PREFLIGHT preflight ("ServicePreflight", "Preflight Queue Request") Service &[]
        => (preflight);
    SERVICE_SET_PROPERTIES pool_change ("ServiceSetProperties", "Set Queue Service Properties")
        Service &[Write] => (set_service_properties);
    SERVICE_GET_PROPERTIES read ("ServiceGetProperties", "Get Queue Service Properties")
        Service &[Read] => (service_properties);
    SERVICE_GET_STATISTICS read ("ServiceGetStatistics", "Get Queue Service Stats") Service &[Read]
        => (service_stats);
    SERVICE_GET_USER_DELEGATION_KEY pool_read
        ("ServiceGetUserDelegationKey", "Get User Delegation Key") Service &[Read]
        => (user_delegation_key);
    SERVICE_LIST_QUEUES_SEGMENT pool_read ("ServiceListQueuesSegment", "List Queues")
        Service &[List] => list_queues;
    // No service SAS reaches a queue as a whole; the refusal is that of a missing permission.
    #[service_sas (&[])]
    QUEUE_CREATE change ("QueueCreate", "Create Queue") Container &[Create, Write] => create_queue;
    #[service_sas (&[])]
    QUEUE_DELETE change ("QueueDelete", "Delete Queue") Container &[Delete] => delete_queue;
    #[service_sas (&[Read])] #[touches (queue_read)]
    QUEUE_GET_PROPERTIES read ("QueueGetProperties", "Get Queue Metadata") Container &[Read]
        => queue_properties;
    #[service_sas (&[])]
    QUEUE_SET_METADATA change ("QueueSetMetadata", "Set Queue Metadata") Container &[Write]
        => set_queue_metadata;
    // No SAS at all reaches stored access policies.
    #[service_sas (&[])]
    QUEUE_GET_ACCESS_POLICY read ("QueueGetAccessPolicy", "Get Queue ACL") Container &[]
        => access_policy;
    #[service_sas (&[])]
    QUEUE_SET_ACCESS_POLICY change ("QueueSetAccessPolicy", "Set Queue ACL") Container &[]
        => set_access_policy;
    MESSAGES_ENQUEUE change ("MessagesEnqueue", "Put Message") Object &[Add] => put_message;
    MESSAGES_DEQUEUE change ("MessagesDequeue", "Get Messages") Object &[Process] => get_messages;
    MESSAGES_PEEK read ("MessagesPeek", "Peek Messages") Object &[Read] => peek_messages;
    #[or_level (ResourceLevel::Object)] #[service_sas (&[])] #[touches (queue_cleared)]
    MESSAGES_CLEAR change ("MessagesClear", "Clear Messages") Container &[Delete] => clear_messages;
    #[or_level (ResourceLevel::Container)] #[touches (of_message)]
    MESSAGE_ID_UPDATE change ("MessageIdUpdate", "Update Message") Object &[Update]
        => update_message;
    #[or_level (ResourceLevel::Container)] #[touches (of_message)]
    MESSAGE_ID_DELETE change ("MessageIdDelete", "Delete Message") Object &[Process]
        => delete_message;
}

static TABLE: [RouteRow; 11] = [
    row(PUT, SERVICE, "service", "properties", &SERVICE_SET_PROPERTIES),
    row(GET, SERVICE, "service", "properties", &SERVICE_GET_PROPERTIES),
    row(GET, SERVICE, "service", "stats", &SERVICE_GET_STATISTICS),
    row(POST, SERVICE, "service", "userdelegationkey", &SERVICE_GET_USER_DELEGATION_KEY),
    row(GET, SERVICE, "", "list", &SERVICE_LIST_QUEUES_SEGMENT),
    row(PUT, CONTAINER, "", "", &QUEUE_CREATE),
    row(DELETE, CONTAINER, "", "", &QUEUE_DELETE),
    row(LOOK, CONTAINER, "", "metadata", &QUEUE_GET_PROPERTIES),
    row(PUT, CONTAINER, "", "metadata", &QUEUE_SET_METADATA),
    row(LOOK, CONTAINER, "", "acl", &QUEUE_GET_ACCESS_POLICY),
    row(PUT, CONTAINER, "", "acl", &QUEUE_SET_ACCESS_POLICY),
];

/// What operations on all messages of a queue touch.
fn of_messages(changes: bool, request: &Request) -> Footprint {
    let queue = container(ServiceKind::Queue, request);
    let found = if changes { Footprint::of([], [queue]) } else { Footprint::of([queue], []) };
    found.timed(Time::Reads)
}

fn queue_read(request: &Request) -> Footprint {
    of_messages(false, request)
}

fn queue_cleared(request: &Request) -> Footprint {
    of_messages(true, request)
}

fn of_message(request: &Request) -> Footprint {
    let id = segments(request).get(1).cloned().unwrap_or_default();
    let message = container(ServiceKind::Queue, request).below("message").below(id);
    Footprint::of([], [message]).timed(Time::Reads)
}
