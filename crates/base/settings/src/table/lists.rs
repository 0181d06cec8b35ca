//! Options for lists of clients in the DNS.

use super::row::Fallback::{Is, Nothing, Required};
use super::row::{DAY, GIB, HOUR, MIB, SECOND};
use crate::kind::Kind::{AnswerPatterns, Choice, HostName, SecretZone, Signed, Size, Span};

sections! {
    "front.lists" Always, "Lists of clients in the DNS (DNSBL, RFC 5782): what the answers of all `[[front.list]]` together mean. The broker asks at MAIL, all lists at once; clients of `front.allowed_networks` and `relay.networks` are not asked about." {
        live threshold: Signed(1, 1_000_000), Is("1"),
            "Sum of the weights of all lists with the client from which the client counts as listed.";
        live allow_threshold: Signed(-1_000_000, -1), Nothing("everybody is greylisted"),
            "Sum of the weights up to which a client is not greylisted: for lists of good clients, whose weights are below zero.";
        live treatment: Choice(&["refuse", "defer", "note"]), Is("\"refuse\""),
            "Treatment of a recipient from a listed client: `refuse` answers 550 5.7.1, `defer` 450 4.7.1, `note` only writes to the log and counts, for the trial of a list.";
        live unavailable: Choice(&["accept", "defer"]), Is("\"accept\""),
            "Treatment of recipients while a list does not answer and the others are below the threshold: `defer` answers 451 4.4.3.";
        live timeout: Span(SECOND, 18 * SECOND), Is("\"10s\""),
            "Longest wait for all lists and their texts. Lists without an answer by then are left out. The front waits 22 s for all answers about a recipient.";
        live text: Choice(&["yes", "no"]), Is("\"yes\""),
            "Whether a refusal has the text of the list about the client (TXT record). The text is asked for behind a listing alone, within `timeout`.";
        live ttl_min: Span(0, HOUR), Is("\"1m\""),
            "Least time for which an answer is kept, whatever its time to live.";
        live ttl_max: Span(SECOND, 7 * DAY), Is("\"1d\""),
            "Longest time for which an answer is kept. The time to live is that of the answer, or of the SOA record if there is none (RFC 2308).";
        live cache: Size(MIB, 16 * GIB), Is("\"32 MiB\""),
            "Memory for kept answers, in all some 160 bytes for an address or for a map.";
        live private_clients: Choice(&["no", "yes"]), Is("\"no\""),
            "Whether lists are asked about private, loopback and link-local addresses as well, which no public list has: for tests, and for lists of the operator's own networks.";
    }

    "front.list" Repeated, "A list of clients in the DNS. A zone may have several sections, for answers of different weights, and is asked once." {
        live zone: SecretZone, Required("zone = \"bl.example.org\""),
            "The zone of the list.";
        live name: HostName, Nothing("`zone`"),
            "The name of the list in replies, log and metrics: for zones whose name has a secret key.";
        live weight: Signed(-1_000, 1_000), Is("1"),
            "Weight of an entry. Weights below zero are for lists of good clients.";
        live answers: AnswerPatterns, Is("[]"),
            "Answers that count, as in Postfix: `127.0.0.2`, `127.0.0.[2..11]`, `127.0.[0;1].[4..7;10]`. Empty: every answer within 127.0.0.0/8, but for 127.255.255.0/24, by which lists refuse to answer. Answers outside 127.0.0.0/8 never count.";
        live maps: Choice(&["auto", "yes", "no"]), Is("\"auto\""),
            "Whether the list is asked for maps (AAAA), of which one answers for the 128 clients of a /25 of IPv4, or the 128 /64 of a /57 of IPv6. `auto`: for IPv4, where a map has the test entries of the list, 127.0.0.2 and not 127.0.0.1. Lists with maps are served by `vere dnsbl serve`.";
    }
}
