//! Recipients with knowledge of a message's author, by a release from the quarantine.

use std::collections::BTreeSet;

use vere_directory::Resolution;
use vere_judge::{Facts, Judge};
use vere_queue::{Destination, Envelope, Place};
use vere_smtp::address::{AddrSpec, ForwardPath};
use vere_smtp::command::RcptTo;

use super::process::Process;

/// Splits the recipients of a message by whether they know the author: groups with facts of their own, each with recipients where the message has
/// any. An alias for several addresses knows an author whom all of these know.
pub(super) fn split(
    process: &Process,
    judge: &Judge,
    mut facts: Facts,
    recipients: Vec<RcptTo>,
) -> Vec<(Facts, Vec<RcptTo>)> {
    // The list is here, beyond the reach of a compromised worker.
    facts.learned = false;
    let author = judge.proven_author(&facts).map(str::to_owned);
    let is_of_interest =
        |author: &String| !recipients.is_empty() && process.learned.has_sender(author);
    let Some(author) = author.filter(is_of_interest) else {
        return vec![(facts, recipients)];
    };
    let knows = |rcpt: &RcptTo| {
        let behind = behind(process, &rcpt.forward_path);
        let knows = process.learned.knows(&author, &behind);
        if knows {
            process.learned.note_use(&author, &behind);
        }
        knows
    };
    let (knowing, others): (Vec<_>, Vec<_>) = recipients.into_iter().partition(knows);
    let learned = Facts {
        learned: true,
        ..facts.clone()
    };
    let mut groups = vec![(learned, knowing), (facts, others)];
    groups.retain(|(_, recipients)| !recipients.is_empty());
    groups
}

/// The recipients of a queued message, as the list of learned senders names them.
pub(super) fn of_queued(
    process: &Process,
    destination: &Destination,
    envelope: &Envelope,
) -> BTreeSet<String> {
    let recipients = envelope.mail.recipients.iter();
    let named = recipients.map(|one| name(process, &destination.place, &one.address));
    named.collect()
}

/// The accounts and addresses behind a recipient; empty for a recipient who leads nowhere.
fn behind(process: &Process, path: &ForwardPath) -> BTreeSet<String> {
    let found = process.router.find(&process.settings(), path);
    let targets = found.map(vere_routing::Found::into_targets);
    let targets = targets.unwrap_or_default().into_iter();
    targets
        .map(|(place, address)| name(process, &place, &address))
        .collect()
}

/// The account of a local address, with or without a tag; any other address as it is.
fn name(process: &Process, place: &Place, address: &str) -> String {
    let account = || {
        let address = AddrSpec::parse(address).ok()?;
        match process.router.directory().resolve(&address) {
            Ok(Resolution::Local { account, .. }) => Some(account.to_string()),
            _ => None,
        }
    };
    let account = (*place == Place::Local).then(account).flatten();
    account.unwrap_or_else(|| address.to_owned())
}
