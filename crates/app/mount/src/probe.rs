//! A trial of accounts before a volume is made: login, room, and a test mail that must come back octet by octet.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;
use vere_accounts::{Accounts, Answers};
use vere_mailfs::format::{
    Builder, Codec, Encoding, Keys, Kind, PackNumber, Sealed, Subject, VolumeId, mail, subject,
};
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, RequestId, Urgency};
use vere_process::failure::Failure;
use vere_settings::{Volume as Described, VolumeAccount};
use vere_units::Timestamp;

use crate::secrets;
use crate::status::{encoding_word, octets};
use crate::volume;

/// Octets of content in the test mail: sealed, they have every value many times, and lines of every form.
const CONTENT: usize = 64 << 10;
/// The longest silence of an account.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The mailbox of test mails, where slots are too.
const MAILBOX: &str = "head";

/// A new volume, as far as the test mails need to know.
pub(crate) struct Of<'a> {
    pub(crate) volume: VolumeId,
    pub(crate) epoch: u16,
    pub(crate) keys: &'a Keys,
    pub(crate) tag: &'a str,
    pub(crate) date: Timestamp,
}

/// What an account can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) number: u16,
    pub(crate) url: String,
    pub(crate) encoding: Encoding,
    pub(crate) quota: Option<(u64, u64)>,
    pub(crate) append_limit: Option<u32>,
    pub(crate) tells_uids: bool,
}

impl Found {
    /// A line for people.
    pub(crate) fn shown(&self) -> String {
        let mut text = format!("account {}: {} works", self.number, self.url);
        // Writing into a text does not fail.
        let _written = match self.quota {
            Some((used, limit)) => write!(
                text,
                ", {} free of {}",
                octets(limit.saturating_sub(used)),
                octets(limit)
            ),
            None => write!(text, ", no quota told"),
        };
        let _written = match self.append_limit {
            Some(limit) => write!(text, ", mails up to {}", octets(limit.into())),
            None => write!(text, ", no limit of a mail told"),
        };
        text.push_str(if self.tells_uids {
            ", UIDPLUS"
        } else {
            ", without UIDPLUS (slower)"
        });
        let _written = write!(text, ", encoding {}", encoding_word(self.encoding));
        text
    }
}

/// Tries all accounts, in turn. `found` hears each.
pub(crate) fn run(
    described: &Described,
    of: &Of<'_>,
    found: &mut dyn FnMut(&Found),
) -> Result<Vec<Found>, Failure> {
    let mut all = Vec::new();
    for account in &described.accounts {
        all.push((
            AccountId(account.number),
            secrets::account(account, of.tag)?,
        ));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let (accounts, answers) = Accounts::start(all);
        let mut trial = Trial {
            accounts,
            answers,
            last: 0,
        };
        let mut results = Vec::new();
        for account in &described.accounts {
            let one = trial.account(account, of).await;
            let one = one.map_err(|failure| Failure::new(format!("{}: {failure}", account.url)))?;
            found(&one);
            results.push(one);
        }
        Ok(results)
    })
}

struct Trial {
    accounts: Accounts,
    answers: Answers,
    last: u64,
}

impl Trial {
    async fn ask(
        &mut self,
        account: u16,
        request: Request,
    ) -> Result<Result<Answer, Fault>, Failure> {
        self.last = self.last.wrapping_add(1);
        let id = RequestId(self.last);
        self.accounts
            .ask(AccountId(account), id, Urgency::Waited, request);
        let answered = async {
            loop {
                match self.answers.recv().await {
                    Some((of, answer)) if of == id => return Some(answer),
                    Some(_) => {}
                    None => return None,
                }
            }
        };
        let answer = timeout(ANSWER_TIMEOUT, answered).await.ok().flatten();
        answer.ok_or_else(|| Failure::new("expected an answer within 60 s; found none"))
    }

    async fn account(&mut self, account: &VolumeAccount, of: &Of<'_>) -> Result<Found, Failure> {
        let number = account.number;
        // The first request tells whether server and login are right.
        let quota = match self.ask(number, Request::Quota).await? {
            Ok(Answer::Quota(quota)) => quota,
            Ok(_) => None,
            Err(fault) => return Err(Failure::new(fault.to_string())),
        };
        let mut trials = vec![volume::encoding(account.base64), Encoding::Base64];
        trials.dedup();
        let mut differences = String::new();
        for encoding in trials {
            match self.comes_back(number, encoding, of).await? {
                Ok(()) => {
                    let (state, _) = self
                        .accounts
                        .state(AccountId(number))
                        .ok_or_else(|| Failure::new("expected an account; found none"))?;
                    return Ok(Found {
                        number,
                        url: account.url.clone(),
                        encoding,
                        quota,
                        append_limit: state.append_limit,
                        tells_uids: state.tells_uids,
                    });
                }
                Err(text) => {
                    // Writing into a text does not fail.
                    let _written = write!(differences, "; {}: {text}", encoding_word(encoding));
                }
            }
        }
        Err(Failure::new(format!(
            "expected a test mail to come back unchanged; found none{differences}"
        )))
    }

