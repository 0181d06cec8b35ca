//! Takes over the queues of dead gateways (`gateway.adopts`), and gives the queues back when empty, or when their own
//! gateway is back.
//!
//! A gateway is dead when for `gateway.adopt_after` neither its lease nor the record of its group changed in the
//! register, and the lease was not given back: an operator who stops a gateway means to start the gateway again.
//! While an owner claims or waits, the record is younger than the lease; the claim takes longer.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::spawn_local;
use vere_cluster::{Register, Versioned};
use vere_owner::Membership;
use vere_owner::lease::LeaseRecord;
use vere_settings::Settings;

use super::connecting::link_options;
use super::group::{self, Group};
use super::groups::Groups;
use super::takeover::{self, End, Quarantine};
use super::trade::Trade;
use vere_link as nodes;
use vere_link::link::{SpoolLink, random_life};
use vere_link::reader::Admission;

/// `gateway.adopts`: every gateway.
const ALL: &str = "*";
/// What a claim takes at most beyond lease and skew: members that do not answer are waited for.
const CLAIM_MAX: Duration = Duration::from_secs(10);
/// Between two looks at the register.
const LOOK_MAX: Duration = Duration::from_secs(5);
const LOOK_MIN: Duration = Duration::from_millis(100);
/// Between two questions to nodes that do not answer: the first time, and at most.
const ASK_MIN: Duration = Duration::from_secs(1);
const ASK_MAX: Duration = Duration::from_secs(60);

/// The state of a group: the versions of lease and record, and the time of their last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    lease: u64,
    group: u64,
    since: Instant,
    /// When the nodes may be asked, and how long after that again if none of them answers.
    ask_at: Instant,
    ask_pause: Duration,
}

/// Groups that are looked at.
#[derive(Debug)]
struct Watch {
    adopt_after: Duration,
    /// What an owner that claims the group may take until it has the lease.
    claim: Duration,
    seen: BTreeMap<String, Seen>,
}

impl Watch {
    /// Reads the content of the register; returns the record under which the dead owner had the group.
    fn look(
        &mut self,
        name: &str,
        lease: Option<&Versioned>,
        group: Option<&Versioned>,
        now: Instant,
    ) -> Option<Membership> {
        let both = lease.zip(group).and_then(|(lease, group)| {
            let held = LeaseRecord::decode(&lease.value).filter(|held| held.holder != 0)?;
            let record = Membership::decode(&group.value).ok()?;
            Some((lease.version, held, group.version, record))
        });
        let Some((lease, held, group, record)) = both else {
            self.seen.remove(name);
            return None;
        };
        let fresh = Seen {
            lease,
            group,
            since: now,
            ask_at: now,
            ask_pause: ASK_MIN,
        };
        let seen = self.seen.entry(name.to_owned()).or_insert(fresh);
        if (seen.lease, seen.group) != (lease, group) {
            *seen = fresh;
        }
        let claimed = held.epoch < record.epoch;
        let wait = self.adopt_after + if claimed { self.claim } else { Duration::ZERO };
        let over = now.saturating_duration_since(seen.since) >= wait;
        (over && now >= seen.ask_at).then_some(record)
    }

    /// No node said whether the group may be had: they are asked again, less and less often.
    fn unanswered(&mut self, name: &str, now: Instant) {
        if let Some(seen) = self.seen.get_mut(name) {
            seen.ask_at = now + seen.ask_pause;
            seen.ask_pause = (seen.ask_pause * 2).min(ASK_MAX);
        }
    }
}

