//! The answers to the challenges of an order: published, and withdrawn when the order ends.

use std::sync::{Mutex, MutexGuard, PoisonError};

use instant_acme::KeyAuthorization;
use tokio::runtime::Handle;
use tokio::time::sleep;

use super::AcmeError;
use super::alpn::AlpnChallenges;
use super::challenges::{Answers, Challenges};
use super::hook;
use super::proof::{DnsProof, Proof, Publisher};
use super::update::{self, Change};

/// The label below which an authority looks for a record (RFC 8555 section 8.4).
const LABEL: &str = "_acme-challenge";

/// Where answers are published; clones share the answers.
#[derive(Clone, Debug, Default)]
pub struct Places {
    http: Challenges,
    alpn: AlpnChallenges,
}

impl Places {
    /// Places with these answers over HTTP and in handshakes.
    #[must_use]
    pub const fn new(http: Challenges, alpn: AlpnChallenges) -> Self {
        Self { http, alpn }
    }

    /// The source of answers for [`serve_challenges`](super::serve_challenges).
    #[must_use]
    pub fn http(&self) -> Challenges {
        self.http.clone()
    }

    /// The source of answers for [`serve_alpn`](super::serve_alpn).
    #[must_use]
    pub fn alpn(&self) -> AlpnChallenges {
        self.alpn.clone()
    }
}

/// The answers of an order. Files and certificates go when the value is dropped, records by [`withdraw`](Self::withdraw), or by a task
/// where the order was given up before.
#[derive(Debug)]
pub(super) struct Published {
    proof: Proof,
    places: Places,
    http: Mutex<Answers>,
    names: Mutex<Vec<String>>,
    records: Mutex<Vec<(String, String)>>,
}

impl Published {
    pub(super) fn new(proof: Proof, places: Places) -> Self {
        Self {
            http: Mutex::new(Answers::new(places.http.clone())),
            proof,
            places,
            names: Mutex::default(),
            records: Mutex::default(),
        }
    }

    /// Publishes the answer for a name.
    ///
    /// # Errors
    /// [`AcmeError::Challenge`] with the reason.
    pub(super) async fn add(
        &self,
        name: &str,
        token: String,
        answer: KeyAuthorization,
    ) -> Result<(), AcmeError> {
        match &self.proof {
            Proof::Http => lock(&self.http).add(token, answer.as_str().to_owned())?,
            Proof::TlsAlpn => {
                self.places.alpn.add(name, answer.digest().as_ref())?;
                lock(&self.names).push(name.to_owned());
            }
            Proof::Dns(dns) => {
                let owner = format!("{LABEL}.{}", name.trim_start_matches("*."));
                let record = (owner, answer.dns_value());
                // Also after a failure in the middle the record is taken away.
                lock(&self.records).push(record.clone());
                let changed = change(dns, Change::Add, &record).await;
                let name = name.to_owned();
                changed.map_err(|problem| AcmeError::Challenge { name, problem })?;
            }
        }
        Ok(())
    }

    /// Waits until other systems may see the answers.
    pub(super) async fn spread(&self) {
        if let Proof::Dns(dns) = &self.proof
            && !lock(&self.records).is_empty()
        {
            sleep(dns.wait).await;
        }
    }

    /// Takes the records away. A failure is logged: a record left in the DNS proves nothing to anybody later.
    pub(super) async fn withdraw(&self) {
        if let Proof::Dns(dns) = &self.proof {
            let records = std::mem::take(&mut *lock(&self.records));
            remove(dns, records).await;
        }
    }
}

async fn remove(dns: &DnsProof, records: Vec<(String, String)>) {
    for record in records {
        if let Err(problem) = change(dns, Change::Remove, &record).await {
            tracing::warn!(
                name = record.0,
                problem,
                "record of a challenge left in the DNS"
            );
        }
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        for name in lock(&self.names).drain(..) {
            self.places.alpn.remove(&name);
        }
        let records = std::mem::take(&mut *lock(&self.records));
        if let Proof::Dns(dns) = &self.proof
            && !records.is_empty()
            && let Ok(runtime) = Handle::try_current()
        {
            // The order was given up, such as by a change of the settings. At the end of the process the task may come too late.
            let dns = dns.clone();
            runtime.spawn(async move { remove(&dns, records).await });
        }
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn change(dns: &DnsProof, change: Change, record: &(String, String)) -> Result<(), String> {
    let (name, value) = record;
    match &dns.by {
        Publisher::Update(options) => update::run(options, change, name, value).await,
        Publisher::Hook(program) => {
            let verb = match change {
                Change::Add => "add",
                Change::Remove => "remove",
            };
            hook::run(program, verb, name, value).await
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::Duration;

    use super::*;

    /// The order of a hook's calls is that of an order: all records first, then all removed, also after a failure.
    #[tokio::test]
    async fn a_hook_adds_records_and_removes_them_at_the_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let (hook, calls) = (folder.path().join("hook"), folder.path().join("calls"));
        let text = format!(
            "#!/bin/sh\necho \"$1 $2 $3\" >> '{}'\n[ \"$1 $2\" != 'add _acme-challenge.b.test' ]\n",
            calls.display()
        );
        fs::write(&hook, text).expect("room");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o700)).expect("ours");
        let dns = DnsProof {
            by: Publisher::Hook(hook),
            wait: Duration::ZERO,
        };
        let published = Published::new(Proof::Dns(dns.clone()), Places::default());
        for (name, fails) in [("a.test", false), ("b.test", true)] {
            let record = (format!("{LABEL}.{name}"), "value".to_owned());
            lock(&published.records).push(record.clone());
            assert_eq!(change(&dns, Change::Add, &record).await.is_err(), fails);
        }
        published.withdraw().await;
        published.withdraw().await;
        let said = || fs::read_to_string(&calls).expect("called");
        let expected = "add _acme-challenge.a.test value\nadd _acme-challenge.b.test value\n\
                        remove _acme-challenge.a.test value\nremove _acme-challenge.b.test value\n";
        assert_eq!(said(), expected);
        // An order that is given up removes its records as well: an aborted order left them.
        let record = (format!("{LABEL}.c.test"), "value".to_owned());
        lock(&published.records).push(record);
        drop(published);
        let patience = std::time::Instant::now() + Duration::from_secs(60);
        while !said().ends_with("remove _acme-challenge.c.test value\n") {
            assert!(std::time::Instant::now() < patience, "{}", said());
            sleep(Duration::from_millis(10)).await;
        }
    }
}
