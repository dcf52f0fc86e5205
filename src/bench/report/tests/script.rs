//! Programs as scripts for the report: `A get b; B put b; A cas b`.
//!
//! A step is a client, a verb, an object and options. A small storage answers it, so that rows have
//! the `ETags` and refusals that the services would give them.

use std::collections::BTreeMap;

use crate::bench::report::{Engine, Level, Report, ReportRow};
use crate::journal::row::{AnswerEnd, AnsweredRequest, RequestRefusal};
use crate::journal::{ChangedObject, GivenMessage, ListedObject};
use crate::rules::Timestamp;
use crate::rules::address::ObjectAddress;
use crate::rules::asked::{Asked, Fingerprint, Parts};
use crate::rules::conflict::Conflict;
use crate::rules::service::ServiceKind;
use crate::rules::who::{ClientBy, Who};

/// A run of a script.
#[derive(Default)]
pub struct Script {
    pub engine: Engine,
    seq: u64,
    version: u32,
    /// The `ETag` of each object that is there.
    objects: BTreeMap<String, String>,
    /// The `ETag` that a client got with the content, and the one that it got last.
    read: BTreeMap<(String, String), String>,
    last: BTreeMap<(String, String), String>,
    /// The lease of an object, as the client that has it; the receipt of a message.
    leases: BTreeMap<String, String>,
    receipts: BTreeMap<String, u32>,
    own_receipts: BTreeMap<(String, String), u32>,
    /// Rows that are held back until `flush`.
    held: Vec<(String, AnsweredRequest)>,
    holds: bool,
    by: ClientBy,
}

impl Script {
    /// Runs a script whose clients have keys.
    pub fn run(text: &str) -> Self {
        Self::run_by(text, ClientBy::Key)
    }

    pub fn run_by(text: &str, by: ClientBy) -> Self {
        let mut script = Self { by, ..Self::default() };
        script.go_on(text);
        script
    }

    pub fn go_on(&mut self, text: &str) {
        for step in text.split(';').map(str::trim).filter(|step| !step.is_empty()) {
            let words: Vec<_> = step.split_whitespace().collect();
            match words[..] {
                ["reset"] => self.engine.barrier(None),
                ["mark", name] => self.engine.barrier(Some(name)),
                // Rows come in the order of the answers, which is not that of the changes.
                ["hold"] => self.holds = true,
                ["flush"] => self.flush(),
                [client, verb, object, ref options @ ..] => {
                    self.step(client, verb, object, options);
                }
                _ => panic!("{step}"),
            }
        }
    }

    pub fn report(&self) -> Report {
        self.engine.report(None, Level::Hint).unwrap()
    }

    pub fn findings(&self) -> Vec<String> {
        let findings = self.report().findings;
        findings.iter().map(|one| format!("{} {}", one.rule.name(), one.level.name())).collect()
    }

    fn flush(&mut self) {
        self.holds = false;
        let mut held = std::mem::take(&mut self.held);
        held.reverse();
        for (client, request) in held {
            self.send(&client, &request);
        }
    }

    fn step(&mut self, client: &str, verb: &str, object: &str, options: &[&str]) {
        let full =
            if object.contains(':') { object.to_owned() } else { format!("blob:c/{object}") };
        let key = (client.to_owned(), full.clone());
        let address = ObjectAddress::read(&full).unwrap();
        let (operation, parts, does) = meaning(verb);
        let mut request = answered(address.service(), operation, &full);
        request.asked = self.asked(&key, parts, options);
        request.given.body = options.iter().find_map(|one| one.strip_prefix("body=")).map(hash);
        if options.contains(&"lost") {
            request.answer = AnswerEnd::Dropped;
            request.status = None;
        }
        match does {
            Does::Read => self.read(&key, &mut request, options),
            Does::Write => self.write(&key, &mut request, address),
            Does::List => self.list(&key, &mut request, options),
            Does::Lease(action) => self.lease(&key, &mut request, action),
            Does::Message => self.message(&key, &mut request, options),
        }
        if self.holds {
            self.held.push((client.to_owned(), request));
        } else {
            self.send(client, &request);
        }
    }

