//! `latchfs put` and `latchfs get`: contents, one at a time.
//!
//! Decides that contents pass in pieces, so that their size does not matter: long blobs are
//! uploaded as blocks and appear when all of them are there.

use std::fs::{self, File, Permissions};
use std::io::{self, IsTerminal as _, Read, Seek, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use serde_json::{Map, Value, json};

use super::list::is_directory;
use super::{
    AccountAndOutput, ConditionArgs, OBJECT_FORM, Session, StorageRequest, on_object, path_of,
};
use crate::api::ObjectAddress;
use crate::cli::EXIT_DIFFERENT;
use crate::cli::out::{self, usage};
use crate::http::client::Got;
use crate::http::xml::Element;
use crate::rules::service::ServiceKind;
use crate::rules::time::{iso_seconds, parse_rfc1123};
use crate::sync::random::new_guid;

/// A piece of content.
const PIECE: usize = 4 << 20;

/// The longest message or entity that is read: longer ones are refused by the service anyway.
const SMALL_MAX: u64 = 4 << 20;

const PUT_EXAMPLE: &str = "\
Example:
  latchfs put blob:docs/a.txt a.txt
  echo hello | latchfs put queue:jobs";

/// Upload a blob or file, put a message, or write an entity
///
/// What is there is replaced. An entity is a JSON object of its properties. With --json, the new
/// ETag, and of a message its ID and pop receipt. Exits 1 if the ETag is another one or the lease
/// is over, 16 if somebody else holds the object.
#[derive(Debug, Args)]
#[command(after_help = PUT_EXAMPLE)]
pub struct Put {
    #[arg(help = OBJECT_FORM)]
    object: PathBuf,

    /// The content [default: standard input]
    file: Option<PathBuf>,

    #[command(flatten)]
    demands: ConditionArgs,

    #[command(flatten)]
    common: AccountAndOutput,
}

/// Download a blob or file, take a message, or read an entity
///
/// A message is hidden from others for --hide seconds; with --json, its ID and pop receipt are
/// printed, with which `latchfs rm` deletes it. Exits 1 if the queue has no visible message.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs get blob:docs/a.txt\n  latchfs get queue:jobs --json")]
pub struct Get {
    #[arg(help = OBJECT_FORM)]
    object: PathBuf,

    /// Where the content goes [default: standard output]
    file: Option<PathBuf>,

    /// Seconds for which a message is hidden
    #[arg(long, value_name = "SECONDS", default_value_t = 30, env = "LATCHFS_HIDE")]
    hide: u32,

    #[command(flatten)]
    common: AccountAndOutput,
}

impl Put {
    pub fn run(&self) -> Result<ExitCode> {
        on_object(&self.object, &self.common.server, |session, object| self.send(session, object))
    }

    fn send(&self, session: &Session, object: &ObjectAddress) -> Result<ExitCode> {
        let mut answer = Map::new();
        answer.insert("object".into(), json!(object.to_string()));
        match object {
            ObjectAddress::Blob { .. } => {
                answer.insert("etag".into(), etag(&self.blob(session, object)?));
            }
            ObjectAddress::Entity { .. } => {
                let mut ask = StorageRequest::new(ServiceKind::Table, "PUT", path_of(object));
                (ask.headers, ask.body) = (self.demands.headers(), self.small()?);
                answer.insert("etag".into(), etag(&session.ask(ask)?));
            }
            ObjectAddress::File { path, .. } if !path.is_empty() => {
                answer.insert("etag".into(), self.file(session, object)?);
            }
            ObjectAddress::Queue(_) if !self.demands.headers().is_empty() => {
                usage!("{object}: a message has neither an ETag nor a lease")
            }
            ObjectAddress::Queue(queue) => {
                let text = String::from_utf8(self.small()?).context("a message is UTF-8 text")?;
                check_letters(&text)?;
                let message = put_message(session, object, &text)?;
                let id = message["id"].as_str().unwrap_or_default().to_owned();
                let object = ObjectAddress::Message { queue: queue.clone(), id };
                answer.insert("object".into(), json!(object.to_string()));
                answer.extend(message);
            }
            other => usage!("{other} cannot be written: expected {OBJECT_FORM}"),
        }
        self.common.output.show(&answer, String::new)
    }

    fn input(&self) -> Result<Box<dyn Read>> {
        match self.file.as_deref().filter(|file| *file != Path::new("-")) {
            Some(file) => {
                let opened = File::open(file).with_context(|| file.display().to_string());
                Ok(Box::new(opened?))
            }
            None => Ok(Box::new(io::stdin())),
        }
    }

    /// All of an input that is not long.
    fn small(&self) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        self.input()?.take(SMALL_MAX).read_to_end(&mut all)?;
        Ok(all)
    }

    fn blob(&self, session: &Session, object: &ObjectAddress) -> Result<Got> {
        let mut input = self.input()?;
        let path = path_of(object);
        let first = piece(&mut input)?;
        let mut ask = StorageRequest::new(ServiceKind::Blob, "PUT", path.clone());
        ask.headers = self.demands.headers();
        if first.len() < PIECE {
            ask.headers.push(("x-ms-blob-type", "BlockBlob".into()));
            ask.body = first;
            return session.ask(ask);
        }
        // Another upload to the same blob must not take these blocks for its own.
        let upload = new_guid();
        let (mut blocks, mut next) = (String::new(), first);
        let mut number = 0_u32;
        while !next.is_empty() {
            let id = STANDARD.encode(format!("{upload}-{number:08}"));
            let query = [("comp", "block"), ("blockid", id.as_str())];
            let mut block = StorageRequest {
                query: &query,
                ..StorageRequest::new(ServiceKind::Blob, "PUT", &*path)
            };
            block.headers.extend(self.demands.lease.clone().map(|id| ("x-ms-lease-id", id)));
            block.body = next;
            session.ask(block)?;
            blocks = format!("{blocks}<Uncommitted>{id}</Uncommitted>");
            next = piece(&mut input)?;
            number += 1;
        }
        ask.query = &[("comp", "blocklist")];
        ask.body = format!("<BlockList>{blocks}</BlockList>").into_bytes();
        session.ask(ask)
    }

    fn file(&self, session: &Session, object: &ObjectAddress) -> Result<Value> {
        if self.demands.if_match.is_some() {
            usage!("files have no conditions: lease the file, or hold it open");
        }
        // The service wants the length first.
        let mut spooled = tempfile::tempfile()?;
        let length = io::copy(&mut self.input()?, &mut spooled)?;
        spooled.rewind()?;
        let path = path_of(object);
        let mut create = StorageRequest::new(ServiceKind::File, "PUT", path.clone());
        create.headers = self.demands.headers();
        create.headers.push(("x-ms-type", "file".into()));
        create.headers.push(("x-ms-content-length", length.to_string()));
        let mut got = session.ask(create)?;
        let mut at = 0;
        while at < length {
            let body = piece(&mut spooled)?;
            let end = at + body.len() as u64;
            let query = &[("comp", "range")];
            let mut range =
                StorageRequest { query, ..StorageRequest::new(ServiceKind::File, "PUT", &*path) };
            range.headers = self.demands.headers();
            range.headers.push(("x-ms-write", "update".into()));
            range.headers.push(("x-ms-range", format!("bytes={at}-{}", end - 1)));
            range.body = body;
            got = session.ask(range)?;
            at = end;
        }
        Ok(etag(&got))
    }
}

