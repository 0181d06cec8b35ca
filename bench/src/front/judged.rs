//! The judgement of received mail: all checks without content filters beside Postfix with rspamd, and rspamd behind both.
//!
//! Clients have addresses of their own by PROXY headers, since no system asks lists about the loopback. A name server in the program
//! answers for all.

mod mail;
mod names;
mod verdicts;
mod visits;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use self::mail::Key;
use self::names::{LISTS, Names, Senders, Zone};
use self::visits::load;
use super::clients::{BALANCER, Load, Pace};
use super::measure::{self, Results, Target, unless_stopped};
use super::plan::Plan;
use super::systems::{OURS, POSTFIX, Setup, Site, System};
use crate::corpus::Corpus;
use crate::error::BenchError;
use crate::load::Letters;
use crate::output::{Header, note};
use crate::peer::rspamd::{PatternCache, Rspamd, RspamdSetup};
use crate::peer::{Peer, PeerError, PostfixSetup, or_skipped};
use crate::sink::{RunningSink, SaveMode, SinkOptions, read_index};

/// Postfix, with rspamd as its milter.
pub(super) const PEER: &str = "postfix with rspamd";

/// CPU time of all processes for a message, with all checks and without content filters.
pub(super) const CPU: &str = "judged: CPU";
/// The same at [`PACE`], about as many messages a second as one rspamd with all its rules lets through.
const CPU_PACED: &str = "judged, 250 messages/s: CPU";
/// Messages a second.
const PACE: f64 = 250.0;
/// CPU time of the mail system for a message, with rspamd behind it.
pub(super) const SHARE: &str = "judged, rspamd behind: CPU without rspamd";
/// CPU time of rspamd for a message of each mail system.
const RSPAMD: &str = "judged, rspamd behind: CPU of rspamd";
/// Messages with passes of SPF, DKIM and DMARC in the header.
const PASSED: &str = "judged: SPF, DKIM and DMARC pass";
pub(super) const SAME: &str = "judged, rspamd behind: same verdicts";
pub(super) const SAME_LABELLED: &str = "judged, rspamd behind: same verdicts, labelled";
const RATE: &str = "judged: delivered";

/// Least share of messages with passes: with less, the systems have not done the same work.
const PASSED_MIN: f64 = 99.0;

/// The name server, for Postfix at the port of the resolver of the C library.
const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(127, 53, 53, 53);

/// Plan and place of the measurement.
struct Place<'a> {
    plan: &'a Plan,
    vere: &'a Path,
    base: &'a Path,
    sink: &'a RunningSink,
    name_server: SocketAddr,
    patterns: PatternCache,
}

impl Place<'_> {
    fn rspamd(&self, setup: RspamdSetup<'_>) -> Result<Rspamd, PeerError> {
        Rspamd::start(setup, self.name_server, &self.patterns, self.base)
    }
}

/// Measures all rows; a missing part is skipped with the reason.
pub(super) fn measure(
    plan: &Plan,
    site: &Site<'_>,
    results: &mut Results,
) -> Result<(), BenchError> {
    let Some(corpus) = Corpus::locate() else {
        let reason = "judged skipped: no real mail (VERE_CORPUS names an mbox file)";
        results.header.skip(reason.to_owned());
        return Ok(());
    };
    // Some messages have no author with a domain.
    let corpus = Corpus::read(&corpus, plan.judged * 2).map_err(BenchError::of("the corpus"))?;
    let key = Key::generate()?;
    let Some(letters) = mail::signed(&corpus, &key, plan.judged).map(Arc::new) else {
        let reason = "judged skipped: no message of the corpus can be signed";
        results.header.skip(reason.to_owned());
        return Ok(());
    };
    let saved = crate::peer::folder(site.base, "vere-bench-judged-");
    let saved = saved.map_err(BenchError::io("make a folder"))?;
    let options = SinkOptions {
        save: Some(saved.path().to_owned()),
        mode: SaveMode::Log,
        ..SinkOptions::remembering()
    };
    let sink = RunningSink::start(options)?;
    let place = Place {
        plan,
        vere: site.vere,
        base: site.base,
        sink: &sink,
        name_server: (NAME_SERVER, 53).into(),
        patterns: PatternCache::new(site.base).map_err(BenchError::io("make a folder"))?,
    };
    checks(&place, &key, &letters, &saved, results)?;
    behind(&place, &key, &letters, results)
}

