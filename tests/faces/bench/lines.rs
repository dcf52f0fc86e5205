//! Requests as lines of text, for tables of many operations.
//!
//! A line is `METHOD SERVICE TARGET [HEADER=VALUE ...] [< BODY] [=> NAME,...]`. `< #N` is a body of
//! N zeros. `=> NAME` keeps the text of that XML element, or the value of that header, of the
//! answer; `{NAME}` in a later line stands for it, or `{OTHER}` with `=> NAME:OTHER`; `{blob}` and
//! `{file}` stand for the endpoints.

use std::collections::HashMap;

use latchfs::rules::service::ServiceKind;

use crate::common::bench::Bench;
use crate::common::http::{Got, Kept};

/// What earlier answers said.
#[derive(Clone, Default)]
pub struct Known(HashMap<String, String>);

#[derive(Clone, Debug)]
pub struct Line {
    pub service: ServiceKind,
    pub method: String,
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    kept: Vec<String>,
}

impl Known {
    pub fn new(bench: &Bench) -> Self {
        let of = |kind| (format!("{kind}"), bench.endpoint(kind));
        Self([ServiceKind::Blob, ServiceKind::File].map(of).into())
    }

    /// The line with what is known filled in.
    pub fn read(&self, line: &str) -> Line {
        let filled = self.0.iter().fold(line.trim().to_owned(), |line, (name, value)| {
            line.replace(&format!("{{{name}}}"), value)
        });
        let (filled, kept) = filled.split_once(" => ").unwrap_or((&filled, ""));
        let (head, body) = filled.split_once(" < ").unwrap_or((filled, ""));
        let body = match body.strip_prefix('#').and_then(|count| count.parse().ok()) {
            Some(count) => vec![0; count],
            None => body.replace("\\r\\n", "\r\n").into_bytes(),
        };
        let mut words = head.split_whitespace();
        let mut word = || words.next().unwrap_or_else(|| panic!("too few words: {line}"));
        let (method, service, target) = (word().to_owned(), word(), word().to_owned());
        let service = ServiceKind::ALL.into_iter().find(|kind| kind.label() == service);
        let header = |text: &str| {
            let (name, value) = text.split_once('=').unwrap_or_else(|| panic!("{text}: {line}"));
            (name.to_owned(), value.replace('~', " "))
        };
        Line {
            service: service.unwrap_or_else(|| panic!("no service: {line}")),
            method,
            target,
            headers: words.map(header).collect(),
            body,
            kept: kept.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        }
    }

    /// Sends these requests, one after the other; all must succeed.
    pub fn prepare(&mut self, bench: &Bench, lines: &[&str]) {
        for line in lines {
            let request = self.read(line);
            let got = request.send(bench);
            assert!(got.status < 300, "{line}: {} {}", got.status, got.text());
            self.keep(&request, &got);
        }
    }

    /// Keeps what a request asks to be kept of its answer.
    pub fn keep(&mut self, request: &Line, got: &Got) {
        for name in &request.kept {
            let (name, kept) = name.split_once(':').unwrap_or((name, name));
            let element = || {
                let text = got.text();
                let (_, rest) = text.split_once(&format!("<{name}>"))?;
                Some(rest.split_once('<')?.0.to_owned())
            };
            let value = match got.header(name) {
                "" => element().unwrap_or_else(|| panic!("no {name} in {}", got.text())),
                header => header.to_owned(),
            };
            self.set(kept, &value);
        }
    }

    pub fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), value.to_owned());
    }
}

impl Line {
    pub fn send(&self, bench: &Bench) -> Got {
        let headers = self.headers.iter();
        let headers: Vec<_> = headers.map(|(name, value)| (&**name, &**value)).collect();
        bench.ask(self.service, &self.method, &self.target, &headers, &self.body)
    }

    /// Sends it over a connection that stays.
    pub fn send_over(&self, connection: &mut Kept) -> Got {
        let headers = self.headers.iter();
        let headers: Vec<_> = headers.map(|(name, value)| (&**name, &**value)).collect();
        connection.ask(&self.method, &self.target, &headers, &self.body).expect("an answer")
    }
}