impl Get {
    pub fn run(&self) -> Result<ExitCode> {
        on_object(&self.object, &self.common.server, |session, object| self.fetch(session, object))
    }

    fn fetch(&self, session: &Session, object: &ObjectAddress) -> Result<ExitCode> {
        match object {
            ObjectAddress::Queue(queue) => return self.message(session, queue),
            ObjectAddress::Blob { .. } | ObjectAddress::Entity { .. } => {}
            ObjectAddress::File { path, .. } if !path.is_empty() => {}
            other => usage!("{other} cannot be read: expected {OBJECT_FORM}; `latchfs ls` lists"),
        }
        let asked = session.ask(StorageRequest::new(object.service(), "GET", path_of(object)));
        let mut got = match (asked, object) {
            (Err(_), ObjectAddress::File { share, path })
                if is_directory(session, share, path)? == Some(true) =>
            {
                bail!("{object} is a directory: `latchfs ls` lists it")
            }
            (asked, _) => asked?,
        };
        let Some(file) = self.named_file() else {
            let mut out = io::stdout().lock();
            copy(&mut got, &mut out)?;
            if matches!(object, ObjectAddress::Entity { .. }) {
                out.write_all(b"\n")?;
            }
            return Ok(ExitCode::SUCCESS);
        };
        let length = save(|out| copy(&mut got, out), file);
        let length = length.with_context(|| file.display().to_string())?;
        let answer = json!({
            "object": object.to_string(), "length": length, "etag": etag(&got),
        });
        self.common.output.show(&answer, String::new)
    }