/// Starts the name server for the senders of letters.
fn serve(
    place: &Place<'_>,
    key: &Key,
    letters: &[&Letters],
    senders: Senders,
    header: &mut Header,
) -> Option<Names> {
    let letters = letters.iter().flat_map(|letters| letters.iter());
    let domains = letters.map(|letter| mail::domain_of(&letter.sender).to_owned());
    let zone = Zone {
        key: key.record.clone(),
        domains: domains.collect(),
        senders,
    };
    match Names::start(place.name_server, zone) {
        Ok(names) => Some(names),
        Err(error) => {
            let at = place.name_server;
            header.skip(format!(
                "judged skipped: cannot serve names at {at}: {error}"
            ));
            None
        }
    }
}

/// All checks, without content filters. The first run of each system fills caches and has no figures.
fn checks(
    place: &Place<'_>,
    key: &Key,
    letters: &Arc<Letters>,
    saved: &TempDir,
    results: &mut Results,
) -> Result<(), BenchError> {
    let header = &mut results.header;
    let Some(names) = serve(place, key, &[letters.as_ref()], Senders::Honest, header) else {
        return Ok(());
    };
    let setup = RspamdSetup::Checks(&LISTS);
    let rspamd = place.rspamd(setup);
    let rspamd = or_skipped(PEER, rspamd, header);
    let systems = start(place, "", rspamd.as_ref(), header);
    for round in 0..=place.plan.rounds {
        for (name, target) in &systems {
            let behind = rspamd.as_ref().filter(|_| *name == PEER);
            let before = names.queries();
            let at_once = Pace::AtOnce(place.plan.sessions);
            let load = load(target, at_once, letters);
            let outcome = one(target, &load, behind, place.sink, results);
            let Some(found) = unless_stopped(outcome, target.system, &mut results.header)? else {
                continue;
            };
            let passed = passed(saved.path(), load.run).map_err(BenchError::io("read the sink"))?;
            if passed < PASSED_MIN {
                let text =
                    format!("{name}: judged: SPF, DKIM and DMARC pass for {passed:.1} % only");
                measure::trouble(&mut results.troubles, text);
            }
            let each = (names.queries() - before) as f64 / f64::from(letters.count());
            let (cpu, rate) = (found.own + found.rspamd, found.rate);
            note(&format!(
                "{name:<24} judged             {rate:>7.0} messages/s, {cpu:.0} us CPU each, {each:.1} queries each, {passed:.1} % pass"
            ));
            if round > 0 && found.is_whole && passed >= PASSED_MIN {
                let figures = &mut results.figures;
                figures.add(name, CPU, cpu, "us/message");
                figures.add(name, RATE, rate, "messages/s");
                figures.add(name, PASSED, passed, "%");
            }
        }
    }
    paced(place, &systems, rspamd.as_ref(), letters, results)
}

