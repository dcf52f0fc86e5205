//! What is read from the engine when somebody looks: what is held, and what was in conflict.
//!
//! Nothing is kept for this. A look takes the lock of each file in use, one at a time.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::engine::{Engine, Tally};

/// Reads an engine.
#[derive(Debug)]
pub struct Held(pub Arc<Engine>);

/// Picks a number out of what is held in a share.
type Pick = fn(&Tally) -> u64;

const GAUGES: [(&str, &str, Pick); 4] = [
    ("opens", "Files and directories held open", |tally| tally.opens),
    ("locks", "Byte-range locks", |tally| tally.locks),
    ("leases", "Leases in force, of files, the share and its snapshots", |tally| tally.leases),
    ("pending_deletes", "Names that are delete pending", |tally| tally.pending),
];

impl Collector for Held {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let tallies = self.0.tallies().map_err(|error| {
            log::error!("what is held cannot be counted: {error}");
            fmt::Error
        })?;
        for (name, help, pick) in GAUGES {
            let mut gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (share, tally) in &tallies {
                let labels = [("share", &**share)];
                ConstGauge::new(pick(tally)).encode(gauge.encode_family(&labels)?)?;
            }
        }
        let help = "Opens, requests and locks refused because of what others hold, both faces";
        let kind = MetricType::Counter;
        let mut conflicts = encoder.encode_descriptor("conflicts", help, None, kind)?;
        for (rule, count) in self.0.options().events.conflicts() {
            let labels = [("rule", rule.name())];
            ConstCounter::new(count).encode(conflicts.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
