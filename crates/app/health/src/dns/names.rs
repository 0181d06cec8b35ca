//! The names of the host, the exchangers of the domain, records of services, and block lists.

use std::net::{IpAddr, Ipv4Addr};

use vere_dnsbl::policy::labels;
use vere_net::resolver::{
    AddressAnswer, MxAnswer, Record, RecordKind, RecordsAnswer, TxtAnswer, reverse_name,
};

use super::subject::{Subject, listed};
use crate::row::Row;

/// Whether the host name leads to this machine, and only there.
pub(super) async fn host(subject: &Subject) -> Vec<Row> {
    const CHECK: &str = "host";
    let host = &subject.hostname;
    let found = match subject.resolver.addresses(host).await {
        AddressAnswer::Found(found) => found,
        AddressAnswer::None | AddressAnswer::NoSuchName => {
            return vec![Row::critical(
                CHECK,
                format!("{host} has no address"),
                format!("publish: {}", records_of_host(subject)),
            )];
        }
        AddressAnswer::TempFail(failure) => return vec![Row::unanswered(CHECK, host, &failure)],
    };
    if subject.addresses.is_empty() {
        return vec![Row::warning(
            CHECK,
            format!(
                "{host} leads to {}; no interface of this machine has a public address to compare",
                listed(&found)
            ),
            "behind NAT, name the public address: vere dns check --address IP",
        )];
    }
    let (own, foreign): (Vec<IpAddr>, Vec<IpAddr>) = found
        .into_iter()
        .partition(|at| subject.addresses.contains(at));
    let mut rows = Vec::new();
    if !foreign.is_empty() {
        let text = format!(
            "{host} leads to {}, and this machine has {}",
            listed(&foreign),
            subject.own()
        );
        let remedy = format!(
            "remove these addresses and publish: {}",
            records_of_host(subject)
        );
        rows.push(match own.is_empty() {
            true => Row::critical(CHECK, text, remedy),
            false => Row::warning(CHECK, text, remedy),
        });
    }
    if rows.is_empty() {
        rows.push(Row::ok(CHECK, format!("{host} leads to {}", listed(&own))));
    }
    rows
}

fn records_of_host(subject: &Subject) -> String {
    let record = |address: &IpAddr| {
        let kind = match address {
            IpAddr::V4(_) => "A",
            IpAddr::V6(_) => "AAAA",
        };
        format!("{}. {kind} {address}", subject.hostname)
    };
    match subject.addresses.is_empty() {
        true => format!(
            "{}. A (the public address of this machine)",
            subject.hostname
        ),
        false => subject
            .addresses
            .iter()
            .map(record)
            .collect::<Vec<_>>()
            .join("; "),
    }
}

/// Whether each address has a name that leads back, best the host name: many systems refuse mail otherwise.
pub(super) async fn reverse(subject: &Subject) -> Vec<Row> {
    let mut rows = Vec::new();
    for address in &subject.addresses {
        rows.push(reverse_of(subject, *address).await);
    }
    rows
}

async fn reverse_of(subject: &Subject, address: IpAddr) -> Row {
    const CHECK: &str = "reverse";
    let host = &subject.hostname;
    let remedy = format!(
        "have the owner of the network (your provider) set the name of {address} to {host}"
    );
    let answer = subject
        .resolver
        .records(&reverse_name(address), RecordKind::Ptr)
        .await;
    let names: Vec<String> = match answer {
        RecordsAnswer::Found(records) => records
            .into_iter()
            .filter_map(|record| match record {
                Record::Ptr(name) => Some(name),
                _ => None,
            })
            .collect(),
        RecordsAnswer::None | RecordsAnswer::NoSuchName => {
            return Row::critical(CHECK, format!("{address} has no name"), remedy);
        }
        RecordsAnswer::TempFail(failure) => {
            return Row::unanswered(CHECK, &reverse_name(address), &failure);
        }
    };
    let mut leads_back = None;
    for name in &names {
        let found = subject.resolver.addresses(name).await;
        if matches!(&found, AddressAnswer::Found(found) if found.contains(&address)) {
            leads_back = Some(name);
            if name == host {
                break;
            }
        }
    }
    match leads_back {
        None => Row::critical(
            CHECK,
            format!(
                "{address} has the name {}, which does not lead back",
                listed(&names)
            ),
            remedy,
        ),
        Some(name) if name == host => Row::ok(CHECK, format!("{address} has the name {name}")),
        Some(name) => Row::warning(
            CHECK,
            format!("{address} has the name {name}, and EHLO says {host}"),
            remedy,
        ),
    }
}

