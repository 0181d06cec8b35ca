//! UID FETCH of parts of a mail's body.

use std::fmt::Write as _;

use bytes::Bytes;
use vere_imap::client::{Command, Status};
use vere_ports::mail_accounts::{Answer, Fault, Part, RequestId};

use crate::fault;
use crate::wire::Wire;
use crate::work::{After, Mail, Opened, Task, WHOLE, opened, same};

/// The name of the text of a message, of which parts are read.
const TEXT: &str = "BODY[TEXT]";

/// Parts of a mail to read.
#[derive(Debug)]
pub(crate) struct Read {
    id: RequestId,
    mailbox: String,
    uid_validity: u32,
    uid: u32,
    parts: Vec<Part>,
    /// The different parts, with the received octets; a part without an end for the whole body.
    wanted: Vec<(Part, Option<Bytes>)>,
    selection: Option<u64>,
    /// Whether the mailbox was opened by the request itself.
    again: bool,
    /// Whether the server gave more octets than a part has.
    is_longer: bool,
}

impl Read {
    pub(crate) fn new(
        id: RequestId,
        mailbox: String,
        uid_validity: u32,
        uid: u32,
        parts: Vec<Part>,
    ) -> Self {
        let whole = Part {
            offset: 0,
            length: u32::MAX,
        };
        let mut wanted: Vec<(Part, Option<Bytes>)> = Vec::new();
        for part in &parts {
            if !wanted.iter().any(|(own, _)| own == part) {
                wanted.push((*part, None));
            }
        }
        if parts.is_empty() {
            wanted.push((whole, None));
        }
        Self {
            id,
            mailbox,
            uid_validity,
            uid,
            parts,
            wanted,
            selection: None,
            again: false,
            is_longer: false,
        }
    }

    fn send(&mut self, fresh: bool, wire: &mut Wire) {
        let before = wire.newest();
        let number = wire.select(&self.mailbox, fresh);
        // A mailbox opened by the request shows every earlier mail.
        self.again = number != before;
        self.selection = Some(number);
        let mut items = "(UID".to_owned();
        if self.parts.is_empty() {
            // A server knows the length of a message, and may have to count through the header and the text for theirs.
            items.push_str(" BODY.PEEK[]");
        } else {
            for (part, _) in &self.wanted {
                // Writing to a string does not fail.
                let _ = write!(items, " BODY.PEEK[TEXT]<{}.{}>", part.offset, part.length);
            }
        }
        items.push(')');
        let command = Command::Fetch {
            first: self.uid,
            last: Some(self.uid),
            items: items.into(),
        };
        wire.send(0, &command);
    }

    fn answer(&self) -> Result<Answer, Fault> {
        let octets = |part: &Part| {
            let same = self.wanted.iter().find(|(own, _)| own == part);
            same.and_then(|(_, octets)| octets.clone())
        };
        let all: Option<Vec<Bytes>> = match self.parts.as_slice() {
            [] => self
                .wanted
                .iter()
                .map(|(_, octets)| octets.clone())
                .collect(),
            parts => parts.iter().map(octets).collect(),
        };
        let all = all.ok_or_else(|| Fault::Refused("a part of the mail is missing".to_owned()))?;
        match self.is_longer {
            false => Ok(Answer::Read(all)),
            true => Err(Fault::Refused("a part is longer than asked for".to_owned())),
        }
    }
}

/// The text of a message: the octets behind the empty line. Servers may have line ends of LF alone.
fn text(message: &Bytes) -> Bytes {
    let mut behind = 0_usize;
    for line in message.split_inclusive(|octet| *octet == b'\n') {
        behind = behind.saturating_add(line.len());
        if matches!(line, b"\n" | b"\r\n") {
            return message.slice(behind..);
        }
    }
    Bytes::new()
}

impl Task for Read {
    fn begin(&mut self, wire: &mut Wire) -> After {
        // A mail newer than the selection may not show.
        let newer = wire
            .open(&self.mailbox)
            .is_some_and(|open| self.uid >= open.uid_next);
        self.send(newer, wire);
        After::Waits
    }

    fn ended(&mut self, _step: usize, status: &Status, wire: &mut Wire) -> After {
        let ends = |answer| After::Ends(vec![(self.id, answer)]);
        let seen = match opened(wire, self.selection) {
            Opened::Waits => return ends(Err(Fault::Refused("SELECT has no answer".to_owned()))),
            Opened::Failed(fault) => return ends(Err(fault)),
            Opened::Missing => {
                return ends(same(self.uid_validity, 0).map(|()| Answer::Gone));
            }
            Opened::Open(open) => {
                if let Err(fault) = same(self.uid_validity, open.uid_validity) {
                    return ends(Err(fault));
                }
                self.uid < open.uid_next
            }
        };
        let none = self.wanted.iter().all(|(_, octets)| octets.is_none());
        if !status.is_ok() {
            let gone = status
                .code
                .as_ref()
                .is_some_and(|code| code.is("EXPUNGEISSUED"));
            return match gone {
                true => ends(Ok(Answer::Gone)),
                false => ends(Err(fault::of(status))),
            };
        }
        if !none {
            return ends(self.answer());
        }
        if !seen && !self.again {
            self.send(true, wire);
            return After::Waits;
        }
        ends(Ok(Answer::Gone))
    }

    fn fetched(&mut self, mail: &Mail) -> bool {
        if mail.uid != self.uid {
            return false;
        }
        let mut took = false;
        for (name, origin, octets) in &mail.sections {
            let offset = origin.unwrap_or(0);
            let expected = if self.parts.is_empty() { WHOLE } else { TEXT };
            if name == expected
                && let Some((part, place)) = self
                    .wanted
                    .iter_mut()
                    .find(|(part, place)| place.is_none() && part.offset == offset)
            {
                // Octets that nobody asked for are not kept while the answer waits for other parts.
                let is_asked = octets.len() <= usize::try_from(part.length).unwrap_or(usize::MAX);
                self.is_longer |= !is_asked;
                *place = Some(match (is_asked, self.parts.is_empty()) {
                    (true, true) => text(octets),
                    (true, false) => octets.clone(),
                    (false, _) => Bytes::new(),
                });
                took = true;
            }
        }
        took
    }

    fn mailbox(&self) -> Option<&str> {
        Some(&self.mailbox)
    }

    fn selection(&self) -> Option<u64> {
        self.selection
    }

    fn reads(&self) -> bool {
        true
    }
}
