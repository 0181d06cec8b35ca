//! Whether the certificate authority of `[acme]` may issue the certificate (CAA, RFC 8659), by the account and with the
//! type of challenge that this system has (RFC 8657).
//!
//! `issuewild` is about wildcard names alone, and no order has wildcard names.

use vere_net::resolver::{Record, RecordKind, RecordsAnswer};

use super::authority::{Account, Authority};
use super::subject::{Subject, listed};
use crate::row::Row;

const CHECK: &str = "caa";

/// Looks for the records of the host name, or of the nearest name above with records.
pub(super) async fn caa(subject: &Subject) -> Row {
    let mut name = subject.hostname.as_str();
    loop {
        match subject.resolver.records(name, RecordKind::Caa).await {
            RecordsAnswer::Found(records) => {
                let issues = issues(&records);
                return match &subject.authority {
                    Some(authority) => judged(name, &issues, authority),
                    None => allowed(name, &issues),
                };
            }
            RecordsAnswer::TempFail(failure) => return Row::unanswered(CHECK, name, &failure),
            RecordsAnswer::None | RecordsAnswer::NoSuchName => {}
        }
        match name.split_once('.') {
            Some((_, parent)) if parent.contains('.') => name = parent,
            _ => return Row::ok(CHECK, "no record: every authority may issue certificates"),
        }
    }
}

/// The value of a property `issue` (RFC 8659 section 4.2).
#[derive(Debug, PartialEq, Eq)]
struct Issue<'a> {
    /// In lower case; empty for no authority at all.
    issuer: String,
    /// The only account with the right to order.
    account: Option<&'a str>,
    /// The only valid types of challenges.
    methods: Option<Vec<&'a str>>,
}

impl<'a> Issue<'a> {
    fn parse(value: &'a str) -> Self {
        let mut parts = value.split(';').map(str::trim);
        let issuer = parts.next().unwrap_or_default().to_ascii_lowercase();
        let (mut account, mut methods) = (None, None);
        for (tag, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim();
            match tag.trim().to_ascii_lowercase().as_str() {
                "accounturi" => account = Some(value),
                "validationmethods" => methods = Some(value.split(',').map(str::trim).collect()),
                _ => {}
            }
        }
        Self {
            issuer,
            account,
            methods,
        }
    }
}

fn issues(records: &[Record]) -> Vec<Issue<'_>> {
    let values = records.iter().filter_map(|record| match record {
        Record::Caa(tag, value) if tag == "issue" => Some(Issue::parse(value)),
        _ => None,
    });
    values.collect()
}

