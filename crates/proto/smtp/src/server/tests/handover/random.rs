//! Hand-overs with random fields.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};

use super::wire::encode;
use crate::address::{AddrSpec, DomainOrLiteral, ForwardPath, ReversePath};
use crate::command::{BodyType, MailFrom, Notify, Orcpt, RcptTo, Ret, Xtext};
use crate::server::session::{Counts, Forwarded};
use crate::server::{Handover, Peer, TlsInfo};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![9 => "[ -~éß€]{0,20}", 1 => Just("x".repeat(1_024))]
}

fn socket() -> impl Strategy<Value = SocketAddr> {
    let scoped = any::<(u128, u16, u32, u32)>()
        .prop_map(|(ip, port, flow, scope)| SocketAddrV6::new(ip.into(), port, flow, scope).into());
    prop_oneof![any::<(IpAddr, u16)>().prop_map(SocketAddr::from), scoped]
}

fn peer() -> impl Strategy<Value = Peer> {
    let tls = (text(), text(), option::of(text())).prop_map(|(version, cipher, sni)| TlsInfo {
        version,
        cipher,
        sni,
    });
    let permissions = any::<[bool; 5]>();
    (
        socket(),
        socket(),
        option::of(text()),
        option::of(tls),
        permissions,
    )
        .prop_map(
            |(address, local, name, tls, [relay, auth, prioritise, xclient, start_tls])| Peer {
                address,
                local,
                name,
                tls,
                may_relay: relay,
                may_auth_in_clear: auth,
                may_prioritise: prioritise,
                may_xclient: xclient,
                tls_available: start_tls,
            },
        )
}

fn domain() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[a-z0-9]{1,9}(\\.[a-z]{1,9}){0,2}",
        1 => any::<[u8; 4]>().prop_map(|ip| format!("[{}]", IpAddr::from(ip))),
        1 => any::<u128>().prop_map(|ip| format!("[IPv6:{}]", std::net::Ipv6Addr::from(ip))),
    ]
}

fn address() -> impl Strategy<Value = AddrSpec> {
    ("[ -~é]{1,20}", domain()).prop_map(|(local, domain)| AddrSpec::new(&local, &domain).unwrap())
}

fn reverse_path() -> impl Strategy<Value = ReversePath> {
    prop_oneof![1 => Just(ReversePath::Null), 4 => address().prop_map(ReversePath::Address)]
}

fn mail() -> impl Strategy<Value = MailFrom> {
    let body = prop::sample::select(vec![
        BodyType::SevenBit,
        BodyType::EightBitMime,
        BodyType::BinaryMime,
    ]);
    let envid = "[ -~]{1,30}".prop_map(|text| Xtext::encode(text.as_bytes()));
    (
        reverse_path(),
        option::of(any::<u64>()),
        body,
        option::of(prop::sample::select(vec![Ret::Full, Ret::Headers])),
        option::of(envid),
        option::of(reverse_path()),
        any::<(bool, bool)>(),
        option::of(-9..=9_i8),
    )
        .prop_map(
            |(reverse_path, size, body, ret, envid, auth, (smtputf8, require_tls), priority)| {
                MailFrom {
                    reverse_path,
                    size,
                    body,
                    smtputf8,
                    ret,
                    envid,
                    auth,
                    require_tls,
                    priority,
                }
            },
        )
}

fn rcpt() -> impl Strategy<Value = RcptTo> {
    let forward_path = prop_oneof![1 => Just(ForwardPath::Postmaster), 6 => address().prop_map(ForwardPath::Address)];
    let events = (1..8_u8).prop_map(|bits| Notify::On {
        success: bits & 1 != 0,
        failure: bits & 2 != 0,
        delay: bits & 4 != 0,
    });
    let notify = prop_oneof![1 => Just(Notify::Never), 3 => events];
    let orcpt = prop_oneof![
        "[ -~]{1,30}".prop_map(|text| format!("rfc822;{}", Xtext::encode(text.as_bytes()))),
        "utf-8;[a-zé\u{1f600}]{1,9}@\\\\x\\{20AC\\}",
    ]
    .prop_map(|text| Orcpt::parse(&text).unwrap());
    (forward_path, option::of(notify), option::of(orcpt)).prop_map(
        |(forward_path, notify, orcpt)| RcptTo {
            forward_path,
            notify,
            orcpt,
        },
    )
}

