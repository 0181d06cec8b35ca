//! Options for the judgement of messages.

use super::row::Fallback::{Is, Nothing, Required};
use super::row::{DAY, GIB, HOUR, KIB, Opt, Section, Shape};
use crate::judging::{Rule, SCORE_POINTS_MAX};
use crate::kind::Kind::{
    Choice, HostNames, Integer, MediaTypes, Name, NamePatterns, NetworkList, Recipients, Score,
    SenderPatterns, Size, Span, Threshold,
};

const LIMIT_VERDICTS: &[&str] = &["accept", "tag", "quarantine", "reject"];

sections! {
    "judging" Optional, "Judgement of messages at the end of DATA: rules with weights add up to a score, and the score leads to a verdict for each recipient. A message gets one reply: it is refused only if all recipients refuse it; otherwise those who would refuse it get it in quarantine." {
        live tag_at: Threshold(SCORE_POINTS_MAX), Is("5.0"),
            "Score from which a message is marked by `X-Spam-Flag: YES`.";
        live quarantine_at: Threshold(SCORE_POINTS_MAX), Is("\"never\""),
            "Score from which a message is kept aside in place of the inbox.";
        live defer_at: Threshold(SCORE_POINTS_MAX), Is("\"never\""),
            "Score from which the client is told to try again later (450 4.7.1).";
        live reject_at: Threshold(SCORE_POINTS_MAX), Is("\"never\""),
            "Score from which the message is refused (550 5.7.1).";
        live allow_senders: SenderPatterns, Is("[]"),
            "Authors of wanted mail, by the address in From: `bob@example.net`, `example.net`, `.example.net` for the domains below. An entry counts only if the message has one author and DMARC passes, or SPF or DKIM passes for the author's domain: anybody can write any address.";
        live block_senders: SenderPatterns, Is("[]"),
            "Senders of unwanted mail, by the reverse-path or an address in From, proven or not; `<>` for the null reverse-path.";
        live allow_networks: NetworkList, Is("[]"),
            "Networks whose clients bring wanted mail.";
        live block_networks: NetworkList, Is("[]"),
            "Networks whose clients bring unwanted mail.";
        live dmarc: Choice(&["score", "follow"]), Is("\"score\""),
            "Treatment of messages that fail DMARC: `score` adds the weights DMARC_REJECT and DMARC_QUARANTINE, `follow` also refuses them with `p=reject` and quarantines them with `p=quarantine`. Mail of mailing lists fails DMARC as well; RFC 9989 section 7.4 tells receivers not to reject by `p=reject` alone. Neither is done to messages of `allow_networks`, of trusted sealers and of allowed senders.";
        live trusted_arc_sealers: HostNames, Is("[]"),
            "Domains of mailing lists and forwarders whose ARC seals (RFC 8617) are believed: a failure of DMARC does not count where such a seal states that DMARC passed before.";
        live virus: Choice(LIMIT_VERDICTS), Is("\"reject\""),
            "The least verdict about a message with a virus; `accept` leaves the verdict to the score.";
        live many_recipients: Integer(2, 100_000), Is("50"),
            "Number of recipients from which RECIPIENTS_MANY counts.";
        live quarantine_keep: Span(HOUR, 365 * DAY), Is("\"30d\""),
            "Age at which a message leaves the quarantine by itself: removed without a report. `vere quarantine list` shows when.";
        live quarantine_digest: Choice(&["off", "daily"]), Is("\"off\""),
            "With `daily` each local recipient gets one message a day from `postmaster` that lists new mail in the quarantine.";
    }

    "judging.limits" Always, "Bounds of the structure of messages. What lies beyond the bounds is not looked at by rules about attachments, so that a message beyond a bound has a verdict of its own. So has a message that readers take apart in different ways: a part with two types, dispositions or boundaries, or a boundary in the form of RFC 2231." {
        live depth_max: Integer(1, 50), Is("50"),
            "Deepest nesting of MIME parts.";
        live parts_max: Integer(1, 999), Is("999"),
            "Number of MIME parts.";
        live attachments_max: Integer(0, 256), Is("256"),
            "Number of names and types of attachments.";
        live header_size_max: Size(KIB, GIB), Is("\"256 KiB\""),
            "Bytes of the header.";
        live verdict: Choice(LIMIT_VERDICTS), Is("\"reject\""),
            "The least verdict about a message beyond a bound; `accept` leaves the verdict to the score.";
    }

    "judging.policy" Repeated, "Thresholds of single recipients. An address goes before its domain, a domain before a domain with a leading dot, and the longer one before the shorter; omitted keys are as in `[judging]`." {
        live recipients: Recipients, Required("recipients = [\"example.org\", \"ann@example.org\"]"),
            "Recipients, after aliases: addresses, domains, or `.example.org` for the domains below.";
        live tag_at: Threshold(SCORE_POINTS_MAX), Nothing("as `judging.tag_at`"),
            "Score from which a message is marked.";
        live quarantine_at: Threshold(SCORE_POINTS_MAX), Nothing("as `judging.quarantine_at`"),
            "Score from which a message is kept aside.";
        live defer_at: Threshold(SCORE_POINTS_MAX), Nothing("as `judging.defer_at`"),
            "Score from which the client is told to try again later.";
        live reject_at: Threshold(SCORE_POINTS_MAX), Nothing("as `judging.reject_at`"),
            "Score from which the message is refused.";
    }

    "judging.attachment" Repeated, "A rule by names and types of attachments. The content of archives is not looked at." {
        live names: NamePatterns, Is("[]"),
            "Names: `*` for any characters, `?` for one. Letter case does not count, nor do dots and spaces at the end of a name.";
        live types: MediaTypes, Is("[]"),
            "Media types as the message states them.";
        live verdict: Choice(&["tag", "quarantine", "reject"]), Required("verdict = \"reject\""),
            "The least verdict about a message with such an attachment.";
    }

    "judging.filter" Repeated, "How a filter counts. A filter without a section counts with factor 1 and without its action." {
        live name: Name, Required("name = \"rspamd\""),
            "The name of the filter.";
        live factor: Score(0, 100), Is("1.0"),
            "Factor of the filter's scores; 0 for none.";
        live action: Choice(&["score", "follow"]), Is("\"score\""),
            "Treatment of the action that the filter asks for: `score` ignores it, `follow` makes it the least verdict.";
    }
}

/// The weights, whose rows the rules are.
pub(super) static WEIGHTS: Section = Section {
    name: "judging.weights",
    shape: Shape::Always,
    text: "The weight of each rule: what a message gains by it. A rule with weight 0 changes no verdict and is named in no message; `vere explain` shows it.",
    options: &OPTIONS,
};

const fn option(rule: Rule) -> Opt {
    Opt {
        name: rule.name(),
        kind: Score(-SCORE_POINTS_MAX, SCORE_POINTS_MAX),
        default: Is(rule.default_weight()),
        live: true,
        text: rule.text(),
    }
}

static OPTIONS: [Opt; Rule::ALL.len()] = {
    let mut options = [const { option(Rule::AllowedNetwork) }; Rule::ALL.len()];
    let mut n = 0;
    while n < options.len() {
        options[n] = option(Rule::ALL[n]);
        n += 1;
    }
    options
};
