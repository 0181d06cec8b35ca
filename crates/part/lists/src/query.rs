//! A query to a list, shared by equal questions.

use std::net::Ipv6Addr;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::spawn_local;
use tokio::time::{Instant, timeout_at};
use vere_dnsbl::Map;
use vere_dnsbl::cache::{Look, Question, Reply, Subject};
use vere_dnsbl::policy::{self, Codes};
use vere_net::resolver::{Record, RecordKind, RecordsAnswer};

use super::Lists;
use super::findings::Origin;
use super::site::share;

impl Lists {
    /// Returns the answer to a question: kept, shared with a query under way, or from the list.
    pub(crate) async fn query(&self, zone: u32, subject: Subject) -> (Reply, Origin) {
        let question = Question { zone, subject };
        let now = self.now();
        let share = share(self.0.sites.borrow().len());
        let look = self.0.cache.borrow_mut().look(now, question);
        let (told, origin) = match look {
            Look::Known(reply) => {
                self.with_site(zone, |site| site.hit());
                return (reply, Origin::Kept);
            }
            Look::Full => return (Reply::Failed, Origin::NotAsked),
            Look::Wait => {
                self.with_site(zone, |site| site.shared());
                let told = self.0.waiting.borrow().get(&question).cloned();
                (told, Origin::Shared)
            }
            Look::Ask if !self.with_site(zone, |site| site.begin(now, share)) => {
                self.0.cache.borrow_mut().abandoned(&question);
                return (Reply::Failed, Origin::NotAsked);
            }
            Look::Ask => (Some(self.begin(question)), Origin::Asked),
        };
        let Some(mut told) = told else {
            return (Reply::Failed, origin);
        };
        let reply = told.wait_for(Option::is_some).await;
        let reply = reply.ok().and_then(|reply| reply.clone());
        (reply.unwrap_or(Reply::Failed), origin)
    }

    /// Begins a query, also for later questions: the query goes on when nobody waits any more.
    fn begin(&self, question: Question) -> watch::Receiver<Option<Reply>> {
        let (tell, told) = watch::channel(None);
        let mut waiting = self.0.waiting.borrow_mut();
        waiting.insert(question, told.clone());
        let lists = self.clone();
        spawn_local(async move {
            let (reply, ttl) = lists.fetch(question).await;
            let now = lists.now();
            let kept = reply.clone();
            lists
                .0
                .cache
                .borrow_mut()
                .answered(now, question, kept, ttl);
            lists.0.waiting.borrow_mut().remove(&question);
            let _ = tell.send(Some(reply));
        });
        told
    }

    /// Asks the list. A query without an answer by the deadline counts as failed.
    async fn fetch(&self, question: Question) -> (Reply, Duration) {
        let Question { zone, subject } = question;
        let (labels, kind) = match subject {
            Subject::Map(name) => (name.to_string(), RecordKind::Aaaa),
            Subject::Codes(client) => (policy::labels(client), RecordKind::A),
            Subject::Text(client) => (policy::labels(client), RecordKind::Txt),
        };
        let Some((records, ttl)) = self.records(zone, &labels, kind).await else {
            if matches!(subject, Subject::Map(_)) {
                self.with_site(zone, |site| site.probe.doubt(self.now()));
            }
            return (Reply::Failed, Duration::ZERO);
        };
        let reply = match subject {
            Subject::Map(_) => match &maps(&records)[..] {
                [] => Reply::Map(Map::EMPTY),
                [map] => Reply::Map(Map::from(*map)),
                _ => {
                    self.with_site(zone, |site| site.probe.doubt(self.now()));
                    Reply::Failed
                }
            },
            Subject::Codes(_) => {
                let codes = Codes::of(records.iter().filter_map(|record| match record {
                    Record::A(code) => Some(*code),
                    _ => None,
                }));
                if let Some(answer) = codes.foreign {
                    self.with_site(zone, |site| site.foreign(answer));
                }
                Reply::Codes(codes.good.into())
            }
            Subject::Text(_) => {
                let text = records.iter().find_map(|record| match record {
                    Record::Txt(text) => Some(policy::printable(text)),
                    _ => None,
                });
                Reply::Text(text.unwrap_or_default().into())
            }
        };
        (reply, ttl)
    }

    /// The records of a name below the zone, and for how long they live; `None` if the list does not answer.
    async fn records(
        &self,
        zone: u32,
        labels: &str,
        kind: RecordKind,
    ) -> Option<(Vec<Record>, Duration)> {
        let by = Instant::now() + self.terms().timeout;
        let resolver = self.0.resolver.borrow().clone();
        let name = {
            let sites = self.0.sites.borrow();
            let zone = sites.get(zone as usize).map(|site| &*site.zone);
            format!("{labels}.{}.", zone.unwrap_or_default())
        };
        let begin = Instant::now();
        let asked = timeout_at(by, resolver.records_with_ttl(&name, kind))
            .await
            .ok();
        let answer = asked.and_then(|(answer, ttl)| match answer {
            RecordsAnswer::Found(records) => Some((records, ttl)),
            RecordsAnswer::None | RecordsAnswer::NoSuchName => Some((Vec::new(), ttl)),
            RecordsAnswer::TempFail(failure) => {
                tracing::debug!(%name, %failure, "query to a list failed");
                None
            }
        });
        let (now, took) = (self.now(), begin.elapsed());
        self.with_site(zone, |site| site.ended(now, answer.is_some(), took));
        answer
    }

    /// Whether a list is to be probed now, without beginning it.
    pub(crate) fn is_probe_due(&self, zone: u32) -> bool {
        let now = self.now();
        self.with_site(zone, |site| site.is_probe_due(now))
    }

    /// Probes a list for maps, if that is due.
    pub(crate) async fn probe_site(&self, zone: u32) {
        let now = self.now();
        if !self.with_site(zone, |site| site.begin_probe(now)) {
            return;
        }
        let labels = policy::test_map().to_string();
        let answer = self.records(zone, &labels, RecordKind::Aaaa).await;
        let serves = answer.map(|(records, _)| policy::serves_maps(&maps(&records)));
        let now = self.now();
        self.with_site(zone, |site| {
            let before = site.probe.serves();
            site.probe.ended(now, serves);
            let list = &*site.name;
            match (before, site.probe.serves()) {
                (false, true) => tracing::info!(list, "list serves maps"),
                (true, false) => tracing::warn!(list, "list serves maps no more"),
                _ => {}
            }
        });
    }
}

fn maps(records: &[Record]) -> Vec<Ipv6Addr> {
    let maps = records.iter().filter_map(|record| match record {
        Record::Aaaa(map) => Some(*map),
        _ => None,
    });
    maps.collect()
}
