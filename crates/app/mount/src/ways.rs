//! The ways to open a volume: by the local disk, by the lead's log, and by the copy on a further account.

use std::path::Path;
use std::sync::mpsc::Receiver;

use vere_disk::log::Directory;
use vere_mailfs::volume::{
    Create, Local, OpenError, OpenStep, Opening, Stranded, Terms, Volume, is_outage,
};
use vere_ports::mail_accounts::Fault;
use vere_process::failure::Failure;
use vere_promotion::{PromotionError, Source};

use crate::accounts::{ANSWER_TIMEOUT, Ask};
use crate::folders;
use crate::host::{Clock, Event};
use crate::leads::Known;
use crate::lines::{self, Level};
use crate::news::News;
use crate::promoting;
use crate::rollback;
use crate::volume::{How, Live, Refusal, moment, random, storage};

/// Requests to copies have numbers from multiples of this one on: late answers of the lead are told apart.
const FIRST_OF_COPY: u64 = 1 << 32;
/// Requests of a volume that is opened by the local disk behind the accounts have numbers from this one on.
const FIRST_OF_DISK: u64 = 1 << 56;

/// Requests to another lead have numbers from multiples of this one on.
const FIRST_OF_LEAD: u64 = 1 << 48;
/// Changes of the lead that a start follows.
const LEADS_MAX: usize = 4;

/// An account with a copy, why the lead is not asked, and the first number of requests.
type Copy = (u16, String, u64);

/// The outcome of an opening.
type Tried = Result<Volume<Directory>, OpenError>;

/// A way.
enum Way {
    /// By the log of the lead.
    Log,
    /// By a copy, while the lead does not answer.
    Copy(Copy),
    /// By the log, with a journal whose base is gone.
    Stranded(Stranded),
    /// By the log of a lead that the journal does not know.
    NewLead,
    /// By the local disk, with the first number of requests.
    Disk(Local, u64),
}

/// The needs of every way.
struct Ways<'a> {
    terms: Terms,
    of: &'a Create,
    how: &'a How,
    journal: &'a Path,
    clock: Clock,
    ask: &'a dyn Fn(Ask),
    answers: &'a Receiver<Event<Live>>,
    /// Leads that were tried besides the first one.
    leads: u64,
}

/// Opens a volume from log and journal. `ask` takes requests, answers come as events; `news` hears the commits read and all.
pub(crate) fn open(
    (mut terms, of): (Terms, Create),
    how: &How,
    journal: &Path,
    clock: Clock,
    ask: &dyn Fn(Ask),
    answers: &Receiver<Event<Live>>,
    news: &mut dyn FnMut(News),
) -> Result<Live, Refusal> {
    let state = journal.parent().unwrap_or(journal);
    let known = Known::read(state)?;
    if let Some(known) = known {
        known.apply(&mut terms);
    }
    let mut ways = Ways {
        terms,
        of: &of,
        how,
        journal,
        clock,
        ask,
        answers,
        leads: 0,
    };
    let mut opened = ways.first(news)?;
    opened = ways.follow_leads(opened, news)?;
    if let Some(reason) = ways.outage(&opened) {
        opened = ways.without_lead(opened, &reason, news)?;
        opened = ways.follow_leads(opened, news)?;
        if let Ok(volume) = &opened
            && let Some(notice) = volume.read_only()
        {
            news(News::Line(notice.to_string()));
        }
    }
    // Every answer of the first opening has come.
    let stranded = rollback::stranded(how.leave, opened.as_ref().err());
    if let Some(stranded) = stranded {
        (opened, _) = ways.begin(Way::Stranded(stranded), news)?;
    }
    if let Some(line) = rollback::line_of(how.leave, stranded, opened.as_ref().err()) {
        let aside = rollback::set_aside(journal)?;
        (opened, _) = ways.begin(Way::Log, news)?;
        news(News::Line(format!(
            "{line}; changes that no server had are in {}",
            aside.display()
        )));
    } else if let (Some(stranded), Ok(_)) = (stranded, &opened) {
        news(News::Line(rollback::brought(stranded).to_owned()));
    }
    if let (Some(lost), Err(OpenError::NoVolume(_))) = (&how.lost, &opened) {
        rollback::set_aside(journal)?;
        let first = (lost.generation, lost.rows.as_slice());
        let of_root = (lost.owner, moment(clock.now()));
        opened = Volume::create_behind(
            of.clone(),
            first,
            ways.terms,
            storage(journal)?,
            random()?,
            of_root,
        );
    }
    if let Ok(volume) = &opened
        && volume.stands_in().is_none()
    {
        note_lead(volume, known, state)?;
    }
    if let (true, Ok(volume)) = (how.leave.leaves_branch, &mut opened) {
        volume.leave_branch(moment(clock.now()));
    }
    opened.map(Live::new).map_err(Refusal::of)
}

