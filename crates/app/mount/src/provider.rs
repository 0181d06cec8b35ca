//! The terms of an account: from the description, or from what is known of the provider.

use vere_accounts::{Place, Profile};
use vere_settings::VolumeAccount;
use vere_units::ByteSize;

use crate::figures::octets;

/// The terms of an account at this server.
pub(crate) fn terms(account: &VolumeAccount, host: &str) -> Profile {
    let known = Profile::of(host);
    let per_day = |own: Option<ByteSize>, known| own.map(ByteSize::as_u64).or(known);
    Profile {
        name: known.name,
        connections_max: account.connections_max.unwrap_or(known.connections_max),
        upload_per_day: per_day(account.upload_per_day, known.upload_per_day),
        download_per_day: per_day(account.download_per_day, known.download_per_day),
    }
}

/// Connections to the account at the same time.
pub(crate) fn connections_max(account: &VolumeAccount) -> usize {
    let place = Place::parse(&account.url, account.clear).and_then(Result::ok);
    let host = place.map_or_else(String::new, |place| place.host);
    terms(account, &host).connections_max
}

/// The terms as a line for people; `None` without a server in the description.
pub(crate) fn shown(account: &VolumeAccount) -> Option<String> {
    let host = Place::parse(&account.url, account.clear)?.ok()?.host;
    let terms = terms(account, &host);
    let provider = match Profile::of(&host).is_known() {
        true => terms.name,
        false => "no known provider",
    };
    let per_day = |limit: Option<u64>| limit.map_or_else(|| "no limit".to_owned(), octets);
    Some(format!(
        "account {}: {provider}: {} connections, {} up and {} down in 24 hours (settings: connections_max, upload_per_day, download_per_day)",
        account.number,
        terms.connections_max,
        per_day(terms.upload_per_day),
        per_day(terms.download_per_day),
    ))
}

#[cfg(test)]
mod tests {
    use super::{shown, terms};
    use vere_settings::Volume;

    fn described(further: &str) -> Volume {
        let text = format!(
            "version = 1\n[[account]]\nnumber = 1\nurl = \"imaps://a@imap.gmail.com/\"\npassword_file = \"p\"\n{further}"
        );
        Volume::parse(&text, "home.toml").unwrap()
    }

    #[test]
    fn settings_override_what_is_known() {
        let known = described("");
        let account = known.accounts.first().unwrap();
        assert_eq!(
            shown(account).unwrap(),
            "account 1: Gmail: 6 connections, 381 MiB up and 1.8 GiB down in 24 hours (settings: connections_max, upload_per_day, download_per_day)"
        );
        let own = described("connections_max = 2\nupload_per_day = \"1 GiB\"\n");
        let account = own.accounts.first().unwrap();
        let terms = terms(account, "imap.gmail.com");
        assert_eq!(
            (terms.connections_max, terms.upload_per_day),
            (2, Some(1 << 30))
        );
        assert_eq!(terms.download_per_day, Some(2_000_000_000));
    }
}
