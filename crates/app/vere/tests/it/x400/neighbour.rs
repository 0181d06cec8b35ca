//! A neighbour of the MTA under test: composes messages, transfers them, and takes what it gets.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use tokio::runtime::Runtime;
use vere_associations::{
    Decision, Names, Next, OpenAssociation, Outcome, Partial, Peer, Remote, Responder, initiate,
    introduction, respond,
};
use vere_mta400::{
    Arrival, Destination, Mta, Names as Known, Peers, RouteSetting, Routes, Site, Source,
    Submission, Terms,
};
use vere_net::tls::ClientTls;
use vere_x400::{Apdu, GlobalDomainIdentifier, MtaBindResult, MtaResponder, OrAddress, Time};

/// The name and the password by which the neighbour calls.
pub(crate) const NAME: &str = "neighbour";
pub(crate) const PASSWORD: &str = "of the neighbour";
/// The password by which the MTA under test calls the neighbour.
pub(crate) const OURS: &str = "of vere";

/// The MTA of another domain.
#[derive(Debug)]
pub(crate) struct Neighbour {
    runtime: Runtime,
    address: SocketAddr,
    taken: Arc<Mutex<Vec<Apdu>>>,
    names: Names,
    mta: Mta,
}

impl Neighbour {
    /// Takes everything from now on, at a free port.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let neighbour = Self::at(listener.local_addr().expect("its address"));
        neighbour.listen(listener);
        neighbour
    }

    /// A neighbour that takes nothing yet.
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self {
            runtime: Runtime::new().expect("a runtime"),
            address,
            taken: Arc::default(),
            names: Names::new(NAME),
            mta: mta(),
        }
    }

    /// Takes everything from now on.
    pub(crate) fn listen(&self, listener: TcpListener) {
        listener.set_nonblocking(true).expect("a listener");
        let taken = Arc::clone(&self.taken);
        self.runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            loop {
                let (stream, address) = listener.accept().await.expect("a connection");
                let taken = Arc::clone(&taken);
                tokio::spawn(async move {
                    let remote = Remote { address, tls: None };
                    let responder = Responder::default();
                    let Ok(caller) = respond(&responder, Box::new(stream), remote).await else {
                        return;
                    };
                    assert!(
                        caller.asked().has_password(OURS.as_bytes()),
                        "{:?}",
                        caller.asked()
                    );
                    if let Ok(open) = caller.answer(async { Decision::Accept(us()) }).await {
                        take(open, &taken).await;
                    }
                });
            }
        });
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What came so far.
    pub(crate) fn taken(&self) -> Vec<Apdu> {
        self.taken.lock().expect("the list").clone()
    }

    /// Transfers units, one behind the other, and gives the outcomes.
    pub(crate) fn send(
        &self,
        to: SocketAddr,
        password: &str,
        units: &[Apdu],
    ) -> Result<Vec<Outcome>, String> {
        let bind = introduction(NAME, password.as_bytes()).expect("a name");
        let peer = Peer::new(vec![to], bind);
        self.runtime.block_on(async {
            let opened = initiate(&peer, self.names.next()).await;
            let (mut open, _) = opened.map_err(|error| error.to_string())?;
            let mut outcomes = Vec::new();
            for unit in units {
                outcomes.push(open.transfer(&unit.to_pieces()).await);
            }
            if open.ended().is_none() {
                open.release().await;
            }
            Ok(outcomes)
        })
    }

    /// Opens an association by another name, without a password, and releases it.
    pub(crate) fn bind(
        &self,
        to: SocketAddr,
        name: &str,
        tls: Option<(ClientTls, String)>,
    ) -> Result<(), String> {
        let mut peer = Peer::new(vec![to], introduction(name, b"").expect("a name"));
        peer.tls = tls;
        self.runtime.block_on(async {
            let opened = initiate(&peer, self.names.next()).await;
            let (open, _) = opened.map_err(|error| error.to_string())?;
            open.release().await;
            Ok(())
        })
    }

    /// A message to these addresses, as the neighbour transfers it.
    pub(crate) fn message(
        &self,
        id: &str,
        to: &[&str],
        change: impl FnOnce(&mut Submission),
    ) -> Apdu {
        let mut submission = Submission {
            originator: ORIGINATOR.parse().expect("an address"),
            recipients: to.iter().map(|to| address(to)).collect(),
            ..Submission::default()
        };
        change(&mut submission);
        let message = self
            .mta
            .site
            .compose(&submission, "Lunch", "At noon?\r\n", id);
        self.onward(Apdu::Message(message.expect("a message")), id)
    }

    /// A probe to an address.
    pub(crate) fn probe(&self, id: &str, to: &str) -> Apdu {
        let submission = Submission {
            originator: ORIGINATOR.parse().expect("an address"),
            recipients: vec![address(to)],
            ..Submission::default()
        };

        let probe = self.mta.site.probe(&submission, Some(10), id);
        self.onward(Apdu::Probe(probe.expect("a probe")), id)
    }

    fn onward(&self, apdu: Apdu, id: &str) -> Apdu {
        let arrival = Arrival {
            source: Source::Local,
            at: Time::from_unix(now()),
            id,
        };
        let outcome = self.mta.transfer(apdu, arrival).expect("a decision");
        let stored = outcome.apdu.to_bytes();
        let part = &outcome.onward[0];
        let to = Destination::Peer("vere".to_owned());
        assert_eq!(part.destination, to);
        let outgoing = self.mta.outgoing(&stored, &part.recipients, &to);
        outgoing.expect("a unit").apdu.expect("a unit")
    }
}

