//! Records of the directory, read for commands.

use vere_directory::Directory;
use vere_ports::directory::{Account, AccountName, Alias, ChangeError, DomainName, Page};
use vere_process::failure::Failure;
use vere_settings::Settings;

/// Rows asked of a store at once.
const PAGE: usize = 1_000;

/// The Maildir of an account.
pub(super) fn maildir(name: &AccountName, settings: &Settings) -> std::path::PathBuf {
    vere_disk::maildir::maildir_path(
        &settings.delivery.maildir,
        name.local(),
        name.domain().as_str(),
    )
}

/// Adds a hint to an error.
pub(crate) fn explained(error: ChangeError) -> Failure {
    let advice = match &error {
        ChangeError::NoSuchDomain(name) => format!(", add it with: vere domain add {name}"),
        ChangeError::AccountExists(name) => {
            format!(", for a new password: vere account passwd {name}")
        }
        ChangeError::NoSuchAccount(name) => {
            format!(", those there are: vere account list {}", name.domain())
        }
        ChangeError::DomainInUse(name, ..) => {
            format!(" (vere account list {name}; vere alias list {name})")
        }
        _ => String::new(),
    };
    Failure::new(format!("{error}{advice}"))
}

/// The account of this name.
///
/// # Errors
/// When the account is unknown, or the directory cannot be read.
pub(super) fn existing(directory: &Directory, name: &AccountName) -> Result<Account, Failure> {
    let found = directory.store().account(name)?;
    found.ok_or_else(|| explained(ChangeError::NoSuchAccount(name.clone())))
}

/// The aliases of an account.
pub(super) fn leading(directory: &Directory, name: &AccountName) -> Result<Vec<String>, Failure> {
    let mut leading: Vec<String> = Vec::new();
    each_alias(directory, None, |alias| {
        let there = |target: &String| AccountName::parse(target).as_ref() == Ok(name);
        if alias.targets.iter().any(there) {
            leading.push(alias.name.to_string());
        }
    })?;
    Ok(leading)
}

/// Walks over all aliases, of a domain or of all domains.
pub(crate) fn each_alias(
    directory: &Directory,
    domain: Option<DomainName>,
    look: impl FnMut(&Alias),
) -> Result<(), Failure> {
    let read = |page: &Page| directory.store().aliases(page);
    each_row(domain, read, |alias| alias.name.clone(), look)
}

/// Walks over the rows of a domain, or of all domains, which are read a page at a time.
pub(super) fn each_row<R, E>(
    domain: Option<DomainName>,
    read: impl Fn(&Page) -> Result<Vec<R>, E>,
    name: impl Fn(&R) -> AccountName,
    mut look: impl FnMut(&R),
) -> Result<(), Failure>
where
    Failure: From<E>,
{
    let mut page = Page {
        domain,
        after: None,
        limit: PAGE,
    };
    loop {
        let rows = read(&page)?;
        rows.iter().for_each(&mut look);
        match rows.last() {
            Some(last) if rows.len() == PAGE => page.after = Some(name(last)),
            _ => return Ok(()),
        }
    }
}
