//! Checks for contradictions between values that are valid individually.

mod acme;
mod call_ahead;
mod cluster;
mod filters;
mod found;
mod judging;
mod lists;
mod nodes;
mod web;
mod x400;

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::document::Document;
use crate::errors::ConfigError;
use crate::model::{Settings, Spool};
use crate::outgoing::{DestinationScope, LocalDelivery, NextHop, Route};
use crate::services::RecordSink;
use crate::spool_accounts::DEFAULT_SPOOL_ACCOUNT;
use crate::value::Value;
use found::Found;

/// Lists the contradictions.
pub(crate) fn check(settings: &Settings, document: &Document) -> Vec<ConfigError> {
    let mut found = Found {
        document,
        errors: Vec::new(),
    };
    listeners(settings, &mut found);
    proxies(settings, &mut found);
    front(settings, &mut found);
    certificates(settings, &mut found);
    limits(settings, &mut found);
    delivery(settings, &mut found);
    destinations(settings, &mut found);
    routes(settings, &mut found);
    call_ahead::check(settings, &mut found);
    lists::check(settings, &mut found);
    filters::check(settings, &mut found);
    reports(settings, &mut found);
    judging::check(settings, &mut found);
    sources(settings, &mut found);
    spool(settings, &mut found);
    cluster::check(settings, &mut found);
    x400::check(settings, &mut found);
    web::check(settings, &mut found);
    acme::check(settings, &mut found);
    found.socket("control.socket", &settings.control.socket);
    if settings.delivery.courier_processes > 0 {
        let key = "delivery.courier_processes";
        found.socket(key, &settings.couriers_socket());
    }
    if let Some(sendmail) = &settings.sendmail {
        found.socket("sendmail.socket", &sendmail.socket);
    }
    if let Some(dkim) = &settings.dkim {
        found.socket("dkim.socket", &dkim.socket);
    }
    if let Some(settings) = &settings.records {
        records(&settings.to, &mut found);
    }
    found.errors
}

/// The judgement finds the facts of a report about DMARC; without an address there is no place for questions about a report.
fn reports(settings: &Settings, found: &mut Found<'_>) {
    let Some(reports) = &settings.reports else {
        return;
    };
    let no_contact = reports.contact.is_none();
    for (is_missing, key, what) in [
        (
            reports.dmarc && settings.judging.is_none(),
            "reports.dmarc",
            "needs [judging]",
        ),
        (
            reports.dmarc && settings.front.is_none(),
            "reports.dmarc",
            "needs [front]",
        ),
        (
            reports.dmarc && no_contact,
            "reports.dmarc",
            "needs reports.contact",
        ),
        (
            reports.tls && no_contact,
            "reports.tls",
            "needs reports.contact",
        ),
    ] {
        if is_missing {
            found.add(key, what);
        }
    }
}

fn records(to: &RecordSink, found: &mut Found<'_>) {
    let has = |key: &str| found.document.values.contains_key(key);
    match (has("records.file"), has("records.webhook")) {
        (true, true) => found.add("records.webhook", "stands beside records.file"),
        (false, false) => found.add("records", "needs records.file or records.webhook"),
        _ => {}
    }
    found.pair("records.webhook", "records.webhook_secret");
    let ca = "records.webhook_ca";
    let encrypted = matches!(to, RecordSink::Webhook { url, .. } if url.starts_with("https:"));
    if found.document.values.contains_key(ca) && !encrypted {
        found.add(ca, "needs an https:// address in records.webhook");
    }
}

/// A front end trusted with XCLIENT and a balancer that speaks for every client are two things; the same network
/// for both is most often a mistake.
fn proxies(settings: &Settings, found: &mut Found<'_>) {
    let allowed = found.document.values.get("xclient.proxy_overlap");
    if matches!(allowed, Some(Value::Choice("allowed"))) {
        return;
    }
    let trusted = &settings.xclient.networks;
    let shared = |proxy| trusted.iter().any(|network| network.overlaps(proxy));
    if settings.proxy.networks.iter().any(shared) {
        found.add(
            "xclient.networks",
            "shares addresses with proxy.networks; separate the two, or set xclient.proxy_overlap = \"allowed\"",
        );
    }
}

