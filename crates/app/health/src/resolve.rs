//! `vere resolve`: where mail for an address goes, by the directory and the settings alone.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use vere_directory::Directory;
use vere_ports::directory::{AccountName, DomainName};
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_queue::Place;
use vere_routing::{Router, place_of};
use vere_settings::Settings;
use vere_smtp::address::{AddrSpec, ForwardPath};

/// Exit code for refused mail, as of `vere dial`.
const REFUSED: u8 = 4;

/// The addresses, and the form of the output.
#[derive(Debug, Args)]
pub struct ResolveArgs {
    /// The addresses.
    #[arg(required = true, value_name = "ADDRESS")]
    addresses: Vec<String>,
    /// Print JSON: a list of objects with `address`, `kind`, `accepted`, `reason` and `targets`, each with `address`,
    /// `queue` and `route`, the number of the `[[route]]` in the settings.
    #[arg(long)]
    json: bool,
}

/// The kind of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Account,
    Alias,
    CatchAll,
    /// An address of another system.
    Foreign,
    Unknown,
}

#[derive(Debug, Serialize)]
struct Row {
    address: String,
    kind: Kind,
    /// Whether mail of strangers at port 25 is accepted for the address.
    accepted: bool,
    /// The reason of a refusal, or the condition of acceptance.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    targets: Vec<Target>,
}

#[derive(Debug, Serialize)]
struct Target {
    address: String,
    queue: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<usize>,
}

/// Resolves addresses. Exit code 4: mail for an address is refused.
///
/// # Errors
/// When a text is no address, or the directory cannot be read.
pub fn run(args: &ResolveArgs, settings: &Settings) -> Result<Outcome, Failure> {
    let mut rows = Vec::with_capacity(args.addresses.len());
    for text in &args.addresses {
        let address = AddrSpec::parse(text).map_err(|_| {
            Failure::new(format!(
                "expected a mail address such as ann@example.org; found {text:?}"
            ))
        })?;
        rows.push(row(address, settings)?);
    }
    let text = match args.json {
        true => serde_json::to_string_pretty(&rows)? + "\n",
        false => rows.iter().map(shown).collect(),
    };
    let is_refused = rows.iter().any(|row| row.targets.is_empty());
    let code = ExitCode::from(if is_refused { REFUSED } else { 0 });
    Ok(Outcome::Report(text, code))
}

fn row(address: AddrSpec, settings: &Settings) -> Result<Row, Failure> {
    let name = address.as_str().to_owned();
    let Some(directory) = vere_login::directory::open_if_there(settings)? else {
        let place = place_of(settings, address.domain());
        return Ok(foreign(name.clone(), vec![target(&place, name, settings)]));
    };
    let kind = kind(&directory, &address, settings)?;
    let router = Router::new(directory);
    let path = ForwardPath::Address(address);
    let found = match router.find(settings, &path) {
        Ok(found) => found,
        Err(refusal) => {
            return Ok(Row {
                address: name,
                kind,
                accepted: false,
                reason: Some(refusal.to_string()),
                targets: Vec::new(),
            });
        }
    };
    let is_foreign = found.permit(false).is_err() && found.asks_next_hop().is_none();
    let targets = found.into_targets().into_iter();
    let targets = targets.map(|(place, address)| target(&place, address, settings));
    let targets = targets.collect();
    Ok(match is_foreign {
        true => foreign(name, targets),
        false => Row {
            address: name,
            kind,
            accepted: true,
            reason: None,
            targets,
        },
    })
}

fn foreign(address: String, targets: Vec<Target>) -> Row {
    let reason = "accepted from accounts, relay.networks and vere sendmail alone";
    Row {
        address,
        kind: Kind::Foreign,
        accepted: false,
        reason: Some(reason.to_owned()),
        targets,
    }
}

/// The entry of the directory for the address.
fn kind(directory: &Directory, address: &AddrSpec, settings: &Settings) -> Result<Kind, Failure> {
    if !directory.is_local_domain(address.domain())? {
        return Ok(Kind::Foreign);
    }
    let local = address.local_part_unquoted();
    let mark = settings.directory.subaddress_separator;
    let base = mark
        .and_then(|mark| local.split_once(mark))
        .map(|(base, _)| base);
    for name in std::iter::once(&*local).chain(base) {
        let Ok(name) = AccountName::parse(&format!("{name}@{}", address.domain())) else {
            continue;
        };
        // An alias comes before an account.
        if directory.store().alias(&name)?.is_some() {
            return Ok(Kind::Alias);
        }
        if directory.store().account(&name)?.is_some() {
            return Ok(Kind::Account);
        }
    }
    let domain = DomainName::parse(address.domain()).ok();
    let domain = domain
        .map(|name| directory.store().domain(&name))
        .transpose()?;
    let catches = domain
        .flatten()
        .is_some_and(|domain| domain.catch_all.is_some());
    Ok(match catches {
        true => Kind::CatchAll,
        false => Kind::Unknown,
    })
}

