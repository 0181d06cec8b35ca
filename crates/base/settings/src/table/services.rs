//! Further services of the system: programs of this machine that send mail, and signatures.

use super::Fallback::{Is, Nothing};
use super::{Section, Shape, fixed, live};
use crate::kind::Kind::{Choice, HostName, Path};

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
];
