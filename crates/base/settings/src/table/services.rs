//! Further services of the system: programs of this machine that send mail.

use super::Fallback::{Is, Nothing};
use super::{Section, Shape, fixed, live};
use crate::kind::Kind::{HostName, Path};

/// The sections, in the order of the reference.
pub(super) static SECTIONS: &[Section] = &[Section {
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
}];
