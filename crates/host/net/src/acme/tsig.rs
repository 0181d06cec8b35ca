//! The key that signs updates of the DNS (TSIG, RFC 8945), as `tsig-keygen` of BIND writes it:
//!
//! ```text
//! key "vere" {
//!     algorithm hmac-sha256;
//!     secret "bm8ga2V5IGluIGEgY29tbWVudA==";
//! };
//! ```

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::str::FromStr as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hickory_resolver::proto::rr::rdata::tsig::TsigAlgorithm;
use hickory_resolver::proto::rr::{Name, TSigner};

/// Octets of a key's file.
const FILE_OCTETS_MAX: u64 = 16 * 1024;
/// Seconds by which the clocks of both sides may differ (RFC 8945 section 10).
const FUDGE: u16 = 300;

/// Reads the key of a file. The error is the reason, without the secret.
pub(super) fn read(path: &Path) -> Result<TSigner, String> {
    let mut text = String::new();
    let read =
        File::open(path).and_then(|file| file.take(FILE_OCTETS_MAX).read_to_string(&mut text));
    read.map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text).map_err(|problem| format!("{}: {problem}", path.display()))
}

pub(super) fn parse(text: &str) -> Result<TSigner, String> {
    let plain = |line: &str| {
        let end = line.find("//").or_else(|| line.find('#'));
        line.get(..end.unwrap_or(line.len()))
            .unwrap_or_default()
            .to_owned()
    };
    let text: Vec<String> = text.lines().map(plain).collect();
    let text = text.join(" ").replace([';', '{', '}'], " ");
    let words: Vec<&str> = text
        .split_whitespace()
        .map(|word| word.trim_matches('"'))
        .collect();
    let after = |wanted: &str| {
        let mut pairs = words.windows(2);
        pairs.find_map(|pair| match pair {
            [word, next] if word.eq_ignore_ascii_case(wanted) => Some(*next),
            _ => None,
        })
    };
    let expected = |what: &str| format!("expected a key as tsig-keygen writes it; found no {what}");
    let name = after("key").ok_or_else(|| expected("key"))?;
    let name = Name::from_str(name).map_err(|_| expected("name of the key"))?;
    let algorithm = match after("algorithm").unwrap_or_default() {
        "hmac-sha256" => TsigAlgorithm::HmacSha256,
        "hmac-sha384" => TsigAlgorithm::HmacSha384,
        "hmac-sha512" => TsigAlgorithm::HmacSha512,
        _ => {
            return Err(expected(
                "algorithm hmac-sha256, hmac-sha384 or hmac-sha512",
            ));
        }
    };
    let secret = STANDARD.decode(after("secret").unwrap_or_default());
    let secret = secret.ok().filter(|secret| !secret.is_empty());
    let secret = secret.ok_or_else(|| expected("secret in base64"))?;
    TSigner::new(secret, algorithm, name, FUDGE).map_err(|_| expected("usable algorithm"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_bind_writes_it_and_no_secret_is_told() {
        let text = "# of the zone\nkey \"vere.example\" {\n\talgorithm hmac-sha512; // long\n\tsecret \"AAECAw==\";\n};\n";
        let key = parse(text).expect("a key");
        assert_eq!(key.signer_name().to_ascii(), "vere.example.");
        assert_eq!(
            (key.algorithm(), key.key()),
            (&TsigAlgorithm::HmacSha512, &[0, 1, 2, 3][..])
        );
        for (text, word) in [
            ("", "no key"),
            (
                "key k { algorithm hmac-md5; secret \"AAECAw==\"; };",
                "algorithm",
            ),
            (
                "key k { algorithm hmac-sha256; secret \"top secret\"; };",
                "secret in",
            ),
            ("key k { algorithm hmac-sha256; };", "secret in"),
        ] {
            let problem = parse(text).err().expect("no key");
            assert!(
                problem.contains(word) && !problem.contains("top"),
                "{problem}"
            );
        }
    }
}
