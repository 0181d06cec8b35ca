//! What the front and the workers of port 25 have in common: the front decides about a client's first recipient, and a
//! worker about the transactions that follow, by the same rules of access, the same treatment of SPF, and in the same words.

use std::borrow::Cow;
use std::net::IpAddr;

use vere_handoff::question::{Spf as Told, SpfResults};
use vere_screen::{
    Access, Decision, ListPolicy, Network, Reason, Rule, Spf, SpfPolicy, Subject, Treatment,
    WhenUnavailable, access,
};
use vere_settings::{Front, IpNetwork, ListTreatment, Networks, Settings};
use vere_smtp::refusal::Refusal;

/// Returns the rules of access in the order in which they count: networks that are allowed, networks that are refused,
/// networks that may relay, names in HELO, senders. A network that is allowed stands first, so that no name or sender of
/// its clients is refused.
#[must_use]
pub fn rules(settings: &Settings, front: &Front) -> Vec<Rule> {
    let names = |names: &[String], subject: fn(String) -> Subject, access| {
        let rule = |name: &String| Rule {
            subject: subject(name.clone()),
            access,
        };
        names.iter().map(rule).collect::<Vec<_>>()
    };
    [
        networks(&front.allowed_networks, Access::Allow),
        networks(&front.refused_networks, Access::Refuse),
        networks(&settings.relay, Access::Allow),
        names(&front.refused_helo, Subject::Helo, Access::Refuse),
        // A sender is easily forged: an exception from the refused senders passes all other questions.
        names(&front.allowed_senders, Subject::Sender, Access::Ordinary),
        names(&front.refused_senders, Subject::Sender, Access::Refuse),
    ]
    .concat()
}

fn networks(networks: &Networks, access: Access) -> Vec<Rule> {
    let rule = |network: &IpNetwork| {
        let network = Network::new(network.address(), network.prefix())?;
        let subject = Subject::Network(network);
        Some(Rule { subject, access })
    };
    networks.iter().filter_map(rule).collect()
}

/// Returns the treatment of results of SPF; `None` where none is asked for.
#[must_use]
pub fn spf(front: &Front) -> Option<SpfPolicy> {
    let treatment = front.spf?;
    let if_so = |is_so, treatment| match is_so {
        true => treatment,
        false => Treatment::Note,
    };
    Some(SpfPolicy {
        fail: Treatment::Refuse,
        softfail: if_so(treatment.refuses_softfail, Treatment::Refuse),
        temperror: if_so(treatment.defers_unavailable, Treatment::Defer),
        permerror: if_so(treatment.refuses_permerror, Treatment::Refuse),
    })
}

/// Returns the treatment of entries on lists of clients; `None` where no list is asked.
#[must_use]
pub fn lists(front: &Front) -> Option<ListPolicy> {
    let lists = &front.lists;
    (!lists.lists.is_empty()).then_some(ListPolicy {
        threshold: lists.threshold,
        allow_threshold: lists.allow_threshold,
        listed: match lists.treatment {
            ListTreatment::Refuse => Treatment::Refuse,
            ListTreatment::Defer => Treatment::Defer,
            ListTreatment::Note => Treatment::Note,
        },
        when_unavailable: match lists.defers_unavailable {
            true => WhenUnavailable::Defer,
            false => WhenUnavailable::Accept,
        },
    })
}

/// Returns the refusal of a listed client: the list, the address, and what the list says about the address, if it says anything.
#[must_use]
pub fn listed(decision: Decision, client: IpAddr, list: &str, text: &str) -> Refusal {
    let behind = match text.is_empty() {
        true => String::new(),
        false => format!("; {text}"),
    };
    let client = client.to_canonical();
    Refusal::Site {
        permanent: !matches!(decision, Decision::Defer(_)),
        text: format!("client [{client}] is listed by {list}{behind}"),
    }
}

/// Returns a sender with its domain in A-labels, in which the rules have domains. A domain that has no such form stays as it is.
#[must_use]
pub fn ascii_sender(sender: &str) -> Cow<'_, str> {
    let Some((local, domain)) = sender
        .rsplit_once('@')
        .filter(|(_, domain)| !domain.is_ascii())
    else {
        return Cow::Borrowed(sender);
    };
    match idna::domain_to_ascii(domain) {
        Ok(domain) => Cow::Owned(format!("{local}@{domain}")),
        Err(_) => Cow::Borrowed(sender),
    }
}

/// Returns the result as the engine has it.
#[must_use]
pub const fn result(told: Told) -> Spf {
    match told {
        Told::None => Spf::None,
        Told::Neutral => Spf::Neutral,
        Told::Pass => Spf::Pass,
        Told::Fail => Spf::Fail,
        Told::SoftFail => Spf::SoftFail,
        Told::TempError => Spf::TempError,
        Told::PermError => Spf::PermError,
    }
}

