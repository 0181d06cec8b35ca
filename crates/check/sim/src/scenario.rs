//! The decisions of a seed before the run: number and kinds of nodes, sizes, and the faults with their
//! frequencies. Not every run has every fault: some bugs only show without the other faults.

use std::time::Duration;

use vere_owner::lease::LeaseTerms;
use vere_owner::{NodeName, OwnerConfig};
use vere_spool::node::{NodeConfig, SEGMENT_LEN_MIN};
use vere_units::Secret;

use crate::faults::Kind;
use crate::random::Random;
use crate::schedule::{MILLI, Micros, SECOND};

/// The group there is.
pub(crate) const GROUP: &str = "gateway";

/// The world of a seed.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    /// Whether the nodes keep logs.
    pub(crate) synced: Vec<bool>,
    /// The machine of each node.
    pub(crate) machines: Vec<usize>,
    /// Addresses of each node.
    pub(crate) addresses: Vec<usize>,
    /// Machines with owners.
    pub(crate) hosts: usize,
    pub(crate) node: NodeConfig,
    pub(crate) owner: OwnerConfig,
    /// Octets of a segment of the log.
    pub(crate) log_segment: u64,
    /// Octets that a connection accepts without a reader.
    pub(crate) capacity: usize,
    /// The longest body.
    pub(crate) body_max: u64,
    /// Between two changes of the client, about.
    pub(crate) think: Micros,
    /// Changes before the calm, at most.
    pub(crate) changes_max: u64,
    /// Changes in flight, at most.
    pub(crate) flying_max: usize,
    /// Delay of the network.
    pub(crate) delay: Micros,
    /// Of a sync.
    pub(crate) sync: Micros,
    /// Of a delivery lease.
    pub(crate) lease: LeaseTerms,
    /// Faults, each repeated by its frequency.
    pub(crate) faults: Vec<Kind>,
    /// Between two faults, about.
    pub(crate) peace: Micros,
    /// The time after which no faults are applied.
    pub(crate) calm_at: Micros,
    /// Whether faults may take the last full replica.
    pub(crate) reckless: bool,
    /// Whether memory or queues are so small that changes are refused.
    pub(crate) tight: bool,
    /// A node that is slow from early on to the end.
    pub(crate) lame: Option<usize>,
}

impl Scenario {
    pub(crate) fn of(random: &mut Random) -> Self {
        let nodes = 2 + random.below(3);
        let replicas = 1 + random.below(nodes.min(3));
        let kinds = random.below(3);
        let synced = (0..nodes).map(|_| match kinds {
            0 => true,
            1 => false,
            _ => random.percent(50),
        });
        let synced = synced.collect::<Vec<_>>();
        let machines = machines(random, nodes);
        let addresses = (0..nodes).map(|_| 1 + random.below(2)).collect::<Vec<_>>();
        let tight = random.percent(25);
        let body_max = random.span(50..20_000);
        let faults = Kind::ALL.iter().flat_map(|kind| {
            let weight = if random.percent(60) {
                random.range(1..6)
            } else {
                0
            };
            std::iter::repeat_n(*kind, weight as usize)
        });
        let faults = faults.collect();
        Self {
            node: node(random, tight),
            owner: owner(random, &addresses, replicas, &machines, kinds == 0),
            synced,
            machines,
            addresses,
            hosts: 2,
            log_segment: random.span(500..50_000),
            capacity: random.span(500..100_000) as usize,
            body_max,
            think: random.span(4 * MILLI..300 * MILLI),
            changes_max: random.span(50..1_000),
            flying_max: random.span(2..64) as usize,
            delay: random.span(50..5 * MILLI),
            sync: random.span(100..20 * MILLI),
            lease: lease(random),
            faults,
            peace: random.span(50 * MILLI..4 * SECOND),
            calm_at: random.span(3 * SECOND..20 * SECOND),
            reckless: random.percent(10),
            tight,
            lame: None,
        }
    }

