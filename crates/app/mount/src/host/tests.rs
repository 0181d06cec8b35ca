//! A host with a small engine.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use vere_ports::files::{Call, CallId, Caller, Errno, Inode, Invalidate, Reply};
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, RequestId, Urgency};
use vere_units::Timestamp;

use crate::lines::Level;

use super::{Clock, Effect, Engine, Event, Host, Now, Outside, Step};

const LONGEST: Duration = Duration::from_secs(10);
const ROOT: Caller = Caller { uid: 0, gid: 0 };

/// Answers look-ups after work, statistics after an account, and read-links after a time.
#[derive(Default)]
struct Small {
    steps: VecDeque<Step<Self>>,
    asked: Vec<CallId>,
    due: Option<(Timestamp, CallId)>,
    synced: usize,
}

impl Engine for Small {
    fn call(&mut self, now: Now, id: CallId, _: Caller, call: Call) {
        match call {
            Call::Lookup { .. } => {
                let work = move || -> Effect<Self> {
                    let name = thread::current().name().unwrap_or_default().to_owned();
                    Box::new(move |engine: &mut Self, _| {
                        let reply = Reply::Octets(name.into());
                        engine.steps.push_back(Step::Reply(id, Ok(reply)));
                    })
                };
                self.steps.push_back(Step::Work(Box::new(work)));
                let disk =
                    || -> Effect<Self> { Box::new(|engine: &mut Self, _| engine.synced += 1) };
                self.steps.push_back(Step::Disk(Box::new(disk)));
            }
            Call::Statistics => {
                self.asked.push(id);
                let ask = Step::Ask(
                    RequestId(id.0),
                    AccountId(1),
                    Urgency::Waited,
                    Request::Quota,
                );
                self.steps.push_back(ask);
            }
            Call::ReadLink { .. } => {
                let at = Timestamp::from_millis(now.steady.as_millis() + 30);
                self.due = Some((at, id));
            }
            _ => {
                self.steps
                    .push_back(Step::Invalidate(Invalidate::Inode(Inode::ROOT)));
                self.steps
                    .push_back(Step::Log(Level::Info, "a line".into()));
                self.steps.push_back(Step::Reply(id, Err(Errno::OpNotSupp)));
            }
        }
    }

    fn answered(&mut self, _: Now, _: RequestId, answer: Result<Answer, Fault>) {
        let result = answer.map(|_| Reply::Done).map_err(|_| Errno::Io);
        if let Some(id) = self.asked.pop() {
            self.steps.push_back(Step::Reply(id, result));
        }
    }

    fn wake(&mut self, _: Now) {
        if let Some((_, id)) = self.due.take() {
            self.steps.push_back(Step::Reply(id, Ok(Reply::Done)));
        }
    }

    fn poll(&mut self) -> Option<Step<Self>> {
        self.steps.pop_front()
    }

    fn next_wake(&self) -> Option<Timestamp> {
        self.due.map(|(at, _)| at)
    }
}

/// Accounts with an answer at once; replies and lines go to the test.
struct Ends {
    events: Sender<Event<Small>>,
    replies: Sender<(CallId, Result<Reply, Errno>)>,
    other: Sender<String>,
}

impl Outside for Ends {
    fn reply(&mut self, id: CallId, result: Result<Reply, Errno>) {
        self.replies.send((id, result)).unwrap();
    }

    fn ask(&mut self, id: RequestId, _: AccountId, _: Urgency, _: Request) {
        let gone = Event::Answer(id, Ok(Answer::Gone));
        self.events.send(gone).unwrap();
    }

    fn invalidate(&mut self, what: Invalidate) {
        self.other.send(format!("{what:?}")).unwrap();
    }

    fn log(&mut self, _: Level, line: &str) {
        self.other.send(line.to_owned()).unwrap();
    }
}

type Replies = Receiver<(CallId, Result<Reply, Errno>)>;

fn host() -> (Host<Small>, Sender<Event<Small>>, Replies, Receiver<String>) {
    let (events, happened) = channel();
    let (replies, replied) = channel();
    let (other, others) = channel();
    let ends = Ends {
        events: events.clone(),
        replies,
        other,
    };
    let all = (events.clone(), happened);
    let host = Host::start(Small::default(), Clock::start(), all, ends).unwrap();
    (host, events, replied, others)
}

#[test]
fn every_kind_of_step_is_carried_out() {
    let (host, events, replied, others) = host();
    let call = |id, call| events.send(Event::Call(CallId(id), ROOT, call)).unwrap();
    let reply = || replied.recv_timeout(LONGEST).unwrap();
    let name = Vec::new();
    call(
        1,
        Call::Lookup {
            parent: Inode::ROOT,
            name,
        },
    );
    assert_eq!(reply(), (CallId(1), Ok(Reply::Octets("fs-work".into()))));
    call(2, Call::Statistics);
    assert_eq!(reply(), (CallId(2), Ok(Reply::Done)));
    call(3, Call::ReadLink { inode: Inode::ROOT });
    assert_eq!(reply(), (CallId(3), Ok(Reply::Done)));
    call(4, Call::GetAttributes { inode: Inode::ROOT });
    assert_eq!(reply(), (CallId(4), Err(Errno::OpNotSupp)));
    assert_eq!(others.recv_timeout(LONGEST).unwrap(), "Inode(Inode(1))");
    assert_eq!(others.recv_timeout(LONGEST).unwrap(), "a line");
    while host.with(LONGEST, |engine, _| engine.synced).unwrap() == 0 {}
    assert_eq!(host.stop().unwrap().synced, 1);
}

#[test]
fn a_stopped_host_answers_nobody() {
    let (host, events, ..) = host();
    assert!(host.stop().is_some());
    assert_eq!(
        super::with(&events, Duration::from_millis(10), |_, _| ()),
        None
    );
}
