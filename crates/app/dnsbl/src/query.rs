//! `vere dnsbl query`: what lists say about a client.

mod broker;

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use clap::Args;
use serde::Serialize;
use vere_dnsbl::MapName;
use vere_dnsbl::policy;
use vere_lists::{Entry, Findings, Lists, Origin, Outcome as Said};
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_settings::{BlockList, BlockLists, ListTreatment, Settings};

use crate::config::Config;
use vere_health::dial::verdict::Verdict;

/// The settings without a file.
const DEFAULTS: &str = "version = 1\nhostname = \"localhost.localdomain\"\n[front]\n";

/// Ask block lists about an address, as the front would.
///
/// Prints what each list answers, by a map or for the address alone, with its text, its time, and whether the running system has
/// an answer. A list that lists 127.0.0.1 lists everybody (RFC 5782 section 5), and is left out. Exit code 0: mail would be accepted, 3: mail would be deferred, 4: mail would be refused. With `--list` no
/// configuration is needed.
///
/// Example: vere dnsbl query 192.0.2.1 --list bl.example.org
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct QueryArgs {
    /// The address of a client.
    #[arg(value_name = "IP")]
    client: IpAddr,
    /// Ask this list instead of those of the configuration; may be repeated.
    #[arg(long, value_name = "ZONE")]
    list: Vec<String>,
    /// Ask this name server instead of those of the configuration.
    #[arg(long, value_name = "ADDRESS:PORT")]
    server: Option<SocketAddr>,
    /// Print JSON: an object with `client`, `front_asks`, `lists`, `sum`, `threshold` and `verdict`; a list has
    /// `list`, `weight`, `answer`, `codes`, `by`, `map`, `text`, `milliseconds`, `broker`, `lacks_test_entry`.
    #[arg(long)]
    json: bool,
}

/// What all lists say.
#[derive(Debug, Serialize)]
struct Report {
    client: IpAddr,
    /// Whether the front would ask about the address.
    front_asks: bool,
    lists: Vec<Row>,
    sum: i32,
    threshold: i32,
    verdict: Verdict,
}

/// What a list says.
#[derive(Debug, Serialize)]
struct Row {
    list: String,
    weight: i16,
    answer: &'static str,
    codes: Vec<String>,
    /// `map` or `address`; absent without an answer.
    by: Option<&'static str>,
    /// The name of the map, and the place of the client in it.
    map: Option<(String, u8)>,
    text: String,
    milliseconds: f64,
    /// What the running system keeps.
    broker: &'static str,
    /// Whether the list has no entry for 127.0.0.2, which every list should have.
    lacks_test_entry: bool,
}

/// Asks, and returns the answers as text.
///
/// # Errors
/// When the settings cannot be used, or there is no list.
pub(super) fn run(args: &QueryArgs, config: Config<'_>) -> Result<Outcome, Failure> {
    let mut settings = match config.load() {
        Ok((_, settings)) => (*settings).clone(),
        Err(_) if !args.list.is_empty() && config.file().is_none() => defaults()?,
        Err(failure) => return Err(failure),
    };
    if let Some(server) = args.server {
        (settings.resolver.servers, settings.resolver.zone) = (vec![server], None);
    }
    let mut lists = match &settings.front {
        Some(front) => front.lists.clone(),
        None => defaults()?
            .front
            .map(|front| front.lists)
            .ok_or_else(none)?,
    };
    if !args.list.is_empty() {
        lists.lists = chosen(&args.list, &lists)?;
    }
    if lists.lists.is_empty() {
        return Err(none());
    }
    let front_asks = lists.asks_private || policy::is_public(args.client);
    lists.asks_private = true;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let asking = async {
        let asked = Lists::new(&settings, &lists)?;
        asked.probe().await;
        let found = asked.ask(args.client).await;
        let mut notes = Vec::new();
        for entry in &found.entries {
            let text = match entry.outcome.is_listed() {
                true => asked.text_about(&entry.zone, args.client).await,
                false => String::new(),
            };
            notes.push((text, asked.lacks_test_entry(&entry.zone)));
        }
        Ok::<_, Failure>((found, notes))
    };
    let (found, notes) = tokio::task::LocalSet::new().block_on(&runtime, asking)?;
    let kept = broker::kept(&settings.broker_socket(), args.client, &found.entries);
    let report = Report {
        client: args.client.to_canonical(),
        front_asks,
        sum: found.sum,
        threshold: lists.threshold,
        verdict: verdict(&lists, &found, front_asks),
        lists: found
            .entries
            .iter()
            .zip(notes)
            .zip(kept)
            .map(|((entry, notes), broker)| row(args.client, entry, notes, broker))
            .collect(),
    };
    let text = match args.json {
        true => vere_process::json::to_json(&report)?,
        false => report.table(),
    };
    Ok(Outcome::Report(text, report.verdict.code()))
}

