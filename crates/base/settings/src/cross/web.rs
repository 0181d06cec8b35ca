//! Contradictions between settings of the web server.

use super::found::Found;
use crate::model::Settings;

pub(super) fn check(settings: &Settings, found: &mut Found<'_>) {
    let Some(web) = &settings.web else {
        return;
    };
    if web.https.is_empty() && web.http.is_empty() {
        found.add("web.https", "expected an address; found none");
    }
    let tls = &settings.tls;
    let has_certificate = tls.default.is_some() || !tls.sni.is_empty() || settings.acme.is_some();
    if !web.https.is_empty() && !has_certificate {
        found.add(
            "web.https",
            "needs a certificate: [tls] with files, or [acme]; or https = []",
        );
    }
}
