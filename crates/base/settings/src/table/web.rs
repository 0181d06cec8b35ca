//! Options of the web server for clients and other systems.

use super::row::Fallback::{Is, Nothing};
use super::row::{DAY, KIB, MIB, MINUTE, SECOND};
use crate::kind::Kind::{Addresses, Choice, HostName, HostNames, Integer, Size, Span, Urls};

/// The longest life of an MTA-STS policy (RFC 8461 section 3.2).
const POLICY_LIFE: u64 = 31_557_600 * SECOND;

sections! {
    "web" Optional, "A web server for mail programs and other systems, for every local domain: the MTA-STS policy, automatic configuration of mail programs (Thunderbird, Outlook, Apple), `security.txt`, and challenges of ACME. A process of its own without private keys and without the directory. Needs a certificate: `[tls]`, `[[tls.sni]]` or `[acme]`, which also orders certificates for the names `mta-sts`, `autoconfig` and `autodiscover` of each local domain that lead to this machine." {
        fixed https: Addresses, Is("[\"[::]:443\"]"),
            "Addresses for HTTPS. With an empty list there is no HTTPS, and nothing but challenges of ACME is answered.";
        fixed http: Addresses, Is("[\"[::]:80\"]"),
            "Addresses for HTTP: challenges of ACME (http-01) are answered, any other request for a known name is redirected to HTTPS.";
        live host: HostName, Nothing("`hostname`"),
            "The host name that mail programs are told to connect to. Its certificate must be valid for it.";
        live mta_sts: Choice(&["off", "testing", "enforce", "none"]), Is("\"testing\""),
            "The mode of the MTA-STS policy (RFC 8461 section 5): `testing`, other systems report failures of TLS and deliver nevertheless; `enforce`, they do not deliver without valid TLS; `none` withdraws an earlier policy; `off` publishes no policy. The policy counts for domains with a TXT record `_mta-sts`; change the `id` of the record with the policy.";
        live mta_sts_max_age: Span(SECOND, POLICY_LIFE), Is("\"7d\""),
            "How long other systems keep the policy.";
        live mx: HostNames, Is("[]"),
            "The hosts of the policy: the MX hosts of the local domains. Only `hostname` when empty.";
        live security_contact: Urls("mailto:"), Is("[]"),
            "Contacts in `security.txt` (RFC 9116), such as `[\"mailto:security@example.org\"]`; `postmaster` of the domain when empty.";
        live connections_max: Integer(1, 10_000), Is("1000"),
            "Connections at once, HTTPS and HTTP each. Beyond them the oldest connection is closed of the client with the most connections.";
        live connections_per_client_max: Integer(1, 10_000), Is("20"),
            "Connections at once of one IPv4 address or one IPv6 /64; further ones are closed.";
        live header_size_max: Size(8 * KIB, 64 * KIB), Is("\"8 KiB\""),
            "Bytes of the header of a request; a longer one gets 431.";
        live body_size_max: Size(KIB, MIB), Is("\"16 KiB\""),
            "Bytes of the body of a request; a longer one gets 413.";
        live request_timeout: Span(SECOND / 10, MINUTE), Is("\"5s\""),
            "Longest wait for a whole header, and then for a whole body (408).";
        live connection_timeout: Span(SECOND, DAY), Is("\"15s\""),
            "Longest time of a connection, with handshake, request and answer: a connection carries one request. Clients that read slowly are disconnected.";
    }
}
