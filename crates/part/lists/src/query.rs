//! A query to a list, shared by equal questions.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::spawn_local;
use tokio::time::{Instant, timeout_at};
use vere_dnsbl::Map;
use vere_dnsbl::cache::{Look, Question, Reply, Subject};
use vere_dnsbl::policy::{self, Check, Codes, Told, Trust};
use vere_net::resolver::{Record, RecordKind, RecordsAnswer};

use super::Lists;
use super::findings::Origin;
use super::site::{Site, share};

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
                let codes = Codes::of(codes(&records));
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

    /// Begins a check of a list, if one is due; nobody waits for its end.
    pub(crate) fn begin_check(&self, zone: u32) {
        let now = self.now();
        if let Some(check) = self.with_site(zone, |site| site.begin_check(now)) {
            let lists = self.clone();
            spawn_local(async move { lists.go_on(zone, check).await });
        }
    }

    /// Checks a list, if that is due: whether its entries count, and whether it serves maps.
    pub(crate) async fn check(&self, zone: u32) {
        let now = self.now();
        if let Some(check) = self.with_site(zone, |site| site.begin_check(now)) {
            self.go_on(zone, check).await;
        }
    }

    async fn go_on(&self, zone: u32, mut check: Check) {
        while let Some(step) = check.step() {
            self.with_site(zone, Site::begin_step);
            let kind = match step.is_of_map() {
                true => RecordKind::Aaaa,
                false => RecordKind::A,
            };
            let answer = self.records(zone, &step.labels(), kind).await;
            check.answered(answer.map(|(records, _)| match step.is_of_map() {
                true => Told::Maps(maps(&records)),
                false => Told::Codes(codes(&records)),
            }));
            if self.with_site(zone, |site| site.learn(&check)) {
                self.0.cache.borrow_mut().forget(zone);
            }
        }
        let now = self.now();
        self.with_site(zone, |site| site.check_ended(now, &check));
    }

    /// Whether the entries of a list count, once a check under way has found out.
    pub(crate) async fn trust(&self, zone: u32) -> Trust {
        loop {
            let (trust, checked) = self.with_site(zone, |site| site.trust());
            match (trust, checked) {
                (Trust::Unchecked, Some(checked)) => checked.notified().await,
                _ => return trust,
            }
        }
    }
}

fn codes(records: &[Record]) -> Vec<Ipv4Addr> {
    let codes = records.iter().filter_map(|record| match record {
        Record::A(code) => Some(*code),
        _ => None,
    });
    codes.collect()
}

fn maps(records: &[Record]) -> Vec<Ipv6Addr> {
    let maps = records.iter().filter_map(|record| match record {
        Record::Aaaa(map) => Some(*map),
        _ => None,
    });
    maps.collect()
}