fn listeners(settings: &Settings, found: &mut Found<'_>) {
    let acme = settings.acme.iter().flat_map(|acme| {
        let http = acme.listen.iter().map(|a| ("acme.listen", a));
        http.chain(acme.tls_listen.iter().map(|a| ("acme.tls_listen", a)))
    });
    let services = [
        ("smtp.listen", &settings.smtp),
        ("submission.listen", &settings.submission),
        ("submissions.listen", &settings.submissions),
        ("imap.listen", &settings.imap),
        ("imaps.listen", &settings.imaps),
        ("lmtp.listen", &settings.lmtp),
    ];
    let mail = services
        .into_iter()
        .flat_map(|(key, on)| on.listen.iter().map(move |a| (key, a)));
    let metrics = [
        ("metrics.listen", &settings.metrics.listen),
        ("metrics.store", &settings.metrics.store),
        ("metrics.front", &settings.metrics.front),
        ("metrics.dnsbl", &settings.metrics.dnsbl),
        ("metrics.x400", &settings.metrics.x400),
        ("metrics.web", &settings.metrics.web),
        ("metrics.otlp", &settings.metrics.otlp),
    ];
    let metrics = metrics
        .into_iter()
        .flat_map(|(key, address)| address.iter().map(move |address| (key, address)));
    let mut taken = BTreeSet::new();
    let x400 = settings.x400.iter().flat_map(|x400| {
        let plain = x400.listen.iter().map(|address| ("x400.listen", address));
        plain.chain(
            x400.listen_tls
                .iter()
                .map(|address| ("x400.listen_tls", address)),
        )
    });
    let web = settings.web.iter().flat_map(|web| {
        let https = web.https.iter().map(|address| ("web.https", address));
        https.chain(web.http.iter().map(|address| ("web.http", address)))
    });
    for (key, address) in mail.chain(acme).chain(metrics).chain(x400).chain(web) {
        // Port 0 requests a free port, so that several listeners may use port 0.
        if address.port() != 0 && !taken.insert(*address) {
            found.add(key, format!("{address} is listened on twice"));
        }
    }
}

/// What the front does not know yet would be lost without a word.
fn front(settings: &Settings, found: &mut Found<'_>) {
    let Some(front) = &settings.front else {
        return;
    };
    if let Some(loops) = front.loops
        && loops > front.workers
    {
        let workers = front.workers;
        found.add(
            "front.loops",
            format!("expected at most front.workers, which is {workers}; found {loops}"),
        );
    }
    if !settings.xclient.networks.is_empty() {
        let text = "is not understood by the front: leave out [front], or this";
        found.add("xclient.networks", text);
    }
    if front.hands_over_at_once && !settings.proxy.networks.is_empty() {
        let text = "is not understood by workers: leave out front.hand_over, or this";
        found.add("proxy.networks", text);
    }
    if settings.smtp.listen.is_empty() {
        found.add("front", "needs an address of port 25: smtp.listen");
    }
}

fn certificates(settings: &Settings, found: &mut Found<'_>) {
    found.pair("tls.certificate", "tls.key");
    let have = settings.tls.default.is_some() || settings.acme.is_some();
    if !settings.submissions.listen.is_empty() && !have {
        found.add(
            "submissions.listen",
            "needs a certificate: [tls] with files, or [acme]",
        );
    }
    if !settings.imaps.listen.is_empty() && !have {
        found.add(
            "imaps.listen",
            "needs a certificate: [tls] with files, or [acme]",
        );
    }
    if settings.delivery.local == LocalDelivery::Store && settings.lmtp.listen.is_empty() {
        let text = "mail for own accounts goes to the mail store, which needs an address: \
                    lmtp.listen; or delivery.local = \"maildir\"";
        found.add("lmtp.listen", text);
    }
    let in_clear = &settings.auth.plaintext_networks.networks;
    if !settings.submission.listen.is_empty() && !have && in_clear.is_empty() {
        let text = "needs a certificate: [tls] with files, or [acme]; without a certificate no client can authenticate";
        found.add("submission.listen", text);
    }
    let mut names = BTreeSet::new();
    for (n, sni) in settings.tls.sni.iter().enumerate() {
        if !names.insert(&sni.name) {
            found.add(
                &format!("tls.sni[{}].name", n + 1),
                format!("{} stands twice", sni.name),
            );
        }
    }
}

fn limits(settings: &Settings, found: &mut Found<'_>) {
    let size = settings.limits.message_size_max;
    for (name, room) in [
        ("body_memory_max", settings.limits.body_memory_max),
        ("body_disk_max", settings.limits.body_disk_max),
    ] {
        if size.as_u64() > room.as_u64() / 2 {
            let text = format!("{size} is more than half of limits.{name} ({room})");
            found.add("limits.message_size_max", text);
        }
    }
    let (from, until) = (
        settings.limits.throttle_from,
        settings.limits.throttle_until,
    );
    if until > from {
        let text = format!("{until} is more than limits.throttle_from ({from})");
        found.add("limits.throttle_until", text);
    }
}

