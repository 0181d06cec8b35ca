//! Inspections of `vere check-config` and `vere doctor` beside the file and the objects named in the file: accounts, directories,
//! users, and settings that are allowed and hardly intended.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use nix::unistd::{AccessFlags, User, access};
use vere_net::tls::Roots;
use vere_settings::{DirectoryStore, RecordSink, RoutePattern, Settings};

use vere_process::upgrade;
use vere_supervisor::named::Fault;

/// The faults that a system with these settings would run into.
#[must_use]
pub fn faults(settings: &Settings) -> Vec<Fault> {
    let unsaid = upgrade::look(settings).err();
    let faults = [
        unsaid.map(|unsaid| Fault::new("delivery.local", &unsaid)),
        user(settings),
        directory(settings),
        records(settings),
    ];
    faults.into_iter().flatten().collect()
}

fn user(settings: &Settings) -> Option<Fault> {
    let name = settings.user.as_ref()?;
    let text = match User::from_name(name) {
        Ok(Some(_)) => return None,
        Ok(None) => format!("there is no user {name}; create it with: useradd --system {name}"),
        Err(error) => format!("cannot look the user {name} up: {error}"),
    };
    Some(Fault::new("user", &text))
}

/// The faults of the accounts, if accounts exist. A user without read access cannot check the accounts.
fn directory(settings: &Settings) -> Option<Fault> {
    let store = &settings.directory.store;
    let (DirectoryStore::File(path) | DirectoryStore::Sqlite(path)) = store;
    std::fs::File::open(path).ok()?;
    let error = vere_disk::directory::open(store).err()?;
    Some(Fault::new("directory.store", &error))
}

/// The folder of the records is not made by the system.
fn records(settings: &Settings) -> Option<Fault> {
    let RecordSink::File { path, .. } = &settings.records.as_ref()?.to else {
        return None;
    };
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new("."));
    let error = access(folder, AccessFlags::W_OK | AccessFlags::X_OK).err()?;
    let text = format!("cannot write into {}: {}", folder.display(), error.desc());
    Some(Fault::new("records.file", &text))
}

/// Whether next hops, policy hosts and the CA can be authenticated.
fn no_roots(settings: &Settings) -> Vec<Fault> {
    let Err(error) = Roots::load(None) else {
        return Vec::new();
    };
    let waits = |option, is_wanted: bool, what| {
        is_wanted.then(|| Fault::new(option, &format!("{error}; {what}")))
    };
    let acme = settings.acme.as_ref();
    let faults = [
        waits(
            "delivery.ca",
            settings.delivery.ca.is_none(),
            "mail waits wherever a certificate has to be verified",
        ),
        waits(
            "acme.root",
            acme.is_some_and(|acme| acme.root.is_none()),
            "no certificate can be ordered",
        ),
    ];
    faults.into_iter().flatten().collect()
}

/// Settings that work and are hardly intended.
#[must_use]
pub fn warnings(settings: &Settings) -> Vec<Fault> {
    let exposed = settings.spool.exposed().map(|(n, node)| {
        let text = format!(
            "messages go to and from node {} in clear text: give [spool.tls], or tls = \"off\" when the network is safe",
            node.name
        );
        Fault::new(format!("spool.node[{}].listen", n + 1), &text)
    });
    let mut warnings: Vec<Fault> = exposed.collect();
    warnings.extend(no_roots(settings));
    let unused = settings
        .judging
        .as_ref()
        .filter(|_| settings.front.is_none());
    warnings.extend(unused.map(|_| {
        let text = "has no effect without [front], whose workers gather the facts about messages";
        Fault::new("judging", &text)
    }));
    let unasked = settings.filters.first();
    let unasked = unasked.filter(|_| settings.judging.is_none());
    warnings.extend(unasked.map(|_| {
        let text =
            "has no effect without [judging]: filters are asked about messages that are judged";
        Fault::new("filter[1]", &text)
    }));
    let open = settings.relay.networks.iter().find(|network| {
        // Both halves of all addresses: one half alone is an open relay as well.
        let far = |first: u8| network.contains(IpAddr::V4(Ipv4Addr::new(first, 0, 0, 1)));
        let far6 =
            |first: u16| network.contains(IpAddr::V6(Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, 1)));
        (far(1) && far(100)) || (far6(0x2001) && far6(0x2a00))
    });
    warnings.extend(open.map(|network| {
        let text = format!("{network}: anybody may send anywhere, an open relay");
        Fault::new("relay.networks", &text)
    }));
    let any = settings
        .routes
        .iter()
        .position(|route| route.domain == RoutePattern::Any);
    let behind = any.map_or(settings.routes.len(), |any| any + 1);
    for n in behind..settings.routes.len() {
        let text = format!("is never reached: route[{behind}] before it takes every domain");
        warnings.push(Fault::new(format!("route[{}].domain", n + 1), &text));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(folder: &Path, rest: &str) -> Settings {
        let text = format!("version = 1\nhostname = \"a.b\"\n{rest}");
        let file = folder.join("vere.toml");
        Settings::parse(&text, &file.to_string_lossy()).unwrap()
    }

    fn keys(faults: &[Fault]) -> Vec<&str> {
        faults.iter().map(|fault| &*fault.key).collect()
    }

    #[test]
    fn users_accounts_and_folders_must_be_there_and_right() {
        let folder = tempfile::tempdir().unwrap();
        let rest = "user = \"nosuchuser\"\ndata = \".\"\n[records]\nfile = \"missing/lines\"\n";
        std::fs::write(
            folder.path().join("directory.toml"),
            "version = 1\n[[acount]]\n",
        )
        .unwrap();
        let settings = parsed(folder.path(), rest);
        let found = faults(&settings);
        assert_eq!(keys(&found), ["user", "directory.store", "records.file"]);
        assert!(found[1].text.contains("acount"), "{found:?}");
        assert!(found[2].text.contains("missing: No such file"), "{found:?}");
        assert!(faults(&parsed(folder.path(), "data = \"elsewhere\"\n")).is_empty());
    }

    #[test]
    fn open_relays_and_routes_without_effect_are_warned_of() {
        let folder = tempfile::tempdir().unwrap();
        let warned = |rest: &str| warnings(&parsed(folder.path(), rest));
        for network in ["0.0.0.0/0", "::/0", "2000::/3"] {
            let found = warned(&format!("[relay]\nnetworks = [\"{network}\"]\n"));
            assert_eq!(keys(&found), ["relay.networks"], "{network}");
        }
        let networks = "[relay]\nnetworks = [\"10.0.0.0/8\", \"2001:db8::/32\"]\n";
        assert_eq!(warned(networks), []);
        let route =
            |domain: &str| format!("[[route]]\ndomain = \"{domain}\"\nnext_hop = \"c.d\"\n");
        let found = warned(&(route("x.y") + &route("*") + &route("z.y")));
        assert_eq!(keys(&found), ["route[3].domain"]);
        assert!(found[0].text.contains("route[2]"), "{found:?}");
        assert_eq!(warned(&(route("x.y") + &route("*"))), []);
    }
}
