//! The answer of `/checkv2`.

use std::collections::BTreeMap;

use serde::Deserialize;
use vere_milter::{Change, field_name, field_value};
use vere_mime::fields;

use crate::bounds::Bounds;
use crate::failure::{Failure, printable};
use crate::outcome::{Outcome, Symbol, Verdict};

/// The longest text for a client; the rest is cut.
const TEXT_OCTETS_MAX: usize = 400;

#[derive(Deserialize)]
struct Reply {
    action: String,
    score: Option<f64>,
    required_score: Option<f64>,
    #[serde(default)]
    symbols: BTreeMap<String, SymbolReply>,
    #[serde(default)]
    messages: BTreeMap<String, serde_json::Value>,
    #[serde(default)]
    milter: MilterReply,
    subject: Option<String>,
}

#[derive(Deserialize)]
struct SymbolReply {
    #[serde(default)]
    score: f64,
    #[serde(default)]
    options: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct MilterReply {
    add_headers: BTreeMap<String, OneOrMany<Added>>,
    remove_headers: BTreeMap<String, OneOrMany<i64>>,
    change_from: Option<String>,
    add_rcpt: Vec<String>,
    del_rcpt: Vec<String>,
    reject: Option<String>,
    spam_header: Option<String>,
    no_action: bool,
}

/// Several headers of a name are an array.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    Many(Vec<T>),
    One(T),
}

