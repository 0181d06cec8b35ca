//! Options for incoming mail: listeners, limits of clients, and authentication.

use super::row::Fallback::{Is, Nothing, Required};
use super::row::{DAY, GIB, HOUR, KIB, MIB, MINUTE, SECOND, Section, Shape, TIB, fixed, live};
use crate::kind::Kind::{
    Addresses, Choice, HostName, HostNames, Integer, Name, NetworkList, Path, Size, Span, UrlHttps,
    Urls, Version,
};

/// The sections, in the order of the reference.
pub(super) static SECTIONS: &[Section] = &[
    Section {
        name: "",
        shape: Shape::Always,
        text: "Keys before the first section.",
        options: &[
            fixed(
                "version",
                Version,
                Required("version = 1"),
                "The version of this file's format, so that a later program can read an older file or say that it cannot.",
            ),
            fixed(
                "hostname",
                HostName,
                Required("hostname = \"mx.example.org\""),
                "The fully qualified name of this system: greeting, HELO, Received and Message-ID fields. Its address record and the reverse record of the address should agree with it, since other systems refuse mail where they do not.",
            ),
            fixed(
                "data",
                Path,
                Is("\"/var/lib/vere\""),
                "The folder under which everything lies that is not placed elsewhere.",
            ),
            fixed(
                "user",
                Name,
                Nothing("the user that started it stays"),
                "The user to become when started as root, once the ports are open.",
            ),
        ],
    },
    Section {
        name: "smtp",
        shape: Shape::Always,
        text: "Mail from other systems.",
        options: &[fixed(
            "listen",
            Addresses,
            Is("[\"[::]:25\"]"),
            "Addresses to listen on. `[::]` takes IPv4 as well. An empty list switches the service off.",
        )],
    },
    Section {
        name: "submission",
        shape: Shape::Always,
        text: "Mail of own users; they authenticate, behind STARTTLS (RFC 6409).",
        options: &[fixed(
            "listen",
            Addresses,
            Is("[]"),
            "Addresses to listen on, usually `[\"[::]:587\"]`. Off by default, since it is of no use before there are accounts and a certificate.",
        )],
    },
    Section {
        name: "submissions",
        shape: Shape::Always,
        text: "Mail of own users; they authenticate, TLS from the first octet (RFC 8314).",
        options: &[fixed(
            "listen",
            Addresses,
            Is("[]"),
            "Addresses to listen on, usually `[\"[::]:465\"]`. Needs a certificate.",
        )],
    },
    Section {
        name: "imap",
        shape: Shape::Always,
        text: "The mail store for clients that read mail, behind STARTTLS (RFC 9051). The store runs where any of `imap`, `imaps` and `lmtp` listens.",
        options: &[fixed(
            "listen",
            Addresses,
            Is("[]"),
            "Addresses to listen on, usually `[\"[::]:143\"]`.",
        )],
    },
    Section {
        name: "imaps",
        shape: Shape::Always,
        text: "The same, TLS from the first octet (RFC 8314).",
        options: &[fixed(
            "listen",
            Addresses,
            Is("[]"),
            "Addresses to listen on, usually `[\"[::]:993\"]`. Needs a certificate.",
        )],
    },
    Section {
        name: "lmtp",
        shape: Shape::Always,
        text: "The mail store for mail to be filed (RFC 2033). Whoever connects may file mail for every account: never to be opened to the internet.",
        options: &[fixed(
            "listen",
            Addresses,
            Is("[\"127.0.0.1:24\"]"),
            "Addresses to listen on. The gateway hands over to the first one. An empty list goes with `delivery.local = \"maildir\"`.",
        )],
    },
    Section {
        name: "quota",
        shape: Shape::Always,
        text: "What an account may hold in the mail store, all its mailboxes together. Whoever is over it can still read, move and delete, and nothing is added: clients get `NO [OVERQUOTA]`.",
        options: &[
            live(
                "size_max",
                Size(KIB, 1024 * TIB),
                Nothing("no limit"),
                "Octets of all messages of an account; a copy counts as well.",
            ),
            live(
                "messages_max",
                Integer(1, 4_000_000_000),
                Is("1000000"),
                "Messages of an account; copies count, which take no room for their text but memory and time of all.",
            ),
            live(
                "over",
                Choice(&["defer", "reject"]),
                Is("\"defer\""),
                "Mail for an account without room: `defer` lets it wait in its queue (452 4.2.2), `reject` returns it to its sender at once (552 5.2.2).",
            ),
            live(
                "warn_at",
                Integer(1, 100),
                Is("90"),
                "Percentage of a limit; a delivery that reaches it is logged as a warning with the account's name.",
            ),
        ],
    },
    Section {
        name: "quota.account",
        shape: Shape::Repeated,
        text: "What single accounts may hold; what a section does not say is as for all others.",
        options: &[
            live(
                "name",
                Name,
                Required("\"alice@example.org\""),
                "The account.",
            ),
            live(
                "size_max",
                Size(KIB, 1024 * TIB),
                Nothing("as `quota.size_max`"),
                "Octets of all its messages.",
            ),
            live(
                "messages_max",
                Integer(1, 4_000_000_000),
                Nothing("as `quota.messages_max`"),
                "Its messages.",
            ),
        ],
    },
    Section {
        name: "limits",
        shape: Shape::Always,
        text: "Bounds on what clients may ask for. At a bound the client gets the precise error; what was accepted stays accepted.",
        options: &[
            live(
                "message_size_max",
                Size(64 * KIB, 2 * GIB),
                Is("\"50 MiB\""),
                "Octets of one message, announced by SIZE. Large providers take 25 to 50 MB, in base64 a third more than the files in it. At most half of `body_memory_max` and of `body_disk_max`.",
            ),
            live(
                "recipients_max",
                Integer(100, 100_000),
                Is("1000"),
                "Recipients of one message, announced by LIMITS. RFC 5321 section 4.5.3.1.8 asks for at least 100.",
            ),
            live(
                "command_line_length_max",
                Size(512, 64 * KIB),
                Is("\"12 KiB\""),
                "Octets of one command line with its CRLF. RFC 5321 asks for 512, RFC 4954 for 12288 where authentication data is sent.",
            ),
            live(
                "text_line_length_max",
                Size(1_000, GIB),
                Is("\"64 KiB\""),
                "Octets of one line of a message with its CRLF. RFC 5321 asks for 1000; programs that write HTML in one line are common, and to refuse them loses wanted mail.",
            ),
            live(
                "hops_max",
                Integer(30, 1_000),
                Is("100"),
                "Received fields of one message before it is refused as looping. RFC 5321 section 6.3 asks for at least 100.",
            ),
            live(
                "messages_per_connection_max",
                Integer(1, 1_000_000),
                Is("1000"),
                "Messages over one connection, announced by LIMITS; the client connects again for more.",
            ),
            live(
                "errors_max",
                Integer(1, 1_000),
                Is("20"),
                "Refused commands before the connection is closed. Honest clients stay far below; guessing of addresses does not.",
            ),
            live(
                "auth_failures_max",
                Integer(1, 100),
                Is("3"),
                "Failed authentications before the connection is closed.",
            ),
            live(
                "command_timeout",
                Span(SECOND, DAY),
                Is("\"5m\""),
                "Longest wait for a command. RFC 5321 section 4.5.3.2.7 asks for 5 minutes.",
            ),
            live(
                "data_timeout",
                Span(SECOND, DAY),
                Is("\"10m\""),
                "Longest wait for more of a message.",
            ),
            live(
                "data_time_max",
                Span(MINUTE, DAY),
                Is("\"2h\""),
                "Longest time for one whole message by SMTP. A client slower than 1 KiB/s has `data_timeout` and a second for each KiB that it sent.",
            ),
            fixed(
                "parse_timeout",
                Span(SECOND, HOUR),
                Is("\"30s\""),
                "How long the process that takes messages of the mail store apart may be silent, a second more for each 4 MiB of the message; then it is ended and the message tried again. After two attempts its header is read alone, and after a third the message is kept as it is. So long those may be silent, too, that decode texts for SEARCH and its index. Ordinary messages take less than a millisecond.",
            ),
            fixed(
                "connections_max",
                Integer(1, 1_000_000),
                Is("20000"),
                "Connections at once; each takes a descriptor and up to 16 KiB while idle.",
            ),
            live(
                "connections_per_client_max",
                Integer(1, 1_000_000),
                Is("100"),
                "Connections at once from one IPv4 address or one IPv6 /64, so that one client cannot take all.",
            ),
            live(
                "body_memory_max",
                Size(MIB, TIB),
                Is("\"256 MiB\""),
                "Memory for messages that are being received: of the gateway, of the mail store's clients and of deliveries to it each. Beyond it messages that do not move are refused, those that hold most for their rate first: 452 (IMAP: NO [LIMIT]), and the client comes again. One client gets a quarter of it, or one message; an eighth is for those who have authenticated.",
            ),
            live(
                "fetch_memory_max",
                Size(8 * MIB, TIB),
                Is("\"64 MiB\""),
                "Memory of the mail store for messages that IMAP clients asked for and have not read; the sessions of one account get a quarter. Short answers take theirs at once, others wait for room in turn. A client that reads less than 1 KiB/s over a minute while it holds some of it is disconnected. A message whose parts are to be decoded and that is larger than half of this is read while no other one is.",
            ),
            live(
                "body_disk_max",
                Size(MIB, TIB),
                Is("\"1 GiB\""),
                "Room on the disk for what has come of messages above 1 MiB that are being received, in files without a name in `data`. Shared out as `body_memory_max` is: beyond it 452, to those first that hold most for their rate.",
            ),
            live(
                "queued_messages_max",
                Integer(1, 1_000_000_000),
                Is("10000000"),
                "Messages in all queues, counted once per destination; beyond it clients get 452 and come again. Each takes some 75 octets of the gateway's memory.",
            ),
            live(
                "throttle_from",
                Integer(1, 100),
                Is("95"),
                "Percent of `queued_messages_max`, of what the fullest spool node has room for (`spool.memory_max` and `spool.spill_max`) or of `spool.group_max` from which new connections get 421 and new messages 452, so that what is under way finds room. The same percent of what is for strangers in `body_memory_max`, with nothing in it that does not move, is where their new messages get 452.",
            ),
            live(
                "throttle_until",
                Integer(1, 100),
                Is("90"),
                "Percent below which that ends; at most `throttle_from`.",
            ),
            live(
                "messages_per_destination_max",
                Integer(1, 1_000_000_000),
                Is("5000000"),
                "Messages that wait for one destination; beyond it its recipients get 452.",
            ),
            live(
                "octets_per_destination_max",
                Size(MIB, 1024 * TIB),
                Is("\"1 TiB\""),
                "Octets that wait for one destination; beyond it its recipients get 452.",
            ),
            live(
                "queue_memory_max",
                Size(MIB, TIB),
                Is("\"256 MiB\""),
                "Memory for the messages that leave next. The others wait in the spool; the gateway needs some 75 octets for each of them beside this.",
            ),
        ],
    },
    Section {
        name: "relay",
        shape: Shape::Always,
        text: "Who may send to any destination without authentication.",
        options: &[live(
            "networks",
            NetworkList,
            Is("[]"),
            "Networks of such clients. None by default: an open relay is found within hours.",
        )],
    },
    Section {
        name: "priority",
        shape: Shape::Always,
        text: "The priority of messages, from -9 to 9 (MT-PRIORITY, RFC 6710): higher ones leave their queue first, yet of eight one is the oldest.",
        options: &[
            live(
                "networks",
                NetworkList,
                Is("[]"),
                "Networks whose clients may give messages a priority above 0 without authentication. Others' messages get 0, and they are told so.",
            ),
            live(
                "policy",
                Choice(&["none", "mixer", "stanag4406", "nsep"]),
                Is("\"none\""),
                "The name announced for how priorities are given here. It changes nothing else.",
            ),
        ],
    },
    Section {
        name: "xclient",
        shape: Shape::Always,
        text: "Who may pass on another client's address by XCLIENT.",
        options: &[
            live(
                "networks",
                NetworkList,
                Is("[]"),
                "Networks of trusted front ends. What they say about a client is believed. Behind a load balancer the client's address counts, never the balancer's.",
            ),
            live(
                "proxy_overlap",
                Choice(&["refused", "allowed"]),
                Is("\"refused\""),
                "Whether `networks` and `proxy.networks` may share addresses. A balancer then has the right for the connections that it makes for itself.",
            ),
        ],
    },
    Section {
        name: "proxy",
        shape: Shape::Always,
        text: "Whose connections begin with a PROXY header, version 1 or 2.",
        options: &[
            live(
                "networks",
                NetworkList,
                Is("[]"),
                "Networks of load balancers before the SMTP ports. A connection from there without the header is closed.",
            ),
            live(
                "imap_networks",
                NetworkList,
                Is("[]"),
                "Networks of load balancers before the IMAP ports. A connection from there without the header is closed.",
            ),
        ],
    },
    Section {
        name: "auth",
        shape: Shape::Always,
        text: "Authentication of own users.",
        options: &[live(
            "plaintext_networks",
            NetworkList,
            Is("[]"),
            "Networks whose clients may authenticate without TLS. For tests on loopback.",
        )],
    },
    Section {
        name: "tls",
        shape: Shape::Always,
        text: "The certificate shown when no other fits. The files are read again at reload.",
        options: &[
            live(
                "certificate",
                Path,
                Nothing("no certificate from a file"),
                "PEM file of the certificate chain, the server's own certificate first.",
            ),
            live(
                "key",
                Path,
                Nothing("no certificate from a file"),
                "PEM file of the private key.",
            ),
        ],
    },
    Section {
        name: "tls.sni",
        shape: Shape::Repeated,
        text: "A certificate for one server name.",
        options: &[
            live(
                "name",
                HostName,
                Required("name = \"mail.example.org\""),
                "The name that clients ask for.",
            ),
            live(
                "certificate",
                Path,
                Required("certificate = \"mail.pem\""),
                "PEM file of the certificate chain.",
            ),
            live(
                "key",
                Path,
                Required("key = \"mail.key\""),
                "PEM file of the private key.",
            ),
        ],
    },
    Section {
        name: "acme",
        shape: Shape::Optional,
        text: "Certificates fetched and renewed from a certificate authority (RFC 8555). To have this section, even empty, is to agree to the authority's terms.",
        options: &[
            live(
                "directory",
                UrlHttps,
                Is("\"https://acme-v02.api.letsencrypt.org/directory\""),
                "The directory of the authority.",
            ),
            live(
                "contact",
                Urls("mailto:"),
                Is("[]"),
                "Where the authority may write to, such as `[\"mailto:postmaster@example.org\"]`.",
            ),
            live(
                "domains",
                HostNames,
                Is("[]"),
                "The names of the certificate; only `hostname` when empty.",
            ),
            live(
                "root",
                Path,
                Nothing("the system's roots"),
                "PEM file of roots that the authority's own server is checked against; for test authorities.",
            ),
            fixed(
                "listen",
                Addresses,
                Is("[\"[::]:80\"]"),
                "Where challenges are answered; the authority connects to port 80 (RFC 8555 section 8.3).",
            ),
        ],
    },
];
