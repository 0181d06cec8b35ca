//! Messages and records from hostile domains: every evaluation ends, after a bounded number of questions, with the same results for a
//! message in pieces, and nothing passes that nobody signed.

use std::cell::Cell;
use std::net::IpAddr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use vere_auth::{
    Arc, Authentication, DmarcResult, Dns, Family, HEADER_OCTETS_MAX, Hashing, Message,
    QUESTIONS_MAX, SIGNATURES_MAX, Session, SpfResult, Unavailable, authenticate, foreign_fields,
};

/// The reverse-path, records by the first label of a name, an empty line, the message. The second seed is RFC 8463 appendix A.
pub(super) const SEEDS: &[&[u8]] = &[
    b"a@b.example\n_dmarc v=DMARC1; p=reject; sp=none; np=quarantine; t=y; psd=n; rua=mailto:a@b.example\n\n\
      From: a@b.example\r\nAuthentication-Results: (x) mx.example 1; none\r\n\r\nhi\r\n",
    b"a@b.example\n_dmarc v=DMARC1; p=reject; psd=y\n\
      brisbane v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n\n\
      DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;\r\n d=football.example.com; i=@football.example.com;\r\n \
      q=dns/txt; s=brisbane; t=1528637909; h=from : to :\r\n subject : date : message-id : from : subject : date;\r\n \
      bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;\r\n b=/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11Bus\r\n \
      Fa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==\r\nFrom: Joe SixPack <joe@football.example.com>\r\n\
      To: Suzie Q <suzie@shopping.example.net>\r\nSubject: Is dinner ready?\r\nDate: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)\r\n\
      Message-ID: <20030712040037.46341.5F8J@football.example.com>\r\n\r\n\
      Hi.\r\n\r\nWe lost the game.  Are you hungry yet?\r\n\r\nJoe.\r\n",
    b"\nsel p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkHlOQoBTzWRiGs5V6NpP3; t=y:s; h=sha256; s=email; n=x\nsel !\n\n\
      ARC-Seal: i=1; a=rsa-sha256; cv=none; d=a.example; s=sel; t=1; b=YQ==\r\n\
      ARC-Message-Signature: i=1; a=rsa-sha256; c=simple/relaxed; d=a.example; s=sel; h=from:from; l=1; x=2; bh=YQ==; b=YQ==\r\n\
      ARC-Authentication-Results: i=1; a.example; none\r\nFrom: g: a@b.example, c@d.example;\r\n\r\n",
];
/// The name of our service.
const SERVICE: &str = "mx.example";
const NOW: u64 = 1_700_000_000;

/// Records by the first label of a name.
struct Records<'a> {
    lines: &'a [&'a [u8]],
    questions: Cell<u32>,
}

impl Records<'_> {
    fn count(&self, name: &str) -> Result<(), Unavailable> {
        assert!((1..=253).contains(&name.len()) && name.is_ascii(), "{name}");
        self.questions.set(self.questions.get() + 1);
        // A record "!" is a name server that does not answer.
        match self.of(name).iter().any(|text| text == b"!") {
            true => Err(Unavailable),
            false => Ok(()),
        }
    }

    fn of(&self, name: &str) -> Vec<Vec<u8>> {
        let label = name.split('.').next().unwrap_or_default();
        let text = |line: &&[u8]| {
            Some(
                line.strip_prefix(label.as_bytes())?
                    .strip_prefix(b" ")?
                    .to_vec(),
            )
        };
        self.lines.iter().filter_map(text).collect()
    }
}

impl Dns for Records<'_> {
    async fn texts(&self, name: &str) -> Result<Vec<Vec<u8>>, Unavailable> {
        self.count(name)?;
        Ok(self.of(name))
    }

    async fn exists(&self, name: &str) -> Result<bool, Unavailable> {
        self.count(name)?;
        Ok(!self.of(name).is_empty())
    }

    async fn addresses(&self, name: &str, _: Family) -> Result<Vec<IpAddr>, Unavailable> {
        self.count(name)?;
        Ok(vec![[192, 0, 2, 9].into(); self.lines.len() % 3])
    }

    async fn names(&self, _: IpAddr) -> Result<Vec<String>, Unavailable> {
        self.count("names")?;
        let name = |line: &&[u8]| String::from_utf8_lossy(line).into_owned();
        Ok(self.lines.iter().map(name).collect())
    }
}