    fn asked(&self, key: &(String, String), parts: Option<Parts>, options: &[&str]) -> Asked {
        let mut asked = Asked { parts, length: Some(4), ..Asked::default() };
        for option in options {
            match *option {
                "empty" => asked.length = Some(0),
                "if=read" => asked.if_match = self.read.get(key).cloned(),
                "if=last" => asked.if_match = self.last.get(key).cloned(),
                "if=*" => asked.if_match = Some("*".into()),
                "if=date" => asked.if_unmodified_since = Some("yesterday".into()),
                "new" => asked.if_none_match = Some("*".into()),
                "fresh" => asked.if_none_match = self.read.get(key).cloned(),
                "at=0" => asked.append_position = Some(0),
                "leased" => asked.lease_sent = Some(Fingerprint(1)),
                _ => {}
            }
            let text = |name| option.strip_prefix(name).map(str::to_owned);
            asked.prefix = asked.prefix.or_else(|| text("prefix="));
            asked.version = asked.version.or_else(|| text("version="));
            asked.source = asked.source.or_else(|| text("from="));
            asked.source_range = asked.source_range.or_else(|| text("range="));
        }
        asked
    }

    fn read(&mut self, key: &(String, String), request: &mut AnsweredRequest, options: &[&str]) {
        let Some(etag) = self.objects.get(&key.1).cloned() else {
            return refuse(request, 404, "BlobNotFound", None);
        };
        if options.contains(&"fresh") && request.asked.if_none_match.as_ref() == Some(&etag) {
            request.status = Some(304);
            return;
        }
        request.given.etag_read = Some(etag.clone());
        if request.operation.starts_with("Get Blob Prop") {
            self.last.insert(key.clone(), etag);
        } else {
            self.last.insert(key.clone(), etag.clone());
            self.read.insert(key.clone(), etag);
        }
    }

    fn write(
        &mut self,
        key: &(String, String),
        request: &mut AnsweredRequest,
        object: ObjectAddress,
    ) {
        let before = self.objects.get(&key.1).cloned();
        let asked = &request.asked;
        let demanded = asked.if_match.as_ref().filter(|etag| *etag != "*");
        if demanded.is_some() && demanded != before.as_ref() {
            return refuse(request, 412, "ConditionNotMet", Some(Conflict::Condition));
        }
        let creates = asked.if_none_match.is_some() || request.operation == "Insert Entity";
        if creates && before.is_some() {
            return refuse(request, 409, "BlobAlreadyExists", None);
        }
        if asked.lease_sent.is_some() && self.leases.get(&key.1) != Some(&key.0) {
            return refuse(request, 412, "LeaseIdMismatch", Some(Conflict::Lease));
        }
        if request.operation.starts_with("Delete") {
            if before.is_none() {
                return refuse(request, 404, "BlobNotFound", None);
            }
            self.objects.remove(&key.1);
        } else {
            self.version += 1;
            let etag = format!("v{}", self.version);
            self.objects.insert(key.1.clone(), etag.clone());
            self.last.insert(key.clone(), etag);
        }
        let (etag_before, etag_after) = (before, self.objects.get(&key.1).cloned());
        // A part of a transaction has conditions of its own.
        let in_batch = matches!(request.operation, "Entity Group Transaction" | "Blob Batch");
        let guarded = in_batch.then(|| request.asked.if_match.take().is_some());
        let changed = ChangedObject { object, etag_before, etag_after, parts: None, guarded };
        request.given.changed.push(changed);
    }

    fn list(&mut self, key: &(String, String), request: &mut AnsweredRequest, options: &[&str]) {
        let (client, within) = key;
        request.given.listed_more = options.contains(&"more");
        let prefix = format!("{within}/{}", request.asked.prefix.as_deref().unwrap_or_default());
        let there = self.objects.iter().filter(|(name, _)| name.starts_with(&prefix));
        let there = there.map(|(name, etag)| {
            ListedObject(ObjectAddress::read(name).unwrap(), Some(etag.clone()))
        });
        request.given.listed.extend(there);
        for ListedObject(object, etag) in &request.given.listed {
            let key = (client.clone(), object.to_string());
            self.last.insert(key, etag.clone().unwrap_or_default());
        }
    }

    fn lease(
        &mut self,
        (client, object): &(String, String),
        request: &mut AnsweredRequest,
        action: &str,
    ) {
        request.asked.lease_action = Some(action.to_owned());
        let is_own = self.leases.get(object) == Some(client);
        match action {
            // The script says when a lease has ended: nobody else acquires it before.
            "acquire" => drop(self.leases.insert(object.clone(), client.clone())),
            _ if !is_own => refuse(request, 409, "LeaseLost", Some(Conflict::Lease)),
            "release" => drop(self.leases.remove(object)),
            _ => {}
        }
    }

