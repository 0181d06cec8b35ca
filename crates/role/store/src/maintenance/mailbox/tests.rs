use clap::{CommandFactory as _, Parser};
use vere_units::Timestamp;

use super::show;
use super::*;
use crate::mailboxes::BackIn;

#[derive(Debug, Parser)]
struct Only {
    #[command(subcommand)]
    command: MailboxCommand,
}

fn parsed(line: &str) -> Result<MailboxCommand, clap::Error> {
    let words = std::iter::once("mailbox").chain(line.split(' '));
    Only::try_parse_from(words).map(|only| only.command)
}

#[test]
fn messages_to_bring_back_have_to_be_named() {
    Only::command().debug_assert();
    for right in [
        "undelete a@x.org INBOX --uid 1,2",
        "undelete a@x.org --all --to Back --dry-run",
        "undelete a@x.org Old --since 2h --message-id <a@b> --message-id c@d",
        "expunged a@x.org --since 7d --limit 5 --skip 10",
        "purge a@x.org --yes",
    ] {
        assert!(parsed(right).is_ok(), "{right}");
    }
    for wrong in [
        "undelete a@x.org",
        "undelete a@x.org INBOX",
        "undelete a@x.org --uid 1",
        "undelete a@x.org --all --since 2h",
        "undelete a --all",
        "expunged a@x.org --since 2",
    ] {
        assert!(parsed(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn texts_of_strangers_stay_in_their_line() {
    let row = ExpungedRow {
        mailbox: "Größe und Maß".to_owned(),
        mailbox_deleted: true,
        uid: 7,
        size: 2_048,
        arrived: 0,
        expunged: 1_000,
        flags: Vec::new(),
        from: Some("ann@example.org".to_owned()),
        subject: Some("=?utf-8?q?Gr=C3=BC=C3=9Fe?= \u{1b}[31m\r\nX: y".to_owned()),
        message_id: None,
    };
    let text = show::expunged(&[row], Timestamp::from_millis(121_000), Some(1));
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "Größe und Maß (deleted)");
    assert!(lines[2].contains("2 min ago"), "{text}");
    assert!(lines[2].contains("Grüße"), "{text}");
    assert!(!text.contains('\u{1b}'));
    assert_eq!(lines[3..], ["there are more: --skip 1"]);
}

#[test]
fn pages_add_up() {
    let back = |mailbox: &str| BackIn {
        mailbox: mailbox.to_owned(),
        messages: 2,
        octets: 10,
        made: false,
    };
    let page = |mailboxes: Vec<BackIn>| UndeletedPage {
        messages: 2 * mailboxes.len() as u64,
        octets: 10 * mailboxes.len() as u64,
        mailboxes,
        ..UndeletedPage::default()
    };
    let mut all = page(vec![back("INBOX")]);
    all.join(page(vec![back("INBOX"), back("Alte Post")]));
    assert_eq!(
        show::undeleted(&all, false),
        "6 messages (30 B) are back: 4 in INBOX, 2 in Alte Post\n"
    );
    assert_eq!(
        show::undeleted(&UndeletedPage::default(), false),
        "no expunged message matches; nothing is changed\n"
    );
    all.octets_left = Some(5);
    assert_eq!(
        show::over(&all),
        "over quota: 6 messages (30 B) would come back, the quota leaves 5 B; nothing was changed"
    );
}
