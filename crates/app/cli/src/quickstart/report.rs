//! The screen of `vere quickstart`: the files created, the records, and the steps that remain for the user.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;
use vere_health::dns::records::{Place, REPORTS};
use vere_ports::directory::{AccountName, DomainName};
use vere_units::Secret;

use super::certificate::State;
use super::files::Plan;

/// The files created, and the steps that remain for the user.
pub(super) struct Report<'a> {
    pub(super) account: &'a AccountName,
    pub(super) hostname: &'a DomainName,
    /// The password of the account; `None` if the account was there before and keeps its password.
    pub(super) password: Option<&'a Secret<String>>,
    pub(super) plan: &'a Plan,
    pub(super) place: Place<'a>,
}

impl Report<'_> {
    fn next(&self) -> String {
        match self.plan.has_unit() {
            true => "systemctl enable --now vere".to_owned(),
            false => self.command("serve"),
        }
    }

    /// A command for this system, with the settings where the command would miss the file.
    fn command(&self, words: &str) -> String {
        match self.plan.has_unit() {
            true => format!("vere {words}"),
            false => format!("vere {words} -c {}", quoted(&self.plan.config())),
        }
    }

    /// The meaning of a system that was not made by root.
    fn trial(&self) -> Option<String> {
        let Plan { dir, ports, .. } = self.plan;
        (!self.plan.root).then(|| {
            format!(
                "not root: this is a system for trying out, below {}, with the ports {ports}; other mail systems \
                 deliver to port 25 alone. For a server: sudo vere quickstart {}",
                dir.display(),
                self.account
            )
        })
    }

    /// The notes for the operator, without the DNS records.
    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.trial().into_iter().collect();
        notes.extend_from_slice(&self.plan.notes_on_kept);
        notes.extend(self.notes_on_names());
        notes.push(self.note_on_certificate());
        let [gateway, store, front] = self.plan.ports.all_metrics();
        notes.push(format!(
            "metrics for Prometheus are at http://127.0.0.1:{gateway}/metrics, and at the ports {store} (mail store) \
             and {front} (front)"
        ));
        notes.extend(self.plan.note_on_memory().map(str::to_owned));
        notes.extend(self.plan.note_on_user().map(str::to_owned));
        notes.extend(self.plan.drop_in().map(|drop_in| {
            format!(
                "{} limits the memory of the service by the bounds of these settings; make it again when limits \
                 change: {}",
                drop_in.display(),
                self.command("config memory --systemd")
            )
        }));
        notes
    }

    fn notes_on_names(&self) -> Vec<String> {
        let (domain, hostname) = (self.account.domain(), self.hostname);
        let mut notes = vec![
            format!(
                "mail is signed (DKIM) once the running system sees the two records of the keys in the DNS; see why keys \
                 wait with: {}",
                self.command(&format!("dkim list {domain}"))
            ),
            format!(
                "once the records are published and the system runs, look for faults with: {}; print the records again \
                 with: {}",
                self.command(&format!("dns check {domain}")),
                self.command(&format!("dns records {domain}"))
            ),
            format!(
                "ask whoever gave you the IP address to let its reverse record (PTR) say {hostname}"
            ),
            format!(
                "reports of other systems about mail in your name come to {REPORTS}@{domain}; sum them up with: {}",
                self.command(&format!("reports --account {REPORTS}@{domain}"))
            ),
        ];
        if self.place.addresses.is_empty() {
            notes.push(format!(
                "no interface has a public address; behind NAT, say it: {}",
                self.command("dns records --address IP")
            ));
        }
        notes
    }

    fn note_on_certificate(&self) -> String {
        let hostname = self.hostname;
        let reload = self.command("reload");
        if self.plan.acme {
            return format!(
                "Let's Encrypt issues the certificate, and you agree to its terms; port 80 of {hostname} must be reachable"
            );
        }
        let State::Foreign(problem) = &self.plan.certificate else {
            return format!(
                "the certificate is self-signed: mail programs will ask whether to trust it; once {hostname} leads \
                 here, add [acme] to the settings for a certificate that they trust, then: {reload}"
            );
        };
        let certificate = self.plan.pair().certificate;
        let note = format!(
            "the certificate {} was there and remains in use",
            certificate.display()
        );
        match problem {
            None => note,
            Some(problem) => format!(
                "{note}, but {problem}, and mail programs will refuse it: replace the certificate and its key, or add \
                 [acme] to the settings, then: {reload}"
            ),
        }
    }

    pub(super) fn text(&self) -> String {
        let Self {
            account,
            hostname,
            plan,
            ..
        } = self;
        let trial = self.trial().map(|trial| trial + "\n\n");
        let renewal = self.command(&format!("account passwd {account}"));
        let as_before = format!("as before (the account was there; new one: {renewal})");
        let password = match self.password {
            Some(password) => password.expose().as_str(),
            None => &as_before,
        };
        let mut text = format!(
            "{}wrote {}\nmail is kept below {}\n\naccount   {account}\npassword  {password}\n\
             server    {hostname}, ports {}\n\nDNS records to add:\n\n",
            trial.unwrap_or_default(),
            plan.config().display(),
            plan.data.display(),
            plan.ports,
        );
        text += &self.place.block();
        text.push('\n');
        let notes = self.notes();
        for note in notes.iter().skip(usize::from(!plan.root)) {
            let _ = writeln!(text, "- {note}");
        }
        let _ = writeln!(text, "\nnext: {}", self.next());
        text
    }

    pub(super) fn json(&self) -> String {
        let ports = &self.plan.ports;
        let value = json!({
            "config": self.plan.config(),
            "data": self.plan.data,
            "root": self.plan.root,
            "account": self.account.to_string(),
            "password": self.password.map(Secret::expose),
            "hostname": self.hostname.as_str(),
            "acme": self.plan.acme,
            "ports": {
                "smtp": ports.smtp,
                "submission": ports.submission,
                "submissions": ports.submissions,
                "imaps": ports.imaps,
                "lmtp": ports.lmtp,
                "metrics": ports.metrics,
            },
            "dns": self.place.records(),
            "notes": self.notes(),
            "next": self.next(),
        });
        format!("{value:#}\n")
    }
}

/// A path as a single word of a shell command.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
