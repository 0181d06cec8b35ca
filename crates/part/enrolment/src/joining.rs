//! The joining machine: connects by the token, and compares the CA with the pin.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme, StreamOwned,
};
use sha2::{Digest as _, Sha256};
use vere_net::tls::Leaf;

use crate::invitation::{INVITER, PROTOCOL, hexadecimal};
use crate::message::{Membership, REPLY_MAX, Reply, Request, VERSION};
use crate::wire::Timed;
use crate::{EnrolmentError, Token};
use vere_joinwire::wire::{receive, send};

/// How long the connection attempt may take.
const CONNECT: Duration = Duration::from_secs(15);
/// How long the exchange may take, apart from the writing of files in between.
const EXCHANGE: Duration = Duration::from_secs(60);

/// The key of a machine that wants to join. The private half stays here.
#[derive(Debug)]
pub struct Candidate {
    key: KeyPair,
    pub(crate) request: String,
}

impl Candidate {
    /// Makes a key and a certificate request.
    ///
    /// # Errors
    /// The library fails.
    pub fn new() -> Result<Self, EnrolmentError> {
        let failed = || EnrolmentError::certificate("make a certificate request");
        let key = KeyPair::generate().map_err(failed())?;
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "node");
        let request = params.serialize_request(&key).map_err(failed())?;
        let request = request.pem().map_err(failed())?;
        Ok(Self { key, request })
    }

    /// The private key in PEM.
    #[must_use]
    pub fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }
}

/// An accepted machine that has not written its files yet.
pub struct Joining {
    /// What the machine was given.
    pub membership: Membership,
    stream: Encrypted,
    peer: String,
}

impl std::fmt::Debug for Joining {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Joining")
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

/// Connects to the inviting machine and asks to be the node.
///
/// # Errors
/// The machine cannot be reached, is not the one of the token, or refuses.
pub fn join(token: &Token, candidate: &Candidate) -> Result<Joining, EnrolmentError> {
    let peer = token.address.to_string();
    let failed = || EnrolmentError::connection(&peer);
    let mut stream = shake_hands(token, CONNECT)?;
    let request = Request::Join {
        version: VERSION,
        secret: hexadecimal(token.secret.expose()),
        request: candidate.request.clone(),
    };
    send(&mut stream, &request).map_err(failed())?;
    match receive(&mut stream, REPLY_MAX).map_err(failed())? {
        Reply::Accepted(membership) => {
            check(&membership, token, candidate)?;
            Ok(Joining {
                membership: *membership,
                stream,
                peer,
            })
        }
        Reply::Refused(reason) => Err(EnrolmentError::Refused(reason)),
        Reply::Recorded => Err(EnrolmentError::Malformed("recorded".to_owned())),
    }
}

/// Tries whether the inviting machine answers at the address of its token: connects, and compares the CA with the pin.
/// The secret is not sent.
///
/// # Errors
/// As [`join`], up to the request.
pub fn probe(token: &Token, patience: Duration) -> Result<(), EnrolmentError> {
    let mut stream = shake_hands(token, patience)?;
    stream.conn.send_close_notify();
    // The result is known.
    let _ = stream.conn.write_tls(&mut stream.sock);
    Ok(())
}

pub(crate) type Encrypted = StreamOwned<ClientConnection, Timed>;

/// A connection to the machine of the token, for sure.
pub(crate) fn shake_hands(token: &Token, patience: Duration) -> Result<Encrypted, EnrolmentError> {
    let peer = token.address;
    let stream = TcpStream::connect_timeout(&peer, patience);
    let stream = stream.map_err(|source| unreachable(peer, source))?;
    let socket = Timed::new(stream, patience);
    let socket = socket.map_err(EnrolmentError::connection(peer))?;
    let tls = |source| EnrolmentError::Tls { source };
    let name = ServerName::try_from(INVITER).map_err(|_| tls(Error::HandshakeNotComplete))?;
    let connection = ClientConnection::new(client_config(token.pin).map_err(tls)?, name);
    let mut stream = StreamOwned::new(connection.map_err(tls)?, socket);
    while stream.conn.is_handshaking() {
        let went = stream.conn.complete_io(&mut stream.sock);
        went.map_err(|error| strange(peer, error))?;
    }
    stream.sock.prolong(EXCHANGE);
    Ok(stream)
}

fn unreachable(peer: SocketAddr, source: io::Error) -> EnrolmentError {
    let remedy = match source.kind() {
        io::ErrorKind::ConnectionRefused => {
            "the invitation has ended, or a firewall or NAT does not lead to it"
        }
        io::ErrorKind::TimedOut => "a firewall is in the way, or the address is wrong",
        _ => {
            "there is no way to this address; `vere node invite` takes another one by --listen or --advertise"
        }
    };
    EnrolmentError::Unreachable {
        peer,
        remedy,
        source,
    }
}

/// What a failed handshake says about the other side.
fn strange(peer: SocketAddr, source: io::Error) -> EnrolmentError {
    let cause = source.get_ref();
    match cause.and_then(|cause| cause.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            EnrolmentError::OtherMachine { peer }
        }
        // Such as the period of validity, by a wrong clock.
        Some(Error::InvalidCertificate(_)) => EnrolmentError::connection(peer)(source),
        _ => EnrolmentError::OtherProgram { peer, source },
    }
}

