//! The rules by which messages are judged, with their default weights: the one place where a rule exists.
//!
//! The section `[judging.weights]` has an option for each rule. Names are those of SpamAssassin or rspamd where these have
//! the rule.

macro_rules! rules {
    ($($variant:ident = $name:literal, $weight:literal, $text:literal;)+) => {
        /// A rule about a message, named by the words of SpamAssassin or rspamd where these have the rule.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = $text] $variant,)+
        }

        impl Rule {
            /// Every rule, in the order of the reference.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the name in settings, header fields and metrics.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Returns the default weight, as in a file.
            #[must_use]
            pub(crate) const fn default_weight(self) -> &'static str {
                match self {
                    $(Self::$variant => $weight,)+
                }
            }

            /// Returns the description in the reference.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }
    };
}

rules! {
    AllowedNetwork = "ALLOWED_NETWORK", "-100.0", "The client's address lies in `judging.allow_networks`.";
    BlockedNetwork = "BLOCKED_NETWORK", "100.0", "The client's address lies in `judging.block_networks`.";
    AllowedSender = "ALLOWED_SENDER", "-100.0", "The author's address is on `judging.allow_senders`, and the author's domain is authenticated.";
    AllowedSenderUnproven = "ALLOWED_SENDER_UNPROVEN", "0.0", "The author's address is on `judging.allow_senders`, and nothing proves that the message comes from that domain.";
    AllowedLearned = "ALLOWED_LEARNED", "-10.0", "A message of this author was released from the quarantine with `--learn` for the same recipient, and the author's domain is authenticated. Without that nothing counts.";
    BlockedSender = "BLOCKED_SENDER", "100.0", "The reverse-path or an address of the author is on `judging.block_senders`.";
    Authenticated = "AUTHENTICATED", "-1.0", "The client has logged in.";
    SpfPass = "SPF_PASS", "0.0", "The domain of the reverse-path allows the client.";
    SpfNeutral = "SPF_NEUTRAL", "0.0", "The domain of the reverse-path makes no statement about the client.";
    SpfSoftfail = "SPF_SOFTFAIL", "1.0", "The domain of the reverse-path probably does not allow the client.";
    SpfFail = "SPF_FAIL", "2.0", "The domain of the reverse-path does not allow the client. Forwarded mail fails as well.";
    SpfPermerror = "SPF_PERMERROR", "0.5", "The SPF record of the reverse-path's domain cannot be understood.";
    SpfTemperror = "SPF_TEMPERROR", "0.0", "SPF of the reverse-path has no result because of the DNS.";
    SpfHeloFail = "SPF_HELO_FAIL", "1.5", "The domain of the HELO name does not allow the client.";
    DkimValid = "DKIM_VALID", "-0.1", "A DKIM signature is valid, whatever its domain.";
    DkimInvalid = "DKIM_INVALID", "0.1", "The message has DKIM signatures that fail, and none is valid; signatures without a verdict (`neutral`) do not count. Mailing lists break signatures.";
    DkimTemperror = "DKIM_TEMPERROR", "0.0", "A DKIM signature has no result because of the DNS, and none is valid.";
    DmarcPass = "DMARC_PASS", "-0.1", "The author's domain is authenticated by DMARC. Domains of spammers pass as well.";
    DmarcNone = "DMARC_NONE", "0.0", "DMARC fails, and the author's domain asks for nothing (`p=none`), which must not change the treatment of the message (RFC 9989 section 5.4).";
    DmarcQuarantine = "DMARC_QUARANTINE", "5.0", "DMARC fails, and the author's domain asks for suspicion (`p=quarantine`).";
    DmarcReject = "DMARC_REJECT", "5.0", "DMARC fails, and the author's domain asks for rejection (`p=reject`).";
    DmarcPermerror = "DMARC_PERMERROR", "0.0", "The DMARC record of the author's domain cannot be understood.";
    DmarcTemperror = "DMARC_TEMPERROR", "0.0", "DMARC has no result because of the DNS.";
    DmarcArc = "DMARC_ARC", "0.0", "DMARC fails, and a sealer of `judging.trusted_arc_sealers` states by ARC that it passed before; no other rule about the failure counts.";
    ArcValid = "ARC_VALID", "0.0", "The ARC chain is valid, whoever sealed it.";
    ArcInvalid = "ARC_INVALID", "0.5", "The ARC chain is broken.";
    RdnsNone = "RDNS_NONE", "1.5", "The client's address has no name.";
    RdnsMismatch = "RDNS_MISMATCH", "0.7", "The names of the client's address do not lead back to the address.";
    HeloNone = "HELO_NONE", "1.0", "The client gave no name in HELO.";
    HeloNoDomain = "HELO_NO_DOMAIN", "1.0", "The HELO name has no dot.";
    HeloLiteral = "HELO_LITERAL", "0.3", "The HELO name is an address in brackets, which is correct and rare.";
    HeloBareIp = "HELO_BARE_IP", "2.0", "The HELO name is an address without brackets.";
    HeloOurs = "HELO_OURS", "5.0", "The HELO name is the name or address of this system.";
    Dnsbl = "DNSBL", "2.0", "Lists in the DNS have the client: counted once for each point of their weights' sum, 10 times at most.";
    Dnswl = "DNSWL", "-0.5", "Lists of good clients in the DNS have the client: counted once for each point of their weights' sum below zero, 10 times at most.";
    Greylisted = "GREYLISTED", "0.5", "The greylist does not know client, sender and recipient.";
    GreylistPassed = "GREYLIST_PASSED", "-0.1", "The client came again after greylisting, as most programs for unwanted mail do not.";
    GreylistKnown = "GREYLIST_KNOWN", "-0.2", "The client has passed the greylist with 5 senders and recipients, and no longer waits.";
    FromNone = "FROM_NONE", "1.0", "The message has no author's address.";
    FromMultiple = "FROM_MULTIPLE", "2.0", "The message has several From fields or several authors' addresses, of which programs show different ones.";
    RecipientsMany = "RECIPIENTS_MANY", "0.5", "The message has at least `judging.many_recipients` recipients.";
    StructureLimit = "STRUCTURE_LIMIT", "0.0", "The message is beyond a bound of `[judging.limits]`, whose `verdict` applies.";
    Attachment = "ATTACHMENT", "0.0", "A rule of `[[judging.attachment]]` matches, whose `verdict` applies.";
    Virus = "VIRUS", "100.0", "A filter found a virus; `judging.virus` applies.";
    FilterAction = "FILTER_ACTION", "0.0", "A filter asks for an action. With `action = \"follow\"` in `[[judging.filter]]` the action applies.";
    FactsCut = "FACTS_CUT", "1.0", "The message has more addresses, signatures, symbols or attachments than are looked at.";
}

#[cfg(test)]
mod tests {
    use vere_units::Score;

    use super::*;

    #[test]
    fn rules_stand_in_the_order_of_their_numbers_and_have_weights() {
        let mut names: Vec<_> = Rule::ALL.iter().map(|rule| rule.name()).collect();
        for (number, rule) in Rule::ALL.iter().enumerate() {
            assert_eq!(*rule as usize, number);
            let weight = rule.default_weight();
            assert!(weight.parse::<Score>().is_ok(), "{weight}");
            let is_word = |octet: u8| octet.is_ascii_uppercase() || octet == b'_';
            assert!(rule.name().bytes().all(is_word), "{}", rule.name());
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Rule::ALL.len());
    }
}
