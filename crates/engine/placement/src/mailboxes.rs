//! The mailboxes of a volume in each account: numbers and names.

/// The mailbox of commits.
pub const LOG_MAILBOX: u16 = 1;
/// The mailbox of pages.
pub const PAGES_MAILBOX: u16 = 2;
/// The mailbox of key slots and facts.
pub const HEAD_MAILBOX: u16 = 3;
/// The first mailbox of packs.
pub const FIRST_DATA_MAILBOX: u16 = 16;

/// The name of a mailbox, relative to the volume's folder.
pub fn mailbox_name(mailbox: u16) -> String {
    match mailbox {
        LOG_MAILBOX => "log".to_owned(),
        PAGES_MAILBOX => "pages".to_owned(),
        HEAD_MAILBOX => "head".to_owned(),
        data => {
            let number = data.saturating_sub(FIRST_DATA_MAILBOX).saturating_add(1);
            format!("data-{number:04}")
        }
    }
}
