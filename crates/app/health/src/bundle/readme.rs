//! The text about a bundle.

use vere_process::wording::size;

/// A part: name, description, octets, and the reason of an absence.
pub(super) type Line = (&'static str, &'static str, Option<usize>, Option<String>);

const HEAD: &str = "\
Support bundle of Veredarius (vere support-bundle).

Inside are facts for somebody who helps with this system. Left out are secrets: passwords, keys, the values and parts of
values that the table of settings calls secret, comments of the settings, values of unknown keys. Files with secrets,
the accounts with their password hashes, and messages were not read.

";

const NAMES: &str = "\
Names of people, domains and hosts are inside, since most faults concern one of them. To replace them by pseudonyms, use
vere support-bundle --anonymous.

";

const PSEUDONYMS: &str = "\
Addresses, domains, hosts and IP addresses are pseudonyms made by a key that was forgotten: equal names have equal
pseudonyms within this bundle, and nowhere else.

";

pub(super) fn text(lines: &[Line], anonymous: bool) -> String {
    let mut text = HEAD.to_owned();
    text += match anonymous {
        true => PSEUDONYMS,
        false => NAMES,
    };
    for line in lines {
        text += &row(line);
    }
    text
}

/// A line about a part.
pub(super) fn row((name, about, bytes, reason): &Line) -> String {
    let size = bytes.map_or_else(|| "left out".to_owned(), |bytes| size(bytes as u64));
    let reason = reason
        .as_ref()
        .map(|reason| format!(": {}", reason.replace('\n', "; ")));
    format!(
        "{name:<20} {size:>9}  {about}{}\n",
        reason.unwrap_or_default()
    )
}