/// Watches and adopts until the gateway stops. `deliver` delivers the mail of a group until it is dropped.
pub async fn run<T: Trade, F: Future<Output = ()> + 'static>(
    groups: Rc<Groups<T>>,
    mut stop: watch::Receiver<bool>,
    deliver: fn(Rc<Group<T>>) -> F,
) {
    let settings = groups.process().settings();
    if settings.gateway.adopts.is_empty() {
        return;
    }
    let register = match nodes::register(&settings) {
        Ok(register) => register,
        Err(error) => return tracing::error!(%error, "no queues of dead owners are adopted"),
    };
    let terms = nodes::lease_terms(&settings);
    let mut watch = Watch {
        adopt_after: settings.gateway.adopt_after.duration(),
        claim: terms.lease + terms.skew + CLAIM_MAX,
        seen: BTreeMap::new(),
    };
    let pause = (watch.adopt_after / 6).clamp(LOOK_MIN, LOOK_MAX);
    while !*stop.borrow() {
        for name in names(groups.process(), &register, &settings).await {
            if groups.find(&name).is_some() {
                continue;
            }
            let read = |kind: &str| format!("{kind}/{name}");
            let lease = register.read(&read("lease")).await;
            let group = register.read(&read("group")).await;
            let (Ok(lease), Ok(group)) = (lease, group) else {
                // Changes in the time between are unknown.
                watch.seen.remove(&name);
                continue;
            };
            let now = Instant::now();
            let Some(record) = watch.look(&name, lease.as_ref(), group.as_ref(), now) else {
                continue;
            };
            match may_adopt(&settings, &name, &record).await {
                None => watch.unanswered(&name, Instant::now()),
                Some(may) => {
                    watch.seen.remove(&name);
                    if may {
                        adopt(&groups, (&name, record.epoch), stop.clone(), deliver);
                    }
                }
            }
        }
        tokio::select! {
            _ = stop.changed() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// The gateways that may be adopted.
async fn names<T: Trade>(process: &T, register: &Register, settings: &Settings) -> Vec<String> {
    let adopts = &settings.gateway.adopts;
    if !adopts.iter().any(|name| name == ALL) {
        let mine = adopts.iter().filter(|name| T::adopts(name));
        return mine.cloned().collect();
    }
    let all = register.list("lease/").await.unwrap_or_default();
    let names = all.iter().filter_map(|(key, _)| key.strip_prefix("lease/"));
    // The writer of the register chooses the names, which become names of files.
    let right = names.filter(|name| vere_settings::checked_name(name).is_ok());
    let own = process.group();
    let others = right.filter(|name| *name != own && T::adopts(name));
    others.map(str::to_owned).collect()
}

/// Whether the nodes admit the gateway to the group, if a node answers.
async fn may_adopt(settings: &Arc<Settings>, group: &str, record: &Membership) -> Option<bool> {
    match nodes::admission(settings, group, record).await {
        Ok(Admission::Granted) => return Some(true),
        Ok(Admission::Denied(reason)) => {
            let account = &settings.spool.speaks_as;
            tracing::error!(group, account, %reason, "cannot adopt the queues");
        }
        Ok(Admission::Unknown(error)) => {
            tracing::warn!(
                group,
                error,
                "no node says whether the queues may be adopted"
            );
            return None;
        }
        Err(error) => tracing::error!(group, %error, "cannot adopt the queues"),
    }
    Some(false)
}

/// Claims the group and delivers its messages, beside all other mail.
fn adopt<T: Trade, F: Future<Output = ()> + 'static>(
    groups: &Rc<Groups<T>>,
    (name, epoch): (&str, u64),
    stop: watch::Receiver<bool>,
    deliver: fn(Rc<Group<T>>) -> F,
) {
    tracing::warn!(
        group = name,
        "the {} is dead: its queues are delivered here",
        T::OWNER
    );
    let adopted = match take(&groups.own.host.process, name, epoch) {
        Ok(adopted) => adopted,
        Err(error) => return tracing::error!(group = name, %error, "cannot adopt the queues"),
    };
    let (groups, name, mut stop) = (Rc::clone(groups), name.to_owned(), stop);
    spawn_local(async move {
        let (other, _mark) = adopted;
        groups.add(&name, &other);
        let end = takeover::deliver(
            &other,
            deliver(Rc::clone(&other)),
            &mut stop,
            Quarantine::Counts,
            |_| {},
        )
        .await;
        groups.remove(&name);
        match end {
            End::Empty { unreadable, .. } => tracing::info!(
                group = name,
                unreadable,
                "everything in the adopted queues is delivered"
            ),
            End::Taken => tracing::info!(group = name, "adopted queues went to another owner"),
            End::Stopped => {}
        }
    });
}

fn take<T: Trade>(
    process: &Rc<T>,
    name: &str,
    epoch: u64,
) -> Result<(Rc<Group<T>>, nodes::mark::OwnerMark), nodes::SetupError> {
    let settings = process.settings();
    let life = random_life();
    let mark = nodes::mark(&settings, name, life)?;
    let mut options = link_options(&settings, name)?;
    (options.life, options.dead) = (life, mark.dead.clone());
    (options.adopted, options.takes) = (true, Some(epoch));
    let (link, driver) = SpoolLink::connect(options);
    spawn_local(driver);
    Ok((Rc::new(group::new(process, link)), mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(version: u64, epoch: u64, holder: u64) -> Option<Versioned> {
        let record = LeaseRecord {
            adopted: false,
            epoch,
            holder,
            counter: version,
        };
        let value = record.encode();
        Some(Versioned { version, value })
    }

    fn group(version: u64, epoch: u64) -> Option<Versioned> {
        let value = Membership::new(epoch, 7).encode();
        Some(Versioned { version, value })
    }

    #[test]
    fn only_who_renews_nothing_for_long_is_dead() {
        let mut watch = Watch {
            adopt_after: Duration::from_secs(30),
            claim: Duration::from_secs(22),
            seen: BTreeMap::new(),
        };
        let begin = Instant::now();
        let mut look = |lease: Option<Versioned>, group: Option<Versioned>, second| {
            let now = begin + Duration::from_secs(second);
            let record = watch.look("mx1", lease.as_ref(), group.as_ref(), now);
            record.map(|record| record.epoch)
        };
        assert_eq!(look(lease(1, 3, 7), group(1, 3), 0), None);
        assert_eq!(look(lease(1, 3, 7), group(1, 3), 29), None);
        // It lived.
        assert_eq!(look(lease(2, 3, 7), group(1, 3), 30), None);
        assert_eq!(look(lease(2, 3, 7), group(2, 3), 50), None);
        assert_eq!(look(lease(2, 3, 7), group(2, 3), 79), None);
        assert_eq!(look(lease(2, 3, 7), group(2, 3), 80), Some(3));
        // Somebody claims it: longer.
        assert_eq!(look(lease(2, 3, 7), group(3, 4), 90), None);
        assert_eq!(look(lease(2, 3, 7), group(3, 4), 141), None);
        assert_eq!(look(lease(2, 3, 7), group(3, 4), 142), Some(4));
        // Given back, never there, damaged: never.
        for (lease, group) in [
            (lease(3, 4, 0), group(3, 4)),
            (None, group(3, 4)),
            (lease(3, 4, 7), None),
            (
                Some(Versioned {
                    version: 9,
                    value: vec![1],
                }),
                group(3, 4),
            ),
        ] {
            for second in [200, 400, 800] {
                assert_eq!(look(lease.clone(), group.clone(), second), None);
            }
        }
    }

    /// Nodes that are all away are not asked for every look at the register; a sign of life of the owner
    /// begins anew.
    #[test]
    fn nodes_that_do_not_answer_are_asked_less_and_less_often() {
        let mut watch = Watch {
            adopt_after: Duration::from_secs(30),
            claim: Duration::from_secs(22),
            seen: BTreeMap::new(),
        };
        let begin = Instant::now();
        let mut asked = Vec::new();
        for second in 0..400 {
            let now = begin + Duration::from_secs(second);
            let version = if second < 300 { 1 } else { 2 };
            let (lease, group) = (lease(version, 3, 7), group(1, 3));
            if watch
                .look("mx1", lease.as_ref(), group.as_ref(), now)
                .is_some()
            {
                asked.push(second);
                watch.unanswered("mx1", now);
            }
        }
        let doubled = [30, 31, 33, 37, 45, 61, 93, 153, 213, 273];
        let anew = [330, 331, 333, 337, 345, 361, 393];
        assert_eq!(asked, [&doubled[..], &anew[..]].concat());
    }
}
