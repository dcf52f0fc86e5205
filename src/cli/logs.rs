//! The log of the program: lines on standard error or in a file, which `RUST_LOG` chooses.
//!
//! Decides what a line looks like. As JSON it is one object: `time`, `level`, `target`, `message`,
//! and the other named values of the line, such as `request_id`.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use clap::ValueEnum;
use env_logger::{Builder, Env, Target};
use log::Record;
use log::kv::{Error, Key, Value, VisitSource};
use serde_json::{Map, Value as Json};

use crate::clock::{SystemClock, TimeSource as _};
use crate::rules::time::{iso, iso_seconds};

/// The level of the log unless `RUST_LOG` is set.
const FILTER: &str = "warn";

/// The form of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object a line
    Json,
}

/// The level of the log in a file for debugging unless `RUST_LOG` is set.
const DEBUG_FILTER: &str = "warn,latchfs=debug";

/// Starts the log, on standard error or appended to `debug`. Once, before anything is logged.
pub fn start(format: LogFormat, debug: Option<&Path>) -> Result<()> {
    let filter = if debug.is_some() { DEBUG_FILTER } else { FILTER };
    let mut log = Builder::from_env(Env::default().default_filter_or(filter));
    if let Some(path) = debug {
        path.parent().map(fs::create_dir_all).transpose().with_context(about(path))?;
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
        let file = file.with_context(about(path))?;
        log.target(Target::Pipe(Box::new(file)));
    }
    log.format(move |out, record| {
        let now = SystemClock.now();
        if format == LogFormat::Json {
            let millis = "2026-01-02T03:04:05.678".len();
            return writeln!(out, "{}", object(record, format!("{}Z", &iso(now)[..millis])));
        }
        let style = out.default_level_style(record.level());
        let level = format_args!("{style}{:<5}{style:#}", record.level());
        write!(out, "[{} {level} {}] {}", iso_seconds(now), record.target(), record.args())?;
        for (key, value) in fields(record) {
            write!(
                out,
                " {key}={}",
                value.as_str().map_or_else(|| value.to_string(), str::to_owned)
            )?;
        }
        writeln!(out)
    });
    log.init();
    Ok(())
}

fn about(path: &Path) -> impl FnOnce() -> String {
    move || format!("--debug {}", path.display())
}

/// The named values of a line.
fn fields(record: &Record<'_>) -> Map<String, Json> {
    let mut fields = LogFields(Map::new());
    if let Err(error) = record.key_values().visit(&mut fields) {
        fields.0.insert("incomplete".to_owned(), error.to_string().into());
    }
    fields.0
}

fn object(record: &Record<'_>, time: String) -> Json {
    let mut object = fields(record);
    // Last: these names are the line's own.
    object.insert("time".to_owned(), time.into());
    object.insert("level".to_owned(), record.level().as_str().to_ascii_lowercase().into());
    object.insert("target".to_owned(), record.target().into());
    object.insert("message".to_owned(), record.args().to_string().into());
    object.into()
}

/// The named values of a line: numbers stay numbers, everything else is text.
struct LogFields(Map<String, Json>);

impl<'kvs> VisitSource<'kvs> for LogFields {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), Error> {
        let value = match (value.to_u64(), value.to_i64()) {
            (Some(number), _) => number.into(),
            (None, Some(number)) => number.into(),
            (None, None) => value.to_string().into(),
        };
        self.0.insert(key.as_str().to_owned(), value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use log::Level;

    #[test]
    fn a_line_is_one_object_with_all_that_it_knows_by_name() {
        let known = [("status", Value::from(409)), ("who", Value::from("\"a\"\nb"))];
        let line = object(
            &Record::builder()
                .args(format_args!("refused"))
                .level(Level::Info)
                .target("latchfs::rest")
                .key_values(&known)
                .build(),
            "now".to_owned(),
        );
        let expected = serde_json::json!({
            "time": "now",
            "level": "info",
            "target": "latchfs::rest",
            "message": "refused",
            "status": 409,
            "who": "\"a\"\nb",
        });
        assert_eq!(line, expected);
        assert_eq!(line.to_string().lines().count(), 1);
    }
}