/// Returns the result as the broker, the workers and the gateway have it.
#[must_use]
pub const fn told(result: Spf) -> Told {
    match result {
        Spf::None => Told::None,
        Spf::Neutral => Told::Neutral,
        Spf::Pass => Told::Pass,
        Spf::Fail => Told::Fail,
        Spf::SoftFail => Told::SoftFail,
        Spf::TempError => Told::TempError,
        Spf::PermError => Told::PermError,
    }
}

/// Returns the refusal of a decision; absent for an acceptance.
#[must_use]
pub fn refusal(decision: Decision) -> Option<Refusal> {
    let reason = decision.reason()?;
    Some(match (decision, reason) {
        (_, Reason::Access | Reason::EarlyTalk) => Refusal::ClientRefused,
        (_, Reason::RecipientUnknown) => Refusal::MailboxUnknown,
        (_, Reason::RecipientRefused) => Refusal::RelayDenied,
        (_, Reason::RecipientDeferred) => Refusal::LocalError,
        (_, Reason::Greylisted) => Refusal::TryLater,
        (_, Reason::ListsUnavailable) => Refusal::LookupFailed,
        (_, Reason::Listed) => Refusal::Site {
            permanent: !matches!(decision, Decision::Defer(_)),
            text: "client is on a block list".to_owned(),
        },
        (Decision::Refuse(_), Reason::SpfFail) => Refusal::SpfFailed,
        (Decision::Refuse(_), Reason::SpfError) => Refusal::SpfMalformed,
        (Decision::Defer(_), Reason::SpfError) => Refusal::SpfUnavailable,
        (_, Reason::Refusals) => Refusal::RateLimited,
        _ => Refusal::Busy,
    })
}

/// The rules for transactions of a client that is trusted already.
#[derive(Debug)]
pub struct Screening {
    rules: Vec<Rule>,
    spf: Option<SpfPolicy>,
}

/// The session and the sender of a transaction.
#[derive(Debug, Clone, Copy)]
pub struct Transaction<'a> {
    /// The client's address.
    pub client: IpAddr,
    /// The name in HELO or EHLO.
    pub helo: &'a str,
    /// The reverse-path without angle brackets, empty for the null one.
    pub sender: &'a str,
}

impl Screening {
    /// Takes the rules of the settings.
    #[must_use]
    pub fn new(settings: &Settings, front: &Front) -> Self {
        Self {
            rules: rules(settings, front),
            spf: spf(front),
        }
    }

    /// Applies the rules of access to MAIL, and returns whether a result of SPF is needed.
    ///
    /// # Errors
    /// The refusal by a rule.
    pub fn begin(&self, transaction: Transaction<'_>) -> Result<bool, Refusal> {
        let Transaction {
            client,
            helo,
            sender,
        } = transaction;
        if access(&self.rules, client, helo, None) == Access::Refuse {
            return Err(Refusal::ClientRefused);
        }
        match access(&self.rules, client, helo, Some(&ascii_sender(sender))) {
            Access::Refuse => Err(Refusal::SenderRefused),
            Access::Allow => Ok(false),
            Access::Ordinary => Ok(self.spf.is_some()),
        }
    }

    /// Applies the treatment of results of SPF.
    ///
    /// # Errors
    /// The refusal of a result.
    pub fn judge(&self, results: SpfResults) -> Result<(), Refusal> {
        let policy = self.spf.as_ref();
        let decision = policy.map(|policy| policy.decide(result(results.decisive())));
        decision.and_then(refusal).map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rest: &str) -> Screening {
        let text = format!("version = 1\nhostname = \"mx.example.org\"\n{rest}");
        let settings = Settings::parse(&text, "vere.toml").unwrap();
        Screening::new(&settings, settings.front.as_ref().unwrap())
    }

    #[test]
    fn a_sender_is_known_in_both_forms_of_its_domain() {
        let rules = of("[front]\nrefused_senders = [\"xn--bcher-kva.example\"]\n");
        for (sender, is_refused) in [
            ("a@xn--bcher-kva.example", true),
            ("a@b\u{fc}cher.example", true),
            ("\u{fc}@b\u{fc}cher.example", true),
            ("a@bucher.example", false),
            ("b\u{fc}cher.example", false),
            ("", false),
        ] {
            let transaction = Transaction {
                client: "192.0.2.1".parse().unwrap(),
                helo: "mx.example.net",
                sender,
            };
            assert_eq!(rules.begin(transaction).is_err(), is_refused, "{sender}");
        }
    }

    #[test]
    fn a_result_is_the_same_for_the_engine_and_for_others() {
        for result_told in Told::ALL {
            assert_eq!(told(result(*result_told)), *result_told);
        }
    }

