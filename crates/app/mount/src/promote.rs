//! `vere fs accounts lead`: another account becomes the lead.

use std::sync::mpsc::channel;

use serde_json::json;
use vere_mailfs::format::Keys;
use vere_mailfs::volume::{Create, Terms, is_outage};
use vere_process::failure::Failure;
use vere_process::wording::counted;
use vere_promotion::{Promoted, PromotionError, Source};

use crate::args::LeadArgs;
use crate::bars;
use crate::folders::{self, Description, Lock};
use crate::host::Clock;
use crate::leads::Known;
use crate::listings::{Between, copies};
use crate::news::News;
use crate::open::{keys_of, read_slot, start_accounts, tag};
use crate::promoting::attempt;
use crate::session;
use crate::volume;

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
    // The newest copy lacks least.
    let accounts: Vec<u16> = terms.accounts.iter().map(|of| of.account).collect();
    let copies = copies(&accounts, between);
    let mut last = PromotionError::NoVolume(to);
    for (place, (_, account)) in (1..).zip(copies) {
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
        "Account {} is the lead; {} copied. Mounts go over to the new lead by themselves.\n",
        lead.account,
        counted(
            copied,
            "mail with changes and names was",
            "mails with changes and names were"
        )
    );
    if let Some(was) = without {
        text.push_str(&format!(
            "Changes that account {was} alone has are merged when it answers again.\n"
        ));
    }
    text
}
