//! The direction of dependencies: a crate uses only layers below its own.

use std::path::Path;

use crate::finding::{Finding, Outcome};
use crate::workspace::{Package, Workspace};

/// A layer: a folder, the folders its crates may use, and whether its crates may touch the outside.
struct Layer {
    folder: &'static str,
    may_use: &'static [&'static [&'static str]],
    touches_outside: bool,
}

impl Layer {
    fn may_use(&self, other: &Self) -> bool {
        self.folders().any(|folder| folder == other.folder)
    }

    fn folders(&self) -> impl Iterator<Item = &'static str> {
        self.may_use.iter().flat_map(|group| group.iter().copied())
    }
}

const fn inner(folder: &'static str, may_use: &'static [&'static [&'static str]]) -> Layer {
    Layer {
        folder,
        may_use,
        touches_outside: false,
    }
}

const fn outer(folder: &'static str, may_use: &'static [&'static [&'static str]]) -> Layer {
    Layer {
        folder,
        may_use,
        touches_outside: true,
    }
}

const BASE: &[&str] = &["crates/base"];
/// Protocols that are parts of other protocols: authentication, the form of messages, the encoding of the OSI protocols.
const SHARED: &[&str] = &["crates/proto/sasl", "crates/proto/mime", "crates/proto/ber"];
const PROTOCOLS: &[&str] = &["crates/proto"];
const ENGINES: &[&str] = &[
    "crates/engine",
    "crates/engine/delivery",
    "crates/engine/dnsbl",
    "crates/engine/mailfs",
    "crates/engine/promotion",
    "crates/engine/queue",
    "crates/engine/recovery",
];
const HOSTS: &[&str] = &[
    "crates/host/auth",
    "crates/host/dkim",
    "crates/host/http",
    "crates/host/spf",
    "crates/host",
];
const PROCESS: &[&str] = &["crates/part/process"];
/// Connections of MTAs of X.400, which the benchmark has too.
const ASSOCIATIONS: &[&str] = &["crates/part/associations"];
/// Parts of which groups of queues consist.
const OF_GROUPS: &[&str] = &[
    "crates/part/control",
    "crates/part/link",
    "crates/part/meters",
];
const PARTS: &[&str] = &[
    "crates/part",
    "crates/part/associations",
    "crates/part/enrolment",
    "crates/part/filters",
    "crates/part/groups",
    "crates/part/switch",
];
const ROLES: &[&str] = &["crates/role"];

