//! Whether the host name leads to this machine: then an authority can see that the name is ours.

use std::net::IpAddr;
use std::time::Duration;

use tokio::time::timeout;
use vere_net::resolver::AddressAnswer;
use vere_process::failure::Failure;
use vere_settings::Settings;

/// Longest wait for the name servers.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether all addresses of the host name are among the addresses of this machine.
///
/// # Errors
/// When the name servers cannot be used.
pub(super) fn leads_here(settings: &Settings, addresses: &[IpAddr]) -> Result<bool, Failure> {
    if addresses.is_empty() {
        return Ok(false);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let resolver = vere_outbound::resolver(settings)?;
    Ok(runtime.block_on(async {
        let found = timeout(PATIENCE, resolver.addresses(&settings.hostname)).await;
        matches!(found, Ok(AddressAnswer::Found(found)) if are_own(&found, addresses))
    }))
}

fn are_own(found: &[IpAddr], own: &[IpAddr]) -> bool {
    !found.is_empty() && found.iter().all(|address| own.contains(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_of_the_name_is_one_of_this_machine() {
        let [a, b, c] = ["198.51.100.7", "2001:db8::7", "198.51.100.8"]
            .map(|text| text.parse::<IpAddr>().unwrap());
        assert!(are_own(&[a], &[a, b]) && are_own(&[a, b], &[a, b]));
        // An authority may look at either address.
        assert!(!are_own(&[a, c], &[a, b]) && !are_own(&[], &[a]));
        let zone = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(zone.path(), "mail.example.org A 198.51.100.7\n").unwrap();
        let text = format!(
            "version = 1\nhostname = \"mail.example.org\"\n[resolver]\nzone = \"{}\"\n",
            zone.path().display()
        );
        let settings = Settings::parse(&text, "test").unwrap();
        assert!(leads_here(&settings, &[a]).unwrap());
        assert!(!leads_here(&settings, &[c]).unwrap() && !leads_here(&settings, &[]).unwrap());
    }
}
