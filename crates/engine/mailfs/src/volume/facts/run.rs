//! The stages of a change of facts.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::time::Duration;

use bytes::Bytes;
use vere_ports::files::Errno;
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, Urgency};
use vere_ports::storage::Storage;

use super::super::accounts::AccountTerms;
use super::super::state::{Asked, Volume};
use super::super::step::Moment;
use super::super::upkeep::rows::Writing;
use super::claims::{overtaken, own_rows, unreadable};
use super::look::Looking;
use super::mails::Mails;
use super::tidy::Tidying;
use super::{FactsChange, FactsReport, FactsRun, FactsTicket, Membership, Stage};
use crate::format::volume::Facts;
use crate::format::{
    Builder, Encoding, FormatError, Head, Kind, MailId, PackNumber, Sealed, Subject, mail,
};
use crate::rows::{Key, RowValue, SlotRow, facts_prefix, slots_prefix};

/// The number of mails with facts: writers count from 1, so a writer never uses the number.
const FACTS_NUMBER: PackNumber = PackNumber(2);
/// Keys and values.
type Rows = Vec<(Vec<u8>, Vec<u8>)>;
/// The longest wait of a stage for failing accounts.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the result of an ended change waits for whoever began the change: the asker looks many times a second.
const RESULT_MAX: Duration = Duration::from_secs(10);

impl<S: Storage> Volume<S> {
    /// Begins a change of facts. Returns whether the change begins: no other one is under way, and the log has confirmed the
    /// mount's state.
    ///
    /// # Errors
    /// When a row cannot be read.
    pub fn change_facts(&mut self, now: Moment, change: FactsChange) -> Result<bool, Errno> {
        self.at(now);
        self.take_abandoned();
        // The rows of the local disk may be old ones.
        if self.facts.is_some() || self.is_unconfirmed() {
            return Ok(false);
        }
        for terms in &change.accounts {
            self.accounts.add(terms);
        }
        let wanted = match change.accounts.is_empty() {
            true => BTreeSet::new(),
            false => self.listed_slots()?,
        };
        let mut accounts = self.numbers(&[]);
        // The lead knows best.
        accounts.sort_by_key(|account| *account != self.terms.lead);
        self.facts = Some(Box::new(FactsRun {
            stage: Stage::Look(Looking::new(accounts, wanted)),
            change,
            report: FactsReport::default(),
            mail: MailId::NONE,
            rotates: false,
            own: Vec::new(),
            replaced: BTreeSet::new(),
            generation: 0,
            failed: None,
            until: None,
            ended: None,
        }));
        self.tend();
        Ok(true)
    }

    /// The result of an ended change; a further change may begin then.
    pub fn take_changed(&mut self) -> Option<Result<FactsReport, String>> {
        let is_over = |run: &mut Box<FactsRun>| matches!(run.stage, Stage::Over);
        let run = self.facts.take_if(is_over)?;
        Some(run.failed.map_or(Ok(run.report), Err))
    }

    /// The result of an ended change, left by the asker for too long.
    pub(crate) fn take_abandoned(&mut self) -> Option<Result<FactsReport, String>> {
        let ended = self.facts.as_ref()?.ended?;
        (ended + RESULT_MAX <= self.now.steady)
            .then(|| self.take_changed())
            .flatten()
    }

    /// The stage of a change, with the parts done and the parts known.
    #[must_use]
    pub fn change_progress(&self) -> Option<(&'static str, usize, usize)> {
        let run = self.facts.as_ref()?;
        Some(match &run.stage {
            Stage::Look(_) => ("reading", 0, 1),
            Stage::Slots(mails, _) => {
                let (done, all) = mails.progress();
                ("storing key slots", done, all)
            }
            Stage::Rows(writing, _) | Stage::Epoch(writing, _) => {
                ("committing", writing.done(), writing.all())
            }
            Stage::Facts(mails) => {
                let (done, all) = mails.progress();
                ("storing facts", done, all)
            }
            Stage::Tidy(tidying) => ("tidying", 0, tidying.left()),
            Stage::Over => ("over", 1, 1),
        })
    }

    /// The valid key slots, by number; empty for a volume without a list of slots.
    ///
    /// # Errors
    /// When a row cannot be read.
    pub fn slots(&self) -> Result<BTreeMap<u8, SlotRow>, Errno> {
        let tree = self.files.tree();
        let mut slots = BTreeMap::new();
        for key in tree.keys(&slots_prefix())? {
            let Ok(Key::Slot(number)) = Key::decode(&key) else {
                continue;
            };
            // An unreadable row is no reason to trust any slot.
            if let Some(row) = tree.get(&key)? {
                slots.insert(number, SlotRow::decode(&row).map_err(|_| Errno::Io)?);
            }
        }
        Ok(slots)
    }

