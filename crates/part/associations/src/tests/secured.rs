//! Associations over TLS.

use rcgen::{CertificateParams, KeyPair};
use vere_net::tls::{
    CertificateFiles, ClientTls, Roots, ServerTls, ServerTlsOptions, Verification,
};

use super::help::*;
use crate::*;

fn certificate(directory: &std::path::Path) -> (ServerTls, ClientTls) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["mta-b.test".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let files = CertificateFiles::new(directory.join("c.pem"), directory.join("c.key"));
    std::fs::write(&files.certificate, certificate.pem()).unwrap();
    std::fs::write(&files.key, key.serialize_pem()).unwrap();
    let roots = Roots::only(&files.certificate).unwrap();
    let server = ServerTls::new(ServerTlsOptions {
        default: Some(files),
        ..ServerTlsOptions::default()
    });
    let client = ClientTls::new(Verification::Required, &roots).unwrap();
    (server.unwrap(), client)
}

#[tokio::test]
async fn an_association_over_tls() {
    let directory = tempfile::tempdir().unwrap();
    let (server, client) = certificate(directory.path());
    let (listener, address) = listen().await;
    let mut peer = peer(address, NORMAL, &patient());
    peer.tls = Some((client, "mta-b.test".to_owned()));
    let book = book();
    let served = book.clone();
    let serving = tokio::spawn(async move {
        let (stream, address) = listener.accept().await.unwrap();
        let (stream, info) = server.accept(stream).await.unwrap();
        let remote = Remote {
            address,
            tls: Some(info),
        };
        let caller = respond(&responder(&patient()), Box::new(stream), remote)
            .await
            .unwrap();
        let decision = decide(caller.asked());
        sink(caller.answer(async { decision }).await.unwrap(), served).await
    });
    let (mut open, _) = initiate(&peer, Names::new("mta-a").next()).await.unwrap();
    assert_eq!(open.facts().remote.tls.as_ref().unwrap().version, "TLSv1.3");
    for number in 0..20 {
        assert!(open.transfer(&apdu(number, 1_000)).await.is_transferred());
    }
    assert!(open.transfer(&apdu(20, 3_000_000)).await.is_transferred());
    assert_eq!(open.release().await, End::Released);
    assert_eq!(serving.await.unwrap(), End::Released);
    assert_eq!(book.lock().unwrap().seen.len(), 21);
}
