//! The stages of a run.

use std::collections::BTreeMap;

use vere_ports::files::Errno;
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Urgency};
use vere_ports::storage::Storage;

use super::super::job::{InspectJob, Inspected, Job, Task};
use super::super::state::pages::Bring;
use super::super::state::{Asked, Volume, Working};
use super::super::step::Moment;
use super::collect::{self, CollectReport, CollectTerms};
use super::compare::{Comparison, Mount, compare};
use super::finding::{CheckReport, CheckTerms};
use super::inspect::Inspection;
use super::rows::{RowChange, Writing};
use super::state::{Stage, Then, Ticket, Upkeep, Upkept, What};
use super::survey::{Inventory, Survey};
use super::{chain, check, tree};
use crate::format::FormatError;

impl<S: Storage> Volume<S> {
    /// Begins a check. Returns whether no other run is under way.
    pub fn check(&mut self, now: Moment, terms: CheckTerms) -> bool {
        self.begin_upkeep(now, What::Check(terms, CheckReport::default()))
    }

    /// Begins a collection of garbage. Returns whether no other run is under way.
    pub fn collect(&mut self, now: Moment, terms: CollectTerms) -> bool {
        self.begin_upkeep(now, What::Collect(terms, CollectReport::default()))
    }

    /// Begins to put rows into commits, a bounded number at once. Returns whether no other run is under way.
    pub(in crate::volume) fn begin_rows(&mut self, now: Moment, changes: Vec<RowChange>) -> bool {
        self.at(now);
        if self.upkeep.is_some() {
            return false;
        }
        let stage = Stage::Write(Writing::new(changes), Then::End);
        self.upkeep = Some(Box::new(self.new_run(What::Rows, stage)));
        self.tend();
        true
    }

    fn new_run(&self, what: What, stage: Stage) -> Upkeep {
        Upkeep {
            what,
            stage,
            head: self.chain.head(),
            inventory: Inventory::default(),
            comparison: Comparison::default(),
            due: BTreeMap::new(),
            failed: None,
            bring: Bring::default(),
        }
    }

    fn begin_upkeep(&mut self, now: Moment, what: What) -> bool {
        self.at(now);
        if self.upkeep.is_some() {
            return false;
        }
        let accounts = self.terms.accounts.iter().map(|terms| terms.account);
        let survey = Survey::new(accounts, self.seals.volume.tag());
        self.upkeep = Some(Box::new(self.new_run(what, Stage::Survey(survey))));
        self.tend();
        true
    }

    /// The present stage of a run, with the parts done and the parts known.
    #[must_use]
    pub fn upkeep_progress(&self) -> Option<(&'static str, usize, usize)> {
        let upkeep = self.upkeep.as_ref()?;
        Some(match &upkeep.stage {
            Stage::Survey(survey) => {
                let (done, left) = survey.progress();
                ("listing", done, done.saturating_add(left))
            }
            Stage::Inspect(inspection) => {
                let (done, all) = inspection.progress();
                ("verifying", done, all)
            }
            Stage::Write(writing, _) => ("writing", writing.done(), writing.all()),
            Stage::Copy => ("copying", 0, self.replicas.waiting()),
            Stage::Remove(removing) => ("removing", removing.done(), removing.all()),
            Stage::Over => ("over", 1, 1),
        })
    }

    /// The result of a run that has ended; another one may begin then.
    pub fn take_upkept(&mut self) -> Option<Upkept> {
        let is_over = |upkeep: &mut Box<Upkeep>| matches!(upkeep.stage, Stage::Over);
        let upkeep = self.upkeep.take_if(is_over)?;
        Some(match (upkeep.failed, upkeep.what) {
            (Some(reason), _) => Upkept::Failed(reason),
            (None, What::Check(_, report)) => Upkept::Checked(report),
            (None, What::Collect(_, report)) => Upkept::Collected(report),
            (None, What::Rows) => Upkept::Written,
        })
    }

    /// An account has answered to a run.
    pub(crate) fn upkeep_answered(
        &mut self,
        account: u16,
        ticket: Ticket,
        answer: Result<Answer, Fault>,
    ) {
        if let Err(fault) = &answer {
            self.account_failed(account, fault);
        }
        let Some(upkeep) = self.upkeep.as_mut() else {
            return;
        };
        match (&mut upkeep.stage, ticket) {
            (Stage::Survey(survey), Ticket::Look(look)) => survey.answered(account, look, answer),
            (Stage::Inspect(inspection), Ticket::Mail(number)) => {
                let subject = inspection.get(number).map(|suspect| suspect.subject);
                let body = inspection.answered(number, answer);
                if let (Some(body), Some(subject), Some(encoding)) =
                    (body, subject, self.accounts.encoding(account))
                {
                    let job = InspectJob {
                        seals: self.seals.clone(),
                        encoding,
                        subject,
                        body,
                    };
                    self.work(Job(Task::Inspect(job)), Working::Upkeep(number));
                }
            }
            (Stage::Remove(removing), Ticket::Batch(number)) => removing.answered(number, answer),
            _ => {}
        }
    }

    /// A mail of a run is opened.
    pub(crate) fn mail_inspected(&mut self, number: usize, opened: Result<Inspected, FormatError>) {
        if let Some(upkeep) = self.upkeep.as_mut()
            && let Stage::Inspect(inspection) = &mut upkeep.stage
        {
            inspection.opened(number, opened);
        }
    }

