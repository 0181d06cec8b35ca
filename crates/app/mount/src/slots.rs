//! The key slots that accounts have.

use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use vere_mailfs::format::slot::{Slot, SlotKeys};
use vere_mailfs::volume::OpenStep;
use vere_ports::mail_accounts::AccountId;
use vere_recovery::Recovery;
use vere_settings::Volume as Described;

use crate::accounts::{Ask, Asks};
use crate::host::Event;
use crate::lines::{self, Level};
use crate::secrets::Opener;
use crate::volume::Live;

/// The longest time for the slots of all accounts; an account that is silent then is left out.
const LOOK_MAX: Duration = Duration::from_secs(60);

/// The slots of the volume in accounts that the secret opens, without the known slot: a bounded number, for bounded work. Anybody
/// with the password of an account can put slots there.
pub(crate) fn of_accounts(
    described: &Described,
    (known, opener): (&Slot, &Opener),
    asks: &Asks,
    happened: &Receiver<Event<Live>>,
) -> Vec<(Slot, SlotKeys)> {
    let volume = known.head.volume;
    let numbers = described.accounts.iter();
    let numbers = numbers.map(|account| AccountId(account.number));
    let mut recovery = Recovery::new(numbers, volume.tag());
    let start = Instant::now();
    loop {
        while let Some(step) = recovery.poll() {
            match step {
                OpenStep::Ask(id, account, urgency, request) => {
                    // Without the thread no answer comes, and the wait ends by its time-out.
                    let _gone = asks.send(Ask(id, account, urgency, request));
                }
                OpenStep::Log(notice) => lines::log(Level::of(&notice), &notice.to_string()),
            }
        }
        if recovery.is_idle() {
            break;
        }
        let left = LOOK_MAX.saturating_sub(start.elapsed());
        match happened.recv_timeout(left) {
            Ok(Event::Answer(id, answer)) => recovery.answered(id, answer),
            Ok(_) => {}
            Err(_) => break,
        }
    }
    let mut found = recovery.candidates(opener.as_slot());
    found.retain(|(slot, _)| slot.head.volume == volume && slot.head.mail != known.head.mail);
    found
}
