//! The memory that the roles may use together, by the limits in the settings.
//!
//! A limit in the settings counts with its value; further memory of a role is a named constant here. `vere
//! check-config` prints the sum, the unit's `MemoryMax` is derived from the sum, and `vere bench trouble` compares
//! the sum with the memory of a running system.

use vere_process::web_names;
use vere_settings::{FilterKind, FilterSettings, Limits, Settings};
use vere_units::ByteSize;

/// The program with threads and caches outside all settings, for each role.
const SUPERVISOR: u64 = 32 * MIB;
const SIGNER: u64 = 32 * MIB;
/// Answers about recipients (11 MiB), results of SPF (12 MiB), records of the DNS (8 MiB) and waiting questions, beside
/// the program.
const BROKER: u64 = 48 * MIB;
/// Results of calls to next hops, 64 connections, and 4,096 waiting questions.
const CALLS: u64 = 24 * MIB;
const COURIER: u64 = 48 * MIB;
const KEEPER: u64 = 32 * MIB;
const WORKER: u64 = 32 * MIB;
const FRONT: u64 = 64 * MIB;
/// Lists are as large as the files: 10,000,000 addresses need 100 MiB, twice during a replacement.
const DNSBL: u64 = 256 * MIB;
/// A TCP connection with queries and answers.
const DNSBL_CONNECTION: u64 = 96 * 1024;
/// The names of 100,000 local domains need 16 MiB, twice during a replacement.
const WEB: u64 = 64 * MIB;
/// A connection to the web server with TLS and the answer, beside the request.
const WEB_CONNECTION: u64 = 64 * 1024;
/// The certificate of a domain: a chain of 4 KiB and a key under each of three names, in use and on the wire, twice during a replacement.
const CERTIFICATE: u64 = 64 * 1024;
/// Certificates that count without any file.
const DOMAINS_MIN: usize = 100;
/// 20,000 records that wait, of 16 MiB as packets, and a request.
const OTLP: u64 = 96 * MIB;
const GATEWAY: u64 = 64 * MIB;
const STORE: u64 = 64 * MIB;
const NODE: u64 = 48 * MIB;

/// A connection waiting for a command, counted by `limits.connections_max`.
const CONNECTION: u64 = 16 * 1024;

/// A connection to a next hop, counted by `delivery.connections_max`.
const NEXT_HOP: u64 = 30 * 1024;
/// Messages in a courier: the gateway's bound.
const SENDING: u64 = 64 * MIB;

/// The gateway's entry for a waiting message, counted by `limits.queued_messages_max`.
const QUEUED: u64 = 75;

/// The mail store's caches of messages and of the text index.
const STORE_CACHES: u64 = 192 * MIB;

/// Number of busy parser processes, and the memory of a parser beside the message.
const PARSERS: u64 = 4;
const PARSER: u64 = 32 * MIB;

/// Part of the sum added by the drop-in for systemd: the kernel also counts the memory of sockets and of unwritten
/// pages.
const ROOM_DIVISOR: u64 = 5;

const MIB: u64 = 1 << 20;

/// A purpose for which a role uses memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryPart {
    /// The setting that limits the memory; empty without a setting.
    pub setting: &'static str,
    /// The purpose in words.
    pub what: &'static str,
    /// The maximum.
    pub max: ByteSize,
}

/// A process on this machine, with the permitted memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleMemory {
    /// The name of the process in the log: `gateway`, `store`, `spool-a`.
    pub role: String,
    /// The parts of the memory.
    pub parts: Vec<MemoryPart>,
}

impl RoleMemory {
    /// All parts together.
    #[must_use]
    pub fn max(&self) -> ByteSize {
        let octets = self.parts.iter().map(|part| part.max.as_u64());
        ByteSize::new(octets.fold(0, u64::saturating_add))
    }
}

/// The memory that all roles on this machine may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryBounds {
    /// The roles, in start order.
    pub roles: Vec<RoleMemory>,
}

impl MemoryBounds {
    /// All roles together.
    #[must_use]
    pub fn max(&self) -> ByteSize {
        let octets = self.roles.iter().map(|role| role.max().as_u64());
        ByteSize::new(octets.fold(0, u64::saturating_add))
    }

    /// The sum and a fifth more, in whole MiB: a suitable limit of the operating system.
    #[must_use]
    pub fn limit(&self) -> ByteSize {
        let sum = self.max().as_u64();
        let octets = sum.saturating_add(sum / ROOM_DIVISOR);
        ByteSize::mib(octets.div_ceil(MIB))
    }
}

pub(super) fn supervisor() -> Vec<MemoryPart> {
    vec![program(SUPERVISOR)]
}