/// Notes the lead whose log the journal's places are of from now on.
fn note_lead(
    volume: &Volume<Directory>,
    known: Option<Known>,
    state: &Path,
) -> Result<(), Failure> {
    let (account, epoch) = volume.lead();
    let now = Known {
        account,
        epoch,
        journal: account,
    };
    // A volume without a change has no such file.
    if known == Some(now) || known.is_none() && epoch <= 1 {
        return Ok(());
    }
    folders::note_lead(state, &now)
}

impl Ways<'_> {
    /// By the local disk, if allowed and enough; else by the log.
    fn first(&mut self, news: &mut dyn FnMut(News)) -> Result<Tried, Failure> {
        if self.how.local {
            let (opened, is_local) = self.begin(Way::Disk(Local::Fresh, 0), news)?;
            if is_local && opened.is_ok() {
                let line = "the mount begins from the local disk; the log is compared when the lead account answers";
                lines::log(Level::Info, line);
            }
            if !is_local || opened.is_ok() {
                return Ok(opened);
            }
            if let Err(error) = &opened {
                let line = format!("{error}: the mount reads the log of the lead account");
                lines::log(Level::Info, &line);
            }
        }
        Ok(self.begin(Way::Log, news)?.0)
    }

    /// Why the lead is out of reach, if so.
    fn outage(&self, opened: &Tried) -> Option<String> {
        match opened {
            Err(OpenError::Account(lead, fault)) if *lead == self.terms.lead => {
                is_outage(fault).then(|| fault.to_string())
            }
            _ => None,
        }
    }

    /// Opens under another lead, where a log names one, or where the lead is out of reach and another account has become the
    /// lead.
    fn follow_leads(
        &mut self,
        mut opened: Tried,
        news: &mut dyn FnMut(News),
    ) -> Result<Tried, Failure> {
        for _ in 0..LEADS_MAX {
            if let Err(OpenError::LeadChanged { account, epoch }) = opened {
                opened = self.under(account, epoch, news)?;
            } else if self.outage(&opened).is_some()
                && let Some(found) = self.elsewhere(news)?
            {
                opened = found;
            } else {
                break;
            }
        }
        Ok(opened)
    }

    /// Opens under a lead that another log names. A change that was broken off is brought to its end first.
    fn under(
        &mut self,
        account: u16,
        epoch: u32,
        news: &mut dyn FnMut(News),
    ) -> Result<Tried, Failure> {
        let mut accounts = self.terms.accounts.iter();
        if !accounts.any(|terms| terms.account == account) {
            return Err(Failure::new(format!(
                "expected the lead, account {account}, in the file of the volume; found no such account: another machine has added it; give it a section there"
            )));
        }
        let from = self.terms.lead;
        self.set_lead(account, epoch);
        let opened = self.begin(Way::NewLead, news)?.0;
        if !matches!(
            opened,
            Err(OpenError::NoVolume(_) | OpenError::NoLead { .. })
        ) {
            return Ok(opened);
        }
        lines::log(
            Level::Info,
            &format!("the change of the lead to account {account} is brought to its end"),
        );
        let first = self.next_numbers();
        let of = (&self.terms, self.of);
        let between = (self.ask, self.answers);
        let source = (Source::Lead(from), account);
        match promoting::attempt(of, source, (first, self.clock), between, news) {
            Ok(promoted) => self.set_lead(account, promoted.lead.epoch),
            // The change of a third machine counts.
            Err(PromotionError::Elsewhere(other)) => self.set_lead(other, epoch),
            Err(PromotionError::Leads(_)) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.begin(Way::NewLead, news)?.0)
    }

    fn set_lead(&mut self, account: u16, epoch: u32) {
        self.terms.lead = account;
        self.terms.lead_epoch = epoch;
        self.terms.is_new_lead = true;
    }

    /// Looks for another lead among the further accounts, while the lead is out of reach.
    fn elsewhere(&mut self, news: &mut dyn FnMut(News)) -> Result<Option<Tried>, Failure> {
        let before = self.terms.clone();
        let epoch = before.lead_epoch.saturating_add(1);
        let further = before.further_accounts();
        let accounts = before.accounts.iter().map(|terms| terms.account);
        let others = accounts.filter(|of| *of != before.lead && !further.contains(of));
        let all: Vec<u16> = further.iter().copied().chain(others).collect();
        for account in all {
            self.set_lead(account, epoch);
            let opened = self.begin(Way::NewLead, news)?.0;
            if matches!(opened, Ok(_) | Err(OpenError::LeadChanged { .. })) {
                return Ok(Some(opened));
            }
            self.terms = before.clone();
        }
        Ok(None)
    }

    /// Numbers of requests that no earlier opening has had.
    fn next_numbers(&mut self) -> u64 {
        self.leads = self.leads.saturating_add(1);
        FIRST_OF_LEAD.saturating_mul(self.leads)
    }

    /// Opens from the first copy that serves, or from a local disk that has not seen the log for long. The error of the lead
    /// counts where none does, or that of a copy that is too old.
    fn without_lead(
        &mut self,
        mut opened: Tried,
        reason: &str,
        news: &mut dyn FnMut(News),
    ) -> Result<Tried, Failure> {
        for (place, account) in (1..).zip(self.terms.further_accounts()) {
            let copy = (account, reason.to_owned(), FIRST_OF_COPY * place);
            match self.begin(Way::Copy(copy), news)?.0 {
                Ok(volume) => return Ok(Ok(volume)),
                Err(error @ (OpenError::CopyBehind { .. } | OpenError::Unexpected { .. })) => {
                    opened = Err(error);
                }
                // The copy is one of another lead.
                Err(error @ OpenError::LeadChanged { .. }) => return Ok(Err(error)),
                Err(error) => lines::log(
                    Level::Warn,
                    &format!("the copy on account {account}: {error}"),
                ),
            }
        }
        if !self.how.local {
            return Ok(opened);
        }
        // The log may have gone on too far: the comparison tells, as soon as the lead can be reached.
        let (old, _) = self.begin(Way::Disk(Local::Old, FIRST_OF_DISK), news)?;
        Ok(old.or(opened))
    }

    /// The outcome of a way, and whether no account was asked.
    fn begin(&mut self, way: Way, news: &mut dyn FnMut(News)) -> Result<(Tried, bool), Failure> {
        let first = self.next_numbers();
        let (terms, of) = (self.terms.clone(), self.of.clone());
        let storage = (storage(self.journal)?, random()?);
        let mut opening = match way {
            Way::Log => Opening::new(terms, of, storage.0, storage.1),
            Way::Copy(copy) => Opening::standing_in(terms, of, storage, copy),
            Way::Stranded(stranded) => Opening::bring_in(terms, of, storage.0, storage.1, stranded),
            Way::NewLead => Opening::under_new_lead(terms, of, storage, first),
            Way::Disk(how, first) => {
                let opening = Opening::local(terms, of, storage, (how, first));
                if how == Local::Old && !opening.is_local() {
                    // The accounts were asked before.
                    return Ok((Err(OpenError::Unsure), false));
                }
                opening
            }
        };
        if let Some(commit) = self.how.expect {
            opening.expect(commit);
        }
        if let Some(lost) = &self.how.lost {
            opening.writers_above(lost.last_writer);
        }
        let is_local = opening.is_local();
        let opening = read(opening, self.ask, self.answers, news)?;
        Ok((Volume::open(opening, moment(self.clock.now())), is_local))
    }
}

/// Has an opening read all its needs.
fn read(
    mut opening: Opening<Directory>,
    ask: &dyn Fn(Ask),
    answers: &Receiver<Event<Live>>,
    news: &mut dyn FnMut(News),
) -> Result<Opening<Directory>, Failure> {
    loop {
        while let Some(step) = opening.poll() {
            match step {
                OpenStep::Ask(id, account, urgency, request) => {
                    ask(Ask(id, account, urgency, request))
                }
                OpenStep::Log(notice) => lines::log(Level::of(&notice), &notice.to_string()),
            }
        }
        if opening.is_over() {
            return Ok(opening);
        }
        let Ok(event) = answers.recv_timeout(ANSWER_TIMEOUT) else {
            let text = "expected an answer within 60 s; found none".to_owned();
            opening.give_up(Fault::Unreachable(text));
            return Ok(opening);
        };
        if let Event::Answer(id, answer) = event {
            opening.answered(id, answer);
        }
        let (read, all) = opening.progress();
        news(News::Progress(read, all));
    }
}
