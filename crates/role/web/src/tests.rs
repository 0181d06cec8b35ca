//! The routes, without sockets.

use std::fs;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, StatusCode};
use tempfile::TempDir;
use tower_service::Service as _;
use vere_net::sts::Policy;
use vere_ports::directory::DomainName;
use vere_process::published;
use vere_settings::Settings;
use vere_telemetry::metrics::Metrics;

use crate::routes;
use crate::site::Site;

const OUTLOOK: &str =
    "http://schemas.microsoft.com/exchange/autodiscover/outlook/responseschema/2006a";

struct Ground {
    folder: TempDir,
    site: Arc<Site>,
}

fn settings(folder: &TempDir, rest: &str) -> Settings {
    let text = format!(
        "version = 1\nhostname = \"mail.example.org\"\ndata = \"{}\"\n\
         [submissions]\nlisten = [\"127.0.0.1:465\"]\n[imaps]\nlisten = [\"127.0.0.1:993\"]\n\
         [tls]\ncertificate = \"c\"\nkey = \"k\"\n[web]\n{rest}",
        folder.path().display()
    );
    Settings::parse(&text, "/etc/vere/vere.toml").unwrap()
}

impl Ground {
    fn new(rest: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(&folder, rest);
        fs::create_dir_all(settings.web_challenges()).unwrap();
        let domains = ["example.org", "example.net"].map(|name| DomainName::parse(name).unwrap());
        published::write(&settings.web_domains(), &domains).unwrap();
        let site = Arc::new(Site::new(&settings, &Metrics::new()).unwrap());
        Self { folder, site }
    }

    async fn ask(routes: Router, request: Request<Body>) -> (Response<()>, String) {
        let mut routes = routes;
        let (parts, body) = routes.call(request).await.unwrap().into_parts();
        let body = to_bytes(body, 1 << 20).await.unwrap();
        let text = String::from_utf8(body.to_vec()).unwrap();
        (Response::from_parts(parts, ()), text)
    }

    async fn get(&self, host: &str, path: &str) -> (Response<()>, String) {
        let request = Request::get(path).header("host", host);
        let request = request.body(Body::empty()).unwrap();
        Self::ask(routes::encrypted(Arc::clone(&self.site)), request).await
    }

    async fn status(&self, host: &str, path: &str) -> u16 {
        self.get(host, path).await.0.status().as_u16()
    }

    async fn post(&self, host: &str, path: &str, body: String) -> (Response<()>, String) {
        let request = Request::post(path).header("host", host);
        let request = request.body(Body::from(body)).unwrap();
        Self::ask(routes::encrypted(Arc::clone(&self.site)), request).await
    }

    async fn in_clear(&self, host: &str, path: &str) -> (Response<()>, String) {
        let request = Request::get(path).header("host", host);
        let request = request.body(Body::empty()).unwrap();
        Self::ask(routes::in_clear(Arc::clone(&self.site)), request).await
    }
}

fn request(user: &str) -> String {
    format!(
        "<Autodiscover><Request><EMailAddress>{user}</EMailAddress>\
         <AcceptableResponseSchema>{OUTLOOK}</AcceptableResponseSchema></Request></Autodiscover>"
    )
}

#[tokio::test]
async fn the_policy_is_the_one_that_senders_read_and_has_one_name() {
    let ground =
        Ground::new("mta_sts = \"enforce\"\nmx = [\"mx1.example.org\", \"mx2.example.org\"]\n");
    let path = "/.well-known/mta-sts.txt";
    let (answer, text) = ground.get("mta-sts.example.org", path).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(
        answer.headers()["content-type"],
        "text/plain; charset=utf-8"
    );
    let policy = Policy::parse(&text).unwrap();
    assert_eq!(policy.mode.as_str(), "enforce");
    assert_eq!(policy.mx, ["mx1.example.org", "mx2.example.org"]);
    assert_eq!(policy.max_age.as_secs(), 604_800);
    for host in [
        "example.org",
        "autoconfig.example.org",
        "mail.example.org",
        "mta-sts.example.com",
    ] {
        assert_eq!(ground.status(host, path).await, 404, "{host}");
    }
    let off = Ground::new("mta_sts = \"off\"\n");
    assert_eq!(off.status("mta-sts.example.org", path).await, 404);
}

#[tokio::test]
async fn every_address_of_a_local_domain_has_the_same_answer() {
    let ground = Ground::new("");
    let path = |user: &str| format!("/mail/config-v1.1.xml?emailaddress={user}");
    let (answer, text) = ground
        .get("autoconfig.example.org", &path("a%40example.org"))
        .await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(
        text,
        ground
            .get("autoconfig.example.org", &path("nobody%40example.org"))
            .await
            .1
    );
    // The address counts before the name of the request.
    let other = ground
        .get("autoconfig.example.org", &path("a%40example.net"))
        .await
        .1;
    assert!(other.contains("<domain>example.net</domain>"), "{other}");
    assert_eq!(
        ground
            .status("autoconfig.example.org", &path("a%40example.com"))
            .await,
        404
    );
    let well_known = "/.well-known/autoconfig/mail/config-v1.1.xml";
    assert_eq!(ground.get("example.org", well_known).await.1, text);
    assert_eq!(
        ground.status("autoconfig.example.com", well_known).await,
        404
    );
    // The host itself has no domain that it could mean.
    assert_eq!(ground.status("mail.example.org", well_known).await, 404);
    let with_address = format!("{well_known}?EmailAddress=a@example.org");
    assert_eq!(ground.get("mail.example.org", &with_address).await.1, text);
}

