//! SEARCH (RFC 9051 section 6.4.4, RFC 4731, RFC 5182).

use crate::command::{SearchCommand, SearchKey, SearchReturn};
use crate::limits::SEARCH_TEXTS_MAX;
use crate::set::UidSet;

use super::answer::Found;
use super::question::Question;
use super::refusal::Refusal;
use super::selected::Selected;
use super::{About, Server, Session};

/// A SEARCH under way.
#[derive(Debug)]
pub(super) struct SearchWork {
    tag: String,
    uid: bool,
    returns: Option<SearchReturn>,
    /// Whether the numbers of changes matter (RFC 7162 section 3.1.5).
    mod_seq: bool,
}

impl Server {
    pub(super) fn search(&mut self, tag: String, command: SearchCommand) {
        let saves = command.returns.is_some_and(|returns| returns.save);
        if command.key.texts() > SEARCH_TEXTS_MAX {
            return self.search_refused(tag, saves, Refusal::ManyTexts);
        }
        let mod_seq = command.key.any(&|key| matches!(key, SearchKey::ModSeq(_)));
        if mod_seq {
            self.want_mod_seqs();
        }
        let Some(selected) = self.selected() else {
            return;
        };
        let Some(mut key) = resolve(command.key, selected) else {
            return self.bad(Some(&tag), "there is no message of this number");
        };
        if mod_seq {
            // No number of a change may be told of a message that the client does not know yet.
            key = SearchKey::And(vec![SearchKey::Messages(selected.view.uids()), key]);
        }
        let question = Question::Search {
            mailbox: selected.key,
            key,
            recent: selected.recent.clone(),
        };
        let work = SearchWork {
            tag,
            uid: command.uid,
            returns: command.returns,
            mod_seq,
        };
        self.ask(question, About::Search(work));
    }

    pub(super) fn search_answered(&mut self, work: SearchWork, result: Result<Found, Refusal>) {
        let found = match result {
            Ok(found) => found,
            Err(refusal) => {
                let saves = work.returns.is_some_and(|returns| returns.save);
                return self.search_refused(work.tag, saves, refusal);
            }
        };
        let Session::Selected { mailbox, .. } = &mut self.session else {
            return;
        };
        // Messages not yet announced to the client are left out of the answer.
        let uids = found.uids.intersection(&mailbox.view.uids());
        if let Some(returns) = work.returns.filter(|returns| returns.save) {
            mailbox.saved = saved(&uids, returns);
        }
        let numbers = if work.uid {
            uids
        } else {
            mailbox.view.numbers(&uids)
        };
        let mod_seq = (work.mod_seq && !numbers.is_empty()).then_some(match work.returns {
            // RFC 7162 section 3.1.10: the mod-sequence of the reported messages, where the answer
            // reports only a part of the found messages.
            Some(returns) if !(returns.all || returns.count) => match (returns.min, returns.max) {
                (true, false) => found.mod_seq_first,
                (false, true) => found.mod_seq_last,
                (true, true) => found.mod_seq_first.max(found.mod_seq_last),
                (false, false) => found.mod_seq,
            },
            _ => found.mod_seq,
        });
        match work.returns {
            None if !self.enabled.rev2 => self.plain_result(&numbers, mod_seq),
            returns => {
                let all = SearchReturn {
                    all: true,
                    ..SearchReturn::default()
                };
                self.extended_result(&work, &numbers, returns.unwrap_or(all), mod_seq);
            }
        }
        if work.uid {
            self.complete(work.tag, "OK done");
        } else {
            self.complete_numbered(work.tag, "OK done");
        }
    }

    /// The search finds and saves no messages (RFC 5182 section 2.1).
    fn search_refused(&mut self, tag: String, saves: bool, refusal: Refusal) {
        if let Some(selected) = self.selected().filter(|_| saves) {
            selected.saved = UidSet::new();
        }
        self.no(tag, refusal);
    }

    fn plain_result(&mut self, numbers: &UidSet, mod_seq: Option<u64>) {
        self.output.text("* SEARCH");
        for number in numbers.iter() {
            self.output.text(" ");
            self.output.number(number.into());
        }
        if let Some(mod_seq) = mod_seq {
            self.output.text(&format!(" (MODSEQ {mod_seq})"));
        }
        self.output.line("");
    }

    fn extended_result(
        &mut self,
        work: &SearchWork,
        numbers: &UidSet,
        returns: SearchReturn,
        mod_seq: Option<u64>,
    ) {
        // SAVE alone is answered by no ESEARCH response (RFC 5182 section 2.1).
        if returns.save && !(returns.min || returns.max || returns.all || returns.count) {
            return;
        }
        let mut line = format!("* ESEARCH (TAG \"{}\")", work.tag);
        if work.uid {
            line.push_str(" UID");
        }
        if let (Some(first), Some(last)) = (numbers.first(), numbers.last()) {
            if returns.min {
                line.push_str(&format!(" MIN {first}"));
            }
            if returns.max {
                line.push_str(&format!(" MAX {last}"));
            }
            if returns.all {
                line.push_str(&format!(" ALL {numbers}"));
            }
        }
        if returns.count {
            line.push_str(&format!(" COUNT {}", numbers.len()));
        }
        if let Some(mod_seq) = mod_seq {
            line.push_str(&format!(" MODSEQ {mod_seq}"));
        }
        self.output.line(&line);
    }
}

/// The saved result: all messages, or the ends if only MIN and MAX were requested (RFC 5182 section
/// 2.4).
fn saved(uids: &UidSet, returns: SearchReturn) -> UidSet {
    if returns.all || returns.count || !(returns.min || returns.max) {
        return uids.clone();
    }
    let first = uids.first().filter(|_| returns.min);
    let last = uids.last().filter(|_| returns.max);
    first.into_iter().chain(last).collect()
}

/// Replaces message numbers by UIDs.
fn resolve(key: SearchKey, selected: &Selected) -> Option<SearchKey> {
    Some(match key {
        SearchKey::Sequence(set) => SearchKey::Messages(selected.resolve(&set, false)?),
        SearchKey::Uid(set) => SearchKey::Messages(selected.resolve(&set, true)?),
        SearchKey::And(keys) => SearchKey::And(
            keys.into_iter()
                .map(|key| resolve(key, selected))
                .collect::<Option<_>>()?,
        ),
        SearchKey::Or(keys) => SearchKey::Or(Box::new((
            resolve(keys.0, selected)?,
            resolve(keys.1, selected)?,
        ))),
        SearchKey::Not(key) => SearchKey::Not(Box::new(resolve(*key, selected)?)),
        other => other,
    })
}
