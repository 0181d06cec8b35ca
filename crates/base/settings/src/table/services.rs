//! Options for further services: local programs that send mail, and signatures.

use super::row::Fallback::{Is, Nothing};
use super::row::{KIB, MIB, SECOND, TIB};
use crate::kind::Kind::{
    Choice, HeloPatterns, HostName, Integer, MailAddress, Name, NetworkList, Path, SecretFile,
    SenderPatterns, Size, Span, UrlHttp,
};

sections! {
    "sendmail" Optional, "Mail from programs and users of this machine, through `vere sendmail`. Every user with an account on the machine may send, without a password; the trace shows the user's number." {
        fixed socket: Path, Is("\"/run/vere/sendmail.sock\""),
            "The socket for `vere sendmail`, at most 107 bytes. Users without permission to read this file look for the socket at the default path.";
        live domain: HostName, Nothing("`hostname`"),
            "The domain for addresses given without a domain, such as `root`.";
    }

    "front" Optional, "Processes of their own for port 25. The front answers every client until its first recipient is accepted; a worker, in a sandbox, receives the messages of those that got so far. Without the section the gateway does all of it." {
        fixed workers: Integer(1, 256), Is("2"),
            "Processes that receive messages.";
        fixed loops: Integer(1, 16), Nothing("half of the processor cores, at least 1, at most 16 and at most `workers`"),
            "Threads of the front that serve clients; none may be without a worker. All clients of a /24 of IPv4 and a /64 of IPv6 have the same thread, and a thread has workers of its own, so that a site whose mail comes from few networks gains little by more than one.";
        fixed tasks_per_worker: Integer(1, 10_000), Is("28"),
            "Sessions that wait at a worker, which begins them at once unless it is busy. Where so many wait at all workers, further clients are told to try again later.";
        fixed sessions_at_once: Integer(1, 10_000), Is("10000"),
            "Sessions that a worker has at once. Where all workers have so many, further clients are told to try again later.";
        fixed hand_over: Choice(&["trusted", "connected"]), Is("\"trusted\""),
            "The time at which a worker gets a session: `trusted` with its first accepted recipient, `connected` at once. With `connected` and `sessions_at_once = 1` a process serves one connection at a time, as in servers without a front; greylisting, the front's counts and STARTTLS are missing then. For comparison only.";
        fixed sessions_per_worker: Integer(1, 1_000_000_000), Is("10000"),
            "Sessions after which a worker ends and a fresh one takes its place.";
        fixed tls_threads: Integer(1, 256), Is("2"),
            "Threads for clients that say STARTTLS: handshakes, and the octets behind them unless the kernel encrypts these. The signer, a separate process, has the private keys.";
        fixed kernel_tls: Choice(&["off", "on"]), Is("\"off\""),
            "With `on`, the kernel encrypts connections of TLS 1.3 behind their handshakes where it can (module `tls`, which `modprobe tls` loads); the log of the start says so. Otherwise, and for TLS 1.2, the threads of `tls_threads` do. With `on`, strangers reach the kernel's parser of records (CVE-2025-39682 was a fault there), and a flood of empty records can hold a whole loop of the front: for machines whose kernels are kept up to date.";
        live banner_delay: Span(0, 60 * SECOND), Is("\"2s\""),
            "Pause before the greeting. Programs that send unwanted mail often speak before, and are refused (554). An address whose session got as far as a recipient within a day, and `relay.networks`, are greeted at once.";
        live connections_per_minute: Integer(0, 1_000_000), Is("300"),
            "Connections of an address in a minute; further ones get 421. A /24 of IPv4 and a /64 of IPv6 have four times as many. 0 is no limit; none applies to `relay.networks`.";
        live refused_recipients_max: Integer(1, 1000), Is("10"),
            "Recipients and senders that may be refused for good in a session, in the front and later in a worker; the session ends with the last of them.";
        live refused_recipients_per_hour: Integer(0, 1_000_000), Is("100"),
            "Recipients of an address that may be refused within an hour, those that a worker refuses included; then its connections get 421. A /24 of IPv4 and a /64 of IPv6 have four times as many. 0 is no limit; none applies to `relay.networks`.";
        live allowed_networks: NetworkList, Is("[]"),
            "Networks that are greeted at once and to which no limit of an address, no SPF and no greylist applies, as to `relay.networks`; they may not relay for that. They count before `refused_networks`.";
        live refused_networks: NetworkList, Is("[]"),
            "Networks that get 554 in place of the greeting. They count before `relay.networks`.";
        live refused_helo: HeloPatterns, Is("[]"),
            "Names in HELO or EHLO whose clients get 554 for MAIL: `mx.example.net`, or `.example.net` for every name below it. Neither these names nor the senders below concern `allowed_networks` and `relay.networks`.";
        live refused_senders: SenderPatterns, Is("[]"),
            "Senders that get 550: `bob@example.net`, `example.net` for every address of a domain, `.example.net` for those of the domains below it, `<>` for reports, which come from no sender.";
        live allowed_senders: SenderPatterns, Is("[]"),
            "Exceptions from `refused_senders`. Nothing else is allowed to them: any client can claim to be any sender.";
        live spf: Choice(&["off", "fail", "softfail"]), Is("\"off\""),
            "With `fail`, a recipient gets 550 5.7.23 where the sender's domain states by SPF that it does not send from the client (fail), or the domain that the client gave in HELO states so; with `softfail` also where the domain probably does not (softfail). Mail that is forwarded without a new sender fails as well, so that this is off unless set. Domain names are looked up as for outgoing mail, see `[resolver]`.";
        live spf_unavailable: Choice(&["accept", "defer"]), Is("\"accept\""),
            "Treatment of recipients while SPF has no result because the DNS does not answer within 20 s, or the broker is away or has too much to do (temperror): `defer` answers 451 4.7.24.";
        live spf_permerror: Choice(&["accept", "refuse"]), Is("\"accept\""),
            "Treatment of recipients where the SPF record of the sender's domain is wrong (permerror): `refuse` answers 550 5.7.24.";
        live call_ahead_unavailable: Choice(&["accept", "defer"]), Is("\"defer\""),
            "Treatment of a recipient of a route with `call_ahead` while the next hop cannot be asked, or gives no definite answer: `defer` answers 450 4.4.1, `accept` accepts every recipient, and bounces may follow.";
        live call_ahead_timeout: Span(SECOND, 15 * SECOND), Is("\"10s\""),
            "Longest wait for the answer of a next hop about a recipient, the wait for a connection included.";
        live call_ahead_keep_accepted: Span(0, 30 * 86_400 * SECOND), Is("\"1d\""),
            "Time for which a recipient that the next hop has accepted counts as accepted.";
        live call_ahead_keep_refused: Span(0, 86_400 * SECOND), Is("\"15m\""),
            "Time for which a recipient that the next hop has refused counts as refused; a new mailbox there gets mail after that time at the latest.";
        live greylist: Choice(&["off", "on"]), Is("\"off\""),
            "With `on`, a client that is not known gets 451 for the first attempt of a sender and a recipient, and passes when it tries again. Clients count by /24 of IPv4 and /64 of IPv6; after five such passes a network is known for 35 days.";
        live greylist_delay: Span(0, 3_600 * SECOND), Is("\"5m\""),
            "Time before another attempt is taken.";
    }

    "dkim" Optional, "DKIM signatures on local users' mail: sent after authentication, from `relay.networks`, or by `vere sendmail`. `vere dkim keygen` makes the keys; only the signer, a separate process, reads the keys. A message is signed by the key of the domain in the From field, or of the nearest parent domain with a key; without a key the message is sent unsigned." {
        fixed keys: Path, Is("\"{data}/dkim\""),
            "The directory of the keys.";
        fixed socket: Path, Is("\"{data}/signer.sock\""),
            "The socket between gateway and signer, at most 107 bytes; accessible only to the system's user.";
        live when_unavailable: Choice(&["defer", "unsigned"]), Is("\"defer\""),
            "Treatment of a message while the signer does not answer: `defer` tells the client to try again later (451), `unsigned` sends the message without a signature.";
        live arc: Choice(&["no", "yes"]), Is("\"yes\""),
            "Whether received mail that an alias forwards to another system is sealed (ARC, RFC 8617) by the RSA key of the alias's domain, or of the nearest parent domain with one. The next system can then see the results of authentication that this system found, which forwarding may break. Needs `judging`, which finds the results. Mail whose chain of seals is broken, and mail for which the signer does not answer, is sent without a seal.";
    }

    "reports" Optional, "Reports to other systems: about mail in the name of their domains, and about the encryption of mail to them. A gateway reports what it has received and sent itself." {
        live dmarc: Choice(&["off", "daily"]), Is("\"off\""),
            "With `daily` each domain whose DMARC record has `rua=` gets an aggregate report (RFC 9990) about the messages that claimed to be from it, in the hours behind each day (UTC). A report has the addresses of clients, the domains of senders, and the results of SPF, DKIM and DMARC; it has no addresses of persons and no text. Needs `[judging]`, `[front]` and `contact`.";
        live tls: Choice(&["off", "daily"]), Is("\"off\""),
            "With `daily` each domain with a TLSRPT record gets a report (RFC 8460) about the encryption of the connections that this system made to the hosts of the domain, in the hours behind each day (UTC). A report has the domain's policy (DANE, MTA-STS), numbers of connections, failures, the names and addresses of the domain's hosts and the addresses of this system; it has nothing about messages. Needs `contact`.";
        live organization: Name, Nothing("`hostname`"),
            "The organization that reports.";
        live contact: MailAddress, Nothing("no address"),
            "The address for questions about reports. Every report has it.";
        live from: MailAddress, Nothing("`postmaster` at `hostname`"),
            "The address in From of reports. Receivers of reports look at their DKIM signature, so the domain should have a key.";
    }

    "records" Optional, "A line of JSON for every finished message (for billing, say), and for every notification, to a file or to a web server, at least once. The lines wait in the spool, like mail, until file or web server has stored them. The schema is in docs/internals/records.md. Gateways that adopt each other's queues need the same section." {
        fixed file: Path, Nothing("no file"),
            "The file to which lines are appended. Every gateway needs a file of its own. Another program may rename the file: later lines go into a new file. Set either this key or `webhook`.";
        fixed file_size_max: Size(MIB, TIB), Is("\"100 MiB\""),
            "A file that would exceed this size is set aside, with a dot and the time appended to the name. Such files are never removed.";
        fixed webhook: UrlHttp, Nothing("no web server"),
            "The URL for the POST requests. After any answer except 2xx the lines are sent again; redirects are not followed.";
        fixed webhook_ca: Path, Nothing("the system's roots"),
            "PEM file of the CAs for the web server's certificate, instead of the system's roots.";
        fixed webhook_secret: SecretFile, Nothing("no secret"),
            "The file with the secret for the signatures of the requests (HMAC-SHA-256, field Vere-Signature). Line ends behind the secret are ignored.";
        fixed webhook_timeout: Span(SECOND, 600 * SECOND), Is("\"30s\""),
            "Longest wait for the answer to a request.";
        live waiting_max: Size(64 * KIB, TIB), Is("\"256 MiB\""),
            "Bytes of waiting lines. Above the limit clients are told to try again later (452): no line is ever dropped.";
    }
}
