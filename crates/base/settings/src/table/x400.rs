//! Options of the X.400 MTA.

use super::row::Fallback::{Is, Nothing, Required};
use super::row::{DAY, GIB, KIB, MINUTE, SECOND};
use crate::kind::Kind::{
    Addresses, Choice, HostName, Hosts, Integer, IpAddresses, OrAddress, OrAddresses, Path,
    SecretFile, SecretText, Size, Span, Spans, Word, Words,
};

sections! {
    "x400" Optional, "An MTA of X.400 (P1, X.411), beside the SMTP gateway and on the same spool (docs/internals/x400.md). Its queues belong to the group `x400.MTA_NAME`. Files below `{data}/x400`: `users`, `archive`, `audit`, and the socket for gateways and for `vere x400`." {
        fixed listen: Addresses, Required("listen = [\"192.0.2.1:102\"]"),
            "Addresses for associations, over RFC 1006 or RFC 2126.";
        fixed listen_tls: Addresses, Is("[]"),
            "Addresses for associations with TLS from the first octet, with the certificate of `[tls]`.";
        fixed client_ca: Path, Nothing("no certificates of callers"),
            "PEM file with the roots that issue certificates of callers. Callers at `listen_tls` are then asked for a certificate, which `caller_certificate` of a peer requires.";
        fixed mta_name: Word, Nothing("the first label of `hostname`"),
            "The name of the MTA in its domain, at most 32 characters of IA5.";
        fixed domain: OrAddress, Required("domain = \"C=GB; A=Carrier; P=Acme\""),
            "The global domain identifier: the management domain in trace and identifiers.";
        live connections_max: Integer(1, 100_000), Is("1000"),
            "Connections of callers at once. A further one is closed.";
        live size_max: Size(64 * KIB, GIB), Is("\"32 MiB\""),
            "Octets of a transferred unit. A longer one is refused before the responsibility changes.";
        live recipients_max: Integer(1, 32_767), Is("32767"),
            "Recipients of a message.";
        live return_size_max: Size(0, GIB), Is("\"2 MiB\""),
            "Octets of a content that a report about a failure returns, where the originator asks for it.";
        live retry: Spans(SECOND, 30 * DAY), Is("[\"1m\", \"5m\", \"15m\"]"),
            "Waits before the second, third, ... attempt; the last wait repeats.";
        live expire_urgent: Span(MINUTE, 30 * DAY), Is("\"4h\""),
            "Age at which an urgent message is given up and reported. The defaults of the three grades are the times of F.410. A latest delivery time ends attempts earlier.";
        live expire_normal: Span(MINUTE, 30 * DAY), Is("\"24h\""),
            "The same for a normal message.";
        live expire_non_urgent: Span(MINUTE, 30 * DAY), Is("\"36h\""),
            "The same for a non-urgent message.";
        live alternate: OrAddress, Nothing("reports to originators"),
            "The recipient of messages for unknown users of local domains, where the originator allows an alternate recipient.";
        fixed archive: Choice(&["yes", "no"]), Is("\"yes\""),
            "Whether every message, probe and report is archived once, before the responsibility for it is taken. `vere x400 archive` finds and exports entries.";
        fixed archive_keep: Span(0, 36_500 * DAY), Is("\"0s\""),
            "Age at which a day of the archive is removed. 0 keeps the archive for ever.";
        fixed audit: Choice(&["yes", "no"]), Is("\"yes\""),
            "Whether the audit log is written: a line of JSON for each association, arrival, attempt, delivery and report.";
        fixed audit_keep: Span(0, 36_500 * DAY), Is("\"90d\""),
            "Age at which a day of the audit log is removed. 0 keeps the log for ever.";
        live log_level: Choice(&["error", "warn", "info", "debug", "trace"]), Is("\"error\""),
            "The least important level that the MTA writes to the log, in place of `log.level`: the audit log has what becomes of messages and associations.";
        fixed socket: Path, Is("\"{data}/x400/attach.sock\""),
            "The socket for gateways and `vere x400 send` (docs/internals/attach.md), at most 107 bytes. Whoever opens the socket sends as anybody, so only the system's user has access.";
    }

    "x400.peer" Repeated, "Another MTA. A peer needs a password, addresses in `from` or a certificate, since otherwise anybody could call in its name." {
        live name: Word, Required("name = \"mta2\""),
            "The name for routes, queues and logs; the case of letters makes no difference.";
        live domain: OrAddress, Required("domain = \"C=FR; A=Atlas\""),
            "The global domain identifier of the peer. A peer of the own domain gets internal trace.";
        live mta_name: Word, Nothing("the name of the peer"),
            "The name that the peer gives in its bind.";
        live password: SecretText, Nothing("no password"),
            "The password that the peer gives. Keep the file unreadable for other users.";
        live password_file: SecretFile, Nothing("no password"),
            "File with that password in the first line, instead of `password`.";
        live nameless: Choice(&["no", "yes"]), Is("\"no\""),
            "`yes`: the peer binds without name and password, in both directions.";
        live own_name: Word, Nothing("`x400.mta_name`"),
            "The name that this MTA gives to the peer.";
        live own_password: SecretText, Nothing("an empty password"),
            "The password that this MTA gives to the peer.";
        live own_password_file: SecretFile, Nothing("an empty password"),
            "File with that password in the first line, instead of `own_password`.";
        live addresses: Hosts, Is("[]"),
            "Hosts of the peer with ports, in the order of attempts; the default port is 102. Without addresses the peer is never called, and its messages wait until they expire.";
        live from: IpAddresses, Is("[]"),
            "Addresses from which the peer calls. An empty list permits every address.";
        live caller_certificate: HostName, Nothing("no certificate is required"),
            "A DNS name in the certificate that the peer shows when it calls; needs `x400.listen_tls` and `x400.client_ca`.";
        live tls: Choice(&["no", "yes"]), Is("\"no\""),
            "`yes`: calls to the peer are encrypted, and its certificate has to be valid for `certificate`. A peer that asks is shown the certificate of `[tls]`.";
        live certificate: HostName, Nothing("the host of the address"),
            "The name in the certificate of the peer.";
        live profile: Choice(&["1988", "1984"]), Is("\"1988\""),
            "The version of P1: `1988` and later in normal mode, or `1984` in X.410 mode.";
        live selector: Word, Nothing("no selector"),
            "The transport selector of the peer, in ASCII or as `0x` and hexadecimal digits.";
        live own_selector: Word, Nothing("no selector"),
            "The transport selector of this MTA toward the peer.";
        live associations_max: Integer(1, 1_000), Is("10"),
            "Associations at once, in each direction.";
        live two_way: Choice(&["no", "yes"]), Is("\"no\""),
            "`yes`: the peer may send over associations that this MTA opens (two-way alternate), with `size_max` in memory for each of them; `no`: these associations carry units to the peer alone (monologue).";
        live permanent: Integer(0, 1_000), Is("0"),
            "Associations to the peer that stay open without messages.";
        live messages_per_association_max: Integer(1, 1_000_000), Is("1000"),
            "Messages over an association before other queues get their turn.";
        live accept_originators: OrAddresses, Is("[]"),
            "Originators of messages from the peer: upper parts of addresses. An empty list permits every originator.";
        live refuse_originators: OrAddresses, Is("[]"),
            "Refused originators. Of both lists the longest part counts.";
        live accept_recipients: OrAddresses, Is("[]"),
            "Recipients of messages from the peer.";
        live refuse_recipients: OrAddresses, Is("[]"),
            "Refused recipients.";
        live accept_content_types: Words, Is("[]"),
            "Content types of messages from the peer: `2`, `22` or object identifiers. An empty list permits every type.";
        live accept_size_max: Size(1, GIB), Nothing("`x400.size_max`"),
            "Octets of a content from the peer.";
        live send_originators: OrAddresses, Is("[]"),
            "Originators of messages to the peer; otherwise as `accept_originators`.";
        live withhold_originators: OrAddresses, Is("[]"),
            "Originators whose messages do not go to the peer.";
        live send_recipients: OrAddresses, Is("[]"),
            "Recipients of messages to the peer.";
        live withhold_recipients: OrAddresses, Is("[]"),
            "Recipients whose messages do not go to the peer.";
        live send_content_types: Words, Is("[]"),
            "Content types of messages to the peer.";
        live send_size_max: Size(1, GIB), Nothing("no limit"),
            "Octets of a content to the peer.";
    }

    "x400.route" Repeated, "The destination of addresses; of several rows that match, the longest counts. `vere x400 route ADDRESS` tries the rows." {
        live address: OrAddress, Required("address = \"C=FR; A=Atlas\""),
            "The upper part of O/R addresses in a text form, or `*` for every address.";
        live to: Word, Required("to = \"peer:mta2\""),
            "`peer:NAME`, `file:USER` for files below `{data}/x400/users`, `store:ACCOUNT` for a mailbox of the mail store, `gateway:NAME`, or `unknown` for addresses without users.";
        live whole: Choice(&["no", "yes"]), Is("\"no\""),
            "`yes`: the row stands for this address alone, and not for longer ones.";
    }

    "x400.user" Repeated, "Terms of a local user; a user without a section accepts everything." {
        live name: Word, Required("name = \"smith\""),
            "The name in `file:NAME`, or the account in `store:ACCOUNT`.";
        live content_types: Words, Is("[]"),
            "Content types that the user accepts; an empty list accepts every type.";
        live size_max: Size(1, GIB), Nothing("no limit"),
            "Octets of a content for the user.";
        live redirect_to: OrAddress, Nothing("no redirection"),
            "The address to which all messages of the user are redirected.";
    }

    "x400.gateway" Repeated, "A program that attaches to the socket under a name, and gets the messages of the routes to `gateway:NAME`." {
        live name: Word, Required("name = \"aftn\""),
            "The name.";
        live keep_max: Integer(1, 1_000), Is("10"),
            "Messages on their way to the program at once.";
    }
}
