//! Mail of clients that six lists are asked about, over the Internet (Figure 14): maps beside single addresses, and beside Postfix.

use std::net::{Ipv4Addr, SocketAddr};
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
use crate::peer::{Peer, PeerError, PostfixSetup, or_skipped};
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

/// The name of the peer in results.
pub(super) const POSTSCREEN: &str = "postfix with postscreen";

/// The name server of postscreen, whose resolver knows port 53 alone.
const PORT_53: Ipv4Addr = Ipv4Addr::new(127, 53, 53, 53);

/// Postscreen notes clients, as ours, and waits for early talkers for the shortest time that Postfix allows: its default is 6 s.
const NOTING: &str = "postscreen_greet_wait = 1s\npostscreen_greet_action = ignore\npostscreen_dnsbl_action = ignore\n\
                      postscreen_upstream_proxy_protocol = haproxy\n";

/// Measures each rate with a fresh system, whose cache is empty: all meet the same clients of the trace.
pub(super) fn measure(
    plan: &Plan,
    site: &Site<'_>,
    results: &mut Results,
) -> Result<(), BenchError> {
    let trace = Trace::local(*SEEDS.start());
    let clients: Arc<[Ipv4Addr]> = trace.visits.iter().map(|visit| visit.client).collect();
    let maps = Arc::new(Maps::of(&trace.listed));
    let sink = RunningSink::start(SinkOptions::remembering())?;
    let mut ways = vec![POSTSCREEN, ADDRESSES, MAPS];
    for rate in RATES {
        for way in ways.clone() {
            let next_hop = sink.handle().address();
            let started = start(way, (&maps, rate), next_hop, site);
            let Some((resolver, peer)) = or_skipped(way, started, &mut results.header) else {
                // The reason stays the same at other rates.
                ways.retain(|other| *other != way);
                continue;
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

/// Starts a system, and the name server with its lists: delays are those of the rate for every system.
fn start(
    way: &'static str,
    (maps, rate): (&Arc<Maps>, u32),
    next_hop: SocketAddr,
    site: &Site<'_>,
) -> Result<(Resolver, Peer), PeerError> {
    let (maps, seed) = (Arc::clone(maps), u64::from(rate));
    if way == POSTSCREEN {
        let at = SocketAddr::from((PORT_53, 53));
        let resolver = Resolver::start_at(at, maps, seed).map_err(|error| {
            PeerError::unavailable(way, format!("cannot serve names at {at}: {error}"))
        })?;
        let (setup, lines) = (PostfixSetup::Screened, postscreen_lines());
        let peer = Peer::postfix_asking(way, setup, next_hop, &lines, PORT_53, site.base)?;
        return Ok((resolver, peer));
    }
    let resolver = Resolver::start(maps, seed)?;
    let lines = lines(&resolver, way);
    let peer = Peer::vere_exchanger(way, site.vere, next_hop, &lines, site.base)?;
    Ok((resolver, peer))
}

/// Settings of postscreen: the same six lists.
fn postscreen_lines() -> String {
    let lists = (0..MEDIANS_MS.len()).map(resolver::zone);
    let lists = lists.collect::<Vec<_>>().join(" ");
    format!("{NOTING}postscreen_dnsbl_sites = {lists}\n")
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
        "{way:<23} {rate}/s: {delivered:.1} % delivered, accepted p50 {p50:.1} ms p99 {p99:.1} ms, {each:.3} queries a list"
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
