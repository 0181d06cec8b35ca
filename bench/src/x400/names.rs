//! Names of the MTAs around the measured one, alike in its settings, at the sources and at the sinks.

/// The password of all MTAs.
pub(crate) const PASSWORD: &str = "bench";

/// The name of the measured MTA.
pub(crate) const MTA: &str = "mta1";

/// The private domain of the measured MTA.
pub(crate) const DOMAIN: &str = "Bench";

/// The MTA that sends, from 1 on.
pub(crate) fn source(number: usize) -> String {
    format!("source{number}")
}

/// The MTA that receives, from 1 on.
pub(crate) fn sink(number: usize) -> String {
    format!("sink{number}")
}

/// The private domain of an MTA; country and administration are common.
pub(crate) fn private(mta: &str) -> String {
    let mut letters = mta.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// The global domain identifier of a private domain, as the settings have it.
pub(crate) fn domain(private: &str) -> String {
    format!("C=GB;A=Carrier;P={private}")
}

/// A user of a private domain.
pub(crate) fn user(private: &str) -> String {
    format!("S=user;P={private};A=Carrier;C=GB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_has_the_name_of_its_mta() {
        assert_eq!(domain(&private(&sink(2))), "C=GB;A=Carrier;P=Sink2");
        assert_eq!(private(""), "");
    }
}