    #[test]
    fn a_listed_client_learns_list_and_reason() {
        let client = "::ffff:192.0.2.1".parse().unwrap();
        let words = |decision, text| {
            let refusal = listed(decision, client, "bl.example.org", text);
            let Refusal::Site { permanent, text } = refusal else {
                panic!("{refusal:?}");
            };
            (permanent, text)
        };
        let plain = "client [192.0.2.1] is listed by bl.example.org";
        let refused = Decision::Refuse(Reason::Listed);
        assert_eq!(words(refused, ""), (true, plain.to_owned()));
        let deferred = words(Decision::Defer(Reason::Listed), "see x");
        assert_eq!(deferred, (false, format!("{plain}; see x")));
    }

    #[test]
    fn every_decision_against_a_client_has_a_refusal_of_its_class() {
        assert_eq!(refusal(Decision::Accept), None);
        for reason in Reason::ALL {
            let put_off = refusal(Decision::Defer(*reason)).map(|refusal| refusal.is_permanent());
            let permanent = [
                Reason::Access,
                Reason::EarlyTalk,
                Reason::RecipientUnknown,
                Reason::RecipientRefused,
            ];
            assert_eq!(put_off, Some(permanent.contains(reason)), "{reason:?}");
        }
        for reason in [
            Reason::Listed,
            Reason::SpfFail,
            Reason::SpfError,
            Reason::RecipientUnknown,
        ] {
            let refused = refusal(Decision::Refuse(reason)).map(|refusal| refusal.is_permanent());
            assert_eq!(refused, Some(true), "{reason:?}");
        }
        assert_eq!(
            refusal(Decision::Close(Reason::Refusals)),
            Some(Refusal::RateLimited)
        );
        assert_eq!(
            refusal(Decision::Defer(Reason::Greylisted)),
            Some(Refusal::TryLater)
        );
    }

    #[test]
    fn networks_count_before_names_and_exceptions_before_senders() {
        let screening = of(
            "[front]\nspf = \"fail\"\nallowed_networks = [\"192.0.2.7\"]\n\
             refused_networks = [\"192.0.2.0/24\"]\nrefused_helo = [\"bad.example\", \".bad.example\"]\n\
             refused_senders = [\"spam.example\", \"<>\"]\nallowed_senders = [\"good@spam.example\"]\n\
             [relay]\nnetworks = [\"198.51.100.0/24\"]\n",
        );
        let begin = |client: &str, helo, sender| {
            let client = client.parse().unwrap();
            screening.begin(Transaction {
                client,
                helo,
                sender,
            })
        };
        let stranger = "203.0.113.1";
        for (client, helo, sender, expected) in [
            ("192.0.2.7", "bad.example", "a@spam.example", Ok(false)),
            (
                "192.0.2.8",
                "x.example",
                "a@x.example",
                Err(Refusal::ClientRefused),
            ),
            ("198.51.100.1", "bad.example", "", Ok(false)),
            (stranger, "x.example", "a@x.example", Ok(true)),
            (
                stranger,
                "mx.BAD.example",
                "good@spam.example",
                Err(Refusal::ClientRefused),
            ),
            (
                stranger,
                "x.example",
                "a@Spam.example",
                Err(Refusal::SenderRefused),
            ),
            (stranger, "x.example", "good@spam.example", Ok(true)),
            (stranger, "x.example", "", Err(Refusal::SenderRefused)),
        ] {
            assert_eq!(
                begin(client, helo, sender),
                expected,
                "{client} {helo} {sender}"
            );
        }
    }

    #[test]
    fn results_of_spf_are_treated_by_the_settings() {
        let failed = Err(Refusal::SpfFailed);
        for (text, told, expected) in [
            ("spf = \"off\"", Told::Fail, Ok(())),
            ("spf = \"fail\"", Told::Fail, failed.clone()),
            ("spf = \"fail\"", Told::SoftFail, Ok(())),
            ("spf = \"fail\"", Told::TempError, Ok(())),
            ("spf = \"fail\"", Told::PermError, Ok(())),
            ("spf = \"softfail\"", Told::Fail, failed.clone()),
            ("spf = \"softfail\"", Told::SoftFail, failed),
            ("spf = \"softfail\"", Told::Neutral, Ok(())),
            ("spf = \"softfail\"", Told::None, Ok(())),
            ("spf = \"softfail\"", Told::Pass, Ok(())),
            (
                "spf = \"fail\"\nspf_unavailable = \"defer\"",
                Told::TempError,
                Err(Refusal::SpfUnavailable),
            ),
            (
                "spf = \"fail\"\nspf_permerror = \"refuse\"",
                Told::PermError,
                Err(Refusal::SpfMalformed),
            ),
        ] {
            let judged = of(&format!("[front]\n{text}\n")).judge(told.into());
            assert_eq!(judged, expected, "{text} {told:?}");
        }
    }
}
