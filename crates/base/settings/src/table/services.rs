//! Options for further services: local programs that send mail, and signatures.

use super::row::Fallback::{Is, Nothing};
use super::row::{KIB, MIB, SECOND, Section, Shape, TIB, fixed, live};
use crate::kind::Kind::{Choice, HostName, Path, Size, Span, UrlHttp};

/// The sections, in the order of the reference.
pub(super) static SECTIONS: &[Section] = &[
    Section {
        name: "sendmail",
        shape: Shape::Optional,
        text: "Mail from the programs and users of this machine, through `vere sendmail`. Everybody who has an account on the machine may send, without a password; the trace shows the user's number.",
        options: &[
            fixed(
                "socket",
                Path,
                Is("\"/run/vere/sendmail.sock\""),
                "Where `vere sendmail` reaches the system, at most 107 octets. Users who may not read this file look for it at the default place.",
            ),
            live(
                "domain",
                HostName,
                Nothing("`hostname`"),
                "What stands behind the @ of addresses that are given without one, such as `root`.",
            ),
        ],
    },
    Section {
        name: "dkim",
        shape: Shape::Optional,
        text: "Signatures (DKIM) on what own users send: after authentication, from `relay.networks`, or by `vere sendmail`. Keys are made by `vere dkim keygen`; only the signer, a process of its own, reads them. A message is signed by the key of the domain in its From field, or of the nearest domain above that has one; where there is none it goes unsigned.",
        options: &[
            fixed(
                "keys",
                Path,
                Is("\"{data}/dkim\""),
                "The folder of the keys.",
            ),
            fixed(
                "socket",
                Path,
                Is("\"{data}/signer.sock\""),
                "Where the gateway reaches the signer, at most 107 octets; made for the system's user only.",
            ),
            live(
                "when_unavailable",
                Choice(&["defer", "unsigned"]),
                Is("\"defer\""),
                "What becomes of a message while the signer does not answer: `defer` tells the client to try again later (451), `unsigned` sends it on without a signature.",
            ),
        ],
    },
    Section {
        name: "records",
        shape: Shape::Optional,
        text: "A line of JSON for every message that ends (for billing, say), and for every notification, into one file or to one web server, at least once. The lines lie in the spool as mail does until they are safe there. The schema is in docs/internals/records.md. Gateways that adopt from each other need the same section.",
        options: &[
            fixed(
                "file",
                Path,
                Nothing("no file"),
                "The file that lines are appended to. It belongs to one gateway: two need two files. Another program may set it aside by giving it another name: the next lines go into a new one. Either this or `webhook`.",
            ),
            fixed(
                "file_size_max",
                Size(MIB, TIB),
                Is("\"100 MiB\""),
                "A file that would grow beyond is set aside under its name with a dot and the time behind it. Such files are never removed.",
            ),
            fixed(
                "webhook",
                UrlHttp,
                Nothing("no web server"),
                "Where lines are posted. Any answer but 2xx means that they come again; redirects are not followed.",
            ),
            fixed(
                "webhook_ca",
                Path,
                Nothing("the system's roots"),
                "PEM file of the authorities that the web server's certificate is checked against, in place of the system's.",
            ),
            fixed(
                "webhook_secret",
                Path,
                Nothing("no secret"),
                "The file with the secret that posts are signed with (HMAC-SHA-256, field Vere-Signature). Line ends behind it do not count.",
            ),
            fixed(
                "webhook_timeout",
                Span(SECOND, 600 * SECOND),
                Is("\"30s\""),
                "Longest wait for the answer to a post.",
            ),
            live(
                "waiting_max",
                Size(64 * KIB, TIB),
                Is("\"256 MiB\""),
                "Octets of lines that may wait. While more do, clients are told to try again later (452): no line is ever dropped.",
            ),
        ],
    },
];
