//! What is known about providers: defaults of an account's settings, by the name of the server.

/// Defaults for the accounts of a provider. The figures are from the provider's pages and issue threads as of 2026, and
/// change without notice: settings override each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// The provider.
    pub name: &'static str,
    /// Connections at the same time.
    pub connections_max: usize,
    /// Octets to the account in 24 hours; no limit where none is published.
    pub upload_per_day: Option<u64>,
    /// Octets from the account in 24 hours.
    pub download_per_day: Option<u64>,
}

/// A megabyte of providers' pages.
const MB: u64 = 1_000_000;

/// 15 connections, 2,500 MB down and 500 MB up a day: a part is left to the user's mail programs.
const GMAIL: Profile = Profile {
    name: "Gmail",
    connections_max: 6,
    upload_per_day: Some(400 * MB),
    download_per_day: Some(2_000 * MB),
};

/// Exchange Online and Outlook.com: throttled by load; the test mail at `init` finds that base64 is needed.
const EXCHANGE: Profile = Profile {
    name: "Exchange",
    connections_max: 4,
    upload_per_day: None,
    download_per_day: None,
};

/// Yahoo and AOL: a limit of messages a command (RFC 9738), no published figures.
const YAHOO: Profile = Profile {
    name: "Yahoo",
    connections_max: 3,
    upload_per_day: None,
    download_per_day: None,
};

/// Fastmail, on Cyrus.
const FASTMAIL: Profile = Profile {
    name: "Fastmail",
    connections_max: 4,
    upload_per_day: None,
    download_per_day: None,
};

/// Any other server.
const OTHER: Profile = Profile {
    name: "other",
    connections_max: 4,
    upload_per_day: None,
    download_per_day: None,
};

/// Domains of servers.
const DOMAINS: [(&str, &Profile); 10] = [
    ("gmail.com", &GMAIL),
    ("googlemail.com", &GMAIL),
    ("google.com", &GMAIL),
    ("office365.com", &EXCHANGE),
    ("office.com", &EXCHANGE),
    ("outlook.com", &EXCHANGE),
    ("yahoo.com", &YAHOO),
    ("aol.com", &YAHOO),
    ("fastmail.com", &FASTMAIL),
    ("messagingengine.com", &FASTMAIL),
];

impl Profile {
    /// The profile of a server.
    #[must_use]
    pub fn of(host: &str) -> &'static Self {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let within = |domain: &str| {
            let rest = host.strip_suffix(domain);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let found = DOMAINS.iter().find(|(domain, _)| within(domain));
        found.map_or(&OTHER, |(_, profile)| profile)
    }

    /// Whether anything is known.
    #[must_use]
    pub fn is_known(&self) -> bool {
        *self != OTHER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_profiles() {
        for (host, name) in [
            ("imap.gmail.com", "Gmail"),
            ("IMAP.Gmail.com.", "Gmail"),
            ("outlook.office365.com", "Exchange"),
            ("imap.mail.yahoo.com", "Yahoo"),
            ("imap.fastmail.com", "Fastmail"),
            ("mail.example.org", "other"),
            // Not of Google.
            ("notgmail.com", "other"),
            ("gmail.com.example.org", "other"),
        ] {
            assert_eq!(Profile::of(host).name, name, "{host}");
        }
        assert!(!Profile::of("127.0.0.1").is_known());
    }
}