pub(super) fn otlp(_: &Settings) -> Vec<MemoryPart> {
    vec![program(OTLP)]
}

pub(super) fn signer(settings: &Settings) -> Vec<MemoryPart> {
    let mut parts = vec![program(SIGNER)];
    parts.extend(certificates(settings));
    parts
}

/// The certificates of web names, in the signer and in each process that shows them: twice as many as there are files now, since domains
/// are added while the system runs.
fn certificates(settings: &Settings) -> Option<MemoryPart> {
    settings.web.as_ref()?;
    let most = web_names::FILES_MAX;
    let files = web_names::count(settings).saturating_mul(2);
    let files = files.clamp(DOMAINS_MIN, most);
    let files = u64::try_from(files).unwrap_or(u64::MAX);
    let octets = files.saturating_mul(CERTIFICATE);
    Some(part("web.https", "certificates of web names", octets))
}

pub(super) fn broker(settings: &Settings) -> Vec<MemoryPart> {
    let mut parts = vec![program(BROKER)];
    if settings.routes.iter().any(|route| route.call_ahead) {
        parts.push(part("route.call_ahead", "questions to next hops", CALLS));
    }
    parts
}

/// A courier with a share of the connections.
pub(super) fn courier(settings: &Settings) -> Vec<MemoryPart> {
    let delivery = &settings.delivery;
    let processes = u64::from(delivery.courier_processes.max(1));
    let connections = u64::from(delivery.connections_max).div_ceil(processes);
    vec![
        program(COURIER),
        part("", "messages that are sent", SENDING),
        part(
            "delivery.connections_max",
            "connections to next hops",
            connections.saturating_mul(NEXT_HOP),
        ),
    ]
}

pub(super) fn node(settings: &Settings) -> Vec<MemoryPart> {
    vec![
        program(NODE),
        part(
            "spool.memory_max",
            "messages that wait",
            settings.spool.memory_max.as_u64(),
        ),
    ]
}

pub(super) fn store(settings: &Settings) -> Vec<MemoryPart> {
    let limits = &settings.limits;
    let body = limits.body_memory_max.as_u64();
    vec![
        program(STORE),
        part("", "caches of messages and the text index", STORE_CACHES),
        part("", "processes that take messages apart", PARSERS * PARSER),
        part("limits.body_memory_max", "messages that arrive", body),
        part(
            "limits.body_memory_max",
            "messages that are delivered",
            body,
        ),
        part(
            "limits.fetch_memory_max",
            "messages that clients fetch",
            limits.fetch_memory_max.as_u64(),
        ),
        connections(limits),
    ]
}

/// The keeper and the workers, with a common bound of arriving messages.
pub(super) fn workers(settings: &Settings) -> Vec<MemoryPart> {
    let front = settings.front.as_ref();
    let (workers, each) = front.map_or((0, 0), |front| (front.workers, front.sessions_at_once));
    let sessions = workers
        .saturating_mul(each)
        .min(settings.limits.connections_max);
    let body = settings.limits.body_memory_max.as_u64();
    vec![
        program(KEEPER),
        part(
            "front.workers",
            "the programs of the workers",
            u64::from(workers).saturating_mul(WORKER),
        ),
        part(
            "limits.connections_max",
            "sessions of the workers",
            u64::from(sessions).saturating_mul(CONNECTION),
        ),
        part("limits.body_memory_max", "messages that arrive", body),
    ]
}

pub(super) fn front(settings: &Settings) -> Vec<MemoryPart> {
    let mut parts = vec![program(FRONT), connections(&settings.limits)];
    parts.extend(certificates(settings));
    parts
}

pub(super) fn dnsbl(settings: &Settings) -> Vec<MemoryPart> {
    let Some(dnsbl) = settings.dnsbl.as_ref() else {
        return Vec::new();
    };
    vec![
        program(DNSBL),
        part(
            "dnsbl.connections_max",
            "connections",
            u64::from(dnsbl.connections_max).saturating_mul(DNSBL_CONNECTION),
        ),
    ]
}

pub(super) fn web(settings: &Settings) -> Vec<MemoryPart> {
    let Some(web) = settings.web.as_ref() else {
        return Vec::new();
    };
    let octets = web.header_size_max.as_u64() + web.body_size_max.as_u64() + WEB_CONNECTION;
    let listeners = u64::from(!web.https.is_empty()) + u64::from(!web.http.is_empty());
    let connections = u64::from(web.connections_max) * listeners;
    let mut parts = vec![
        program(WEB),
        part(
            "web.connections_max",
            "connections",
            connections.saturating_mul(octets),
        ),
    ];
    parts.extend(certificates(settings));
    parts
}