/// base <- proto <- engine <- part <- role <- app, and base <- host <- part. Protocols and engines do not know each
/// other, so that each can be read, tested and simulated alone. A role is one process and does not know other roles.
/// The first line that fits the folder of a crate counts.
const LAYERS: &[Layer] = &[
    inner("crates/base", &[BASE]),
    inner("crates/proto/sasl", &[BASE]),
    inner("crates/proto/mime", &[BASE]),
    inner("crates/proto/ber", &[BASE]),
    inner("crates/proto", &[BASE, SHARED]),
    // Deliveries carry out what the queues decide.
    inner(
        "crates/engine/delivery",
        &[BASE, SHARED, PROTOCOLS, &["crates/engine/queue"]],
    ),
    inner("crates/engine/dnsbl", &[BASE, SHARED, PROTOCOLS]),
    inner("crates/engine/files", &[BASE, SHARED, PROTOCOLS]),
    inner(
        "crates/engine/placement",
        &[BASE, SHARED, PROTOCOLS, &["crates/engine/files"]],
    ),
    inner(
        "crates/engine/sealing",
        &[BASE, SHARED, PROTOCOLS, &["crates/engine/keep"]],
    ),
    inner(
        "crates/engine/inventory",
        &[
            BASE,
            SHARED,
            PROTOCOLS,
            &[
                "crates/engine/files",
                "crates/engine/pending",
                "crates/engine/placement",
                "crates/engine/sealing",
            ],
        ],
    ),
    inner(
        "crates/engine/keep",
        &[BASE, SHARED, PROTOCOLS, &["crates/engine/files"]],
    ),
    inner(
        "crates/engine/order",
        &[
            BASE,
            SHARED,
            PROTOCOLS,
            &["crates/engine/keep", "crates/engine/placement"],
        ],
    ),
    inner(
        "crates/engine/replay",
        &[
            BASE,
            SHARED,
            PROTOCOLS,
            &[
                "crates/engine/files",
                "crates/engine/keep",
                "crates/engine/order",
            ],
        ],
    ),
    // What waits is told in commits, chunks and pages.
    inner(
        "crates/engine/pending",
        &[
            BASE,
            SHARED,
            PROTOCOLS,
            &[
                "crates/engine/files",
                "crates/engine/keep",
                "crates/engine/sealing",
            ],
        ],
    ),
    // An opening reads journal, log and pages, and leaves what a mount holds.
    inner(
        "crates/engine/opening",
        &[
            BASE,
            SHARED,
            PROTOCOLS,
            &[
                "crates/engine/files",
                "crates/engine/keep",
                "crates/engine/order",
                "crates/engine/pending",
                "crates/engine/placement",
                "crates/engine/replay",
                "crates/engine/sealing",
            ],
        ],
    ),
    // A promotion gives another account what a lead has.
    inner(
        "crates/engine/promotion",
        &[
            BASE,
            SHARED,
            PROTOCOLS,
            &[
                "crates/engine/opening",
                "crates/engine/order",
                "crates/engine/placement",
                "crates/engine/sealing",
            ],
        ],
    ),
    // A volume brings files to accounts and back, and keeps octets on the local disk.
    inner(
        "crates/engine/mailfs",
        &[
            BASE,
            SHARED,
            PROTOCOLS,
            &[
                "crates/engine/files",
                "crates/engine/inventory",
                "crates/engine/keep",
                "crates/engine/opening",
                "crates/engine/order",
                "crates/engine/pending",
                "crates/engine/placement",
                "crates/engine/replay",
                "crates/engine/sealing",
            ],
        ],
    ),
    inner("crates/engine/queue", &[BASE, SHARED, PROTOCOLS]),
    // A recovery finds the keys and facts of a volume.
    inner(
        "crates/engine/recovery",
        &[BASE, SHARED, PROTOCOLS, &["crates/engine/mailfs"]],
    ),
    inner("crates/engine", &[BASE, SHARED, PROTOCOLS]),
    // A signature covers the header that its readers find.
    outer("crates/host/dkim", &[BASE, SHARED]),
    // DMARC needs the results of SPF.
    outer("crates/host/auth", &[BASE, SHARED, &["crates/host/spf"]]),
    outer("crates/host/spf", &[BASE]),
    // Registers, sinks and authorities are reached by one client; metrics and challenges have one server.
    outer("crates/host/http", &[BASE]),
    outer("crates/host", &[BASE, &["crates/host/http"]]),
    outer(
        "crates/part/process",
        &[BASE, SHARED, PROTOCOLS, ENGINES, HOSTS],
    ),
    outer(
        "crates/part/associations",
        &[BASE, SHARED, PROTOCOLS, ENGINES, HOSTS],
    ),
    // A layer of its own, so that the fuzz targets may run the reader of answers of rspamd.
    outer(
        "crates/part/filters",
        &[BASE, SHARED, PROTOCOLS, ENGINES, HOSTS],
    ),
    // A layer of its own, so that the fuzz targets may run the readers of tokens and messages.
    outer(
        "crates/part/enrolment",
        &[BASE, SHARED, PROTOCOLS, ENGINES, HOSTS, PROCESS],
    ),
    outer(
        "crates/part/control",
        &[BASE, SHARED, PROTOCOLS, ENGINES, HOSTS, PROCESS],
    ),
    outer(
        "crates/part/link",
        &[BASE, SHARED, PROTOCOLS, ENGINES, HOSTS, PROCESS],
    ),
    outer(
        "crates/part/meters",
        &[BASE, SHARED, PROTOCOLS, ENGINES, HOSTS, PROCESS],
    ),
    // The settings of a peer say how associations with it are opened.
    outer(
        "crates/part/switch",
        &[
            BASE,
            SHARED,
            PROTOCOLS,
            ENGINES,
            HOSTS,
            PROCESS,
            ASSOCIATIONS,
        ],
    ),
    // Groups of queues are reached by links, end by limits, and answer commands.
    outer(
        "crates/part/groups",
        &[BASE, SHARED, PROTOCOLS, ENGINES, HOSTS, PROCESS, OF_GROUPS],
    ),
    outer(
        "crates/part",
        &[
            BASE,
            SHARED,
            PROTOCOLS,
            ENGINES,
            HOSTS,
            PROCESS,
            ASSOCIATIONS,
        ],
    ),
    outer(
        "crates/role",
        &[
            BASE, SHARED, PROTOCOLS, ENGINES, HOSTS, PROCESS, OF_GROUPS, PARTS,
        ],
    ),
    outer(
        "crates/app",
        &[
            BASE,
            SHARED,
            PROTOCOLS,
            ENGINES,
            HOSTS,
            PROCESS,
            OF_GROUPS,
            PARTS,
            ROLES,
            &["crates/app"],
        ],
    ),
    outer(
        "crates/check/targets",
        &[
            BASE,
            SHARED,
            PROTOCOLS,
            ENGINES,
            HOSTS,
            &[
                "crates/check",
                "crates/part/enrolment",
                "crates/part/filters",
                "crates/engine/keep",
            ],
        ],
    ),
    // The simulator runs associations over connections in memory.
    outer(
        "crates/check/sim",
        &[
            BASE,
            SHARED,
            PROTOCOLS,
            ENGINES,
            HOSTS,
            ASSOCIATIONS,
            &["crates/part/switch"],
        ],
    ),
    outer(
        "crates/check",
        &[BASE, SHARED, PROTOCOLS, ENGINES, HOSTS, &["crates/check"]],
    ),
    // The cache of block lists is measured without the network, with the times of a trace. Mail to be judged is signed before.
    outer(
        "bench",
        &[
            BASE,
            SHARED,
            PROTOCOLS,
            &["crates/engine/dnsbl", "crates/host/dkim"],
            // Sources and sinks of X.400 are MTAs.
            ASSOCIATIONS,
        ],
    ),
    outer("xtask", &[]),
];

