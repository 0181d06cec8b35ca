//! Lists the mailboxes of an account.

use std::collections::HashSet;

use vere_imap::client::{Command, Event, Listed, Response};

use super::bodies::Room;
use vere_accounts::Link;
use vere_process::failure::Failure;

/// The attribute of a name that is subscribed.
pub(super) const SUBSCRIBED: &str = "\\Subscribed";

/// Octets that the names of mailboxes may take; a server that has more to tell means no good.
const LISTED_OCTETS_MAX: usize = 64 << 20;

/// Lists the mailboxes, and says whether the server told which of them are subscribed.
pub(super) async fn list(link: &mut Link) -> Result<(Vec<Listed>, bool), Failure> {
    let mut listed = Vec::new();
    let extended = link.can("LIST-EXTENDED");
    let special_use = extended && link.can("SPECIAL-USE");
    let mut room = Room(LISTED_OCTETS_MAX);
    let mut hear = |event: Event<'_>| {
        if let Event::Said(Response::Listed(one)) = event {
            let attributes = one.attributes.iter().map(String::len).sum::<usize>();
            room.take(size_of::<Listed>() + one.name.len() + attributes)?;
            listed.push(one);
        }
        Ok(())
    };
    let list = Command::List {
        extended,
        special_use,
    };
    link.run(&list, &mut hear).await?;
    let tells_subscribed = extended || mark_subscribed(link, &mut listed).await?;
    Ok((listed, tells_subscribed))
}

/// Asks a server without LIST-EXTENDED which of its mailboxes are subscribed, and says whether it told.
async fn mark_subscribed(link: &mut Link, listed: &mut [Listed]) -> Result<bool, Failure> {
    let mut names = HashSet::new();
    let mut room = Room(LISTED_OCTETS_MAX);
    let mut hear = |event: Event<'_>| {
        if let Event::Said(Response::Listed(one)) = event
            && !one.has("\\Noselect")
        {
            room.take(size_of::<Vec<u8>>() + one.name.len())?;
            names.insert(one.name);
        }
        Ok(())
    };
    let token = link.send(&Command::Lsub);
    let status = link.wait(token, &mut hear).await?;
    let subscribed = listed.iter_mut().filter(|one| names.contains(&one.name));
    subscribed.for_each(|one| one.attributes.push(SUBSCRIBED.to_owned()));
    Ok(status.is_ok())
}