/// Everybody allowed by a name.
fn allowed(name: &str, issues: &[Issue<'_>]) -> Row {
    if issues.is_empty() {
        return Row::ok(CHECK, format!("{name} allows every authority"));
    }
    let names = issues.iter().map(|issue| match issue.issuer.as_str() {
        "" => "nobody",
        issuer => issuer,
    });
    let names: Vec<&str> = names.collect();
    Row::ok(CHECK, format!("{name} allows {}", listed(&names)))
}

fn judged(name: &str, issues: &[Issue<'_>], authority: &Authority) -> Row {
    let Some(identity) = authority.identities.first() else {
        return allowed(name, issues);
    };
    let own: Vec<&Issue<'_>> = issues
        .iter()
        .filter(|issue| authority.identities.contains(&issue.issuer))
        .collect();
    if own.is_empty() && !issues.is_empty() {
        return Row::critical(
            CHECK,
            format!("{name} forbids {identity}, which is asked for certificates ([acme])"),
            format!("publish: {name}. CAA 0 issue \"{identity}\""),
        );
    }
    // Any property that allows the order suffices.
    let findings: Vec<Row> = own
        .iter()
        .filter_map(|issue| hindrance(name, issue, authority))
        .collect();
    match findings.len() < own.len() || own.is_empty() {
        true => allowed(name, issues),
        false => findings
            .into_iter()
            .next()
            .unwrap_or_else(|| allowed(name, issues)),
    }
}

/// Why an order is refused although the authority is allowed (RFC 8657).
fn hindrance(name: &str, issue: &Issue<'_>, authority: &Authority) -> Option<Row> {
    let (issuer, method) = (&issue.issuer, authority.method);
    if let Some(methods) = &issue.methods
        && !methods.contains(&method)
    {
        return Some(Row::critical(
            CHECK,
            format!(
                "{name} allows {issuer} with challenges of type {} alone, and acme.challenge is {method}",
                listed(methods)
            ),
            format!(
                "add {method} to validationmethods of the CAA record of {name}, or change acme.challenge"
            ),
        ));
    }
    let wanted = issue.account?;
    match &authority.account {
        Account::Known(own) if own == wanted => None,
        Account::Known(own) => Some(Row::critical(
            CHECK,
            format!(
                "{name} allows the account {wanted} of {issuer} alone, which is not the account of this system"
            ),
            format!("publish: {name}. CAA 0 issue \"{issuer}; accounturi={own}\""),
        )),
        Account::None => Some(Row::critical(
            CHECK,
            format!(
                "{name} allows the account {wanted} of {issuer} alone, and this system has no account yet"
            ),
            format!(
                "publish: {name}. CAA 0 issue \"{issuer}\", and add accounturi once the first certificate is there"
            ),
        )),
        Account::Unreadable => Some(Row::warning(
            CHECK,
            format!(
                "{name} allows the account {wanted} of {issuer} alone; the account of this system cannot be read"
            ),
            "run the check as root, or as the user of the system",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    const ACCOUNT: &str = "https://ca.example/acct/7";

    fn authority(account: Account) -> Authority {
        Authority {
            directory: "https://ca.example/directory".to_owned(),
            root: None,
            method: "http-01",
            identities: vec!["ca.example".to_owned(), "old.example".to_owned()],
            account,
        }
    }

    fn level(values: &[&str], account: Account) -> (Level, String) {
        let caa = |value: &&str| {
            let (tag, value) = value.split_once(' ').unwrap();
            Record::Caa(tag.to_owned(), value.to_owned())
        };
        let records: Vec<Record> = values.iter().map(caa).collect();
        let row = judged("example.org", &issues(&records), &authority(account));
        (
            row.level,
            row.text + row.remedy.as_deref().unwrap_or_default(),
        )
    }

    fn own() -> Account {
        Account::Known(ACCOUNT.to_owned())
    }

    /// Only letsencrypt.org was known, whatever the directory of the settings.
    #[test]
    fn the_authority_of_the_settings_has_to_be_allowed() {
        for good in [
            &["issue ca.example"][..],
            &["issue other.example", "issue Old.Example ; unknown=1"],
            &["issuewild ;", "iodef mailto:x@example.org"],
            &["issue ;", "issue ca.example"],
        ] {
            assert_eq!(level(good, own()).0, Level::Ok, "{good:?}");
        }
        for wrong in [
            &["issue ;"][..],
            &["issue letsencrypt.org", "issuewild ca.example"],
        ] {
            let (level, text) = level(wrong, own());
            assert_eq!(level, Level::Critical, "{wrong:?}");
            assert!(text.contains("CAA 0 issue \"ca.example\""), "{text}");
        }
    }

    #[test]
    fn the_type_of_challenges_has_to_be_allowed() {
        let wrong = "issue ca.example; validationmethods=dns-01,tls-alpn-01";
        let (found, text) = level(&[wrong], own());
        assert_eq!(found, Level::Critical);
        assert!(
            text.contains("dns-01, tls-alpn-01") && text.contains("http-01"),
            "{text}"
        );
        let right = "issue ca.example; ValidationMethods = dns-01, http-01";
        assert_eq!(level(&[right], own()).0, Level::Ok);
        assert_eq!(level(&[wrong, right], own()).0, Level::Ok);
    }

    #[test]
    fn the_account_has_to_be_the_own() {
        let right = format!("issue ca.example; accounturi={ACCOUNT}");
        assert_eq!(level(&[&right], own()).0, Level::Ok);
        let other = Account::Known("https://ca.example/acct/8".to_owned());
        let (found, text) = level(&[&right], other);
        assert_eq!(found, Level::Critical);
        assert!(
            text.contains("accounturi=https://ca.example/acct/8"),
            "{text}"
        );
        assert_eq!(level(&[&right], Account::None).0, Level::Critical);
        assert_eq!(level(&[&right], Account::Unreadable).0, Level::Warning);
    }
}
