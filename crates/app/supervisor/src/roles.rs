//! The table of roles; `docs/internals/adding-a-role.md` describes a new row.

use vere_settings::{Dnsbl, Settings, SpoolNode, Web, X400};

use crate::memory::{self, MemoryBounds, RoleMemory};
use crate::spec::{Address, End, Instance, RoleSpec, Socket};

/// Permissions of a socket that every user of the machine may connect to.
const FOR_EVERYBODY: u32 = 0o666;

/// The role that sends the log to a collector.
pub(super) const OTLP: &str = "otlp";
/// The name of its socket, by which the log arrives.
pub(super) const LOG: &str = "log";

/// Every role of the program. Among roles that do not wait for each other the order of the rows decides.
pub static ROLES: &[RoleSpec] = &[
    RoleSpec {
        // Started first and stopped last, so that it has the last lines of the others.
        name: OTLP,
        about: "The process that sends the log to a collector",
        after: &[],
        option: None,
        section: Some("log"),
        instances: otlp,
        memory: memory::otlp,
    },
    RoleSpec {
        name: "spool",
        about: "A spool node",
        after: &[],
        option: Some("node"),
        section: Some("spool"),
        instances: nodes,
        memory: memory::node,
    },
    RoleSpec {
        name: "signer",
        about: "The signer",
        after: &[],
        option: None,
        section: Some("dkim"),
        instances: signer,
        memory: memory::signer,
    },
    RoleSpec {
        name: "store",
        about: "The mail store",
        after: &[],
        option: None,
        section: Some("store"),
        instances: store,
        memory: memory::store,
    },
    RoleSpec {
        name: "parser",
        about: "A process of the mail store that takes messages apart; started by it",
        after: &[],
        option: None,
        section: None,
        // The store starts its parsers, and counts their memory.
        instances: |_| Vec::new(),
        memory: |_| Vec::new(),
    },
    RoleSpec {
        name: "broker",
        about: "The broker, which answers the front's questions about recipients",
        after: &[],
        option: None,
        section: Some("front"),
        instances: beside_front,
        memory: memory::broker,
    },
    RoleSpec {
        name: "courier",
        about: "A courier, which sends the gateway's messages to next hops",
        after: &[],
        option: Some("number"),
        section: Some("delivery"),
        instances: couriers,
        memory: memory::courier,
    },
    RoleSpec {
        name: "gateway",
        about: "The gateway",
        after: &["spool", "signer", "store", "courier"],
        option: None,
        section: Some("gateway"),
        instances: gateway,
        memory: memory::gateway,
    },
    RoleSpec {
        name: "workers",
        about: "The keeper of the front's workers",
        after: &["broker", "gateway"],
        option: None,
        section: Some("front"),
        instances: beside_front,
        memory: memory::workers,
    },
    RoleSpec {
        name: "worker",
        about: "A process that receives messages; started by the keeper of the workers",
        after: &["workers"],
        option: None,
        section: None,
        // The keeper starts its workers, and counts their memory.
        instances: |_| Vec::new(),
        memory: |_| Vec::new(),
    },
    RoleSpec {
        name: "front",
        about: "The front, which answers at port 25 until a client is trusted",
        after: &["workers", "signer"],
        option: None,
        section: Some("front"),
        instances: front,
        memory: memory::front,
    },
    RoleSpec {
        name: "dnsbl",
        about: "The server of block lists",
        after: &[],
        option: None,
        section: Some("dnsbl"),
        instances: dnsbl,
        memory: memory::dnsbl,
    },
    RoleSpec {
        name: "web",
        about: "The web server for mail programs and other systems",
        after: &["signer"],
        option: None,
        section: Some("web"),
        instances: web,
        memory: memory::web,
    },
    RoleSpec {
        name: "x400",
        about: "The MTA of X.400",
        after: &["spool", "store"],
        option: None,
        section: Some("x400"),
        instances: x400,
        memory: memory::x400,
    },
];

/// The role of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static RoleSpec> {
    ROLES.iter().find(|spec| spec.name == name)
}