/// Libraries that touch sockets, files, threads or the kernel: not below the hosts, tests excepted.
pub(crate) const OUTSIDE: &[&str] = &[
    "command-fds",
    "hickory-net",
    "hickory-resolver",
    "hyper-util",
    "instant-acme",
    "listenfd",
    "mio",
    "nix",
    "rusqlite",
    "rustix",
    "rustls",
    "sd-notify",
    "socket2",
    "tempfile",
    "tokio",
    "tokio-rustls",
];

/// Compares the graph of the workspace with the table.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let mut findings = Vec::new();
    for package in &workspace.packages {
        match layer_of(&package.folder) {
            Some(layer) => findings.extend(edges(package, layer, workspace)),
            None => findings.push(Finding::new(
                package.folder.join("Cargo.toml"),
                0,
                "lies in no layer; the layers are in xtask/src/layers.rs",
            )),
        }
    }
    findings.into()
}

/// Whether crates of a folder may use libraries of [`OUTSIDE`]; a folder in no layer may.
pub(crate) fn touches_outside(folder: &Path) -> bool {
    layer_of(folder).is_none_or(|layer| layer.touches_outside)
}

fn layer_of(folder: &Path) -> Option<&'static Layer> {
    LAYERS.iter().find(|layer| folder.starts_with(layer.folder))
}

fn edges(package: &Package, layer: &Layer, workspace: &Workspace) -> Vec<Finding> {
    let manifest = package.folder.join("Cargo.toml");
    let text = workspace.text(&manifest);
    let mut findings = Vec::new();
    for dependency in &package.dependencies {
        let own = workspace
            .packages
            .iter()
            .find(|other| other.name == dependency.name);
        let wrong = match own.map(|other| (other, layer_of(&other.folder))) {
            // Tests of any layer may run scripts, simulations and generators of load; tests of a part
            // may run the role at the other end, tests of an engine the engine there, tests of signatures the verifier,
            // and tests of P1 the associations that carry P1.
            Some((other, _)) if dependency.dev && is_for_tests(&package.folder, &other.folder) => {
                None
            }
            Some((_, Some(target))) if layer.may_use(target) => None,
            Some((other, _)) => Some(format!(
                "{} ({}) must not use {} ({}); it may use: {}",
                package.name,
                layer.folder,
                other.name,
                other.folder.display(),
                layer.folders().collect::<Vec<_>>().join(", ")
            )),
            None if !layer.touches_outside
                && !dependency.dev
                && OUTSIDE.contains(&dependency.name.as_str()) =>
            {
                Some(format!(
                    "{} ({}) must not use {}: only hosts touch the outside; ask through a trait in \
                     crates/base/ports",
                    package.name, layer.folder, dependency.name
                ))
            }
            None => None,
        };
        findings
            .extend(wrong.map(|what| Finding::new(&manifest, line(&text, &dependency.name), what)));
    }
    findings
}

