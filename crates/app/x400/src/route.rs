//! `vere x400 route`

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};
use vere_mta400::{Destination, Explanation, Mta, Profile, Row};
use vere_process::failure::Failure;
use vere_settings::Settings;
use vere_switch::Switch;
use vere_x400::{Amhs, AmhsForm, OrAddress};

use crate::args::RouteArgs;

/// The hosts of each peer, by name.
type Hosts = BTreeMap<String, Vec<String>>;

/// Explains the route of an address by the settings, and returns text and exit code.
///
/// # Errors
/// When the settings of the MTA are wrong.
pub(crate) fn run(args: &RouteArgs, settings: &Settings) -> Result<(String, ExitCode), Failure> {
    let Some(Switch { mta, reach, .. }) = Switch::of(settings)? else {
        return Err(Failure::new("expected a section [x400]; found none"));
    };
    let hosts = reach.into_iter().map(|(name, reach)| {
        let hosts = reach
            .hosts
            .iter()
            .map(|(host, port)| host_and_port(host, *port));
        (name, hosts.collect())
    });
    explain(&mta, &hosts.collect(), args)
}

fn explain(mta: &Mta, hosts: &Hosts, args: &RouteArgs) -> Result<(String, ExitCode), Failure> {
    let key = args.address.key()?;
    let explanation = mta.routes.explain(&key);
    let to = explanation.row.and_then(|row| row.to.as_ref());
    let code = match to {
        Some(_) => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    };
    let text = if args.json {
        format!("{:#}\n", to_json(&explanation, hosts, &args.address))
    } else {
        let mut text = explanation.to_string();
        if let Some(form) = aeronautical(&args.address) {
            let _ = writeln!(text, "aeronautical: {form}");
        }
        text + &to.map(|to| destination(mta, hosts, to)).unwrap_or_default()
    };
    Ok((text, code))
}

/// The facts about a destination.
fn destination(mta: &Mta, hosts: &Hosts, to: &Destination) -> String {
    let mut text = String::new();
    if let Some(terms) = to.peer().and_then(|name| mta.peers.get(name)) {
        let profile = match terms.profile {
            Profile::Y1984 => "P1 of 1984",
            Profile::Y1988 => "P1 of 1988",
        };
        let name = terms
            .theirs
            .as_ref()
            .map_or("-", |theirs| &*theirs.mta_name);
        let _ = writeln!(
            text,
            "peer {}: MTA {name} in {}, {profile}",
            terms.name, terms.domain
        );
        for host in hosts.get(&terms.name).into_iter().flatten() {
            let _ = writeln!(text, "  {host}");
        }
    }
    if let Some(user) = to.user().and_then(|name| mta.site.users.get(name))
        && let Some(other) = &user.redirect_to
    {
        let _ = writeln!(text, "redirected to {other}");
    }
    text
}

fn to_json(explanation: &Explanation<'_>, hosts: &Hosts, address: &OrAddress) -> Value {
    let to = explanation.row.and_then(|row| row.to.as_ref());
    let hosts = to
        .and_then(Destination::peer)
        .and_then(|name| hosts.get(name));
    json!({
        "address": explanation.key.to_string(),
        "amhs": aeronautical(address),
        "row": explanation.row.map(row),
        "to": to.map(ToString::to_string),
        "shorter": explanation.shorter.iter().map(|one| row(one)).collect::<Vec<_>>(),
        "hosts": hosts,
    })
}

fn row(row: &Row) -> Value {
    json!({
        "number": row.number,
        "address": row.key.to_string(),
        "whole": row.whole,
        "to": row.to.as_ref().map(ToString::to_string),
    })
}

/// The form of an aeronautical address, and the address in the fixed network.
fn aeronautical(address: &OrAddress) -> Option<String> {
    let amhs = Amhs::of(&address.attributes().ok()?)?;
    let form = match amhs.form {
        AmhsForm::Xf => "XF",
        AmhsForm::Caas { .. } => "CAAS",
    };
    Some(format!("{form}, {}", amhs.address))
}

