//! The page for people: which host, port and encryption a mail program uses, and links to the files for programs.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quick_xml::escape::escape;
use sha2::{Digest as _, Sha256};

use crate::services::{Access, Services};

/// The media type of the page.
pub const MEDIA_TYPE: &str = "text/html; charset=utf-8";

/// The only style of the page; the policy of contents names its hash.
const STYLE: &str = "\
:root{color-scheme:light dark;font:1rem/1.5 system-ui,sans-serif}\
body{max-width:40rem;margin:auto;padding:1rem}\
table{border-collapse:collapse;width:100%}\
th,td{text-align:left;padding:.4rem .6rem .4rem 0;border-bottom:1px solid #8886;overflow-wrap:anywhere}\
input,button{font:inherit;padding:.4rem;max-width:100%;box-sizing:border-box}\
small{opacity:.75}";

/// What the page is about.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// The domain whose mail the page is about, or the host name.
    pub title: &'a str,
    /// Whether the page is that of a local domain, for which there are files for programs.
    pub has_files: bool,
    /// Whether there is a policy of MTA-STS.
    pub has_policy: bool,
    /// The services.
    pub services: &'a Services,
}

/// Writes the page. It has no script, and loads nothing.
#[must_use]
pub fn write(page: &Page<'_>) -> String {
    let title = escape(page.title);
    let mut text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Mail of {title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>Mail of {title}</h1>\n"
    );
    servers(&mut text, page.services);
    if page.has_files {
        programs(&mut text, page);
    }
    text.push_str(
        "<p><small><a href=\"/.well-known/security.txt\">Report a security problem</a></small></p>\n\
         </body>\n</html>\n",
    );
    text
}

fn servers(text: &mut String, services: &Services) {
    if services.is_empty() {
        text.push_str("<p>This server has no service for mail programs.</p>\n");
        return;
    }
    text.push_str(
        "<table>\n<tr><th>Service</th><th>Server</th><th>Port</th><th>Security</th></tr>\n",
    );
    let rows = [
        ("IMAP (read)", &services.imap),
        ("SMTP (send)", &services.smtp),
    ];
    for (name, accesses) in rows {
        for Access { port, security } in accesses {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "<tr><td>{name}</td><td>{}</td><td>{port}</td><td>{}</td></tr>",
                escape(services.host.as_str()),
                security.as_str()
            );
        }
    }
    text.push_str(
        "</table>\n<p>User name: your whole mail address. Password: that of your account \
         (&ldquo;normal password&rdquo;).</p>\n",
    );
}

fn programs(text: &mut String, page: &Page<'_>) {
    text.push_str("<h2>Automatic set-up</h2>\n<ul>\n<li>Thunderbird and Outlook: enter your mail address; \
         the program finds the rest (<a href=\"/.well-known/autoconfig/mail/config-v1.1.xml\">settings</a>).</li>\n");
    if !page.services.imap.is_empty() && !page.services.smtp.is_empty() {
        text.push_str(
            "<li>iPhone, iPad and Mac:\n<form action=\"/apple.mobileconfig\">\n\
             <input type=\"email\" name=\"email\" required aria-label=\"Mail address\" placeholder=\"you@example.org\">\n\
             <button>Get the profile</button>\n</form></li>\n",
        );
    }
    text.push_str("</ul>\n");
    if page.has_policy {
        text.push_str("<p><small><a href=\"/.well-known/mta-sts.txt\">Policy for mail servers (MTA-STS)</a></small></p>\n");
    }
}

/// The policy of contents for the page (Content Security Policy): nothing but its style and its form.
#[must_use]
pub fn content_security_policy() -> String {
    let hash = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{hash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
}
