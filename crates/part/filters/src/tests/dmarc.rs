//! OpenDMARC beside our evaluation of DMARC: OpenDMARC reads our field Authentication-Results, and looks up the same policies. It runs in a
//! network namespace of its own, with a name server at the one address that its resolver knows.

use std::fs;
use std::net::IpAddr;
use std::process::Command;

use vere_auth::{
    Authentication, Dns, Family, Message, Session, SpfResult, Unavailable, authenticate,
};

use super::outcome_of;
use super::real::{Peer, program, skip, start, texts};
use crate::{Change, Kind, Outcome, Verdict};

/// Both are told to write in this name.
const SERVICE: &str = "mail.example";
/// The records, for both.
const ZONE: &[(&str, &str)] = &[
    ("_dmarc.bank.example", "v=DMARC1; p=reject"),
    (
        "_dmarc.strict.example",
        "v=DMARC1; p=reject; aspf=s; adkim=s",
    ),
    ("_dmarc.aside.example", "v=DMARC1; p=quarantine"),
    ("_dmarc.watched.example", "v=DMARC1; p=none"),
    ("_dmarc.above.example", "v=DMARC1; p=reject; sp=quarantine"),
    ("_dmarc.football.example.com", "v=DMARC1; p=reject"),
    (
        "brisbane._domainkey.football.example.com",
        "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
    ),
];

/// The message of RFC 8463 appendix A.3 with its first signature; the key is that of appendix A.2.
const SIGNED: &str = "DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;\r
 d=football.example.com; i=@football.example.com;\r
 q=dns/txt; s=brisbane; t=1528637909; h=from : to :\r
 subject : date : message-id : from : subject : date;\r
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;\r
 b=/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11Bus\r
 Fa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==\r
From: Joe SixPack <joe@football.example.com>\r
To: Suzie Q <suzie@shopping.example.net>\r
Subject: Is dinner ready?\r
Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)\r
Message-ID: <20030712040037.46341.5F8J@football.example.com>\r
\r
Hi.\r
\r
We lost the game.  Are you hungry yet?\r
\r
Joe.\r
";

struct Zone;

impl Dns for Zone {
    async fn texts(&self, name: &str) -> Result<Vec<Vec<u8>>, Unavailable> {
        let found = ZONE.iter().filter(|(other, _)| *other == name);
        Ok(found.map(|(_, text)| text.as_bytes().to_vec()).collect())
    }

    async fn exists(&self, name: &str) -> Result<bool, Unavailable> {
        let below = format!(".{name}");
        let is_there = |(other, _): &(&str, &str)| *other == name || other.ends_with(&below);
        Ok(ZONE.iter().any(is_there))
    }

    async fn addresses(&self, _: &str, _: Family) -> Result<Vec<IpAddr>, Unavailable> {
        Ok(Vec::new())
    }

    async fn names(&self, _: IpAddr) -> Result<Vec<String>, Unavailable> {
        Ok(Vec::new())
    }
}

/// Our evaluation, and the message below our field.
async fn evaluated(message: &str, reverse_path: &str, spf: SpfResult) -> (Authentication, String) {
    let session = Session {
        client: [192, 0, 2, 7].into(),
        helo: "helo.example",
        reverse_path,
        spf: Some(spf),
        spf_helo: None,
    };
    let parsed = Message::of(message.as_bytes());
    let found = authenticate(&Zone, &parsed, session, 1_700_000_000).await;
    let field = String::from_utf8(found.field(SERVICE, session)).unwrap();
    // OpenDMARC 1.4.2 reads the domain alone; RFC 8601 section 2.2 allows the whole address as well.
    let (_, domain) = reverse_path.split_once('@').unwrap();
    let path = format!("smtp.mailfrom={reverse_path}");
    assert!(field.contains(&path), "{field}");
    let field = field.replace(&path, &format!("smtp.mailfrom={domain}"));
    (found, field + message)
}

/// OpenDMARC, which refuses by a policy of rejection or not; `None` where it cannot run.
async fn opendmarc(refuses: bool) -> Option<Peer> {
    let opendmarc = program("opendmarc", "opendmarc")?;
    let python = program("python3", "python3")?;
    let unshare = program("unshare", "util-linux")?;
    let tried = Command::new(&unshare)
        .args(["-rmn", "sh", "-c", "ip link set lo up"])
        .output();
    if !tried.is_ok_and(|output| output.status.success()) {
        skip("namespaces of users and networks are not allowed here");
        return None;
    }
    let peer = start(&unshare, |folder| {
        let at = folder.display();
        let settings = format!(
            "Socket local:{at}/socket\nAuthservID {SERVICE}\nTrustedAuthservIDs {SERVICE}\nPublicSuffixList {at}/suffixes\n\
             RejectFailures {refuses}\nBackground false\nSyslog false\n"
        );
        fs::write(folder.join("conf"), settings).unwrap();
        fs::write(folder.join("suffixes"), "example\ncom\n").unwrap();
        fs::write(folder.join("resolv.conf"), "nameserver 127.0.0.1\n").unwrap();
        fs::write(folder.join("names.py"), include_str!("names.py")).unwrap();
        let records = ZONE.iter().map(|(name, text)| format!("{name} {text}\n"));
        fs::write(folder.join("zone"), records.collect::<String>()).unwrap();
        let script = format!(
            "ip link set lo up && mount --bind resolv.conf /etc/resolv.conf || exit 1\n\
             {} names.py zone &\nuntil [ -e names-ready ]; do sleep 0.05; done\nexec {} -f -c conf\n",
            python.display(),
            opendmarc.display()
        );
        fs::write(folder.join("run.sh"), script).unwrap();
        texts(&["-rmn", "sh", "run.sh"])
    });
    Some(peer.await)
}

