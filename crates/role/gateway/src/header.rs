//! The few header fields that the gateway itself looks at, read in place from the raw message, and all at once.

use vere_handoff::question::{Spf, SpfResults};
use vere_mime::{Field, addr_specs, fields};
use vere_smtp::address::ReversePath;
use vere_smtp::server::{Message, SpfIdentity, received_spf_header};

/// Longest Message-ID kept for tracing, in octets; RFC 5322 allows a line of 998.
const MESSAGE_ID_MAX: usize = 998;

/// Octets of a From field that is looked into: each address costs a look into the directory.
const FROM_OCTETS_MAX: usize = 8_192;

/// The relevant fields of a message's header. Of fields that may occur once, the first counts.
#[derive(Debug, Default)]
pub(super) struct Header<'a> {
    /// How many `Received` fields there are: so many servers it has passed (RFC 5321 section 6.3).
    pub(super) received: usize,
    /// How many `From` fields there are; one is allowed (RFC 5322 section 3.6).
    pub(super) from_count: usize,
    pub(super) has_date: bool,
    message_id: Option<&'a [u8]>,
    from: Option<&'a [u8]>,
    tls_required: Option<&'a [u8]>,
}

impl<'a> Header<'a> {
    /// Scans the header of a message once. An [`is_headless`] message has no fields.
    pub(super) fn of(message: &'a [u8]) -> Self {
        let mut header = Self::default();
        if !is_headless(message) {
            fields(message).for_each(|field| header.take(&field));
        }
        header
    }

    fn take(&mut self, field: &Field<'a>) {
        // The length selects the candidate names, so most fields cost no comparison.
        match field.name.len() {
            4 if field.is("From") => {
                self.from_count += 1;
                self.from.get_or_insert(field.value);
            }
            4 => self.has_date |= field.is("Date"),
            8 => self.received += usize::from(field.is("Received")),
            10 if field.is("Message-ID") => {
                self.message_id.get_or_insert(field.value);
            }
            12 if field.is("TLS-Required") => {
                self.tls_required.get_or_insert(field.value);
            }
            _ => {}
        }
    }

    pub(super) const fn has_message_id(&self) -> bool {
        self.message_id.is_some()
    }

    /// The value of the Message-ID field (RFC 5322 section 3.6.4), with its angle brackets; where the field is folded,
    /// the first line of it that has a value.
    pub(super) fn message_id(&self) -> Option<String> {
        let mut lines = self.message_id?.split(|octet| *octet == b'\n');
        let value =
            lines.find_map(|line| Some(line.trim_ascii()).filter(|line| !line.is_empty()))?;
        let text = std::str::from_utf8(value).ok()?;
        (text.len() <= MESSAGE_ID_MAX).then(|| text.to_owned())
    }

    /// Whether the sender would rather have the message sent in clear than not at all (RFC 8689 section 5).
    pub(super) fn is_tls_optional(&self) -> bool {
        let value = self.tls_required.unwrap_or_default();
        value.trim_ascii().eq_ignore_ascii_case(b"no")
    }

    /// The value of the first From field.
    pub(super) const fn author_field(&self) -> Option<&'a [u8]> {
        self.from
    }

    /// All mailboxes in the From field, which need not have the form of an address; `None` without such a field. A
    /// field of more than [`FROM_OCTETS_MAX`] octets gives no mailbox.
    pub(super) fn authors(&self) -> Option<Vec<String>> {
        self.from.map(|from| match from.len() {
            0..=FROM_OCTETS_MAX => addr_specs(from),
            _ => Vec::new(),
        })
    }

    /// The address in the From field, when there is exactly one address in exactly one field: of several fields, a
    /// reader may show another one than was looked at here.
    pub(super) fn author(&self) -> Option<String> {
        let mut found = self.authors().filter(|_| self.from_count == 1)?;
        match (found.pop(), found.is_empty()) {
            (Some(author), true) => Some(author),
            _ => None,
        }
    }
}

/// Whether the first line of a message begins with a blank. It would go on the last field of ours before it (RFC 5322
/// section 2.2.3): what it belongs to is no header, and an empty line goes before it.
pub(super) fn is_headless(message: &[u8]) -> bool {
    matches!(message, [b' ' | b'\t', ..])
}