pub(super) fn x400(settings: &Settings) -> Vec<MemoryPart> {
    let Some(x400) = settings.x400.as_ref() else {
        return Vec::new();
    };
    let limits = &settings.limits;
    vec![
        program(GATEWAY),
        part(
            "limits.body_memory_max",
            "messages that arrive",
            limits.body_memory_max.as_u64(),
        ),
        part(
            "limits.queue_memory_max",
            "messages that leave next",
            limits.queue_memory_max.as_u64(),
        ),
        part(
            "limits.queued_messages_max",
            "entries of messages that wait",
            limits.queued_messages_max.saturating_mul(QUEUED),
        ),
        part(
            "x400.connections_max",
            "connections",
            u64::from(x400.connections_max).saturating_mul(CONNECTION),
        ),
    ]
}

pub(super) fn gateway(settings: &Settings) -> Vec<MemoryPart> {
    let limits = &settings.limits;
    let body = limits.body_memory_max.as_u64();
    let mut parts = vec![
        program(GATEWAY),
        part("limits.body_memory_max", "messages that arrive", body),
        part(
            "limits.queue_memory_max",
            "messages that leave next",
            limits.queue_memory_max.as_u64(),
        ),
        part(
            "limits.queued_messages_max",
            "entries of messages that wait",
            limits.queued_messages_max.saturating_mul(QUEUED),
        ),
        connections(limits),
    ];
    let changes = |filter: &FilterSettings| filter.kind != FilterKind::Clamd;
    if settings.filters.iter().any(changes) {
        // Filters are asked about half of the messages' memory at once: a new body, and the message with it.
        parts.push(part(
            "limits.body_memory_max",
            "messages that filters change",
            body,
        ));
    }
    parts
}

fn part(setting: &'static str, what: &'static str, octets: u64) -> MemoryPart {
    let max = ByteSize::new(octets);
    MemoryPart { setting, what, max }
}

fn program(octets: u64) -> MemoryPart {
    part("", "the program", octets)
}

fn connections(limits: &Limits) -> MemoryPart {
    let octets = u64::from(limits.connections_max) * CONNECTION;
    part("limits.connections_max", "connections", octets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::memory_bounds;

    fn bounds(rest: &str) -> MemoryBounds {
        let text = format!("version = 1\nhostname = \"mx.example.org\"\n{rest}");
        memory_bounds(&Settings::parse(&text, "/etc/vere/vere.toml").unwrap())
    }

    fn names(bounds: &MemoryBounds) -> Vec<&str> {
        bounds.roles.iter().map(|role| role.role.as_str()).collect()
    }

    #[test]
    fn roles_elsewhere_take_nothing_here() {
        let all = bounds(
            "[dkim]\n[imaps]\nlisten = [\"127.0.0.1:993\"]\n[tls]\ncertificate = \"c\"\nkey = \"k\"\n",
        );
        let expected = [
            "supervisor",
            "spool-a",
            "spool-b",
            "signer",
            "store",
            "gateway",
        ];
        assert_eq!(names(&all), expected);
        let few = bounds(
            "[delivery]\nlocal = \"maildir\"\n[lmtp]\nlisten = []\n\
             [[spool.node]]\nname = \"n\"\nlisten = \"192.0.2.1:2600\"\nruns = \"elsewhere\"\n",
        );
        assert_eq!(names(&few), ["supervisor", "gateway"]);
    }

    #[test]
    fn a_setting_raises_the_sum_by_what_it_allows() {
        let before = bounds("").max().as_u64();
        let after = bounds("[limits]\nbody_memory_max = \"257 MiB\"\n");
        // The gateway, the clients of the store and deliveries to it each.
        assert_eq!(after.max().as_u64() - before, 3 * MIB);
        let filter = |kind: &str| {
            let text =
                format!("[[filter]]\nname = \"f\"\nkind = \"{kind}\"\naddress = \"[::1]:1\"\n");
            bounds(&text).max().as_u64() - before
        };
        assert_eq!((filter("clamd"), filter("milter")), (0, 256 * MIB));
        let after = bounds("[spool]\nmemory_max = \"2 GiB\"\n");
        assert_eq!(after.max().as_u64() - before, 2 * 1024 * MIB);
        assert_eq!(
            bounds("[limits]\nconnections_max = 20001\n").max().as_u64() - before,
            2 * CONNECTION
        );
    }

    #[test]
    fn the_limit_of_the_operating_system_is_a_fifth_above_in_whole_mebibytes() {
        let bounds = bounds("");
        let (sum, limit) = (bounds.max().as_u64(), bounds.limit().as_u64());
        assert_eq!(limit % MIB, 0);
        assert!(limit * 5 >= sum * 6 && limit - sum - sum / 5 < MIB);
    }
}
