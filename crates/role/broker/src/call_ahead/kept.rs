//! Results of calls that are kept.

use std::time::Duration;

use tokio::time::Instant;

use super::super::recent::Recent;
use super::recipient::Recipient;

/// Results in each of the two halves.
const RESULTS_MAX: usize = 8_192;
/// Longest address with a result (RFC 5321 section 4.5.3.1.3, without the brackets). The results take 6 MiB at most.
const ADDRESS_OCTETS_MAX: usize = 254;
/// Life of a result without a definite answer.
const UNAVAILABLE_LIFE: Duration = Duration::from_secs(30);
/// Life of the result of a probe: the domain accepts every recipient, or does not.
const DOMAIN_LIFE: Duration = Duration::from_secs(60 * 60);

/// The result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The next hop accepts the recipient.
    Exists,
    /// The next hop refuses the recipient for good.
    Unknown,
    /// The next hop cannot be asked, or defers the recipient.
    Unavailable,
}

/// Results by recipient, and results of probes by domain.
#[derive(Debug)]
pub(super) struct Kept(Recent<Box<str>, (Instant, Verdict)>);

impl Default for Kept {
    fn default() -> Self {
        Self(Recent::new(RESULTS_MAX))
    }
}

impl Kept {
    /// Returns what is known of a recipient.
    pub(super) fn find(&mut self, recipient: &Recipient, now: Instant) -> Option<Verdict> {
        let own = self.valid(recipient.key(), now);
        own.or_else(|| {
            let domain = self.valid(recipient.domain_key(), now);
            domain.filter(|verdict| *verdict == Verdict::Exists)
        })
    }

    /// Whether the domain has no result of a probe: a random recipient, which cannot exist.
    pub(super) fn needs_probe(&mut self, recipient: &Recipient, now: Instant) -> bool {
        self.valid(recipient.domain_key(), now).is_none()
    }

    /// Keeps the result of a call.
    pub(super) fn keep(
        &mut self,
        recipient: &Recipient,
        verdict: Verdict,
        now: Instant,
        terms: &vere_settings::CallAhead,
    ) {
        let life = match verdict {
            Verdict::Exists => terms.keep_accepted.duration(),
            Verdict::Unknown => terms.keep_refused.duration(),
            Verdict::Unavailable => UNAVAILABLE_LIFE,
        };
        self.put(recipient.key(), verdict, now + life);
    }

    /// Keeps the result of a probe for the domain of a recipient.
    pub(super) fn keep_probe(&mut self, recipient: &Recipient, verdict: Verdict, now: Instant) {
        let life = match verdict {
            Verdict::Exists | Verdict::Unknown => DOMAIN_LIFE,
            Verdict::Unavailable => UNAVAILABLE_LIFE,
        };
        self.put(recipient.domain_key(), verdict, now + life);
    }

    fn valid(&mut self, key: &str, now: Instant) -> Option<Verdict> {
        let (until, verdict) = self.0.find(key)?;
        (now < until).then_some(verdict)
    }

    fn put(&mut self, key: &str, verdict: Verdict, until: Instant) {
        if key.len() <= ADDRESS_OCTETS_MAX {
            self.0.keep(key.into(), (until, verdict));
        }
    }
}

#[cfg(test)]
mod tests {
    use vere_settings::CallAhead;
    use vere_smtp::address::AddrSpec;
    use vere_units::Span;

    use super::*;

    const TERMS: CallAhead = CallAhead {
        defers_unavailable: true,
        timeout: Span::from_millis(1_000),
        keep_accepted: Span::from_millis(90_000),
        keep_refused: Span::from_millis(60_000),
    };

    fn recipient(text: &str) -> Recipient {
        Recipient::new(AddrSpec::parse(text).unwrap())
    }

    #[test]
    fn each_kind_of_result_has_its_time() {
        let now = Instant::now();
        for (verdict, seconds) in [
            (Verdict::Exists, 90),
            (Verdict::Unknown, 60),
            (Verdict::Unavailable, 30),
        ] {
            let mut kept = Kept::default();
            let ann = recipient("ann@example.com");
            kept.keep(&ann, verdict, now, &TERMS);
            let last = now + Duration::from_secs(seconds - 1);
            assert_eq!(
                kept.find(&recipient("ann@Example.COM"), last),
                Some(verdict)
            );
            assert_eq!(kept.find(&recipient("Ann@example.com"), now), None);
            let over = now + Duration::from_secs(seconds);
            assert_eq!(kept.find(&ann, over), None);
        }
    }

    #[test]
    fn a_domain_that_accepts_nobody_in_particular_accepts_everybody() {
        let now = Instant::now();
        let mut kept = Kept::default();
        let (ann, bob) = (recipient("ann@example.com"), recipient("bob@example.com"));
        assert!(kept.needs_probe(&ann, now));
        kept.keep_probe(&ann, Verdict::Unknown, now);
        assert!(!kept.needs_probe(&bob, now));
        assert_eq!(kept.find(&bob, now), None);
        kept.keep_probe(&ann, Verdict::Exists, now);
        assert_eq!(kept.find(&bob, now), Some(Verdict::Exists));
        kept.keep(&bob, Verdict::Unknown, now, &TERMS);
        assert_eq!(kept.find(&bob, now), Some(Verdict::Unknown));
        let last = now + Duration::from_secs(3_599);
        assert!(!kept.needs_probe(&ann, last));
        let over = now + Duration::from_secs(3_600);
        assert!(kept.needs_probe(&ann, over));
        assert_eq!(kept.find(&recipient("eve@other.example"), now), None);
    }

    #[test]
    fn no_address_has_the_key_of_its_domain() {
        for text in ["a@example.com", "\"@\"@example.com", "a@[192.0.2.1]"] {
            let one = recipient(text);
            assert_ne!(one.key(), one.domain_key());
            assert!(one.domain_key().starts_with('@'), "{one:?}");
            assert!(one.key().ends_with(one.domain_key()), "{one:?}");
        }
    }
}