impl<T> OneOrMany<T> {
    fn as_slice(&self) -> &[T] {
        match self {
            Self::Many(many) => many,
            Self::One(one) => std::slice::from_ref(one),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Added {
    Value(String),
    Ordered {
        value: String,
        /// The number of fields before the place; a negative number, or no number, is the end.
        order: Option<i64>,
    },
}

/// Reads the answer to `/checkv2` about a message.
///
/// # Errors
/// The octets are no JSON of the right form, the action is unknown, or a bound is exceeded.
pub fn read_answer(octets: &[u8], bounds: &Bounds, message: &[u8]) -> Result<Outcome, Failure> {
    if octets.len() > bounds.answer_octets {
        return Err(Failure::Long(bounds.answer_octets));
    }
    let reply: Reply =
        serde_json::from_slice(octets).map_err(|error| Failure::Json(error.to_string()))?;
    let many = |max, of| Failure::Many { max, of };
    if reply.symbols.len() > bounds.symbols {
        return Err(many(bounds.symbols, "symbols"));
    }
    let verdict = verdict(&reply)?;
    let mut changes = Changes {
        list: Vec::new(),
        octets: 0,
        bounds,
    };
    if matches!(verdict, Verdict::Accept | Verdict::Quarantine(_)) {
        changes.of_reply(&reply, message)?;
    }
    let asks_mark = matches!(reply.action.as_str(), "add header" | "rewrite subject");
    let is_marked = asks_mark && !reply.milter.no_action;
    let symbols = reply.symbols.into_iter().map(|(name, symbol)| Symbol {
        name: cut(name, bounds.text_octets),
        score: symbol.score,
        options: symbol
            .options
            .into_iter()
            .take(bounds.options)
            .map(|option| cut(option, bounds.text_octets))
            .collect(),
    });
    Ok(Outcome {
        is_marked,
        symbols: symbols.collect(),
        score: reply.score,
        required: reply.required_score,
        changes: changes.list,
        action: reply.action,
        ..Outcome::new(verdict)
    })
}

fn verdict(reply: &Reply) -> Result<Verdict, Failure> {
    let message = reply.messages.get("smtp_message");
    let text = message
        .and_then(serde_json::Value::as_str)
        .unwrap_or_default();
    let text = printable(text.as_bytes(), TEXT_OCTETS_MAX);
    let other = reply.milter.reject.as_deref();
    Ok(match reply.action.as_str() {
        _ if reply.milter.no_action => Verdict::Accept,
        // rspamd's own milter accepts "greylist" as well: the greylisting of rspamd says "soft reject".
        "no action" | "greylist" | "add header" | "rewrite subject" => Verdict::Accept,
        "soft reject" => Verdict::Defer(text),
        "reject" if matches!(other, Some("discard" | "quarantine")) => Verdict::Quarantine(text),
        "reject" => Verdict::Reject(text),
        "discard" | "quarantine" => Verdict::Quarantine(text),
        other => return Err(Failure::Action(printable(other.as_bytes(), 64))),
    })
}

struct Changes<'a> {
    list: Vec<Change>,
    octets: usize,
    bounds: &'a Bounds,
}

impl Changes<'_> {
    fn push(&mut self, change: Change) -> Result<(), Failure> {
        let Bounds {
            changes,
            change_octets,
            ..
        } = *self.bounds;
        self.octets = self.octets.saturating_add(change.octets());
        let of = |max, of| Err(Failure::Many { max, of });
        if self.list.len() >= changes {
            return of(changes, "changes");
        }
        if self.octets > change_octets {
            return of(change_octets, "octets of changes");
        }
        self.list.push(change);
        Ok(())
    }

    /// Removes fields before adding fields, as rspamd's own milter does.
    fn of_reply(&mut self, reply: &Reply, message: &[u8]) -> Result<(), Failure> {
        let milter = &reply.milter;
        for (name, orders) in &milter.remove_headers {
            self.remove(name, orders.as_slice(), message)?;
        }
        for (name, added) in &milter.add_headers {
            for added in added.as_slice() {
                self.add(name, added)?;
            }
        }
        match reply.action.as_str() {
            action if milter.no_action => self.add_text("X-Rspamd-Action", action)?,
            "add header" => {
                let name = milter.spam_header.as_deref().unwrap_or("X-Spam");
                self.add_text(name, "Yes")?;
            }
            "rewrite subject" => {
                if let Some(subject) = &reply.subject {
                    let value = Some(field_value(subject.as_bytes(), false)?);
                    let (name, index) = ("Subject".to_owned(), 1);
                    self.push(Change::ChangeHeader { index, name, value })?;
                }
            }
            _ => {}
        }
        self.of_envelope(milter)
    }

    fn of_envelope(&mut self, milter: &MilterReply) -> Result<(), Failure> {
        let checked = |text: &str| {
            let unknown = || Failure::Json("expected an address; found another text".to_owned());
            vere_milter::address(text.as_bytes()).ok_or_else(unknown)
        };
        let parameters = String::new;
        if let Some(from) = &milter.change_from {
            self.push(Change::ChangeFrom {
                address: checked(from)?,
                parameters: parameters(),
            })?;
        }
        for to in &milter.del_rcpt {
            self.push(Change::DeleteRecipient(checked(to)?))?;
        }
        for to in &milter.add_rcpt {
            self.push(Change::AddRecipient {
                address: checked(to)?,
                parameters: parameters(),
            })?;
        }
        Ok(())
    }

    fn add_text(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        self.add(name, &Added::Value(value.to_owned()))
    }

    fn add(&mut self, name: &str, added: &Added) -> Result<(), Failure> {
        let (value, order) = match added {
            Added::Value(value) => (value, None),
            Added::Ordered { value, order } => (value, *order),
        };
        let name = field_name(name.as_bytes())?;
        let value = field_value(value.as_bytes(), false)?;
        self.push(match order.and_then(|order| u32::try_from(order).ok()) {
            Some(index) => Change::InsertHeader { index, name, value },
            None => Change::AddHeader { name, value },
        })
    }

    /// A number counts fields of the name from 1, a negative number from the end, and 0 means all fields.
    fn remove(&mut self, name: &str, orders: &[i64], message: &[u8]) -> Result<(), Failure> {
        let name = field_name(name.as_bytes())?;
        let count = fields(message).filter(|field| field.is(&name)).count();
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        for order in orders {
            let numbers = match *order {
                0 => 1..=count,
                order if order < 0 => {
                    let number = count.saturating_add(1).saturating_add(order);
                    number..=number
                }
                order => order..=order,
            };
            for number in numbers.filter(|number| (1..=count).contains(number)) {
                let name = name.clone();
                let index = u32::try_from(number).unwrap_or(u32::MAX);
                let value = None;
                self.push(Change::ChangeHeader { index, name, value })?;
            }
        }
        Ok(())
    }
}

/// A text of at most `max` octets.
fn cut(mut text: String, max: usize) -> String {
    text.truncate(text.floor_char_boundary(max));
    text
}
