//! Where reports go: the tag `rua` of DMARC records (RFC 9989 section 4.7) and of TLSRPT records (RFC 8460 section 3), and the proof
//! that a destination outside the domain wants them (RFC 9990 section 4).

use crate::bounds::{DESTINATIONS_MAX, RECORD_OCTETS_MAX};
use crate::mail::is_address;
use crate::text::{domain, is_domain};

/// A destination of reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// An address.
    Mail {
        /// The address, of plain form.
        address: String,
        /// The most octets of a message that the destination takes.
        octets_max: Option<u64>,
    },
    /// A web server, for TLS reports.
    Https {
        /// The URI, in ASCII without blanks.
        uri: String,
    },
}

impl Destination {
    /// The host part: the domain of the address, or the name of the web server.
    #[must_use]
    pub fn host(&self) -> String {
        match self {
            Self::Mail { address, .. } => {
                let host = address.rsplit_once('@').map_or("", |(_, host)| host);
                domain(host)
            }
            Self::Https { uri } => {
                let rest = uri.get("https://".len()..).unwrap_or_default();
                let host = rest.split(['/', '?', '#', ':']).next();
                domain(host.unwrap_or_default())
            }
        }
    }

    /// Whether a message of this length may be sent.
    #[must_use]
    pub fn takes(&self, octets: u64) -> bool {
        match self {
            Self::Mail { octets_max, .. } => octets_max.is_none_or(|max| octets <= max),
            Self::Https { .. } => true,
        }
    }
}

/// The destinations of a DMARC record: `mailto` alone, at most [`DESTINATIONS_MAX`]. Those of another form are left out.
#[must_use]
pub fn dmarc_destinations(record: &[u8]) -> Vec<Destination> {
    destinations(record, "DMARC1", false)
}

/// The destinations of a domain's TLSRPT record: `mailto` and `https`, at most [`DESTINATIONS_MAX`]. Several records count as none, and
/// other records do not count (RFC 8460 section 3).
#[must_use]
pub fn tls_destinations(records: &[Vec<u8>]) -> Vec<Destination> {
    let mut all = records.iter().filter(|record| is_tls_record(record));
    match (all.next(), all.next()) {
        (Some(record), None) => destinations(record, "TLSRPTv1", true),
        _ => Vec::new(),
    }
}

/// ```text
/// tlsrpt-record      = tlsrpt-version 1*(field-delim tlsrpt-field) [field-delim]
/// field-delim        = *WSP ";" *WSP
/// tlsrpt-version     = %s"v=TLSRPTv1"
/// ```
fn is_tls_record(record: &[u8]) -> bool {
    let Some(mut behind) = record.strip_prefix(b"v=TLSRPTv1") else {
        return false;
    };
    while let [b' ' | b'\t', rest @ ..] = behind {
        behind = rest;
    }
    behind.first() == Some(&b';')
}

fn destinations(record: &[u8], version: &str, web: bool) -> Vec<Destination> {
    let Some(value) = value(record, version) else {
        return Vec::new();
    };
    let all = value
        .split(',')
        .filter_map(|uri| destination(uri.trim(), web));
    all.take(DESTINATIONS_MAX).collect()
}

/// The value of the tag `rua` of a record with the version first.
fn value<'a>(record: &'a [u8], version: &str) -> Option<&'a str> {
    let record = std::str::from_utf8(record).ok()?;
    let record = Some(record).filter(|record| record.len() <= RECORD_OCTETS_MAX)?;
    let mut tags = record.split(';').map(|tag| {
        let (name, value) = tag.split_once('=').unwrap_or((tag, ""));
        (name.trim(), value.trim())
    });
    let first = tags.next()?;
    if !(first.0.eq_ignore_ascii_case("v") && first.1 == version) {
        return None;
    }
    let found = tags.find(|(name, _)| name.eq_ignore_ascii_case("rua"));
    Some(found.map_or("", |(_, value)| value))
}

