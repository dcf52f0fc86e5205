//! Metrics that are read from the engine at each scrape: opens, locks, leases, delete-pending
//! names, and refusals by rule.
//!
//! Nothing is counted in advance: a scrape locks each file in use, one at a time.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::file::service::{FileService, Tally};
use crate::rules::Rule;
use crate::rules::conflict::Conflict;
use crate::rules::service::ServiceKind;

/// Reads the File services of a server, one of each account.
pub struct EngineMetrics(pub Vec<Arc<FileService>>);

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
        Ok(())
    }
}
