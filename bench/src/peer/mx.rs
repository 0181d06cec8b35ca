//! The addresses of a measured mail exchanger, which accepts mail of any client for some addresses of a domain, and
//! refuses all other addresses with 550.

/// The domain of the exchanger.
pub(crate) const DOMAIN: &str = "front.test";

/// The beginning of every accepted address; the other addresses of the domain are unknown.
pub(crate) const GOOD: &str = "good";

/// Number of accepted addresses.
pub(crate) const RECIPIENTS: usize = 20;

/// The accepted address of a number.
pub(crate) fn recipient(number: usize) -> String {
    format!("{GOOD}{}@{DOMAIN}", number % RECIPIENTS)
}

/// All accepted addresses.
pub(crate) fn recipients() -> Vec<String> {
    (0..RECIPIENTS).map(recipient).collect()
}

/// The directory of Veredarius. Every accepted address is an alias of an address at the next hop, so that no mailbox takes part.
pub(super) fn directory() -> String {
    let aliases = (0..RECIPIENTS).map(|number| {
        format!(
            "[[alias]]\naddress = \"{}\"\ntargets = [\"user{number}@d0.bench.test\"]\n",
            recipient(number)
        )
    });
    let aliases: String = aliases.collect();
    format!("version = 1\n[[domain]]\nname = \"{DOMAIN}\"\n{aliases}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_addresses_have_their_beginning_and_lead_to_the_next_hop() {
        let all = recipients();
        assert_eq!(all.len(), RECIPIENTS);
        assert!(all.iter().all(|address| address.starts_with(GOOD)));
        let text = directory();
        assert_eq!(text.matches("[[alias]]").count(), RECIPIENTS);
        assert!(
            text.contains("address = \"good19@front.test\"\ntargets = [\"user19@d0.bench.test\"]")
        );
    }
}
