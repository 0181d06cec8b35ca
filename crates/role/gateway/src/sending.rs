//! Whose names accounts use: a stolen password sends under the names of its account alone.

use vere_settings::Senders;
use vere_smtp::address::AddrSpec;
use vere_smtp::refusal::Refusal;

use super::header::Header;
use super::process::Process;

/// Checks that an account may send under an address, as reverse-path or as author.
///
/// # Errors
/// [`Refusal::SenderNotOwned`]; [`Refusal::LocalError`] when the directory cannot be read.
pub(super) fn check_sender(
    process: &Process,
    account: &str,
    address: &AddrSpec,
) -> Result<(), Refusal> {
    match process.settings().sending.of(account).senders {
        Senders::Own => process.router.check_owner(account, address),
        Senders::Foreign => process.router.check_sender(account, address),
    }
}

/// Checks the authors of a message in its From field. A message without the field has no author.
///
/// # Errors
/// [`Refusal::AuthorNotOwned`] where an author is not the account's, or the field has none that can be read;
/// [`Refusal::LocalError`] when the directory cannot be read.
pub(super) fn check_authors(
    process: &Process,
    account: &str,
    header: &Header<'_>,
) -> Result<(), Refusal> {
    let Some(authors) = header.authors() else {
        return Ok(());
    };
    let addresses: Result<Vec<AddrSpec>, _> =
        authors.iter().map(|text| AddrSpec::parse(text)).collect();
    let addresses = addresses.map_err(|_| Refusal::AuthorNotOwned)?;
    if addresses.is_empty() {
        return Err(Refusal::AuthorNotOwned);
    }
    for address in &addresses {
        check_sender(process, account, address).map_err(|refusal| match refusal {
            Refusal::SenderNotOwned => Refusal::AuthorNotOwned,
            other => other,
        })?;
    }
    Ok(())
}
