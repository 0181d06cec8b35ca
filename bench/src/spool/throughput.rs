//! Figure 4: messages stored and deleted per second, by size.

use super::cores::Cores;
use super::drive::{Until, drive};
use super::plan::{Plan, Setting, body, kb};
use super::report::Report;
use super::systems::{
    FLOOR, Floor, MEMCACHED_QUIET, MEMCACHED_TEXT, NodeMode, REDIS_LIST, REDIS_SET, Server, Target,
    VERE, VERE_TWO,
};
use crate::error::BenchError;
use crate::peer::there;
use crate::row::Bar;

/// Octets in flight on a single connection, and on each of fifty.
pub(super) const WINDOW: usize = 256 << 10;
const WINDOW_OF_MANY: usize = 20 << 10;

/// Octets in flight tried for the largest messages.
const WINDOWS: [usize; 4] = [64 << 10, 128 << 10, 512 << 10, 1 << 20];

/// Limit of the rounds of windows: only the best round counts.
const ROUNDS_OF_WINDOWS: usize = 2;

/// Memory of the node.
const MEMORY_MAX: u64 = 4 << 30;

/// All systems that run at once.
struct Systems {
    targets: Vec<Target>,
    _floor: Floor,
    _servers: Vec<Server>,
}

fn start(setting: &Setting<'_>, report: &mut Report) -> Result<Systems, BenchError> {
    let base = setting.base;
    let floor = Floor::start(setting)?;
    let mut targets = vec![Target::new(FLOOR, floor.address)];
    let mut servers = Vec::new();
    let node = || Server::vere(setting.vere, base, NodeMode::Memory, MEMORY_MAX);
    if let Some(node) = there(node(), &mut report.header)? {
        targets.push(Target::new(VERE, node.address));
        servers.push(node);
    }
    // Further nodes: the number of groups of a node is limited.
    if let (Some(first), Some(second)) = (
        there(node(), &mut report.header)?,
        there(node(), &mut report.header)?,
    ) {
        let both = [first.address, second.address];
        targets.push(Target::replicas(VERE_TWO, &both));
        servers.extend([first, second]);
    }
    if let Some(memcached) = there(Server::memcached(base), &mut report.header)? {
        targets.push(Target::new(MEMCACHED_TEXT, memcached.address));
        targets.push(Target::new(MEMCACHED_QUIET, memcached.address));
        servers.push(memcached);
    }
    if let Some(redis) = there(Server::redis(base), &mut report.header)? {
        targets.push(Target::new(REDIS_SET, redis.address));
        targets.push(Target::new(REDIS_LIST, redis.address));
        servers.push(redis);
    }
    Ok(Systems {
        targets,
        _floor: floor,
        _servers: servers,
    })
}

/// Measures all sizes with a single connection and with many.
pub(super) fn measure(setting: &Setting<'_>, report: &mut Report) -> Result<(), BenchError> {
    let plan = setting.plan;
    for connections in plan.connections {
        // Many connections are served by several threads, where a server has several threads.
        let cores = (*connections == 1).then(|| Cores::enter(setting.placement));
        let mut systems = start(setting, report)?;
        if let Some(cores) = &cores {
            cores.be_client();
        }
        if let Some(only) = &plan.system {
            systems.targets.retain(|target| target.name == only);
        }
        let window = match connections {
            1 => WINDOW,
            _ => WINDOW_OF_MANY,
        };
        let named = |size: usize| name(size, *connections);
        for _ in 0..plan.rounds {
            for size in &plan.sizes {
                for target in &systems.targets {
                    let rate = one(plan, target, *connections, *size, window)?;
                    report.add(&named(*size), "messages/s", target.name, rate);
                }
            }
        }
        let title = format!("Figure 4: store and delete, {}", plural(*connections));
        let points = plan.sizes.iter().map(|size| (kb(*size), named(*size)));
        report.plot(title, "messages/s", points);
        if *connections == 1 {
            best_window(plan, &systems.targets, report)?;
        }
    }
    bars(plan, report);
    Ok(())
}

/// A load on a system: messages per second.
fn one(
    plan: &Plan,
    target: &Target,
    connections: usize,
    size: usize,
    window: usize,
) -> Result<f64, BenchError> {
    let mut lanes = target.lanes(connections, &body(size), window)?;
    let (warm, time) = (plan.warm, plan.time);
    let load = drive(&mut lanes, window, Until::After { warm, time });
    load.map(|load| load.rate())
        .map_err(|error| BenchError::protocol(format!("{}: {error}", target.name)))
}

/// The largest messages again, each system with its best number of octets in flight.
fn best_window(plan: &Plan, targets: &[Target], report: &mut Report) -> Result<(), BenchError> {
    let Some(size) = plan.sizes.last() else {
        return Ok(());
    };
    let named = |window: usize| format!("{}, {} KiB in flight", name(*size, 1), window >> 10);
    for _ in 0..plan.rounds.min(ROUNDS_OF_WINDOWS) {
        for window in WINDOWS {
            for target in targets {
                let rate = one(plan, target, 1, *size, window)?;
                report.add(&named(window), "messages/s", target.name, rate);
            }
        }
    }
    let title = format!("Octets in flight: {}", name(*size, 1));
    let points = WINDOWS.map(|window| (format!("{} KiB", window >> 10), named(window)));
    report.plot(title, "messages/s", points);
    for target in targets {
        let all = WINDOWS.map(|window| report.median(&named(window), target.name));
        let usual = report.median(&name(*size, 1), target.name);
        let best = all.into_iter().chain([usual]).flatten().fold(0.0, f64::max);
        report.add(&best_name(*size), "messages/s", target.name, best);
    }
    Ok(())
}

fn name(size: usize, connections: usize) -> String {
    format!("store and delete, {}, {}", kb(size), plural(connections))
}

fn best_name(size: usize) -> String {
    format!("store and delete, {}, best window", kb(size))
}

fn plural(connections: usize) -> String {
    if connections == 1 {
        "1 connection".to_owned()
    } else {
        format!("{connections} connections")
    }
}

fn bars(plan: &Plan, report: &mut Report) {
    for (size, text) in [(400, 9.0), (1_000, 7.0)] {
        report.beside(&name(size, 1), FLOOR, MEMCACHED_TEXT, Bar::RatioMin(text));
    }
    for size in &plan.sizes {
        report.beside(&name(*size, 1), VERE, FLOOR, Bar::RatioMin(0.6));
        report.beside(&name(*size, 1), VERE_TWO, VERE, Bar::RatioMin(0.4));
    }
    for (size, text, quiet) in [(400, 6.0, 4.0), (1_000, 4.5, 3.0)] {
        report.beside(&name(size, 1), VERE, MEMCACHED_TEXT, Bar::RatioMin(text));
        report.beside(&name(size, 1), VERE, MEMCACHED_QUIET, Bar::RatioMin(quiet));
    }
    if let Some(size) = plan.sizes.last() {
        report.beside(&best_name(*size), VERE, REDIS_SET, Bar::RatioMin(1.0));
    }
}
