//! Facts of a new volume: rows of the first commit, and the mail that every account has.

use std::time::Duration;

use bytes::Bytes;
use vere_accounts::{Place, Security};
use vere_mailfs::format::volume::Facts;
use vere_mailfs::format::{Builder, Kind, MAIL_OCTETS_MAX, PackNumber, Sealed};
use vere_mailfs::rows::{AccountRow, GroupRow, Key, RowValue, SettingsRow};
use vere_mailfs::volume::Strategy;
use vere_process::failure::Failure;
use vere_settings::{Volume as Described, VolumeAccount};

use crate::probe::{Found, Of};
use crate::volume;

/// How long a volume keeps what nobody needs any more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retention {
    /// Content that files had.
    pub(crate) versions: Duration,
    /// Files that are open on one machine and removed on another.
    pub(crate) deleted: Duration,
}

/// Keys and values.
pub(crate) type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// Rows of settings, accounts and groups.
pub(crate) fn rows(
    described: &Described,
    found: &[Found],
    strategy: Strategy,
    keep: Retention,
) -> Result<Rows, Failure> {
    let settings = SettingsRow {
        reader_features: 0,
        writer_features: 0,
        keep_versions_s: keep.versions.as_secs(),
        keep_deleted_s: keep.deleted.as_secs(),
    };
    let mut rows = vec![(Key::Settings.encode(), settings.encode())];
    for account in &described.accounts {
        let limit = found
            .iter()
            .find(|found| found.number == account.number)
            .and_then(|found| found.append_limit);
        let row = account_row(account, limit)?;
        rows.push((Key::Account(account.number).encode(), row.encode()));
    }
    for group in volume::terms(described).groups {
        let row = GroupRow {
            strategy: strategy.number(),
            ..group_row(described, group.group)
        };
        rows.push((Key::Group(group.group).encode(), row.encode()));
    }
    Ok(rows)
}

/// The row of an account. `limit` is the longest mail, where told.
pub(crate) fn account_row(
    account: &VolumeAccount,
    limit: Option<u32>,
) -> Result<AccountRow, Failure> {
    let place = Place::parse(&account.url, account.clear)
        .ok_or_else(|| Failure::new(format!("{}: expected imaps://USER@HOST/", account.url)))??;
    Ok(AccountRow {
        security: match place.security {
            Security::Implicit => 0,
            Security::StartTls => 1,
            Security::Clear => 2,
        },
        encoding: volume::encoding(account.base64) as u8,
        state: 0,
        port: place.port,
        mail_octets_max: limit.unwrap_or(u32::try_from(MAIL_OCTETS_MAX).unwrap_or(u32::MAX)),
        host: place.host,
        user: place.user,
        groups: vec![account.group],
    })
}

/// The row of a group of a description.
pub(crate) fn group_row(described: &Described, group: u16) -> GroupRow {
    let members = described.accounts.iter();
    let members = members.filter(|account| account.group == group);
    GroupRow {
        strategy: 0,
        sync_copies: u8::try_from(described.sync_copies).unwrap_or(u8::MAX),
        accounts: members.map(|account| account.number).collect(),
    }
}

/// The mail of the facts.
pub(crate) fn mail(
    of: &Of<'_>,
    described: &Described,
    name: &str,
    rows: Rows,
) -> Result<Sealed, Failure> {
    let facts = Facts {
        created: i64::try_from(of.date.as_millis()).unwrap_or(i64::MAX),
        lead_account: described.lead,
        name: name.to_owned(),
        rows,
        ..Facts::default()
    };
    // Writers count from 1, so no mail of a writer has this number.
    let mail = Builder::new(Kind::Volume, of.volume, of.epoch, 0, PackNumber(2));
    Ok(mail.finish(Bytes::from(facts.encode()?), of.keys)?)
}

#[cfg(test)]
mod tests {
    use super::{Retention, Strategy, mail, rows};
    use crate::probe::Of;
    use std::time::Duration;
    use vere_mailfs::format::volume::Facts;
    use vere_mailfs::format::{Keys, VolumeId, VolumeKey, open};
    use vere_mailfs::rows::{AccountRow, GroupRow, Key, RowValue, SettingsRow};
    use vere_settings::Volume;
    use vere_units::Timestamp;

    #[test]
    fn facts_are_in_a_mail() {
        let text = "version = 1\n\
            [[account]]\nnumber = 1\nurl = \"imaps://a@one.example/\"\npassword_file = \"p\"\n\
            [[account]]\nnumber = 2\nurl = \"imap://a@two.example:2143/\"\npassword_file = \"p\"\ngroup = 1\nencoding = \"base64\"\n";
        let described = Volume::parse(text, "home.toml").unwrap();
        let keys = Keys::derive(&VolumeKey([1; 32]));
        let of = Of {
            volume: VolumeId([2; 16]),
            epoch: 1,
            keys: &keys,
            tag: "02020202",
            date: Timestamp::from_millis(1_000),
        };
        let keep = Retention {
            versions: Duration::from_secs(100),
            deleted: Duration::from_secs(50),
        };
        let rows = rows(&described, &[], Strategy::One, keep).unwrap();
        let sealed = mail(&of, &described, "home", rows).unwrap();
        let opened = open(&sealed.body, &keys, None).unwrap();
        let facts = Facts::decode(opened.last()).unwrap();
        assert_eq!((facts.name.as_str(), facts.lead_account), ("home", 1));
        let value = |key: Key<'_>| {
            let key = key.encode();
            let row = facts.rows.iter().find(|(of, _)| *of == key);
            row.map(|(_, value)| value.clone()).unwrap()
        };
        let account = AccountRow::decode(&value(Key::Account(2))).unwrap();
        assert_eq!(
            (
                account.host.as_str(),
                account.port,
                account.security,
                account.encoding
            ),
            ("two.example", 2143, 1, 2)
        );
        let group = GroupRow::decode(&value(Key::Group(1))).unwrap();
        assert_eq!(group.accounts, [1, 2]);
        assert_eq!(facts.rows.len(), 4);
        let settings = SettingsRow::decode(&value(Key::Settings)).unwrap();
        assert_eq!(
            (settings.keep_versions_s, settings.keep_deleted_s),
            (100, 50)
        );
    }
}
