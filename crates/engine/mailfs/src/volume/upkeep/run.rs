//! The stages of a run.

use std::collections::HashSet;

use bytes::Bytes;
use vere_ports::files::Errno;
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Urgency};
use vere_ports::storage::Storage;
use vere_units::Timestamp;

use super::super::job::{InspectJob, Job, Task};
use super::super::state::pages::Bring;
use super::super::state::{Asked, Volume, Working};
use super::super::step::Moment;
use super::collect::{CollectReport, CollectTerms};
use super::compare::{Comparison, Mount, compare};
use super::finding::{CheckReport, CheckTerms};
use super::inspect::{Inspected, Inspection};
use super::moves::Moved;
use super::rows::{RowSource, Writing};
use super::state::{Garbage, Stage, Then, Ticket, Upkeep, Upkept, What};
use super::survey::{Inventory, Survey};
use super::{chain, tree, verified};
use crate::format::FormatError;

impl<S: Storage> Volume<S> {
    /// Begins a check. Returns whether the run begins: no other one is under way, and the log has confirmed the mount's state.
    pub fn check(&mut self, now: Moment, terms: CheckTerms) -> bool {
        let has_begun = self.begin_upkeep(now, What::Check(terms, CheckReport::default()));
        if has_begun && terms.repair {
            self.compare_mirrors();
        }
        has_begun
    }

    /// Begins a collection of garbage. Returns whether no other run is under way.
    pub fn collect(&mut self, now: Moment, terms: CollectTerms) -> bool {
        let has_begun = self.begin_upkeep(now, What::Collect(terms, CollectReport::default()));
        if has_begun {
            // Holes of long ago are found by whole logs alone.
            self.compare_mirrors();
        }
        has_begun
    }

