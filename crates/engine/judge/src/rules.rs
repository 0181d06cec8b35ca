//! From facts to matching rules.

mod authentication;
mod client;
mod content;

use vere_settings::Judging;

pub(crate) use authentication::proven_author;

use crate::facts::Facts;
use crate::hit::Found;

/// Lists the rules that match, in the order of the reference, then the symbols of filters.
pub(crate) fn matching<'a>(facts: &Facts, terms: &'a Judging) -> Found<'a> {
    let mut found = Found::new(&terms.weights);
    client::lists(facts, terms, &mut found);
    authentication::sender(facts, terms, &mut found);
    authentication::learned(facts, terms, &mut found);
    authentication::spf(facts, &mut found);
    authentication::dkim(facts, &mut found);
    authentication::dmarc(facts, terms, &mut found);
    authentication::arc(facts, &mut found);
    client::names(facts, &mut found);
    client::listings(facts, &mut found);
    client::greylist(facts, &mut found);
    content::author(facts, &mut found);
    content::recipients(facts, terms, &mut found);
    content::structure(facts, terms, &mut found);
    content::attachments(facts, terms, &mut found);
    content::filters(facts, terms, &mut found);
    content::viruses(facts, terms, &mut found);
    found
}
