//! A message in passing, and the facts about the message.

use std::net::IpAddr;

use futures_util::future::join;
use vere_auth::{Dns, Hashing, LookedUp, Session};
use vere_handoff::question::SpfResults;
use vere_judge::{Facts, Greylist, HeloForm, Listing, Outline};

use crate::facts;
use crate::results::found;

/// An unfinished message.
#[derive(Debug, Default)]
pub struct Gathering {
    hashing: Hashing,
    outline: Outline,
}

/// Facts from the session of the message.
#[derive(Debug, Clone)]
pub struct Told<'a> {
    /// The name by which the field Authentication-Results is found again: the host name.
    pub service: &'a str,
    /// The argument of HELO or EHLO.
    pub helo: &'a str,
    /// The form of the HELO name.
    pub helo_form: Option<HeloForm>,
    /// The reverse-path without angle brackets; empty for the null reverse-path.
    pub reverse_path: &'a str,
    /// The number of recipients.
    pub recipients: u32,
    /// The results of SPF; `None` where SPF was not asked.
    pub spf: Option<SpfResults>,
    /// Lists in the DNS with an entry for the client.
    pub listings: Vec<Listing>,
    /// The state of the greylist.
    pub greylist: Option<Greylist>,
}

/// Bounded facts about a message, and the field Authentication-Results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gathered {
    /// The facts.
    pub facts: Facts,
    /// The field, with its line end.
    pub results: Vec<u8>,
    /// The name of the client that leads back to its address.
    pub client_name: Option<String>,
}

impl Gathering {
    /// Takes the next octets of the message.
    pub fn take(&mut self, octets: &[u8]) {
        self.hashing.take(octets);
        self.outline.take(octets);
    }

    /// Octets in memory.
    #[must_use]
    pub const fn octets(&self) -> usize {
        self.hashing.octets().saturating_add(self.outline.octets())
    }

