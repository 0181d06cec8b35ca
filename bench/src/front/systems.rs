//! The mail exchangers side by side.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::tls::Certificate;
use crate::output::Header;
use crate::peer::{self, Peer, PeerError, PostfixSetup, mx};
use crate::wire::Dialogue;

/// A way to run Veredarius.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Setup {
    /// The name of the system in results.
    pub(super) name: &'static str,
    /// Lines added to `vere.toml`: whole sections.
    pub(super) lines: &'static str,
    /// Whether the bars apply; without bars the figures stand alone.
    pub(super) has_bars: bool,
    /// Whether clients are offered STARTTLS.
    pub(super) has_tls: bool,
}

/// Veredarius in each of its ways.
pub(super) const OURS: &[Setup] = &[
    Setup {
        name: "gateway",
        lines: "",
        has_bars: false,
        has_tls: true,
    },
    Setup {
        name: "front",
        // All clients share one address, and their rates are no subject here.
        lines: "[front]\nbanner_delay = \"0s\"\nconnections_per_minute = 0\nrefused_recipients_per_hour = 0\n",
        has_bars: true,
        has_tls: true,
    },
    // As many processes as sessions at once.
    Setup {
        name: "processes",
        lines: "[front]\nhand_over = \"connected\"\nworkers = 100\nloops = 1\nsessions_at_once = 1\nconnections_per_minute = 0\nrefused_recipients_per_hour = 0\n",
        has_bars: false,
        has_tls: false,
    },
];

pub(super) const POSTFIX: &str = "postfix";
pub(super) const POSTSCREEN: &str = "postfix with postscreen";
pub(super) const RESPONDER: &str = "responder";
pub(super) const HANDING: &str = "handing responder";

/// Processes that the responder hands connections to: as many as `front.workers` by default.
const TAKERS: usize = 2;

/// The word of each system on the command line, with its name in results.
const WORDS: [(&str, &str); 4] = [
    ("postfix", POSTFIX),
    ("postscreen", POSTSCREEN),
    ("responder", RESPONDER),
    ("handing", HANDING),
];

/// Longest wait for the greeting of a system that has just started. A postscreen greets after six seconds.
const GREETING_MAX: Duration = Duration::from_secs(20);

/// A system to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum System {
    /// Veredarius.
    Ours(&'static Setup),
    /// Postfix, whose smtpd serves the port.
    Postfix,
    /// Postfix, with postscreen before smtpd.
    Postscreen,
    /// The bare responder, which is no mail exchanger.
    Responder,
    /// The bare responder with processes for connections with a known recipient.
    Handing,
}

/// The surroundings of the systems.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) vere: &'a Path,
    pub(super) next_hop: SocketAddr,
    pub(super) base: &'a Path,
    /// The certificate of systems for STARTTLS; without a certificate, STARTTLS is not offered.
    pub(super) certificate: Option<&'a Certificate>,
}

impl System {
    /// All systems, peers first.
    pub(super) fn all() -> Vec<Self> {
        let mut all = vec![
            Self::Responder,
            Self::Handing,
            Self::Postfix,
            Self::Postscreen,
        ];
        all.extend(OURS.iter().map(Self::Ours));
        all
    }

    /// The system of a word.
    pub(super) fn of(word: &str) -> Option<Self> {
        let name = WORDS.iter().find(|(own, _)| *own == word);
        let name = name.map_or(word, |(_, name)| *name);
        Self::all().into_iter().find(|system| system.name() == name)
    }

    /// The words of all systems.
    pub(super) fn words() -> Vec<&'static str> {
        let ours = OURS.iter().map(|setup| setup.name);
        ours.chain(WORDS.iter().map(|(word, _)| *word)).collect()
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ours(setup) => setup.name,
            Self::Postfix => POSTFIX,
            Self::Postscreen => POSTSCREEN,
            Self::Responder => RESPONDER,
            Self::Handing => HANDING,
        }
    }

    /// Whether the system has TLS.
    pub(super) const fn encrypts(self) -> bool {
        match self {
            Self::Ours(setup) => setup.has_tls,
            Self::Postfix | Self::Postscreen => true,
            Self::Responder | Self::Handing => false,
        }
    }

    /// Whether the system stands for the limit of a hand-over, and in no other row.
    pub(super) fn hands_over_only(self) -> bool {
        self == Self::Handing
    }

    /// Whether accepted mail arrives at the next hop.
    pub(super) fn delivers(self) -> bool {
        !matches!(self, Self::Responder | Self::Handing)
    }

    fn start(self, site: &Site<'_>) -> Result<Peer, PeerError> {
        let name = self.name();
        let certificate = site.certificate;
        let lines = certificate.map_or_else(String::new, Certificate::postfix);
        let postfix =
            |setup| Peer::postfix_exchanger(name, setup, site.next_hop, &lines, site.base);
        let peer = match self {
            Self::Ours(setup) => {
                let tls = certificate.map_or_else(String::new, Certificate::vere);
                let lines = format!("{}{tls}", setup.lines);
                Peer::vere_exchanger(name, site.vere, site.next_hop, &lines, site.base)
            }
            Self::Postfix => postfix(PostfixSetup::Tuned),
            Self::Postscreen => postfix(PostfixSetup::Screened),
            Self::Responder => Peer::responder(name, 0, site.base),
            Self::Handing => Peer::responder(name, TAKERS, site.base),
        }?;
        match introduce(&peer) {
            Ok(()) => Ok(peer),
            Err(error) => Err(PeerError::NotReady {
                name,
                last_words: error.to_string(),
            }),
        }
    }
}

/// Makes the address of the clients known: a session that waits for its greeting and gets as far as an accepted
/// recipient. Systems that test unknown addresses greet the address at once from then on.
fn introduce(peer: &Peer) -> io::Result<()> {
    let mut client = Dialogue::connect(peer.address(), GREETING_MAX)?;
    client.ask("EHLO client.test\r\n", "250")?;
    client.ask("MAIL FROM:<someone@bench.test>\r\n", "250")?;
    client.ask(&format!("RCPT TO:<{}>\r\n", mx::recipient(0)), "250")?;
    client.ask("QUIT\r\n", "221")
}

/// Starts a system; a system that does not start is skipped, with its reason in the results.
pub(super) fn started(system: System, site: &Site<'_>, header: &mut Header) -> Option<Peer> {
    peer::or_skipped(system.name(), system.start(site), header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_a_system_and_names_differ() {
        for word in System::words() {
            assert!(System::of(word).is_some(), "{word}");
        }
        assert_eq!(System::of("postscreen"), Some(System::Postscreen));
        assert_eq!(System::of("nothing"), None);
        let mut names: Vec<_> = System::all().into_iter().map(System::name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), System::all().len());
    }
}
