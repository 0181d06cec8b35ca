//! The parts of long messages of one worker, in files of the gateway: the disk bounds the unfinished messages of clients, not the memory.
//!
//! The worker never has a descriptor of the files: only the gateway can write, cut or fill the files, and the files end with the connection of the worker.
//! The files share `limits.body_disk_max` with the files of the gateway's own sessions, so a single ledger decides the message to refuse first.

use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::spawn_local;
use vere_handoff::message::{Answer, Part};
use vere_process::memory::{Receiver, Share};
use vere_process::places::Client;

use super::aside::Filed;
use super::group::Group;

/// Files of one worker, and so descriptors.
const FILES_MAX: usize = 1_024;

/// An answer, and the place of the answered frame: a worker must read the answers before further frames are read.
pub(super) type Said = (Answer, Option<OwnedSemaphorePermit>);

/// The messages of a worker that have begun.
#[derive(Debug)]
pub(super) struct Parts {
    group: Rc<Group>,
    answers: UnboundedSender<Said>,
    begun: HashMap<u64, Begun>,
    /// Octets in the files of this worker.
    octets: u64,
}

#[derive(Debug)]
struct Begun {
    jobs: UnboundedSender<Job>,
    octets: u64,
}

/// What the task of a file has to do. The task ends with the sender.
#[derive(Debug)]
enum Job {
    Write(Written),
    /// The message is here: the file goes to who reads it.
    Give(oneshot::Sender<Filed>),
}

/// The octets of a part; their memory is counted until they are written.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) octets: Vec<u8>,
    pub(super) held: Share,
    pub(super) place: OwnedSemaphorePermit,
}

/// The octets of a file, as the ledger of the disk sees them.
#[derive(Debug, Default)]
struct Octets {
    count: usize,
    /// Whether the message was given up, and its client is too slow to be heard any further.
    gone: Option<bool>,
}

impl Receiver for Octets {
    fn memory(&self) -> usize {
        self.count
    }

    fn is_authenticated(&self) -> bool {
        false
    }

    fn refuse_for_room(&mut self) {
        (self.count, self.gone) = (0, Some(false));
    }

    fn end(&mut self) {
        (self.count, self.gone) = (0, Some(true));
    }
}

impl Parts {
    /// No message has begun. Answers go to the worker.
    pub(super) fn new(group: Rc<Group>, answers: UnboundedSender<Said>) -> Self {
        Self {
            group,
            answers,
            begun: HashMap::new(),
            octets: 0,
        }
    }

    /// Whether a part may come: it begins a message or follows the parts before, and the files of the worker keep their bounds.
    pub(super) fn may_come(&self, part: &Part) -> bool {
        let settings = self.group.host.process.settings();
        let octets = u64::try_from(part.octets).unwrap_or(u64::MAX);
        let of_message = part.place.saturating_add(octets);
        let of_worker = self.octets.saturating_add(octets);
        // The worker counts the same octets, and refuses a longer message by its size.
        let is_small = of_message <= settings.limits.message_size_max.as_u64();
        let workers = settings.front.as_ref().map_or(1, |front| front.workers);
        let most = settings.limits.body_disk_max.as_u64() / u64::from(workers.clamp(1, 2));
        let follows = match self.begun.get(&part.number) {
            Some(begun) => begun.octets == part.place,
            None => part.place == 0 && self.begun.len() < FILES_MAX,
        };
        is_small && of_worker <= most && follows
    }

    /// Drops the parts of a message, and tells the worker.
    pub(super) fn refuse(&mut self, number: u64, place: OwnedSemaphorePermit) {
        self.forget(number);
        let gone = Answer::Gone {
            number,
            ends: false,
        };
        let _ = self.answers.send((gone, Some(place)));
    }

    /// Writes a part that [may come](Self::may_come).
    pub(super) fn write(&mut self, part: &Part, written: Written) {
        let octets = u64::try_from(part.octets).unwrap_or(u64::MAX);
        let begun = self.begun.entry(part.number).or_insert_with(|| {
            let (jobs, waiting) = unbounded_channel();
            let filed = self.group.host.process.file(Client::at(part.client));
            let answers = self.answers.clone();
            spawn_local(keep(part.number, filed, waiting, answers));
            Begun { jobs, octets: 0 }
        });
        begun.octets = begun.octets.saturating_add(octets);
        self.octets = self.octets.saturating_add(octets);
        // A task that has ended has told the worker.
        if begun.jobs.send(Job::Write(written)).is_err() {
            self.forget(part.number);
        }
    }

    /// Drops the parts of a message that does not come.
    pub(super) fn forget(&mut self, number: u64) {
        if let Some(begun) = self.begun.remove(&number) {
            self.octets = self.octets.saturating_sub(begun.octets);
        }
    }

    /// Takes the file of a complete message, with so many octets. `None`: some parts are missing.
    pub(super) fn finish(&mut self, number: u64, octets: u64) -> Option<oneshot::Receiver<Filed>> {
        let begun = self.begun.remove(&number)?;
        self.octets = self.octets.saturating_sub(begun.octets);
        if begun.octets != octets {
            return None;
        }
        let (give, given) = oneshot::channel();
        begun.jobs.send(Job::Give(give)).ok()?;
        Some(given)
    }
}

/// Keeps the file of a message until the message is here, is forgotten, or has to make room for others.
async fn keep(
    number: u64,
    mut filed: Filed,
    mut jobs: UnboundedReceiver<Job>,
    answers: UnboundedSender<Said>,
) {
    let (mut octets, mut place) = (Octets::default(), None);
    while octets.gone.is_none() {
        tokio::select! {
            biased;
            job = jobs.recv() => match job {
                Some(Job::Write(written)) => {
                    let answered = write(&mut filed, &mut octets, written).await;
                    if octets.gone.is_some() {
                        place = Some(answered);
                    } else {
                        // The worker may have gone, and the sender of jobs goes with it.
                        let _ = answers.send((Answer::Kept { number }, Some(answered)));
                    }
                }
                Some(Job::Give(to)) => {
                    let _ = to.send(filed);
                    return;
                }
                None => return,
            },
            () = filed.held.called() => {
                filed.held.count(&mut octets);
            }
        }
    }
    let ends = octets.gone.unwrap_or_default();
    let _ = answers.send((Answer::Gone { number, ends }, place));
}

/// Writes a part, unless the message has to make room for further messages, and returns the place of the answer.
async fn write(filed: &mut Filed, octets: &mut Octets, written: Written) -> OwnedSemaphorePermit {
    let Written {
        octets: part,
        held,
        place,
    } = written;
    if let Err(error) = append(filed, octets, part).await {
        filed.log(&error);
        octets.refuse_for_room();
    }
    drop(held);
    place
}

async fn append(filed: &mut Filed, octets: &mut Octets, part: Vec<u8>) -> io::Result<()> {
    let room = filed.room().await?;
    octets.count = octets.count.saturating_add(part.len());
    match filed.held.count(octets) {
        true => Ok(()),
        false => filed.append(room, part).await,
    }
}
