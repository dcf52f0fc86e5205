//! What is asked of the servers: one row of the tables each, by the number that tells requests of
//! a row apart. How requests are sent is decided in `load`.

use std::sync::LazyLock;

use crate::load::{Client, Request};
use crate::servers::Service;

pub const SMALL: usize = 4 << 10;
pub const LARGE: usize = 4 << 20;

pub type Step = fn(&mut Client, usize);

/// A row of the tables.
pub struct Row {
    pub name: &'static str,
    /// Requests that are sent to be measured once.
    pub requests: usize,
    pub latchfs: Step,
    pub azurite: Option<Step>,
    /// By plain HTTP, without and with `sendfile`.
    pub nginx: Option<[Step; 2]>,
    /// The most that it may cost, as a multiple of nginx without `sendfile`.
    pub nginx_goal: Option<f64>,
}

impl Row {
    const fn new(name: &'static str, requests: usize, latchfs: Step) -> Self {
        let (azurite, nginx) = (None, None);
        Self { name, requests, latchfs, azurite, nginx, nginx_goal: None }
    }

    /// Azurite is asked the same.
    const fn both(self) -> Self {
        Self { azurite: Some(self.latchfs), ..self }
    }

    const fn nginx(self, steps: [Step; 2]) -> Self {
        Self { nginx: Some(steps), ..self }
    }

    const fn at_most_nginx(self, times: f64) -> Self {
        Self { nginx_goal: Some(times), ..self }
    }
}

const WEB_GET_SMALL: [Step; 2] = [|c, _| web_get(c, "/off/small"), |c, _| web_get(c, "/on/small")];
const WEB_GET_LARGE: [Step; 2] = [|c, _| web_get(c, "/off/large"), |c, _| web_get(c, "/on/large")];
const WEB_PUT_SMALL: [Step; 2] = [|c, n| web_put(c, "off", n), |c, n| web_put(c, "on", n)];
const WEB_OVERWRITE_SMALL: [Step; 2] =
    [|c, _| web_overwrite(c, "off", SMALL), |c, _| web_overwrite(c, "on", SMALL)];
const WEB_OVERWRITE_LARGE: [Step; 2] =
    [|c, _| web_overwrite(c, "off", LARGE), |c, _| web_overwrite(c, "on", LARGE)];

/// The rows. Later ones use what earlier ones of the same round made: the messages that were put
/// are got, and those are deleted; entities that were inserted are read and merged.
pub const ROWS: [Row; 15] = [
    Row::new("Get Blob 4 KiB", 10_000, |c, _| get_blob(c, "small"))
        .both()
        .nginx(WEB_GET_SMALL)
        .at_most_nginx(2.0),
    Row::new("Get Blob 4 MiB", 200, |c, _| get_blob(c, "large")).both().nginx(WEB_GET_LARGE),
    Row::new("Put Blob 4 KiB", 3_000, |c, n| put_blob(c, &format!("blob{n}"), SMALL))
        .both()
        .nginx(WEB_PUT_SMALL),
    Row::new("Put Blob 4 MiB", 100, |c, _| put_blob(c, "overwritten", LARGE))
        .both()
        .nginx(WEB_OVERWRITE_LARGE),
    Row::new("Put Block 4 MiB", 100, put_block).both().nginx(WEB_OVERWRITE_LARGE),
    Row::new("Get File 4 KiB", 10_000, |c, _| get_file(c, "small"))
        .nginx(WEB_GET_SMALL)
        .at_most_nginx(4.0),
    Row::new("Get File 4 MiB", 200, |c, _| get_file(c, "large")).nginx(WEB_GET_LARGE),
    Row::new("Put Range 4 KiB", 3_000, |c, _| put_range(c, "small", SMALL))
        .nginx(WEB_OVERWRITE_SMALL),
    Row::new("Put Range 4 MiB", 100, |c, _| put_range(c, "large", LARGE))
        .nginx(WEB_OVERWRITE_LARGE),
    Row::new("Put Message", 3_000, |c, _| put_message(c, "bench", "")).both(),
    Row::new("Get Messages, one", 3_000, get_message).both(),
    Row::new("Delete Message", 3_000, delete_message).both(),
    Row::new("Insert Entity", 3_000, insert).both(),
    Row::new("Get Entity", 3_000, get_entity).both(),
    Row::new("Merge Entity, If-Match", 3_000, merge).both(),
];

/// Bytes that are not all alike.
static BYTES: LazyLock<Vec<u8>> =
    LazyLock::new(|| (0..LARGE).map(|at| u8::try_from(at % 251).expect("below 256")).collect());

pub fn bytes(length: usize) -> &'static [u8] {
    &BYTES[..length]
}

/// What the rows need to be there.
pub fn prepare(client: &mut Client) {
    let blob = Service::Blob;
    client.ask(blob, Request::new("PUT", "/bench?restype=container", 201));
    put_blob(client, "small", SMALL);
    put_blob(client, "large", LARGE);
    client.ask(Service::Queue, Request::new("PUT", "/bench", 201));
    create_table(client, "bench");
}

/// What the rows of the File service need to be there.
pub fn prepare_files(client: &mut Client) {
    client.ask(Service::File, Request::new("PUT", "/bench?restype=share", 201));
    put_file(client, "small");
    let (target, size) = ("/bench/large", LARGE.to_string());
    let headers = [("x-ms-type", "file"), ("x-ms-content-length", size.as_str())];
    client.ask(Service::File, Request::new("PUT", target, 201).headers(&headers));
    put_range(client, "large", LARGE);
}

