//! Questions to the broker.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{oneshot, watch};
use tokio::task::spawn_local;
use vere_handoff::question::{
    Address, Answer, LOOKUP_SECONDS_MAX, ListsAnswer, Name, NoRecords, Question, Reader, Record,
    RecordType, Sender, Spf, SpfResults,
};
use vere_net::quiet::{Reading, Writing};
use vere_smtp::refusal::Refusal;
use vere_smtp::server::Peer;

/// How long an answer is awaited. The broker answers in less: it asks the DNS for SPF, and next hops about recipients.
const PATIENCE: Duration = Duration::from_secs(LOOKUP_SECONDS_MAX + 5);

/// The connection to the broker.
#[derive(Debug)]
pub(crate) struct Broker {
    questions: UnboundedSender<Vec<u8>>,
    waiting: Rc<Waiting>,
    next: Cell<u64>,
    gone: watch::Receiver<bool>,
}

type Waiting = RefCell<HashMap<u64, oneshot::Sender<Answer>>>;

impl Broker {
    /// Speaks over a connection.
    pub(crate) fn new((read, write): (Reading<UnixStream>, Writing<UnixStream>)) -> Self {
        let (questions, asked) = unbounded_channel();
        let (end, gone) = watch::channel(false);
        let waiting = Rc::<Waiting>::default();
        spawn_local(send(write, asked));
        let answers = Rc::clone(&waiting);
        spawn_local(async move {
            if let Err(error) = receive(read, &answers).await {
                tracing::warn!(%error, "connection to the broker lost");
            }
            // Who waits hears that there is no answer.
            answers.borrow_mut().clear();
            end.send_replace(true);
        });
        Self {
            questions,
            waiting,
            next: Cell::new(0),
            gone,
        }
    }

    /// Waits until the connection is lost.
    pub(crate) fn gone(&self) -> impl Future<Output = ()> + use<> {
        let mut gone = self.gone.clone();
        async move {
            let _ = gone.wait_for(|gone| *gone).await;
        }
    }

    /// Asks whether mail for a recipient is taken.
    pub(crate) async fn recipient(&self, address: &str, peer: &Peer) -> Result<(), Refusal> {
        let address = Address::new(address).map_err(|_| Refusal::MailboxUnknown)?;
        let question = Question::Recipient {
            address,
            client: peer.address.ip(),
            may_relay: peer.may_relay,
        };
        match self.ask(question).await {
            Some(Answer::Accepted) => Ok(()),
            Some(Answer::Refused(number)) => {
                Err(Refusal::of_number(number).unwrap_or(Refusal::LocalError))
            }
            _ => Err(Refusal::LocalError),
        }
    }

    /// Asks whether the domain of a sender, and the HELO name, allow the client.
    pub(crate) async fn spf(&self, client: IpAddr, helo: &str, sender: &str) -> SpfResults {
        let Ok(sender) = Sender::new(client, helo, sender) else {
            return Spf::TempError.into();
        };
        match self.ask(Question::Spf(sender)).await {
            Some(Answer::Spf(results)) => results,
            _ => Spf::TempError.into(),
        }
    }

    /// Asks for the records of a name for the sake of a client; absent for a name without such records. `None`: the DNS does not answer now.
    pub(crate) async fn records(
        &self,
        client: IpAddr,
        name: &str,
        kind: RecordType,
    ) -> Option<Vec<Record>> {
        match self.resolve(client, name, kind).await? {
            Answer::Records(records) => Some(records.as_slice().to_vec()),
            Answer::Nothing(NoRecords::NoSuchName | NoRecords::NoData) => Some(Vec::new()),
            _ => None,
        }
    }

    /// Asks whether a name exists. `None`: the DNS does not answer now.
    pub(crate) async fn exists(&self, client: IpAddr, name: &str) -> Option<bool> {
        match self.resolve(client, name, RecordType::A).await? {
            Answer::Records(_) | Answer::Nothing(NoRecords::NoData) => Some(true),
            Answer::Nothing(NoRecords::NoSuchName) => Some(false),
            _ => None,
        }
    }

    async fn resolve(&self, client: IpAddr, name: &str, kind: RecordType) -> Option<Answer> {
        let name = Name::new(name).ok()?;
        self.ask(Question::Resolve { client, name, kind }).await
    }

    /// Asks which lists have the client. `None`: the broker does not answer.
    pub(crate) async fn lists(&self, client: IpAddr) -> Option<ListsAnswer> {
        match self.ask(Question::Lists(client)).await? {
            Answer::Lists(lists) => Some(lists),
            _ => None,
        }
    }

    async fn ask(&self, question: Question<'_>) -> Option<Answer> {
        let number = self.next.get();
        self.next.set(number.wrapping_add(1));
        let mut octets = Vec::new();
        question.encode(number, &mut octets);
        let (answer, answered) = oneshot::channel();
        self.waiting.borrow_mut().insert(number, answer);
        let answer = match self.questions.send(octets) {
            Ok(()) => tokio::time::timeout(PATIENCE, answered).await.ok(),
            Err(_) => None,
        };
        self.waiting.borrow_mut().remove(&number);
        answer?.ok()
    }
}

/// Sends questions, those that wait at once in one write.
async fn send(mut to: Writing<UnixStream>, mut questions: UnboundedReceiver<Vec<u8>>) {
    while let Some(mut octets) = questions.recv().await {
        while let Ok(more) = questions.try_recv() {
            octets.extend_from_slice(&more);
        }
        if to.write_all(&octets).await.is_err() {
            return;
        }
    }
}

async fn receive(mut from: Reading<UnixStream>, waiting: &Waiting) -> io::Result<()> {
    let wrong = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let mut reader = Reader::default();
    loop {
        let octets = from.read(reader.space()).await?;
        if octets == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        reader.filled(octets);
        while let Some(frame) = reader.frame().map_err(wrong)? {
            let answer = Answer::decode(&frame).map_err(wrong)?;
            if let Some(waits) = waiting.borrow_mut().remove(&frame.id) {
                let _ = waits.send(answer);
            }
        }
    }
}