    /// Ends the message of a client at a time, in seconds since 1970, and asks the DNS about signatures and policies, while the facts from the
    /// session may still be on the way (SPF, lists). The host bounds the time of the questions.
    pub async fn finish<'a>(
        self,
        dns: &impl Dns,
        client: IpAddr,
        told: impl Future<Output = Told<'a>>,
        now: u64,
    ) -> Gathered {
        let message = self.hashing.finish();
        // The message's own questions first: the author's policy has its turn before the sender's SPF.
        let (looked_up, told) = join(LookedUp::of(dns, &message, client), told).await;
        let session = Session {
            client,
            helo: told.helo,
            reverse_path: told.reverse_path,
            spf: told.spf.map(|spf| found(spf.sender)),
            spf_helo: told.spf.and_then(|spf| spf.helo).map(found),
        };
        let authentication = looked_up.authenticate(&message, session, now).await;
        let mut facts = Facts {
            client: Some(client),
            reverse_path: Some(told.reverse_path.to_owned()),
            recipients: told.recipients,
            helo: told.helo_form,
            spf: told.spf.map(|spf| facts::spf(spf.sender)),
            spf_helo: told.spf.and_then(|spf| spf.helo).map(facts::spf),
            listings: told.listings,
            greylist: told.greylist,
            ..Facts::default()
        };
        facts::add(&authentication, &mut facts);
        self.outline.read(&mut facts);
        Gathered {
            facts: facts.bounded(),
            results: authentication.field(told.service, session),
            client_name: authentication.iprev.name,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use vere_auth::{Family, Unavailable};
    use vere_handoff::question::Spf;
    use vere_judge::{AuthResult, DmarcPolicy};

    use super::*;

    /// One policy of DMARC, and a client with a name. Counts the names that were asked for.
    #[derive(Default)]
    struct Zone(Cell<u32>);

    impl Dns for Zone {
        async fn texts(&self, name: &str) -> Result<Vec<Vec<u8>>, Unavailable> {
            self.0.set(self.0.get() + 1);
            Ok(match name {
                "_dmarc.example.net" => vec![b"v=DMARC1; p=reject".to_vec()],
                _ => Vec::new(),
            })
        }

        async fn exists(&self, _: &str) -> Result<bool, Unavailable> {
            Ok(true)
        }

        async fn addresses(&self, _: &str, _: Family) -> Result<Vec<IpAddr>, Unavailable> {
            Ok(vec!["192.0.2.1".parse().unwrap()])
        }

        async fn names(&self, _: IpAddr) -> Result<Vec<String>, Unavailable> {
            Ok(vec!["mx.example.net".to_owned()])
        }
    }

    async fn gathered(text: &str, piece: usize, spf: Spf) -> Gathered {
        let mut gathering = Gathering::default();
        for piece in text.as_bytes().chunks(piece) {
            gathering.take(piece);
        }
        let told = Told {
            service: "mx.example.org",
            helo: "mx.example.net",
            helo_form: Some(HeloForm::Domain),
            reverse_path: "a@example.net",
            recipients: 2,
            spf: Some(SpfResults {
                sender: spf,
                helo: Some(Spf::None),
            }),
            listings: vec![Listing {
                list: "list.test".to_owned(),
                weight: 2,
            }],
            greylist: Some(Greylist::Passed),
        };
        let octets = gathering.octets();
        assert!(octets > text.len() / 2 && octets < 4_096, "{octets}");
        let client = "192.0.2.1".parse().unwrap();
        let zone = Zone::default();
        let told = async {
            // The questions about the message do not wait for SPF.
            tokio::task::yield_now().await;
            assert!(zone.0.get() > 0);
            told
        };
        gathering.finish(&zone, client, told, 1_700_000_000).await
    }

    #[tokio::test]
    async fn a_message_in_pieces_has_the_facts_of_the_whole_message() {
        let text = "From: a@example.net\r\nContent-Type: application/x; name=a.exe\r\n\r\nMZ\r\n";
        let whole = gathered(text, usize::MAX, Spf::Pass).await;
        for piece in [1, 9, 30] {
            assert_eq!(gathered(text, piece, Spf::Pass).await, whole);
        }
        let facts = &whole.facts;
        assert_eq!(
            (facts.spf, facts.spf_helo),
            (Some(AuthResult::Pass), Some(AuthResult::None))
        );
        assert_eq!((facts.iprev, facts.recipients), (Some(AuthResult::Pass), 2));
        assert_eq!(facts.client, Some([192, 0, 2, 1].into()));
        assert_eq!(facts.reverse_path.as_deref(), Some("a@example.net"));
        assert_eq!(facts.helo, Some(HeloForm::Domain));
        assert_eq!(facts.greylist, Some(Greylist::Passed));
        let lists = facts.listings.iter().map(|one| (&*one.list, one.weight));
        assert_eq!(lists.collect::<Vec<_>>(), [("list.test", 2)]);
        assert_eq!(whole.client_name.as_deref(), Some("mx.example.net"));
        let dmarc = facts.dmarc.as_ref().unwrap();
        assert_eq!(
            (dmarc.result, dmarc.policy),
            (AuthResult::Pass, DmarcPolicy::Reject)
        );
        assert_eq!((dmarc.spf_aligned, dmarc.dkim_aligned), (true, false));
        assert_eq!(
            facts.structure.as_ref().unwrap().attachments[0].name,
            "a.exe"
        );
        let results = String::from_utf8(whole.results).unwrap();
        assert!(results.starts_with("Authentication-Results: mx.example.org;\r\n\tspf=pass"));
        assert!(results.contains("dmarc=pass (p=reject) header.from=example.net"));
    }

    #[tokio::test]
    async fn a_forged_author_fails() {
        let text = "From: a@example.net\r\n\r\nhi\r\n";
        let facts = gathered(text, usize::MAX, Spf::Fail).await.facts;
        let dmarc = facts.dmarc.unwrap();
        assert_eq!((dmarc.result, dmarc.spf_aligned), (AuthResult::Fail, false));
        assert_eq!(facts.dkim, Some(Vec::new()));
    }
}