    /// Begins to put a number of rows into commits, a bounded number at once. Returns whether no other run is under way.
    pub(in crate::volume) fn begin_rows(
        &mut self,
        now: Moment,
        rows: Box<dyn RowSource>,
        all: usize,
    ) -> bool {
        self.at(now);
        if self.upkeep.is_some() {
            return false;
        }
        let stage = Stage::Write(Writing::of_source(rows, all), Then::End);
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
            garbage: Garbage::default(),
            touched: HashSet::new(),
            new_rows: HashSet::new(),
            is_hungry: false,
            failed: None,
            bring: Bring::default(),
        }
    }

    fn begin_upkeep(&mut self, now: Moment, what: What) -> bool {
        self.at(now);
        // Nothing is removed by rows that the log may have overtaken.
        if self.upkeep.is_some() || self.is_unconfirmed() {
            return false;
        }
        self.upkeep = Some(Box::new(self.new_run(what, Stage::Begin)));
        self.tend();
        true
    }

    /// The present stage of a run, with the parts done and the parts known.
    #[must_use]
    pub fn upkeep_progress(&self) -> Option<(&'static str, usize, usize)> {
        let upkeep = self.upkeep.as_ref()?;
        Some(match &upkeep.stage {
            Stage::Begin => ("listing", 0, 0),
            Stage::Compare => ("comparing", 0, 0),
            Stage::Judge(_) => ("judging", 0, 0),
            Stage::Walk(walk) => {
                let (done, all) = walk.progress();
                ("pages", done, all)
            }
            Stage::Scan(scan) => ("weighing", scan.rows(), 0),
            Stage::Move(moving) => {
                let (done, all) = moving.progress();
                ("moving", done, all)
            }
            Stage::Anew(anew) => {
                let left = anew.fragments.found.len();
                ("rewriting", anew.files, anew.files.saturating_add(left))
            }
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

    /// Whatever runs ends without a result, for this reason.
    pub(crate) fn end_runs(&mut self, reason: &str) {
        if let Some(upkeep) = &mut self.upkeep
            && !matches!(upkeep.stage, Stage::Over)
        {
            upkeep.failed = Some(reason.to_owned());
            upkeep.stage = Stage::Over;
        }
        if let Some(facts) = &mut self.facts {
            facts.end(reason, self.now.steady);
        }
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
        let Some(mut upkeep) = self.upkeep.take() else {
            return;
        };
        match (&mut upkeep.stage, ticket) {
            (Stage::Survey(survey), Ticket::Look(look)) => survey.answered(account, look, answer),
            (Stage::Inspect(inspection), Ticket::Mail(number)) => {
                self.mail_answered(inspection, (number, account), answer);
            }
            (Stage::Remove(removing), Ticket::Batch(number)) => removing.answered(number, answer),
            (Stage::Walk(walk), Ticket::Page) => self.walk_answered(walk, answer),
            (Stage::Move(moving), Ticket::Frame(number, account)) => {
                self.frame_answered(moving, (number, account), answer);
            }
            (Stage::Anew(anew), Ticket::Frame(number, account)) => {
                self.anew_answered(anew, (number, account), answer);
            }
            _ => {}
        }
        self.upkeep = Some(upkeep);
    }

    fn mail_answered(
        &mut self,
        inspection: &mut Inspection,
        (number, account): (usize, u16),
        answer: Result<Answer, Fault>,
    ) {
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

    /// A mail of a run is opened.
    pub(crate) fn mail_inspected(&mut self, number: usize, opened: Result<Inspected, FormatError>) {
        if let Some(upkeep) = self.upkeep.as_mut()
            && let Stage::Inspect(inspection) = &mut upkeep.stage
        {
            inspection.opened(number, opened);
        }
    }

    /// A frame of a run is opened.
    pub(crate) fn frame_opened(&mut self, number: usize, opened: Result<Bytes, FormatError>) {
        if let Some(mut upkeep) = self.upkeep.take() {
            match &mut upkeep.stage {
                Stage::Move(moving) => self.moved_frame_opened(moving, number, opened),
                Stage::Anew(anew) => Self::anew_opened(anew, number, opened),
                _ => {}
            }
            self.upkeep = Some(upkeep);
        }
    }

    /// When a run wants to go on without any answer.
    pub(crate) fn upkeep_wake(&self) -> Option<Timestamp> {
        let upkeep = self.upkeep.as_ref()?;
        match &upkeep.stage {
            _ if upkeep.is_hungry => Some(self.now.steady),
            Stage::Move(moving) => Some(moving.until()),
            Stage::Anew(anew) => Some(anew.until),
            _ => None,
        }
    }

    /// Has a run go on as far as possible.
    pub(crate) fn tend(&mut self) {
        self.tend_mirrors();
        self.tend_other_logs();
        self.tend_facts();
        let Some(mut upkeep) = self.upkeep.take() else {
            return;
        };
        upkeep.is_hungry = false;
        loop {
            match self.advance(&mut upkeep) {
                Ok(true) => {}
                Ok(false) | Err(Errno::Again) => break,
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
            Stage::Begin => self.begin_stages(upkeep)?,
            Stage::Survey(_) => return self.advance_survey(upkeep),
            Stage::Inspect(inspection) => {
                while let Some((number, request)) = inspection.poll() {
                    let account = inspection.get(number).map_or(0, |mail| mail.copy.account);
                    let asked = Asked::Upkeep(Ticket::Mail(number));
                    self.ask(AccountId(account), Urgency::Idle, request, asked);
                }
                if !inspection.is_over() {
                    return Ok(false);
                }
                let stage = std::mem::replace(&mut upkeep.stage, Stage::Over);
                if let Stage::Inspect(inspection) = stage {
                    upkeep.stage = Stage::Judge(inspection.finish());
                }
            }
            Stage::Compare => self.compare_all(upkeep)?,
            Stage::Judge(_) => self.judge(upkeep)?,
            Stage::Write(writing, then) => {
                let then = *then;
                match self.write_on(writing) {
                    Ok(false) => return Ok(false),
                    Ok(true) => self.after_rows(upkeep, then)?,
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
                while let Some((number, account, request)) = removing.poll() {
                    let asked = Asked::Upkeep(Ticket::Batch(number));
                    self.ask(AccountId(account), Urgency::Idle, request, asked);
                }
                if !removing.is_over() {
                    return Ok(false);
                }
                self.end_removal(upkeep);
            }
            Stage::Walk(_) | Stage::Scan(_) | Stage::Move(_) | Stage::Anew(_) => {
                return self.advance_pass(upkeep);
            }
            Stage::Over => return Ok(false),
        }
        Ok(true)
    }

    /// Carries the listing of all accounts on.
    fn advance_survey(&mut self, upkeep: &mut Upkeep) -> Result<bool, Errno> {
        let Stage::Survey(survey) = &mut upkeep.stage else {
            return Ok(false);
        };
        while let Some((account, look)) = survey.poll() {
            let asked = Asked::Upkeep(Ticket::Look(look));
            self.ask(AccountId(account), Urgency::Idle, look.request(), asked);
        }
        if matches!(upkeep.what, What::Collect(..)) {
            return self.list_on(upkeep);
        }
        if !survey.is_over() {
            return Ok(false);
        }
        let stage = std::mem::replace(&mut upkeep.stage, Stage::Compare);
        if let Stage::Survey(survey) = stage {
            upkeep.inventory = survey.finish();
        }
        Ok(true)
    }

    /// Carries on a stage that goes through pages or rows in slices.
    fn advance_pass(&mut self, upkeep: &mut Upkeep) -> Result<bool, Errno> {
        match &mut upkeep.stage {
            Stage::Walk(walk) => {
                walk.is_hungry = false;
                match self.walk_on(walk) {
                    Ok(true) => Self::end_walk(upkeep),
                    Ok(false) => {
                        upkeep.is_hungry = walk.is_hungry;
                        return Ok(false);
                    }
                    Err(reason) => {
                        upkeep.failed = Some(reason);
                        upkeep.stage = Stage::Over;
                    }
                }
            }
            Stage::Scan(_) => return self.scan_on(upkeep),
            Stage::Anew(anew) => {
                if !self.write_anew(anew, &mut upkeep.is_hungry)? {
                    return Ok(false);
                }
                Self::end_anew(upkeep);
            }
            Stage::Move(moving) => match self.move_on(moving)? {
                Moved::Waits => return Ok(false),
                Moved::More => {
                    upkeep.is_hungry = true;
                    return Ok(false);
                }
                Moved::Rows(writing) => Self::end_moves(upkeep, writing),
            },
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn begin_stages(&mut self, upkeep: &mut Upkeep) -> Result<(), Errno> {
        if matches!(upkeep.what, What::Collect(..)) {
            return self.prepare_collection(upkeep);
        }
        let accounts = self.terms.accounts.iter().map(|terms| terms.account);
        upkeep.stage = Stage::Survey(Survey::new(accounts, self.seals.volume.tag()));
        Ok(())
    }

    /// Compares rows with what was listed; another try begins anew.
    fn compare_all(&mut self, upkeep: &mut Upkeep) -> Result<(), Errno> {
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
            is_new: &|pack| upkeep.new_rows.contains(&pack),
        };
        upkeep.comparison = compare(self.files.tree(), &upkeep.inventory, &mount)?;
        let What::Check(terms, report) = &mut upkeep.what else {
            return Ok(());
        };
        let mut found = CheckReport {
            mails: upkeep.inventory.mails(),
            ..CheckReport::default()
        };
        tree::check_tree(self.files.tree(), &mut found)?;
        let ends = (upkeep.head, self.oldest_kept()?);
        chain::check_chain(&upkeep.inventory, self.terms.lead, ends, &mut found);
        upkeep.comparison.report(&mut found);
        *report = found;
        let suspects = verified::suspects(*terms, &upkeep.comparison, &upkeep.inventory);
        upkeep.stage = Stage::Inspect(Inspection::new(suspects));
        Ok(())
    }

    fn judge(&mut self, upkeep: &mut Upkeep) -> Result<(), Errno> {
        let Stage::Judge(verdicts) = std::mem::replace(&mut upkeep.stage, Stage::Over) else {
            return Ok(());
        };
        if matches!(upkeep.what, What::Collect(..)) {
            Self::begin_walk(upkeep, &verdicts);
            return Ok(());
        }
        let before = match &upkeep.what {
            What::Check(terms, report) => What::Check(*terms, report.clone()),
            What::Collect(..) | What::Rows => return Ok(()),
        };
        let judged = self.end_check(upkeep, &verdicts);
        if judged.is_err() {
            // Another try begins anew.
            upkeep.stage = Stage::Judge(verdicts);
            upkeep.what = before;
        }
        judged
    }

    fn after_rows(&mut self, upkeep: &mut Upkeep, then: Then) -> Result<(), Errno> {
        match then {
            Then::Copy => upkeep.stage = Stage::Copy,
            Then::Remove => upkeep.stage = Stage::Remove(self.begin_removal(upkeep)?),
            Then::Move => self.begin_moves(upkeep),
            Then::Anew => self.begin_anew(upkeep),
            Then::End => upkeep.stage = Stage::Over,
        }
        Ok(())
    }
}