fn host_and_port(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use vere_mta400::{Identity, Names, Peers, RouteSetting, Routes, Site, Terms, User};
    use vere_units::Secret;
    use vere_x400::GlobalDomainIdentifier;

    use super::*;

    fn mta() -> Mta {
        let domain = |private| GlobalDomainIdentifier::new("XX", "ICAO", Some(private)).unwrap();
        let mut terms = Terms::new("mta2", domain("Beta"));
        terms.theirs = Some(Identity {
            mta_name: "MTA-2".to_owned(),
            password: Secret::new(b"x".to_vec()),
        });
        let mut names = Names::default();
        names.peers.insert("mta2".to_owned());
        names.users.insert("smith".to_owned());
        let row = |address: &str, to: &str, whole| RouteSetting {
            address: address.to_owned(),
            to: to.to_owned(),
            whole,
        };
        let rows = [
            row("P=Beta;A=ICAO;C=XX", "peer:mta2", false),
            row("A=ICAO;C=XX", "unknown", false),
            row("S=Smith;P=Acme;A=ICAO;C=XX", "file:smith", true),
        ];
        let mut site = Site::new(domain("Acme"), "mta1").unwrap();
        let user = User {
            redirect_to: Some("S=Jones;P=Acme;A=ICAO;C=XX".parse().unwrap()),
            ..User::default()
        };
        site.users.insert("smith".to_owned(), user);
        Mta {
            site,
            peers: Peers::new(vec![terms]).unwrap(),
            routes: Routes::new(&rows, &names).unwrap(),
        }
    }

    fn said(address: &str, json: bool) -> (String, ExitCode) {
        let hosts = vec![
            host_and_port("mta2.example", 102),
            host_and_port("2001:db8::1", 2102),
        ];
        let hosts = Hosts::from([("mta2".to_owned(), hosts)]);
        let args = RouteArgs {
            address: address.parse().unwrap(),
            json,
        };
        explain(&mta(), &hosts, &args).unwrap()
    }

    #[test]
    fn the_row_the_shorter_rows_and_the_peer_are_named() {
        let address = "/OU1=EDDFYMYX/O=AFTN/PRMD=Beta/ADMD=ICAO/C=XX/";
        assert_eq!(
            said(address, false),
            (
                "address: C=XX;A=ICAO;P=BETA;O=AFTN;OU1=EDDFYMYX\n\
                 row 1 (C=XX;A=ICAO;P=BETA), 3 attributes: peer:mta2\n\
                 \x20 instead of row 2 (C=XX;A=ICAO), 2 attributes: unknown\n\
                 aeronautical: XF, EDDFYMYX\n\
                 peer mta2: MTA MTA-2 in /PRMD=Beta/ADMD=ICAO/C=XX/, P1 of 1988\n\
                 \x20 mta2.example:102\n\
                 \x20 [2001:db8::1]:2102\n"
                    .to_owned(),
                ExitCode::SUCCESS
            )
        );
        let (text, code) = said(address, true);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(code, ExitCode::SUCCESS);
        assert_eq!(value["to"], "peer:mta2");
        assert_eq!(value["amhs"], "XF, EDDFYMYX");
        assert_eq!(
            (&value["row"]["number"], &value["shorter"][0]["to"]),
            (&json!(1), &Value::Null)
        );
        assert_eq!(
            value["hosts"],
            json!(["mta2.example:102", "[2001:db8::1]:2102"])
        );
    }

    #[test]
    fn users_are_named_with_their_redirection() {
        let (text, code) = said("S=SMITH;P=acme;A=ICAO;C=XX", false);
        assert_eq!(code, ExitCode::SUCCESS);
        assert!(text.contains("the whole address: file:smith\n"), "{text}");
        assert!(
            text.contains("\nredirected to S=Jones;P=Acme;A=ICAO;C=XX\n"),
            "{text}"
        );
    }

    #[test]
    fn no_route_and_no_such_user_are_failures() {
        let (text, code) = said("S=Nobody;P=Acme;A=ICAO;C=XX", false);
        assert_eq!(code, ExitCode::FAILURE);
        assert!(
            text.contains("2 attributes: the recipient is not known"),
            "{text}"
        );
        let (text, code) = said("S=Nobody;A=Other;C=XX", false);
        assert_eq!(code, ExitCode::FAILURE);
        assert!(text.contains("no row matches"), "{text}");
    }
}
