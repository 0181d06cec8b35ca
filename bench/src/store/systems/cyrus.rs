//! Cyrus, unpacked. Cyrus keeps a single copy of a message to several accounts; every message and every change of a
//! database is synced at once.
//!
//! Without an index Cyrus searches by reading, exactly. With Xapian, and `search_fuzzy_always`, Cyrus finds messages
//! by words: parts of words are not found, words of a phrase need not be adjacent.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::prepared::{
    DOMAIN, Files, PASSWORD, Ports, Prepared, folder_of_nobody, give_to_nobody, users,
};
use super::unpacked::Unpacked;
use crate::peer::PeerError;

/// The master process, in the package.
const MASTER: &str = "usr/sbin/cyrmaster";

/// Prepares Cyrus; with `xapian` Cyrus has an index, which is built on command.
pub(super) fn prepare(
    name: &'static str,
    xapian: bool,
    folder: &Path,
    ports: Ports,
) -> Result<Prepared, PeerError> {
    let package = Unpacked::find(name, "cyrus", MASTER)?;
    let (settings, services) = (folder.join("imapd.conf"), folder.join("cyrus.conf"));
    write(&package, xapian, folder, ports)?;
    let mut command = package.command(MASTER);
    command.extend(["-C".into(), settings.clone().into()]);
    command.extend(["-M".into(), services.into()]);
    command.extend(["-p".into(), folder.join("pid").into()]);
    let tool = |name: &str| {
        let mut command = package.command(&format!("usr/lib/cyrus/bin/{name}"));
        command.extend(["-C".into(), settings.clone().into()]);
        command
    };
    Ok(Prepared {
        command,
        mail: ["mail", "search", "conf"]
            .map(|name| folder.join(name))
            .into(),
        search: xapian.then(|| folder.join("search")),
        index: xapian.then(|| tool("squatter")),
        files: Some(Files::Cyrus {
            tell: tool("mbpath"),
            take: tool("reconstruct"),
        }),
    })
}

fn write(package: &Unpacked, xapian: bool, folder: &Path, ports: Ports) -> io::Result<()> {
    for name in [
        "mail",
        "search",
        "conf",
        "conf/db",
        "conf/socket",
        "conf/proc",
    ] {
        folder_of_nobody(&folder.join(name))?;
    }
    let file = folder.join("imapd.conf");
    fs::write(&file, settings(xapian, folder))?;
    fs::write(folder.join("cyrus.conf"), services(package, &file, ports))?;
    passwords(package, &folder.join("sasldb2"))
}

fn settings(xapian: bool, folder: &Path) -> String {
    let own = folder.display();
    let search = match xapian {
        true => {
            "search_engine: xapian\nsearch_fuzzy_always: yes\n\
                 search_batchsize: 5000\nconversations: yes\n"
        }
        false => "search_engine: none\nsearch_fuzzy_always: no\n",
    };
    format!(
        "configdirectory: {own}/conf\n\
         partition-default: {own}/mail\n\
         defaultpartition: default\n\
         defaultsearchtier: t1\n\
         t1searchpartition-default: {own}/search\n\
         {search}\
         cyrus_user: nobody\n\
         servername: {DOMAIN}\n\
         virtdomains: userid\n\
         defaultdomain: {DOMAIN}\n\
         unixhierarchysep: yes\n\
         altnamespace: yes\n\
         autocreate_quota: 0\n\
         autocreate_post: yes\n\
         duplicatesuppression: no\n\
         allowplaintext: yes\n\
         sasl_pwcheck_method: auxprop\n\
         sasl_auxprop_plugin: sasldb\n\
         sasl_sasldb_path: {own}/sasldb2\n\
         sasl_mech_list: PLAIN\n"
    )
}

fn services(package: &Unpacked, settings: &Path, ports: Ports) -> String {
    let run = |name: &str| {
        let program = package.path(&format!("usr/lib/cyrus/bin/{name}"));
        format!("cmd=\"{} -C {}", program.display(), settings.display())
    };
    format!(
        "START {{\n  recover {} -r\"\n  idled {}\"\n}}\n\
         SERVICES {{\n  \
         imap {}\" listen=\"{}\" prefork=0\n  \
         lmtp {} -a\" listen=\"{}\" prefork=0\n}}\nEVENTS {{\n}}\n",
        run("ctl_cyrusdb"),
        run("idled"),
        run("imapd"),
        ports.imap,
        run("lmtpd"),
        ports.lmtp,
    )
}

/// Writes the passwords of all accounts in the format of SASL.
fn passwords(package: &Unpacked, file: &Path) -> io::Result<()> {
    let saslpasswd: Vec<OsString> = package.command("usr/sbin/saslpasswd2");
    for user in users() {
        let mut child = Command::new(&saslpasswd[0])
            .args(&saslpasswd[1..])
            .args(["-p", "-c", "-u", DOMAIN, "-f"])
            .arg(file)
            .arg(&user)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(PASSWORD.as_bytes())?;
        }
        if !child.wait()?.success() {
            return Err(io::Error::other(format!("saslpasswd2 did not take {user}")));
        }
    }
    give_to_nobody(file)
}
