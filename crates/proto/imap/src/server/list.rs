//! LIST and LSUB (RFC 9051 section 6.3.9, RFC 5258, RFC 5819, RFC 6154).

use std::collections::{BTreeMap, VecDeque};

use crate::command::{ListCommand, ListReturn, ListSelection, StatusItem};
use crate::write;

use super::answer::{MailboxEntry, Status};
use super::pattern::Pattern;
use super::question::Question;
use super::refusal::Refusal;
use super::{About, Server};

/// A LIST or LSUB under way.
#[derive(Debug)]
pub(super) struct ListWork {
    tag: String,
    lsub: bool,
    patterns: Vec<Pattern>,
    /// Whether the pattern of LSUB ends with `%`.
    stops: bool,
    selection: ListSelection,
    returns: ListReturn,
    /// Names not written yet.
    waiting: VecDeque<(String, Shown)>,
    /// The mailbox written last, whose STATUS follows directly: clients pair neighbours (RFC 5819).
    asked: String,
}

/// The attributes of a listed name.
#[derive(Debug, Default, Clone, Copy)]
struct Shown {
    exists: bool,
    subscribed: bool,
    special_use: Option<&'static str>,
    has_children: bool,
    /// A subscribed mailbox below the name that no pattern shows.
    subscribed_below: bool,
}

impl Server {
    pub(super) fn list(&mut self, tag: String, command: ListCommand) {
        // An empty pattern asks for the hierarchy separator (RFC 9051 section 6.3.9).
        if command.selection.is_none() && command.patterns.iter().all(String::is_empty) {
            self.output.line("* LIST (\\Noselect) \"/\" \"\"");
            return self.complete(tag, "OK done");
        }
        let selection = command.selection.unwrap_or_default();
        let mut returns = command.returns.unwrap_or_default();
        returns.subscribed |= selection.subscribed;
        let patterns = command.patterns.iter();
        let patterns = patterns.map(|pattern| format!("{}{pattern}", command.reference));
        let work = ListWork {
            tag,
            lsub: false,
            patterns: patterns.map(|pattern| Pattern::new(&pattern)).collect(),
            stops: false,
            selection,
            returns,
            waiting: VecDeque::new(),
            asked: String::new(),
        };
        self.ask(Question::Mailboxes, About::List(work));
    }

    pub(super) fn lsub(&mut self, tag: String, reference: &str, pattern: &str) {
        let work = ListWork {
            tag,
            lsub: true,
            patterns: vec![Pattern::new(&format!("{reference}{pattern}"))],
            stops: pattern.ends_with('%'),
            selection: ListSelection {
                subscribed: true,
                recursive_match: true,
                ..ListSelection::default()
            },
            returns: ListReturn::default(),
            waiting: VecDeque::new(),
            asked: String::new(),
        };
        self.ask(Question::Mailboxes, About::List(work));
    }

    pub(super) fn list_answered(
        &mut self,
        mut work: ListWork,
        result: Result<Vec<MailboxEntry>, Refusal>,
    ) {
        let entries = match result {
            Ok(entries) => entries,
            Err(refusal) => return self.no(work.tag, refusal),
        };
        let mut places = Vec::new();
        for (name, shown) in tree(&entries, |name| work.fits(name, &mut places)) {
            if work.shows(name, shown, &mut places) {
                work.waiting.push_back((name.to_owned(), shown));
            }
        }
        self.tell_names(work);
    }

    /// Tells names up to the first of which numbers are wanted too.
    fn tell_names(&mut self, mut work: ListWork) {
        while let Some((name, shown)) = work.waiting.pop_front() {
            self.tell_name(&work, &name, shown);
            if shown.exists && !work.returns.status.is_empty() {
                work.asked.clone_from(&name);
                let question = Question::Status {
                    mailbox: name,
                    deleted_octets: work.returns.status.contains(&StatusItem::DeletedStorage),
                };
                return self.ask(question, About::ListStatus(work));
            }
        }
        self.complete(work.tag, "OK done");
    }

    pub(super) fn list_status_answered(&mut self, work: ListWork, result: Result<Status, Refusal>) {
        // A mailbox removed in the meantime has no STATUS.
        if let Ok(status) = result {
            let items: Vec<StatusItem> = work.returns.status.clone();
            self.tell_status(&work.asked, &items, &status);
        }
        self.tell_names(work);
    }

    fn tell_name(&mut self, work: &ListWork, name: &str, shown: Shown) {
        let mut attributes = Vec::new();
        if work.lsub {
            if !shown.subscribed || !shown.exists {
                attributes.push("\\Noselect");
            }
        } else {
            if !shown.exists {
                attributes.push("\\NonExistent");
                attributes.push("\\Noselect");
            }
            if shown.subscribed && work.returns.subscribed {
                attributes.push("\\Subscribed");
            }
            attributes.push(if shown.has_children {
                "\\HasChildren"
            } else {
                "\\HasNoChildren"
            });
        }
        let special_use = shown.special_use.map(|name| format!("\\{name}"));
        attributes.extend(special_use.as_deref().filter(|_| !work.lsub));
        let command = if work.lsub { "LSUB" } else { "LIST" };
        self.output
            .text(&format!("* {command} ({}) \"/\" ", attributes.join(" ")));
        write::mailbox(self.output.buffer(), name, self.enabled.rev2);
        // RFC 5258 section 3.5: why a name that is not subscribed itself is shown.
        let child_info = work.selection.recursive_match && shown.subscribed_below && !work.lsub;
        self.output.line(if child_info {
            " (\"CHILDINFO\" (\"SUBSCRIBED\"))"
        } else {
            ""
        });
    }
}

impl ListWork {
    fn fits(&self, name: &str, places: &mut Vec<u64>) -> bool {
        let mut patterns = self.patterns.iter();
        patterns.any(|pattern| pattern.fits(name, places))
    }

    fn shows(&self, name: &str, shown: Shown, places: &mut Vec<u64>) -> bool {
        if !self.fits(name, places) {
            return false;
        }
        let recursive = self.selection.recursive_match && shown.subscribed_below;
        if self.selection.subscribed && !(shown.subscribed || recursive) {
            return false;
        }
        // LSUB shows a parent only where a pattern with % stops at it.
        if self.lsub && !shown.subscribed && !self.stops {
            return false;
        }
        if self.selection.special_use && shown.special_use.is_none() {
            return false;
        }
        shown.exists || self.selection.subscribed || shown.has_children
    }
}

/// All names in order, including names without a mailbox that are parents of mailboxes. The subscribed children of a
/// name are reported if the client does not see the children themselves (RFC 5258 section 3.5).
fn tree(entries: &[MailboxEntry], mut is_seen: impl FnMut(&str) -> bool) -> BTreeMap<&str, Shown> {
    let mut names: BTreeMap<&str, Shown> = BTreeMap::new();
    for entry in entries {
        let own = names.entry(&entry.name).or_default();
        own.exists |= entry.exists;
        own.subscribed |= entry.subscribed;
        own.special_use = own.special_use.or(entry.special_use);
        let is_hidden = entry.subscribed && !is_seen(&entry.name);
        for (index, _) in entry.name.match_indices('/') {
            let parent = names
                .entry(entry.name.get(..index).unwrap_or_default())
                .or_default();
            parent.has_children |= entry.exists;
            parent.subscribed_below |= is_hidden;
        }
    }
    names
}
