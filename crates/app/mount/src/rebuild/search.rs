//! What accounts have: folders of volumes, key slots, facts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use vere_mailfs::volume::{OpenStep, Salvage, SalvageStep, Salvaged};
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, RequestId, Urgency};
use vere_process::failure::Failure;
use vere_recovery::{Recovered, Recovery};
use vere_settings::VolumeAccount;

use crate::accounts::{self, Ask, Asks};
use crate::host::Clock;
use crate::secrets::{self, Opener};

/// The longest silence of an account.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
const SILENT: &str = "expected an answer of the accounts within 60 s; found none";
/// Letters of a tag.
const TAG_LETTERS: usize = 8;
/// Volumes named in an error; an account may have folders of any number.
const VOLUMES_SHOWN: usize = 20;

/// Accounts and their answers.
struct Asker {
    send: Asks,
    answers: Receiver<(RequestId, Result<Answer, Fault>)>,
}

impl Asker {
    /// Connects to accounts; their mailboxes are those below `VereFS`, or below the folder of a volume.
    fn start(all: &[VolumeAccount], tag: Option<&str>) -> Result<Self, Failure> {
        let mut settings = Vec::new();
        for account in all {
            let mut own = secrets::account(account, tag.unwrap_or_default())?;
            if tag.is_none() {
                own.folder.truncate(1);
            }
            settings.push((AccountId(account.number), own));
        }
        let (answered, answers) = channel();
        let send = accounts::start(settings, move |id, answer| {
            answered.send((id, answer)).is_ok()
        })?;
        Ok(Self { send, answers })
    }

    fn ask(&self, ask: Ask) -> Result<(), Failure> {
        self.send
            .send(ask)
            .map_err(|_| Failure::new("expected the thread of the accounts; found none"))
    }
}

impl Asker {
    fn answer(&self) -> Result<(RequestId, Result<Answer, Fault>), Failure> {
        let answer = self.answers.recv_timeout(ANSWER_TIMEOUT);
        answer.map_err(|_| Failure::new(SILENT))
    }
}

/// Volumes by their tags, with the accounts that have their folders; accounts that could not be read.
#[derive(Debug, Default)]
pub(super) struct Folders {
    pub(super) volumes: BTreeMap<String, BTreeSet<u16>>,
    pub(super) faults: BTreeMap<u16, String>,
}

/// Lists the folders of all volumes in the accounts.
pub(super) fn folders(all: &[VolumeAccount]) -> Result<Folders, Failure> {
    let asker = Asker::start(all, None)?;
    for account in all {
        asker.ask(Ask(
            RequestId(account.number.into()),
            AccountId(account.number),
            Urgency::Waited,
            Request::Mailboxes,
        ))?;
    }
    let mut found = Folders::default();
    let mut left: BTreeSet<u16> = all.iter().map(|account| account.number).collect();
    let end = Instant::now().checked_add(ANSWER_TIMEOUT);
    while !left.is_empty() {
        let patience = end.map_or(ANSWER_TIMEOUT, |end| {
            end.saturating_duration_since(Instant::now())
        });
        let Ok((id, answer)) = asker.answers.recv_timeout(patience) else {
            let silent = "expected an answer within 60 s; found none".to_owned();
            found
                .faults
                .extend(left.iter().map(|number| (*number, silent.clone())));
            break;
        };
        let number = u16::try_from(id.0).unwrap_or(0);
        left.remove(&number);
        match answer {
            Ok(Answer::Mailboxes(names)) => {
                for tag in names.iter().filter_map(|name| tag_of(name)) {
                    found.volumes.entry(tag).or_default().insert(number);
                }
            }
            Ok(_) => {
                let text = "the answer is to another request".to_owned();
                found.faults.insert(number, text);
            }
            Err(fault) => {
                found.faults.insert(number, fault.to_string());
            }
        }
    }
    Ok(found)
}

/// The tag in the name of a mailbox below `VereFS`: 8 hexadecimal digits, the account's delimiter, a name.
fn tag_of(name: &str) -> Option<String> {
    let (tag, rest) = name.split_at_checked(TAG_LETTERS)?;
    let is_digit = |one: u8| one.is_ascii_digit() || (b'a'..=b'f').contains(&one);
    let mut rest = rest.chars();
    let parts = rest.next().is_some_and(|one| !one.is_alphanumeric()) && rest.next().is_some();
    (parts && tag.bytes().all(is_digit)).then(|| tag.to_owned())
}