fn forwarded() -> impl Strategy<Value = Forwarded> {
    let helo = domain().prop_map(|text| DomainOrLiteral::parse(&text).unwrap());
    (
        option::of(helo),
        option::of(any::<bool>()),
        option::of(text()),
    )
        .prop_map(|(helo, esmtp, login)| Forwarded { helo, esmtp, login })
}

fn counts() -> impl Strategy<Value = (Counts, usize)> {
    any::<[u32; 6]>().prop_map(|counts| {
        let [
            errors,
            idle_commands,
            auth_failures,
            transactions,
            refusals,
            recipients_refused,
        ] = counts.map(|count| count as usize);
        let counts = Counts {
            errors,
            idle_commands,
            auth_failures,
            transactions,
            refusals,
        };
        (counts, recipients_refused)
    })
}

fn handover() -> impl Strategy<Value = Handover> {
    let helo = domain().prop_map(|text| DomainOrLiteral::parse(&text).unwrap());
    let replies = prop_oneof![
        Just(Vec::new()),
        prop::collection::vec(any::<u8>(), 0..99)
            .prop_map(|octets| [&octets[..], b"\r\n"].concat()),
    ];
    (
        peer(),
        (
            helo,
            any::<bool>(),
            option::of(text()),
            option::of(forwarded()),
        ),
        counts(),
        mail(),
        prop::collection::vec(rcpt(), 1..5),
        (any::<u8>(), replies),
    )
        .prop_map(
            |(peer, session, (counts, recipients_refused), mail, recipients, (note, replies))| {
                let (helo, esmtp, account, forwarded) = session;
                possible(Handover {
                    peer,
                    helo,
                    esmtp,
                    account,
                    forwarded: forwarded.map(Box::new),
                    counts,
                    mail,
                    recipients,
                    recipients_refused,
                    note,
                    replies,
                })
            },
        )
}

/// Takes contradictions away.
fn possible(mut handover: Handover) -> Handover {
    let login = handover
        .forwarded
        .as_ref()
        .and_then(|forwarded| forwarded.login.as_ref());
    let known = handover.account.is_some() || login.is_some();
    let mail = &mut handover.mail;
    mail.smtputf8 |=
        !mail.reverse_path.is_ascii() || !handover.recipients.iter().all(RcptTo::is_ascii);
    mail.require_tls &= handover.peer.tls.is_some();
    if !known {
        mail.auth = mail.auth.take().map(|_| ReversePath::Null);
    }
    if !known && !handover.peer.may_prioritise {
        mail.priority = mail.priority.map(|priority| priority.min(0));
    }
    let parameters =
        mail.has_parameters() || handover.recipients.iter().any(RcptTo::has_parameters);
    handover.esmtp |= parameters;
    handover
}

proptest! {
    #[test]
    fn what_is_encoded_comes_back(handover in handover()) {
        prop_assert_eq!(Handover::decode(&encode(&handover)), Ok(handover));
    }

    #[test]
    fn nothing_breaks_the_decoder(
        handover in handover(),
        at in any::<prop::sample::Index>(),
        drop in 0..9_usize,
        octets in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        let mut broken = encode(&handover);
        let at = at.index(broken.len());
        let end = (at + drop).min(broken.len());
        broken.splice(at..end, octets);
        if let Ok(decoded) = Handover::decode(&broken) {
            prop_assert_eq!(encode(&decoded), broken);
        }
    }
}