#[tokio::test]
async fn outlook_is_answered_by_any_spelling_of_its_path() {
    let ground = Ground::new("body_size_max = \"1 KiB\"\n");
    let host = "autodiscover.example.org";
    let mut answers = Vec::new();
    for path in [
        "/autodiscover/autodiscover.xml",
        "/Autodiscover/Autodiscover.XML",
    ] {
        let (answer, text) = ground.post(host, path, request("a@example.org")).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        answers.push(text);
    }
    assert!(
        answers[0].contains("<LoginName>a@example.org</LoginName>"),
        "{answers:?}"
    );
    assert_eq!(answers[0], answers[1]);
    let path = "/autodiscover/autodiscover.xml";
    let post = async |body: String| {
        let (answer, text) = ground.post(host, path, body).await;
        (answer.status().as_u16(), text)
    };
    assert_eq!(post(request("a@example.com")).await.0, 404);
    assert!(
        post("<a/>".to_owned())
            .await
            .1
            .contains("<ErrorCode>600</ErrorCode>")
    );
    assert_eq!(post("a".repeat(1_025)).await.0, 413);
    assert_eq!(ground.status(host, path).await, 405);
    let json = "/autodiscover/autodiscover.json";
    let found = ground
        .get(
            host,
            &format!("{json}?Email=a@example.org&Protocol=AutodiscoverV1"),
        )
        .await;
    assert!(
        found
            .1
            .contains("https://autodiscover.example.org/autodiscover/autodiscover.xml"),
        "{}",
        found.1
    );
    let found = ground
        .get(
            host,
            &format!("{json}/v1.0/a%40example.org?Protocol=autodiscoverv1"),
        )
        .await;
    assert_eq!(found.0.status(), StatusCode::OK);
    assert_eq!(
        ground
            .status(
                host,
                &format!("{json}?Email=a@example.org&Protocol=ActiveSync")
            )
            .await,
        400
    );
    assert_eq!(
        ground
            .status(
                host,
                &format!("{json}?Email=a@example.com&Protocol=AutodiscoverV1")
            )
            .await,
        404
    );
    assert_eq!(ground.status(host, json).await, 400);
}

#[tokio::test]
async fn the_page_the_profile_and_the_contacts_need_a_known_name() {
    let ground = Ground::new("");
    for path in [
        "/",
        "/.well-known/security.txt",
        "/apple.mobileconfig?email=a@example.org",
    ] {
        for host in [
            "mail.example.org",
            "autoconfig.example.org",
            "EXAMPLE.org:443",
        ] {
            let (answer, _) = ground.get(host, path).await;
            assert_eq!(answer.status(), StatusCode::OK, "{host} {path}");
            let headers = answer.headers();
            assert_eq!(headers["x-content-type-options"], "nosniff");
            assert!(
                headers["content-security-policy"]
                    .to_str()
                    .unwrap()
                    .starts_with("default-src 'none'")
            );
            assert!(headers.contains_key("strict-transport-security"));
        }
        for host in ["example.com", "other.example.org", "192.0.2.1", "[::1]"] {
            assert_eq!(ground.status(host, path).await, 404, "{host} {path}");
        }
    }
    let (_, text) = ground
        .get("mta-sts.example.net", "/.well-known/security.txt")
        .await;
    assert!(
        text.starts_with("Contact: mailto:postmaster@example.net\r\n"),
        "{text}"
    );
    assert_eq!(
        ground.status("example.org", "/apple.mobileconfig").await,
        400
    );
    assert_eq!(
        ground
            .status("example.org", "/apple.mobileconfig?email=a@example.com")
            .await,
        404
    );
    assert_eq!(ground.status("example.org", "/other").await, 404);
}

#[tokio::test]
async fn http_answers_challenges_and_leads_to_https() {
    let ground = Ground::new("https = [\"127.0.0.1:8443\"]\n");
    let challenges = settings(&ground.folder, "").web_challenges();
    fs::write(challenges.join("token"), "token.print").unwrap();
    let path = "/.well-known/acme-challenge/token";
    // Also for names that are no local domains, since the certificate may have such a name.
    for host in ["example.org", "else.example.com"] {
        let (answer, text) = ground.in_clear(host, path).await;
        assert_eq!(
            (answer.status().as_u16(), text.as_str()),
            (200, "token.print")
        );
    }
    let (answer, _) = ground
        .in_clear(
            "mail.example.org",
            "/.well-known/acme-challenge/..%2Fdomains",
        )
        .await;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    let (answer, _) = ground.in_clear("autoconfig.example.org:80", "/a?b=c").await;
    assert_eq!(answer.status(), StatusCode::MOVED_PERMANENTLY);
    assert_eq!(
        answer.headers()["location"],
        "https://autoconfig.example.org:8443/a?b=c"
    );
    assert!(!answer.headers().contains_key("strict-transport-security"));
    // A stranger's name is led nowhere.
    assert_eq!(
        ground.in_clear("example.com", "/").await.0.status(),
        StatusCode::NOT_FOUND
    );
    let only = Ground::new("https = []\n");
    assert_eq!(
        only.in_clear("example.org", "/").await.0.status(),
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn before_the_list_of_domains_clients_are_told_to_come_again() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(&folder, "");
    let site = Arc::new(Site::new(&settings, &Metrics::new()).unwrap());
    let ground = Ground { folder, site };
    let (answer, _) = ground
        .get("mta-sts.example.org", "/.well-known/mta-sts.txt")
        .await;
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.headers()["retry-after"], "5");
    assert_eq!(ground.status("mail.example.org", "/").await, 200);
    let several = Request::get("/")
        .header("host", "mail.example.org")
        .header("host", "x");
    let several = several.body(Body::empty()).unwrap();
    let (answer, _) = Ground::ask(routes::encrypted(Arc::clone(&ground.site)), several).await;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
}
