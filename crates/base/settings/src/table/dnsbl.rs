//! Options of the server of block lists.

use super::row::Fallback::{Is, Nothing, Required};
use super::row::{DAY, GIB, HOUR, SECOND};
use crate::kind::Kind::{
    Addresses, Choice, Datasets, HostName, HostNames, Integer, NetworkList, Size, Span,
};

sections! {
    "dnsbl" Optional, "A DNS server for block lists (docs/internals/dnsbl.md): classic A and TXT records for each address, and maps of 128 neighbours in AAAA records. `vere dnsbl serve` runs the server alone." {
        fixed listen: Addresses, Required("listen = [\"192.0.2.1:53\"]"),
            "Addresses for queries, by UDP and TCP. Answers leave from the address that was asked.";
        fixed threads: Integer(1, 64), Nothing("half of the processor cores, at least 1, at most 8"),
            "Threads for UDP; the kernel spreads clients over the threads.";
        live check_interval: Span(SECOND, DAY), Is("\"1m\""),
            "Interval between two checks of the files for another time or size. SIGHUP checks at once. A file with an error changes nothing: the old data remain, and the log has file, line and reason.";
        live ttl: Span(0, 30 * DAY), Is("\"35m\""),
            "TTL of records, unless the files have `$TTL`.";
        live negative_ttl: Span(0, DAY), Is("\"5m\""),
            "TTL of negative answers, unless the files have `$SOA`.";
        live name_servers: HostNames, Is("[]"),
            "Name servers of the zones whose files have no `$NS`; the first is in the SOA record. Without names the server is `hostname`.";
        live test_entries: Choice(&["yes", "no"]), Is("\"yes\""),
            "Whether every zone lists 127.0.0.2 and never 127.0.0.1, and a list of names `test` and never `invalid`, as RFC 5782 section 5 demands. Entries of the files count before.";
        fixed rate_positive: Integer(0, 1_000_000), Is("100"),
            "Answers with records per second to a /24 of IPv4 or a /56 of IPv6, by UDP and without a valid cookie; further answers are dropped or truncated (`rate_slip`). 0 is no limit.";
        fixed rate_negative: Integer(0, 1_000_000), Is("100"),
            "The same for answers that a name or type does not exist.";
        fixed rate_errors: Integer(0, 1_000_000), Is("20"),
            "The same for errors, such as queries about other zones.";
        fixed rate_surplus: Size(0, GIB), Is("\"224 KiB\""),
            "Bytes per second by which all answers may exceed 1.25 times the bytes of their queries, by UDP and without a valid cookie: what a flood from spoofed addresses gains. 0 is no limit. A server with more than 3000 queries per second from resolvers without cookies names these in `rate_exempt`, or sets more: a flood of F bytes per second gets 1.25 + `rate_surplus` / F bytes for each of its own.";
        fixed rate_slip: Integer(0, 1_000), Is("2"),
            "Of the limited answers every Nth is sent without records and with the bit TC, so that true clients ask again over TCP; the others are dropped. 0 drops all.";
        fixed rate_networks: Integer(1_024, 16_777_216), Is("65536"),
            "Networks remembered by each thread, at 24 bytes; of four in one place the calmest is forgotten first.";
        fixed rate_exempt: NetworkList, Is("[\"127.0.0.0/8\", \"::1\"]"),
            "Networks without limits, such as busy resolvers of your own. `[\"0.0.0.0/0\", \"::/0\"]` turns all limits off.";
        fixed connections_max: Integer(1, 100_000), Is("1000"),
            "TCP connections at once. Beyond them the connection is closed that has waited longest for a query, or that has read none of its answers for the longest time if none waits for a query.";
        fixed connections_per_client_max: Integer(1, 100_000), Is("20"),
            "TCP connections at once of one IPv4 address or one IPv6 /64; further ones are closed.";
        fixed idle_timeout: Span(SECOND, HOUR), Is("\"10s\""),
            "Longest wait of a TCP connection for a query, and for a client that does not read its answers.";
        fixed log_every: Integer(0, 1_000_000_000), Is("0"),
            "Of so many queries of a thread one is logged, with client, name, type and result. 0 logs none, 1 all.";
    }

    "dnsbl.zone" Repeated, "A zone of `[dnsbl]`." {
        live name: HostName, Required("name = \"bl.example.org\""),
            "The name of the zone.";
        live data: Datasets, Required("data = [\"ip4set:/var/lib/vere/bl/addresses\"]"),
            "Files as `FORMAT:FILE[,FILE...]`: rbldnsd's `ip4set`, `ip4trie`, `ip4tset`, `ip6trie`, `ip6tset`, `dnset`, `generic` and `combined`, and `cidr` for a network on each line. Replace a file by renaming a new one. A file in another folder than those at the start can be read after a restart only, and regular files alone.";
    }
}
