//! Options for several gateways, for storage, and for the system itself.

use super::row::Fallback::{Is, Nothing, Required};
use super::row::{DAY, GIB, MIB, MINUTE, SECOND, Section, Shape, TIB, fixed, live};
use crate::kind::Kind::{Address, Choice, Integer, Name, Names, Path, Size, Span, Urls};

/// The sections, in the order of the reference.
pub(super) static SECTIONS: &[Section] = &[
    Section {
        name: "gateway",
        shape: Shape::Always,
        text: "The gateway of this machine, among those that share nodes and register.",
        options: &[
            fixed(
                "name",
                Name,
                Is("\"gateway\""),
                "Its name, and that of the group of queues that it owns; 64 octets at most. Each gateway with the same `[cluster]` needs another one. It must not be changed while messages wait.",
            ),
            fixed(
                "adopts",
                Names,
                Is("[]"),
                "Gateways whose queues this one takes over and delivers when they are dead; `*` for all that share the register. They must have the same routes, accounts and mailboxes. Without a register on a third machine leave it empty: then `vere queue drain --here` does it by hand.",
            ),
            fixed(
                "adopt_after",
                Span(SECOND, DAY),
                Is("\"30s\""),
                "How long a gateway must have renewed nothing before it counts as dead; at least `cluster.lease` and `cluster.skew` together.",
            ),
        ],
    },
    Section {
        name: "spool",
        shape: Shape::Always,
        text: "Queue storage.",
        options: &[
            fixed(
                "durability",
                Choice(&["synced", "replicated"]),
                Is("\"synced\""),
                "When a message counts as safe and is acknowledged: `synced`, when it is in the synced log of a node; `replicated`, when it is in the memory of enough nodes, which is faster and loses what all of them lose at once.",
            ),
            fixed(
                "log",
                Choice(&["machine", "node"]),
                Is("\"machine\""),
                "Which nodes write a message to their logs, with `synced`: `machine`, one of those on the same machine, for they lose power together, while the others hold it in memory; `node`, every one, which costs a sync each and helps where their `data` folders are on disks of their own: else a power cut together with the loss of that disk loses what waits. On the same machine are those that run `here`, and those `elsewhere` under the same IP address, loopback addresses excepted.",
            ),
            fixed(
                "replicas",
                Integer(1, 16),
                Nothing("2, or 1 when there is one node only"),
                "Nodes that are to hold every message. With more nodes than that the others step in for one that is lost.",
            ),
            fixed(
                "replicas_min",
                Integer(1, 16),
                Nothing("1 with `synced`, 2 with `replicated`"),
                "Nodes that must hold a message before it is acknowledged.",
            ),
            fixed(
                "slow_after",
                Span(0, DAY),
                Is("\"30s\""),
                "A node whose answers came later than those of the others for two thirds of this time is replaced, where there are others: another one is filled first, unless `replicas_min` and two of the others hold everything anyway. With two nodes a reply waits for both, however slow. `0s`: never.",
            ),
            fixed(
                "slow_lag",
                Span(1, MINUTE),
                Is("\"5ms\""),
                "How much later than the others' its answers must come for that.",
            ),
            fixed(
                "slow_rest",
                Span(SECOND, DAY),
                Is("\"10m\""),
                "How long such a node is left alone before it may be filled again, unless there are too few without it; twice as long each time, up to 64 times.",
            ),
            fixed(
                "secret",
                Path,
                Is("\"{data}/spool.key\""),
                "File of the key shared by gateway and nodes, which proves the account `default`; made at the first start where it is absent.",
            ),
            fixed(
                "as",
                Name,
                Is("\"default\""),
                "The account as which the gateway and the commands of this machine speak to the nodes: `default`, or the name of a `[[spool.account]]`. The gateway's queues are its own.",
            ),
            fixed(
                "adopters",
                Names,
                Is("[]"),
                "Other accounts that may take this gateway's queues over. Gateways that speak as the same account may anyway.",
            ),
            fixed(
                "readers",
                Names,
                Is("[]"),
                "Other accounts that may read this gateway's queues and their figures, as `vere spool stat` does; but for queues of `[[spool.queue]]`.",
            ),
            fixed(
                "group_max",
                Size(MIB, 1024 * TIB),
                Nothing("what the nodes have room for"),
                "Octets of messages that the queues of this gateway may hold together; a message with several destinations counts for each. Beyond it the gateway answers 452. Other gateways on the same nodes keep their room.",
            ),
            fixed(
                "queues_max",
                Integer(16, 262_144),
                Is("131072"),
                "Queues that a group may have on one node, one for each destination; for those that are empty see `delivery.queue_idle`. Beyond it empty ones are ended at once, and if there are none the gateway answers 452.",
            ),
            fixed(
                "groups_max",
                Integer(1, 512),
                Is("64"),
                "Groups of queues that one node keeps: one for each gateway name there was, until `vere spool remove-group`. Where several accounts may make groups, each may have half of them.",
            ),
            fixed(
                "memory_max",
                Size(16 * MIB, 16 * TIB),
                Is("\"1 GiB\""),
                "Memory of one node for messages. What does not fit waits on disk (`spill_max`); beyond both, it refuses new messages and the gateway answers 452.",
            ),
            fixed(
                "spill_max",
                Size(0, 1024 * TIB),
                Is("\"16 GiB\""),
                "Disk of one node, in its `data` folder, for messages that do not fit into its memory; 1 GiB of the disk is left free in any case. `0` keeps everything in memory. It extends memory and nothing else: after a restart it is empty, and what is durable comes from the log.",
            ),
            fixed(
                "segment_size",
                Size(MIB, GIB),
                Is("\"4 MiB\""),
                "Octets of one segment of a log: the unit in which space is reclaimed.",
            ),
            fixed(
                "kept_max",
                Integer(0, 1000),
                Is("4"),
                "Damaged logs of which nothing says whose they were that a node keeps, as `kept-N` in its `data` folder, for somebody to look at: the newest.",
            ),
        ],
    },
    Section {
        name: "spool.tls",
        shape: Shape::Optional,
        text: "Mutual TLS (1.3) between gateways and nodes on several machines. Both sides show the certificate and ask for the other's. Changed files hold for the next connection, without a reload.",
        options: &[
            fixed(
                "certificate",
                Path,
                Required("certificate = \"/etc/vere/spool.pem\""),
                "PEM file of this machine's certificate with the chain. For a node it must name, as a DNS name, the node's `name`, or its address. With extended key usage it needs both server and client authentication.",
            ),
            fixed(
                "key",
                Path,
                Required("key = \"/etc/vere/spool.key\""),
                "PEM file of its private key.",
            ),
            fixed(
                "ca",
                Path,
                Required("ca = \"/etc/vere/spool-ca.pem\""),
                "PEM file of the authorities that the other side's certificate must come from; none of the system's counts. Whoever has a certificate of theirs may connect, so use an authority for nothing else.",
            ),
        ],
    },
    Section {
        name: "spool.account",
        shape: Shape::Repeated,
        text: "An account on the nodes beside `default`, so that gateways and those who only look need not share one key. A node knows those in its settings; a gateway needs its own only.",
        options: &[
            fixed(
                "name",
                Name,
                Required("name = \"east\""),
                "Its name; 32 octets at most.",
            ),
            fixed(
                "secret",
                Path,
                Required("secret = \"/etc/vere/east.key\""),
                "File of its key, the same on its machine and on the nodes; made at the first start where it is absent.",
            ),
            fixed(
                "groups",
                Choice(&["makes", "none"]),
                Is("\"makes\""),
                "`makes`: it may have queues of its own, as a gateway does. `none`: it may do only what others let it do.",
            ),
        ],
    },
    Section {
        name: "spool.queue",
        shape: Shape::Repeated,
        text: "Who may read one of this gateway's queues: these accounts, and nothing else of its queues unless they may otherwise; and no other account that may only read. So a billing system gets the lines of `[records]` (`@finished`, `@notices`) and no mail. Who may own the queues, as this gateway and `spool.adopters` do, sees all of them.",
        options: &[
            fixed(
                "name",
                Name,
                Required("name = \"@finished\""),
                "The queue's name: a destination as in `vere queue list`, or `@finished` or `@notices`. It need not be there yet.",
            ),
            fixed(
                "readers",
                Names,
                Required("readers = [\"billing\"]"),
                "Up to 16 accounts that the nodes know. They read with `vere spool read`, and see the queue's figures with `vere spool stat`.",
            ),
        ],
    },
    Section {
        name: "spool.node",
        shape: Shape::Repeated,
        text: "One node. Without any, two nodes named `a` and `b` run on this machine and listen on 127.0.0.1:2600 and 127.0.0.1:2601.",
        options: &[
            fixed(
                "name",
                Name,
                Required("name = \"a\""),
                "Its name, which must not be changed while it holds messages.",
            ),
            fixed(
                "listen",
                Address,
                Required("listen = \"127.0.0.1:2600\""),
                "Address and port where it listens.",
            ),
            fixed(
                "standby",
                Address,
                Nothing("no second address"),
                "A second address where it listens, on another network: the gateway keeps a connection there and changes to it within a second.",
            ),
            fixed(
                "runs",
                Choice(&["here", "elsewhere"]),
                Is("\"here\""),
                "`elsewhere`: on another machine, so that nothing is started for it here.",
            ),
            fixed(
                "tls",
                Choice(&["auto", "required", "off"]),
                Is("\"auto\""),
                "Encryption of its connections with the certificates of `[spool.tls]`: `auto`, where the address is not a loopback address and there is `[spool.tls]`; `required`, on loopback too; `off`. Gateway and node must agree.",
            ),
            fixed(
                "data",
                Path,
                Is("\"{data}/spool/{name}\""),
                "The folder of its logs.",
            ),
        ],
    },
    Section {
        name: "cluster",
        shape: Shape::Always,
        text: "Who of several gateways and nodes is responsible: the register where groups of queues keep who their members are, and the lease under which a gateway delivers.",
        options: &[
            fixed(
                "register",
                Choice(&["file", "etcd"]),
                Is("\"file\""),
                "`file` for synced files, when everything runs on one machine; `etcd` for several machines, with `[cluster.etcd]`.",
            ),
            fixed(
                "folder",
                Path,
                Is("\"{data}/register\""),
                "The folder of the files of `file`.",
            ),
            fixed(
                "lease",
                Span(3 * SECOND, 10 * MINUTE),
                Is("\"10s\""),
                "How long a gateway delivers after its last renewal. After a gateway died, its mail waits so long and `skew`.",
            ),
            fixed(
                "skew",
                Span(SECOND / 10, 10 * MINUTE),
                Is("\"2s\""),
                "What a successor waits beyond the lease: by so much the clocks of two machines may differ over a lease.",
            ),
        ],
    },
    Section {
        name: "cluster.etcd",
        shape: Shape::Optional,
        text: "The etcd cluster (3.4 or later) that keeps the register.",
        options: &[
            fixed(
                "endpoints",
                Urls("http"),
                Required("endpoints = [\"https://192.0.2.1:2379\"]"),
                "`http://HOST:PORT` or `https://HOST:PORT` of 1 to 16 members. Each is waited for 2 s.",
            ),
            fixed(
                "prefix",
                Name,
                Is("\"vere\""),
                "What etcd's keys begin with, before `/group/...`. Two mail systems in one etcd need two prefixes.",
            ),
            fixed(
                "ca",
                Path,
                Nothing("the system's roots"),
                "PEM file of the authorities that the members' certificates are checked against.",
            ),
            fixed(
                "certificate",
                Path,
                Nothing("none is shown"),
                "PEM file of the certificate that is shown to members which want one.",
            ),
            fixed("key", Path, Nothing("none"), "PEM file of its private key."),
            fixed(
                "user",
                Name,
                Nothing("no authentication"),
                "Whom to authenticate as. Needs https, unless the endpoint is a loopback address.",
            ),
            fixed(
                "password_file",
                Path,
                Nothing("no authentication"),
                "File with the password for it in its first line. Keep it unreadable for others.",
            ),
        ],
    },
    Section {
        name: "metrics",
        shape: Shape::Always,
        text: "Figures for monitoring, in OpenMetrics over HTTP.",
        options: &[
            fixed(
                "listen",
                Address,
                Nothing("no endpoint"),
                "Address and port, such as `127.0.0.1:2080`. There is no authentication: keep it on loopback or a management network.",
            ),
            fixed(
                "store",
                Address,
                Nothing("no endpoint"),
                "Address and port for the figures of the mail store, which is a process of its own.",
            ),
        ],
    },
    Section {
        name: "log",
        shape: Shape::Always,
        text: "The log, written to standard error.",
        options: &[
            live(
                "level",
                Choice(&["error", "warn", "info", "debug", "trace"]),
                Is("\"info\""),
                "The least important events written. `info` has a line for each message that is taken or refused, for each end and deferral of a recipient, and for each login.",
            ),
            fixed(
                "format",
                Choice(&["text", "json"]),
                Is("\"text\""),
                "`text` for people, `json` for programs.",
            ),
        ],
    },
    Section {
        name: "control",
        shape: Shape::Always,
        text: "The socket of the commands that talk to a running system.",
        options: &[fixed(
            "socket",
            Path,
            Is("\"{data}/control.sock\""),
            "Its path, at most 107 octets; who may open it may command the system, so it is made for its user only.",
        )],
    },
];
