//! `vere account rename`.
//!
//! Each step leaves an address for every message that comes meanwhile, and the command goes on where it was cut off: the
//! new account is added with the password of the old one, an alias leads from the old name to the new one, the old
//! account goes, and at last its mailboxes get the new name.

use std::fmt::Write as _;

use clap::Args;
use serde_json::json;
use vere_directory::Directory;
use vere_login::directory::open;
use vere_ports::directory::{Account, AccountName, ChangeError};
use vere_process::failure::Failure;
use vere_role_store::maintenance::accounts;
use vere_settings::{LocalDelivery, Settings};

use super::records::{each_alias, explained};
use super::{kept, no_tag, refuse_kept};
use vere_process::json::printed;

/// Give an account, with password, mail and aliases, another name; mail for the old name still arrives.
///
/// Sessions of the old name end within two seconds, and mail programs need the new name as their user name. The mailboxes
/// stay as they are, so that mail programs that are changed need not load the mail again.
#[derive(Debug, Args)]
pub(crate) struct RenameArgs {
    /// The address of the account.
    old: String,
    /// The new address, in a local domain.
    new: String,
    /// Refuse mail for the old name from now on.
    #[arg(long)]
    no_alias: bool,
    /// Print what would be changed, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON: an object with `account`, `before`, `alias`, `aliases` that lead to the new name now, `mail` and
    /// `dry_run`.
    #[arg(long)]
    json: bool,
}

/// The two names.
struct Names {
    old: AccountName,
    new: AccountName,
}

/// Renames an account.
///
/// # Errors
/// When the old name is unknown or the new one is taken, or the directory or the mail store cannot be changed; the same
/// command then goes on.
pub(super) fn run(args: &RenameArgs, settings: &Settings) -> Result<String, Failure> {
    if settings.delivery.local == LocalDelivery::Maildir {
        return Err(Failure::new(
            "expected mail in the mail store; found delivery.local = \"maildir\": add the new account, move the \
             Maildir, set an alias and remove the old account yourself",
        ));
    }
    let names = Names {
        old: AccountName::parse(&args.old)?,
        new: AccountName::parse(&args.new)?,
    };
    no_tag(&names.new, settings)?;
    let directory = open(settings)?;
    let account = names.renamed(&directory, settings)?;
    let leading = names.leading(&directory)?;
    let mail = kept(&names.old, settings)?.unwrap_or_else(|| "no mail".to_owned());
    if !args.dry_run {
        if let Some(account) = account {
            names.change(&directory, account, &leading)?;
        }
        accounts::rename(settings, &names.old, &names.new)?;
        if args.no_alias {
            directory
                .remove_alias(names.old.clone())
                .map_err(explained)?;
        }
    }
    let value = json!({
        "account": names.new.to_string(),
        "before": names.old.to_string(),
        "alias": !args.no_alias,
        "aliases": leading.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>(),
        "mail": mail,
        "dry_run": args.dry_run,
    });
    Ok(printed(
        args.json,
        value,
        names.text(args, (&leading, &mail), settings),
    ))
}

impl Names {
    /// The account to be renamed; `None` if an earlier call has come as far as the mailboxes.
    fn renamed(
        &self,
        directory: &Directory,
        settings: &Settings,
    ) -> Result<Option<Account>, Failure> {
        let store = directory.store();
        if self.old == self.new {
            return Err(Failure::new(format!("{} has this name already", self.old)));
        }
        match (store.account(&self.old)?, store.account(&self.new)?) {
            (Some(old), None) => {
                if store.domain(self.new.domain())?.is_none() {
                    let missing = ChangeError::NoSuchDomain(self.new.domain().clone());
                    return Err(explained(missing));
                }
                refuse_kept(&self.new, settings)?;
                Ok(Some(old))
            }
            // The new account has the password of the old one: an earlier call made it.
            (Some(old), Some(new)) if old.credentials == new.credentials => Ok(Some(old)),
            (Some(_), Some(_)) => Err(explained(ChangeError::AccountExists(self.new.clone()))),
            (None, Some(_)) if self.is_led(directory)? => Ok(None),
            (None, _) => Err(explained(ChangeError::NoSuchAccount(self.old.clone()))),
        }
    }

    /// Whether an alias leads from the old name to the new one.
    fn is_led(&self, directory: &Directory) -> Result<bool, Failure> {
        let alias = directory.store().alias(&self.old)?;
        Ok(alias.is_some_and(|alias| alias.targets.iter().any(|target| names(target, &self.new))))
    }

    /// The other aliases of the old name, with their new targets.
    fn leading(&self, directory: &Directory) -> Result<Vec<(AccountName, Vec<String>)>, Failure> {
        let mut leading = Vec::new();
        each_alias(directory, None, |alias| {
            if alias.targets.iter().any(|target| names(target, &self.old)) {
                leading.push((alias.name.clone(), self.targets(&alias.targets)));
            }
        })?;
        Ok(leading)
    }

    /// The targets of an alias, with the new name in place of the old one.
    fn targets(&self, targets: &[String]) -> Vec<String> {
        let target = |target: &String| match names(target, &self.old) {
            true => self.new.to_string(),
            false => target.clone(),
        };
        targets.iter().map(target).collect()
    }

    /// Changes the directory, with an address for every message at each moment: an alias precedes an account of its
    /// name.
    fn change(
        &self,
        directory: &Directory,
        account: Account,
        leading: &[(AccountName, Vec<String>)],
    ) -> Result<(), Failure> {
        if directory.store().account(&self.new)?.is_none() {
            directory
                .add_account(self.new.clone(), account.credentials)
                .map_err(explained)?;
        }
        let set = |name: &AccountName, targets: &[String]| {
            let targets = targets.iter().map(String::as_str);
            directory
                .set_alias(name.clone(), targets)
                .map_err(explained)
        };
        for (name, targets) in leading {
            set(name, targets)?;
        }
        // An alias of the old name that keeps copies elsewhere is among these.
        if directory.store().alias(&self.old)?.is_none() {
            set(&self.old, &[self.new.to_string()])?;
        }
        directory
            .remove_account(self.old.clone())
            .map_err(explained)
    }

    fn text(
        &self,
        args: &RenameArgs,
        (leading, mail): (&[(AccountName, Vec<String>)], &str),
        settings: &Settings,
    ) -> String {
        let would = if args.dry_run { " would be" } else { " is" };
        let mut text = format!("{}{would} {} now, with {mail}\n", self.old, self.new);
        if args.no_alias {
            let _ = writeln!(text, "mail for {}{would} refused", self.old);
        } else {
            let _ = writeln!(
                text,
                "mail for {}{would} delivered to {}; end that with: vere alias del {}",
                self.old, self.new, self.old
            );
        }
        for (name, targets) in leading {
            let _ = writeln!(text, "alias {name}{would} led to {}", targets.join(", "));
        }
        let old = self.old.to_string();
        let quotas = settings
            .quota
            .accounts
            .iter()
            .map(|(name, _)| ("quota", name));
        let sending = settings
            .sending
            .accounts
            .iter()
            .map(|(name, _)| ("sending", name));
        for (section, _) in quotas
            .chain(sending)
            .filter(|(_, name)| name.eq_ignore_ascii_case(&old))
        {
            let _ = writeln!(
                text,
                "the settings have [[{section}.account]] for {old}: write {} there, then: vere reload",
                self.new
            );
        }
        text
    }
}

/// Whether an address is an account's.
fn names(address: &str, account: &AccountName) -> bool {
    AccountName::parse(address).as_ref() == Ok(account)
}