    /// Has a run go on as far as possible.
    pub(crate) fn tend(&mut self) {
        self.tend_facts();
        let Some(mut upkeep) = self.upkeep.take() else {
            return;
        };
        loop {
            match self.advance(&mut upkeep) {
                Ok(true) => {}
                Ok(false) => break,
                Err(errno) => {
                    upkeep.failed = Some(format!("rows of the volume: {errno}"));
                    upkeep.stage = Stage::Over;
                }
            }
        }
        self.upkeep = Some(upkeep);
    }

    /// Carries a stage on. Returns whether the next one has begun.
    fn advance(&mut self, upkeep: &mut Upkeep) -> Result<bool, Errno> {
        let needs_rows = match &upkeep.stage {
            Stage::Survey(survey) => survey.is_over(),
            Stage::Over => false,
            _ => true,
        };
        if needs_rows && !self.bring_pages(&mut upkeep.bring)? {
            return Ok(false);
        }
        match &mut upkeep.stage {
            Stage::Survey(survey) => {
                while let Some((account, look)) = survey.next() {
                    let asked = Asked::Upkeep(Ticket::Look(look));
                    self.ask(AccountId(account), Urgency::Idle, look.request(), asked);
                }
                if !survey.is_over() {
                    return Ok(false);
                }
                self.end_survey(upkeep)?;
            }
            Stage::Inspect(inspection) => {
                while let Some((number, request)) = inspection.next() {
                    let account = inspection.get(number).map_or(0, |mail| mail.copy.account);
                    let asked = Asked::Upkeep(Ticket::Mail(number));
                    self.ask(AccountId(account), Urgency::Idle, request, asked);
                }
                if !inspection.is_over() {
                    return Ok(false);
                }
                self.end_inspection(upkeep)?;
            }
            Stage::Write(writing, then) => {
                let then = *then;
                match self.write_on(writing) {
                    Ok(false) => return Ok(false),
                    Ok(true) => self.after_rows(upkeep, then),
                    Err(reason) => {
                        upkeep.failed = Some(reason);
                        upkeep.stage = Stage::Over;
                    }
                }
            }
            Stage::Copy => {
                self.make_copies();
                if self.replicas.copying() > 0 {
                    return Ok(false);
                }
                self.end_copies(upkeep);
            }
            Stage::Remove(removing) => {
                while let Some((number, account, request)) = removing.next() {
                    let asked = Asked::Upkeep(Ticket::Batch(number));
                    self.ask(AccountId(account), Urgency::Idle, request, asked);
                }
                if !removing.is_over() {
                    return Ok(false);
                }
                self.end_removal(upkeep);
            }
            Stage::Over => return Ok(false),
        }
        Ok(true)
    }

    fn end_survey(&mut self, upkeep: &mut Upkeep) -> Result<(), Errno> {
        let stage = std::mem::replace(&mut upkeep.stage, Stage::Over);
        let Stage::Survey(survey) = stage else {
            return Ok(());
        };
        upkeep.inventory = survey.finish();
        let is_under_way = |pack: u64, account: Option<u16>| {
            match account {
            None => self.uploads.has(pack),
            Some(account) => {
                self.uploads.has(pack)
                    || self.asked.values().any(|(_, asked)| {
                        matches!(asked, Asked::Copy(of, to) if of.0 == pack && *to == account)
                    })
            }
        }
        };
        let mount = Mount {
            accounts: &self.accounts,
            is_under_way: &is_under_way,
        };
        upkeep.comparison = compare(self.files.tree(), &upkeep.inventory, &mount)?;
        let suspects = match &mut upkeep.what {
            What::Check(terms, report) => {
                let terms = *terms;
                report.mails = upkeep.inventory.mails();
                tree::check_tree(self.files.tree(), report)?;
                chain::check_chain(&upkeep.inventory, self.terms.lead, upkeep.head, report);
                upkeep.comparison.report(report);
                check::suspects(terms, &upkeep.comparison, &upkeep.inventory)
            }
            What::Collect(_, report) => {
                for (account, holding) in &upkeep.inventory.accounts {
                    if let Some(fault) = &holding.fault {
                        report.failed.insert(*account, fault.clone());
                    }
                }
                collect::suspects(&upkeep.comparison, &upkeep.inventory)
            }
            What::Rows => Vec::new(),
        };
        upkeep.stage = Stage::Inspect(Inspection::new(suspects));
        Ok(())
    }

    fn end_inspection(&mut self, upkeep: &mut Upkeep) -> Result<(), Errno> {
        let stage = std::mem::replace(&mut upkeep.stage, Stage::Over);
        let Stage::Inspect(inspection) = stage else {
            return Ok(());
        };
        let verdicts = inspection.finish();
        match &upkeep.what {
            What::Check(..) => self.end_check(upkeep, &verdicts),
            What::Collect(..) => self.plan_collection(upkeep, &verdicts),
            What::Rows => Ok(()),
        }
    }

    fn after_rows(&mut self, upkeep: &mut Upkeep, then: Then) {
        upkeep.stage = match then {
            Then::Copy => Stage::Copy,
            Then::Remove => Stage::Remove(self.begin_removal(upkeep)),
            Then::End => Stage::Over,
        };
    }
}
