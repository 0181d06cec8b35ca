//! The bodies of the fuzz targets: a function for each decoder that takes any octets and panics when
//! the decoder breaks a promise.
//!
//! The workspace in `fuzz/` gives the functions to libFuzzer; the tests here run the functions with
//! octets from the same dictionaries, so that a stable toolchain checks the decoders on every run.
//!
//! A body checks more than the absence of panics: a decoded value encodes to an equal value, octets
//! in pieces mean the same as whole, memory stays within its limit, and no reply or message could be
//! read otherwise by another program.

#![allow(clippy::panic, reason = "a panic is how a target reports")]

mod archive;
mod attach;
mod authentication;
mod autodiscover;
mod backup_list;
mod ber;
mod choice;
mod disk;
mod dns_query;
mod dnsbl_data;
mod enrolment;
mod envelope;
mod filters;
mod greylist;
mod handoff_delivery;
mod handoff_question;
mod imap;
mod judge_facts;
mod judge_outline;
mod mail_log;
mod mailfs;
mod mailfs_local;
mod mailfs_rows;
mod mime_text;
mod order;
mod osi;
mod parsed;
mod report;
mod sasl;
mod search_segment;
mod signwire;
mod smtp;
mod smtp_handover;
mod spf;
mod spool_index;
mod spool_log;
mod spool_replay;
mod spoolwire;
mod text;
mod x400;

/// A decoder under test.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the binary in `fuzz/` and of its dictionary.
    pub name: &'static str,
    /// Takes any octets.
    pub run: fn(&[u8]),
    /// A dictionary in libFuzzer's form.
    pub dictionary: &'static str,
    /// First octets that reach deep into the decoder.
    pub seeds: &'static [&'static [u8]],
}

macro_rules! targets {
    ($($name:ident: $run:path, $seeds:expr;)*) => {
        /// All targets.
        pub const TARGETS: &[Target] = &[$(Target {
            name: stringify!($name),
            run: $run,
            dictionary: include_str!(concat!(
                "../../../../fuzz/dictionaries/", stringify!($name), ".dict"
            )),
            seeds: $seeds,
        }),*];
    };
}

targets! {
    smtp_server: smtp::server, smtp::SERVER_SEEDS;
    smtp_client: smtp::client, smtp::CLIENT_SEEDS;
    smtp_handover: smtp_handover::handover, smtp_handover::SEEDS;
    imap_server: imap::server, imap::SERVER_SEEDS;
    imap_client: imap::client, imap::CLIENT_SEEDS;
    smtp_reply: text::reply, text::REPLY_SEEDS;
    smtp_command: text::command, text::COMMAND_SEEDS;
    smtp_address: text::address, text::ADDRESS_SEEDS;
    proxy: text::proxy, text::PROXY_SEEDS;
    sasl_server: sasl::server, sasl::SERVER_SEEDS;
    sasl_client: sasl::client, sasl::CLIENT_SEEDS;
    spoolwire: spoolwire::frames, spoolwire::SEEDS;
    signwire: signwire::frames, signwire::SEEDS;
    enrolment: enrolment::run, enrolment::SEEDS;
    handoff_delivery: handoff_delivery::frame, handoff_delivery::SEEDS;
    handoff_question: handoff_question::frames, handoff_question::SEEDS;
    attach_server: attach::server, attach::SERVER_SEEDS;
    attach_client: attach::client, attach::CLIENT_SEEDS;
    dns_query: dns_query::packet, dns_query::SEEDS;
    spf: spf::policies, spf::SEEDS;
    authentication: authentication::messages, authentication::SEEDS;
    rspamd_answer: filters::rspamd, filters::RSPAMD_SEEDS;
    milter_answer: filters::milter, filters::MILTER_SEEDS;
    dnsbl_data: dnsbl_data::files, dnsbl_data::SEEDS;
    greylist: greylist::read, greylist::SEEDS;
    judge_facts: judge_facts::record, judge_facts::SEEDS;
    judge_outline: judge_outline::pieces, judge_outline::SEEDS;
    envelope: envelope::record, envelope::SEEDS;
    order: order::record, order::SEEDS;
    parsed: parsed::parsed, parsed::SEEDS;
    report: report::read, report::SEEDS;
    autodiscover: autodiscover::run, autodiscover::SEEDS;
    ber: ber::values, ber::SEEDS;
    osi_transport: osi::transport, osi::TRANSPORT_SEEDS;
    osi_session: osi::session, osi::SESSION_SEEDS;
    osi_association: osi::association, osi::ASSOCIATION_SEEDS;
    x400_apdu: x400::apdu, x400::APDU_SEEDS;
    x400_address: x400::address, x400::ADDRESS_SEEDS;
    mime_text: mime_text::decode, mime_text::SEEDS;
    mailfs_mail: mailfs::mail, mailfs::MAIL_SEEDS;
    mailfs_slot: mailfs::slot, mailfs::SLOT_SEEDS;
    mailfs_subject: mailfs::subject, mailfs::SUBJECT_SEEDS;
    mailfs_row: mailfs_rows::row, mailfs_rows::ROW_SEEDS;
    mailfs_page: mailfs_rows::page, mailfs_rows::PAGE_SEEDS;
    mailfs_journal: mailfs_local::journal, mailfs_local::JOURNAL_SEEDS;
    mailfs_local: mailfs_local::local, mailfs_local::LOCAL_SEEDS;
    mail_log: mail_log::open, mail_log::SEEDS;
    search_segment: search_segment::open, search_segment::SEEDS;
    spool_index: spool_index::open, spool_index::SEEDS;
    spool_log: spool_log::open, spool_log::SEEDS;
    archive_segment: archive::segment, archive::SEEDS;
    spool_replay: spool_replay::replay, spool_replay::SEEDS;
    backup_list: backup_list::list, backup_list::SEEDS;
}

/// Runs the target with this name.
///
/// # Panics
///
/// If the target does not exist, and if the target finds a fault.
pub fn run(name: &str, octets: &[u8]) {
    match TARGETS.iter().find(|target| target.name == name) {
        Some(target) => (target.run)(octets),
        None => panic!("no target {name}"),
    }
}

impl Target {
    /// The entries of the dictionary, without names and quotes.
    ///
    /// # Panics
    ///
    /// If an entry is malformed.
    #[must_use]
    pub fn words(&self) -> Vec<Vec<u8>> {
        let lines = self.dictionary.lines().map(str::trim);
        lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(word)
            .collect()
    }
}

/// Reads `name="value"` or `"value"` with the escapes `\\`, `\"` and `\xHH`.
fn word(line: &str) -> Vec<u8> {
    let quoted = line
        .split_once('"')
        .and_then(|(_, rest)| rest.strip_suffix('"'));
    let Some(quoted) = quoted else {
        panic!("malformed entry {line}");
    };
    let mut octets = Vec::new();
    let mut rest = quoted;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c != '\\' {
            octets.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        } else if let Some(escaped) = rest.strip_prefix(['\\', '"']) {
            octets.push(rest.as_bytes()[0]);
            rest = escaped;
        } else {
            let hex = rest.strip_prefix('x').and_then(|hex| hex.get(..2));
            match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
                Some(octet) => octets.push(octet),
                None => panic!("malformed escape in {line}"),
            }
            rest = &rest[3..];
        }
    }
    octets
}
