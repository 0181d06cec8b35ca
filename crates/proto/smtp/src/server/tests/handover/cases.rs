//! Sessions in which a recipient is accepted, with what comes before and behind.

use super::super::{peer, tls, with_auth};
use crate::server::{Peer, Role, ServerConfig};

/// A client, and the settings for it.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) config: ServerConfig,
    pub(super) peer: Peer,
    /// What the client sends before it waits for replies.
    pub(super) pieces: &'static [&'static str],
    /// Messages that come in.
    pub(super) messages: usize,
    pub(super) closed: bool,
}

fn case(name: &'static str, pieces: &'static [&'static str], messages: usize) -> Case {
    Case {
        name,
        config: super::super::config(Role::Mx),
        peer: peer(),
        pieces,
        messages,
        closed: false,
    }
}

impl Case {
    fn config(mut self, change: impl FnOnce(&mut ServerConfig)) -> Self {
        change(&mut self.config);
        self
    }

    fn peer(mut self, change: impl FnOnce(&mut Peer)) -> Self {
        change(&mut self.peer);
        self
    }

    fn closed(mut self) -> Self {
        self.closed = true;
        self
    }
}

pub(super) fn all() -> Vec<Case> {
    let mut all = transactions();
    all.extend(clients());
    all.extend(encrypted());
    all.extend(permitted());
    all.extend(bounds());
    all
}

fn transactions() -> Vec<Case> {
    vec![
        case(
            "pipelining, dots, and a second transaction",
            &[
                "EHLO client.example\r\n",
                "MAIL FROM:<a@b.example>\r\nRCPT TO:<c@d>\r\nRCPT TO:<e@d>\r\nDATA\r\n",
                "Subject: x\r\n\r\n..\r\n..x\r\n.\r\nMAIL FROM:<>\r\nRCPT TO:<Postmaster>\r\nDATA\r\n",
                "y\r\n.\r\nQUIT\r\n",
            ],
            2,
        )
        .closed(),
        case(
            "everything at once",
            &[
                "EHLO x\r\nNOOP\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nx\r\n.\r\nRSET\r\nMAIL FROM:<a@b>\r\n\
                 RCPT TO:<c@d>\r\nRSET\r\nMAIL FROM:<@hop:a@b>\r\nRCPT TO:<@hop:e@f>\r\nDATA\r\ny\r\n.\r\n",
            ],
            2,
        ),
        case(
            "chunks",
            &[
                "EHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nBDAT 4\r\na\r\n.BDAT 3\r\n\r\nbBDAT 0 LAST\r\n",
                "MAIL FROM:<a@b> BODY=BINARYMIME\r\nRCPT TO:<c@d>\r\nDATA\r\nRCPT TO:<e@d>\r\nBDAT 9 LAST\r\n\nQUIT\0\r\n\r",
            ],
            2,
        ),
        case(
            "parameters",
            &[
                "EHLO x\r\nMAIL FROM:<\"a b\\>\"@b> SIZE=100 BODY=8BITMIME SMTPUTF8 RET=HDRS ENVID=QQ+2B1 AUTH=<> \
                 MT-PRIORITY=-3\r\nRCPT TO:<jörg@d> NOTIFY=SUCCESS,DELAY ORCPT=utf-8;jörg@d\r\n\
                 RCPT TO:<b@[IPv6:2001:DB8::1]> NOTIFY=NEVER\r\nDATA\r\nü\r\n.\r\n",
                "MAIL FROM:<a@b> RET=FULL BODY=7BIT\r\nRCPT TO:<c@d> NOTIFY=FAILURE ORCPT=rfc822;c+2Bx@d\r\n\
                 DATA\r\n.\r\n",
            ],
            2,
        ),
        case(
            "refused recipients before and behind",
            &[
                "EHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<nobody@d>\r\nRCPT TO:<later@d>\r\nRCPT TO:<c@@>\r\nRCPT TO:<c@d>\r\n\
                 RCPT TO:<nobody@d>\r\nRCPT TO:<ö@d>\r\nRCPT TO:<e@d>\r\nRCPT TO:<later@d>\r\nDATA\r\nx\r\n.\r\n",
            ],
            1,
        ),
        case(
            "commands that end the transaction, or do not",
            &[
                "EHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nRSET\r\nRCPT TO:<c@d>\r\nDATA\r\n",
                "MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nEHLO y\r\nDATA\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n",
                "NOOP\r\nMAIL FROM:<z@b>\r\nAUTH PLAIN\r\nXCLIENT ADDR=192.0.2.9\r\nVRFY c\r\nHELP\r\nX\r\nDATA\r\nx\r\n.\r\n",
            ],
            1,
        ),
        case(
            "text that another server would end earlier",
            &[
                "EHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nx\n.\nMAIL FROM:<s@b>\r\nRCPT TO:<s@d>\r\n\
                 DATA\r\n\n.\r\n.\r\rx\r\n.\r\n",
                "MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nSubject: full\r\n.\r\nMAIL FROM:<a@b>\r\n\
                 RCPT TO:<c@d>\nDATA\r\n",
            ],
            1,
        )
        .closed(),
    ]
}

fn clients() -> Vec<Case> {
    vec![
        case(
            "HELO",
            &[
                "HELO Client.example\r\nMAIL FROM:<a@b> SIZE=3\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d> NOTIFY=NEVER\r\n\
                 RCPT TO:<c@d>\r\nRCPT TO:<e@d> NOTIFY=NEVER\r\nDATA\r\nx\r\n.\r\n",
            ],
            1,
        ),
        case(
            "a name with an underscore, and commands without brackets",
            &["EHLO MY_PC\r\nMAIL FROM: a@b\r\nRCPT TO: c@d\r\nRCPT TO:e@d\r\nDATA\r\n.\r\n"],
            1,
        )
        .config(|config| {
            config.workarounds.underscore_in_helo = true;
            config.workarounds.space_before_path = true;
            config.workarounds.path_without_brackets = true;
        }),
        case(
            "a proxy",
            &[
                "EHLO proxy\r\nXCLIENT NAME=client.example ADDR=IPv6:2001:db8::7 PORT=99 PROTO=ESMTP HELO=they.example \
                 LOGIN=bob DESTADDR=192.0.2.25 DESTPORT=26\r\n",
                "EHLO proxy\r\nMAIL FROM:<a@b> AUTH=e@f MT-PRIORITY=4\r\nRCPT TO:<c@d>\r\nDATA\r\nx\r\n.\r\n",
                "XCLIENT ADDR=192.0.2.66\r\nXCLIENT PROTO=SMTP HELO=[UNAVAILABLE] LOGIN=[UNAVAILABLE]\r\n",
                "HELO [192.0.2.8]\r\nEHLO [192.0.2.8]\r\nMAIL FROM:<a@b> MT-PRIORITY=4\r\nRCPT TO:<c@d>\r\nDATA\r\n.\r\n",
            ],
            2,
        )
        .peer(|peer| peer.may_xclient = true),
    ]
}

fn encrypted() -> Vec<Case> {
    vec![
        case(
            "TLS from the beginning",
            &[
                "EHLO x\r\nMAIL FROM:<a@b> REQUIRETLS\r\nRCPT TO:<c@d>\r\nSTARTTLS\r\nDATA\r\nx\r\n.\r\n",
            ],
            1,
        )
        .peer(|peer| {
            peer.tls = Some(tls());
            peer.name = Some("client.example".to_owned());
        })
        .config(|config| config.tls_required = true),
        case(
            "STARTTLS within a transaction",
            &[
                "EHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nSTARTTLS\r\n",
                "DATA\r\nEHLO x\r\nMAIL FROM:<a@b> REQUIRETLS\r\nRCPT TO:<c@d>\r\nDATA\r\nx\r\n.\r\n",
            ],
            1,
        )
        .peer(|peer| peer.tls_available = true),
        case(
            "octets behind STARTTLS",
            &["EHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nSTARTTLS\r\nDATA\r\n"],
            0,
        )
        .peer(|peer| peer.tls_available = true)
        .closed(),
    ]
}

fn permitted() -> Vec<Case> {
    vec![
        case(
            "an account, and what it may say",
            &[
                "EHLO x\r\nAUTH PLAIN AHRpbQB3cm9uZw==\r\nAUTH PLAIN AHRpbQB0YW5zdGFhZnRhbnN0YWFm\r\n",
                "MAIL FROM:<a@b> AUTH=e+2Bx@f MT-PRIORITY=9\r\nRCPT TO:<c@d>\r\nAUTH PLAIN\r\nDATA\r\n.\r\n",
                "HELO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n.\r\n",
            ],
            2,
        )
        .peer(|peer| peer.may_auth_in_clear = true)
        .config(|config| *config = with_auth(super::super::config(Role::Submission))),
        case(
            "priorities of a client that may not, and of one that may",
            &[
                "EHLO x\r\nMAIL FROM:<a@b> MT-PRIORITY=4 AUTH=e@f\r\nRCPT TO:<c@d>\r\nDATA\r\n.\r\n\
                 MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n.\r\n",
            ],
            2,
        ),
        case(
            "permissions",
            &["EHLO x\r\nMAIL FROM:<a@b> MT-PRIORITY=4\r\nRCPT TO:<c@d>\r\nDATA\r\n.\r\n"],
            1,
        )
        .peer(|peer| {
            peer.may_prioritise = true;
            peer.may_relay = true;
        })
        .config(|config| config.role = Role::Submission),
        case(
            "LMTP",
            &["LHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nEHLO x\r\nDATA\r\n.\r\n"],
            1,
        )
        .config(|config| config.role = Role::Lmtp),
        case(
            "a client that does not wait",
            &["EHLO x\r\n", "MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nx\r\n.\r\n"],
            0,
        )
        .config(|config| config.strict_pipelining = true)
        .closed(),
    ]
}

/// Limits that are reached behind the hand-over and nearly reached before.
fn bounds() -> Vec<Case> {
    vec![
        case(
            "errors",
            &["EHLO x\r\nX\r\nY\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nX\r\nX\r\nX\r\n"],
            0,
        )
        .config(|config| config.limits.errors_max = 3)
        .closed(),
        case(
            "commands without mail",
            &["EHLO x\r\nNOOP\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nNOOP\r\nNOOP\r\n"],
            0,
        )
        .config(|config| config.limits.idle_commands_max = 2)
        .closed(),
        case(
            "refusals",
            &[
                "EHLO x\r\nMAIL FROM:<nobody@b>\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nRCPT TO:<nobody@d>\r\n\
                 RCPT TO:<nobody@d>\r\n",
            ],
            0,
        )
        .config(|config| config.limits.refusals_max = 2)
        .closed(),
        case(
            "recipients, and refused recipients",
            &[
                "EHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<later@d>\r\nRCPT TO:<c@d>\r\nRCPT TO:<e@d>\r\nRCPT TO:<f@d>\r\n\
                 DATA\r\n.\r\nMAIL FROM:<a@b>\r\nRCPT TO:<later@d>\r\nRCPT TO:<c@d>\r\nRCPT TO:<later@d>\r\n\
                 RCPT TO:<later@d>\r\n",
            ],
            1,
        )
        .config(|config| config.limits.recipients_max = 2)
        .closed(),
        case(
            "transactions",
            &["EHLO x\r\nMAIL FROM:<a@b>\r\nRSET\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nRSET\r\nMAIL FROM:<a@b>\r\n"],
            0,
        )
        .config(|config| config.limits.transactions_max = 2)
        .closed(),
        case(
            "authentications",
            &[
                "EHLO x\r\nAUTH PLAIN AHRpbQB3cm9uZw==\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nRSET\r\n\
                 AUTH PLAIN AHRpbQB3cm9uZw==\r\n",
            ],
            0,
        )
        .peer(|peer| peer.may_auth_in_clear = true)
        .config(|config| {
            *config = with_auth(super::super::config(Role::Mx));
            config.limits.auth_failures_max = 2;
        })
        .closed(),
        case(
            "replies",
            &[
                "EHLO x\r\nMAIL FROM:<a@b>\r\nNOOP\r\nNOOP\r\nRCPT TO:<c@d>\r\nNOOP\r\nNOOP\r\nNOOP\r\nDATA\r\n.\r\n",
            ],
            1,
        )
        .config(|config| config.limits.output_octets_max = 60),
    ]
}