    /// The epoch with whose key new mails are sealed.
    #[must_use]
    pub const fn epoch(&self) -> u16 {
        self.seals.epoch
    }

    /// The value of a row of the volume's facts.
    ///
    /// # Errors
    /// When the row cannot be read.
    pub fn fact(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Errno> {
        if !key.starts_with(&facts_prefix()) {
            return Ok(None);
        }
        let row = self.files.tree().get(key)?;
        Ok(row.map(|row| row.to_vec()))
    }

    /// Accounts and groups are others from now on: packs go to the new accounts, and members get missing copies.
    pub fn use_accounts(&mut self, now: Moment, membership: Membership) {
        self.at(now);
        let Membership { accounts, groups } = membership;
        for terms in &accounts {
            self.accounts.add(terms);
        }
        self.accounts.regroup(&groups);
        // An account gets no facts after the account's leaving.
        let numbers: BTreeSet<u16> = accounts.iter().map(|terms| terms.account).collect();
        let missing = &mut self.replicas.missing;
        missing.retain(|(account, _)| numbers.contains(account));
        self.terms.accounts = accounts;
        self.terms.groups = groups;
        self.leave_out_gone();
        self.begin_scan();
        self.ask_quotas();
        self.make_copies();
    }

    /// Missing copies of members of groups, and 1 more while the number is not known yet.
    #[must_use]
    pub fn copies_missing(&self) -> usize {
        let unknown = usize::from(self.replicas.scan.is_some());
        self.replicas.waiting().saturating_add(unknown)
    }

    pub(in crate::volume) fn listed_slots(&self) -> Result<BTreeSet<MailId>, Errno> {
        Ok(self.slots()?.into_values().map(|row| row.mail).collect())
    }

    /// The numbers of the volume's accounts, with further ones.
    fn numbers(&self, further: &[AccountTerms]) -> Vec<u16> {
        let all = self.terms.accounts.iter().chain(further);
        let all: BTreeSet<u16> = all.map(|terms| terms.account).collect();
        all.into_iter().collect()
    }

    /// An account has answered to a change.
    pub(crate) fn facts_answered(
        &mut self,
        account: u16,
        ticket: FactsTicket,
        answer: Result<Answer, Fault>,
    ) {
        if let Err(fault) = &answer {
            self.account_failed(account, fault);
        }
        let encoding = self.accounts.encoding(account).unwrap_or(Encoding::Base64);
        let Some(run) = self.facts.as_mut() else {
            return;
        };
        match (&mut run.stage, ticket) {
            (Stage::Look(looking), FactsTicket::Look) => {
                let of = (self.seals.volume, &*self.seals.keys);
                looking.answered(answer, of, encoding);
            }
            (Stage::Slots(mails, _) | Stage::Facts(mails), FactsTicket::Mail(number)) => {
                mails.answered(number, answer);
            }
            (Stage::Tidy(tidying), FactsTicket::Tidy) => tidying.answered(answer),
            _ => {}
        }
    }

    /// Has a change go on as far as possible.
    pub(crate) fn tend_facts(&mut self) {
        let Some(mut run) = self.facts.take() else {
            return;
        };
        loop {
            match self.advance_facts(&mut run) {
                Ok(true) => {}
                Ok(false) => break,
                Err(reason) => {
                    run.failed = Some(reason);
                    run.until = None;
                    run.stage = Stage::Over;
                }
            }
        }
        if matches!(run.stage, Stage::Over) {
            run.ended.get_or_insert(self.now.steady);
        }
        self.facts = Some(run);
    }

    fn ask_facts(&mut self, (account, request): (u16, Request), ticket: FactsTicket) {
        let asked = Asked::Facts(ticket);
        self.ask(AccountId(account), Urgency::Waited, request, asked);
    }

    /// Asks accounts for all mails in turn. Returns whether every mail is stored or given up.
    fn send_mails(&mut self, mails: &mut Mails) -> bool {
        let accounts = &self.accounts;
        let mut ready = Vec::new();
        while let Some((number, account, request)) = mails.next(|account| accounts.may_try(account))
        {
            ready.push(((account, request), FactsTicket::Mail(number)));
        }
        for (request, ticket) in ready {
            self.ask_facts(request, ticket);
        }
        mails.is_over()
    }

    /// A silent account is given up at the end of the time.
    fn end_patience(&mut self, run: &mut FactsRun) {
        if run.until.is_none_or(|until| until > self.now.steady) {
            return;
        }
        run.until = None;
        match &mut run.stage {
            Stage::Slots(mails, _) | Stage::Facts(mails) => mails.give_up(),
            Stage::Tidy(tidying) => tidying.give_up(),
            _ => {}
        }
    }

    /// Carries a stage on. Returns whether the next stage has begun.
    fn advance_facts(&mut self, run: &mut FactsRun) -> Result<bool, String> {
        self.end_patience(run);
        if !self.has_facts() {
            return Ok(false);
        }
        match &mut run.stage {
            Stage::Look(looking) => {
                if let Some(request) = looking.poll() {
                    self.ask_facts(request, FactsTicket::Look);
                }
                if !looking.is_over() {
                    return Ok(false);
                }
                self.end_look(run)?;
            }
            Stage::Slots(mails, _) => {
                if !self.send_mails(mails) {
                    return Ok(false);
                }
                if let Some((account, reason)) = mails.failed().next() {
                    return Err(format!("account {account}: {reason}"));
                }
                self.begin_row_changes(run)?;
            }
            Stage::Rows(writing, _) => {
                if !self.write_on(writing)? {
                    return Ok(false);
                }
                self.end_rows(run)?;
            }
            Stage::Epoch(writing, _) => {
                if !self.write_on(writing)? {
                    return Ok(false);
                }
                self.begin_facts(run)?;
            }
            Stage::Facts(mails) => {
                if !self.send_mails(mails) {
                    return Ok(false);
                }
                self.begin_tidying(run)?;
            }
            Stage::Tidy(tidying) => {
                let accounts = &self.accounts;
                if let Some(request) = tidying.next(|account| accounts.may_try(account)) {
                    self.ask_facts(request, FactsTicket::Tidy);
                }
                if !tidying.is_over() {
                    return Ok(false);
                }
                run.report.removed = tidying.removed;
                run.report.behind.extend(mem::take(&mut tidying.failed));
                run.until = None;
                run.stage = Stage::Over;
            }
            Stage::Over => return Ok(false),
        }
        Ok(true)
    }

    fn end_look(&mut self, run: &mut FactsRun) -> Result<(), String> {
        let stage = mem::replace(&mut run.stage, Stage::Over);
        let Stage::Look(looking) = stage else {
            return Ok(());
        };
        if !looking.has_all() {
            return Err(format!(
                "expected an account with facts and key slots; found none: {}",
                looking.fault
            ));
        }
        self.check_claims(&run.change)?;
        let mut mails = Mails::default();
        for account in self.numbers(&run.change.accounts) {
            let is_new = |terms: &AccountTerms| terms.account == account;
            let earlier = looking.slots.values();
            let earlier = earlier.filter(|_| run.change.accounts.iter().any(is_new));
            for slot in earlier.chain(&run.change.slots) {
                let wrapped = self.wrapped(account, &slot.head, None, &slot.encode());
                mails.add(account, slot.head.mail, wrapped);
            }
        }
        run.until = Some(self.now.steady + PATIENCE);
        run.stage = Stage::Slots(mails, Box::new(looking));
        Ok(())
    }

    /// A mail in the encoding of an account.
    fn wrapped(&self, account: u16, head: &Head, generation: Option<u64>, body: &[u8]) -> Bytes {
        let encoding = self.accounts.encoding(account).unwrap_or(Encoding::Base64);
        let subject = Subject::of(head, None, generation);
        mail::wrap(&subject, self.now.date(), encoding, body).into()
    }

    /// Every account has the slots: the rows follow.
    fn begin_row_changes(&mut self, run: &mut FactsRun) -> Result<(), String> {
        let Stage::Slots(_, looking) = mem::replace(&mut run.stage, Stage::Over) else {
            return Ok(());
        };
        if let Err(reason) = self.check_claims(&run.change) {
            return self.begin_retreat(run, reason);
        }
        let rows = mem::take(&mut run.change.rows);
        let replaced = self.replaced_slots(&rows, looking.facts.as_ref());
        run.replaced = replaced.map_err(unreadable)?;
        run.own = own_rows(&rows);
        run.until = None;
        let writing = Writing {
            expected: mem::take(&mut run.change.expected),
            ..Writing::new(rows)
        };
        run.stage = Stage::Rows(writing, looking);
        Ok(())
    }

    /// The run has lost: its slots leave the accounts, and all else stays.
    fn begin_retreat(&mut self, run: &mut FactsRun, reason: String) -> Result<(), String> {
        let slots = self.lost_slots(run).map_err(unreadable)?;
        run.failed = Some(reason);
        self.tidy(run, slots);
        Ok(())
    }

    fn tidy(&mut self, run: &mut FactsRun, slots: BTreeSet<MailId>) {
        let accounts = self.numbers(&run.change.accounts);
        let tag = self.seals.volume.tag();
        let facts = (run.mail, run.generation);
        run.until = Some(self.now.steady + PATIENCE);
        run.stage = Stage::Tidy(Tidying::new(accounts, tag, slots, facts));
    }

    /// The chain has decided about the rows: new keys count if the chain lists the slots. A new epoch begins with a further commit,
    /// and a repeated row makes the commit.
    fn end_rows(&mut self, run: &mut FactsRun) -> Result<(), String> {
        let Stage::Rows(_, looking) = mem::replace(&mut run.stage, Stage::Over) else {
            return Ok(());
        };
        if !self.has_won(run).map_err(unreadable)? {
            return self.begin_retreat(run, overtaken());
        }
        self.note_own_slots(&run.change.slots);
        if let Some((epoch, keys)) = run.change.keys.take() {
            run.rotates = true;
            self.seals.keys = keys;
            self.await_epoch(epoch);
        }
        self.tend_epoch();
        let slot = self.slots().map_err(unreadable)?.into_iter().next();
        let again = slot
            .filter(|_| run.rotates)
            .map(|(number, row)| (Key::Slot(number).encode(), Some(row.encode())));
        run.stage = Stage::Epoch(Writing::new(again.into_iter().collect()), looking);
        Ok(())
    }

    /// Every account gets the present facts of the volume.
    fn begin_facts(&mut self, run: &mut FactsRun) -> Result<(), String> {
        let Stage::Epoch(_, looking) = mem::replace(&mut run.stage, Stage::Over) else {
            return Ok(());
        };
        let generation = self.chain.head().1;
        let rows = self.fact_rows().map_err(unreadable)?;
        let sealed = self
            .facts_mail(looking.facts, (&run.change.name, generation), rows)
            .map_err(|error| error.to_string())?;
        run.mail = sealed.mail_id();
        run.generation = generation;
        let mut mails = Mails::default();
        for account in self.numbers(&run.change.accounts) {
            let wrapped = self.wrapped(account, &sealed.head, Some(generation), &sealed.body);
            mails.add(account, run.mail, wrapped);
        }
        run.until = Some(self.now.steady + PATIENCE);
        run.stage = Stage::Facts(mails);
        Ok(())
    }

    /// Rows that every account has.
    fn fact_rows(&self) -> Result<Rows, Errno> {
        let tree = self.files.tree();
        let mut rows = Vec::new();
        for key in tree.keys(&facts_prefix())? {
            let is_fact = matches!(
                Key::decode(&key),
                Ok(Key::Settings | Key::Account(_) | Key::Group(_) | Key::Slot(_))
            );
            if let Some(row) = tree.get(&key)?.filter(|_| is_fact) {
                rows.push((key, row.to_vec()));
            }
        }
        Ok(rows)
    }

    fn facts_mail(
        &self,
        before: Option<Facts>,
        (name, generation): (&str, u64),
        rows: Rows,
    ) -> Result<Sealed, FormatError> {
        let before = before.unwrap_or_else(|| Facts {
            created: self.now.millis(),
            name: name.to_owned(),
            ..Facts::default()
        });
        let facts = Facts {
            generation,
            lead_account: self.terms.lead,
            rows,
            ..before
        };
        let seals = &self.seals;
        let mail = Builder::new(Kind::Volume, seals.volume, seals.epoch, 0, FACTS_NUMBER);
        mail.finish(facts.encode()?.into(), &seals.keys)
    }

    fn begin_tidying(&mut self, run: &mut FactsRun) -> Result<(), String> {
        let Stage::Facts(mails) = mem::replace(&mut run.stage, Stage::Over) else {
            return Ok(());
        };
        let failed = mails.failed();
        let failed = failed.map(|(account, reason)| (account, reason.to_owned()));
        run.report.behind.extend(failed);
        let listed = self.listed_slots().map_err(unreadable)?;
        let mut slots = mem::take(&mut run.replaced);
        slots.retain(|slot| !listed.contains(slot));
        self.tidy(run, slots);
        Ok(())
    }
}
