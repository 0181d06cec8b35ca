//! Users, passwords and certificates.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use vere_cluster::{
    ClientCertificate, EtcdOptions, EtcdRegister, Login, Register, RegisterError, Swap,
};
use vere_units::Secret;

use super::{ready, register_of};
use crate::counter::{KEY, increment};
use vere_faults::etcd::{Cluster, post};

fn register(options: EtcdOptions) -> Register {
    Register::Etcd(EtcdRegister::new(options).unwrap())
}

fn is_refused<T: std::fmt::Debug>(result: Result<T, RegisterError>) -> bool {
    matches!(result, Err(RegisterError::Refused { .. }))
}

/// Makes the users root and vere, who may use `vere/` only; both have the password `secret`.
fn make_users(member: SocketAddr) {
    for (path, body) in [
        ("user/add", r#"{"name":"root","password":"secret"}"#),
        ("user/grant", r#"{"user":"root","role":"root"}"#),
        ("user/add", r#"{"name":"vere","password":"secret"}"#),
        ("role/add", r#"{"name":"mail"}"#),
        // vere/ to vere0, the octet after the slash.
        (
            "role/grant",
            r#"{"name":"mail","perm":{"permType":"READWRITE","key":"dmVyZS8=","range_end":"dmVyZTA="}}"#,
        ),
        ("user/grant", r#"{"user":"vere","role":"mail"}"#),
        ("enable", "{}"),
    ] {
        let answer = post(member, &format!("/v3/auth/{path}"), body).unwrap_or_default();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
    }
}

#[tokio::test]
async fn users_are_let_in_as_far_as_their_rights_go() {
    let Some(mut cluster) = Cluster::start(1) else {
        return;
    };
    let anonymous = register_of(&cluster);
    ready(&anonymous).await;
    let options = |password: &str, prefix: &str| {
        let mut options = EtcdOptions::new(cluster.endpoints());
        options.prefix = prefix.to_owned();
        options.login = Some(Login {
            user: "vere".to_owned(),
            password: Secret::new(password.to_owned()),
        });
        options
    };
    // Without users there, nobody can log in.
    assert!(is_refused(
        register(options("secret", "vere")).read(KEY).await
    ));
    make_users(cluster.address(0));
    let known = register(options("secret", "vere"));
    let elsewhere = register(options("secret", "other"));
    let wrong = register(options("wrong", "vere"));
    assert!(is_refused(anonymous.read(KEY).await));
    assert!(is_refused(anonymous.swap(KEY, None, b"x").await));
    assert!(is_refused(wrong.swap(KEY, None, b"x").await));
    assert!(is_refused(elsewhere.swap(KEY, None, b"x").await));
    assert!(is_refused(elsewhere.list("group/").await));
    assert_eq!(known.read(KEY).await, Ok(None));
    let before = increment(&known).await.unwrap();
    assert_eq!(known.list("group/").await.unwrap().len(), 1);
    // A member that starts anew knows no tokens; the same register gets itself another.
    cluster.kill(0);
    cluster.restart(0);
    ready(&known).await;
    let after = increment(&known).await.unwrap();
    assert_eq!(after.1, before.1 + 1);
}

/// An authority with a certificate for the member and one for a client, as files.
fn certificates(folder: &Path, member: SocketAddr) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    write("ca.pem", authority.pem());
    for name in ["member", "client"] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![member.ip().to_string()]).unwrap();
        // A member is a client too: its gateway's, towards itself.
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let certificate = params.signed_by(&key, &authority).unwrap();
        write(&format!("{name}.pem"), certificate.pem());
        write(&format!("{name}.key"), key.serialize_pem());
    }
}

#[tokio::test]
async fn both_sides_show_certificates() {
    let mut files = PathBuf::new();
    let started = Cluster::start_with(1, "https", |folder, member| {
        files = folder.to_owned();
        certificates(folder, member);
        let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
        vec![
            "--client-cert-auth".to_owned(),
            format!("--trusted-ca-file={}", file("ca.pem")),
            format!("--cert-file={}", file("member.pem")),
            format!("--key-file={}", file("member.key")),
        ]
    });
    let Some(cluster) = started else {
        return;
    };
    let mut options = EtcdOptions::new(cluster.endpoints());
    options.ca = Some(files.join("ca.pem"));
    options.certificate = Some(ClientCertificate {
        certificate: files.join("client.pem"),
        key: files.join("client.key"),
    });
    let known = register(options.clone());
    ready(&known).await;
    let swap = known.swap(KEY, None, b"x").await;
    assert!(matches!(swap, Ok(Swap::Done(_))), "{swap:?}");

    let mut no_certificate = options.clone();
    no_certificate.certificate = None;
    let swap = register(no_certificate).swap(KEY, None, b"y").await;
    assert!(is_refused(swap.clone()), "{swap:?}");
    let mut other_authority = options.clone();
    certificates(&files, cluster.address(0));
    other_authority.ca = Some(files.join("ca.pem"));
    let swap = register(other_authority).swap(KEY, None, b"y").await;
    assert!(is_refused(swap.clone()), "{swap:?}");
    assert_eq!(known.read(KEY).await.unwrap().unwrap().value, b"x");

    for missing in ["nothing.pem", "client.key"] {
        options.ca = Some(files.join(missing));
        assert!(is_refused(EtcdRegister::new(options.clone())));
    }
}
