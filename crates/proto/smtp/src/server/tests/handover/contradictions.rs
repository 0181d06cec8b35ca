//! Hand-overs of sessions that no client can reach.

use super::wire::{encode, full};
use crate::address::{ForwardPath, ReversePath};
use crate::command::{MailFrom, Notify, Orcpt, RcptTo};
use crate::server::{Handover, HandoverError};

type Change = fn(&mut Handover);

const NOBODY: Change = |it| {
    it.account = None;
    it.forwarded = None;
    it.mail.auth = None;
};

const BARE: Change = |it| {
    it.mail = MailFrom::new(it.mail.reverse_path.clone());
    it.recipients = vec![RcptTo::new(ForwardPath::Postmaster)];
};

/// Changes of [`full`], and the contradiction.
const CONTRADICTIONS: &[(&[Change], Option<&str>)] = &[
    (&[|it| it.esmtp = false], Some("parameters without EHLO")),
    (&[BARE, |it| it.esmtp = false], None),
    (
        &[
            BARE,
            |it| it.esmtp = false,
            |it| it.recipients[0].notify = Some(Notify::Never),
        ],
        Some("parameters without EHLO"),
    ),
    (
        &[|it| it.mail.smtputf8 = false],
        Some("an address that needs SMTPUTF8, without SMTPUTF8"),
    ),
    (
        &[BARE, |it| {
            it.mail.reverse_path = ReversePath::parse("<ü@d>").unwrap()
        }],
        Some("an address that needs SMTPUTF8, without SMTPUTF8"),
    ),
    (
        &[BARE, |it| {
            it.recipients[0].orcpt = Orcpt::parse("utf-8;ü@d")
        }],
        Some("an address that needs SMTPUTF8, without SMTPUTF8"),
    ),
    (&[|it| it.peer.tls = None], Some("REQUIRETLS without TLS")),
    (
        &[|it| it.peer.tls = None, |it| it.mail.require_tls = false],
        None,
    ),
    (
        &[|it| it.account = None, |it| it.forwarded = None],
        Some("AUTH= with an address from an unknown client"),
    ),
    (&[|it| it.account = None], None),
    (&[NOBODY, |it| it.mail.auth = Some(ReversePath::Null)], None),
    (
        &[
            NOBODY,
            |it| it.mail.priority = Some(1),
            |it| it.peer.may_prioritise = false,
        ],
        Some("a priority above 0 from a client without that permission"),
    ),
    (
        &[
            NOBODY,
            |it| it.mail.priority = Some(0),
            |it| it.peer.may_prioritise = false,
        ],
        None,
    ),
    (
        &[
            |it| it.mail.priority = Some(1),
            |it| it.peer.may_prioritise = false,
        ],
        None,
    ),
];

#[test]
fn contradictions_are_refused() {
    for (index, (changes, expected)) in CONTRADICTIONS.iter().enumerate() {
        let mut handover = full();
        changes.iter().for_each(|change| change(&mut handover));
        let decoded = Handover::decode(&encode(&handover));
        let expected = match expected {
            Some(text) => Err(HandoverError::Contradiction(text)),
            None => Ok(handover),
        };
        assert_eq!(decoded, expected, "case {index}");
    }
    let text = HandoverError::Contradiction("x").to_string();
    assert_eq!(text, "expected a session that a client can reach; found x");
}
