//! Answers the questions of a session.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use vere_handoff::note::{Greylist, Note};
use vere_handoff::question::SpfResults;
use vere_process::drive::{Host, Line};
use vere_process::refusals;
use vere_process::wire::Connection;
use vere_screening::{Screening, Transaction};
use vere_smtp::refusal::Refusal;
use vere_smtp::server::{Answer, Message, Question, Server};

use super::broker::Broker;
use super::gateway::{Beside, Gateway};
use super::judging::Judging;
use super::parts::Aside;

/// The service in log lines.
const SERVICE: &str = "smtp";

/// The links shared by the sessions of a worker, and the counts of one session.
#[derive(Debug)]
pub(crate) struct SessionHost {
    pub(crate) gateway: Rc<Gateway>,
    pub(crate) broker: Rc<Broker>,
    /// The text of a long message, at the gateway.
    pub(crate) aside: Aside,
    /// Number of recipients refused for good.
    pub(crate) refused: u32,
    /// The results of SPF for the open transaction; `None` where SPF was not asked.
    pub(crate) spf: Option<SpfResults>,
    /// The greylist's state of the open transaction; `None` where the greylist was not asked.
    pub(crate) greylist: Option<Greylist>,
    pub(crate) screening: Rc<Screening>,
    /// `None` where messages are not judged.
    pub(crate) judging: Option<Rc<Judging>>,
    /// Whether the session ends behind its replies.
    pub(crate) is_closing: Rc<Cell<bool>>,
}

impl Host<Server> for SessionHost {
    /// The gateway has lost the parts of a long message, which takes effect in [`Host::follow`].
    type Event = ();

    async fn follow(&mut self, server: &mut Server) {
        let notes = server.take_notes();
        refusals::noted(SERVICE, server, &notes.refused);
        self.is_closing.set(server.is_closing());
        self.aside.take(server).await;
    }

    async fn event(&self) {
        self.called().await;
    }

    /// The client may not read its replies while other clients need the disk.
    async fn called(&self) {
        self.aside.called().await;
    }

    async fn answer(
        &mut self,
        line: &mut Line,
        _: &mut impl Connection,
        server: &Server,
        question: Question,
    ) -> io::Result<Option<Answer>> {
        let answer = match question {
            Question::Mail(mail) => {
                let sender = mail.reverse_path.as_str();
                let answer = self.mail(server, sender).await;
                refusals::log(SERVICE, server, sender, answer.as_ref().err());
                Answer::Policy(answer)
            }
            Question::Recipient(rcpt) => {
                let address = rcpt.forward_path.as_str();
                let answer = self.broker.recipient(address, server.peer()).await;
                if answer.as_ref().is_err_and(Refusal::is_permanent) {
                    self.refused = self.refused.saturating_add(1);
                }
                refusals::log_recipient(SERVICE, server, address, answer.as_ref().err());
                Answer::Policy(answer)
            }
            Question::Message(message) => {
                let sender = message.reverse_path.reverse_path.as_str().to_owned();
                let answer = self.store(line, server, *message).await;
                refusals::log(SERVICE, server, &sender, answer.as_ref().err());
                Answer::Stored(answer)
            }
            // The front offers neither authentication nor XCLIENT.
            Question::Password(_) | Question::ScramUser { .. } | Question::Client(_) => {
                Answer::Policy(Err(Refusal::LocalError))
            }
        };
        Ok(Some(answer))
    }
}

impl SessionHost {
    /// Answers MAIL of a further transaction by the rules that the front has applied to the first one.
    async fn mail(&mut self, server: &Server, sender: &str) -> Result<(), Refusal> {
        self.spf = None;
        // Nobody asks the greylist about a further transaction; a known client is known still.
        self.greylist = self.greylist.filter(|state| *state == Greylist::Known);
        self.gateway.is_open()?;
        let helo = server.helo().map(ToString::to_string).unwrap_or_default();
        let client = server.peer().address.ip();
        let transaction = Transaction {
            client,
            helo: &helo,
            sender,
        };
        if self.screening.begin(transaction)? {
            let results = self.broker.spf(client, &helo, sender).await;
            self.spf = Some(results);
            self.screening.judge(results)?;
        }
        Ok(())
    }

    async fn store(
        &mut self,
        line: &mut Line,
        server: &Server,
        mut message: Message,
    ) -> Result<String, Refusal> {
        if !line.held.keep(message.body.len(), false) {
            self.aside.close();
            return Err(Refusal::StorageFull);
        }
        let gathered = match (&self.judging, self.aside.gathered()) {
            (Some(judging), Some(gathering)) if !server.peer().may_relay => {
                let (spf, greylist) = (self.spf, self.greylist);
                let note = Note { spf, greylist };
                // Boxed: most sessions end without a message.
                let gathered = judging.gather(gathering, server, &message, note);
                Some(Box::pin(gathered).await)
            }
            _ => None,
        };
        // The name stands in the Received field, and filters look at it.
        let name = gathered
            .as_ref()
            .and_then(|gathered| gathered.client_name.clone());
        message.session.name = message.session.name.or(name);
        let beside = Beside {
            may_relay: server.peer().may_relay,
            spf: self.spf,
            gathered,
            number: self.aside.finish(),
        };
        self.gateway.store(message, beside).await
    }
}
