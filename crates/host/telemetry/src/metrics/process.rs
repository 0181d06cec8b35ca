//! The kernel's figures of this process, read on request.

use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use super::declarations::Declarations;

const RESIDENT: (&str, &str) = (
    "process_resident_memory_bytes",
    "Memory of the process that is in RAM",
);
const DESCRIPTORS: (&str, &str) = ("process_open_descriptors", "Open file descriptors");

pub(super) fn declare(to: &mut Declarations) {
    to.section("Process");
    to.collector(&[RESIDENT, DESCRIPTORS], Box::new(Process));
}

#[derive(Debug)]
struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for ((name, help), value) in [(RESIDENT, resident_bytes()), (DESCRIPTORS, descriptors())] {
            let Some(value) = value else { continue };
            // The full stop is added to all other texts by the registry.
            let help = format!("{help}.");
            let metric = encoder.encode_descriptor(name, &help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(metric)?;
        }
        Ok(())
    }
}

/// `VmRSS` of proc_pid_status(5), in kB.
fn resident_bytes() -> Option<i64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn descriptors() -> Option<i64> {
    // The list includes the open directory itself.
    let listed = fs::read_dir("/proc/self/fd").ok()?.count();
    i64::try_from(listed).ok().map(|count| count - 1)
}
