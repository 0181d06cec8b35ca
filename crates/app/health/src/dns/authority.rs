//! The certificate authority of `[acme]`: the names in CAA records, and the account there.

use std::fs;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::Request;
use serde::Deserialize;
use tokio::time::timeout;
use vere_http::{HttpClient, Schemes, authorities, client_config};
use vere_ports::directory::DomainName;
use vere_settings::{AcmeChallenge, Settings};

/// The longest time for the directory of an authority, and the octets of the answer.
const PATIENCE: Duration = Duration::from_secs(10);
const ANSWER_OCTETS_MAX: usize = 64 * 1024;
/// Names of an authority, and files and octets of accounts.
const IDENTITIES_MAX: usize = 16;
const FILES_MAX: usize = 64;
const ACCOUNT_OCTETS_MAX: u64 = 64 * 1024;

/// Authorities by the end of the host in the address of the directory, each with a name in CAA records: for a
/// directory without names, and for checks without connections.
const KNOWN: [(&str, &str); 6] = [
    ("letsencrypt.org", "letsencrypt.org"),
    ("buypass.com", "buypass.com"),
    ("pki.goog", "pki.goog"),
    ("sectigo.com", "sectigo.com"),
    ("ssl.com", "ssl.com"),
    ("zerossl.com", "sectigo.com"),
];

/// The authority of `[acme]`.
#[derive(Debug, Clone)]
pub(super) struct Authority {
    /// The address of the directory.
    pub(super) directory: String,
    /// A file of roots for the authority's server.
    pub(super) root: Option<PathBuf>,
    /// The type of challenges, by the name in RFC 8657 section 4.
    pub(super) method: &'static str,
    /// The names in CAA records, in lower case; empty for an unknown authority.
    pub(super) identities: Vec<String>,
    pub(super) account: Account,
}

/// The account of the system at the authority, by address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Account {
    Known(String),
    None,
    Unreadable,
}

impl Authority {
    /// The authority of the settings, by knowledge of the machine.
    pub(super) fn of(settings: &Settings) -> Option<Self> {
        let acme = settings.acme.as_ref()?;
        let identity = known(&acme.directory).map(str::to_owned);
        Some(Self {
            directory: acme.directory.clone(),
            root: acme.root.clone(),
            method: match acme.challenge {
                AcmeChallenge::Http01 => "http-01",
                AcmeChallenge::TlsAlpn01 => "tls-alpn-01",
                AcmeChallenge::Dns01 => "dns-01",
            },
            identities: identity.into_iter().collect(),
            account: account(&settings.data.join("acme"), &acme.directory),
        })
    }

    /// Asks the directory for the names; answered names count more than known names.
    pub(super) async fn ask(&mut self) {
        let asked = timeout(PATIENCE, fetch(&self.directory, self.root.as_deref())).await;
        let found = asked.ok().flatten().map(|text| identities(&text));
        if let Some(found) = found.filter(|found| !found.is_empty()) {
            self.identities = found;
        }
    }
}

/// The name of a well-known authority in CAA records.
pub(super) fn known(directory: &str) -> Option<&'static str> {
    let host = directory.strip_prefix("https://")?;
    let host = host.split(['/', ':']).next()?.to_ascii_lowercase();
    let is_below = |end: &str| {
        let rest = host.strip_suffix(end);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let mut all = KNOWN.into_iter();
    all.find_map(|(end, identity)| is_below(end).then_some(identity))
}

async fn fetch(directory: &str, root: Option<&Path>) -> Option<Bytes> {
    let roots = authorities(root, true).ok()?;
    let tls = client_config(roots).ok()?.with_no_client_auth();
    let client = HttpClient::new(tls, Schemes::Https, Some(PATIENCE));
    let request = Request::get(directory).body(Empty::<Bytes>::new()).ok()?;
    let answer = client.request(request).await.ok()?;
    if !answer.status().is_success() {
        return None;
    }
    let body = Limited::new(answer.into_body(), ANSWER_OCTETS_MAX);
    Some(body.collect().await.ok()?.to_bytes())
}

/// `caaIdentities` of a directory (RFC 8555 section 7.1.1). Values other than names of domains are passed over.
fn identities(directory: &[u8]) -> Vec<String> {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase")]
    struct Meta {
        #[serde(default)]
        caa_identities: Vec<String>,
    }
    #[derive(Deserialize)]
    struct Directory {
        #[serde(default)]
        meta: Meta,
    }
    let read = serde_json::from_slice::<Directory>(directory);
    let names = read.map(|directory| directory.meta.caa_identities);
    let names = names.unwrap_or_default().into_iter().take(IDENTITIES_MAX);
    let names = names.filter_map(|name| DomainName::parse(&name).ok());
    names.map(|name| name.to_string()).collect()
}

/// The account for a directory among the files of `[acme]`, readable by the system's user alone.
fn account(folder: &Path, directory: &str) -> Account {
    #[derive(Deserialize)]
    struct Kept {
        id: String,
        directory: Option<String>,
    }
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Account::None,
        Err(_) => return Account::Unreadable,
    };
    let files = entries.flatten().map(|entry| entry.path());
    let files = files.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("account-") && name.ends_with(".json")
    });
    let mut result = Account::None;
    for path in files.take(FILES_MAX) {
        let mut text = String::new();
        let file = fs::File::open(&path);
        let read = file.and_then(|file| file.take(ACCOUNT_OCTETS_MAX).read_to_string(&mut text));
        if read.is_err() {
            result = Account::Unreadable;
        } else if let Ok(kept) = serde_json::from_str::<Kept>(&text)
            && kept.directory.as_deref() == Some(directory)
        {
            return Account::Known(kept.id);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_names_the_authority() {
        let text =
            br#"{"newNonce":"x","meta":{"caaIdentities":["CA.example","bad name","old.example"]}}"#;
        assert_eq!(identities(text), ["ca.example", "old.example"]);
        for text in [&b"{\"newNonce\":\"x\"}"[..], b"{\"meta\":{}}", b"no JSON"] {
            assert!(identities(text).is_empty());
        }
        let many = serde_json::json!({"meta": {"caaIdentities": vec!["ca.example"; 100]}});
        assert_eq!(
            identities(many.to_string().as_bytes()).len(),
            IDENTITIES_MAX
        );
    }

    #[test]
    fn well_known_authorities_are_known_without_asking() {
        let name = |host: &str| known(&format!("https://{host}/directory"));
        assert_eq!(
            name("acme-v02.api.letsencrypt.org"),
            Some("letsencrypt.org")
        );
        assert_eq!(name("acme.ZeroSSL.com:443"), Some("sectigo.com"));
        assert_eq!(name("ca.notletsencrypt.org"), None);
        assert_eq!(name("ca.example/letsencrypt.org"), None);
    }

    #[test]
    fn the_account_is_that_of_the_directory() {
        let folder = tempfile::tempdir().unwrap();
        let directory = "https://ca.example/directory";
        assert_eq!(
            account(&folder.path().join("absent"), directory),
            Account::None
        );
        let write = |name: &str, directory: &str, id: &str| {
            let value = serde_json::json!({"id": id, "key_pkcs8": "", "directory": directory});
            fs::write(folder.path().join(name), value.to_string()).unwrap();
        };
        write("account-other.json", "https://other.example/", "other");
        fs::write(folder.path().join("certificate.pem"), "x").unwrap();
        assert_eq!(account(folder.path(), directory), Account::None);
        write("account-ca.json", directory, "https://ca.example/acct/7");
        let own = Account::Known("https://ca.example/acct/7".to_owned());
        assert_eq!(account(folder.path(), directory), own);
    }
}
