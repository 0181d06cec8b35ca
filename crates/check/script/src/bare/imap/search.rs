//! Which messages a search finds, for messages in ASCII without encodings.

use std::ops::ControlFlow;

use vere_imap::command::SearchKey;
use vere_imap::set::UidSet;
use vere_mime::{Parsed, Searched, Zone, casemap, fields, header_len, unfold};
use vere_units::Timestamp;

use super::mailbox::Message;

pub(super) fn fits(
    key: &SearchKey,
    uid: u32,
    message: &Message,
    recent: &UidSet,
    now: Timestamp,
) -> bool {
    let again = |key: &SearchKey| fits(key, uid, message, recent, now);
    let body = header_len(&message.octets);
    let age = message.date.moment().age(now).as_secs();
    match key {
        SearchKey::All => true,
        SearchKey::And(keys) => keys.iter().all(again),
        SearchKey::Or(keys) => again(&keys.0) || again(&keys.1),
        SearchKey::Not(key) => !again(key),
        SearchKey::Flag(flag) => message.flags.contains(flag),
        SearchKey::Recent => recent.contains(uid),
        SearchKey::Messages(uids) => uids.contains(uid),
        SearchKey::Sequence(_) | SearchKey::Uid(_) => false,
        SearchKey::Header { name, text } => match Zone::of_field(name.as_bytes()) {
            Some(zone) => zone_holds(zone, &message.octets, text),
            None => fields(&message.octets)
                .any(|field| field.is(name) && holds(&unfold(field.value), text)),
        },
        SearchKey::Body(text) => holds(&message.octets[body..], text),
        SearchKey::Text(text) => holds(&message.octets, text),
        SearchKey::Before(day) => message.date.day() < *day,
        SearchKey::On(day) => message.date.day() == *day,
        SearchKey::Since(day) => message.date.day() >= *day,
        SearchKey::SentBefore(_) | SearchKey::SentOn(_) | SearchKey::SentSince(_) => false,
        SearchKey::Younger(seconds) => age <= u64::from(*seconds),
        SearchKey::Older(seconds) => age >= u64::from(*seconds),
        SearchKey::Larger(octets) => message.octets.len() as u64 > *octets,
        SearchKey::Smaller(octets) => (message.octets.len() as u64) < *octets,
        SearchKey::ModSeq(mod_seq) => message.mod_seq >= *mod_seq,
    }
}

fn zone_holds(zone: Zone, message: &[u8], text: &str) -> bool {
    let searched = Searched {
        own: b"",
        message,
        parts: &Parsed::of(message).parts,
    };
    let text = casemap(text);
    let each = &mut |_, found: &str| match found.contains(&text) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    searched.texts(|wanted| wanted == zone, each).is_break()
}

fn holds(octets: &[u8], text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    String::from_utf8_lossy(octets)
        .to_ascii_lowercase()
        .contains(&text)
}
