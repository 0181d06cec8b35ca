//! The form of a HELO name.

use std::net::IpAddr;

use vere_judge::HeloForm;

/// Returns the form of the argument of HELO or EHLO, sent to a system with the host name and the local address.
#[must_use]
pub fn helo_form(helo: &str, hostname: &str, local: IpAddr) -> HeloForm {
    let bare = helo.trim_end_matches('.');
    if bare.is_empty() {
        return HeloForm::Missing;
    }
    let literal = bare
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let text = literal.unwrap_or(bare);
    let v6 = text
        .get(..5)
        .filter(|tag| tag.eq_ignore_ascii_case("IPv6:"));
    let text = v6.and_then(|tag| text.get(tag.len()..)).unwrap_or(text);
    let address = text
        .parse::<IpAddr>()
        .ok()
        .map(|address| address.to_canonical());
    let is_ours = address == Some(local.to_canonical());
    match (address, literal) {
        _ if is_ours || bare.eq_ignore_ascii_case(hostname) => HeloForm::Ours,
        (_, Some(_)) => HeloForm::Literal,
        (Some(_), None) => HeloForm::BareAddress,
        (None, None) if bare.contains('.') => HeloForm::Domain,
        (None, None) => HeloForm::Unqualified,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_helo_name_has_a_form() {
        let local = "::ffff:192.0.2.9".parse().unwrap();
        for (helo, form) in [
            ("mx.example.net", HeloForm::Domain),
            ("mx.example.net.", HeloForm::Domain),
            ("localhost", HeloForm::Unqualified),
            ("", HeloForm::Missing),
            (".", HeloForm::Missing),
            ("[192.0.2.1]", HeloForm::Literal),
            ("[IPv6:2001:db8::1]", HeloForm::Literal),
            ("[x]", HeloForm::Literal),
            ("192.0.2.1", HeloForm::BareAddress),
            ("2001:db8::1", HeloForm::BareAddress),
            ("MX.Example.org", HeloForm::Ours),
            ("mx.example.org.", HeloForm::Ours),
            ("[192.0.2.9]", HeloForm::Ours),
            ("192.0.2.9", HeloForm::Ours),
            ("[ipv6:::ffff:192.0.2.9]", HeloForm::Ours),
        ] {
            assert_eq!(helo_form(helo, "mx.example.org", local), form, "{helo}");
        }
    }
}