fn target(place: &Place, address: String, settings: &Settings) -> Target {
    let domain = address.rsplit_once('@').map_or("", |(_, domain)| domain);
    let route = settings.route(domain.trim_end_matches('.'));
    let mut routes = settings.routes.iter();
    let number = route.and_then(|route| routes.position(|one| std::ptr::eq(one, route)));
    Target {
        queue: place.to_string(),
        // A local account has a route only by a route for the domain.
        route: number
            .filter(|_| *place != Place::Local)
            .map(|number| number + 1),
        address,
    }
}

fn shown(row: &Row) -> String {
    let kind = match row.kind {
        Kind::Account => "an account",
        Kind::Alias => "an alias",
        Kind::CatchAll => "unknown, and the domain has a catch-all",
        Kind::Foreign => "an address of another system",
        Kind::Unknown => "unknown",
    };
    let mut text = format!("{}: {kind}", row.address);
    let _ = match &row.reason {
        Some(reason) if row.targets.is_empty() => writeln!(text, "; refused: {reason}"),
        Some(reason) => writeln!(text, "; {reason}"),
        None => writeln!(text),
    };
    for target in &row.targets {
        let route = target.route.map(|number| format!(", by route {number}"));
        let _ = writeln!(
            text,
            "  {}  queue {}{}",
            target.address,
            target.queue,
            route.unwrap_or_default()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system() -> (tempfile::TempDir, Settings) {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "version = 1\nhostname = \"mx.example.org\"\ndata = {:?}\n\
             [[route]]\ndomain = \"partner.example\"\nnext_hop = \"relay.example:2525\"\n",
            folder.path()
        );
        let settings = Settings::parse(&text, "/etc/vere.toml").unwrap();
        let directory = vere_login::directory::create(&settings).unwrap();
        let domain = |name: &str| DomainName::parse(name).unwrap();
        directory.add_domain(domain("example.org"), None).unwrap();
        directory
            .add_domain(domain("caught.example"), Some("ann@example.org"))
            .unwrap();
        let name = |name: &str| AccountName::parse(name).unwrap();
        directory
            .add_account(name("ann@example.org"), None)
            .unwrap();
        directory
            .set_alias(
                name("sales@example.org"),
                ["ann@example.org", "bob@partner.example", "c@d.example"],
            )
            .unwrap();
        (folder, settings)
    }

    fn of(address: &str, settings: &Settings) -> Row {
        row(AddrSpec::parse(address).unwrap(), settings).unwrap()
    }

    #[test]
    fn accounts_aliases_and_routes_are_followed() {
        let (_folder, settings) = system();
        let found = shown(&of("ann+news@example.org", &settings));
        assert!(
            found.starts_with("ann+news@example.org: an account\n  ann"),
            "{found}"
        );
        let found = shown(&of("sales@example.org", &settings));
        assert!(found.contains("an alias\n"), "{found}");
        assert!(
            found.contains("bob@partner.example  queue relay:relay.example:2525, by route 1\n"),
            "{found}"
        );
        assert!(found.contains("c@d.example  queue d.example\n"), "{found}");
        assert_eq!(of("x@caught.example", &settings).kind, Kind::CatchAll);
        let far = of("x@y.example", &settings);
        assert!(!far.accepted && far.targets.len() == 1);
    }

    #[test]
    fn unknown_addresses_are_refused_with_the_exit_code_of_dial() {
        let (_folder, settings) = system();
        let args = |address: &str| ResolveArgs {
            addresses: vec![address.to_owned()],
            json: true,
        };
        let Outcome::Report(text, code) = run(&args("nobody@example.org"), &settings).unwrap()
        else {
            panic!("another outcome");
        };
        assert_eq!(
            format!("{code:?}"),
            format!("{:?}", ExitCode::from(REFUSED))
        );
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value[0]["kind"], "unknown");
        assert_eq!(value[0]["accepted"], false);
        assert!(run(&args("no address"), &settings).is_err());
    }
}
