//! A volume's accounts, asked by a test.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use vere_accounts::{AccountSettings, Accounts, Answers, BudgetSettings, Place, Times};
use vere_ports::mail_accounts::{
    AccountId, Answer, Fault, Listed, Part, Request, RequestId, UidRange, Urgency,
};

/// How long an answer may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(120);

/// The account of all tests.
pub(crate) const ACCOUNT: AccountId = AccountId(7);

/// One account, and the answers that were not asked for yet.
pub(crate) struct Volume {
    pub(crate) accounts: Accounts,
    answers: Answers,
    waiting: HashMap<RequestId, Result<Answer, Fault>>,
    last: u64,
}

/// Runs a test on a runtime of its own.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(test);
}

/// The account `alice` at an address without TLS.
pub(crate) fn settings(address: SocketAddr, connections_max: usize) -> AccountSettings {
    let place = Place::parse(&format!("imap://alice@{address}"), true);
    let place = place.expect("an IMAP place").expect("whole");
    AccountSettings {
        remote: place.with_password(vere_units::Secret::new("secret".to_owned()), None),
        folder: vec!["VereFS".to_owned(), "3f9c0a11".to_owned()],
        connections_max,
        budget: BudgetSettings::default(),
        times: Times::POOL,
    }
}

impl Volume {
    pub(crate) fn at(address: SocketAddr, connections_max: usize) -> Self {
        Self::new(settings(address, connections_max))
    }

    pub(crate) fn new(settings: AccountSettings) -> Self {
        let (accounts, answers) = Accounts::start(vec![(ACCOUNT, settings)]);
        Self {
            accounts,
            answers,
            waiting: HashMap::new(),
            last: 0,
        }
    }

    /// Sends a request.
    pub(crate) fn send(&mut self, urgency: Urgency, request: Request) -> RequestId {
        self.last += 1;
        let id = RequestId(self.last);
        self.accounts.ask(ACCOUNT, id, urgency, request);
        id
    }

    /// Waits for an answer.
    pub(crate) async fn wait(&mut self, id: RequestId) -> Result<Answer, Fault> {
        loop {
            if let Some(answer) = self.waiting.remove(&id) {
                return answer;
            }
            let next = tokio::time::timeout(PATIENCE, self.answers.recv()).await;
            let (other, answer) = next.expect("an answer in time").expect("accounts at work");
            self.waiting.insert(other, answer);
        }
    }

    /// Whether an answer is there.
    pub(crate) fn has(&mut self, id: RequestId) -> bool {
        while let Some((other, answer)) = self.answers.try_recv() {
            self.waiting.insert(other, answer);
        }
        self.waiting.contains_key(&id)
    }

    pub(crate) async fn ask(&mut self, request: Request) -> Result<Answer, Fault> {
        let id = self.send(Urgency::Waited, request);
        self.wait(id).await
    }

    /// Stores a mail and returns UIDVALIDITY and UID.
    pub(crate) async fn store(&mut self, mailbox: &str, mail: &Bytes) -> (u32, u32) {
        match self.ask(append(mailbox, mail)).await {
            Ok(Answer::Appended(Some(place))) => place,
            other => panic!("{other:?}"),
        }
    }

    /// Lists a mailbox.
    pub(crate) async fn list(&mut self, mailbox: &str) -> (u32, u32, Vec<Listed>) {
        match self.ask(list(mailbox, 1, None)).await {
            Ok(Answer::Listed {
                uid_validity,
                uid_next,
                mails,
            }) => (uid_validity, uid_next, mails),
            other => panic!("{other:?}"),
        }
    }
}

/// A mail with a subject and a body.
pub(crate) fn mail(subject: &str, body: &[u8]) -> Bytes {
    let head = format!("From: a@example.org\r\nSubject: {subject}\r\n\r\n");
    Bytes::from([head.as_bytes(), body, b"\r\n"].concat())
}

/// A body of lines of 76 octets, different in each place.
pub(crate) fn body(octets: usize) -> Vec<u8> {
    let lines = (0..=octets / 78).map(|line| format!("{line:076}\r\n"));
    let mut all = lines.collect::<String>().into_bytes();
    all.truncate(octets);
    all
}

pub(crate) fn append(mailbox: &str, mail: &Bytes) -> Request {
    Request::Append {
        mailbox: mailbox.to_owned(),
        mail: mail.clone(),
        alone: false,
    }
}

pub(crate) fn commit(mail: &Bytes) -> Request {
    Request::Append {
        mailbox: "log".to_owned(),
        mail: mail.clone(),
        alone: true,
    }
}

pub(crate) fn list(mailbox: &str, first: u32, last: Option<u32>) -> Request {
    Request::List {
        mailbox: mailbox.to_owned(),
        range: UidRange { first, last },
    }
}

pub(crate) fn read(mailbox: &str, place: (u32, u32), parts: &[(u32, u32)]) -> Request {
    let part = |(offset, length): &(u32, u32)| Part {
        offset: *offset,
        length: *length,
    };
    Request::Read {
        mailbox: mailbox.to_owned(),
        uid_validity: place.0,
        uid: place.1,
        parts: parts.iter().map(part).collect(),
    }
}

pub(crate) fn remove(mailbox: &str, uid_validity: u32, uids: &[u32]) -> Request {
    Request::Remove {
        mailbox: mailbox.to_owned(),
        uid_validity,
        uids: uids.to_vec(),
    }
}