/// The roles in start order: each behind all roles of its `after`, otherwise as in the table.
#[must_use]
pub fn in_start_order() -> Vec<&'static RoleSpec> {
    let mut order: Vec<&'static RoleSpec> = Vec::with_capacity(ROLES.len());
    let mut waiting: Vec<&'static RoleSpec> = ROLES.iter().collect();
    let started = |order: &[&RoleSpec], name: &str| order.iter().any(|spec| spec.name == name);
    // A test excludes circles, which would end the loop early.
    while let Some(next) = waiting
        .iter()
        .position(|spec| spec.after.iter().all(|name| started(&order, name)))
    {
        order.push(waiting.remove(next));
    }
    order
}

/// The processes that the supervisor may start on this machine, in start order.
pub(super) fn instances(
    settings: &Settings,
) -> impl Iterator<Item = (&'static RoleSpec, Instance)> {
    in_start_order().into_iter().flat_map(move |spec| {
        let instances = (spec.instances)(settings).into_iter();
        instances.map(move |instance| (spec, instance))
    })
}

/// The sockets that the supervisor binds for these settings, each with the section of its address.
pub fn listening(settings: &Settings) -> impl Iterator<Item = (String, Address)> {
    let configured = instances(settings).filter(|(_, instance)| instance.is_configured());
    configured.flat_map(|(_, instance)| {
        let sockets = instance.sockets.into_iter();
        sockets.map(|socket| (socket.section, socket.address))
    })
}

/// The memory that the supervisor and the roles of these settings may use on this machine.
#[must_use]
pub fn memory_bounds(settings: &Settings) -> MemoryBounds {
    let supervisor = RoleMemory {
        role: "supervisor".to_owned(),
        parts: memory::supervisor(),
    };
    let configured = instances(settings).filter(|(_, instance)| instance.is_configured());
    let roles = configured.map(|(spec, instance)| RoleMemory {
        role: spec.process(instance.name.as_deref()),
        parts: (spec.memory)(settings),
    });
    MemoryBounds {
        roles: std::iter::once(supervisor).chain(roles).collect(),
    }
}

/// The section of the log and of systemd's sockets that belongs to a spool node.
#[must_use]
pub fn node_section(node: &str) -> String {
    format!("spool-{node}")
}

/// The nodes on this machine. A node calls its sockets `spool`; systemd calls them `spool-NAME`.
fn nodes(settings: &Settings) -> Vec<Instance> {
    let here = settings.spool.nodes.iter().filter(|node| !node.remote);
    let instance = |node: &SpoolNode| Instance {
        name: Some(node.name.clone()),
        sockets: vec![Socket {
            section: node_section(&node.name),
            name: "spool",
            address: Address::Internet(node.addresses().collect()),
            beside: false,
        }],
        directory: Some(node.data.clone()),
        ..Instance::default()
    };
    here.map(instance).collect()
}

fn otlp(settings: &Settings) -> Vec<Instance> {
    let instance = |_| Instance {
        sockets: vec![
            Socket::internet("metrics-otlp", settings.metrics.otlp.as_slice()),
            Socket {
                section: LOG.to_owned(),
                name: LOG,
                address: Address::Channel(End::Answering),
                beside: false,
            },
        ],
        ..Instance::default()
    };
    settings.log.otlp.iter().map(instance).collect()
}

fn signer(settings: &Settings) -> Vec<Instance> {
    let has_https = settings
        .web
        .as_ref()
        .is_some_and(|web| !web.https.is_empty());
    let needed = settings.dkim.is_some() || settings.front.is_some() || has_https;
    let sockets = has_https.then(|| questions(End::Answering));
    let instance = Instance {
        sockets: sockets.into_iter().collect(),
        ..Instance::default()
    };
    needed.then_some(instance).into_iter().collect()
}

/// The questions of the web server to the signer. The web server may connect to nothing.
fn questions(end: End) -> Socket {
    Socket {
        section: "web-signer".to_owned(),
        name: "web-signer",
        address: Address::Channel(end),
        beside: false,
    }
}

fn couriers(settings: &Settings) -> Vec<Instance> {
    let instance = |number: u32| Instance {
        name: Some(number.to_string()),
        ..Instance::default()
    };
    (1..=settings.delivery.courier_processes)
        .map(instance)
        .collect()
}