/// Everything given has to fit the token and the own key, so that no half-right file is written.
pub(crate) fn check(
    given: &Membership,
    token: &Token,
    candidate: &Candidate,
) -> Result<(), EnrolmentError> {
    use rcgen::PublicKeyData as _;
    let malformed = |text: &str| EnrolmentError::Malformed(text.to_owned());
    let ca = CertificateDer::from_pem_slice(given.ca.as_bytes());
    let ca = ca.map_err(|_| malformed("no CA certificate"))?;
    if <[u8; 32]>::from(Sha256::digest(&ca)) != token.pin {
        return Err(malformed("another CA than the token's"));
    }
    let own = CertificateDer::from_pem_slice(given.certificate.as_bytes());
    let own = own.ok().as_ref().and_then(Leaf::of);
    let own = own.ok_or_else(|| malformed("no certificate"))?;
    if own.public_key != candidate.key.der_bytes() {
        return Err(malformed("a certificate for another key"));
    }
    if !own.validity.contains(SystemTime::now()) {
        let text = format!(
            "the certificate is valid from {}: set the clock of this machine, or of the other one",
            own.validity
        );
        return Err(EnrolmentError::Malformed(text));
    }
    let is_key = |key: &str| key.len() == 64 && key.bytes().all(|digit| digit.is_ascii_hexdigit());
    let keys = given.accounts.iter().map(|account| &account.key);
    if !keys.chain([&given.key]).all(|key| is_key(key)) {
        return Err(malformed("a key that is not 64 hexadecimal digits"));
    }
    Ok(())
}

impl Joining {
    /// Says that all files are written, and waits until the node is in the settings of the inviting machine.
    ///
    /// # Errors
    /// The connection is broken, or the other side refuses; then nothing of the invitation is used up.
    pub fn confirm(mut self) -> Result<(), EnrolmentError> {
        let failed = || EnrolmentError::connection(&self.peer);
        self.stream.sock.prolong(EXCHANGE);
        send(&mut self.stream, &Request::Done).map_err(failed())?;
        match receive(&mut self.stream, REPLY_MAX).map_err(failed())? {
            Reply::Recorded => Ok(()),
            Reply::Refused(reason) => Err(EnrolmentError::Refused(reason)),
            Reply::Accepted(_) => Err(EnrolmentError::Malformed("accepted twice".to_owned())),
        }
    }
}

fn client_config(pin: [u8; 32]) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let pinned = Pinned {
        pin,
        provider: Arc::clone(&provider),
    };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(pinned))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Arc::new(config))
}

/// Accepts a server whose certificate the CA of the pin signed.
#[derive(Debug)]
struct Pinned {
    pin: [u8; 32],
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let unknown = Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let is_pinned = |ca: &&CertificateDer<'_>| <[u8; 32]>::from(Sha256::digest(ca)) == self.pin;
        let ca = others.iter().find(is_pinned).ok_or(unknown)?;
        let mut roots = RootCertStore::empty();
        roots.add(ca.clone().into_owned())?;
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&self.provider))
            .build()
            .map_err(|error| Error::General(error.to_string()))?
            .verify_server_cert(own, &[], name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
