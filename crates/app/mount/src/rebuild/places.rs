//! The accounts of a volume: as given on the command line or in a file, and as the volume's rows name them.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use vere_accounts::{Place, Security};
use vere_mailfs::format::Encoding;
use vere_mailfs::rows::{AccountRow, GroupRow};
use vere_process::failure::Failure;
use vere_settings::{AccountSecret, Volume as Described, VolumeAccount};

use super::login;
use crate::args::RebuildArgs;
use crate::folders::{self, Description};
use crate::sections::{Section, sections};

/// The accounts to begin with: those of the command line, else those of the volume's file.
pub(super) fn given(
    args: &RebuildArgs,
    description: &Description,
) -> Result<Vec<VolumeAccount>, Failure> {
    if args.given.accounts.is_empty() {
        return Ok(description.read()?.accounts);
    }
    let mut text = String::from("version = 1\n");
    for section in sections(&args.given)? {
        section.write(&mut text);
    }
    Ok(Described::parse(&text, "the accounts of the command line")?.accounts)
}

/// The account's place as the row has the place.
fn url_of(row: &AccountRow) -> String {
    let (scheme, usual) = match row.security {
        0 => ("imaps", 993),
        _ => ("imap", 143),
    };
    let port = if row.port == usual {
        String::new()
    } else {
        format!(":{}", row.port)
    };
    // A percent sign in a user's name would be read as the begin of two digits.
    let user = row.user.replace('%', "%25");
    format!("{scheme}://{user}@{}{port}/", row.host)
}

/// The given account that is meant by a row: the same place, else the same user and host, else a user of that name that is no
/// other account's. A server may have moved, so that the place given counts.
fn find<'a>(
    row: &AccountRow,
    all: &[(u16, AccountRow)],
    given: &'a [VolumeAccount],
) -> Option<&'a VolumeAccount> {
    let place = |account: &VolumeAccount| Place::parse(&account.url, account.clear)?.ok();
    let by = |is: &dyn Fn(&Place) -> bool| {
        let mut matching = given
            .iter()
            .filter(|account| place(account).is_some_and(|place| is(&place)));
        let first = matching.next()?;
        matching.next().is_none().then_some(first)
    };
    let is_host = |place: &Place| place.user == row.user && place.host == row.host;
    let is_only_user = all
        .iter()
        .filter(|(_, other)| other.user == row.user)
        .count()
        == 1;
    by(&|place| is_host(place) && place.port == row.port)
        .or_else(|| by(&is_host))
        .or_else(|| by(&|place| is_only_user && place.user == row.user))
}

/// The text of a volume's file.
pub(super) struct Written {
    pub(super) text: String,
    /// Given accounts that are none of the volume.
    pub(super) strange: Vec<String>,
}

/// The rows of accounts and groups by number, and the number of the lead.
type Rows<'a> = (&'a [(u16, AccountRow)], &'a [(u16, GroupRow)], u16);

/// Writes the file of a volume from its rows. Accounts that were not given get their passwords by a prompt.
pub(super) fn text(
    (accounts, groups, lead): Rows<'_>,
    given: &[VolumeAccount],
    args: &RebuildArgs,
    description: &Description,
) -> Result<Written, Failure> {
    let missing: Vec<String> = accounts
        .iter()
        .filter(|(_, row)| find(row, accounts, given).is_none())
        .map(|(_, row)| url_of(row))
        .collect();
    if !missing.is_empty() && !io::stdin().is_terminal() {
        return Err(Failure::new(format!(
            "expected all accounts of the volume with their --password-file; found none for {}",
            missing.join(", ")
        )));
    }
    let mut text = String::from("version = 1\n");
    // The first account leads unless the file says otherwise.
    if accounts.first().is_none_or(|(number, _)| *number != lead) {
        let _written = writeln!(text, "lead = {lead}");
    }
    let copies = groups.iter().map(|(_, row)| row.sync_copies).max();
    if let Some(copies) = copies.filter(|copies| *copies > 1) {
        let _written = writeln!(text, "sync_copies = {copies}");
    }
    let mut used = Vec::new();
    for (number, row) in accounts {
        let section = match find(row, accounts, given) {
            Some(account) => {
                used.push(account.url.clone());
                of_given(account, *number, row)
            }
            None => asked(*number, row, args, description)?,
        };
        section.write(&mut text);
    }
    let strange = given.iter().map(|account| account.url.clone());
    Ok(Written {
        text,
        strange: strange.filter(|url| !used.contains(url)).collect(),
    })
}

