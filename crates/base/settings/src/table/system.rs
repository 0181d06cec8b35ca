//! Options for several gateways, for storage, and for the system itself.

use super::row::Fallback::{Is, Nothing, Required};
use super::row::{DAY, GIB, MIB, MINUTE, SECOND, TIB};
use crate::kind::Kind::{
    Address, Choice, Integer, Name, Names, Path, SecretFile, Size, Span, UrlHttp, Urls,
};

sections! {
    "gateway" Always, "The gateway of this machine, among the gateways with the same nodes and register." {
        fixed name: Name, Is("\"gateway\""),
            "The name of the gateway and of its group of queues; at most 64 bytes. Gateways with the same `[cluster]` need different names. The name must not be changed while messages wait.";
        fixed adopts: Names, Is("[]"),
            "Gateways whose queues this gateway takes over and delivers after their death; `*` for all gateways with the same register. The MTA of X.400 of this machine does so for MTAs: `x400.NAME`, or `*`. The gateways must have the same routes, accounts and mailboxes. Without a register on a third machine leave the list empty: `vere queue drain --here` then takes over by hand.";
        fixed adopt_after: Span(SECOND, DAY), Is("\"30s\""),
            "Time without a renewal after which a gateway counts as dead; at least `cluster.lease` and `cluster.skew` together.";
    }

    "spool" Always, "Queue storage." {
        fixed durability: Choice(&["synced", "replicated"]), Is("\"synced\""),
            "The condition for acknowledging a message: `synced`, once the message is in the synced log of a node; `replicated`, once the message is in the memory of enough nodes, which is faster, but loses the messages if all these nodes fail at once.";
        fixed log: Choice(&["machine", "node"]), Is("\"machine\""),
            "The nodes that log a message, with `synced`: `machine`, one node of each machine, because the nodes of a machine lose power together; the other nodes keep the message in memory; `node`, every node, which costs a sync each and helps where the `data` directories are on separate disks: otherwise a power cut together with the loss of the logging disk loses waiting messages. Nodes on the same machine are the nodes that run `here`, and the nodes that run `elsewhere` under the same IP address, except loopback addresses.";
        fixed replicas: Integer(1, 16), Nothing("2, or 1 with a single node"),
            "Number of nodes that should hold every message. Further nodes replace a lost node.";
        fixed replicas_min: Integer(1, 16), Nothing("1 with `synced`, 2 with `replicated`"),
            "Number of nodes that must hold a message before the acknowledgement.";
        fixed slow_after: Span(0, DAY), Is("\"30s\""),
            "A node that answered later than the other nodes for two thirds of this time is replaced, if further nodes exist: another node is filled first, unless `replicas_min` and two of the remaining nodes hold every message anyway. With two nodes a reply waits for both, however slow. `0s` disables the replacement.";
        fixed slow_lag: Span(1, MINUTE), Is("\"5ms\""),
            "The delay of a node's answers, compared with the other nodes, that counts as slow.";
        fixed slow_rest: Span(SECOND, DAY), Is("\"10m\""),
            "The time that a slow node is excluded before the node may be filled again, unless too few nodes remain; the time doubles with each exclusion, up to 64 times.";
        fixed secret: SecretFile, Is("\"{data}/spool.key\""),
            "File of the key shared by gateway and nodes, which proves the account `default`; created at the first start if missing.";
        fixed as: Name, Is("\"default\""),
            "The account of this machine's gateway and commands on the nodes: `default`, or the name of a `[[spool.account]]`. The gateway's queues belong to this account.";
        fixed adopters: Names, Is("[]"),
            "Further accounts that may take over this gateway's queues. Gateways with the same account may do so anyway.";
        fixed readers: Names, Is("[]"),
            "Further accounts that may read this gateway's queues and figures, as with `vere spool stat`, except queues of a `[[spool.queue]]`.";
        fixed group_max: Size(MIB, 1024 * TIB), Nothing("the space of the nodes"),
            "Bytes of messages in all queues of this gateway; a message with several destinations counts for each. Above the limit the gateway answers 452. Other gateways on the same nodes keep their space.";
        fixed queues_max: Integer(16, 262_144), Is("131072"),
            "Queues of a group on a node, one per destination; `delivery.queue_idle` applies to empty queues. At the limit empty queues are removed at once, and without empty queues the gateway answers 452.";
        fixed groups_max: Integer(1, 512), Is("64"),
            "Groups of queues on a node: one for each gateway name ever used, until `vere spool remove-group`. If several accounts may create groups, each account may have half of the groups.";
        fixed memory_max: Size(16 * MIB, 16 * TIB), Is("\"1 GiB\""),
            "Memory of a node for messages. Further messages wait on disk (`spill_max`); when both are full, the node refuses new messages and the gateway answers 452.";
        fixed spill_max: Size(0, 1024 * TIB), Is("\"16 GiB\""),
            "Disk space of a node, in the `data` directory, for messages that do not fit into memory; 1 GiB of the disk stays free in any case. `0` keeps all messages in memory. The space only extends the memory: after a restart the space is empty, and durable messages come from the log.";
        fixed segment_size: Size(MIB, GIB), Is("\"4 MiB\""),
            "Bytes of a log segment: the unit in which space is reclaimed.";
        fixed kept_max: Integer(0, 1000), Is("4"),
            "Damaged logs of unknown owners that a node keeps for inspection, as `kept-N` in the `data` directory: the newest logs are kept.";
    }

    "spool.tls" Optional, "Mutual TLS (1.3) between gateways and nodes on several machines. Both sides present the certificate and demand the other side's certificate. Changed files take effect with the next connection, without a reload." {
        fixed certificate: Path, Required("certificate = \"/etc/vere/spool.pem\""),
            "PEM file of this machine's certificate with the chain. For a node the certificate must contain the node's `name` as a DNS name, or the node's address. If the certificate has extended key usage, a node's certificate needs server authentication, and a gateway's certificate client authentication.";
        fixed key: SecretFile, Required("key = \"/etc/vere/spool.key\""),
            "PEM file of the private key.";
        fixed ca: Path, Required("ca = \"/etc/vere/spool-ca.pem\""),
            "PEM file of the CAs accepted for the other side's certificate; the system's roots are not accepted. Any peer with a certificate of such a CA may connect, so use the CA for no other purpose.";
        fixed ca_key: SecretFile, Nothing("no renewal"),
            "PEM file of the CA's private key, made by `vere node invite` on one gateway's machine: with the key this gateway renews its own certificate and the certificates of the nodes that run `elsewhere`, after two thirds of their life.";
    }

    "spool.account" Repeated, "An account on the nodes beside `default`, so that gateways and monitoring need not share a key. A node needs all accounts in its settings; a gateway needs only its own account." {
        fixed name: Name, Required("name = \"east\""),
            "The name; at most 32 bytes.";
        fixed secret: SecretFile, Required("secret = \"/etc/vere/east.key\""),
            "File of the account's key, the same on the account's machine and on the nodes; created at the first start if missing.";
        fixed groups: Choice(&["makes", "none"]), Is("\"makes\""),
            "`makes`: the account may create groups of queues, as a gateway does. `none`: the account has only the rights granted by other accounts.";
    }

    "spool.queue" Repeated, "The readers of one of this gateway's queues. Listed accounts may read the queue, and no other queue without another grant; accounts with read permission alone that are not listed cannot read the queue. So a billing system can read the lines of `[records]` (`@finished`, `@notices`) but no mail. Accounts that may own the queues, such as this gateway and `spool.adopters`, can read all queues." {
        fixed name: Name, Required("name = \"@finished\""),
            "The queue's name: a destination as in `vere queue list`, `@finished` or `@notices`. The queue need not exist yet.";
        fixed readers: Names, Required("readers = [\"billing\"]"),
            "Up to 16 accounts known to the nodes. The accounts read with `vere spool read`, and see the queue's figures with `vere spool stat`.";
    }

    "spool.node" Repeated, "A spool node. By default two nodes named `a` and `b` run on this machine and listen on 127.0.0.1:2600 and 127.0.0.1:2601." {
        fixed name: Name, Required("name = \"a\""),
            "The name, which must not be changed while the node holds messages.";
        fixed listen: Address, Required("listen = \"127.0.0.1:2600\""),
            "The node's address and port.";
        fixed standby: Address, Nothing("no second address"),
            "A second address of the node, on another network: the gateway keeps a connection to this address and switches over within a second.";
        fixed runs: Choice(&["here", "elsewhere"]), Is("\"here\""),
            "`elsewhere`: the node runs on another machine, and is not started here.";
        fixed tls: Choice(&["auto", "required", "off"]), Is("\"auto\""),
            "Encryption of the node's connections with the certificates of `[spool.tls]`: `auto`, for addresses other than loopback, if `[spool.tls]` exists; `required`, for loopback addresses too; `off`. Gateway and node must agree.";
        fixed data: Path, Is("\"{data}/spool/{name}\""),
            "The directory of the node's logs.";
    }

    "cluster" Always, "Coordination of several gateways and nodes: the register, which keeps the membership of groups of queues, and the lease under which a gateway delivers." {
        fixed register: Choice(&["file", "etcd"]), Is("\"file\""),
            "`file` for synced files, if all processes run on one machine; `etcd` for several machines, with `[cluster.etcd]`.";
        fixed folder: Path, Is("\"{data}/register\""),
            "The directory of the register `file`.";
        fixed lease: Span(3 * SECOND, 10 * MINUTE), Is("\"10s\""),
            "How long a gateway delivers after the last renewal. After the death of a gateway, its mail waits for this time and `skew`.";
        fixed skew: Span(SECOND / 10, 10 * MINUTE), Is("\"2s\""),
            "The further wait of a successor beyond the lease: the largest difference between the clocks of two machines over a lease.";
    }

    "cluster.etcd" Optional, "The etcd cluster (3.4 or later) of the register." {
        fixed endpoints: Urls("http"), Required("endpoints = [\"https://192.0.2.1:2379\"]"),
            "`http://HOST:PORT` or `https://HOST:PORT` of 1 to 16 members. The timeout of each endpoint is 2 s.";
        fixed prefix: Name, Is("\"vere\""),
            "The prefix of the keys in etcd, before `/group/...`. Two mail systems in the same etcd need two prefixes.";
        fixed ca: Path, Nothing("the system's roots"),
            "PEM file of the CAs for the members' certificates.";
        fixed certificate: Path, Nothing("no certificate"),
            "PEM file of the certificate for members that demand a client certificate.";
        fixed key: SecretFile, Nothing("none"),
            "PEM file of the private key.";
        fixed user: Name, Nothing("no authentication"),
            "The user to authenticate as. Needs https, unless the endpoint is a loopback address.";
        fixed password_file: SecretFile, Nothing("no authentication"),
            "File with the user's password in the first line. Keep the file unreadable for other users.";
    }

    "metrics" Always, "Metrics for monitoring, in OpenMetrics over HTTP." {
        fixed listen: Address, Nothing("no endpoint"),
            "Address and port, such as `127.0.0.1:9625`, which `vere quickstart` writes. There is no authentication: keep the endpoint on loopback or a management network.";
        fixed store: Address, Nothing("no endpoint"),
            "Address and port for the metrics of the mail store, which is a separate process.";
        fixed front: Address, Nothing("no endpoint"),
            "Address and port for the metrics of the front, its workers and the broker; applies with `[front]`.";
        fixed dnsbl: Address, Nothing("no endpoint"),
            "Address and port for the metrics of the server of block lists; applies with `[dnsbl]`.";
        fixed x400: Address, Nothing("no endpoint"),
            "Address and port for the metrics of the X.400 MTA; applies with `[x400]`.";
        fixed web: Address, Nothing("no endpoint"),
            "Address and port for the metrics of the web server; applies with `[web]`. Never one of `web.https`: the endpoint has no authentication.";
        fixed otlp: Address, Nothing("no endpoint"),
            "Address and port for the metrics of the process that sends the log to a collector; applies with `log.otlp`.";
    }

    "log" Always, "The log, written to standard error." {
        live level: Choice(&["error", "warn", "info", "debug", "trace"]), Is("\"info\""),
            "The least important level written. `info` has a line for each accepted or refused message, for each final result and deferral of a recipient, and for each login.";
        fixed format: Choice(&["text", "json"]), Is("\"text\""),
            "`text` for people, `json` for programs.";
        fixed otlp: UrlHttp, Nothing("no collector"),
            "The base URL of a collector of OpenTelemetry, such as `\"http://127.0.0.1:4318\"`, which receives the log over OTLP/HTTP as well (`POST /v1/logs`, JSON). A collector that is slow or gone holds nothing back: records beyond a bound are dropped and counted.";
        live otlp_headers: SecretFile, Nothing("no further header fields"),
            "A file with header fields of the requests to the collector, one in each line, such as `Authorization: Bearer TOKEN`.";
        live otlp_ca: Path, Nothing("the system's roots"),
            "PEM file of roots for the certificate of the collector.";
    }

    "control" Always, "The socket for commands to a running system." {
        fixed socket: Path, Is("\"{data}/control.sock\""),
            "The path of the socket, at most 107 bytes. Anyone able to open the socket controls the system, so only the system's user has access.";
    }
}
