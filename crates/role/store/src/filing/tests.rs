//! Filing into a real store, without the connection.

use vere_disk::mail_meta::FjallMeta;
use vere_ports::mail_meta::{Batch, MetaEngine as _, Partition, RowChange};
use vere_settings::Settings;
use vere_units::ByteSize;

use super::*;
use crate::files::Files;
use crate::filled;

struct Bench {
    store: MailStore,
    filing: Filing,
    _files: Files,
    _folder: tempfile::TempDir,
}

/// A store in which one account's list of mailboxes is nothing that can be read, and others hold two messages
/// at most.
fn bench() -> Bench {
    let folder = filled::folder();
    let mut meta = FjallMeta::open(&folder.path().join("meta"), ByteSize::mib(1)).unwrap();
    let unreadable = RowChange {
        key: vec![1],
        value: Some(vec![0xff]),
    };
    let batch = Batch {
        partition: Partition::Account(account("broken")),
        expected: 0,
        version: 1,
        clear: false,
        rows: vec![unreadable],
        hints: Vec::new(),
    };
    meta.apply(&[batch], 0).unwrap();
    drop(meta);
    let text = "version = 1\nhostname = \"mx.example.org\"\n[quota]\nmessages_max = 2\n";
    let settings = Settings::parse(text, "vere.toml").unwrap();
    let files = filled::lock(folder.path());
    Bench {
        store: files.open().unwrap(),
        filing: Filing {
            directory: filled::directory(&["ann", "bob", "broken", "eve", "full"].map(account)),
            prepared: Prepared::new(b"Subject: a\r\n\r\nb\r\n", b"parsed", &[1]).unwrap(),
            return_path: Box::default(),
            operation: OperationId([0; 16]),
            to_junk: false,
            quotas: Arc::new(Quotas::new(&settings).unwrap()),
            figures: Figures::default(),
        },
        _files: files,
        _folder: folder,
    }
}

fn account(name: &str) -> AccountName {
    AccountName::parse(&format!("{name}@demo.test")).unwrap()
}

impl Bench {
    /// Files the message for recipients that stand for these accounts, as a separate transaction.
    fn file(&mut self, recipients: &[&[&str]]) -> Vec<Result<(), Refusal>> {
        let of = |name: &&str| Recipient {
            account: account(name),
            tag: None,
        };
        let resolved = recipients
            .iter()
            .map(|members| Ok(members.iter().map(of).collect()))
            .collect();
        self.filing.operation.0[0] += 1;
        let filed = self.filing.run(&mut self.store, resolved).unwrap();
        filled::sync(&mut self.store);
        filed.when(self.store.synced()).unwrap()
    }

    fn holds(&mut self, name: &str) -> u64 {
        self.store.quota(&account(name)).unwrap().messages
    }
}

#[test]
fn an_account_that_cannot_be_read_refuses_for_itself_alone() {
    let mut bench = bench();
    let filed = bench.file(&[&["ann"], &["broken"], &["bob"]]);
    assert_eq!(filed, [Ok(()), Err(Refusal::LocalError), Ok(())]);
    assert_eq!((bench.holds("ann"), bench.holds("bob")), (1, 1));
    assert!(bench.store.quota(&account("broken")).is_err());
}

/// What is counted before and after filing, for the warning, is asked of every account.
#[test]
fn what_an_account_holds_is_told_of_those_that_can_be_read() {
    let mut bench = bench();
    bench.file(&[&["ann"]]);
    let names = [account("ann"), account("broken")];
    let held = bench.filing.quotas.held(&mut bench.store, names.iter());
    let messages: Vec<_> = held
        .iter()
        .map(|(name, held)| (name, held.messages))
        .collect();
    assert_eq!(messages, [(&names[0], 1)]);
}

#[test]
fn a_full_member_of_an_alias_does_not_multiply_the_mail_of_the_others() {
    let mut bench = bench();
    bench.file(&[&["full"]]);
    bench.file(&[&["full"]]);
    for _ in 0..3 {
        let filed = bench.file(&[&["ann", "full", "bob"], &["eve"]]);
        let full = Err(Refusal::MailboxFull);
        // Eve has room for two.
        assert_eq!(filed[0], full);
    }
    let held = ["ann", "bob", "full", "eve"].map(|name| bench.holds(name));
    assert_eq!(held, [0, 0, 2, 2]);
    // Who gets it for himself gets it all the same, and once.
    assert_eq!(
        bench.file(&[&["ann", "full"], &["ann"], &["ann", "bob"]]),
        [Err(Refusal::MailboxFull), Ok(()), Ok(())]
    );
    assert_eq!((bench.holds("ann"), bench.holds("bob")), (1, 1));
}

/// What a gateway sends again, because it died before it could note the answer, has its place already.
#[test]
fn a_message_that_is_handed_over_once_more_is_filed_once_though_the_account_is_full_now() {
    let mut bench = bench();
    bench.file(&[&["ann"]]);
    for _ in 0..2 {
        // Each counts the operation on by one.
        bench.filing.operation.0[0] = 7;
        assert_eq!(bench.file(&[&["ann", "bob"]]), [Ok(())]);
        assert_eq!((bench.holds("ann"), bench.holds("bob")), (2, 1));
    }
    assert_eq!(bench.file(&[&["ann"]]), [Err(Refusal::MailboxFull)]);
}

#[test]
fn the_field_of_a_server_that_names_its_message_makes_it_known_again() {
    let carried = [
        "Received: from a ([127.0.0.1])\r\n\tby mx.example.org with ESMTP\r\n\tid 01HZX; Tue, 24 Nov 2026\r\nA: b\r\n\r\n",
        "received: by x ID y\n",
    ];
    for text in carried {
        assert!(Top::of(text.as_bytes()).is_carried, "{text}");
    }
    let others = [
        "",
        "\r\nReceived: by x id y\r\n",
        "Received: by x id\r\n",
        "Received: by x; id y\r\n",
        "Received: from identity by x\r\n",
        "Subject: id y\r\nReceived: by x id y\r\n",
    ];
    for text in others {
        assert!(!Top::of(text.as_bytes()).is_carried, "{text}");
    }
}