fn is_for_tests(user: &Path, used: &Path) -> bool {
    used.starts_with("crates/check")
        || used.starts_with("bench")
        || user.starts_with("crates/part") && used.starts_with("crates/role")
        || user.starts_with("crates/engine") && used.starts_with("crates/engine")
        || user == Path::new("crates/host/dkim") && used == Path::new("crates/host/auth")
        || user == Path::new("crates/proto/x400") && used == Path::new("crates/proto/osi")
}

/// The line of a manifest that names a dependency.
fn line(manifest: &str, name: &str) -> usize {
    let names = |line: &str| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
    };
    manifest
        .lines()
        .position(names)
        .map_or(0, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::{made_of, package};

    fn findings(packages: Vec<Package>) -> Vec<String> {
        let manifest = "[package]\n[dependencies]\nvere-net.workspace = true\n";
        let (_folder, mut workspace) = made_of(&[("crates/proto/smtp/Cargo.toml", manifest)]);
        workspace.packages = packages;
        match check(&workspace) {
            Outcome::Failed(findings) => findings.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn a_protocol_must_not_use_a_host() {
        let found = findings(vec![
            package("crates/proto/smtp", "vere-smtp", &["vere-net"]),
            package("crates/host/net", "vere-net", &["tokio"]),
        ]);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("crates/proto/smtp/Cargo.toml:3: vere-smtp"),
            "{found:?}"
        );
    }

    #[test]
    fn an_engine_must_not_use_a_runtime_save_in_tests() {
        let mut engine = package("crates/engine/queue", "vere-queue", &["tokio"]);
        assert_eq!(findings(vec![engine.clone()]).len(), 1);
        engine.dependencies[0].dev = true;
        assert_eq!(findings(vec![engine]), Vec::<String>::new());
    }

    #[test]
    fn the_program_must_not_link_the_benchmarks_save_in_tests() {
        let bench = package("bench", "vere-bench", &["mio"]);
        let mut app = package("crates/app/vere", "vere", &["vere-bench"]);
        let found = findings(vec![app.clone(), bench.clone()]);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("must not use vere-bench"), "{found:?}");
        app.dependencies[0].dev = true;
        assert_eq!(findings(vec![app, bench]), Vec::<String>::new());
    }

    #[test]
    fn a_crate_outside_the_layers_is_found() {
        assert_eq!(
            findings(vec![package("crates/util/misc", "vere-misc", &[])]).len(),
            1
        );
    }

    #[test]
    fn a_role_must_not_use_a_role_nor_a_part_a_role_save_in_tests() {
        let mut part = package("crates/part/link", "vere-link", &["vere-role-node"]);
        let node = package("crates/role/node", "vere-role-node", &["vere-process"]);
        let process = package("crates/part/process", "vere-process", &[]);
        let store = package("crates/role/store", "vere-store-role", &["vere-role-node"]);
        let all = vec![part.clone(), node.clone(), process.clone(), store];
        assert_eq!(findings(all).len(), 2);
        part.dependencies[0].dev = true;
        assert_eq!(findings(vec![part, node, process]), Vec::<String>::new());
    }

    #[test]
    fn the_app_may_use_all_below() {
        let found = findings(vec![
            package(
                "crates/app/vere",
                "vere",
                &["vere-net", "vere-smtp", "tokio"],
            ),
            package("crates/proto/smtp", "vere-smtp", &["memchr"]),
            package("crates/host/net", "vere-net", &[]),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }
}