/// Makes the fields `Received-SPF`, one for each identity (RFC 7208 section 9.1). A HELO name without a policy has none: most names have no policy.
pub(super) fn spf_fields(results: SpfResults, message: &Message, hostname: &str) -> Vec<u8> {
    let path = &message.reverse_path.reverse_path;
    let field = |identity, result: Spf| {
        received_spf_header(
            (identity, result.as_str()),
            &message.session,
            path,
            hostname,
        )
    };
    let identity = match path {
        ReversePath::Null => SpfIdentity::Helo,
        ReversePath::Address(_) => SpfIdentity::MailFrom,
    };
    let mut fields = field(identity, results.sender);
    if let Some(helo) = results.helo.filter(|helo| *helo != Spf::None) {
        fields.extend_from_slice(&field(SpfIdentity::Helo, helo));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_id_is_found_in_any_case_and_folded() {
        let id = |text: &str| Header::of(text.as_bytes()).message_id();
        assert_eq!(
            id("A: b\r\nMESSAGE-ID: <x@y>\r\n\r\nbody").as_deref(),
            Some("<x@y>")
        );
        assert_eq!(
            id("Message-Id:\r\n <x@y>\r\n\r\n").as_deref(),
            Some("<x@y>")
        );
        assert_eq!(
            id("Message-Id: <x@y>\r\n (z)\r\n\r\n").as_deref(),
            Some("<x@y>")
        );
        assert_eq!(id("A: b\r\n\r\nMessage-ID: <x@y>\r\n"), None);
        assert_eq!(id("\r\nMessage-ID: <x@y>\r\n"), None);
        assert_eq!(id("X-Message-ID: <x@y>\r\n\r\n"), None);
        assert_eq!(id("Message-ID:\r\n\r\n"), None);
        // What is on the next line is another field, and no value of this one.
        assert_eq!(id("Message-ID:\r\nSubject: x\r\n\r\n"), None);
        let long = |octets| "x".repeat(octets);
        assert_eq!(
            id(&format!("Message-ID: {}\r\n", long(998))),
            Some(long(998))
        );
        assert_eq!(id(&format!("Message-ID: {}\r\n", long(999))), None);
        assert_eq!(Header::of(b"Message-ID: \xff\r\n").message_id(), None);
    }

    #[test]
    fn fields_are_looked_for_in_the_header_only() {
        let header = Header::of(b"X: a\r\n\tdate: b\r\nfrom : c\r\n\r\nDate: e\r\n");
        assert!(!header.has_date && header.from_count == 1);
        let header = Header::of(b"Date: 1\nFrom: 2\n\nFrom: 3\n");
        assert!(header.has_date && header.from_count == 1);
        let header = Header::of(b"\n\nDate: 1\n");
        assert!(!header.has_date);
    }

    #[test]
    fn all_authors_of_a_field_of_usual_length_are_found() {
        let authors = |text: &str| Header::of(text.as_bytes()).authors();
        let found = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
        assert_eq!(authors("To: a@b\r\n\r\n"), None);
        assert_eq!(authors("From: Ann\r\n\r\n"), found(&["Ann"]));
        let several = "From: \"x@y\"\r\n <a@b>, (c@d) e@f,\r\n\tg: h@i, j@k;\r\n\r\n";
        assert_eq!(authors(several), found(&["a@b", "e@f", "h@i", "j@k"]));
        let long = |count: usize| format!("From: {}a@b\r\n\r\n", "a@b,".repeat(count));
        assert_eq!(authors(&long(2_000)).map(|all| all.len()), Some(2_001));
        assert_eq!(authors(&long(2_100)), Some(Vec::new()));
        assert_eq!(Header::of(long(2_100).as_bytes()).author(), None);
    }

    #[test]
    fn hops_are_counted() {
        let received = |text: &[u8]| Header::of(text).received;
        let header = b"Received: a\r\n\tReceived: folded\r\nrEcEiVeD : b\r\nReceivedX: c\r\nX: Received:\r\n\
            Received:\r\n\r\nReceived: body\r\n";
        assert_eq!(received(header), 3);
        assert_eq!(received(b""), 0);
        assert_eq!(received(b"Received: without end"), 1);
        assert_eq!(received(&b"Received: x\r\n".repeat(100_000)), 100_000);
    }

    /// All of it stands below the empty line when it goes on.
    #[test]
    fn what_goes_on_with_nothing_is_no_header() {
        for text in [
            " a\r\nDate: b\r\nFrom: c@d\r\n\r\n",
            "\tFrom: c@d\r\nMessage-ID: <x>\r\nReceived: y\r\nDate: b\r\n",
        ] {
            let header = Header::of(text.as_bytes());
            assert!(!header.has_date && !header.has_message_id(), "{text}");
            assert_eq!((header.received, header.from_count), (0, 0), "{text}");
        }
    }

    #[test]
    fn tls_is_optional_when_the_first_field_says_so() {
        let optional = |text: &str| Header::of(text.as_bytes()).is_tls_optional();
        assert!(optional("TLS-Required: No\r\n\r\n"));
        assert!(optional("tls-required:\r\n nO \r\n\r\n"));
        assert!(!optional("TLS-Required: Nobody\r\n\r\n"));
        assert!(!optional("TLS-Required: No\r\n way\r\n\r\n"));
        assert!(!optional("TLS-Required: Yes\r\nTLS-Required: No\r\n\r\n"));
        assert!(!optional("A: b\r\n\r\nTLS-Required: No\r\n"));
    }
}