    /// `queue:q/m`: sends, gets, renews or deletes the message.
    fn message(&mut self, key: &(String, String), request: &mut AnsweredRequest, options: &[&str]) {
        let (queue, id) = key.1.split_once('/').unwrap();
        match request.operation {
            "Delete Message" | "Update Message" => {
                let own = self.own_receipts.get(key).copied();
                let used = if options.contains(&"old") { own.map(|own| own - 1) } else { own };
                request.asked.receipt_used = used.map(Fingerprint);
                request.asked.message = Some(id.to_owned());
                if used != self.receipts.get(&key.1).copied() {
                    return refuse(request, 400, "PopReceiptMismatch", Some(Conflict::Receipt));
                }
                if request.operation == "Delete Message" {
                    self.receipts.remove(&key.1);
                    return;
                }
            }
            _ => request.path = queue.strip_prefix("queue:").unwrap().to_owned() + "/messages",
        }
        self.version += 1;
        self.receipts.insert(key.1.clone(), self.version);
        self.own_receipts.insert(key.clone(), self.version);
        request.given.messages.push(GivenMessage {
            message: id.to_owned(),
            receipt_given: Some(Fingerprint(self.version)),
            visible_until: Timestamp(0),
            dequeue_count: 1,
        });
    }

    fn send(&mut self, client: &str, request: &AnsweredRequest) {
        self.seq += 1;
        let who = Who::named(client, self.by);
        let object = crate::journal::json::object_of(request.service, &request.path);
        self.engine.request(&ReportRow {
            seq: self.seq,
            time: Timestamp(0),
            account: "one",
            client: &who.named.unwrap(),
            request,
            object: &object.unwrap_or_default(),
        });
    }
}

enum Does {
    Read,
    Write,
    List,
    Lease(&'static str),
    Message,
}

fn meaning(verb: &str) -> (&'static str, Option<Parts>, Does) {
    let properties = |names: &str| Parts::properties(names.split(','));
    let range = |bounds: &str| {
        let (first, end) = bounds.split_once('-').unwrap();
        Some(Parts::Range(first.parse().unwrap(), end.parse().unwrap()))
    };
    let (verb, of) = verb.split_once('=').unwrap_or((verb, ""));
    match verb {
        "get" if !of.is_empty() => ("Get Blob", range(of), Does::Read),
        "get" => ("Get Blob", None, Does::Read),
        "head" => ("Get Blob Properties", None, Does::Read),
        "put" => ("Put Blob", None, Does::Write),
        "commit" => ("Put Block List", None, Does::Write),
        "meta" => ("Set Blob Metadata", Some(Parts::Metadata), Does::Write),
        "append" if of == "url" => ("Append Block From URL", None, Does::Write),
        "append" => ("Append Block", None, Does::Write),
        "page" => ("Put Page", range(of), Does::Write),
        "delete" => ("Delete Blob", None, Does::Write),
        "list" => ("List Blobs", None, Does::List),
        "acquire" => ("Lease Blob", Some(Parts::Lease), Does::Lease("acquire")),
        "renew" => ("Lease Blob", Some(Parts::Lease), Does::Lease("renew")),
        "release" => ("Lease Blob", Some(Parts::Lease), Does::Lease("release")),
        "query" if of == "all" => ("Query Entities", None, Does::List),
        "query" => ("Query Entities", None, Does::Read),
        "insert" => ("Insert Entity", None, Does::Write),
        "replace" => ("Update Entity", None, Does::Write),
        "batch" => ("Entity Group Transaction", None, Does::Write),
        "merge" => ("Merge Entity", properties(of), Does::Write),
        "fget" => ("Get File", None, Does::Read),
        "fput" => ("Put Range", range(of), Does::Write),
        "send" => ("Put Message", None, Does::Message),
        "take" => ("Get Messages", None, Does::Message),
        "keep" => ("Update Message", None, Does::Message),
        "done" => ("Delete Message", None, Does::Message),
        _ => panic!("{verb}"),
    }
}

fn answered(service: ServiceKind, operation: &'static str, object: &str) -> AnsweredRequest {
    let (_, path) = object.split_once(':').unwrap();
    let words: Vec<_> = path.split('/').collect();
    let path = match (service, &words[..]) {
        (ServiceKind::Table, [table, partition, row]) => {
            format!("{table}(PartitionKey='{partition}',RowKey='{row}')")
        }
        (ServiceKind::Queue, [queue, id]) => format!("{queue}/messages/{id}"),
        _ => path.to_owned(),
    };
    let unknown = AnsweredRequest::of(service, Who::default());
    AnsweredRequest { operation, path, status: Some(200), ..unknown }
}

fn refuse(request: &mut AnsweredRequest, status: u16, code: &str, conflict: Option<Conflict>) {
    request.status = Some(status);
    request.code = code.to_owned();
    request.refusal = Some(RequestRefusal { message: String::new(), cause: None, conflict });
}

fn hash(text: &str) -> u64 {
    text.bytes().map(u64::from).sum()
}