/// Whether the domain's mail comes here.
pub(super) async fn exchangers(subject: &Subject) -> Vec<Row> {
    const CHECK: &str = "mx";
    let (domain, host) = (&subject.domain, &subject.hostname);
    let remedy = format!("publish: {domain}. MX 10 {host}.");
    let text = match subject.resolver.mx(domain).await {
        MxAnswer::Hosts(hosts) => return of_hosts(subject, &hosts, &remedy).await,
        MxAnswer::NullMx => format!("{domain} says that it takes no mail (null MX)"),
        MxAnswer::None => format!("{domain} has no MX record: senders try its address"),
        MxAnswer::NoSuchDomain => format!("{domain} does not exist"),
        MxAnswer::TempFail(failure) => return vec![Row::unanswered(CHECK, domain, &failure)],
    };
    vec![Row::critical(CHECK, text, remedy)]
}

async fn of_hosts(subject: &Subject, hosts: &[(u16, String)], remedy: &str) -> Vec<Row> {
    const CHECK: &str = "mx";
    let mut rows = Vec::new();
    let names: Vec<&str> = hosts.iter().map(|(_, host)| host.as_str()).collect();
    if !names.contains(&subject.hostname.as_str()) {
        rows.push(Row::critical(
            CHECK,
            format!(
                "the mail of {} goes to {}",
                subject.domain,
                names.join(", ")
            ),
            remedy,
        ));
    }
    for name in names.iter().filter(|name| **name != subject.hostname) {
        let answer = subject.resolver.addresses(name).await;
        if matches!(answer, AddressAnswer::None | AddressAnswer::NoSuchName) {
            rows.push(Row::critical(
                CHECK,
                format!("the MX host {name} has no address"),
                format!("remove the MX record of {name}, or publish its address"),
            ));
        }
    }
    if rows.is_empty() {
        rows.push(Row::ok(
            CHECK,
            format!(
                "the mail of {} goes to {}",
                subject.domain,
                names.join(", ")
            ),
        ));
    }
    rows
}

/// Whether clients that look for services are led here. The records may be missing.
pub(super) async fn services(subject: &Subject) -> Vec<Row> {
    const CHECK: &str = "srv";
    let mut rows = Vec::new();
    for (service, port) in subject.ports {
        let name = format!("{service}.{}", subject.domain);
        let Some(port) = port else { continue };
        let record = format!("{name}. SRV 0 1 {port} {}.", subject.hostname);
        let own = Record::Srv(port, subject.hostname.clone());
        rows.push(
            match subject.resolver.records(&name, RecordKind::Srv).await {
                RecordsAnswer::Found(records) if records.contains(&own) => Row::ok(
                    CHECK,
                    format!("{name} leads to port {port} of {}", subject.hostname),
                ),
                RecordsAnswer::Found(_) => Row::critical(
                    CHECK,
                    format!("{name} leads elsewhere: clients that set themselves up fail"),
                    format!("publish: {record}"),
                ),
                RecordsAnswer::None | RecordsAnswer::NoSuchName => Row::ok(
                    CHECK,
                    format!("no record; clients set themselves up with: {record}"),
                ),
                RecordsAnswer::TempFail(failure) => Row::unanswered(CHECK, &name, &failure),
            },
        );
    }
    rows
}

/// Whether block lists have an address of this machine.
pub(super) async fn lists(subject: &Subject) -> Vec<Row> {
    let mut rows = Vec::new();
    for zone in &subject.lists {
        for address in &subject.addresses {
            rows.extend(on_list(subject, zone, *address).await);
        }
    }
    if rows.is_empty() && !subject.addresses.is_empty() {
        let text = format!(
            "{} is on none of: {}",
            subject.own(),
            listed(&subject.lists)
        );
        rows.push(Row::ok("lists", text));
    }
    rows
}

async fn on_list(subject: &Subject, zone: &str, address: IpAddr) -> Option<Row> {
    const CHECK: &str = "lists";
    let name = format!("{}.{zone}", labels(address));
    let RecordsAnswer::Found(records) = subject.resolver.records(&name, RecordKind::A).await else {
        return None;
    };
    let codes: Vec<Ipv4Addr> = records
        .iter()
        .filter_map(|record| match record {
            Record::A(code) if code.is_loopback() => Some(*code),
            _ => None,
        })
        .collect();
    if codes.is_empty() {
        return None;
    }
    // Codes 127.255.*: the list does not answer public resolvers (Spamhaus).
    if codes.iter().all(|code| code.octets()[1] == 255) {
        return Some(Row::warning(
            CHECK,
            format!(
                "{zone} refuses to answer this resolver ({})",
                listed(&codes)
            ),
            "ask with a resolver of your own: [resolver] servers",
        ));
    }
    let why = match subject.resolver.txt(&name).await {
        TxtAnswer::Found(texts) => format!(": {}", texts.join(" ").escape_debug()),
        _ => String::new(),
    };
    Some(Row::critical(
        CHECK,
        format!(
            "{address} is on the block list {zone} ({}){why}",
            listed(&codes)
        ),
        format!("stop what the list complains of, then ask the list {zone} for removal"),
    ))
}
