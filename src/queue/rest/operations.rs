//! The operations of the Queue service: the shape of each request, what a SAS must permit, and the
//! function that carries it out. The names are those of the service's own description.

use hyper::Method;

use super::{footprint, message, messages, policies, queue, segments, service as of_service};
use crate::http::auth::Permission::{Add, Create, Delete, List, Process, Read, Update, Write};
use crate::http::auth::{QUEUE_SIGNATURES, ResourceLevel};
use crate::http::frame::footprint::by_level;
use crate::http::frame::host::{HostedAccount, service};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::routing::{
    CONTAINER, DELETE, GET, LOOK, POST, PUT, RouteRow, SERVICE, by_shape, row, unsupported_verb,
};
use crate::http::frame::service::{ErrorFormat, Operation, Service};
use crate::http::frame::service_operations::{
    SERVICE_GET_PROPERTIES, SERVICE_GET_STATISTICS, SERVICE_GET_USER_DELEGATION_KEY,
    SERVICE_PREFLIGHT, SERVICE_SET_PROPERTIES,
};
use crate::http::request::Request;
use crate::queue::service::QueueService;
use crate::rules::policy::StoredPolicy;
use crate::rules::service::ServiceKind;

pub static SERVICE_TABLE: Service = Service {
    kind: ServiceKind::Queue,
    route,
    operations: &OPERATIONS,
    first_version: "2009-09-19",
    needs_version: false,
    errors: ErrorFormat::Xml,
    signatures: &QUEUE_SIGNATURES,
    target: |address, _| (address.container.as_deref(), address.path()),
    object,
    touches: |operation, request| {
        by_level(ServiceKind::Queue, operation, request, footprint::of_messages)
    },
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

static SERVICE_LIST_QUEUES_SEGMENT: Operation =
    Operation::pool_read("ServiceListQueuesSegment", ResourceLevel::Service, &[List], |call| {
        of_service::list(call)
    });

// No service SAS reaches a queue as a whole; the refusal is that of a missing permission.
static QUEUE_CREATE: Operation =
    Operation::change("QueueCreate", ResourceLevel::Container, &[Create, Write], |call, body| {
        Box::pin(queue::create(call, body))
    })
    .service_sas(&[]);
static QUEUE_DELETE: Operation =
    Operation::change("QueueDelete", ResourceLevel::Container, &[Delete], |call, body| {
        Box::pin(queue::delete(call, body))
    })
    .service_sas(&[]);
static QUEUE_GET_PROPERTIES: Operation =
    Operation::read("QueueGetProperties", ResourceLevel::Container, &[Read], |call| {
        queue::properties(call)
    })
    .service_sas(&[Read])
    .touches(footprint::queue_read);
static QUEUE_SET_METADATA: Operation =
    Operation::change("QueueSetMetadata", ResourceLevel::Container, &[Write], |call, body| {
        Box::pin(queue::set_metadata(call, body))
    })
    .service_sas(&[]);
// No SAS at all reaches stored access policies.
static QUEUE_GET_ACCESS_POLICY: Operation =
    Operation::read("QueueGetAccessPolicy", ResourceLevel::Container, &[], |call| {
        policies::get(call)
    })
    .service_sas(&[]);
static QUEUE_SET_ACCESS_POLICY: Operation =
    Operation::change("QueueSetAccessPolicy", ResourceLevel::Container, &[], |call, body| {
        Box::pin(policies::set(call, body))
    })
    .service_sas(&[]);

static MESSAGES_ENQUEUE: Operation =
    Operation::change("MessagesEnqueue", ResourceLevel::Object, &[Add], |call, body| {
        Box::pin(messages::put(call, body))
    });
static MESSAGES_DEQUEUE: Operation =
    Operation::change("MessagesDequeue", ResourceLevel::Object, &[Process], |call, body| {
        Box::pin(messages::get(call, body))
    });
static MESSAGES_PEEK: Operation =
    Operation::read("MessagesPeek", ResourceLevel::Object, &[Read], messages::peek);
static MESSAGES_CLEAR: Operation =
    Operation::change("MessagesClear", ResourceLevel::Container, &[Delete], |call, body| {
        Box::pin(messages::clear(call, body))
    })
    .or_level(ResourceLevel::Object)
    .service_sas(&[])
    .touches(footprint::queue_cleared);
static MESSAGE_ID_UPDATE: Operation =
    Operation::change("MessageIdUpdate", ResourceLevel::Object, &[Update], |call, body| {
        Box::pin(message::update(call, body))
    })
    .or_level(ResourceLevel::Container)
    .touches(footprint::of_message);
static MESSAGE_ID_DELETE: Operation =
    Operation::change("MessageIdDelete", ResourceLevel::Object, &[Process], |call, body| {
        Box::pin(message::delete(call, body))
    })
    .or_level(ResourceLevel::Container)
    .touches(footprint::of_message);

static OPERATIONS: [&Operation; 18] = [
    &SERVICE_PREFLIGHT,
    &SERVICE_SET_PROPERTIES,
    &SERVICE_GET_PROPERTIES,
    &SERVICE_GET_STATISTICS,
    &SERVICE_GET_USER_DELEGATION_KEY,
    &SERVICE_LIST_QUEUES_SEGMENT,
    &QUEUE_CREATE,
    &QUEUE_DELETE,
    &QUEUE_GET_PROPERTIES,
    &QUEUE_SET_METADATA,
    &QUEUE_GET_ACCESS_POLICY,
    &QUEUE_SET_ACCESS_POLICY,
    &MESSAGES_ENQUEUE,
    &MESSAGES_DEQUEUE,
    &MESSAGES_PEEK,
    &MESSAGES_CLEAR,
    &MESSAGE_ID_UPDATE,
    &MESSAGE_ID_DELETE,
];

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
