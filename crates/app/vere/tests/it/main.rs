//! The daemon from outside: `vere serve` on free loopback ports, real clients, real next hops.
//!
//! Every test has a separate system in a temporary directory and waits for events, never for a time. A test that
//! lacks a program or a right prints `skipped:` with the reason and passes.
//!
//! | variable | what it does |
//! |---|---|
//! | `VERE_FULL=1` | the long versions of the kill, fault and bad-input tests (`make soak`) |
//! | `VERE_COURIERS=1` | number of couriers of every system |
//! | `VERE_SEED` | the seed of the tests that have one, printed when they fail |
//! | `VERE_CORPUS` | the mbox with real mail, else `../shared/corpus/mail.mbox.zst` beside the repository |

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test fails by panicking; helpers are not seen as tests by the lint"
)]

mod accepted;
mod auth;
mod backup;
mod backup_repair;
mod backup_slow;
mod bad_input;
mod benchmarks;
mod clients;
mod clock;
mod commands;
mod copying;
mod couriers;
mod dane;
mod decoding;
mod delivery;
mod destinations;
mod dial;
mod dkim;
mod dmarc_reports;
mod dns_check;
mod dnsbl_hostile;
mod dnsbl_server;
mod doctor;
mod extensions;
mod fetch_memory;
mod filing;
mod filters;
mod forwarding;
mod front;
mod front_call_ahead;
mod front_lists;
mod front_long;
mod front_loops;
mod front_metrics;
mod front_screening;
mod front_tls;
mod gateways;
mod guides;
mod harness;
mod holds;
mod hostile_hops;
mod idle;
mod imap;
mod imap_bombs;
mod imap_clients;
mod imap_idle;
mod imap_views;
mod judging;
mod kill;
mod limits;
mod logins;
mod long_messages;
mod mail_log;
mod metrics;
mod mounts;
mod mounts_comfort;
mod mounts_content;
mod mounts_faults;
mod mounts_gap;
mod mounts_keys;
mod mounts_lead;
mod mounts_machines;
mod mounts_offline;
mod mounts_programs;
mod mounts_providers;
mod mounts_rebuild;
mod mounts_stress;
mod next_hops;
mod operate;
mod otlp;
mod pages;
mod parsing;
mod peers;
mod policies;
mod proxy;
mod quarantine;
mod quarantine_learning;
mod quarantine_queues;
mod queues;
mod quota;
mod received_reports;
mod records;
mod records_tls;
mod reload;
mod replica_absence;
mod replica_delays;
mod replica_disks;
mod replica_faults;
mod replica_network;
mod replica_register;
mod replica_slow;
mod replicas;
mod reports;
mod requiretls;
mod scripts;
mod sealing;
mod search;
mod second_machine;
mod sending;
mod sendmail;
mod smuggling;
mod spool_access;
mod spool_readers;
mod spool_tls;
mod status;
mod store_accounts;
mod store_check;
mod store_damage;
mod store_room;
mod tls;
mod tls_reports;
mod top;
mod transfer;
mod transfer_nul;
mod transfer_quota;
mod transfer_remote;
mod trouble;
mod tutorial;
mod undelete;
mod web;
mod web_acme;
mod x400;