    /// Whether a mail in this encoding comes back as it went; the inner error says why not.
    async fn comes_back(
        &mut self,
        number: u16,
        encoding: Encoding,
        of: &Of<'_>,
    ) -> Result<Result<(), String>, Failure> {
        let sealed = test_mail(of)?;
        let whole = mail::wrap(
            &Subject::of(&sealed.head, None, None),
            of.date,
            encoding,
            &sealed.body,
        );
        let append = Request::Append {
            mailbox: MAILBOX.to_owned(),
            mail: Bytes::from(whole),
            alone: true,
        };
        let (uid_validity, uid) = match self.ask(number, append).await? {
            Ok(Answer::Appended(Some(place))) => place,
            Ok(_) => match self.find(number, &sealed).await? {
                Some(place) => place,
                None => return Ok(Err("the mail is not found by its subject".to_owned())),
            },
            Err(fault @ (Fault::Refused(_) | Fault::TooBig(..))) => {
                return Ok(Err(fault.to_string()));
            }
            Err(fault) => return Err(Failure::new(fault.to_string())),
        };
        let read = Request::Read {
            mailbox: MAILBOX.to_owned(),
            uid_validity,
            uid,
            parts: Vec::new(),
        };
        let back = self.ask(number, read).await?;
        let remove = Request::Remove {
            mailbox: MAILBOX.to_owned(),
            uid_validity,
            uids: vec![uid],
        };
        // A test mail that stays is garbage, and no reason to refuse the account.
        let _stays = self.ask(number, remove).await?;
        Ok(match back {
            Ok(Answer::Read(parts)) => same(&parts.concat(), encoding, &sealed.body),
            Ok(_) => Err("the mail is gone".to_owned()),
            Err(fault) => Err(fault.to_string()),
        })
    }

    async fn find(&mut self, number: u16, sealed: &Sealed) -> Result<Option<(u32, u32)>, Failure> {
        let find = Request::Find {
            mailbox: MAILBOX.to_owned(),
            word: subject::id_word(sealed.mail_id()),
        };
        Ok(match self.ask(number, find).await? {
            Ok(Answer::Found(uid_validity, uids)) => uids.last().map(|uid| (uid_validity, *uid)),
            _ => None,
        })
    }
}

fn same(back: &[u8], encoding: Encoding, sent: &[u8]) -> Result<(), String> {
    match mail::unwrap(back, encoding) {
        Ok(body) if body == sent => Ok(()),
        Ok(_) => Err("the account changes octets".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn test_mail(of: &Of<'_>) -> Result<Sealed, Failure> {
    // A new mail each time: the id of a mail follows from its content.
    let head: [u8; 32] = volume::random()?;
    let mut content = head.to_vec();
    content.resize(CONTENT, 0);
    let mut mail = Builder::new(Kind::Probe, of.volume, of.epoch, 0, PackNumber(3));
    mail.push(Codec::Plain, content.into())?;
    Ok(mail.finish(Bytes::new(), of.keys)?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Found, Of, same, test_mail};
    use vere_mailfs::format::{Encoding, Keys, Subject, VolumeId, VolumeKey, mail};
    use vere_units::Timestamp;

    #[test]
    fn a_test_mail_has_every_octet_and_tells_changes() {
        let keys = Keys::derive(&VolumeKey([1; 32]));
        let of = Of {
            volume: VolumeId([2; 16]),
            epoch: 1,
            keys: &keys,
            tag: "02020202",
            date: Timestamp::ZERO,
        };
        let sealed = test_mail(&of).unwrap();
        let values: BTreeSet<u8> = sealed.body.iter().copied().collect();
        assert_eq!(values.len(), 256);
        for encoding in [Encoding::EightBit, Encoding::Base64] {
            let subject = Subject::of(&sealed.head, None, None);
            let whole = mail::wrap(&subject, of.date, encoding, &sealed.body);
            let header = whole.windows(4).position(|octets| octets == b"\r\n\r\n");
            let mut body = whole[header.unwrap() + 4..].to_vec();
            assert_eq!(same(&body, encoding, &sealed.body), Ok(()));
            body[1_000] ^= 0x80;
            assert!(same(&body, encoding, &sealed.body).is_err());
        }
    }

    #[test]
    fn a_line_for_people() {
        let mut found = Found {
            number: 2,
            url: "imaps://bob@mail.example.org/".to_owned(),
            encoding: Encoding::EightBit,
            quota: Some((1 << 30, 3 << 30)),
            append_limit: Some(50 << 20),
            tells_uids: true,
        };
        assert_eq!(
            found.shown(),
            "account 2: imaps://bob@mail.example.org/ works, 2.0 GiB free of 3.0 GiB, mails up to 50.0 MiB, UIDPLUS, encoding 8bit"
        );
        found = Found {
            encoding: Encoding::Base64,
            quota: None,
            append_limit: None,
            tells_uids: false,
            ..found
        };
        let text = found.shown();
        assert!(
            text.ends_with(
                "no quota told, no limit of a mail told, without UIDPLUS (slower), encoding base64"
            ),
            "{text}"
        );
    }
}