fn delivery(settings: &Settings, found: &mut Found<'_>) {
    let delivery = &settings.delivery;
    if delivery.delay_notice >= delivery.expire {
        let text = format!("is not before delivery.expire ({})", delivery.expire);
        found.add("delivery.delay_notice", text);
    }
}

fn destinations(settings: &Settings, found: &mut Found<'_>) {
    for (n, limits) in settings.destinations.iter().enumerate() {
        let key = |name: &str| format!("delivery.destination[{}].{name}", n + 1);
        let values = &found.document.values;
        let given = |name: &&&str| values.contains_key(&key(name));
        let names: Vec<&&str> = ["domain", "next_hop", "mx"].iter().filter(given).collect();
        match names[..] {
            [] => found.add(&key("domain"), "or next_hop or mx must be given"),
            [_, second, ..] => found.add(&key(second), format!("stands beside {}", names[0])),
            [name] => {
                let before = &settings.destinations[..n];
                let earlier = before.iter().position(|other| other.scope == limits.scope);
                if let Some(earlier) = earlier {
                    let text = format!("is the same in delivery.destination[{}]", earlier + 1);
                    found.add(&key(name), text);
                }
            }
        }
        if limits.scope == Some(DestinationScope::NextHop(NextHop::Mx)) {
            found.add(
                &key("next_hop"),
                "expected a next hop; `domain` is for destinations routed by MX",
            );
        }
        let of_hosts = matches!(limits.scope, Some(DestinationScope::Mx(_)));
        if limits.in_order && of_hosts {
            found.add(
                &key("in_order"),
                "is for domains and next hops, not for hosts",
            );
        }
        if limits.in_order && limits.connections_max.is_some() {
            found.add(&key("connections_max"), "must be 1 with in_order");
        }
        if limits.burst.is_some() && limits.rate.is_none() {
            found.add(&key("burst"), "needs `rate` in the same section");
        }
    }
}

fn routes(settings: &Settings, found: &mut Found<'_>) {
    for (n, route) in settings.routes.iter().enumerate() {
        let key = |name: &str| format!("route[{}].{name}", n + 1);
        login(route, &key, found);
        let earlier = settings.routes[..n]
            .iter()
            .position(|other| other.domain == route.domain);
        if let Some(earlier) = earlier {
            let text = format!(
                "has no effect, since route[{}] is for the same",
                earlier + 1
            );
            found.add(&key("domain"), text);
        }
    }
}

fn login(route: &Route, key: &impl Fn(&str) -> String, found: &mut Found<'_>) {
    let password = route.password.is_some() || route.password_file.is_some();
    match (&route.username, password) {
        (Some(_), false) => found.add(
            &key("username"),
            "needs password or password_file in the same section",
        ),
        (None, true) if route.password.is_some() => {
            found.add(&key("password"), "needs `username` in the same section");
        }
        (None, true) => found.add(
            &key("password_file"),
            "needs `username` in the same section",
        ),
        (Some(_), true) => match &route.next_hop {
            NextHop::Mx | NextHop::Local => {
                found.add(&key("username"), "needs a next hop with a host name");
            }
            NextHop::Host { host, .. } => {
                let address = host.parse::<IpAddr>();
                let loopback = address.is_ok_and(|address| address.is_loopback());
                if !route.tls.is_verified() && !loopback && !route.password_in_clear {
                    let text = "needs tls = \"required\", or the password could be read";
                    found.add(&key("username"), text);
                }
            }
        },
        (None, false) => {}
    }
    if route.password.is_some() && route.password_file.is_some() {
        found.add(&key("password_file"), "stands beside password");
    }
}

fn sources(settings: &Settings, found: &mut Found<'_>) {
    for (n, source) in settings.sources.iter().enumerate() {
        if settings.sources[..n]
            .iter()
            .any(|earlier| earlier.name == source.name)
        {
            let key = format!("source[{}].name", n + 1);
            found.add(&key, format!("{:?} stands twice", source.name));
        }
    }
    let unknown = |name: &String| settings.source(name).is_none();
    let missing = |name: &str| format!("there is no [[source]] named {name:?}");
    if let Some(name) = settings
        .delivery
        .source
        .as_ref()
        .filter(|name| unknown(name))
    {
        found.add("delivery.source", missing(name));
    }
    for (n, route) in settings.routes.iter().enumerate() {
        let key = format!("route[{}].source", n + 1);
        let own = route.source.as_ref().filter(|name| unknown(name));
        if let Some(name) = own.filter(|_| found.document.values.contains_key(&key)) {
            found.add(&key, missing(name));
        }
    }
}