fn destination(uri: &str, web: bool) -> Option<Destination> {
    let (scheme, rest) = uri.split_once(':')?;
    if scheme.eq_ignore_ascii_case("mailto") {
        let (address, size) = rest
            .split_once('!')
            .map_or((rest, None), |(address, size)| (address, Some(size)));
        // Fields of a mailto URI, such as a subject, are not for reports.
        let address = address.split('?').next().unwrap_or_default();
        let address = decoded(address)?;
        let octets_max = match size {
            Some(size) => Some(octets(size)?),
            None => None,
        };
        return is_address(&address).then_some(Destination::Mail {
            address,
            octets_max,
        });
    }
    let is_plain = uri.bytes().all(|octet| octet.is_ascii_graphic());
    if !(web && scheme.eq_ignore_ascii_case("https") && is_plain) {
        return None;
    }
    let uri = format!("https:{rest}");
    let destination = Destination::Https { uri };
    (rest.starts_with("//") && is_domain(&destination.host())).then_some(destination)
}

/// A size: digits, and `k`, `m`, `g` or `t` for powers of 1,024 (RFC 7489 section 6.2).
fn octets(text: &str) -> Option<u64> {
    let text = text.trim();
    let unit = text.chars().next_back()?.to_ascii_lowercase();
    let shift = match unit {
        'k' => 10,
        'm' => 20,
        'g' => 30,
        't' => 40,
        _ => 0,
    };
    let digits = if shift == 0 {
        text
    } else {
        text.get(..text.len().checked_sub(1)?)?
    };
    let number: u64 = digits.parse().ok()?;
    number.checked_mul(1_u64.checked_shl(shift)?)
}

/// A text without its percent escapes.
fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'%' {
            out.push(*first);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        out.push(u8::from_str_radix(digits, 16).ok()?);
        rest = behind;
    }
    String::from_utf8(out).ok()
}

/// The name whose TXT record proves that a host outside the domain wants the domain's reports; `None` where the name is too long,
/// so that no proof is possible.
#[must_use]
pub fn confirmation_name(policy_domain: &str, host: &str) -> Option<String> {
    let name = format!("{}._report._dmarc.{}", domain(policy_domain), domain(host));
    is_domain(&name).then_some(name)
}

