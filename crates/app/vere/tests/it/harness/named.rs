//! A name server with signed zones of the tests' own, from the root down: BIND's `named`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Child, free_address, program, run, skip, wait_for};

/// A zone and the kind of its signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signing {
    /// With the key named by the parent zone.
    Good,
    /// With the right key, and hashed denials (NSEC3).
    Hashed,
    /// With another key than the parent zone names.
    WrongKey,
    /// With expired signatures.
    Expired,
    /// Not at all.
    None,
}

/// A running name server, which ends on drop.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) address: SocketAddr,
    /// The file with the key of the root zone.
    pub(crate) trust_anchor: PathBuf,
    _process: Child,
}

impl Named {
    /// Serves zones, a label below the root each, with their records in the form of zone files; `None` when the
    /// programs are missing.
    pub(crate) fn start(folder: &Path, zones: &BTreeMap<&str, (Signing, String)>) -> Option<Self> {
        let tools = Tools {
            folder,
            keygen: program("dnssec-keygen")?,
            signzone: program("dnssec-signzone")?,
        };
        let named = program("named")?;
        let mut root = String::new();
        let mut served = String::new();
        for (name, (signing, records)) in zones {
            let origin = format!("{name}.");
            let text = zone(&origin, records);
            let _ = writeln!(
                root,
                "{origin} 3600 IN NS ns.{origin}\nns.{origin} IN A 127.0.0.1"
            );
            let (file, key) = tools.sign(&origin, &text, *signing);
            if let Some(key) = key {
                root += &tools.ds(&origin, &key, *signing);
            }
            // Updates would break the signatures of a signed file.
            let updates = match signing {
                Signing::None => "allow-update { 127.0.0.1; };",
                _ => "",
            };
            let _ = writeln!(
                served,
                "zone \"{origin}\" {{ type primary; file \"{file}\"; {updates} }};"
            );
        }
        let (file, key) = tools.sign(".", &zone(".", &root), Signing::Good);
        let _ = writeln!(served, "zone \".\" {{ type primary; file \"{file}\"; }};");
        let trust_anchor = folder.join("anchor");
        let key = std::fs::read_to_string(folder.join(key? + ".key")).expect("the root key");
        let lines = key.lines().filter(|line| !line.starts_with(';'));
        std::fs::write(&trust_anchor, lines.collect::<Vec<_>>().join("\n") + "\n")
            .expect("the trust anchor");
        let address = free_address();
        let text = format!(
            "options {{ directory \"{0}\"; pid-file \"{0}/pid\"; session-keyfile none; lock-file none;\n\
             listen-on port {1} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }}; recursion no;\n\
             empty-zones-enable no; notify no; allow-transfer {{ none; }}; }};\n\
             controls {{ }};\n{served}",
            folder.display(),
            address.port()
        );
        let config = folder.join("named.conf");
        std::fs::write(&config, text).expect("the configuration");
        let log = std::fs::File::create(folder.join("named.log")).expect("the log");
        let mut command = Command::new(named);
        command
            .args(["-g", "-n", "1", "-c"])
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let mut process = Child::spawn(&mut command);
        let runs = wait_for("the name server", || {
            let ended = process.ended().map(|_| false);
            ended.or_else(|| answers(address).then_some(true))
        });
        if !runs {
            // Such as where the system forbids the server to read the directory.
            let log = std::fs::read_to_string(folder.join("named.log")).unwrap_or_default();
            skip("signed zones", &format!("named does not start: {log}"));
            return None;
        }
        Some(Self {
            address,
            trust_anchor,
            _process: process,
        })
    }
}

/// Asks for the start of authority of the root.
fn answers(address: SocketAddr) -> bool {
    const QUESTION: &[u8] = &[0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 1];
    let Ok(socket) = UdpSocket::bind("127.0.0.1:0") else {
        return false;
    };
    let _ = socket.set_read_timeout(Some(std::time::Duration::from_secs(1)));
    let mut answer = [0; 512];
    // An answer with at least one record.
    socket.send_to(QUESTION, address).is_ok()
        && matches!(socket.recv(&mut answer), Ok(octets) if octets > 17 && answer[7] > 0)
}

fn zone(origin: &str, records: &str) -> String {
    let ns = if origin == "." { "ns." } else { "ns" };
    format!(
        "$ORIGIN {origin}\n$TTL 3600\n@ IN SOA {ns} hostmaster.test. 1 3600 600 86400 60\n\
         @ IN NS {ns}\n{ns} IN A 127.0.0.1\n{records}\n"
    )
}

struct Tools<'a> {
    folder: &'a Path,
    keygen: PathBuf,
    signzone: PathBuf,
}

impl Tools<'_> {
    /// A new key and the name of its files.
    fn key(&self, origin: &str) -> String {
        let mut command = Command::new(&self.keygen);
        command
            .args(["-q", "-a", "ECDSAP256SHA256", "-f", "KSK", "-K"])
            .arg(self.folder)
            .arg(origin);
        run(&mut command).trim().to_owned()
    }

    /// Writes a zone, signed or not, and returns its file and its key.
    fn sign(&self, origin: &str, text: &str, signing: Signing) -> (String, Option<String>) {
        let label = origin.trim_end_matches('.');
        let file = format!("zone.{label}");
        if signing == Signing::None {
            std::fs::write(self.folder.join(&file), text).expect("the zone");
            return (file, None);
        }
        let key = self.key(origin);
        let text = format!("{text}$INCLUDE \"{}/{key}.key\"\n", self.folder.display());
        std::fs::write(self.folder.join(&file), text).expect("the zone");
        let mut command = Command::new(&self.signzone);
        command
            .current_dir(self.folder)
            .args(["-z", "-P", "-o", origin, "-f"])
            .arg(format!("{file}.signed"));
        match signing {
            Signing::Hashed => {
                command.args(["-3", "-", "-H", "0"]);
            }
            Signing::Expired => {
                command.args(["-s", "20200101000000", "-e", "20200201000000"]);
            }
            _ => {}
        }
        run(command.arg(&file).arg(format!("{key}.key")));
        (format!("{file}.signed"), Some(key))
    }

    /// The delegation's record for a key of a child.
    fn ds(&self, origin: &str, key: &str, signing: Signing) -> String {
        let key = match signing {
            Signing::WrongKey => self.key(origin),
            _ => key.to_owned(),
        };
        let Some(tool) = program("dnssec-dsfromkey") else {
            return String::new();
        };
        run(Command::new(tool)
            .arg("-2")
            .arg(self.folder.join(format!("{key}.key"))))
    }
}
