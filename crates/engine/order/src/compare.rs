//! Mails that a copy lacks, by the subjects of both listings.

use std::collections::{HashMap, HashSet};

use vere_ports::mail_accounts::Listed;

use crate::format::{Kind, MailId, Subject};
use crate::recent::{Known, Recent};

/// A mail that a copy lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) mail: MailId,
    /// The UID on the lead.
    pub(crate) uid: u32,
    /// The parent of a commit that is known by its subject alone.
    pub(crate) parent: Option<MailId>,
    pub(crate) generation: u64,
}

impl Missing {
    pub(crate) const fn page(mail: MailId, uid: u32) -> Self {
        Self {
            mail,
            uid,
            parent: None,
            generation: 0,
        }
    }

    pub(crate) const fn known(known: &Known) -> Self {
        Self {
            generation: known.won.generation,
            ..Self::page(known.won.commit, known.won.uid)
        }
    }
}

/// What [`missing_commits`] finds.
pub(crate) type Found = Option<(Vec<Missing>, u64)>;

/// The commits of the chain that a copy lacks, oldest first, and the generation behind the newest one that the lead's listing
/// has; absent where the listing has none of the commits in memory. The chain goes back by parents from a commit that is known;
/// commits without a child there are in the chain if a row names them, since `gc` keeps those with content.
pub(crate) fn missing_commits<E>(
    lead: &[Listed],
    there: &HashSet<MailId>,
    recent: &Recent,
    is_in_chain: &mut dyn FnMut(&Subject) -> Result<bool, E>,
) -> Result<Found, E> {
    let mut listed: HashMap<MailId, (u32, Subject)> = HashMap::new();
    for mail in lead {
        if let Ok(subject) = Subject::parse(&mail.subject)
            && subject.kind == Kind::Commit
        {
            listed.entry(subject.mail).or_insert((mail.uid, subject));
        }
    }
    let mut newest = recent.newest_first();
    let newest = newest.find(|known| listed.contains_key(&known.won.commit));
    let Some(newest) = newest.map(|known| known.won) else {
        return Ok(None);
    };
    let mut missing = Vec::new();
    let mut note = |(uid, subject): (u32, Subject)| {
        if !there.contains(&subject.mail) {
            missing.push(Missing {
                mail: subject.mail,
                uid,
                parent: subject.parent,
                generation: subject.generation.unwrap_or(0),
            });
        }
    };
    let mut at = newest.commit;
    // Each commit leaves the map, so that a circle ends.
    while let Some((uid, subject)) = listed.remove(&at) {
        note((uid, subject));
        at = subject.parent.unwrap_or(MailId::NONE);
    }
    for (uid, subject) in listed.into_values() {
        let is_old = subject.generation.is_some_and(|of| of < newest.generation);
        if is_old && is_in_chain(&subject)? {
            note((uid, subject));
        }
    }
    missing.sort_by_key(|missing| (missing.generation, missing.uid));
    Ok(Some((missing, newest.generation.saturating_add(1))))
}

/// Mails of pages that a copy lacks.
pub(crate) fn missing_pages(lead: &[Listed], copy: &[Listed]) -> Vec<Missing> {
    let pages = |mails: &[Listed]| {
        let subjects = mails.iter().filter_map(|mail| {
            let subject = Subject::parse(&mail.subject).ok()?;
            (subject.kind == Kind::Pages).then_some((mail.uid, subject.mail))
        });
        subjects.collect::<Vec<(u32, MailId)>>()
    };
    let mut there: HashSet<MailId> = pages(copy).into_iter().map(|(_, mail)| mail).collect();
    let lead = pages(lead).into_iter();
    lead.filter(|(_, mail)| there.insert(*mail))
        .map(|(uid, mail)| Missing::page(mail, uid))
        .collect()
}

/// The commits of a listing.
pub(crate) fn commits_of(mails: &[Listed]) -> HashSet<MailId> {
    let subjects = mails
        .iter()
        .filter_map(|mail| Subject::parse(&mail.subject).ok());
    let commits = subjects.filter(|subject| subject.kind == Kind::Commit);
    commits.map(|subject| subject.mail).collect()
}
