//! The measured tasks of every system, and the bars of our store.

use crate::row::Bar::{self, RatioMax, RatioMin, ValueMax};

/// The Postfix whose Maildirs our store is compared with.
pub(super) const POSTFIX_MAILDIR: &str = "postfix maildir";

/// The peer of a comparison with our store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    /// The best of all.
    Best,
    /// The best of the exactly searching systems; and Cyrus with Xapian, where both find the same messages.
    Exact,
    /// A single system.
    Only(&'static str),
}

/// A figure.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    /// Whether a larger figure is better.
    pub(super) more: bool,
    pub(super) bar: Option<Bar>,
    pub(super) beside: Beside,
}

impl Task {
    /// The figure, compared with a single system.
    const fn beside(self, peer: &'static str) -> Self {
        Self {
            beside: Beside::Only(peer),
            ..self
        }
    }
}

const fn task(name: &'static str, unit: &'static str, bar: Option<Bar>) -> Task {
    Task {
        name,
        unit,
        more: false,
        bar,
        beside: Beside::Best,
    }
}

/// A time.
const fn time(name: &'static str) -> Task {
    task(name, "ms", None)
}

/// A time whose bar is a part of the best peer's time.
const fn part(name: &'static str, limit: f64) -> Task {
    task(name, "ms", Some(RatioMax(limit)))
}

/// A search of text.
const fn search(name: &'static str) -> Task {
    Task {
        beside: Beside::Exact,
        ..part(name, 0.05)
    }
}

/// A figure whose larger value is better, in `unit`.
const fn rate(name: &'static str, unit: &'static str, bar: Option<Bar>) -> Task {
    Task {
        more: true,
        ..task(name, unit, bar)
    }
}

/// A time with a bar for its value: a search for a word that no message contains.
const fn absent(name: &'static str) -> Task {
    Task {
        bar: Some(ValueMax(5.0)),
        ..search(name)
    }
}

/// Whether a task is a search of text, the comparison for a system that finds only words.
pub(super) fn is_of_text(task: &str) -> bool {
    let own = TASKS.iter().find(|one| one.name == task);
    own.is_some_and(|own| own.beside == Beside::Exact)
}

/// The peer for disk use and for added messages.
const MDBOX: &str = "dovecot mdbox";

/// The measured tasks of every system.
pub(super) const TASKS: &[Task] = &[
    task("refused", "messages", Some(ValueMax(0.0))),
    rate("filled", "messages/s", None),
    task("filled, CPU", "us/message", None),
    task("filled, written", "MiB", None),
    task("indexed apart", "s", None),
    task("disk", "MiB", None),
    task("disk, mail", "MiB", Some(RatioMax(1.0))).beside(MDBOX),
    task("disk, index", "MiB", None),
    task("disk, room ahead", "MiB", None),
    part("first SELECT", 1.0),
    part("list", 0.5),
    part("four fields", 0.5),
    part("all headers", 0.4),
    part("FROM", 0.2),
    part("SUBJECT", 0.2),
    part("SENTSINCE", 0.5),
    part("several fields", 0.2),
    absent("TEXT absent"),
    search("TEXT 0.1 %"),
    search("TEXT 1 %"),
    search("TEXT 10 %"),
    search("TEXT 50 %"),
    absent("BODY absent"),
    search("BODY 0.1 %"),
    search("BODY 1 %"),
    search("BODY 10 %"),
    search("BODY 50 %"),
    search("phrase 0.1 %"),
    search("phrase 1 %"),
    search("phrase 10 %"),
    search("phrase 0.1 %, first time"),
    search("phrase 1 %, first time"),
    search("phrase 10 %, first time"),
    search("part of a word 0.1 %"),
    search("part of a word 1 %"),
    search("part of a word 10 %"),
    search("1 character"),
    search("2 characters"),
    search("3 characters"),
    search("10 characters"),
    search("100 characters"),
    search("1,000 characters"),
    time("all questions, CPU"),
    task("memory after them", "MiB", None),
    part("small account: list", 0.5),
    part("small account: four fields", 0.5),
    part("small account: FROM", 0.2),
    search("small account: TEXT 1 %"),
    rate("10 clients at once", "answers/s", None),
    time("cold: list"),
    time("cold: all headers"),
    time("cold: FROM"),
    time("cold: TEXT 1 %"),
    part("expunge 1 %", 0.7),
    part("expunge 20 %", 0.7),
    rate("APPEND, 1 connection", "messages/s", Some(RatioMin(1.2))).beside(MDBOX),
    rate("APPEND, 10 connections", "messages/s", Some(RatioMin(4.0))).beside(MDBOX),
    task("IDLE notice", "ms", Some(ValueMax(1.0))),
    rate("delivered to 15", "mailboxes/s", None),
    task("written by delivery to 15", "KiB/message", None),
    task("work of delivery to 15", "us/message", None),
    task("parsing by delivery to 15", "us/message", None),
    task("indexing by delivery to 15", "us/message", None),
    task("memory before login", "KiB", Some(ValueMax(16.0))),
    task("memory of IDLE", "KiB", Some(ValueMax(64.0))),
    time("all IDLE told"),
];

/// The tasks of our store and of Postfix, which answers no questions.
pub(super) const DELIVERY_TASKS: &[Task] = &[
    rate("delivery, 1 recipient", "mailboxes/s", None),
    rate("delivery, 3 recipients", "mailboxes/s", None),
    rate("delivery, 5 recipients", "mailboxes/s", None),
    rate(
        "delivery, 15 recipients",
        "mailboxes/s",
        Some(RatioMin(5.0)),
    )
    .beside(POSTFIX_MAILDIR),
    task("written, 1 recipient", "KiB/message", None),
    task("written, 3 recipients", "KiB/message", None),
    task("written, 5 recipients", "KiB/message", None),
    task("written, 15 recipients", "KiB/message", Some(RatioMax(0.1))).beside(POSTFIX_MAILDIR),
];