/// Who writes the neighbour's messages.
pub(crate) const ORIGINATOR: &str = "S=Jones; O=Paris; A=Atlas; C=FR";

fn address(text: &str) -> OrAddress {
    text.parse().expect("an address")
}

fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("a clock").as_secs()
}

fn mta() -> Mta {
    let domain = GlobalDomainIdentifier::new("FR", "Atlas", None).expect("a domain");
    let row = RouteSetting {
        address: "*".to_owned(),
        to: "peer:vere".to_owned(),
        whole: false,
    };
    let mut names = Known::default();
    names.peers.insert("vere".to_owned());
    let theirs = GlobalDomainIdentifier::new("GB", "Carrier", Some("Acme")).expect("a domain");
    let mut terms = Terms::new("vere", theirs);
    terms.addresses = vec!["127.0.0.1".parse().expect("an address")];
    Mta {
        site: Site::new(domain, NAME).expect("a name"),
        peers: Peers::new(vec![terms]).expect("peers"),
        routes: Routes::new(&[row], &names).expect("a route"),
    }
}

/// The neighbour's answer to a bind.
fn us() -> MtaBindResult {
    let bind = introduction(NAME, PASSWORD.as_bytes()).expect("a name");
    let vere_x400::MtaBindArgument::Authenticated(us) = bind else {
        panic!("an introduction has a name");
    };
    MtaBindResult::Authenticated(MtaResponder {
        responder_name: us.initiator_name,
        responder_credentials: us.initiator_credentials,
        ..MtaResponder::default()
    })
}

async fn take(mut open: OpenAssociation, taken: &Mutex<Vec<Apdu>>) {
    loop {
        match open.next().await {
            Next::Incoming(_) => {
                let Ok(pieces) = open.collect(Partial::default(), 64 << 20).await else {
                    return;
                };
                let apdu = Apdu::split(&pieces.concat().into()).expect("an APDU");
                taken.lock().expect("the list").push(apdu);
                if open.confirm().await.is_err() {
                    return;
                }
            }
            Next::TurnWanted(_) => open.give_turn().await.expect("the turn"),
            Next::Ended(_) => return,
            other => panic!("{other:?}"),
        }
    }
}
