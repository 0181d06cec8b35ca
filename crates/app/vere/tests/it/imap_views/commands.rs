//! The commands of a client.

use super::Random;
use super::client::{Asked, Client, Kind};
use super::view::Saying;
use super::world::{World, text};

/// Flags to set and remove.
const FLAGS: [&str; 6] = [
    "\\Seen",
    "\\Flagged",
    "\\Deleted",
    "\\Answered",
    "$Forwarded",
    "work",
];

impl Client {
    pub(super) fn append(&mut self, random: &mut Random, world: &mut World) {
        let mailbox = random.one_of(&world.mailboxes).clone();
        let flag = *random.one_of(&FLAGS);
        let flags = if random.percent(50) { flag } else { "" };
        let number = world.next_text();
        let message = format!("Subject: {number}\r\n\r\n{}", text(number));
        self.send(
            format!(
                "APPEND {mailbox} ({flags}) {{{}+}}\r\n{message}",
                message.len()
            ),
            Saying::All,
            Asked::Append {
                mailbox,
                text: number,
                deleted: flags == "\\Deleted",
            },
        );
    }

    /// Some messages, by number or by UID, as the beginning of a command; and their UIDs.
    pub(super) fn some(
        &self,
        random: &mut Random,
        all_known: bool,
    ) -> Option<(bool, String, Vec<u32>)> {
        let view = &self.open.as_ref()?.view;
        if view.messages.is_empty() {
            return None;
        }
        let by_uid = random.percent(50);
        let mut chosen: Vec<usize> = (0..=random.below(3))
            .map(|_| random.below(view.messages.len()))
            .collect();
        chosen.sort_unstable();
        chosen.dedup();
        let uids: Vec<Option<u32>> = chosen.iter().map(|at| view.messages[*at].uid).collect();
        let known: Vec<u32> = uids.iter().copied().flatten().collect();
        if (by_uid || all_known) && known.len() < chosen.len() {
            return None;
        }
        let set: Vec<String> = match by_uid {
            true => known.iter().map(u32::to_string).collect(),
            false => chosen.iter().map(|at| (at + 1).to_string()).collect(),
        };
        Some((by_uid, set.join(","), known))
    }

    pub(super) fn may_write(&self) -> Option<String> {
        let open = self.open.as_ref()?;
        (!open.read_only).then(|| open.mailbox.clone())
    }

    pub(super) fn store(&mut self, random: &mut Random, world: &mut World) {
        let (Some(mailbox), Some((by_uid, set, uids))) =
            (self.may_write(), self.some(random, true))
        else {
            return;
        };
        let flag = *random.one_of(&FLAGS);
        let sign = *random.one_of(&["+", "-", ""]);
        if flag == "\\Deleted" && sign != "-" {
            world.doom(&mailbox, uids.iter().copied());
        }
        let silent = if random.percent(40) { ".SILENT" } else { "" };
        let seen = self.open.as_ref().map_or(0, |open| open.view.seen_mod_seq);
        let unless = match self.has_mod_seqs() && random.percent(30) {
            true => format!(" (UNCHANGEDSINCE {seen})"),
            false => String::new(),
        };
        let verb = if by_uid { "UID STORE" } else { "STORE" };
        let command = format!("{verb} {set}{unless} {sign}FLAGS{silent} ({flag})");
        let asked = match silent {
            "" => Asked::Other,
            _ => Asked::Silent { uids },
        };
        self.send(command, numbered(by_uid), asked);
    }

    pub(super) fn expunge(&mut self, random: &mut Random, world: &mut World) {
        if self.may_write().is_none() {
            return;
        }
        world.count("removal");
        let some = self.some(random, true);
        let command = match some.filter(|(by_uid, ..)| *by_uid) {
            Some((_, set, _)) => format!("UID EXPUNGE {set}"),
            None => "EXPUNGE".to_owned(),
        };
        self.send(command, Saying::All, Asked::Other);
    }

    pub(super) fn copy(&mut self, random: &mut Random, world: &mut World) {
        let Some((by_uid, set, uids)) = self.some(random, true) else {
            return;
        };
        let mailbox = self.may_write();
        let moved = mailbox.filter(|_| random.percent(50));
        let to = random.one_of(&world.mailboxes).clone();
        let verb = match (&moved, by_uid) {
            (Some(_), true) => "UID MOVE",
            (Some(_), false) => "MOVE",
            (None, true) => "UID COPY",
            (None, false) => "COPY",
        };
        if let Some(mailbox) = &moved {
            world.doom(mailbox, uids);
        }
        self.send(
            format!("{verb} {set} {to}"),
            Saying::All,
            Asked::Copy { to },
        );
    }

    pub(super) fn fetch(&mut self, random: &mut Random) {
        let Some((by_uid, set, _)) = self.some(random, false) else {
            return;
        };
        let seen = self.open.as_ref().map_or(0, |open| open.view.mod_seq);
        let command = match random.below(4) {
            0 if self.kind == Kind::Qresync && seen > 0 => {
                let command = format!("UID FETCH 1:* (FLAGS) (CHANGEDSINCE {seen} VANISHED)");
                return self.send(command, Saying::All, Asked::Other);
            }
            0 | 1 => format!("FETCH {set} (UID FLAGS)"),
            _ => format!("FETCH {set} (UID BODY.PEEK[TEXT])"),
        };
        let by = if by_uid { "UID " } else { "" };
        self.send(format!("{by}{command}"), numbered(by_uid), Asked::Other);
    }

    pub(super) fn search(&mut self, random: &mut Random) {
        let by_uid = random.percent(50);
        let key = *random.one_of(&["ALL", "DELETED", "SEEN", "KEYWORD work", "UNFLAGGED"]);
        match by_uid {
            true => self.send(format!("UID SEARCH {key}"), Saying::All, Asked::Other),
            false => self.send(format!("SEARCH {key}"), Saying::Numbered, Asked::Search),
        }
    }

    pub(super) fn close(&mut self, random: &mut Random) {
        let verb = *random.one_of(&["CLOSE", "UNSELECT"]);
        self.send(verb.to_owned(), Saying::All, Asked::Close);
    }
}

/// What may be said in answer to a command by number, or by UID.
fn numbered(by_uid: bool) -> Saying {
    if by_uid {
        Saying::All
    } else {
        Saying::Numbered
    }
}
