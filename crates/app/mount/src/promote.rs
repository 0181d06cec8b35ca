//! `vere fs accounts lead`: another account becomes the lead.

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::json;
use vere_mailfs::format::Keys;
use vere_mailfs::volume::{Create, Terms, is_outage};
use vere_ports::mail_accounts::Fault;
use vere_process::failure::Failure;
use vere_promotion::{Promoted, Promotion, PromotionError, PromotionStep, Source};

use crate::accounts::Ask;
use crate::args::LeadArgs;
use crate::bars;
use crate::folders::{self, Description, Lock};
use crate::host::{Clock, Event};
use crate::leads::Known;
use crate::lines::{self, Level};
use crate::news::News;
use crate::open::{keys_of, read_slot, start_accounts, tag};
use crate::session;
use crate::volume::{self, Live, moment};

/// The longest silence of an account.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Requests of a further attempt have numbers from multiples of this one on.
const NUMBERS: u64 = 1 << 40;

/// `vere fs accounts lead`
pub(crate) fn command(args: &LeadArgs) -> Result<String, Failure> {
    let description = Description::named(&args.volume.name)?;
    let described = description.read()?;
    let (was, to) = (described.lead, args.number);
    if !described.accounts.iter().any(|of| of.number == to) {
        return Err(Failure::new(format!(
            "expected an account of the volume, as `vere fs accounts list` prints them; found {to}"
        )));
    }
    if was == to {
        return Err(Failure::new(format!(
            "account {to}: expected another account than the lead; found the lead"
        )));
    }
    let slot = read_slot(&description)?;
    let opener = session::opener(&args.secret, &described)?;
    let keys = keys_of(&slot, &opener, &description.slot())?;
    let none = || Failure::new("expected a key in the slot; found none");
    let (epoch, _) = keys.keys.last().ok_or_else(none)?;
    let all = Keys::of_epochs(&keys.keys).ok_or_else(none)?;
    let create = volume::create(slot.head.volume, *epoch, all)?;
    let terms = volume::terms(&described);
    let (events, happened) = channel();
    let asks = start_accounts(&described, &tag(&slot), &events)?;
    let ask = |request| {
        // Without the thread no answer comes, and the wait ends by its time-out.
        let _gone = asks.send(request);
    };
    let bar = bars::bar("mails for the new lead");
    let mut news = |news| {
        if let News::Progress(done, all) = news {
            bars::show(&bar, done, all);
        }
    };
    let between: Between<'_> = (&ask, &happened);
    let promoted = promote((&terms, &create), to, args.force, between, &mut news);
    bar.finish_and_clear();
    let (promoted, is_forced) = promoted?;
    note(slot.head.volume, was, &promoted)?;
    Ok(shown(args, &promoted, is_forced.then_some(was)))
}

type Between<'a> = (&'a dyn Fn(Ask), &'a Receiver<Event<Live>>);

/// By the lead's log; where the lead is out of reach and the user says so, by a copy. The latter is told.
fn promote(
    (terms, of): (&Terms, &Create),
    to: u16,
    is_forced: bool,
    between: Between<'_>,
    news: &mut dyn FnMut(News),
) -> Result<(Promoted, bool), Failure> {
    let clock = Clock::start();
    let lead = Source::Lead(terms.lead);
    let tried = attempt((terms, of), (lead, to), (0, clock), between, news);
    let reason = match tried {
        Err(PromotionError::Account(account, fault))
            if account == terms.lead && is_outage(&fault) =>
        {
            fault
        }
        tried => return Ok((tried?, false)),
    };
    if !is_forced {
        return Err(Failure::new(format!(
            "account {}: {reason}. The command can go on without the lead, by the copy of changes and names on another account: with --force; what other machines have sent to the lead alone is merged when the lead answers again",
            terms.lead
        )));
    }
    // The new lead's own copy is the nearest.
    let mut copies = terms.further_accounts();
    copies.sort_by_key(|account| *account != to);
    let mut last = PromotionError::NoVolume(to);
    for (place, account) in (1..).zip(copies) {
        let source = (Source::Copy(account), to);
        let numbers = (NUMBERS.saturating_mul(place), clock);
        match attempt((terms, of), source, numbers, between, news) {
            Ok(promoted) => return Ok((promoted, true)),
            Err(error) => last = error,
        }
    }
    Err(last.into())
}

/// A machine that has no mount now knows the lead from now on; a mount notes the lead by itself.
fn note(
    volume: vere_mailfs::format::VolumeId,
    was: u16,
    promoted: &Promoted,
) -> Result<(), Failure> {
    let state = folders::state(volume)?;
    if !state.exists() {
        return Ok(());
    }
    let Ok(_lock) = Lock::take(&state) else {
        return Ok(());
    };
    let known = Known::read(&state)?;
    let now = Known {
        account: promoted.lead.account,
        epoch: promoted.lead.epoch,
        journal: known.map_or(was, |known| known.journal),
    };
    folders::note_lead(&state, &now)
}

fn shown(args: &LeadArgs, promoted: &Promoted, without: Option<u16>) -> String {
    let (lead, copied) = (promoted.lead, promoted.copied);
    if args.volume.json {
        let done = json!({
            "lead": lead.account,
            "epoch": lead.epoch,
            "copied": copied,
            "without": without,
        });
        return format!("{done:#}\n");
    }
    let mut text = format!(
        "Account {} is the lead; {copied} mails with changes and names were copied. Mounts go over to the new lead by themselves.\n",
        lead.account
    );
    if let Some(was) = without {
        text.push_str(&format!(
            "Changes that account {was} alone has are merged when it answers again.\n"
        ));
    }
    text
}

/// Has a promotion read and write all its needs.
pub(crate) fn run(
    (terms, of): (&Terms, &Create),
    (source, to): (Source, u16),
    (first, clock): (u64, Clock),
    between: Between<'_>,
    news: &mut dyn FnMut(News),
) -> Result<Promoted, Failure> {
    attempt((terms, of), (source, to), (first, clock), between, news).map_err(Failure::from)
}

fn attempt(
    (terms, of): (&Terms, &Create),
    (source, to): (Source, u16),
    (first, clock): (u64, Clock),
    (ask, answers): Between<'_>,
    news: &mut dyn FnMut(News),
) -> Result<Promoted, PromotionError> {
    let date = moment(clock.now()).date();
    let mut promotion = Promotion::new(terms, of.clone(), (source, to), (first, date));
    loop {
        while let Some(step) = promotion.poll() {
            match step {
                PromotionStep::Ask(id, account, urgency, request) => {
                    ask(Ask(id, account, urgency, request));
                }
                PromotionStep::Left(account, uid, reason) => lines::log(
                    Level::Warn,
                    &format!("account {account}: the mail of UID {uid} is not copied: {reason}"),
                ),
            }
        }
        if promotion.is_over() {
            return promotion.finish();
        }
        match answers.recv_timeout(ANSWER_TIMEOUT) {
            Ok(Event::Answer(id, answer)) => promotion.answered(id, answer),
            Ok(_) => {}
            Err(_) => {
                let text = "expected an answer within 60 s; found none".to_owned();
                promotion.give_up(Fault::Unreachable(text));
            }
        }
        let (done, all) = promotion.progress();
        news(News::Progress(done, all));
    }
}