fn spool(settings: &Settings, found: &mut Found<'_>) {
    let spool = &settings.spool;
    nodes::check(spool, found);
    spool_accounts(spool, found);
    let nodes = spool.nodes.len();
    if usize::try_from(spool.replicas).is_ok_and(|replicas| replicas > nodes) {
        let text = format!(
            "{} copies need as many [[spool.node]], there are {nodes}",
            spool.replicas
        );
        found.add("spool.replicas", text);
    } else if spool.replicas_min > spool.replicas && spool.replicas_min as usize <= nodes {
        let text = format!("is more than spool.replicas, which is {}", spool.replicas);
        found.add("spool.replicas_min", text);
    }
    if usize::try_from(spool.replicas_min).is_ok_and(|replicas| replicas > nodes) {
        let text = format!(
            "{} copies need as many [[spool.node]], there are {nodes}",
            spool.replicas_min
        );
        let by_hand = found.document.values.contains_key("spool.replicas_min");
        found.add(
            if by_hand {
                "spool.replicas_min"
            } else {
                "spool.durability"
            },
            text,
        );
    }
    if spool.memory_max.as_u64() / 4 < spool.segment_size.as_u64() {
        found.add(
            "spool.segment_size",
            "is more than a quarter of spool.memory_max",
        );
    }
}

/// Octets of an account's name, and accounts admitted by a gateway: `vere_spoolwire` carries both in a frame of
/// fixed length.
const ACCOUNT_NAME_MAX: usize = 32;
const ACCOUNTS_LET_IN_MAX: usize = 16;

fn spool_accounts(spool: &Spool, found: &mut Found<'_>) {
    for (n, account) in spool.accounts.iter().enumerate() {
        let key = |name: &str| format!("spool.account[{}].{name}", n + 1);
        let earlier = &spool.accounts[..n];
        if account.name == DEFAULT_SPOOL_ACCOUNT {
            found.add(&key("name"), "is the account of spool.secret");
        } else if earlier.iter().any(|other| other.name == account.name) {
            found.add(&key("name"), format!("{:?} stands twice", account.name));
        } else if account.name.len() > ACCOUNT_NAME_MAX {
            found.add(&key("name"), "is longer than 32 octets");
        }
        let shared = earlier.iter().any(|other| other.secret == account.secret);
        if shared || account.secret == spool.secret {
            let text = format!("{} proves another account", account.secret.display());
            found.add(&key("secret"), text);
        }
    }
    if spool.secret_of(&spool.speaks_as).is_none() {
        let text = format!("there is no [[spool.account]] named {:?}", spool.speaks_as);
        found.add("spool.as", text);
    }
    let long = |name: &&String| name.len() > ACCOUNT_NAME_MAX;
    for (key, names) in [("adopters", &spool.adopters), ("readers", &spool.readers)] {
        if let Some(name) = names.iter().find(long) {
            let text = format!("{name:?} is longer than 32 octets");
            found.add(&format!("spool.{key}"), text);
        }
    }
    if spool.adopters.len() + spool.readers.len() > ACCOUNTS_LET_IN_MAX {
        found.add("spool.readers", "with spool.adopters are more than 16");
    }
    spool_queues(spool, found);
}

fn spool_queues(spool: &Spool, found: &mut Found<'_>) {
    for (n, queue) in spool.queues.iter().enumerate() {
        let key = |name: &str| format!("spool.queue[{}].{name}", n + 1);
        let mut earlier = spool.queues.iter().take(n);
        if earlier.any(|other| other.name == queue.name) {
            found.add(&key("name"), format!("{:?} stands twice", queue.name));
        }
        if queue.readers.is_empty() {
            let text = "expected at least one account; without the section all readers of the gateway's queues may read the queue";
            found.add(&key("readers"), text);
        } else if queue.readers.len() > ACCOUNTS_LET_IN_MAX {
            found.add(&key("readers"), "are more than 16");
        }
        let mut readers = queue.readers.iter();
        if let Some(name) = readers.find(|name| name.len() > ACCOUNT_NAME_MAX) {
            let text = format!("{name:?} is longer than 32 octets");
            found.add(&key("readers"), text);
        }
    }
}