    fn message(&self, session: &Session, queue: &str) -> Result<ExitCode> {
        let path = format!("{}/messages", path_of(&ObjectAddress::Queue(queue.to_owned())));
        let hide = self.hide.to_string();
        let query = [("visibilitytimeout", hide.as_str())];
        let ask = StorageRequest {
            query: &query,
            ..StorageRequest::new(ServiceKind::Queue, "GET", path)
        };
        let Some(mut message) = message_of(&mut session.ask(ask)?)? else {
            out::complain(&format!("queue:{queue} has no visible message"), None);
            return Ok(ExitCode::from(EXIT_DIFFERENT));
        };
        let id = message["id"].as_str().unwrap_or_default().to_owned();
        let object = ObjectAddress::Message { queue: queue.to_owned(), id };
        message.insert("object".into(), json!(object.to_string()));
        let text = message["text"].as_str().unwrap_or_default().to_owned();
        if let Some(file) = self.named_file() {
            let mut text = text.as_bytes();
            save(|out| Ok(io::copy(&mut text, out)?), file)
                .with_context(|| file.display().to_string())?;
            return self.common.output.show(&message, String::new);
        }
        self.common.output.show(&message, || with_line_end(text))
    }

    /// The file that the content goes to; none for standard output.
    fn named_file(&self) -> Option<&Path> {
        self.file.as_deref().filter(|file| *file != Path::new("-"))
    }
}

/// The text as it is for a program; for a person, with the end of its line.
fn with_line_end(text: String) -> String {
    if io::stdout().is_terminal() && !text.ends_with('\n') { text + "\n" } else { text }
}

/// Refuses what XML cannot carry: the service would not keep it.
fn check_letters(text: &str) -> Result<()> {
    let carried = |letter: char| match letter {
        '\t' | '\n' | '\r' => true,
        letter => letter >= ' ' && !matches!(letter, '\u{fffe}' | '\u{ffff}'),
    };
    match text.chars().find(|letter| !carried(*letter)) {
        Some(letter) => bail!(
            "a message cannot hold the character {}: encode the text, for example with `base64`",
            letter.escape_unicode()
        ),
        None => Ok(()),
    }
}

fn put_message(session: &Session, queue: &ObjectAddress, text: &str) -> Result<Map<String, Value>> {
    let element = Element { name: "MessageText".into(), text: text.into(), children: Vec::new() };
    let message =
        Element { name: "QueueMessage".into(), text: String::new(), children: vec![element] };
    let path = format!("{}/messages", path_of(queue));
    let mut ask = StorageRequest::new(ServiceKind::Queue, "POST", path);
    ask.body = message.document().into_bytes();
    let message = message_of(&mut session.ask(ask)?)?;
    message.context("the service answered without the message")
}

/// Has `content` written. A file is replaced as a whole or not at all, and keeps its permissions;
/// a device, a pipe or a link is written to.
fn save(content: impl FnOnce(&mut File) -> Result<u64>, file: &Path) -> Result<u64> {
    let there = fs::symlink_metadata(file).ok();
    if there.as_ref().is_some_and(|there| !there.is_file()) {
        return content(&mut File::options().write(true).truncate(true).open(file)?);
    }
    let rights = there.map_or_else(|| Permissions::from_mode(0o644), |there| there.permissions());
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut new = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    let length = content(new.as_file_mut())?;
    fs::set_permissions(new.path(), rights)?;
    new.persist(file)?;
    Ok(length)
}

/// The first message of an answer.
fn message_of(got: &mut Got) -> Result<Option<Map<String, Value>>> {
    let list = Element::read_exact(&got.body()?, "QueueMessagesList");
    let list = list.map_err(|_| anyhow::anyhow!("the messages cannot be read"))?;
    let Some(message) = list.child("QueueMessage") else { return Ok(None) };
    let names = [
        ("id", "MessageId"),
        ("pop_receipt", "PopReceipt"),
        ("visible", "TimeNextVisible"),
        ("dequeue_count", "DequeueCount"),
        ("text", "MessageText"),
    ];
    let fields = names.into_iter().filter_map(|(name, element)| {
        let text = &message.child(element)?.text;
        Some((name.to_owned(), field(name, text)))
    });
    Ok(Some(fields.collect()))
}

/// A field of a message as all commands print it: counts as numbers, times in ISO 8601.
fn field(name: &str, text: &str) -> Value {
    match name {
        "dequeue_count" => text.parse::<u64>().map_or(json!(text), |count| json!(count)),
        "visible" => parse_rfc1123(text).map_or(json!(text), |time| json!(iso_seconds(time))),
        _ => json!(text),
    }
}

fn etag(got: &Got) -> Value {
    json!(got.header("etag"))
}

/// The next piece of an input; shorter at its end.
fn piece(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut piece = Vec::new();
    input.take(PIECE as u64).read_to_end(&mut piece)?;
    Ok(piece)
}

fn copy(got: &mut Got, out: &mut impl Write) -> Result<u64> {
    let mut length = 0;
    while let Some(chunk) = got.chunk()? {
        out.write_all(&chunk)?;
        length += chunk.len() as u64;
    }
    out.flush()?;
    Ok(length)
}
