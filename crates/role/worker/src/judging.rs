//! Facts about each message at the end of DATA, for the gateway to judge.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use vere_handoff::note::{self, Note};
use vere_handoff::question::{RECORDS_SECONDS_MAX, Record, RecordType, Spf};
use vere_judge::{Greylist, Listing};
use vere_judging::{Dns, Family, Gathered, Gathering, Told, Unavailable, helo_form};
use vere_net::resolver::reverse_name;
use vere_process::clock;
use vere_settings::{Front as Plan, Settings};
use vere_smtp::server::{Message, Server};

use super::broker::Broker;

/// How long the questions about a message may take, from the end of DATA on. Questions without an answer by then are "temperror". A client waits
/// ten minutes for the reply (RFC 5321 section 4.5.3.2.6), and the message takes memory of the worker meanwhile.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long one question may take. A sender with silent name servers uses up the time of questions about the sender's own names, and leaves time for the
/// policy of the author's domain: otherwise silence would excuse a forged author.
const QUESTION_PATIENCE: Duration = Duration::from_secs(RECORDS_SECONDS_MAX);

/// Gathers facts about the messages of a worker.
#[derive(Debug)]
pub(crate) struct Judging {
    broker: Rc<Broker>,
    hostname: String,
    /// The names of the lists in the DNS, by number.
    lists: Vec<String>,
}

impl Judging {
    /// `None` where the settings have no judgement.
    pub(crate) fn new(settings: &Settings, plan: &Plan, broker: &Rc<Broker>) -> Option<Self> {
        settings.judging.as_ref()?;
        let lists = plan.lists.lists.iter().map(|list| list.name.clone());
        Some(Self {
            broker: Rc::clone(broker),
            hostname: settings.hostname.clone(),
            lists: lists.collect(),
        })
    }

    /// Gathers the facts about a message, whose first parts may have been taken before. Known results of SPF and greylist are used.
    pub(crate) async fn gather(
        &self,
        mut gathering: Gathering,
        server: &Server,
        message: &Message,
        note: Note,
    ) -> Gathered {
        gathering.take(&message.body);
        let peer = server.peer();
        let client = peer.address.ip();
        let by = Instant::now() + PATIENCE;
        let helo = message.session.helo.as_ref();
        let helo = helo.map(ToString::to_string).unwrap_or_default();
        let reverse_path = message.reverse_path.reverse_path.as_str();
        let spf_asked = async {
            match note.spf {
                Some(spf) => spf,
                None => {
                    let asked = self.broker.spf(client, &helo, reverse_path);
                    in_time(by, asked).await.unwrap_or(Spf::TempError.into())
                }
            }
        };
        let told = async {
            let (spf, listings) = tokio::join!(spf_asked, self.listings(client, by));
            Told {
                service: &self.hostname,
                helo: &helo,
                helo_form: Some(helo_form(&helo, &self.hostname, peer.local.ip())),
                reverse_path,
                recipients: u32::try_from(message.recipients.len()).unwrap_or(u32::MAX),
                spf: Some(spf),
                listings,
                greylist: note.greylist.map(state),
            }
        };
        let names = Names {
            broker: &self.broker,
            client,
            by,
        };
        let now = clock::now().as_millis() / 1_000;
        gathering.finish(&names, client, told, now).await
    }

    /// The lists with an entry for the client. The broker has asked the lists for the front, and keeps the answers.
    async fn listings(&self, client: IpAddr, by: Instant) -> Vec<Listing> {
        if self.lists.is_empty() {
            return Vec::new();
        }
        let asked = in_time(by, self.broker.lists(client)).await;
        let Some(answer) = asked.flatten() else {
            return Vec::new();
        };
        let named = answer.listings().iter().filter_map(|found| {
            Some(Listing {
                list: self.lists.get(usize::from(found.list))?.clone(),
                weight: found.weight,
            })
        });
        named.collect()
    }
}

/// The greylist's state as a fact.
const fn state(found: note::Greylist) -> Greylist {
    match found {
        note::Greylist::Passed => Greylist::Passed,
        note::Greylist::Known => Greylist::Known,
        note::Greylist::Exempt => Greylist::Exempt,
    }
}

/// Waits for an answer, for the time of one question and not beyond the time of all.
async fn in_time<T>(by: Instant, asked: impl Future<Output = T>) -> Option<T> {
    let by = by.min(Instant::now() + QUESTION_PATIENCE);
    timeout_at(by, asked).await.ok()
}

/// The DNS by the broker.
struct Names<'a> {
    broker: &'a Broker,
    client: IpAddr,
    by: Instant,
}

impl Names<'_> {
    async fn records<T>(
        &self,
        name: &str,
        kind: RecordType,
        pick: impl Fn(Record) -> Option<T>,
    ) -> Result<Vec<T>, Unavailable> {
        let asked = self.broker.records(self.client, name, kind);
        match in_time(self.by, asked).await.flatten() {
            Some(found) => Ok(found.into_iter().filter_map(pick).collect()),
            None => Err(Unavailable),
        }
    }
}

impl Dns for Names<'_> {
    async fn texts(&self, name: &str) -> Result<Vec<Vec<u8>>, Unavailable> {
        let pick = |record| match record {
            Record::Txt(text) => Some(text),
            _ => None,
        };
        self.records(name, RecordType::Txt, pick).await
    }

    async fn exists(&self, name: &str) -> Result<bool, Unavailable> {
        let asked = self.broker.exists(self.client, name);
        let found = in_time(self.by, asked).await;
        found.flatten().ok_or(Unavailable)
    }

    async fn addresses(&self, name: &str, family: Family) -> Result<Vec<IpAddr>, Unavailable> {
        let kind = match family {
            Family::V4 => RecordType::A,
            Family::V6 => RecordType::Aaaa,
        };
        let pick = |record| match record {
            Record::A(address) => Some(address.into()),
            Record::Aaaa(address) => Some(address.into()),
            _ => None,
        };
        self.records(name, kind, pick).await
    }

    async fn names(&self, address: IpAddr) -> Result<Vec<String>, Unavailable> {
        let pick = |record| match record {
            Record::Ptr(name) => Some(name),
            _ => None,
        };
        self.records(&reverse_name(address), RecordType::Ptr, pick)
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A silent name server of the sender costs the time of one question, and leaves time for the author's policy.
    #[tokio::test(start_paused = true)]
    async fn a_silent_question_leaves_time_for_the_next() {
        let begun = Instant::now();
        let by = begun + PATIENCE;
        for seconds in [5, 10, 15, 20, 20] {
            assert_eq!(in_time(by, std::future::pending::<()>()).await, None);
            assert_eq!(begun.elapsed().as_secs(), seconds);
        }
        assert_eq!(
            in_time(begun + 2 * PATIENCE, std::future::ready(7)).await,
            Some(7)
        );
    }
}
