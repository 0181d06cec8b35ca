//! Options for outgoing mail: names, users, delivery, routes and sources.

use super::row::Fallback::{Is, Nothing, Required};
use super::row::{
    DAY, HOUR, MIB, MINUTE, ROUTE_TLS_MODES, SECOND, Section, Shape, TIB, TLS_MODES, fixed, live,
};
use crate::kind::Kind::{
    Addresses, Choice, HostName, Integer, Ipv4, Ipv6, Mailboxes, MaildirTemplate, Name, NextHop,
    Path, Pattern, Rate, SecretText, Separator, Size, Span, Spans, Store,
};

/// The sections, in the order of the reference.
pub(super) static SECTIONS: &[Section] = &[
    Section {
        name: "resolver",
        shape: Shape::Always,
        text: "Name resolution.",
        options: &[
            fixed(
                "servers",
                Addresses,
                Is("[]"),
                "Name servers with ports; those of the operating system when empty.",
            ),
            live(
                "zone",
                Path,
                Nothing("the network is asked"),
                "A file of static records for tests; when given, no network is asked.",
            ),
            fixed(
                "dnssec",
                Choice(&["off", "validate"]),
                Is("\"off\""),
                "`validate`: answers are validated by DNSSEC, which DANE needs; what fails is a failure for now. The name servers must pass signatures on, as a validating resolver on this machine does.",
            ),
            fixed(
                "trust_anchor",
                Path,
                Nothing("the keys of the root zone"),
                "File of DNSKEY records that validation begins with.",
            ),
        ],
    },
    Section {
        name: "store",
        shape: Shape::Always,
        text: "How the mail store keeps its files.",
        options: &[
            fixed(
                "reserve",
                Size(0, TIB),
                Is("\"64 MiB\""),
                "Room of the disk for removing messages: a file of this size, given up when less than this is free. Until there is room again no message is taken in (LMTP 452, IMAP `NO [UNAVAILABLE]`); messages are read, moved and removed, and the room of what is removed comes back. 0 keeps none.",
            ),
            fixed(
                "reclaim_from",
                Integer(1, 100),
                Is("20"),
                "Percentage of the log that nothing needs any more from which its room is reclaimed.",
            ),
            fixed(
                "reclaim_share",
                Integer(1, 100),
                Is("20"),
                "Percentage of the time that reclaiming reads and writes; the rest it waits.",
            ),
            fixed(
                "sharing",
                Choice(&["account", "all"]),
                Is("\"account\""),
                "Where a message that arrives again, on its own, is stored as a reference to the copy that is there. `all` stores it once for all accounts; whoever can see how much is stored, or how long it takes, may then find out whether somebody else has a message.",
            ),
            fixed(
                "mailboxes",
                Mailboxes,
                Is("[\"Archive\", \"Drafts\", \"Junk\", \"Sent\", \"Trash\"]"),
                "Mailboxes that a new account gets beside INBOX, subscribed. These five names stand for their special uses (RFC 6154), which clients look for; `\"Entwürfe=Drafts\"` gives a use to another name. Accounts that are there stay as they are.",
            ),
        ],
    },
    Section {
        name: "directory",
        shape: Shape::Always,
        text: "Where domains, accounts and aliases lie.",
        options: &[
            fixed(
                "store",
                Store,
                Is("\"file:{data}/directory.toml\""),
                "`file:PATH` for one TOML file, good for thousands of accounts; `sqlite:PATH` for a database, good for millions.",
            ),
            live(
                "subaddress_separator",
                Separator,
                Is("\"+\""),
                "What separates the user name from a tag, as in user+tag@domain (RFC 5233); an empty text switches tags off.",
            ),
        ],
    },
    Section {
        name: "delivery",
        shape: Shape::Always,
        text: "Delivery to next hops and into mailboxes.",
        options: &[
            fixed(
                "local",
                Choice(&["maildir", "store"]),
                Nothing(
                    "`store`; where there are Maildirs already, the system does not start before it is said",
                ),
                "Where mail for own accounts goes: into a Maildir for each, or to the mail store, which `lmtp.listen` must then open.",
            ),
            live(
                "maildir",
                MaildirTemplate,
                Is("\"{data}/maildir/{domain}/{local}\""),
                "Where the Maildir of an account lies.",
            ),
            live(
                "connections_per_destination_max",
                Integer(1, 10_000),
                Is("20"),
                "Connections at once to one destination. Receivers close more than some tens from one address.",
            ),
            live(
                "connections_per_site_max",
                Integer(1, 10_000),
                Is("100"),
                "Connections at once to the hosts that serve one or more destinations. How many there are depends on their answers: it begins with 10, grows while they take mail and shrinks when they refuse or slow down.",
            ),
            live(
                "connections_max",
                Integer(1, 1_000_000),
                Is("2000"),
                "Connections at once to all destinations. When all are in use destinations take turns; each needs a file descriptor and some 30 KiB.",
            ),
            live(
                "one_round_max",
                Size(0, 64 * MIB),
                Is("\"64 KiB\""),
                "Messages up to this size leave together with sender and recipients (BDAT, RFC 3030), in one round trip, where the next hop offers PIPELINING and CHUNKING. Longer ones, and with 0 all, wait until the next hop has taken a recipient.",
            ),
            live(
                "connect_timeout",
                Span(SECOND, HOUR),
                Is("\"30s\""),
                "Longest wait for a connection before the next address is tried.",
            ),
            live(
                "messages_per_connection_max",
                Integer(1, 1_000_000),
                Is("100"),
                "Messages over one connection before a new one is made, so that load spreads again over a destination's hosts.",
            ),
            live(
                "tls",
                Choice(TLS_MODES),
                Is("\"opportunistic\""),
                "Encryption towards next hops that no route names: `off`, `opportunistic` (where offered, whatever the certificate says), `required` (with a valid certificate).",
            ),
            live(
                "mta_sts",
                Choice(&["on", "off"]),
                Is("\"on\""),
                "Whether the MTA-STS policies (RFC 8461) of domains hold, where `tls` is not `off`.",
            ),
            live(
                "dane",
                Choice(&["on", "off"]),
                Is("\"on\""),
                "Whether TLSA records (DANE, RFC 7672) of hosts hold, where `tls` is not `off`. Needs `resolver.dnssec`. They come before MTA-STS policies and before the roots that `required` would ask.",
            ),
            live(
                "mta_sts_port",
                Integer(1, 65_535),
                Is("443"),
                "The port of policy hosts; any other is for tests.",
            ),
            live(
                "ca",
                Path,
                Nothing("only the system's roots"),
                "PEM file of further roots that next hops and MTA-STS policy hosts are checked against.",
            ),
            live(
                "port",
                Integer(1, 65_535),
                Is("25"),
                "The port of next hops found by MX.",
            ),
            live(
                "retry",
                Spans(SECOND, 30 * DAY),
                Is("[\"1m\", \"5m\", \"15m\", \"1h\", \"4h\"]"),
                "Waits before the second, third, ... attempt; the last one repeats. The first is short because of greylisting; RFC 5321 section 4.5.4.1 asks for 30 minutes in the long run.",
            ),
            live(
                "expire",
                Span(MINUTE, 30 * DAY),
                Is("\"5d\""),
                "When a message is given up and returned. RFC 5321 section 4.5.4.1 asks for 4 to 5 days.",
            ),
            live(
                "delay_notice",
                Span(MINUTE, 30 * DAY),
                Is("\"4h\""),
                "When the sender is told that a message is late; once a message, and not where DSN parameters say otherwise.",
            ),
            live(
                "queue_idle",
                Span(SECOND, 30 * DAY),
                Is("\"1h\""),
                "How long the queue of a destination stays after its last message came and left; then the spool and the gateway forget it, with what was learned of its hosts. One that is held, paused, or whose rate is used up stays.",
            ),
            live(
                "reports_per_hour_max",
                Integer(0, 1_000_000),
                Is("1000"),
                "Reports (DSN) that one address gets in an hour of the clock; 0: any number. What is beyond is not sent, but logged, counted (`vere_delivery_notifications_limited_total`), traced, and told in `[records]`. Counting begins anew when the gateway starts.",
            ),
            live(
                "source",
                Name,
                Nothing("the system chooses, EHLO names `hostname`"),
                "The `[[source]]` that deliveries leave from where no route names another.",
            ),
        ],
    },
    Section {
        name: "delivery.destination",
        shape: Shape::Repeated,
        text: "What is allowed towards some destinations, named by one of `domain`, `next_hop` and `mx`. The closest name holds, wherever it stands; each destination that it is for has its limits for itself. What a section does not say is as for all others.",
        options: &[
            live(
                "domain",
                Pattern,
                Nothing("named otherwise"),
                "`example.org` for this domain, `.example.org` for each below it, `*` for each: where mail goes by MX.",
            ),
            live(
                "next_hop",
                NextHop,
                Nothing("named otherwise"),
                "The next hop of a route, as `host:port`; `local` for the mailboxes of this system.",
            ),
            live(
                "mx",
                Pattern,
                Nothing("named otherwise"),
                "Hosts, as for `domain`: for each site that such a host serves, all its domains together.",
            ),
            live(
                "connections_max",
                Integer(1, 10_000),
                Nothing(
                    "as `delivery.connections_per_destination_max` and `delivery.connections_per_site_max`",
                ),
                "Connections at once. `delivery.connections_per_site_max` holds besides, unless a section with `mx` says otherwise.",
            ),
            live(
                "messages_per_connection_max",
                Integer(1, 1_000_000),
                Nothing("as `delivery.messages_per_connection_max`"),
                "Messages over one connection before a new one is made.",
            ),
            live(
                "rate",
                Rate,
                Nothing("no limit"),
                "Messages in a time, on the average. What must wait for it uses up no attempt.",
            ),
            live(
                "burst",
                Integer(1, 1_000_000),
                Nothing("as many as `rate` gives in a second, at least one"),
                "Messages that may leave at once after a rest.",
            ),
            live(
                "connection_interval",
                Span(1, HOUR),
                Nothing("no wait"),
                "The least time between the starts of two connections.",
            ),
            live(
                "priority",
                Choice(&["low", "normal", "high"]),
                Is("\"normal\""),
                "Who gets a connection first when `delivery.connections_max` are in use. Nobody waits for ever: of seven, four go to `high`, two to `normal` and one to `low`.",
            ),
            live(
                "in_order",
                Choice(&["no", "yes"]),
                Is("\"no\""),
                "`yes`: messages leave one at a time in the order in which they were taken, over restarts too. One that is put off holds those behind it until it is delivered or given up; priorities make no difference.",
            ),
        ],
    },
    Section {
        name: "route",
        shape: Shape::Repeated,
        text: "An exception from delivery by MX; the first that fits holds. A message for an own domain goes to its accounts before routes are looked at, unless a route names that domain itself.",
        options: &[
            live(
                "domain",
                Pattern,
                Required("domain = \"*\""),
                "`example.org` for this domain, `.example.org` for those below it, `*` for all.",
            ),
            live(
                "next_hop",
                NextHop,
                Required("next_hop = \"relay.example.net:25\""),
                "`host:port`, `192.0.2.1:25` or `[2001:db8::1]:25`, asked without MX, with `delivery.port` where no port is given; `mx` for delivery by MX; `local` for mailboxes of this system.",
            ),
            live(
                "protocol",
                Choice(&["smtp", "lmtp"]),
                Is("\"smtp\""),
                "`smtp`, or `lmtp` (RFC 2033) to hand over to a mailbox server.",
            ),
            live(
                "tls",
                Choice(ROUTE_TLS_MODES),
                Nothing("as `delivery.tls`"),
                "Encryption towards this next hop, as `delivery.tls`; `implicit`: as `required`, from the first octet on (port 465).",
            ),
            live(
                "username",
                Name,
                Nothing("no authentication"),
                "Whom to authenticate as. Needs `tls = \"required\"`, unless the next hop is a loopback address or `password_in_clear` is set.",
            ),
            live(
                "password",
                SecretText,
                Nothing("no authentication"),
                "The password for it. Keep the file unreadable for others.",
            ),
            live(
                "password_file",
                Path,
                Nothing("no authentication"),
                "File with the password in its first line, instead of `password`; read at the start and at each reload. Keep it unreadable for others.",
            ),
            live(
                "password_in_clear",
                Choice(&["no", "yes"]),
                Is("\"no\""),
                "`yes`: the password may travel without TLS, to a next hop on a network that nobody listens on.",
            ),
            live(
                "source",
                Name,
                Nothing("as `delivery.source`"),
                "The `[[source]]` that its deliveries leave from.",
            ),
        ],
    },
    Section {
        name: "source",
        shape: Shape::Repeated,
        text: "Addresses and a name under which deliveries leave. A route, or `delivery.source` for all the others, names it.",
        options: &[
            live(
                "name",
                Name,
                Required("name = \"bulk\""),
                "What routes call it.",
            ),
            live(
                "ipv4",
                Ipv4,
                Nothing("the system chooses"),
                "The own address of connections over IPv4.",
            ),
            live(
                "ipv6",
                Ipv6,
                Nothing("the system chooses"),
                "The own address of connections over IPv6.",
            ),
            live(
                "hostname",
                HostName,
                Nothing("`hostname`"),
                "The name given in EHLO. Receivers expect that it has the addresses, and that the addresses point back to it.",
            ),
        ],
    },
];
