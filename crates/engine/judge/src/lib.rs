//! Judges messages: facts, named rules with weights, a score, and a verdict for each recipient.
//!
//! [`Facts`] is what is known of a message: results of SPF, DKIM, DMARC and ARC, lists in the DNS, names of the client, findings of filters, the
//! structure. Processes that know facts gather them; [`Facts::read`] takes those of the message itself. [`Judge`] has the settings
//! (`[judging]`), finds the rules that match, adds their weights and compares the sum with the thresholds of each recipient. A [`Judgement`]
//! has the score, each [`Hit`] with its fact, the verdicts, the [reply](Judgement::reply) and the [header fields](Judgement::fields).
//!
//! The same facts and settings give the same judgement, so that `vere explain` can show what is decided about an old message by new settings:
//! [`Facts::encode`] keeps facts with a message.
//!
//! Texts in facts are of strangers. They are compared, bounded, and shown with escapes; a reply and a header field have none of them.
//!
//! Not covered: finding facts about the client (DNS, filters), statistics of words, and what is done with a verdict.
//!
//! ```
//! use vere_judge::{AuthResult, Facts, Judge, Verdict};
//! use vere_settings::Settings;
//!
//! let text = "version = 1\nhostname = \"mx.example.org\"\n[judging]\nreject_at = 5.0\n[judging.weights]\nSPF_FAIL = 6.0\n";
//! let settings = Settings::parse(text, "vere.toml")?;
//! let judge = Judge::new(settings.judging.ok_or("no section")?);
//! let facts = Facts { spf: Some(AuthResult::Fail), ..Facts::default() };
//! let judgement = judge.judge(&facts, &["ann@example.org"]);
//! assert_eq!(judgement.verdict, Verdict::Reject);
//! let reply = judgement.reply().ok_or("accepted")?;
//! assert_eq!((reply.code, reply.text.as_str()), (550, "message refused (SPF_FAIL)"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod facts;
mod fields;
mod hit;
mod judge;
mod message;
mod outline;
mod pattern;
mod policies;
mod reply;
mod rules;
mod wire;

pub use facts::{
    ADDRESS_OCTETS_MAX, ATTACHMENTS_MAX, AUTHORS_MAX, Arc, Attachment, AuthResult, Author,
    DOMAIN_OCTETS_MAX, Dmarc, DmarcPolicy, FILTERS_MAX, Facts, Filter, Greylist, HeloForm,
    LISTINGS_MAX, Listing, NAME_OCTETS_MAX, SIGNATURES_MAX, SYMBOL_SCORE_MAX, SYMBOLS_MAX,
    Signature, Structure, Symbol, UNCOUNTED, VIRUSES_MAX, Virus, WEIGHT_MAX, WORD_OCTETS_MAX,
};
pub use fields::{as_released, author_field, foreign_fields, noted_author};
pub use hit::{Hit, HitName, Ruling};
pub use judge::{Judge, Judgement, RecipientVerdict};
pub use outline::{OUTLINE_OCTETS_MAX, Outline};
pub use reply::JudgementReply;
pub use vere_settings::{Rule, Verdict};
pub use wire::{FACTS_VERSION, FactsError};

#[cfg(test)]
mod tests;
