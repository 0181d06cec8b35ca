//! A list as a zone file (RFC 1035 section 5): equal answers from a general name server.

use std::io::{self, Write};
use std::net::IpAddr;

use vere_dnsbl::data::{Head, RecordData, Value, ZoneData, name_text};

use super::networks::{self, Network};

/// The TTL of a list without `$TTL`, in seconds: as rbldnsd's.
const TTL: u32 = 2100;

/// Writes the zone with this name, and its subzones.
pub(super) fn write(output: &mut impl Write, zone: &ZoneData, name: &str) -> io::Result<()> {
    let name = name.trim_end_matches('.');
    let head = zone.head();
    writeln!(output, "$ORIGIN {name}.")?;
    writeln!(output, "$TTL {}", head.ttl.unwrap_or(TTL))?;
    write_head(output, head)?;
    write_data(output, zone, "")?;
    for (subzone, zone) in zone.subzones() {
        write_data(output, zone, &format!(".{}", name_text(subzone)))?;
    }
    Ok(())
}

fn write_head(output: &mut impl Write, head: &Head) -> io::Result<()> {
    match &head.soa {
        Some(soa) => {
            let serial = match (soa.serial, head.timestamp) {
                (0, Some(stamp)) => stamp as u32,
                (serial, _) => serial.max(1),
            };
            writeln!(
                output,
                "@ {}SOA {}. {}. {serial} {} {} {} {}",
                ttl(Some(soa.ttl)),
                name_text(&soa.origin),
                name_text(&soa.person),
                soa.refresh,
                soa.retry,
                soa.expire,
                soa.minimum,
            )?;
        }
        None => writeln!(
            output,
            "@ SOA ns.invalid. hostmaster.invalid. 1 3600 600 604800 {TTL}"
        )?,
    }
    match &head.name_servers {
        Some(servers) if !servers.names.is_empty() => {
            for name in &servers.names {
                writeln!(
                    output,
                    "@ {}NS {}.",
                    ttl(Some(servers.ttl)),
                    name_text(name)
                )?;
            }
        }
        _ => writeln!(output, "@ NS ns.invalid.")?,
    }
    Ok(())
}

/// A TTL with a blank behind; nothing for the default of the zone.
fn ttl(ttl: Option<u32>) -> String {
    match ttl {
        None | Some(0) => String::new(),
        Some(ttl) => format!("{ttl} "),
    }
}

/// Writes all entries; `suffix` is what names have behind, as far as the origin.
fn write_data(output: &mut impl Write, zone: &ZoneData, suffix: &str) -> io::Result<()> {
    let mut done = Ok(());
    let mut add = |name: &str, subject: &str, values: &[&Value]| {
        if done.is_ok() {
            done = write_values(output, &format!("{name}{suffix}"), subject, values);
        }
    };
    zone.each_v4(|first, last, values| {
        for network in networks::octets_of_v4(first, last) {
            add(&address_name(network), &network.to_string(), values);
        }
    });
    zone.each_v6(|first, last, values| {
        for network in networks::nibbles_of_v6(first, last) {
            add(&address_name(network), &network.to_string(), values);
        }
    });
    zone.each_name(|name, below, values| {
        let star = if below { "*." } else { "" };
        let subject = name_text(name);
        add(&format!("{star}{subject}"), &subject, values);
    });
    done?;
    for record in zone.all_records() {
        let name = match (name_text(&record.name), suffix.strip_prefix('.')) {
            (name, None) if name.is_empty() => "@".to_owned(),
            (name, Some(suffix)) if name.is_empty() => suffix.to_owned(),
            (name, _) => format!("{name}{suffix}"),
        };
        let ttl = ttl(record.ttl);
        match &record.data {
            RecordData::A(address) => writeln!(output, "{name} {ttl}A {address}")?,
            RecordData::Aaaa(address) => writeln!(output, "{name} {ttl}AAAA {address}")?,
            RecordData::Txt(text) => writeln!(output, "{name} {ttl}TXT {}", quoted(text))?,
            RecordData::Mx(preference, exchange) => {
                writeln!(
                    output,
                    "{name} {ttl}MX {preference} {}.",
                    name_text(exchange)
                )?;
            }
        }
    }
    Ok(())
}

fn write_values(
    output: &mut impl Write,
    name: &str,
    subject: &str,
    values: &[&Value],
) -> io::Result<()> {
    if values.is_empty() {
        // The name has to exist, so that no wildcard answers: a record of a type for private use (RFC 3597, RFC 6895
        // section 3.1) is no answer to any usual question.
        return writeln!(output, "{name} TYPE65280 \\# 0");
    }
    // Records of equal type and value count once.
    let mut addresses: Vec<_> = values.iter().map(|value| value.address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    // The records of a type share a TTL (RFC 2181 section 5.2).
    let ttl = ttl(values.iter().filter_map(|value| value.ttl()).min());
    for address in addresses {
        writeln!(output, "{name} {ttl}A {address}")?;
    }
    let mut texts: Vec<_> = values
        .iter()
        .filter_map(|value| value.text_for(subject))
        .collect();
    texts.sort_unstable();
    texts.dedup();
    for text in texts {
        writeln!(output, "{name} {ttl}TXT {}", quoted(text.as_bytes()))?;
    }
    Ok(())
}

/// The name of an address, or of all addresses of a network of whole octets or nibbles.
fn address_name(network: Network) -> String {
    let (bits, width, step) = match network.address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32, 8),
        IpAddr::V6(address) => (address.to_bits(), 128, 4),
    };
    let mut labels = Vec::new();
    if network.prefix < width {
        labels.push("*".to_owned());
    }
    let parts = (width - network.prefix) / step..width / step;
    for part in parts {
        let part = bits >> (step * part) & ((1 << step) - 1);
        labels.push(match step {
            8 => part.to_string(),
            _ => format!("{part:x}"),
        });
    }
    labels.join(".")
}

/// A character-string with the escapes of a zone file.
fn quoted(text: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for octet in text {
        match octet {
            b'"' | b'\\' => quoted.extend(['\\', char::from(*octet)]),
            b' '..=b'~' => quoted.push(char::from(*octet)),
            octet => quoted.push_str(&format!("\\{octet:03}")),
        }
    }
    quoted.push('"');
    quoted
}
