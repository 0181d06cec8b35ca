//! Lines about messages for a web server with a valid or an invalid certificate.

use std::collections::BTreeSet;
use std::io::{BufReader, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use rustls::{AlertDescription, ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

use crate::harness::{
    Authority, Files, Hook, Options, Session, Sink, System, answer, quoted, read_post, wait_for,
    wait_until,
};

/// The posts so far.
#[derive(Debug, Default)]
struct Seen {
    /// The alerts of clients about the present certificate.
    alerts: Vec<AlertDescription>,
    /// Lines of posts answered with success.
    lines: Vec<Value>,
}

/// A web server behind TLS with a replaceable certificate.
struct Shop {
    hook: Hook,
    shown: Arc<Mutex<Arc<ServerConfig>>>,
    seen: Arc<Mutex<Seen>>,
}

impl Shop {
    fn start(files: &Files) -> Self {
        let shown = Arc::new(Mutex::new(files.server(&[])));
        let seen = Arc::<Mutex<Seen>>::default();
        let (config, kept) = (Arc::clone(&shown), Arc::clone(&seen));
        let hook = Hook::start(move |stream| {
            let now = Arc::clone(&config.lock().expect("no panic"));
            let Err(alert) = serve(stream, &now, &kept) else {
                return;
            };
            // An alert about an earlier certificate does not count for the present certificate.
            let shown = config.lock().expect("no panic");
            if Arc::ptr_eq(&now, &shown) {
                kept.lock().expect("no panic").alerts.extend(alert);
            }
        });
        Self { hook, shown, seen }
    }

    /// Shows a certificate from now on.
    fn show(&self, files: &Files) {
        let mut shown = self.shown.lock().expect("no panic");
        *shown = files.server(&[]);
        // No alert is added meanwhile.
        self.seen.lock().expect("no panic").alerts.clear();
    }

    /// Waits until a client has said what is wrong with the certificate.
    fn wait_alert(&self) -> AlertDescription {
        wait_for("a client that refuses the certificate", || {
            let seen = self.seen.lock().expect("no panic");
            assert_eq!(seen.lines, [] as [Value; 0]);
            seen.alerts.last().copied()
        })
    }
}

/// Receives a post; fails with the alert of a client that refuses the connection.
fn serve(
    stream: TcpStream,
    config: &Arc<ServerConfig>,
    seen: &Mutex<Seen>,
) -> Result<(), Option<AlertDescription>> {
    let connection = ServerConnection::new(Arc::clone(config)).expect("a server");
    let mut reader = BufReader::new(StreamOwned::new(connection, stream));
    let alert = |error: std::io::Error| {
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
        match cause {
            Some(rustls::Error::AlertReceived(alert)) => Some(*alert),
            _ => None,
        }
    };
    let lines = read_post(&mut reader).map_err(alert)?;
    let stream = reader.get_mut();
    stream
        .write_all(answer("204 Yes").as_bytes())
        .map_err(alert)?;
    stream.conn.send_close_notify();
    stream.flush().map_err(alert)?;
    seen.lock().expect("no panic").lines.extend(lines);
    Ok(())
}

#[test]
fn lines_wait_until_the_web_server_proves_its_name() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let other = authority.sign("other", &["other.example.com"]);
    let expired = authority.sign_expired("expired", &["localhost"]);
    let foreign = stranger.sign("foreign", &["localhost"]);
    let good = authority.sign("good", &["localhost"]);
    let (shop, sink) = (Shop::start(&other), Sink::start());
    let system = System::start(&options(&authority, &shop.hook, &sink));
    let mut session = Session::greeted(system.smtp);
    let mut ids = BTreeSet::new();
    let mut submit = || {
        let text = "Subject: a\r\n\r\nbody";
        session.submit("a@example.net", &["x@example.com"], text)
    };
    for (files, alerts) in [
        (&other, [AlertDescription::BadCertificate; 2]),
        (&expired, [AlertDescription::CertificateExpired; 2]),
        (
            &foreign,
            [AlertDescription::UnknownCA, AlertDescription::DecryptError],
        ),
    ] {
        shop.show(files);
        ids.insert(submit());
        let alert = shop.wait_alert();
        assert!(alerts.contains(&alert), "{alert:?} and not {alerts:?}");
    }
    system.wait_log(&["records are not taken; they wait", "certificate"]);
    // The lines are in the spool: a new gateway still has the lines.
    system.kill_and_wait("gateway");
    shop.show(&foreign);
    shop.wait_alert();
    shop.show(&good);
    wait_until("a line for each message", || {
        let seen = shop.seen.lock().expect("no panic");
        let told = seen.lines.iter().map(|line| line["message"].as_str());
        let told: BTreeSet<_> = told.flatten().map(str::to_owned).collect();
        told == ids
    });
    system.stop();
    let seen = shop.seen.lock().expect("no panic");
    let lines: BTreeSet<_> = seen.lines.iter().map(ToString::to_string).collect();
    assert_eq!(lines.len(), ids.len(), "{lines:?}");
}

fn options(authority: &Authority, hook: &Hook, sink: &Sink) -> Options {
    let url = format!("\"https://localhost:{}/hook\"", hook.address.port());
    Options::to(sink.address)
        .set("records.webhook", &url)
        .set("records.webhook_ca", &quoted(&authority.ca))
        .set(
            "records.webhook_secret",
            &quoted(&Hook::write_secret(authority.folder())),
        )
}
