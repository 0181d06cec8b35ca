//! What to do about a row, in a sentence.

use super::rows::{DomainRow, Names, SourceRow, TlsDomainRow, TlsFailureRow};
use crate::tls::TlsFailureKind;

impl DomainRow {
    /// What to do about the domain as a whole.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        let domain = &self.domain;
        match (self.failed, self.policy) {
            (0, "none") if self.messages > 0 => Some(format!(
                "all mail of {domain} is aligned; p=quarantine or p=reject would stop forged mail (RFC 9989)"
            )),
            (0, _) => None,
            (_, "none") => Some("p=none: receivers accept mail that fails; decide about the sources below before p=quarantine".to_owned()),
            _ => None,
        }
    }
}

impl SourceRow {
    /// What to do about the source; `None` where nothing failed.
    #[must_use]
    pub fn advice(&self, domain: &DomainRow) -> Option<String> {
        if self.failed == 0 {
            return None;
        }
        let (source, domain) = (self.source, domain.domain.as_str());
        let from = match self.header_from.names.as_slice() {
            [one] => one.as_str(),
            _ => domain,
        };
        let count = counted(self.failed, "message");
        let failed = format!("{source} sends as {from} without alignment: {count}");
        if self.forwarded >= self.failed {
            return Some(format!(
                "{failed}; receivers take it for a mailing list or forwarder, and nothing is to be done"
            ));
        }
        if self.dkim_aligned > 0 || self.spf_aligned > 0 {
            let part = match self.broken_signatures {
                0 => "some of its mail is not signed: sign all of it, or add it to SPF",
                _ => {
                    "some signatures are not valid: look for a program that changes signed mail, and compare key and DNS \
                     (vere dkim)"
                }
            };
            return Some(format!("{failed}; {part}"));
        }
        let action = if !self.authenticated_as.names.is_empty() {
            format!(
                "it is authenticated as {}: let it sign as {from}, or use a reverse-path in {from}; if you do not know it, \
                 it forges your domain",
                listed(&self.authenticated_as)
            )
        } else if self.broken_signatures > 0 {
            format!(
                "its signatures are not valid: compare its key with the DNS of {from}, or add it to SPF"
            )
        } else if self.spf_errors > 0 {
            format!("the SPF record of {from} has an error: correct it, and sign the mail")
        } else {
            "sign its mail or add it to SPF; if you do not know it, it forges your domain"
                .to_owned()
        };
        Some(format!("{failed}; {action}"))
    }
}

impl TlsFailureRow {
    /// What to do about the failures.
    #[must_use]
    pub fn advice(&self, domain: &TlsDomainRow) -> String {
        use TlsFailureKind as Kind;
        let domain = domain.domain.as_str();
        let mx = self.mx.as_deref().unwrap_or(domain);
        let count = counted(self.sessions, "session");
        let action = match &self.kind {
            Kind::StartTlsNotSupported => format!(
                "{mx} offers no STARTTLS: turn it on, and look for a firewall that removes it"
            ),
            Kind::CertificateHostMismatch => {
                format!("the certificate of {mx} has another name: get one for {mx}")
            }
            Kind::CertificateExpired => format!("the certificate of {mx} has expired: renew it"),
            Kind::CertificateNotTrusted => {
                format!(
                    "the certificate of {mx} is of no trusted CA: use one of a public CA, with its intermediate certificates"
                )
            }
            Kind::ValidationFailure => format!(
                "TLS with {mx} failed: try vere dial {domain}, and compare versions and ciphers"
            ),
            Kind::TlsaInvalid => format!(
                "the TLSA records of {mx} do not match its certificate: publish the new ones before a change of the key"
            ),
            Kind::DnssecInvalid => {
                format!("DNSSEC of {mx} is not valid: repair the zone, its keys and DS records")
            }
            Kind::DaneRequired => {
                format!("the sender demands DANE, and {mx} has no TLSA records: publish them")
            }
            Kind::StsPolicyFetchError => {
                format!(
                    "the policy cannot be fetched: serve https://mta-sts.{domain}/.well-known/mta-sts.txt"
                )
            }
            Kind::StsPolicyInvalid => {
                format!(
                    "the MTA-STS policy of {domain} is not valid: correct it, and name each MX host in it"
                )
            }
            Kind::StsWebpkiInvalid => {
                format!("the certificate of mta-sts.{domain} is not valid: renew it")
            }
            Kind::Other(word) => format!(
                "the sender names \"{word}\": ask {}",
                listed(&self.reporters)
            ),
        };
        format!("{count}: {action}")
    }
}

/// The names of a row, in a line.
fn listed(names: &Names) -> String {
    let more = if names.more { " and others" } else { "" };
    format!("{}{more}", names.names.join(", "))
}

/// A number with its noun: `1 message`, `1,204 messages`.
fn counted(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(number))
}

/// A number with commas: `1,204`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && digits.len().saturating_sub(at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