/// The volume that is meant.
pub(super) fn choose(found: &Folders, wanted: Option<&str>) -> Result<String, Failure> {
    let listed = || {
        let lines = found.volumes.iter().take(VOLUMES_SHOWN).map(|(tag, of)| {
            let numbers: Vec<String> = of.iter().map(ToString::to_string).collect();
            format!("  {tag} on account {}", numbers.join(", "))
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    if let Some(wanted) = wanted {
        let wanted = wanted.to_ascii_lowercase();
        if found.volumes.contains_key(&wanted) {
            return Ok(wanted);
        }
        return Err(Failure::new(format!(
            "--volume {wanted}: expected the tag of a volume on the accounts; found:\n{}",
            listed()
        )));
    }
    let mut tags = found.volumes.keys();
    match (tags.next(), tags.next()) {
        (Some(tag), None) => Ok(tag.clone()),
        (Some(_), Some(_)) => Err(Failure::new(format!(
            "expected one volume on the accounts, or --volume TAG; found {}:\n{}",
            found.volumes.len(),
            listed()
        ))),
        (None, _) => {
            let mut text =
                "expected a volume on the accounts; found no mailboxes VereFS/TAG/...".to_owned();
            for (number, fault) in &found.faults {
                text.push_str(&format!("\n  account {number}: {fault}"));
            }
            Err(Failure::new(text))
        }
    }
}

/// Reads slots and facts of a volume. `news` hears mails read, and all; `notice` hears of mails that are none.
pub(super) fn recover(
    all: &[VolumeAccount],
    tag: &str,
    opener: &Opener,
    news: &mut dyn FnMut(usize, usize),
    notice: &mut dyn FnMut(String),
) -> Result<Recovered, Failure> {
    let number = u32::from_str_radix(tag, 16)
        .map_err(|_| Failure::new(format!("{tag}: expected 8 hexadecimal digits")))?;
    let asker = Asker::start(all, Some(tag))?;
    let numbers = all.iter().map(|account| AccountId(account.number));
    let mut recovery = Recovery::new(numbers, number);
    carry(&asker, &mut recovery, news, notice)?;
    recovery.unlock(opener.as_slot())?;
    carry(&asker, &mut recovery, news, notice)?;
    Ok(recovery.finish()?)
}

/// Reads every mail with content. `news` hears the stage, the parts done and the parts known.
pub(super) fn salvage(
    all: &[VolumeAccount],
    tag: &str,
    mut salvage: Salvage,
    news: &mut dyn FnMut(&'static str, usize, usize),
) -> Result<Salvaged, Failure> {
    let asker = Asker::start(all, Some(tag))?;
    let clock = Clock::start();
    let mut asked_at = clock.now().steady;
    loop {
        let now = clock.now().steady;
        salvage.wake(now);
        while let Some(SalvageStep::Ask(id, account, urgency, request)) = salvage.poll() {
            asked_at = now;
            asker.ask(Ask(id, account, urgency, request))?;
        }
        if salvage.is_over() {
            return Ok(salvage.finish());
        }
        // An account that asks for patience is silent meanwhile.
        let silent_from = salvage
            .rests_until()
            .map_or(asked_at, |end| end.max(asked_at));
        let end = silent_from + ANSWER_TIMEOUT;
        let wake = salvage.next_wake();
        let until = wake.filter(|at| *at < end || !salvage.is_asking());
        let patience = until.unwrap_or(end).saturating_since(now);
        match asker.answers.recv_timeout(patience) {
            Ok((id, answer)) => {
                asked_at = clock.now().steady;
                salvage.answered(asked_at, id, answer);
            }
            Err(RecvTimeoutError::Timeout) if until.is_some() => {}
            Err(_) => return Err(Failure::new(SILENT)),
        }
        let (stage, done, known) = salvage.progress();
        news(stage, done, known);
    }
}

fn carry(
    asker: &Asker,
    recovery: &mut Recovery,
    news: &mut dyn FnMut(usize, usize),
    notice: &mut dyn FnMut(String),
) -> Result<(), Failure> {
    loop {
        while let Some(step) = recovery.poll() {
            match step {
                OpenStep::Ask(id, account, urgency, request) => {
                    asker.ask(Ask(id, account, urgency, request))?;
                }
                OpenStep::Log(text) => notice(text.to_string()),
            }
        }
        if recovery.is_idle() {
            return Ok(());
        }
        let (id, answer) = asker.answer()?;
        recovery.answered(id, answer);
        let (read, known) = recovery.progress();
        news(read, known);
    }
}

#[cfg(test)]
mod tests {
    use super::{Folders, choose, tag_of};
    use std::collections::BTreeSet;

    #[test]
    fn tags_are_in_the_names_of_mailboxes() {
        for name in ["3f9c0a11/log", "3f9c0a11.data-0001", "3f9c0a11/head"] {
            assert_eq!(tag_of(name).as_deref(), Some("3f9c0a11"), "{name}");
        }
        for name in [
            "3f9c0a11",
            "3f9c0a11/",
            "3F9C0A11/log",
            "3f9c0a1/log",
            "notes/2026",
            "3f9c0a11x/log",
            "ö/lunch",
            "",
        ] {
            assert_eq!(tag_of(name), None, "{name}");
        }
    }

    #[test]
    fn one_volume_is_chosen_and_several_are_named() {
        let mut found = Folders::default();
        let text = choose(&found, None).unwrap_err().to_string();
        assert!(text.contains("expected a volume"), "{text}");
        found
            .volumes
            .insert("3f9c0a11".to_owned(), BTreeSet::from([1]));
        assert_eq!(choose(&found, None).unwrap(), "3f9c0a11");
        found
            .volumes
            .insert("4f9c0a11".to_owned(), BTreeSet::from([1, 2]));
        let text = choose(&found, None).unwrap_err().to_string();
        assert!(
            text.contains(
                "--volume TAG; found 2:\n  3f9c0a11 on account 1\n  4f9c0a11 on account 1, 2"
            ),
            "{text}"
        );
        assert_eq!(choose(&found, Some("4F9C0A11")).unwrap(), "4f9c0a11");
        assert!(choose(&found, Some("5f9c0a11")).is_err());
    }
}
