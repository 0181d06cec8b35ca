//! Options for incoming mail: listeners, limits of clients, and authentication.

use super::row::Fallback::{Is, Nothing, Required};
use super::row::{DAY, GIB, HOUR, KIB, MIB, MINUTE, SECOND, TIB};
use crate::kind::Kind::{
    Address, Addresses, Choice, HostName, HostNames, Integer, Name, NetworkList, Path, SecretFile,
    Size, Span, UrlHttps, Urls, Version,
};

sections! {
    "" Always, "Keys before the first section." {
        fixed version: Version, Required("version = 1"),
            "The version of this file's format: a later program can still read an older file, or refuse the file with an error.";
        fixed hostname: HostName, Required("hostname = \"mx.example.org\""),
            "The fully qualified name of this system, used in the greeting, HELO, Received and Message-ID fields. The name's address record and the reverse record of the address should agree with the name; other systems refuse mail otherwise.";
        fixed data: Path, Is("\"/var/lib/vere\""),
            "The directory of all data without a path of their own.";
        fixed user: Name, Nothing("the user that started the system"),
            "The user to become when started as root, after the ports are open.";
    }

    "smtp" Always, "Mail from other systems." {
        fixed listen: Addresses, Is("[\"[::]:25\"]"),
            "Addresses to listen on. `[::]` also accepts IPv4. An empty list disables the service.";
    }

    "submission" Always, "Submission of local users' mail, with authentication, behind STARTTLS (RFC 6409)." {
        fixed listen: Addresses, Is("[]"),
            "Addresses to listen on, usually `[\"[::]:587\"]`. Off by default: submission needs accounts and a certificate.";
    }

    "submissions" Always, "Submission of local users' mail, with authentication, TLS from the first byte (RFC 8314)." {
        fixed listen: Addresses, Is("[]"),
            "Addresses to listen on, usually `[\"[::]:465\"]`. Needs a certificate.";
    }

    "imap" Always, "The mail store for IMAP clients, behind STARTTLS (RFC 9051). The store runs if `imap`, `imaps` or `lmtp` listens." {
        fixed listen: Addresses, Is("[]"),
            "Addresses to listen on, usually `[\"[::]:143\"]`.";
    }

    "imaps" Always, "The mail store for IMAP clients, TLS from the first byte (RFC 8314)." {
        fixed listen: Addresses, Is("[]"),
            "Addresses to listen on, usually `[\"[::]:993\"]`. Needs a certificate.";
    }

    "lmtp" Always, "The mail store for delivery over LMTP (RFC 2033). Any client that connects may store mail for every account: never open these addresses to the internet." {
        fixed listen: Addresses, Is("[\"127.0.0.1:24\"]"),
            "Addresses to listen on. The gateway delivers to the first address. An empty list requires `delivery.local = \"maildir\"`.";
    }

    "quota" Always, "Quota of an account in the mail store, over all its mailboxes. An account over quota can still read, move and delete messages, but not add any: clients get `NO [OVERQUOTA]`." {
        live size_max: Size(KIB, 1024 * TIB), Nothing("no limit"),
            "Bytes of all messages of an account, including copies.";
        live messages_max: Integer(1, 4_000_000_000), Is("1000000"),
            "Messages of an account, including copies: a copy shares its text with the original, but still costs memory and time.";
        live over: Choice(&["defer", "reject"]), Is("\"defer\""),
            "Mail for an account over quota: `defer` keeps the mail in the queue (452 4.2.2), `reject` returns the mail to the sender at once (552 5.2.2).";
        live warn_at: Integer(1, 100), Is("90"),
            "Percentage of the quota. A delivery that reaches the percentage is logged as a warning with the account's name.";
    }

    "quota.account" Repeated, "Per-account quotas; omitted keys fall back to `[quota]`." {
        live name: Name, Required("\"alice@example.org\""),
            "The account.";
        live size_max: Size(KIB, 1024 * TIB), Nothing("as `quota.size_max`"),
            "Bytes of all messages of the account.";
        live messages_max: Integer(1, 4_000_000_000), Nothing("as `quota.messages_max`"),
            "Messages of the account.";
    }

    "limits" Always, "Limits on the requests of clients. At a limit the client gets the precise error; messages accepted earlier stay accepted." {
        live message_size_max: Size(64 * KIB, 2 * GIB), Is("\"50 MiB\""),
            "Bytes of a message, announced by SIZE. Large providers accept 25 to 50 MB; base64 makes a message a third larger than the attached files. At most half of `body_memory_max` and of `body_disk_max`.";
        live recipients_max: Integer(100, 100_000), Is("1000"),
            "Recipients of a message, announced by LIMITS. RFC 5321 section 4.5.3.1.8 asks for at least 100.";
        live command_line_length_max: Size(512, 64 * KIB), Is("\"12 KiB\""),
            "Bytes of a command line with CRLF. RFC 5321 asks for 512, RFC 4954 for 12288 in authentication.";
        live text_line_length_max: Size(1_000, GIB), Is("\"64 KiB\""),
            "Bytes of a line in a message, with CRLF. RFC 5321 asks for 1000; but many programs write HTML in a single line, and a lower limit loses wanted mail.";
        live hops_max: Integer(30, 1_000), Is("100"),
            "Received fields of a message before the message is refused as looping. RFC 5321 section 6.3 asks for at least 100.";
        live messages_per_connection_max: Integer(1, 1_000_000), Is("1000"),
            "Messages over a connection, announced by LIMITS; the client reconnects for further messages.";
        live errors_max: Integer(1, 1_000), Is("20"),
            "Refused commands before the connection is closed. Legitimate clients stay far below this limit; clients that guess addresses do not.";
        live auth_failures_max: Integer(1, 100), Is("3"),
            "Failed authentications before the connection is closed.";
        live command_timeout: Span(SECOND, DAY), Is("\"5m\""),
            "Longest wait for a command. RFC 5321 section 4.5.3.2.7 asks for 5 minutes.";
        live data_timeout: Span(SECOND, DAY), Is("\"10m\""),
            "Longest pause within a message.";
        live data_time_max: Span(MINUTE, DAY), Is("\"2h\""),
            "Longest time for a whole message by SMTP. A client slower than 1 KiB/s has `data_timeout`, and another second for each KiB sent.";
        fixed parse_timeout: Span(SECOND, HOUR), Is("\"30s\""),
            "Longest silence of the process that parses the mail store's messages; each 4 MiB of a message add one second. After the timeout the process is ended and the message tried again. After two failed attempts only the header is parsed, and after a third the message is stored unparsed. The timeout also applies to processes that decode texts for SEARCH and the search index. Ordinary messages take less than a millisecond.";
        fixed connections_max: Integer(1, 1_000_000), Is("20000"),
            "Concurrent connections. Each connection needs a file descriptor, and up to 16 KiB while idle.";
        live connections_per_client_max: Integer(1, 1_000_000), Is("100"),
            "Concurrent connections from one IPv4 address or one IPv6 /64, so that a single client cannot use all connections.";
        live body_memory_max: Size(MIB, TIB), Is("\"256 MiB\""),
            "Memory for messages being received. The limit applies separately to the gateway, to the mail store's clients and to deliveries to the store. Above the limit, stalled messages are refused with 452 (IMAP: `NO [LIMIT]`), first the messages with the most memory for their rate; the clients try again. A single client gets a quarter of the memory, or one message; an eighth is reserved for authenticated clients.";
        live fetch_memory_max: Size(8 * MIB, TIB), Is("\"64 MiB\""),
            "Memory of the mail store for messages that IMAP clients have requested and not yet read; the sessions of an account share a quarter. Short answers get memory at once, longer answers wait for memory in turn. A client that holds memory and reads less than 1 KiB/s over a minute is disconnected. A message with parts to decode, and larger than half of this memory, is read while no other such message is.";
        live body_disk_max: Size(MIB, TIB), Is("\"1 GiB\""),
            "Disk space for the received parts of messages above 1 MiB, in unnamed files in `data`. The space is shared like `body_memory_max`: above the limit, messages are refused with 452, first the messages with the most space for their rate.";
        live queued_messages_max: Integer(1, 1_000_000_000), Is("10000000"),
            "Messages in all queues, counted once per destination; at the limit clients get 452 and try again. A queued message needs some 75 bytes of the gateway's memory.";
        live throttle_from: Integer(1, 100), Is("95"),
            "Percentage from which new mail is throttled: of `queued_messages_max`, of the space of the fullest spool node (`spool.memory_max` and `spool.spill_max`), or of `spool.group_max`. New connections then get 421 and new messages 452, so that messages in progress find space. New messages of unauthenticated clients also get 452 at the same percentage of their share of `body_memory_max`, if no message there is stalled.";
        live throttle_until: Integer(1, 100), Is("90"),
            "Percentage below which throttling ends; at most `throttle_from`.";
        live messages_per_destination_max: Integer(1, 1_000_000_000), Is("5000000"),
            "Messages waiting for one destination; at the limit further recipients of the destination get 452.";
        live octets_per_destination_max: Size(MIB, 1024 * TIB), Is("\"1 TiB\""),
            "Bytes waiting for one destination; at the limit further recipients of the destination get 452.";
        live queue_memory_max: Size(MIB, TIB), Is("\"256 MiB\""),
            "Memory for the messages next in line. Further messages wait in the spool, and need some 75 bytes each of the gateway's memory beside this limit.";
    }

    "relay" Always, "Clients allowed to send to any destination without authentication." {
        live networks: NetworkList, Is("[]"),
            "Networks of such clients. None by default: an open relay is found within hours.";
    }

    "priority" Always, "Priority of messages, from -9 to 9 (MT-PRIORITY, RFC 6710). Messages of higher priority leave the queue first, but one message in eight is the oldest." {
        live networks: NetworkList, Is("[]"),
            "Networks whose clients may set a priority above 0 without authentication. Messages of other clients get priority 0, as the reply tells the client.";
        live policy: Choice(&["none", "mixer", "stanag4406", "nsep"]), Is("\"none\""),
            "The name of the announced priority policy, without further effect.";
    }

    "xclient" Always, "Front ends allowed to pass on a client's address by XCLIENT." {
        live networks: NetworkList, Is("[]"),
            "Networks of trusted front ends, whose statements about a client are believed. Behind a load balancer the address of the client counts, never the address of the balancer.";
        live proxy_overlap: Choice(&["refused", "allowed"]), Is("\"refused\""),
            "Whether `networks` and `proxy.networks` may share addresses. A load balancer then also has the right for its own connections.";
    }

    "proxy" Always, "Load balancers whose connections begin with a PROXY header, version 1 or 2." {
        live networks: NetworkList, Is("[]"),
            "Networks of load balancers in front of the SMTP ports. A connection from these networks without the header is closed.";
        live imap_networks: NetworkList, Is("[]"),
            "Networks of load balancers in front of the IMAP ports. A connection from these networks without the header is closed.";
    }

    "auth" Always, "Authentication of local users." {
        live plaintext_networks: NetworkList, Is("[]"),
            "Networks whose clients may authenticate without TLS. For tests on loopback.";
    }

    "tls" Always, "The default certificate, for clients without a matching server name. A reload reads the files again." {
        live certificate: Path, Nothing("no certificate from a file"),
            "PEM file of the certificate chain, the server's own certificate first.";
        live key: SecretFile, Nothing("no certificate from a file"),
            "PEM file of the private key.";
    }

    "tls.sni" Repeated, "A certificate for one server name." {
        live name: HostName, Required("name = \"mail.example.org\""),
            "The server name requested by clients.";
        live certificate: Path, Required("certificate = \"mail.pem\""),
            "PEM file of the certificate chain.";
        live key: SecretFile, Required("key = \"mail.key\""),
            "PEM file of the private key.";
    }

    "acme" Optional, "Certificates obtained and renewed from a CA by ACME (RFC 8555). The presence of this section, even empty, means consent to the terms of the CA." {
        live directory: UrlHttps, Is("\"https://acme-v02.api.letsencrypt.org/directory\""),
            "The ACME directory URL of the CA.";
        live contact: Urls("mailto:"), Is("[]"),
            "Contact addresses for the CA, such as `[\"mailto:postmaster@example.org\"]`.";
        live domains: HostNames, Is("[]"),
            "The names of the certificate; only `hostname` when empty.";
        live root: Path, Nothing("the system's roots"),
            "PEM file of roots for the TLS connection to the CA; for test CAs.";
        live challenge: Choice(&["http-01", "tls-alpn-01", "dns-01"]), Is("\"http-01\""),
            "How the CA sees that the names lead here: `http-01`, a file at port 80; `tls-alpn-01`, a certificate at port 443 (RFC 8737); `dns-01`, a record in the DNS, for machines that no CA reaches. A change from or to `tls-alpn-01` opens another port, and needs a restart.";
        fixed listen: Addresses, Nothing("with `http-01`: `[\"[::]:80\"]`, or none where `web.http` listens, which answers challenges too"),
            "Addresses for http-01 challenges; the CA connects to port 80 (RFC 8555 section 8.3).";
        fixed tls_listen: Addresses, Nothing("with `tls-alpn-01`: `[\"[::]:443\"]`, or none where `web.https` has port 443"),
            "Addresses for tls-alpn-01 challenges, which nothing else may have; the CA connects to port 443. The listeners of `web.https` answer these challenges too.";
        live dns_server: Address, Nothing("no updates"),
            "The primary name server of the zone, with its port, such as `\"192.0.2.53:53\"`: it takes updates (RFC 2136) over TCP, which add and remove records `_acme-challenge`.";
        live dns_zone: HostName, Nothing("the nearest zone that the server knows"),
            "The zone of the updates.";
        live dns_key: SecretFile, Nothing("unsigned updates"),
            "The file of the key that signs updates (TSIG, RFC 8945), as `tsig-keygen` of BIND writes it: hmac-sha256, hmac-sha384 or hmac-sha512.";
        live dns_hook: Path, Nothing("no program"),
            "A program that publishes records in place of updates. It is executed as `PROGRAM add NAME VALUE`, and as `PROGRAM remove NAME VALUE` when the order has ended, as the user of the system, with PATH alone in the environment, for two minutes at most; exit code 0 says that the record is published.";
        live dns_wait: Span(0, HOUR), Is("\"10s\""),
            "Time between the record and the look of the CA, which may ask any name server of the zone.";
    }
}