async fn asked(peer: &Peer, message: &str, reverse_path: &str) -> Outcome {
    let session = crate::Session {
        reverse_path,
        ..super::session()
    };
    outcome_of(&peer.filter(Kind::Milter), message.as_bytes(), &session).await
}

/// OpenDMARC's field, as `result (p=policy`.
fn result(outcome: &Outcome) -> String {
    let fields = outcome.changes.iter().filter_map(|change| match change {
        Change::AddHeader { name, value } | Change::InsertHeader { name, value, .. } => {
            (name == "Authentication-Results").then(|| String::from_utf8_lossy(value).into_owned())
        }
        _ => None,
    });
    let fields: Vec<_> = fields.collect();
    let [field] = &fields[..] else {
        panic!("{outcome:?}");
    };
    let (_, found) = field.split_once("dmarc=").expect(field);
    found.split(" dis=").next().unwrap_or(found).to_owned()
}

/// Cases for which RFC 7489 and RFC 9989 have the same result. Left out, as OpenDMARC 1.4.2 differs from both: `aspf=s` with a pass of SPF for a
/// subdomain (theirs "pass"), a record that begins with another version (theirs "permerror", where RFC 7489 section 6.6.3 discards the record),
/// and domains whose label below the public suffix is one letter, which align with others.
#[tokio::test]
async fn opendmarc_agrees_about_alignment_and_policies() {
    let Some(peer) = opendmarc(false).await else {
        return;
    };
    use SpfResult::{Fail, Pass, SoftFail};
    for (from, reverse_path, spf, expected) in [
        ("a@bank.example", "a@bank.example", Pass, "pass (p=reject"),
        (
            "a@bank.example",
            "x@mail.bank.example",
            Pass,
            "pass (p=reject",
        ),
        (
            "a@sub.bank.example",
            "x@bank.example",
            Pass,
            "pass (p=reject",
        ),
        ("a@bank.example", "x@other.example", Pass, "fail (p=reject"),
        (
            "a@bank.example",
            "a@bank.example",
            SoftFail,
            "fail (p=reject",
        ),
        ("a@Bank.Example", "a@bank.EXAMPLE", Pass, "pass (p=reject"),
        (
            "a@strict.example",
            "a@strict.example",
            Pass,
            "pass (p=reject",
        ),
        (
            "a@aside.example",
            "a@aside.example",
            Fail,
            "fail (p=quarantine",
        ),
        ("a@watched.example", "x@other.example", Pass, "fail (p=none"),
        ("a@silent.example", "a@silent.example", Pass, "none (p=none"),
        (
            "a@sub.above.example",
            "x@other.example",
            Pass,
            "fail (p=quarantine",
        ),
    ] {
        let message = format!(
            "From: <{from}>\r\nDate: Sun, 29 Nov 2026 01:00:00 +0000\r\nSubject: x\r\n\r\nhi\r\n"
        );
        let (ours, message) = evaluated(&message, reverse_path, spf).await;
        let theirs = result(&asked(&peer, &message, reverse_path).await);
        let policy = ours.dmarc.policy.map_or("none", vere_auth::Policy::as_str);
        let found = format!("{} (p={policy}", ours.dmarc.result);
        assert_eq!(
            (found.as_str(), theirs.as_str()),
            (expected, expected),
            "{from} {reverse_path}"
        );
    }
    // A signature is read from our field: valid and aligned, or broken.
    for (message, expected) in [
        (SIGNED.to_owned(), "pass (p=reject"),
        (SIGNED.replace("dinner", "supper"), "fail (p=reject"),
    ] {
        let (ours, message) = evaluated(&message, "x@other.example", Fail).await;
        let theirs = result(&asked(&peer, &message, "x@other.example").await);
        assert_eq!(theirs, expected);
        assert!(expected.starts_with(ours.dmarc.result.as_str()), "{ours:?}");
    }
}

#[tokio::test]
async fn opendmarc_refuses_by_our_results() {
    let Some(peer) = opendmarc(true).await else {
        return;
    };
    let message = "From: <a@bank.example>\r\nDate: Sun, 29 Nov 2026 01:00:00 +0000\r\n\r\nhi\r\n";
    let (_, forged) = evaluated(message, "x@other.example", SpfResult::Pass).await;
    let refused = asked(&peer, &forged, "x@other.example").await;
    let text = "5.7.1 rejected by DMARC policy for bank.example".to_owned();
    assert_eq!(refused.verdict, Verdict::Reject(text));
    let (_, good) = evaluated(message, "a@bank.example", SpfResult::Pass).await;
    assert_eq!(
        asked(&peer, &good, "a@bank.example").await.verdict,
        Verdict::Accept
    );
}
