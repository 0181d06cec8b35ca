//! Whole files, as users write them.

mod bounds;
mod files;
mod model;
mod rbldnsd;

use std::net::IpAddr;

use super::{Kind, ZoneData};

fn zone(kind: Kind, text: &str) -> ZoneData {
    let mut builder = ZoneData::build();
    builder
        .add(kind, "list", text.as_bytes())
        .expect("a list without errors");
    builder.finish()
}

/// `A text` of each value of an address, sorted.
fn answer(zone: &ZoneData, address: &str) -> Vec<String> {
    let parsed: IpAddr = address.parse().expect("an address");
    let mut answer: Vec<String> = zone
        .values(parsed)
        .map(|value| {
            let text = value.text_for(address).unwrap_or_default();
            format!("{} {text}", value.address).trim_end().to_owned()
        })
        .collect();
    answer.sort();
    answer
}

/// A name in wire form without the root.
fn wire(name: &str) -> Vec<u8> {
    super::name::relative(name.as_bytes()).expect("a name")
}

/// `A text` of each value of a name, sorted.
fn name_answer(zone: &ZoneData, name: &str) -> Vec<String> {
    let name = wire(name);
    let mut answer: Vec<String> = zone
        .name_entries(&name)
        .map(|(entry, value)| {
            let subject = super::name_text(entry);
            let text = value.text_for(&subject).unwrap_or_default();
            format!("{} {text}", value.address).trim_end().to_owned()
        })
        .collect();
    answer.sort();
    answer
}
