//! The mailboxes of a volume in each account: numbers and names.

/// The mailbox of commits.
pub const LOG_MAILBOX: u16 = 1;
/// The mailbox of pages.
pub const PAGES_MAILBOX: u16 = 2;
/// The mailbox of key slots and facts.
pub const HEAD_MAILBOX: u16 = 3;
/// The mailbox of copies of commits, on further accounts. A copy has a mailbox of its own, so that nobody takes a copy for the log
/// that decides the order.
pub const LOG_COPY_MAILBOX: u16 = 4;
/// The mailbox of copies of pages, on further accounts.
pub const PAGES_COPY_MAILBOX: u16 = 5;
/// The first mailbox of packs.
pub const FIRST_DATA_MAILBOX: u16 = 16;

/// The name of a mailbox, relative to the volume's folder.
pub fn mailbox_name(mailbox: u16) -> String {
    match mailbox {
        LOG_MAILBOX => "log".to_owned(),
        PAGES_MAILBOX => "pages".to_owned(),
        HEAD_MAILBOX => "head".to_owned(),
        LOG_COPY_MAILBOX => "log-copy".to_owned(),
        PAGES_COPY_MAILBOX => "pages-copy".to_owned(),
        data => {
            let number = data.saturating_sub(FIRST_DATA_MAILBOX).saturating_add(1);
            format!("data-{number:04}")
        }
    }
}

/// Whether a mailbox has commits or pages.
pub const fn is_history(mailbox: u16) -> bool {
    matches!(
        mailbox,
        LOG_MAILBOX | PAGES_MAILBOX | LOG_COPY_MAILBOX | PAGES_COPY_MAILBOX
    )
}

/// The mailbox of copies of the mails of a mailbox.
pub const fn copy_of(mailbox: u16) -> u16 {
    match mailbox {
        LOG_MAILBOX => LOG_COPY_MAILBOX,
        _ => PAGES_COPY_MAILBOX,
    }
}
