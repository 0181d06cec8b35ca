//! Clients that do not keep to the protocol, on purpose or at random.

use super::{Host, codes, config, peer, with_auth};
use crate::refusal::Refusal;
use crate::server::{Answer, Question, Role, Step};
use proptest::prelude::{any, prop, prop_assert, proptest};
use proptest::strategy::Strategy;

#[test]
fn early_talkers_are_refused() {
    for size in [1, 6, 100] {
        let mut host = Host::before_greeting(config(Role::Mx), peer());
        b"EHLO x\r\nMAIL FROM:<a@b>\r\n"
            .chunks(size)
            .for_each(|piece| host.give(piece));
        let transcript = String::from_utf8(host.sent).unwrap();
        assert_eq!(codes(&transcript), ["554 5.5.0"], "pieces of {size}");
        assert!(host.closed);
    }
    let mut config = config(Role::Mx);
    config.early_talkers_refused = false;
    let mut host = Host::before_greeting(config, peer());
    host.gets("EHLO x\r\n", &["220", "250"]);
}

#[test]
fn strict_pipelining_refuses_what_does_not_wait() {
    for script in [
        "EHLO x\r\nNOOP\r\n",
        "HELO x\r\nNOOP\r\n",
        "AUTH PLAIN AHRpbQB4\r\nNOOP\r\n",
        "MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nSubject: x\r\n.\r\n",
    ] {
        let mut config = config(Role::Mx);
        config.strict_pipelining = true;
        let mut host = Host::new(config, peer());
        if script.starts_with("MAIL") {
            host.say("EHLO x\r\n");
        }
        assert_eq!(
            codes(&host.say(script)).last(),
            Some(&"554 5.5.0"),
            "{script}"
        );
        assert!(host.closed && host.messages.is_empty());
    }
}

/// A web form made to send mail (cross-protocol scripting).
#[test]
fn other_protocols_are_shown_the_door() {
    let mut host = Host::mx();
    host.gets(
        "POST / HTTP/1.1\r\nHost: x\r\n\r\nEHLO x\r\nMAIL FROM:<a@b>\r\n",
        &["554 5.5.0"],
    );
    assert!(host.closed);
}

#[test]
fn line_ends_within_commands_are_refused() {
    for (line, text) in [
        ("NO\rOP\r\n", "500 5.5.2 CR within a line\r\n"),
        ("NOOP\r\r\n", "500 5.5.2 CR within a line\r\n"),
        ("NO\0OP\r\n", "500 5.5.2 NUL within a line\r\n"),
    ] {
        assert_eq!(Host::mx().say(line), text, "{line:?}");
    }
}

/// A line that another server ends at CRLF only held a second command here.
#[test]
fn nothing_runs_behind_an_lf_without_cr() {
    for line in [
        "NOOP\nRSET\r\n",
        "\n",
        "MAIL FROM:<a@b>\nRCPT TO:<c@d>\nDATA\r\n",
        "AUTH LOGIN\r\nYWJj\nNOOP\r\n",
    ] {
        let mut peer = peer();
        peer.may_auth_in_clear = true;
        let mut host = Host::new(with_auth(config(Role::Mx)), peer);
        host.say("EHLO x\r\n");
        let reply = host.say(line);
        assert_eq!(codes(&reply).last(), Some(&"554 5.5.2"), "{line:?}");
        assert!(host.closed && host.server.mail_from().is_none(), "{line:?}");
    }
}

#[test]
fn an_answer_of_another_kind_is_a_local_error() {
    let mut host = Host::mx();
    host.say("EHLO x\r\n");
    host.server
        .answer(Answer::Stored(Ok("x".to_owned())), host.now);
    assert!(
        matches!(host.server.step(), Step::NeedInput),
        "no question, no answer"
    );
    host.server.input(b"MAIL FROM:<a@b>\r\n", host.now);
    assert!(matches!(host.server.step(), Step::Ask(Question::Mail(_))));
    host.server
        .answer(Answer::Stored(Ok("x".to_owned())), host.now);
    host.gets("", &["451 4.3.0"]);
    assert!(host.server.mail_from().is_none());
}

#[test]
fn text_of_the_host_cannot_end_a_reply() {
    let mut host = Host::mx();
    host.say("EHLO x\r\n");
    host.server.input(b"MAIL FROM:<a@b>\r\n", host.now);
    assert!(matches!(host.server.step(), Step::Ask(_)));
    let site = Refusal::Site {
        permanent: true,
        text: "a\r\n250 b".to_owned(),
    };
    host.server.answer(Answer::Policy(Err(site)), host.now);
    assert_eq!(host.say(""), "550 5.7.1 a??250 b\r\n");
}

fn fragments() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "EHLO x\r\n",
        "HELO x\r\n",
        "MAIL FROM:<a@b>",
        "MAIL FROM:<> BODY=BINARYMIME\r\n",
        "RCPT TO:<c@d>\r\n",
        "RCPT TO:<nobody@d>\r\n",
        "DATA\r\n",
        ".\r\n",
        "\r\n.\r\n",
        "BDAT 5\r\n",
        "BDAT 3 LAST\r\n",
        "RSET\r\n",
        "STARTTLS\r\n",
        "AUTH PLAIN\r\n",
        "AUTH LOGIN dGlt\r\n",
        "*\r\n",
        "AUTH PLAIN AHRpbQB0YW5zdGFhZnRhbnN0YWFm\r\n",
        "XCLIENT ADDR=192.0.2.9\r\n",
        "QUIT\r\n",
        "NOOP\r\n",
        "\r\n",
        "\r",
        "\n",
        ".",
        " SIZE=5",
        "AUTH SCRAM-SHA-256 biwsbj11c2VyLHI9YWJj\r\n",
    ])
    .prop_map(|text| text.as_bytes().to_vec());
    proptest::prop_oneof![9 => known, 1 => prop::collection::vec(any::<u8>(), 0..30)]
}

proptest! {
    /// Nothing makes the machine panic or hold more than its bounds, and pieces do not matter.
    #[test]
    fn no_input_breaks_the_machine(
        script in prop::collection::vec(fragments(), 0..60), size in 1_usize..50
    ) {
        let script = script.concat();
        let mut peer = peer();
        peer.may_auth_in_clear = true;
        peer.may_xclient = true;
        // SCRAM's nonces are the same in every session that has its own source of them.
        let fresh = || {
            let mut config = with_auth(config(Role::Mx));
            config.limits.errors_max = 1000;
            Host::new(config, peer.clone())
        };
        let (mut whole, mut pieces) = (fresh(), fresh());
        whole.give(&script);
        script.chunks(size).for_each(|piece| pieces.give(piece));
        prop_assert!(whole.memory_max < 32_768);
        prop_assert!(whole.server.output().len() < 16_384 + 512);
        prop_assert!(whole.sent == pieces.sent);
        prop_assert!(whole.messages == pieces.messages);
    }

    #[test]
    fn random_octets_break_nothing(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20)
    ) {
        let mut host = Host::mx();
        pieces.iter().for_each(|piece| host.give(piece));
        prop_assert!(host.messages.is_empty());
        prop_assert!(host.memory_max < 8192);
    }
}