/// The same checks at a pace, with all answers known.
fn paced(
    place: &Place<'_>,
    systems: &[(&'static str, Target)],
    rspamd: Option<&Rspamd>,
    letters: &Arc<Letters>,
    results: &mut Results,
) -> Result<(), BenchError> {
    for _ in 0..place.plan.rounds {
        for (name, target) in systems {
            let behind = rspamd.filter(|_| *name == PEER);
            let load = load(target, Pace::PerSecond(PACE), letters);
            let outcome = one(target, &load, behind, place.sink, results);
            let Some(found) = unless_stopped(outcome, target.system, &mut results.header)? else {
                continue;
            };
            let (cpu, rate) = (found.own + found.rspamd, found.rate);
            note(&format!(
                "{name:<24} judged at a pace   {rate:>7.0} messages/s, {cpu:.0} us CPU each"
            ));
            if found.is_whole {
                results.figures.add(name, CPU_PACED, cpu, "us/message");
            }
        }
    }
    Ok(())
}

/// One rspamd behind both systems.
fn behind(
    place: &Place<'_>,
    key: &Key,
    letters: &Arc<Letters>,
    results: &mut Results,
) -> Result<(), BenchError> {
    let labelled = match place.plan.labelled.as_deref().map(mail::labelled) {
        Some(labelled) => Some(labelled?),
        None => {
            let reason = "judged, labelled messages skipped: no folder (--labelled DIR)";
            results.header.skip(reason.to_owned());
            None
        }
    };
    let mut all = vec![letters.as_ref()];
    all.extend(labelled.iter().map(|(letters, _)| letters));
    let Some(_names) = serve(place, key, &all, Senders::Mixed, &mut results.header) else {
        return Ok(());
    };
    let rspamd = place.rspamd(RspamdSetup::AsShipped);
    let Some(rspamd) = or_skipped("rspamd", rspamd, &mut results.header) else {
        return Ok(());
    };
    let lines = format!(
        "[[filter]]\nname = \"rspamd\"\nkind = \"rspamd\"\naddress = \"{}\"\ntimeout = \"60s\"\n\
         [[judging.filter]]\nname = \"rspamd\"\naction = \"follow\"\n",
        rspamd.http()
    );
    let mut systems = start(place, &lines, Some(&rspamd), &mut results.header);
    for round in 0..=place.plan.rounds {
        if round == 1 {
            drop_unasked(&mut systems, &rspamd, letters, &mut results.header)?;
        }
        for (name, target) in &systems {
            let load = load(target, Pace::AtOnce(place.plan.sessions), letters);
            let outcome = one(target, &load, Some(&rspamd), place.sink, results);
            let Some(found) = unless_stopped(outcome, target.system, &mut results.header)? else {
                continue;
            };
            // The workers for milters are a part of Postfix's way, and take no part in ours.
            let own = found.own + found.milter;
            let rest = found.rspamd - found.milter;
            note(&format!(
                "{name:<24} rspamd behind      {:>7.0} messages/s, {own:.0} us CPU each, rspamd {rest:.0} us",
                found.rate
            ));
            if round > 0 && found.is_whole {
                results.figures.add(name, SHARE, own, "us/message");
                results.figures.add(name, RSPAMD, rest, "us/message");
            }
        }
    }
    verdicts::measure(SAME, &systems, &rspamd, (letters, None), results)?;
    if let Some((letters, spam)) = labelled {
        let labelled = (&Arc::new(letters), Some(&spam[..]));
        verdicts::measure(SAME_LABELLED, &systems, &rspamd, labelled, results)?;
    }
    Ok(())
}

/// Leaves out both systems where rspamd has not seen the letters of each: there is nothing to compare.
fn drop_unasked(
    systems: &mut Vec<(&'static str, Target)>,
    rspamd: &Rspamd,
    letters: &Letters,
    header: &mut Header,
) -> Result<(), BenchError> {
    let seen = rspamd
        .verdicts()
        .map_err(BenchError::io("read the log of rspamd"))?;
    let wanted = systems.len() * usize::try_from(letters.count()).unwrap_or(usize::MAX);
    // Some may have been refused before rspamd was asked.
    if seen.len() < wanted * 9 / 10 {
        let seen = seen.len();
        header.skip(format!(
            "judged, rspamd behind, skipped: expected about {wanted} messages at rspamd; found {seen}"
        ));
        systems.clear();
    }
    Ok(())
}

/// Starts both systems. Without rspamd ours stands alone.
fn start(
    place: &Place<'_>,
    lines: &str,
    rspamd: Option<&Rspamd>,
    header: &mut Header,
) -> Vec<(&'static str, Target)> {
    let next_hop = place.sink.handle().address();
    let mut systems = Vec::new();
    if let Some(setup) = OURS.iter().find(|setup| setup.has_bars) {
        let lines = our_lines(setup, place.name_server) + lines;
        let started = Peer::vere_exchanger(setup.name, place.vere, next_hop, &lines, place.base);
        let started = started.map(|peer| (setup.name, System::Ours(setup), peer));
        systems.extend(or_skipped(setup.name, started, header));
    }
    if let Some(rspamd) = rspamd {
        let started = postfix(place, next_hop, rspamd);
        let started = started.map(|peer| (PEER, System::Postfix, peer));
        systems.extend(or_skipped(POSTFIX, started, header));
    }
    let systems = systems.into_iter();
    systems
        .map(|(name, system, peer)| (name, Target { system, peer }))
        .collect()
}

/// Our settings: front, lists that note clients, judgement.
fn our_lines(setup: &Setup, name_server: SocketAddr) -> String {
    let lists = LISTS.map(|zone| format!("[[front.list]]\nzone = \"{zone}\"\nmaps = \"no\"\n"));
    format!(
        "{}[front.lists]\ntreatment = \"note\"\ntext = \"no\"\n{}[proxy]\nnetworks = [\"{BALANCER}/32\"]\n\
         [resolver]\nservers = [\"{name_server}\"]\n[judging]\n",
        setup.lines,
        lists.concat()
    )
}

/// Postfix looks for the names of clients, as shipped, which is iprev. rspamd is its milter.
fn postfix(place: &Place<'_>, next_hop: SocketAddr, rspamd: &Rspamd) -> Result<Peer, PeerError> {
    let milter = rspamd.milter();
    let lines = format!(
        "smtpd_upstream_proxy_protocol = haproxy\nsmtpd_peername_lookup = yes\n\
         smtpd_milters = inet:{}:{}\nmilter_default_action = tempfail\n",
        milter.ip(),
        milter.port()
    );
    let setup = PostfixSetup::Tuned;
    Peer::postfix_asking(PEER, setup, next_hop, &lines, NAME_SERVER, place.base)
}

/// Microseconds of CPU for a message.
struct Found {
    /// Of the mail system.
    own: f64,
    /// Of all processes of rspamd.
    rspamd: f64,
    /// Of the workers of rspamd for milters.
    milter: f64,
    /// Messages at the next hop a second.
    rate: f64,
    is_whole: bool,
}

fn one(
    target: &Target,
    load: &Load,
    rspamd: Option<&Rspamd>,
    sink: &RunningSink,
    results: &mut Results,
) -> Result<Found, BenchError> {
    let cpu = || -> Result<[Duration; 2], BenchError> {
        let Some(rspamd) = rspamd else {
            return Ok([Duration::ZERO; 2]);
        };
        let all = rspamd.account().total();
        let failed = || BenchError::of("CPU time of rspamd");
        Ok([
            all.map_err(failed())?,
            rspamd.milter_cpu().map_err(failed())?,
        ])
    };
    let before = cpu()?;
    let run = measure::run(target, load, sink, "judged", &mut results.troubles)?;
    let after = cpu()?;
    // Refused messages were judged as well.
    let refused = run.visits.failed.iter();
    let refused = refused.filter(|(cause, _)| cause.starts_with("reply 5"));
    let refused: u64 = refused.map(|(_, count)| count).sum();
    let count = run.arrived + refused;
    let of = |place: usize| {
        let taken = after[place].saturating_sub(before[place]);
        taken.as_secs_f64() * 1e6 / count.max(1) as f64
    };
    let good = run.visits.good;
    Ok(Found {
        own: run.cpu_us_of(count).unwrap_or_default(),
        rspamd: of(0),
        milter: of(1),
        rate: run.delivered_per_second(),
        is_whole: measure::is_whole(good.due, good.done + refused),
    })
}

/// The share of messages of a run with passes of SPF, DKIM and DMARC in their headers, in percent.
fn passed(saved: &Path, run: u32) -> std::io::Result<f64> {
    let messages = std::fs::read(saved.join("messages"))?;
    let (mut count, mut passed) = (0_u32, 0_u32);
    for entry in read_index(saved)? {
        if entry.id.is_none_or(|id| id.run() != run) {
            continue;
        }
        let begin = usize::try_from(entry.offset).unwrap_or(usize::MAX);
        let length = usize::try_from(entry.length).unwrap_or(usize::MAX);
        let text = messages
            .get(begin..begin.saturating_add(length))
            .unwrap_or_default();
        count += 1;
        passed += u32::from(has_passed(text));
    }
    Ok(f64::from(passed) * 100.0 / f64::from(count.max(1)))
}

/// Whether a field Authentication-Results has all passes. A message has a single field, from the measured system.
fn has_passed(message: &[u8]) -> bool {
    let header = message.windows(4).position(|four| four == b"\r\n\r\n");
    let header = header.and_then(|end| message.get(..end)).unwrap_or(message);
    let header = String::from_utf8_lossy(header).to_ascii_lowercase();
    let Some((_, results)) = header.split_once("authentication-results:") else {
        return false;
    };
    ["spf=pass", "dkim=pass", "dmarc=pass"]
        .iter()
        .all(|wanted| results.contains(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_those_of_the_header() {
        let all = "X: y\r\nAuthentication-Results: mx;\r\n spf=pass; dkim=pass; dmarc=pass\r\n";
        assert!(has_passed(format!("{all}\r\nhello").as_bytes()));
        assert!(!has_passed(format!("A: b\r\n\r\n{all}").as_bytes()));
        assert!(!has_passed(
            all.replace("dkim=pass", "dkim=fail").as_bytes()
        ));
    }

    #[test]
    fn our_lines_are_settings_with_both_lists() {
        let setup = OURS.iter().find(|setup| setup.has_bars).unwrap();
        let lines = our_lines(setup, "127.0.0.1:53".parse().unwrap());
        assert_eq!(lines.matches("[[front.list]]").count(), LISTS.len());
        assert!(
            lines.ends_with("[judging]\n") && lines.contains("\n[front.lists]\n"),
            "{lines}"
        );
    }
}
