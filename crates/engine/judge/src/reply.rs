//! The reply to the client.

use vere_settings::Verdict;
use vere_smtp::reply::EnhancedStatusCode;

use crate::judge::Judgement;

/// A reply at the end of DATA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgementReply {
    /// The code of the reply.
    pub code: u16,
    /// The enhanced status code (RFC 3463): 7.1, delivery not authorized, message refused.
    pub status: EnhancedStatusCode,
    /// The text: one line of printable ASCII, without any text of the message.
    pub text: String,
}

impl Judgement {
    /// Returns the reply of a message that is refused or deferred; `None` if the message is accepted.
    #[must_use]
    pub fn reply(&self) -> Option<JudgementReply> {
        let (code, class, text) = match self.verdict {
            Verdict::Reject => (550, 5, "message refused"),
            Verdict::Defer => (450, 4, "message deferred, try again later"),
            Verdict::Accept | Verdict::Tag | Verdict::Quarantine => return None,
        };
        let reason = self.reason();
        Some(JudgementReply {
            code,
            status: EnhancedStatusCode::new(class, 7, 1),
            text: format!("{text} ({reason})"),
        })
    }

    /// Returns the name of the rule that decided: the rule of the severest verdict beside the score, or the rule with the largest weight.
    #[must_use]
    pub fn reason(&self) -> &str {
        let is_severe = |verdict| verdict >= self.verdict.max(Verdict::Tag);
        let mut rulings = self.rulings.iter();
        if let Some(ruling) = rulings.find(|ruling| is_severe(ruling.verdict)) {
            return ruling.rule.name();
        }
        // Of equal weights the first one is named.
        let largest = self
            .hits
            .iter()
            .reduce(|largest, hit| match hit.weight > largest.weight {
                true => hit,
                false => largest,
            });
        let largest = largest.filter(|hit| hit.weight > vere_units::Score::ZERO);
        largest.map_or("policy", |hit| hit.name.as_str())
    }
}