fn defaults() -> Result<Settings, Failure> {
    Settings::parse(DEFAULTS, "vere.toml").map_err(|errors| Failure::new(errors.to_string()))
}

fn none() -> Failure {
    Failure::new("no list: give --list ZONE, or write [[front.list]] into the configuration")
}

/// The lists of the command line: as in the settings where these have the zone.
fn chosen(zones: &[String], lists: &BlockLists) -> Result<Vec<BlockList>, Failure> {
    let mut chosen = Vec::new();
    for zone in zones {
        let zone = zone.strip_suffix('.').unwrap_or(zone).to_ascii_lowercase();
        let is_name = !zone.is_empty()
            && zone.len() <= 189
            && zone.split('.').all(|label| (1..=63).contains(&label.len()))
            && zone
                .bytes()
                .all(|c| c.is_ascii_alphanumeric() || b"-._".contains(&c));
        if !is_name {
            return Err(Failure::new(format!(
                "--list: expected a zone such as bl.example.org; found {zone:?}"
            )));
        }
        let before = chosen.len();
        chosen.extend(lists.lists.iter().filter(|list| list.zone == zone).cloned());
        if chosen.len() == before {
            chosen.push(BlockList::of_zone(&zone));
        }
    }
    Ok(chosen)
}

fn verdict(lists: &BlockLists, found: &Findings, front_asks: bool) -> Verdict {
    let is_short = !found.is_complete && lists.defers_unavailable;
    match lists.treatment {
        _ if !front_asks => Verdict::Taken,
        ListTreatment::Refuse if found.is_listed => Verdict::Refused,
        ListTreatment::Defer if found.is_listed => Verdict::Deferred,
        _ if is_short && !found.is_listed => Verdict::Deferred,
        _ => Verdict::Taken,
    }
}

fn row(
    client: IpAddr,
    entry: &Entry,
    (text, lacks_test_entry): (String, bool),
    broker: &'static str,
) -> Row {
    let by_map = match entry.outcome {
        Said::Listed { by_map, .. } | Said::Unlisted { by_map } => Some(by_map),
        _ => None,
    };
    let (name, neighbour) = MapName::of(client);
    Row {
        list: entry.name.to_string(),
        weight: entry.weight,
        answer: entry.outcome.as_str(),
        codes: match &entry.outcome {
            Said::Listed { codes, .. } => codes.iter().map(ToString::to_string).collect(),
            Said::Refused(code) => vec![code.to_string()],
            _ => Vec::new(),
        },
        by: by_map.map(|by_map| if by_map { "map" } else { "address" }),
        map: (by_map == Some(true)).then(|| (name.to_string(), neighbour)),
        text,
        milliseconds: match entry.origin {
            Origin::NotAsked => 0.0,
            _ => (entry.took.as_secs_f64() * 1e6).round() / 1e3,
        },
        broker,
        lacks_test_entry,
    }
}

impl Report {
    fn table(&self) -> String {
        let mut text = String::new();
        let mut line = |key: &str, value: &str| {
            let _ = writeln!(text, "{}", format!("{key:<12}{value}").trim_end());
        };
        line("client", &self.client.to_string());
        if !self.front_asks {
            line("", "a private address: the front asks nobody about it");
        }
        for row in &self.lists {
            line("", "");
            line("list", &format!("{}  weight {}", row.list, row.weight));
            let codes = match row.codes.is_empty() {
                true => String::new(),
                false => format!(" ({})", row.codes.join(", ")),
            };
            line("  answer", &format!("{}{codes}", row.answer));
            if let Some((name, neighbour)) = &row.map {
                line("  map", &format!("bit {neighbour} of {name}"));
            }
            if !row.text.is_empty() {
                line("  text", &row.text);
            }
            line("  time", &format!("{:.1} ms", row.milliseconds));
            line("  broker", row.broker);
            if row.lacks_test_entry {
                line(
                    "  warning",
                    "the list does not list 127.0.0.2, the test entry of every list",
                );
            }
        }
        line("", "");
        line(
            "sum",
            &format!("{} (threshold {})", self.sum, self.threshold),
        );
        line("verdict", self.verdict.words());
        text
    }
}
