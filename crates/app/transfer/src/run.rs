//! A run: mailbox by mailbox, a few messages at once.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::process::ExitCode;

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::args::TransferArgs;
use super::doubts::Doubt;
use super::message::{Item, Message, batches};
use super::names::{self, Folder};
use super::outcome::Put;
use super::source::Source;
use super::state::State;
use super::target::Target;
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_process::wording::{self, counted, messages};

/// Number of refused or doubtful messages that are named, each with the reason.
const NAMED_MAX: usize = 50;

/// The largest message of the local store.
const SIZE_MAX: u64 = vere_store::MESSAGE_OCTETS_MAX as u64;

/// The exit code of a complete run with some messages refused or removed.
const SOME_REFUSED: u8 = 3;

/// The direction of the transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Import,
    Export,
}

/// A run.
pub(super) struct Run {
    direction: Direction,
    source: Source,
    target: Target,
    state: State,
    args: TransferArgs,
    summary: Summary,
}

/// The result of the run.
#[derive(Debug, Default)]
struct Summary {
    mailboxes: usize,
    brought: u64,
    octets: u64,
    /// Messages present from an earlier run.
    before: u64,
    /// Messages removed from their source meanwhile.
    gone: u64,
    refused: u64,
    /// Messages received with other octets in possible places of NUL.
    doubtful: u64,
    /// The first refused or doubtful messages, with the reasons.
    named: String,
}

impl Run {
    pub(super) fn new(
        direction: Direction,
        source: Source,
        target: Target,
        state: State,
        args: TransferArgs,
    ) -> Self {
        Self {
            direction,
            source,
            target,
            state,
            args,
            summary: Summary::default(),
        }
    }

    /// Runs the whole transfer.
    ///
    /// # Errors
    /// When the transfer cannot go on.
    pub(super) async fn whole(mut self) -> Result<Outcome, Failure> {
        for folder in self.chosen()? {
            if let Err(failure) = self.folder(&folder).await {
                let broken_off = self.summary.text(self.direction, false);
                return Err(Failure::new(format!(
                    "{}: {failure}\n{broken_off}broken off; the same command goes on from here",
                    folder.name()
                )));
            }
        }
        self.source.close().await;
        self.target.close().await;
        let text = self.summary.text(self.direction, self.args.dry_run);
        Ok(match self.summary.refused + self.summary.gone {
            0 => Outcome::Print(text),
            _ => Outcome::Report(text, ExitCode::from(SOME_REFUSED)),
        })
    }

    /// The requested mailboxes.
    fn chosen(&mut self) -> Result<Vec<Folder>, Failure> {
        let mut folders = self.source.folders()?;
        let missing = self
            .args
            .only
            .iter()
            .find(|only| !folders.iter().any(|folder| folder.name() == **only));
        if let Some(missing) = missing {
            return Err(Failure::new(format!("there is no mailbox {missing}")));
        }
        if !self.args.only.is_empty() {
            folders.retain(|folder| self.args.only.contains(&folder.name()));
        }
        Ok(folders)
    }

    /// The mailbox at the target.
    fn mapped(&self, folder: &Folder) -> Folder {
        let mut mapped = folder.clone();
        if let Some(into) = &self.args.into {
            let mut path: Vec<String> = into.split('/').map(str::to_owned).collect();
            if folder.path != names::inbox() {
                path.extend(folder.path.iter().cloned());
            }
            mapped.path = path;
        }
        mapped
    }