/// The destination after the records at [`confirmation_name`]: the same one, or the one that they put in its place, which must be at the
/// same host. `None` without a proof.
#[must_use]
pub fn confirmed(destination: &Destination, records: &[Vec<u8>]) -> Option<Destination> {
    let host = destination.host();
    let mut proven = false;
    for record in records {
        let Some(value) = value(record, "DMARC1") else {
            continue;
        };
        proven = true;
        if value.is_empty() {
            continue;
        }
        let other = dmarc_destinations(record).into_iter().next();
        return other.filter(|other| other.host() == host);
    }
    proven.then(|| destination.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail(address: &str, octets_max: Option<u64>) -> Destination {
        Destination::Mail {
            address: address.to_owned(),
            octets_max,
        }
    }

    #[test]
    fn destinations_of_records() {
        for (record, wanted) in [
            (
                "v=DMARC1; p=none; rua=mailto:a@b.example",
                vec![mail("a@b.example", None)],
            ),
            (
                "v=DMARC1;rua = mailto:a@b.example!10m , MAILTO:c%2Bd@e.example!5k?subject=x,mailto:x@y.example!1;",
                vec![
                    mail("a@b.example", Some(10 << 20)),
                    mail("x@y.example", Some(1)),
                ],
            ),
            (
                "v=DMARC1; rua=mailto:c%2Bd@e.example",
                vec![mail("c+d@e.example", None)],
            ),
            (
                "v=DMARC1; rua=https://a.example/x,mailto:,mailto:a b@c.example,mailto:a%0d%0ax@b.example,x",
                vec![],
            ),
            (
                "v=DMARC1; rua=mailto:a@b.example!99999999999t,mailto:a@b.example!-1",
                vec![],
            ),
            ("p=none; v=DMARC1; rua=mailto:a@b.example", vec![]),
            ("v=DMARC2; rua=mailto:a@b.example", vec![]),
            ("v=DMARC1; p=none", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(dmarc_destinations(record.as_bytes()), wanted, "{record}");
        }
        let many = format!("v=DMARC1; rua={}", vec!["mailto:a@b.example"; 20].join(","));
        assert_eq!(dmarc_destinations(many.as_bytes()).len(), DESTINATIONS_MAX);
        assert_eq!(
            dmarc_destinations(b"v=DMARC1; rua=mailto:\xff@b.example"),
            []
        );
        let web = |uri: &str| Destination::Https {
            uri: uri.to_owned(),
        };
        for (record, wanted) in [
            (
                "v=TLSRPTv1; rua=https://reports.example/v1?x=1",
                vec![web("https://reports.example/v1?x=1")],
            ),
            (
                "v=TLSRPTv1;rua=HTTPS://a.example:8443,http://b.example,https:c.example,https:///x,https://a@b/",
                vec![web("https://a.example:8443")],
            ),
            (
                "v=TLSRPTv1;rua=mailto:a@b.example",
                vec![mail("a@b.example", None)],
            ),
        ] {
            assert_eq!(tls(&[record]), wanted, "{record}");
        }
    }

    fn tls(records: &[&str]) -> Vec<Destination> {
        let octets = |record: &&str| record.as_bytes().to_vec();
        tls_destinations(&records.iter().map(octets).collect::<Vec<_>>())
    }

    /// RFC 8460 section 3: records without the version at their begin are discarded, and a single record must be left.
    #[test]
    fn a_single_record_counts() {
        let (one, other) = (
            "v=TLSRPTv1; rua=mailto:a@b.example",
            "v=TLSRPTv1;rua=mailto:c@d.example",
        );
        let found = vec![mail("a@b.example", None)];
        assert_eq!(tls(&[one]), found);
        assert_eq!(
            tls(&["v=spf1 -all", one, "v=TLSRPTv1", "v=TLSRPTv12;"]),
            found
        );
        assert_eq!(tls(&["v=TLSRPTv1 \t; rua=mailto:a@b.example"]), found);
        assert_eq!(tls(&[one, other]), []);
        assert_eq!(tls(&[]), []);
        for wrong in [
            "v=tlsrptv1; rua=mailto:a@b.example",
            "v = TLSRPTv1; rua=mailto:a@b.example",
            " v=TLSRPTv1; rua=mailto:a@b.example",
            "v=TLSRPTv1 rua=mailto:a@b.example",
            "v=TLSRPTv1; rua=ftp://b.example/",
            "v=TLSRPTv1; ruf=mailto:a@b.example",
        ] {
            assert_eq!(tls(&[wrong]), [], "{wrong}");
        }
    }

    #[test]
    fn sizes_are_obeyed() {
        let limited = mail("a@b.example", Some(100));
        assert!(limited.takes(100) && !limited.takes(101));
        assert!(mail("a@b.example", None).takes(u64::MAX));
    }

    #[test]
    fn destinations_outside_the_domain_need_a_proof() {
        assert_eq!(
            confirmation_name("Blue.example.com.", "red.example.net").as_deref(),
            Some("blue.example.com._report._dmarc.red.example.net")
        );
        assert_eq!(
            confirmation_name(&"a.".repeat(120), "red.example.net"),
            None
        );
        let one = mail("reports@red.example.net", None);
        let with = |records: &[&str]| {
            let records: Vec<Vec<u8>> = records
                .iter()
                .map(|record| record.as_bytes().to_vec())
                .collect();
            confirmed(&one, &records)
        };
        assert_eq!(with(&[]), None);
        assert_eq!(with(&["v=spf1 -all", "hello"]), None);
        assert_eq!(with(&["x", "v=DMARC1"]), Some(one.clone()));
        assert_eq!(with(&["v=DMARC1;"]), Some(one.clone()));
        // Another address at the same host counts; one at another host makes no report at all.
        assert_eq!(
            with(&["v=DMARC1; rua=mailto:x@red.example.net"]),
            Some(mail("x@red.example.net", None))
        );
        assert_eq!(with(&["v=DMARC1; rua=mailto:x@victim.example"]), None);
        assert_eq!(with(&["v=DMARC1; rua=nonsense"]), None);
    }
}
