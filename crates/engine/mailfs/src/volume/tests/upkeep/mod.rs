//! Checks, repair and garbage collection over accounts that lose, double and alter mails, and that end connections.

mod checks;
pub(super) mod collections;
mod displaced;
mod losers;
mod mounts;
mod moves;
mod past;
mod rewrites;
mod slots;
mod two;

use super::super::{CheckReport, CheckTerms, CollectReport, CollectTerms, Finding, Upkept};
use super::*;

pub(super) const ROOT: Inode = Inode::ROOT;
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// The lead, and a group of two further accounts.
fn replicated() -> World {
    let mut world = World::new(3);
    world.terms.groups = vec![GroupTerms {
        group: 1,
        accounts: vec![2, 3],
    }];
    world.kill();
    world.mount().unwrap();
    world
}

impl World {
    fn upkept(&mut self) -> Option<Upkept> {
        for _ in 0..20 {
            self.settle();
            if let Some(upkept) = self.volume().take_upkept() {
                return Some(upkept);
            }
            self.pass(Duration::from_secs(10));
        }
        None
    }

    pub(super) fn check(&mut self, data: bool, repair: bool) -> CheckReport {
        let now = self.moment();
        assert!(self.volume().check(now, CheckTerms { data, repair }));
        match self.upkept() {
            Some(Upkept::Checked(report)) => report,
            other => panic!("{other:?} {:?}", self.volume().upkeep_progress()),
        }
    }

    pub(super) fn collect(&mut self) -> Option<CollectReport> {
        let now = self.moment();
        assert!(self.volume().collect(now, CollectTerms::DEFAULT));
        match self.upkept()? {
            Upkept::Collected(report) => Some(report),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn days(&mut self, days: u32) {
        self.pass(DAY * days);
    }

    fn mails(&mut self, account: u16, mailbox: &str) -> Vec<u32> {
        let mailbox = self.accounts.get_mut(&account).unwrap().mailbox(mailbox);
        mailbox.map_or_else(Vec::new, |mailbox| mailbox.mails.keys().copied().collect())
    }

    pub(super) fn shelf(
        &mut self,
        account: u16,
        mailbox: &str,
    ) -> &mut vere_faults::accounts::MemoryMailbox {
        let account = self.accounts.get_mut(&account).unwrap();
        account.mailbox(mailbox).unwrap()
    }

    pub(super) fn remove(&mut self, name: &str) {
        let call = Call::Unlink {
            parent: ROOT,
            name: name.as_bytes().to_vec(),
        };
        self.call(call).unwrap();
    }
}

fn kinds(report: &CheckReport) -> Vec<&'static str> {
    let mut kinds: Vec<_> = report.findings.iter().map(Finding::kind).collect();
    kinds.dedup();
    kinds
}
