//! Content filters about a message of an account, a local program or a client that may relay: the actions of the filters decide.
//!
//! No score counts. The rules are about strangers, and the thresholds are those of recipients here; a sender known to the system gets the verdict of a filter
//! that the operator has set for submitted mail, and nothing else.
//!
//! Nothing is quarantined: the quarantine loses old mail without a report, since a stranger's address is mostly forged. A known sender hears
//! of mail that does not leave, by the refusal.

use vere_filters::Mail;
use vere_settings::{Settings, Verdict};
use vere_smtp::refusal::Refusal;
use vere_smtp::server::Message;
use vere_units::TraceId;

use super::filtered::{Filtered, filter};
use super::judged::{Class, Judged, Told};
use crate::process::Process;
use crate::service::Service;

/// The name of a refusal for a virus, as in judgements of received mail.
const VIRUS: &str = "VIRUS";
/// The name of a refusal by the action of a filter.
const ACTION: &str = "FILTER_ACTION";

/// Asks the content filters for submitted mail, and applies the changes of filters.
///
/// # Errors
/// The refusal for the client, by a filter or for want of an answer.
pub(super) async fn judge(
    process: &Process,
    service: Service,
    trace: TraceId,
    message: &mut Message,
) -> Result<Judged, Refusal> {
    let reverse_path = message.reverse_path.reverse_path.as_str().to_owned();
    let filtered = filter(process, (service, Mail::Submitted), trace, message).await?;
    let (verdict, reasons) = decide(&process.settings(), &filtered);
    let refusal = refusal(verdict, &reasons, trace);
    if !filtered.filters.is_empty() {
        let rules = reasons
            .iter()
            .map(|(name, verdict)| format!("{name}={}", verdict.name()));
        let told = Told {
            reverse_path,
            client: message.session.address,
            verdict,
            score: None,
            rules: rules.collect::<Vec<_>>().join(" "),
            recipients: u32::try_from(message.recipients.len()).ok(),
            facts: None,
            reply: refusal.as_ref().map(ToString::to_string),
        };
        told.write(process, trace);
        told.log(trace);
    }
    match refusal {
        Some(refusal) => Err(refusal),
        None => Ok(Judged {
            classes: vec![Class::of_all(message)],
            counted: None,
        }),
    }
}

/// The verdict, and the reasons that are no acceptance. The severest reason is the verdict; quarantine as a reason is a refusal.
fn decide(settings: &Settings, filtered: &Filtered) -> (Verdict, Vec<(&'static str, Verdict)>) {
    let about_viruses = settings.judging.as_ref().map(|judging| judging.virus);
    let about_viruses = about_viruses.unwrap_or(Verdict::Reject);
    let mut reasons = Vec::new();
    if !filtered.viruses.is_empty() {
        reasons.push((VIRUS, about_viruses));
    }
    // The refusal of a scanner that names a virus has the verdict about viruses.
    let has_virus = |name: &str| filtered.viruses.iter().any(|virus| virus.filter == name);
    let others = filtered.filters.iter();
    let others = others.filter(|filter| !has_virus(&filter.name));
    let action = others.filter_map(|filter| filter.action).max();
    let discarded = filtered.is_discarded.then_some(Verdict::Quarantine);
    if let Some(action) = action.max(discarded) {
        reasons.push((ACTION, action));
    }
    reasons.retain(|(_, verdict)| *verdict > Verdict::Accept);
    let verdict = match severest(&reasons) {
        Verdict::Quarantine => Verdict::Reject,
        verdict => verdict,
    };
    (verdict, reasons)
}

fn severest(reasons: &[(&'static str, Verdict)]) -> Verdict {
    let verdicts = reasons.iter().map(|(_, verdict)| *verdict);
    verdicts.max().unwrap_or_default()
}

/// The refusal of a message, with the queue id.
fn refusal(
    verdict: Verdict,
    reasons: &[(&'static str, Verdict)],
    trace: TraceId,
) -> Option<Refusal> {
    let permanent = verdict == Verdict::Reject;
    let text = match verdict {
        Verdict::Reject => "message refused",
        Verdict::Defer => "message deferred, try again later",
        Verdict::Accept | Verdict::Tag | Verdict::Quarantine => return None,
    };
    let severest = severest(reasons);
    let (name, _) = reasons.iter().find(|(_, reason)| *reason == severest)?;
    Some(Refusal::Site {
        permanent,
        text: format!("{text} ({name}), id {trace}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vere_judge::{Filter, Virus};

    fn settings(sections: &str) -> Settings {
        let text = format!("version = 1\nhostname = \"mx.example.org\"\n{sections}");
        Settings::parse(&text, "/etc/vere/vere.toml").expect(sections)
    }

    fn filtered(actions: &[(&str, Verdict)], virus: Option<&str>) -> Filtered {
        let filters = actions.iter().map(|(name, action)| Filter {
            name: (*name).to_owned(),
            action: Some(*action),
            symbols: Vec::new(),
        });
        let virus = virus.iter().map(|filter| Virus {
            filter: (*filter).to_owned(),
            name: "Eicar".to_owned(),
        });
        Filtered {
            filters: filters.collect(),
            viruses: virus.collect(),
            cut: false,
            is_discarded: false,
        }
    }

    #[test]
    fn the_severest_action_decides() {
        let settings = settings("");
        for (actions, verdict) in [
            (vec![], Verdict::Accept),
            (vec![("a", Verdict::Accept)], Verdict::Accept),
            (
                vec![("a", Verdict::Tag), ("b", Verdict::Accept)],
                Verdict::Tag,
            ),
            (
                vec![("a", Verdict::Defer), ("b", Verdict::Quarantine)],
                Verdict::Defer,
            ),
        ] {
            let found = decide(&settings, &filtered(&actions, None));
            assert_eq!(found.0, verdict, "{actions:?}");
        }
        let discarded = Filtered {
            is_discarded: true,
            ..filtered(&[("a", Verdict::Accept)], None)
        };
        let (verdict, reasons) = decide(&settings, &discarded);
        assert_eq!(verdict, Verdict::Reject);
        assert_eq!(reasons, [(ACTION, Verdict::Quarantine)]);
        let refusal = refusal(verdict, &reasons, TraceId::new(1)).expect("a refusal");
        assert!(refusal.is_permanent());
        assert!(refusal.to_string().contains("(FILTER_ACTION), id "));
    }

    #[test]
    fn a_virus_has_the_verdict_of_the_settings() {
        let found = filtered(&[("clamav", Verdict::Reject)], Some("clamav"));
        let (verdict, reasons) = decide(&settings(""), &found);
        assert_eq!(reasons, [(VIRUS, Verdict::Reject)]);
        let refusal = refusal(verdict, &reasons, TraceId::new(1)).expect("a refusal");
        assert!(refusal.is_permanent());
        assert!(refusal.to_string().contains("message refused (VIRUS), id "));
        let aside = settings("[judging]\nvirus = \"quarantine\"\n");
        let (verdict, reasons) = decide(&aside, &found);
        assert_eq!(verdict, Verdict::Reject, "no known sender loses mail");
        assert_eq!(reasons, [(VIRUS, Verdict::Quarantine)]);
    }
}