fn section(number: u16, row: &AccountRow) -> Section {
    let group = row.groups.first().copied().unwrap_or(number);
    Section {
        number: number.into(),
        url: url_of(row),
        secret: AccountSecret::PasswordFile(PathBuf::new()),
        ca: None,
        clear: row.security == 2,
        base64: row.encoding == Encoding::Base64 as u8,
        group: group.into(),
    }
}

fn of_given(account: &VolumeAccount, number: u16, row: &AccountRow) -> Section {
    Section {
        url: account.url.clone(),
        secret: account.secret.clone(),
        ca: account.ca.clone(),
        clear: account.clear,
        ..section(number, row)
    }
}

/// An account that was not given: its password is asked for, and kept beside the volume's file.
fn asked(
    number: u16,
    row: &AccountRow,
    args: &RebuildArgs,
    description: &Description,
) -> Result<Section, Failure> {
    let mut section = section(number, row);
    let place = Place::parse(&section.url, section.clear);
    let is_fit = |place: &Place| place.security != Security::Clear || args.given.clear;
    let place = place.and_then(Result::ok).filter(is_fit).ok_or_else(|| {
        Failure::new(format!(
            "{}: expected --clear, since the volume uses this account without TLS",
            section.url
        ))
    })?;
    let ca = args
        .given
        .ca
        .as_ref()
        .map(std::path::absolute)
        .transpose()?;
    let prompt = format!("Password of {}: ", section.url);
    let password = login::tried(&place, ca.as_ref(), &mut || {
        Ok(rpassword::prompt_password(&prompt)?)
    })?;
    let name = format!("{}.account-{number}.password", description.label());
    let file = std::path::absolute(description.file.with_file_name(name))?;
    if let Some(folder) = file.parent() {
        folders::make_private(folder)?;
    }
    write_once(&file, format!("{}\n", password.expose()).as_bytes())?;
    section.secret = AccountSecret::PasswordFile(file);
    section.ca = ca;
    Ok(section)
}

/// Writes a file, unless the file is there with the same octets.
pub(super) fn write_once(file: &Path, octets: &[u8]) -> Result<(), Failure> {
    match std::fs::read(file) {
        Ok(found) if found == octets => Ok(()),
        Ok(_) => Err(Failure::new(format!(
            "{}: expected no file, or one with the octets of this volume; found another one. Another name rebuilds the volume beside",
            file.display()
        ))),
        Err(_) => folders::write_private(file, octets),
    }
}

#[cfg(test)]
mod tests {
    use super::{find, url_of};
    use vere_mailfs::rows::AccountRow;
    use vere_settings::Volume;

    fn row(host: &str, port: u16, user: &str) -> AccountRow {
        AccountRow {
            security: 0,
            encoding: 1,
            state: 0,
            port,
            mail_octets_max: 0,
            host: host.to_owned(),
            user: user.to_owned(),
            groups: vec![1],
        }
    }

    #[test]
    fn urls_of_rows() {
        assert_eq!(
            url_of(&row("a.example", 993, "ann")),
            "imaps://ann@a.example/"
        );
        let odd = AccountRow {
            security: 1,
            ..row("a.example", 2_143, "100%@b")
        };
        assert_eq!(url_of(&odd), "imap://100%25@b@a.example:2143/");
    }

    #[test]
    fn given_accounts_are_found_even_where_a_server_has_moved() {
        let text = "version = 1\n\
            [[account]]\nnumber = 1\nurl = \"imaps://ann@new.example/\"\npassword_file = \"p\"\n\
            [[account]]\nnumber = 2\nurl = \"imaps://bob@one.example/\"\npassword_file = \"p\"\n\
            [[account]]\nnumber = 3\nurl = \"imaps://bob@two.example/\"\npassword_file = \"p\"\n";
        let given = Volume::parse(text, "x.toml").unwrap().accounts;
        let all: Vec<(u16, AccountRow)> = [
            row("old.example", 993, "ann"),
            row("one.example", 2_993, "bob"),
            row("two.example", 993, "bob"),
            row("three.example", 993, "bob"),
        ]
        .into_iter()
        .zip(1..)
        .map(|(row, number)| (number, row))
        .collect();
        let found = |at: usize| find(&all[at].1, &all, &given).map(|account| account.number);
        assert_eq!(
            [found(0), found(1), found(2), found(3)],
            [Some(1), Some(2), Some(3), None]
        );
    }
}
