//! Options for outgoing mail: names, users, delivery, routes and sources.

use super::row::Fallback::{Is, Nothing, Required};
use super::row::{DAY, HOUR, MIB, MINUTE, ROUTE_TLS_MODES, SECOND, TIB, TLS_MODES};
use crate::kind::Kind::{
    Addresses, Choice, HostName, Integer, Ipv4, Ipv6, Mailboxes, MaildirTemplate, Name, NextHop,
    Path, Pattern, Rate, SecretFile, SecretText, Separator, Size, Span, Spans, Store,
};

sections! {
    "resolver" Always, "Name resolution." {
        fixed servers: Addresses, Is("[]"),
            "Name servers with ports; empty for the name servers of the operating system.";
        live zone: Path, Nothing("lookups by the network"),
            "A file of static records for tests; replaces all lookups by the network.";
        fixed dnssec: Choice(&["off", "validate"]), Is("\"off\""),
            "`validate`: answers are validated by DNSSEC, which DANE requires; an answer that fails validation is a temporary failure. The name servers must pass on signatures, as a validating resolver on this machine does.";
        fixed trust_anchor: Path, Nothing("the keys of the root zone"),
            "File of DNSKEY records as trust anchors of the validation.";
    }

    "store" Always, "Storage options of the mail store." {
        fixed reserve: Size(0, TIB), Is("\"64 MiB\""),
            "Disk space reserved for removing messages: a file of this size, released when the free space falls below this value. Until space is free again, the store accepts no messages (LMTP 452, IMAP `NO [UNAVAILABLE]`), but messages can be read, moved and removed, and removal frees space. 0 reserves none.";
        fixed reclaim_from: Integer(1, 100), Is("20"),
            "Percentage of unneeded data in the log from which the store reclaims space.";
        fixed reclaim_share: Integer(1, 100), Is("20"),
            "Percentage of the time spent on reclaiming space.";
        live backup_hold_max: Span(MINUTE, 30 * DAY), Is("\"12h\""),
            "Longest time of a backup, during which the store reclaims no space. A backup that takes longer fails, and so does one during which free space falls below `reserve`. What it stored already is not stored again by the next one.";
        live keep_expunged: Span(0, 366 * DAY), Is("\"7d\""),
            "How long expunged messages and deleted mailboxes are kept for `vere mailbox undelete`. 0 keeps none and lets go of those that are kept. They count in no quota, IMAP clients do not see them, and on a nearly full disk the oldest go earlier.";
        live keep_expunged_size: Size(0, 64 * TIB), Is("\"10 GiB\""),
            "Expunged mail that an account keeps at most, and not more than its quota; the oldest goes first.";
        fixed sharing: Choice(&["account", "all"]), Is("\"account\""),
            "Accounts among which a message that arrives again is stored as a reference to the existing copy. `all` stores the message once for all accounts; anyone able to observe the used space, or the time of storing, may then find out whether another account has the same message.";
        live marked: Choice(&["junk", "inbox"]), Is("\"junk\""),
            "Mailbox for messages that `[judging]` marks as unwanted: `junk` for the account's mailbox with the special use Junk (INBOX without one), `inbox` for INBOX. Mail to an address with a tag goes to the mailbox of the tag, where there is one.";
        fixed mailboxes: Mailboxes, Is("[\"Archive\", \"Drafts\", \"Junk\", \"Sent\", \"Trash\"]"),
            "Mailboxes of a new account beside INBOX, all subscribed. These five names have the special uses (RFC 6154) that clients look for; `\"Entwürfe=Drafts\"` gives a special use to another name. Existing accounts are not changed.";
    }

    "backup" Always, "Watching over backups (`vere backup`)." {
        live warn_after: Span(0, 366 * DAY), Is("\"2d\""),
            "Age of the last backup from which on `vere status` warns. A system without any backup is never warned about: other programs make backups, too. 0 never warns.";
    }

    "directory" Always, "The store of domains, accounts and aliases." {
        fixed store: Store, Is("\"file:{data}/directory.toml\""),
            "`file:PATH` for a TOML file, good for thousands of accounts; `sqlite:PATH` for a database, good for millions.";
        live subaddress_separator: Separator, Is("\"+\""),
            "Separator between user name and tag, as in user+tag@domain (RFC 5233); an empty text disables tags.";
    }

    "delivery" Always, "Delivery to next hops and into mailboxes." {
        fixed local: Choice(&["maildir", "store"]), Nothing("`store`; with existing Maildirs the setting is required"),
            "Delivery of mail for local accounts: into a Maildir per account, or to the mail store, which requires an address in `lmtp.listen`.";
        live maildir: MaildirTemplate, Is("\"{data}/maildir/{domain}/{local}\""),
            "The Maildir of an account.";
        live srs: Choice(&["no", "yes"]), Is("\"yes\""),
            "Whether mail that an alias forwards to another system leaves with a reverse-path of the alias's domain, which holds the sender (Sender Rewriting Scheme): SPF of the sender's domain would refuse the mail there. Reports come back to this system, and go on to the sender for three weeks. The key is in `{data}/srs.key`; gateways of the same domains need the same.";
        live connections_per_destination_max: Integer(1, 10_000), Is("20"),
            "Concurrent connections to a destination. Receivers close connections beyond some tens from the same address.";
        live connections_per_site_max: Integer(1, 10_000), Is("100"),
            "Concurrent connections to the hosts that serve one or more destinations. The actual number adapts to the hosts' answers: from 10 at the beginning, the number grows while the hosts accept mail, and falls when the hosts refuse mail or slow down.";
        live connections_max: Integer(1, 1_000_000), Is("2000"),
            "Concurrent connections to all destinations. At the limit the destinations take turns; a connection needs a file descriptor and some 30 KiB.";
        live one_round_max: Size(0, 64 * MIB), Is("\"64 KiB\""),
            "Messages up to this size are sent together with sender and recipients (BDAT, RFC 3030), in a single round trip, where the next hop offers PIPELINING and CHUNKING. Longer messages, and with 0 all messages, wait until the next hop has accepted a recipient.";
        live connect_timeout: Span(SECOND, HOUR), Is("\"30s\""),
            "Longest wait for a connection before the next address is tried.";
        live messages_per_connection_max: Integer(1, 1_000_000), Is("100"),
            "Messages over a connection before a new connection is made, so that the load spreads over a destination's hosts.";
        live tls: Choice(TLS_MODES), Is("\"opportunistic\""),
            "Encryption towards next hops without a route: `off`, `opportunistic` (where offered, with any certificate), `required` (with a valid certificate).";
        live mta_sts: Choice(&["on", "off"]), Is("\"on\""),
            "Whether the MTA-STS policies (RFC 8461) of domains apply, where `tls` is not `off`.";
        live dane: Choice(&["on", "off"]), Is("\"on\""),
            "Whether TLSA records (DANE, RFC 7672) of hosts apply, where `tls` is not `off`. Needs `resolver.dnssec`. TLSA records take precedence over MTA-STS policies, and over the roots used by `required`.";
        live mta_sts_port: Integer(1, 65_535), Is("443"),
            "The port of policy hosts. A port other than 443 is for tests: policy hosts, and web servers of reports with this port, may then have addresses of private networks.";
        live ca: Path, Nothing("only the system's roots"),
            "PEM file of further roots for the certificates of next hops and MTA-STS policy hosts.";
        live port: Integer(1, 65_535), Is("25"),
            "The port of next hops found by MX.";
        fixed courier_processes: Integer(0, 64), Is("0"),
            "Processes that find next hops, connect to them and send messages: 1 for each core that relaying may use. With 0 the gateway does so beside its queues, on the core that it has.";
        live retry: Spans(SECOND, 30 * DAY), Is("[\"1m\", \"5m\", \"15m\", \"1h\", \"4h\"]"),
            "Waits before the second, third, ... attempt; the last wait repeats. The first wait is short because of greylisting; RFC 5321 section 4.5.4.1 asks for 30 minutes in the long run.";
        live expire: Span(MINUTE, 30 * DAY), Is("\"5d\""),
            "Age at which a message expires and is returned to the sender. RFC 5321 section 4.5.4.1 asks for 4 to 5 days.";
        live delay_notice: Span(MINUTE, 30 * DAY), Is("\"4h\""),
            "Age at which the sender of a message gets a delay notice; at most once per message, and not if DSN parameters forbid the notice.";
        live queue_idle: Span(SECOND, 30 * DAY), Is("\"1h\""),
            "Time that an empty queue of a destination is kept after the last message; then spool and gateway remove the queue, with the knowledge of the destination's hosts. A queue that is held, paused, or at its rate limit is kept.";
        live reports_per_hour_max: Integer(0, 1_000_000), Is("1000"),
            "Reports (DSN) to an address within an hour of the clock; 0 for no limit. Further reports are not sent, but logged, counted (`vere_delivery_notifications_limited_total`), traced, and listed in `[records]`. The count starts again when the gateway starts.";
        live source: Name, Nothing("addresses chosen by the system, `hostname` in EHLO"),
            "The `[[source]]` of deliveries without a source in their route.";
    }

    "delivery.destination" Repeated, "Limits for single destinations, named by `domain`, `next_hop` or `mx`. The closest name applies, regardless of the order; each matching destination has the limits for itself. Omitted keys fall back to `[delivery]`." {
        live domain: Pattern, Nothing("another key names the destination"),
            "`example.org` for this domain, `.example.org` for each domain below, `*` for every domain: destinations routed by MX.";
        live next_hop: NextHop, Nothing("another key names the destination"),
            "The next hop of a route, as `host:port`; `local` for the mailboxes of this system.";
        live mx: Pattern, Nothing("another key names the destination"),
            "Hosts, in the notation of `domain`: for each site served by such a host, over all domains of the site.";
        live connections_max: Integer(1, 10_000), Nothing("as `delivery.connections_per_destination_max` and `delivery.connections_per_site_max`"),
            "Concurrent connections. `delivery.connections_per_site_max` applies as well, except with a section for `mx`.";
        live messages_per_connection_max: Integer(1, 1_000_000), Nothing("as `delivery.messages_per_connection_max`"),
            "Messages over a connection before a new connection is made.";
        live rate: Rate, Nothing("no limit"),
            "Messages in a time, on average. Waiting for the rate uses no delivery attempt.";
        live burst: Integer(1, 1_000_000), Nothing("the messages of a second at `rate`, at least one"),
            "Messages that may be sent at once after a pause.";
        live connection_interval: Span(1, HOUR), Nothing("no wait"),
            "The least time between the starts of two connections.";
        live priority: Choice(&["low", "normal", "high"]), Is("\"normal\""),
            "Order of destinations when `delivery.connections_max` is reached. Every destination gets connections: of seven, four go to `high`, two to `normal` and one to `low`.";
        live in_order: Choice(&["no", "yes"]), Is("\"no\""),
            "`yes`: messages are sent one at a time in the order of acceptance, also after restarts. A deferred message blocks later messages until delivered or expired; priorities have no effect.";
    }

    "route" Repeated, "An exception from delivery by MX; the first matching route applies. A message for a local domain goes to the accounts of the domain, unless a route names that domain itself." {
        live domain: Pattern, Required("domain = \"*\""),
            "`example.org` for this domain, `.example.org` for every domain below, `*` for every domain.";
        live next_hop: NextHop, Required("next_hop = \"relay.example.net:25\""),
            "`host:port`, `192.0.2.1:25` or `[2001:db8::1]:25`, resolved without MX, with `delivery.port` as the default port; `mx` for delivery by MX; `local` for mailboxes of this system.";
        live protocol: Choice(&["smtp", "lmtp"]), Is("\"smtp\""),
            "`smtp`, or `lmtp` (RFC 2033) for delivery to a mailbox server.";
        live tls: Choice(ROUTE_TLS_MODES), Nothing("as `delivery.tls`"),
            "Encryption towards this next hop, as `delivery.tls`; `implicit`: as `required`, with TLS from the first byte (port 465).";
        live username: Name, Nothing("no authentication"),
            "The user to authenticate as. Needs `tls = \"required\"`, unless the next hop is a loopback address or `password_in_clear` is set.";
        live password: SecretText, Nothing("no authentication"),
            "The password of the user. Keep the file unreadable for other users.";
        live password_file: SecretFile, Nothing("no authentication"),
            "File with the password in the first line, instead of `password`; read at the start and at each reload. Keep the file unreadable for other users.";
        live password_in_clear: Choice(&["no", "yes"]), Is("\"no\""),
            "`yes`: the password may be sent without TLS, to a next hop on a network safe from eavesdropping.";
        live source: Name, Nothing("as `delivery.source`"),
            "The `[[source]]` of the deliveries to this next hop.";
        live call_ahead: Choice(&["no", "yes"]), Is("\"no\""),
            "`yes`: mail for these domains is accepted at port 25 from every client, for recipients that the next hop accepts when it is asked by MAIL and RCPT before the client gets its reply (call-ahead). An unknown recipient gets 550 5.1.1, so that no bounce goes to a forged sender. Needs `[front]`, whose `call_ahead_` keys have the times. Clients of `relay.networks` may send anywhere, and nobody is asked.";
    }

    "source" Repeated, "Source addresses and a name for deliveries, selected by a route, or by `delivery.source` for all other deliveries." {
        live name: Name, Required("name = \"bulk\""),
            "The name for use in routes.";
        live ipv4: Ipv4, Nothing("chosen by the system"),
            "The source address of connections over IPv4.";
        live ipv6: Ipv6, Nothing("chosen by the system"),
            "The source address of connections over IPv6.";
        live hostname: HostName, Nothing("`hostname`"),
            "The name in EHLO. Receivers expect that the name has the addresses, and that the reverse records of the addresses have the name.";
    }
}
