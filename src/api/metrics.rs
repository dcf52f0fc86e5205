//! The metrics: requests by operation and status and how long they take, and what is read from the
//! File services and the journal at each scrape.
//!
//! Decides the names and labels that dashboards are built on. Counting is an atomic step or two
//! and one short lock of a histogram; a scrape locks each file in use, one at a time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::file::service::{FileService, Tally};
use crate::http::observer::Observer;
use crate::rules::Rule;
use crate::rules::conflict::Conflict;
use crate::rules::service::ServiceKind;

/// Begins the name of each metric.
const PREFIX: &str = "latchfs";

/// Upper bounds of the buckets, in seconds: from a look at a cached file to the longest waits.
const BUCKETS: [f64; 14] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// The counters of one server.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<AnswerLabels, Counter>,
    durations: Family<OperationLabels, Histogram>,
    smb: Arc<SmbMetrics>,
}

/// What the SMB listener holds, and what it refused.
#[derive(Clone, Debug, Default)]
pub struct SmbCounts {
    pub connections: u64,
    pub sessions: u64,
    /// By the name of the status.
    pub refusals: BTreeMap<String, u64>,
}

/// Asks the SMB listener, once there is one.
#[derive(Default)]
struct SmbMetrics(OnceLock<Box<dyn Fn() -> SmbCounts + Send + Sync>>);

impl fmt::Debug for SmbMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SmbMetrics")
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct AnswerLabels {
    operation: &'static str,
    status: u16,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OperationLabels {
    operation: &'static str,
}

impl Metrics {
    /// The metrics of a server with these File services, one of each account.
    pub fn new(files: Vec<Arc<FileService>>) -> Self {
        let requests = Family::default();
        let durations = Family::new_with_constructor(buckets as fn() -> Histogram);
        let mut registry = Registry::with_prefix(PREFIX);
        registry.register("requests", "REST requests answered", requests.clone());
        registry.register_with_unit(
            "request_duration",
            "Time until the answer to a REST request begins",
            Unit::Seconds,
            durations.clone(),
        );
        let version = vec![("version", env!("CARGO_PKG_VERSION"))];
        registry.register("build", "The running program", Info::new(version));
        let smb = Arc::<SmbMetrics>::default();
        registry.register_collector(Box::new(EngineMetrics(files, Arc::clone(&smb))));
        Self { registry, requests, durations, smb }
    }

    /// Has each scrape ask the SMB listener. The first one stays.
    pub fn watch_smb(&self, counts: impl Fn() -> SmbCounts + Send + Sync + 'static) {
        let _ = self.smb.0.set(Box::new(counts));
    }

    /// All of it, in the text format of `OpenMetrics`, which Prometheus reads.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

impl Observer for Metrics {
    fn answered(&self, operation: &'static str, status: u16, took: Duration) {
        self.requests.get_or_create(&AnswerLabels { operation, status }).inc();
        self.durations.get_or_create(&OperationLabels { operation }).observe(took.as_secs_f64());
    }
}

fn buckets() -> Histogram {
    Histogram::new(BUCKETS)
}

/// Reads the File services of a server, one of each account, and its SMB listener.
struct EngineMetrics(Vec<Arc<FileService>>, Arc<SmbMetrics>);

impl fmt::Debug for EngineMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EngineMetrics")
    }
}

/// Picks a number out of what is held in a share.
type Pick = fn(&Tally) -> u64;

const GAUGES: [(&str, &str, Pick); 4] = [
    ("opens", "Files and directories held open", |tally| tally.opens),
    ("locks", "Byte-range locks", |tally| tally.locks),
    ("leases", "Leases in force, of files, the share and its snapshots", |tally| tally.leases),
    ("pending_deletes", "Names that are delete pending", |tally| tally.pending),
];

