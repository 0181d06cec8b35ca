//! Results of a delivery: one for each recipient.

use std::collections::BTreeMap;

use super::{PlaceResult, Server, ServerEvent, value};
use crate::SAID_OCTETS_MAX;
use crate::error::Fault;
use crate::requests::{Done, Fate, RecipientResult};
use crate::text::cut;

impl Server {
    /// Takes the results of a delivery that waits for them.
    pub(super) fn done(&mut self, done: Done) -> Result<ServerEvent, Fault> {
        let Some(places) = self.deliveries.get(&done.id) else {
            let found = cut(&done.id, 64);
            let what = format!("expected the id of a delivery without an answer; found {found:?}");
            return Err(value("done", what));
        };
        let results = complete(places, &done).map_err(|what| value("done", what))?;
        self.deliveries.remove(&done.id);
        Ok(ServerEvent::Done {
            id: done.id,
            results,
            own_reports: done.own_reports,
        })
    }
}

/// The results in the order of the places.
fn complete(places: &[u32], done: &Done) -> Result<Vec<PlaceResult>, String> {
    let mut single: BTreeMap<u32, &RecipientResult> = BTreeMap::new();
    for result in &done.results {
        if single.insert(result.place, result).is_some() {
            return Err(format!(
                "expected one result for place {}; found two",
                result.place
            ));
        }
    }
    let results: Result<Vec<_>, _> = places
        .iter()
        .map(|place| match (single.remove(place), done.result) {
            (Some(own), _) => result(*place, own.result, own.status.as_deref(), &own.said),
            (None, Some(rest)) => result(*place, rest, done.status.as_deref(), &done.said),
            (None, None) => Err(format!("expected a result for place {place}; found none")),
        })
        .collect();
    match single.keys().next() {
        Some(place) => Err(format!("expected a place of the delivery; found {place}")),
        None => results,
    }
}

fn result(
    place: u32,
    result: Fate,
    status: Option<&str>,
    said: &str,
) -> Result<PlaceResult, String> {
    let usual = match result {
        Fate::Delivered => "2.0.0",
        Fate::Deferred => "4.0.0",
        Fate::Failed => "5.0.0",
    };
    let status = status.unwrap_or(usual);
    if !is_status(status) || status.get(..1) != usual.get(..1) {
        let found = cut(status, 64);
        return Err(format!(
            "expected a status such as {usual} for place {place}; found {found:?}"
        ));
    }
    Ok(PlaceResult {
        place,
        result,
        status: status.to_owned(),
        said: cut(said, SAID_OCTETS_MAX).to_owned(),
    })
}

/// RFC 3463 section 2: class, subject and detail, of which the last two have up to three digits.
fn is_status(status: &str) -> bool {
    let parts: Vec<&str> = status.split('.').collect();
    let is_number = |part: &&str, most: usize| {
        (1..=most).contains(&part.len()) && part.bytes().all(|octet| octet.is_ascii_digit())
    };
    match parts.as_slice() {
        [class, subject, detail] => {
            is_number(class, 1) && is_number(subject, 3) && is_number(detail, 3)
        }
        _ => false,
    }
}