    async fn folder(&mut self, folder: &Folder) -> Result<(), Failure> {
        let items = self.source.list(folder).await?;
        let to = self.mapped(folder);
        let name = to.name();
        self.summary.mailboxes += 1;
        let all = items.len();
        let known = self.state.folder(&name);
        let restored = self.source.is_shelved().then(|| known.restored());
        let restored = restored.unwrap_or_default();
        let again = self.source.is_shelved().then(|| items.clone());
        let mut left: Vec<Item> = items
            .into_iter()
            .filter(|item| !known.has.contains(&item.key) && !restored.contains(&item.key))
            .collect();
        self.summary.before += (all - left.len()) as u64;
        if self.direction == Direction::Import {
            // Large messages are not read: the local store would refuse the messages.
            let (fit, large) = left
                .into_iter()
                .partition::<Vec<Item>, _>(|item| item.size <= SIZE_MAX);
            left = fit;
            for item in large {
                self.summary.refuse(&to, &item, "it is too large");
            }
        }
        if self.args.dry_run {
            self.summary.brought += left.len() as u64;
            self.summary.octets += left.iter().map(|item| item.size).sum::<u64>();
            return Ok(());
        }
        let begin = self.target.prepare(&to, known).await?;
        let bar = self.bar(&name, left.len());
        if let Some(begin) = begin {
            let noted = self.state.folder(&name).begin;
            let is_other = noted.is_some_and(|noted| noted.uid_validity != begin.uid_validity);
            if let (true, Some(again)) = (is_other, again) {
                // The mailbox was removed since: mail of a backup comes into the new one from the beginning.
                self.summary.before -= (all - left.len()) as u64;
                left = again;
                self.state.renew(&name, begin)?;
            } else if is_other {
                return Err(Failure::new(format!(
                    "mailbox {name} is not the one that an earlier run wrote to: it was removed and \
                     made again since. Remove the state file (see --state) to bring everything once more"
                )));
            }
            self.state.begin(&name, begin)?;
            self.resolve(&to, &mut left).await?;
        }
        for batch in batches(&left) {
            self.carry(&to, batch).await?;
            bar.inc(batch.len() as u64);
        }
        bar.finish_and_clear();
        self.target.leave()
    }

    /// Finds the messages of an earlier run that have arrived; these messages are not sent again.
    async fn resolve(&mut self, to: &Folder, left: &mut Vec<Item>) -> Result<(), Failure> {
        let name = to.name();
        let known = self.state.folder(&name);
        let in_doubt: Vec<Item> = left
            .iter()
            .filter(|item| known.sent.contains(&item.key))
            .cloned()
            .collect();
        let Some(begin) = known.begin.filter(|_| !in_doubt.is_empty()) else {
            return Ok(());
        };
        let (uids, mut before) = (known.uids.clone(), known.without_uid.clone());
        let mut ours = Vec::new();
        for part in batches(&in_doubt) {
            let read = self.source.read(part).await?;
            // The carried messages are read again.
            drop(self.source.doubts());
            ours.extend(part.iter().zip(read).filter_map(|(item, message)| {
                let message = message?;
                Some((item.key.clone(), message.hash, message.size))
            }));
        }
        let sizes = ours.iter().map(|(_, _, size)| *size).collect();
        let Target::Account(account) = &mut self.target else {
            return Ok(());
        };
        let mut there = account.find(to, begin.uid_next, &sizes, &uids).await?;
        // Messages recorded without a UID are among the found messages.
        there.retain(|(hash, _)| match before.get_mut(hash) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        });
        let mut has = Vec::new();
        for (key, hash, _) in ours {
            if let Some(at) = there.iter().position(|(own, _)| *own == hash) {
                let (_, uid) = there.swap_remove(at);
                has.push((key, hash, Some(uid)));
            }
        }
        let found: HashSet<String> = has.iter().map(|(key, ..)| key.clone()).collect();
        self.summary.before += found.len() as u64;
        left.retain(|item| !found.contains(&item.key));
        self.state.has(&name, has, None)
    }

    /// Carries a few messages.
    async fn carry(&mut self, to: &Folder, batch: &[Item]) -> Result<(), Failure> {
        let name = to.name();
        let read = self.source.read(batch).await?;
        for doubt in self.source.doubts() {
            self.summary.doubt(to, &doubt);
        }
        self.summary.gone += read.iter().filter(|message| message.is_none()).count() as u64;
        let mut messages: Vec<(Item, Message)> = batch
            .iter()
            .cloned()
            .zip(read)
            .filter_map(|(item, message)| Some((item, message?)))
            .collect();
        let keys = messages.iter().map(|(item, _)| item.key.clone());
        self.state.sends(&name, keys.collect())?;
        let put = self.target.put(to, &mut messages).await?;
        let length = self.target.sync()?;
        let (mut has, mut full) = (Vec::new(), None);
        for ((item, message), put) in messages.iter().zip(put) {
            match put {
                Put::Kept(uid) => {
                    self.summary.brought += 1;
                    self.summary.octets += message.size;
                    has.push((item.key.clone(), message.hash, uid));
                }
                Put::Refused(reason) => self.summary.refuse(to, item, &reason),
                Put::Full(reason) => {
                    full.get_or_insert_with(|| no_room(item, message.size, &reason));
                }
            }
        }
        self.state.has(&name, has, length)?;
        full.map_or(Ok(()), Err)
    }

    fn bar(&self, name: &str, messages: usize) -> ProgressBar {
        // Hidden where standard error is no terminal.
        let target = match self.args.quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let bar = ProgressBar::with_draw_target(Some(messages as u64), target);
        // Fixed widths, and no digits that change with every message, keep the bar from jumping.
        let width = bar
            .length()
            .map_or(0, |all| HumanCount(all).to_string().len());
        let style = format!(
            "{{msg:30!}} {{wide_bar}} {{human_pos:>{width}}}/{{human_len}} {{rate:>9}} {{eta:>4}}"
        );
        if let Ok(style) = ProgressStyle::with_template(&style) {
            bar.set_style(style.with_key(
                "rate",
                |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                    // The progress bar has no way to report an error.
                    let _ = write!(out, "{:.0}/s", state.per_sec());
                },
            ));
        }
        bar.set_message(name.to_owned());
        bar
    }
}