/// A process that runs where there is a front.
fn beside_front(settings: &Settings) -> Vec<Instance> {
    let front = settings.front.as_ref();
    front.map(|_| Instance::default()).into_iter().collect()
}

fn front(settings: &Settings) -> Vec<Instance> {
    let front = settings.front.as_ref();
    let instance = |_| Instance {
        sockets: vec![
            smtp(settings),
            Socket::internet("metrics-front", settings.metrics.front.as_slice()),
        ],
        ..Instance::default()
    };
    front.map(instance).into_iter().collect()
}

/// The threads of the server have a socket each at every address.
fn dnsbl(settings: &Settings) -> Vec<Instance> {
    let instance = |dnsbl: &Dnsbl| Instance {
        sockets: vec![
            Socket {
                section: "dnsbl-udp".to_owned(),
                name: "dnsbl-udp",
                address: Address::Datagrams {
                    addresses: dnsbl.listen.clone(),
                    each: vere_net::datagrams::threads(dnsbl.threads),
                },
                beside: false,
            },
            Socket::internet("dnsbl", &dnsbl.listen),
            Socket::internet("metrics-dnsbl", settings.metrics.dnsbl.as_slice()),
        ],
        ..Instance::default()
    };
    settings.dnsbl.as_ref().map(instance).into_iter().collect()
}

fn web(settings: &Settings) -> Vec<Instance> {
    let instance = |web: &Web| Instance {
        sockets: [
            Socket::internet("https", &web.https),
            Socket::internet("http", &web.http),
            Socket::internet("metrics-web", settings.metrics.web.as_slice()),
        ]
        .into_iter()
        .chain((!web.https.is_empty()).then(|| questions(End::Asking)))
        .collect(),
        ..Instance::default()
    };
    settings.web.as_ref().map(instance).into_iter().collect()
}

fn x400(settings: &Settings) -> Vec<Instance> {
    let instance = |x400: &X400| Instance {
        sockets: vec![
            Socket::internet("x400", &x400.listen),
            Socket::internet("x400-tls", &x400.listen_tls),
            Socket::internet("metrics-x400", settings.metrics.x400.as_slice()),
        ],
        ..Instance::default()
    };
    settings.x400.as_ref().map(instance).into_iter().collect()
}

/// Port 25: of the front where there is one, otherwise of the gateway.
fn smtp(settings: &Settings) -> Socket {
    Socket::internet("smtp", &settings.smtp.listen)
}

/// The store starts where a client or the gateway can reach it.
fn store(settings: &Settings) -> Vec<Instance> {
    let metrics = Socket {
        beside: true,
        ..Socket::internet("metrics-store", settings.metrics.store.as_slice())
    };
    vec![Instance {
        sockets: vec![
            Socket::internet("imap", &settings.imap.listen),
            Socket::internet("imaps", &settings.imaps.listen),
            Socket::internet("lmtp", &settings.lmtp.listen),
            metrics,
        ],
        needs_socket: true,
        ..Instance::default()
    }]
}

fn gateway(settings: &Settings) -> Vec<Instance> {
    let sendmail = settings.sendmail.as_ref().map(|sendmail| Socket {
        section: "sendmail".to_owned(),
        name: "sendmail",
        address: Address::Local {
            path: sendmail.socket.clone(),
            mode: FOR_EVERYBODY,
        },
        beside: false,
    });
    let acme = settings.acme.as_ref();
    let http = acme.map_or(&[][..], |acme| &acme.listen);
    let tls = acme.map_or(&[][..], |acme| &acme.tls_listen);
    let port_25 = settings.front.is_none().then(|| smtp(settings));
    let internet = [
        Socket::internet("submission", &settings.submission.listen),
        Socket::internet("submissions", &settings.submissions.listen),
        Socket::internet("acme", http),
        Socket::internet("acme-tls", tls),
        Socket::internet("metrics", settings.metrics.listen.as_slice()),
    ];
    vec![Instance {
        sockets: sendmail
            .into_iter()
            .chain(port_25)
            .chain(internet)
            .collect(),
        ..Instance::default()
    }]
}

#[cfg(test)]
mod tests;
