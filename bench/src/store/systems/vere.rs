//! Veredarius as shipped, but for the cost of a password, which is not measured here.

use std::fs;
use std::io;
use std::path::Path;

use super::prepared::{DOMAIN, Ports, Prepared, address_of, users};
use crate::peer::{Settings, free_address};

/// The password as the cheapest Argon2id hash.
const PASSWORD_HASH: &str = "$argon2id$v=19$m=8,t=1,p=1$dmVyZS1iZW5jaC1zdG9yZQ\
                             $6igDkWGtobLOx9MBmbZmAy+EPj8wqfJ+xcQpm5cKnog";

/// The SCRAM keys of the password (RFC 5803), with the fewest rounds; no client uses the keys here.
const PASSWORD_KEYS: &str = "SCRAM-SHA-256$4096:dmVyZS1iZW5jaC1zdG9yZQ==$\
                             d2Io1gmsNtD6vlB5hvkDtaFsT/MID/iHlt9wsdUPI5U=:pmB9gcV9LiDt5T01mHMTB24kW1vqCVwPwVYN6cKoSvs=";

/// The file of a domain and its accounts.
pub(crate) fn directory(domain: &str, addresses: impl Iterator<Item = String>) -> String {
    let accounts = addresses.map(|address| {
        format!(
            "[[account]]\naddress = \"{address}\"\npassword = \"{PASSWORD_HASH}\"\n\
             scram_sha_256 = \"{PASSWORD_KEYS}\"\n"
        )
    });
    let accounts: String = accounts.collect();
    format!("version = 1\n[[domain]]\nname = \"{domain}\"\n{accounts}")
}

pub(super) fn prepare(program: &Path, folder: &Path, ports: Ports) -> io::Result<Prepared> {
    let Ports { imap, lmtp } = ports;
    let data = folder.join("mail");
    fs::create_dir_all(&data)?;
    let directory = directory(DOMAIN, users().map(|user| address_of(&user)));
    fs::write(folder.join("directory.toml"), directory)?;
    let listen = [("smtp", free_address()?), ("imap", imap), ("lmtp", lmtp)];
    let sections = format!(
        "[directory]\nstore = \"file:{}\"\n[delivery]\nlocal = \"store\"\n\
         [auth]\nplaintext_networks = [\"127.0.0.0/8\"]\n\
         [limits]\nconnections_max = 100000\nconnections_per_client_max = 100000\n",
        folder.join("directory.toml").display(),
    );
    let settings = Settings::new(&data, &listen).with(&sections);
    let file = settings.nodes(&["a", "b"])?.write(folder)?;
    Ok(Prepared {
        command: vec![program.into(), "serve".into(), "-c".into(), file.into()],
        // The queues of the gateway lie beside the store.
        mail: vec![data.join("store")],
        search: Some(data.join("store/search")),
        ..Prepared::default()
    })
}