    /// Sizes as drawn, and three nodes or more for two replicas, of which one is slow from early on to the
    /// end, in a world without faults.
    pub(crate) fn with_a_lame_node(random: &mut Random) -> Self {
        let mut scenario = loop {
            let scenario = Self::of(random);
            let alike = scenario.synced.iter().all(|one| *one == scenario.synced[0]);
            if alike
                && scenario.machines.len() > 2
                && scenario.owner.replicas == 2
                && !scenario.tight
            {
                break scenario;
            }
        };
        // If only one of two nodes kept the log, that node would answer later, without being slow.
        scenario.machines = (0..scenario.machines.len()).collect();
        for (machine, node) in scenario.owner.nodes.iter_mut().enumerate() {
            node.machine = machine;
        }
        scenario.faults.clear();
        scenario.lame = Some(random.below(2));
        scenario.calm_at = 20 * SECOND;
        (scenario.changes_max, scenario.think) = (u64::MAX, random.span(4 * MILLI..20 * MILLI));
        scenario.owner.bytes_max = u64::MAX;
        scenario.owner.slow_after = Duration::from_secs(3);
        scenario.owner.slow_lag = Duration::from_millis(30);
        scenario.owner.slow_rest = Duration::from_secs(600);
        scenario
    }
}

impl Scenario {
    /// Sizes as drawn, and owners that live and reach the register, so that a returning member finds the same
    /// owner; no other node takes the member's place.
    pub(crate) fn with_absences(random: &mut Random) -> Self {
        let mut scenario = loop {
            let scenario = Self::of(random);
            if scenario.owner.replicas > 1 && scenario.owner.replicas == scenario.machines.len() {
                break scenario;
            }
        };
        scenario.faults.retain(|kind| !kind.is_of_owners());
        scenario.faults.extend(Kind::ABSENCES);
        scenario.owner.isolate_after = Duration::from_millis(random.range(1_000..2_000));
        (scenario.calm_at, scenario.peace) = (20 * SECOND, random.span(300 * MILLI..4 * SECOND));
        scenario
    }
}

fn lease(random: &mut Random) -> LeaseTerms {
    let lease = Duration::from_micros(random.range(2 * SECOND..8 * SECOND));
    LeaseTerms {
        lease,
        skew: lease / 4,
    }
}

fn node(random: &mut Random, tight: bool) -> NodeConfig {
    let mut config = NodeConfig::new(Secret::new([5; 32]));
    config.segment_len = SEGMENT_LEN_MIN * (1 + random.below(4));
    config.memory_max = if tight { 100 << 10 } else { 64 << 20 };
    config.compact_above = random.percent(50).then_some(100 << 10);
    config.frame_max = 256 << 10;
    config.block_max = random.span(200..100_000) as u32;
    config.sync_delay = Duration::from_millis(random.range(0..200));
    config.log_spare = random.span(2_000..200_000);
    config
}

/// Each node on a separate machine, all nodes on one machine, or a mixture.
fn machines(random: &mut Random, nodes: usize) -> Vec<usize> {
    let kind = random.below(3);
    let machine = |index| match kind {
        0 => index,
        1 => 0,
        _ => random.below(2),
    };
    (0..nodes).map(machine).collect()
}

fn owner(
    random: &mut Random,
    addresses: &[usize],
    replicas: usize,
    machines: &[usize],
    logs: bool,
) -> OwnerConfig {
    let mut config = OwnerConfig::new(GROUP, Secret::new([5; 32]), 1);
    let name = |(index, links): (usize, &usize)| NodeName {
        name: format!("n{index}"),
        links: *links,
        machine: machines[index],
    };
    config.durable = logs && random.percent(80);
    config.nodes = addresses.iter().enumerate().map(name).collect();
    config.replicas = replicas;
    config.replicas_min = 1 + random.below(replicas.min(2));
    config.window = random.span(2_000..500_000) as usize;
    config.pending_max = random.span(20_000..2_000_000) as usize;
    config.lag_max = random.span(100_000..4_000_000);
    if random.percent(40) {
        config.bytes_max = random.span(10_000..500_000);
    }
    config.isolate_after = Duration::from_millis(random.range(1_000..4_000));
    config.adopt_wait = Duration::from_millis(random.range(500..5_000));
    config.rebuild_pause = Duration::from_millis(random.range(300..5_000));
    if random.percent(70) {
        config.slow_after = Duration::from_millis(random.range(100..2_000));
    }
    config.slow_lag = Duration::from_millis(random.range(1..10));
    // Doubled six times, the rest is still shorter than the time for recovery.
    config.slow_rest = Duration::from_millis(random.range(100..1_500));
    // Slow disks take up to 5 s: some hang by this measure.
    config.stall_after = Duration::from_millis(random.range(1_000..6_000));
    config
}