/// Authenticates the message whole and in pieces, and writes the field.
pub(super) fn messages(octets: &[u8]) {
    let end = octets.windows(2).position(|two| two == b"\n\n");
    let (head, text) = octets.split_at(end.unwrap_or(octets.len()));
    let text = text.get(2..).unwrap_or_default();
    let lines: Vec<_> = head.split(|octet| *octet == b'\n').collect();
    let path = String::from_utf8_lossy(lines.first().copied().unwrap_or_default()).into_owned();
    let session = Session {
        client: [192, 0, 2, 9].into(),
        helo: &path,
        reverse_path: &path,
        spf: Some(SpfResult::Fail),
        spf_helo: Some(SpfResult::None),
    };
    let whole = evaluate(&lines, &Message::of(text), session);
    let mut hashing = Hashing::default();
    for piece in text.chunks(1 + text.len() % 7) {
        hashing.take(piece);
    }
    assert_eq!(evaluate(&lines, &hashing.finish(), session), whole);
    nothing_unsigned_passes(text, &whole);
    check_field(&whole.field(SERVICE, session));
    check_foreign(text);
}

fn evaluate(lines: &[&[u8]], message: &Message, session: Session<'_>) -> Authentication {
    let records = Records {
        lines,
        questions: Cell::new(0),
    };
    let mut evaluation = pin!(authenticate(&records, message, session, NOW));
    for _ in 0..1_000 {
        let context = &mut Context::from_waker(Waker::noop());
        if let Poll::Ready(results) = evaluation.as_mut().poll(context) {
            assert!(
                records.questions.get() <= QUESTIONS_MAX,
                "{}",
                records.questions.get()
            );
            return results;
        }
    }
    panic!("an evaluation that waits for nothing");
}

fn nothing_unsigned_passes(text: &[u8], results: &Authentication) {
    assert!(results.dkim.len() <= SIGNATURES_MAX);
    let header = text
        .get(..text.len().min(HEADER_OCTETS_MAX))
        .unwrap_or(text);
    let has = |name: &str| {
        let name = name.as_bytes();
        header
            .windows(name.len())
            .any(|octets| octets.eq_ignore_ascii_case(name))
    };
    let passing = results.dkim.iter().filter(|signed| signed.fault.is_none());
    let domains: Vec<_> = passing
        .filter_map(|signed| signed.domain.as_deref())
        .collect();
    assert!(domains.is_empty() || has("dkim-signature"));
    assert!(!matches!(results.arc, Arc::Pass { .. }) || has("arc-seal"));
    // SPF fails: a signature of a domain with the same end passes, or nothing does.
    if results.dmarc.result == DmarcResult::Pass {
        let author = results.dmarc.domain.as_deref().unwrap_or_default();
        let end = |name: &str| name.rsplit('.').next().map(str::to_owned);
        assert!(
            domains.iter().any(|domain| end(domain) == end(author)),
            "{author} {domains:?}"
        );
    }
}

fn check_field(field: &[u8]) {
    assert!(field.is_ascii() && field.len() <= 16 * 1024);
    let text = String::from_utf8_lossy(field);
    let lines = text.strip_suffix("\r\n").unwrap_or("\r").split("\r\n");
    for (number, line) in lines.enumerate() {
        assert!(
            line.len() <= 998 && !line.contains(['\r', '\n', '\0']),
            "{line:?}"
        );
        assert!(
            line.starts_with('\t') == (number > 0) && !line.trim().is_empty(),
            "{line:?}"
        );
    }
    assert_eq!(
        foreign_fields(field, SERVICE).first(),
        Some(&(0..field.len()))
    );
}

fn check_foreign(text: &[u8]) {
    let mut rest = text.to_vec();
    for range in foreign_fields(text, SERVICE).into_iter().rev() {
        rest.drain(range);
    }
    // A header that begins with a blank has another beginning once its first field is gone.
    if !matches!(rest.first(), Some(b' ' | b'\t')) {
        assert!(foreign_fields(&rest, SERVICE).is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Most inputs are changes to a message whose signature is valid.
    #[test]
    fn seeds_get_far() {
        let (head, text) = SEEDS[1].split_at(
            SEEDS[1]
                .windows(2)
                .position(|two| two == b"\n\n")
                .unwrap_or(0),
        );
        let lines: Vec<_> = head.split(|octet| *octet == b'\n').collect();
        let session = Session {
            client: [192, 0, 2, 9].into(),
            helo: "",
            reverse_path: "",
            spf: None,
            spf_helo: None,
        };
        let results = evaluate(&lines, &Message::of(&text[2..]), session);
        assert!(results.dkim.iter().all(|signed| signed.fault.is_none()));
        assert_eq!(results.dmarc.result, DmarcResult::Pass);
    }
}