/// A file of 4 KiB, made and written in one request.
pub fn put_file(client: &mut Client, name: &str) {
    let (target, size) = (format!("/bench/{name}"), SMALL.to_string());
    let headers = [("x-ms-type", "file"), ("x-ms-content-length", size.as_str())];
    let request = Request::new("PUT", &target, 201).headers(&headers);
    client.ask(Service::File, request.body(bytes(SMALL)));
}

fn web_get(client: &mut Client, target: &str) {
    client.ask(Service::Web, Request::new("GET", target, 200));
}

fn web_put(client: &mut Client, location: &str, n: usize) {
    let target = format!("/{location}/{location}{n}");
    client.ask(Service::Web, Request::new("PUT", &target, 201).body(bytes(SMALL)));
}

fn web_overwrite(client: &mut Client, location: &str, length: usize) {
    let target = format!("/{location}/overwritten");
    client.ask(Service::Web, Request::new("PUT", &target, 204).body(bytes(length)));
}

fn get_blob(client: &mut Client, name: &str) {
    client.ask(Service::Blob, Request::new("GET", &format!("/bench/{name}"), 200));
}

pub fn put_blob(client: &mut Client, name: &str, length: usize) {
    let target = format!("/bench/{name}");
    let headers = [("x-ms-blob-type", "BlockBlob")];
    let request = Request::new("PUT", &target, 201).headers(&headers);
    client.ask(Service::Blob, request.body(bytes(length)));
}

fn put_block(client: &mut Client, n: usize) {
    // Four digits in base64 each time: IDs of a blob must be of one length.
    let target = format!("/bench/blocks?comp=block&blockid={:04}", n % 64);
    client.ask(Service::Blob, Request::new("PUT", &target, 201).body(bytes(LARGE)));
}

fn get_file(client: &mut Client, name: &str) {
    client.ask(Service::File, Request::new("GET", &format!("/bench/{name}"), 200));
}

fn put_range(client: &mut Client, name: &str, length: usize) {
    let (target, range) = (format!("/bench/{name}?comp=range"), format!("bytes=0-{}", length - 1));
    let headers = [("x-ms-write", "update"), ("x-ms-range", range.as_str())];
    let request = Request::new("PUT", &target, 201).headers(&headers);
    client.ask(Service::File, request.body(bytes(length)));
}

/// `query` is added to the target.
pub fn put_message(client: &mut Client, queue: &str, query: &str) {
    let body = "<QueueMessage><MessageText>a message of some forty characters, \
                as text</MessageText></QueueMessage>";
    let target = format!("/{queue}/messages{query}");
    client.ask(Service::Queue, Request::new("POST", &target, 201).body(body.as_bytes()));
}

fn get_message(client: &mut Client, _: usize) {
    let target = "/bench/messages?numofmessages=1&visibilitytimeout=3600";
    let answer = client.ask(Service::Queue, Request::new("GET", target, 200));
    let answer = String::from_utf8_lossy(answer);
    let field = |name: &str| {
        let (_, rest) = answer.split_once(&format!("<{name}>")).expect("a message");
        rest.split('<').next().unwrap_or_default().to_owned()
    };
    let message = (field("MessageId"), field("PopReceipt"));
    client.messages.push(message);
}

fn delete_message(client: &mut Client, _: usize) {
    let (id, receipt) = client.messages.pop().expect("it was got before");
    let receipt = receipt.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    let target = format!("/bench/messages/{id}?popreceipt={receipt}");
    client.ask(Service::Queue, Request::new("DELETE", &target, 204));
}

/// Eight properties of mixed types, as tests of applications have them.
pub const PROPERTIES: &str = r#""Name":"a name of some length","Active":true,"Count":42,
    "Ratio":0.25,"Total@odata.type":"Edm.Int64","Total":"9007199254740993",
    "When@odata.type":"Edm.DateTime","When":"2026-01-05T10:00:00Z",
    "Note":"some text that goes on for about a line","Kind":"plain""#;
const JSON: (&str, &str) = ("content-type", "application/json");
const ACCEPT: (&str, &str) = ("accept", "application/json;odata=minimalmetadata");

pub fn create_table(client: &mut Client, table: &str) {
    let body = format!(r#"{{"TableName":"{table}"}}"#);
    let headers = [JSON, ACCEPT];
    let request = Request::new("POST", "/Tables", 201).headers(&headers);
    client.ask(Service::Table, request.body(body.as_bytes()));
}

pub fn insert(client: &mut Client, n: usize) {
    let body = format!(r#"{{"PartitionKey":"p","RowKey":"{n:07}",{PROPERTIES}}}"#);
    let headers = [JSON, ACCEPT, ("prefer", "return-no-content")];
    let request = Request::new("POST", "/bench", 204).headers(&headers);
    client.ask(Service::Table, request.body(body.as_bytes()));
}

fn get_entity(client: &mut Client, n: usize) {
    let target = format!("/bench(PartitionKey='p',RowKey='{n:07}')");
    client.ask(Service::Table, Request::new("GET", &target, 200).headers(&[ACCEPT]));
}

fn merge(client: &mut Client, n: usize) {
    let target = format!("/bench(PartitionKey='p',RowKey='{n:07}')");
    let headers = [JSON, ACCEPT, ("if-match", "*")];
    let request = Request::new("PATCH", &target, 204).headers(&headers);
    client.ask(Service::Table, request.body(br#"{"Count":43}"#));
}
