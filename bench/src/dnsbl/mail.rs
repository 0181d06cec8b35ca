//! Mail of clients that six lists are asked about, over the Internet (Figure 14): maps beside single addresses.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use super::cached::{ADDRESSES, MAPS};
use super::delays::MEDIANS_MS;
use super::plan::{Plan, SEEDS};
use super::questions::Maps;
use super::resolver::{self, Resolver};
use super::results::Results;
use super::servers::Site;
use super::trace::Trace;
use crate::arrivals::Arrivals;
use crate::error::BenchError;
use crate::front::clients::{self, BALANCER, Load, Pace, Visits};
use crate::front::visit::{Kind, Mix};
use crate::output::note;
use crate::peer::{Peer, there};
use crate::process::guard;
use crate::sink::{RunningSink, SinkOptions};

/// Connections a second, as in the figure.
const RATES: [u32; 4] = [50, 100, 150, 200];

/// Limit of the time of a session.
const PATIENCE: Duration = Duration::from_secs(20);

/// Time without an arrival after which missing messages are given up.
const STALL: Duration = Duration::from_secs(5);

/// The figure with the time until a message is accepted.
pub(super) fn accepted(rate: u32, quantile: &str) -> String {
    format!("mail at {rate}/s: accepted {quantile}")
}

/// Measures each rate with a fresh system, whose cache is empty: both ways meet the same clients of the trace.
pub(super) fn measure(
    plan: &Plan,
    site: &Site<'_>,
    results: &mut Results,
) -> Result<(), BenchError> {
    let trace = Trace::local(*SEEDS.start());
    let clients: Arc<[Ipv4Addr]> = trace.visits.iter().map(|visit| visit.client).collect();
    let maps = Arc::new(Maps::of(&trace.listed));
    let sink = RunningSink::start(SinkOptions::remembering())?;
    for rate in RATES {
        for way in [ADDRESSES, MAPS] {
            let resolver = Resolver::start(Arc::clone(&maps), u64::from(rate))
                .map_err(BenchError::io("start a name server"))?;
            let next_hop = sink.handle().address();
            let lines = lines(&resolver, way);
            let peer = Peer::vere_exchanger(way, site.vere, next_hop, &lines, site.base);
            let Some(peer) = there(peer, &mut results.header)? else {
                return Ok(());
            };
            let pace = Pace::PerSecond(f64::from(rate));
            let mix = Mix::only(Kind::Good(1));
            let load = Load::new(peer.address(), pace, mix, plan.mail, PATIENCE);
            let load = load.proxied(Arc::clone(&clients));
            one(way, rate, &load, (&sink, &resolver), results)?;
            if guard::is_stopped() {
                return Err(BenchError::Stopped);
            }
        }
    }
    Ok(())
}

/// Settings: six lists note clients without refusals, so that every session brings mail.
fn lines(resolver: &Resolver, way: &str) -> String {
    let maps = if way == MAPS { "yes" } else { "no" };
    let mut lines = format!(
        "[front]\nbanner_delay = \"0s\"\nconnections_per_minute = 0\nrefused_recipients_per_hour = 0\n\
         [front.lists]\ntreatment = \"note\"\ntext = \"no\"\n\
         [proxy]\nnetworks = [\"{BALANCER}/32\"]\n[resolver]\nservers = [\"{}\"]\n",
        resolver.address()
    );
    for list in 0..MEDIANS_MS.len() {
        let zone = resolver::zone(list);
        lines += &format!("[[front.list]]\nzone = \"{zone}\"\nmaps = \"{maps}\"\n");
    }
    lines
}

fn one(
    way: &'static str,
    rate: u32,
    load: &Load,
    (sink, resolver): (&RunningSink, &Resolver),
    results: &mut Results,
) -> Result<(), BenchError> {
    sink.handle().take_deliveries();
    let before = resolver.queries();
    let visits = clients::run(load)?;
    let arrivals = Arrivals::await_all(sink.handle(), load.run, &visits.acked, STALL);
    let queries = resolver.queries() - before;
    let due = visits.good.due.max(1) as f64;
    let delivered = arrivals.by_id.len() as f64 * 100.0 / due;
    let each = queries as f64 / due / MEDIANS_MS.len() as f64;
    let millis = |quantile| visits.accepted_us.value_at_quantile(quantile) as f64 / 1e3;
    let (p50, p99) = (millis(0.5), millis(0.99));
    let mean = visits.accepted_us.mean() / 1e3;
    let text = format!(
        "{way:<10} {rate}/s: {delivered:.1} % delivered, accepted p50 {p50:.1} ms p99 {p99:.1} ms, {each:.3} queries a list"
    );
    note(&text);
    let figures = &mut results.figures;
    figures.add(way, format!("mail at {rate}/s: delivered"), delivered, "%");
    if !visits.acked.is_empty() {
        figures.add(way, accepted(rate, "p50"), p50, "ms");
        figures.add(way, accepted(rate, "p99"), p99, "ms");
        figures.add(way, accepted(rate, "mean"), mean, "ms");
    }
    let name = format!("mail at {rate}/s: queries for a connection, a list");
    figures.add(way, name, each, "queries");
    failures(way, rate, &visits, results);
    Ok(())
}

fn failures(way: &str, rate: u32, visits: &Visits, results: &mut Results) {
    let failures = visits.failed.iter();
    let failures: Vec<String> = failures
        .map(|(cause, count)| format!("{count} {cause}"))
        .collect();
    if !failures.is_empty() {
        let (sessions, failures) = (visits.good.due, failures.join(", "));
        results.trouble(format!(
            "{way}: mail at {rate}/s: of {sessions} sessions failed {failures}"
        ));
    }
}