impl Collector for EngineMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let mut tallies = Vec::new();
        for file in &self.0 {
            let of_account = file.tallies().map_err(|error| {
                log::error!("what is held cannot be counted: {error}");
                fmt::Error
            })?;
            tallies.extend(of_account.into_iter().map(|tally| (file.journal().account(), tally)));
        }
        for (name, help, pick) in GAUGES {
            let mut gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (account, (share, tally)) in &tallies {
                let labels = [("account", &***account), ("share", &**share)];
                ConstGauge::new(pick(tally)).encode(gauge.encode_family(&labels)?)?;
            }
        }
        let help = "Opens, requests and locks refused because of what others hold, both faces";
        let kind = MetricType::Counter;
        let mut conflicts = encoder.encode_descriptor("conflicts", help, None, kind)?;
        for rows in self.0.iter().map(|file| file.journal()) {
            let account = rows.account();
            for rule in Rule::ALL {
                let count = rows.journal().refused(account, ServiceKind::File, rule.name());
                let labels = [("account", &**account), ("rule", rule.name())];
                ConstCounter::new(count).encode(conflicts.encode_family(&labels)?)?;
            }
        }
        let help = "Requests to blobs, queues and tables refused because of another client";
        let mut refusals = encoder.encode_descriptor("refusals", help, None, kind)?;
        let services = [ServiceKind::Blob, ServiceKind::Queue, ServiceKind::Table];
        let with_conflicts = |service| Conflict::ALL.map(|conflict| (service, conflict));
        for rows in self.0.iter().map(|file| file.journal()) {
            let account = rows.account();
            for (service, conflict) in services.into_iter().flat_map(with_conflicts) {
                let count = rows.journal().refused(account, service, conflict.name());
                let labels = [
                    ("account", &**account),
                    ("service", service.label()),
                    ("rule", conflict.name()),
                ];
                ConstCounter::new(count).encode(refusals.encode_family(&labels)?)?;
            }
        }
        self.1.0.get().map_or(Ok(()), |counts| encode_smb(&mut encoder, &counts()))
    }
}

fn encode_smb(encoder: &mut DescriptorEncoder<'_>, counts: &SmbCounts) -> fmt::Result {
    for (name, help, count) in [
        ("smb_connections", "Connections of SMB clients", counts.connections),
        ("smb_sessions", "SMB clients that have logged on", counts.sessions),
    ] {
        let gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(count).encode(gauge)?;
    }
    let help = "SMB requests that were refused";
    let mut refusals =
        encoder.encode_descriptor("smb_refusals", help, None, MetricType::Counter)?;
    for (status, count) in &counts.refusals {
        let labels = [("status", status.as_str())];
        ConstCounter::new(*count).encode(refusals.encode_family(&labels)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::file::service::FileOptions;
    use crate::journal::AccountJournal;

    #[test]
    fn answers_are_counted_by_operation_and_status_and_timed_by_operation() {
        let folder = tempfile::tempdir().unwrap();
        let (files, state) = (folder.path().join("files"), folder.path().join("state"));
        let (options, clock) = (FileOptions::default(), Arc::new(SystemClock));
        let file = FileService::open_at(&files, &state, options, clock, AccountJournal::default());
        let metrics = Metrics::new(vec![Arc::new(file.unwrap())]);
        metrics.watch_smb(|| SmbCounts {
            connections: 2,
            sessions: 1,
            refusals: BTreeMap::from([("STATUS_SHARING_VIOLATION".to_owned(), 3)]),
        });
        metrics.answered("FileCreate", 201, Duration::from_micros(300));
        metrics.answered("FileCreate", 201, Duration::from_micros(700));
        metrics.answered("FileCreate", 409, Duration::from_secs(31));
        let text = metrics.text().unwrap();
        for line in [
            concat!(r#"latchfs_build_info{version=""#, env!("CARGO_PKG_VERSION"), r#""} 1"#),
            r#"latchfs_requests_total{operation="FileCreate",status="201"} 2"#,
            "latchfs_smb_connections 2",
            "latchfs_smb_sessions 1",
            r#"latchfs_smb_refusals_total{status="STATUS_SHARING_VIOLATION"} 3"#,
            r#"latchfs_requests_total{operation="FileCreate",status="409"} 1"#,
            r#"latchfs_request_duration_seconds_count{operation="FileCreate"} 3"#,
            r#"latchfs_request_duration_seconds_bucket{le="0.0005",operation="FileCreate"} 1"#,
            r#"latchfs_request_duration_seconds_bucket{le="30.0",operation="FileCreate"} 2"#,
            r#"latchfs_request_duration_seconds_bucket{le="+Inf",operation="FileCreate"} 3"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
}