/// The run ends there: each later message would be sent for nothing.
fn no_room(item: &Item, size: u64, reason: &str) -> Failure {
    Failure::new(format!(
        "the account that mail goes to is full at message {} ({}): [OVERQUOTA] {reason}. Raise its quota, or make \
         room in it",
        item.key,
        wording::size(size)
    ))
}

impl Summary {
    fn refuse(&mut self, to: &Folder, item: &Item, reason: &str) {
        self.refused += 1;
        if self.refused <= NAMED_MAX as u64 {
            // Writing to a string cannot fail.
            let _ = writeln!(self.named, "refused: {} {}: {reason}", to.name(), item.key);
        } else if self.refused == NAMED_MAX as u64 + 1 {
            self.named.push_str("more were refused\n");
        }
    }

    fn doubt(&mut self, to: &Folder, doubt: &Doubt) {
        self.doubtful += 1;
        let Doubt { key, reason } = doubt;
        if self.doubtful <= NAMED_MAX as u64 {
            let _ = writeln!(self.named, "doubtful: {} {key}: {reason}", to.name());
        } else if self.doubtful == NAMED_MAX as u64 + 1 {
            self.named.push_str("more are doubtful\n");
        }
    }

    fn text(&self, direction: Direction, dry: bool) -> String {
        let did = match (direction, dry) {
            (Direction::Import, false) => "imported",
            (Direction::Export, false) => "exported",
            (Direction::Import, true) => "would be imported",
            (Direction::Export, true) => "would be exported",
        };
        let mut text = format!(
            "{}{} ({}) in {} {did}",
            self.named,
            messages(self.brought),
            wording::size(self.octets),
            counted(self.mailboxes, "mailbox", "mailboxes")
        );
        for (count, one, several) in [
            (self.before, "was brought before", "were brought before"),
            (
                self.gone,
                "was not to be had where it was",
                "were not to be had where they were",
            ),
            (self.refused, "was refused", "were refused"),
            (self.doubtful, "is doubtful", "are doubtful"),
        ] {
            if count > 0 {
                let _ = write!(text, ", {}", counted(count, one, several));
            }
        }
        text.push('\n');
        if self.before > 0 && self.brought == 0 {
            text.push_str("an earlier run brought them; what was removed since comes back with another --into\n");
        }
        text
    }
}
