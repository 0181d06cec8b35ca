//! `vere check-config` and `vere config`: what a configuration file says and may say.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;
use vere_settings::{RecordSink, Settings};

use super::Failure;
use crate::role::upgrade;

/// Checks a configuration file and says everything that is wrong with it.
#[derive(Debug, Args)]
pub(crate) struct CheckConfigArgs {
    /// The file; without it, the one that `vere serve` would use.
    file: Option<PathBuf>,
    /// Prints JSON: an object with `file`, `ok` and `errors`, each with `line`, `key` and `text`.
    #[arg(long)]
    json: bool,
}

/// Tells about the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Prints the reference of all settings as Markdown.
    Reference {
        /// Prints JSON: an object with `markdown`.
        #[arg(long)]
        json: bool,
    },
}

/// Runs `vere config` and gives what is to be printed.
pub(crate) fn run(command: &ConfigCommand) -> String {
    match command {
        ConfigCommand::Reference { json: false } => vere_settings::reference(),
        ConfigCommand::Reference { json: true } => {
            format!("{:#}\n", json!({ "markdown": vere_settings::reference() }))
        }
    }
}

/// One thing that is wrong with a file or with what it names.
struct Mistake {
    line: Option<usize>,
    key: String,
    text: String,
}

/// Runs `vere check-config`: gives what is to be printed, and the exit code, 1 when something is
/// wrong. `usual` is the file taken when the arguments name none.
///
/// # Errors
/// When there is no file, or it cannot be read.
pub(crate) fn check(
    args: &CheckConfigArgs,
    usual: impl FnOnce() -> Result<PathBuf, Failure>,
) -> Result<(String, ExitCode), Failure> {
    let path = args.file.clone().map_or_else(usual, Ok)?;
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
    // Paths in the file are taken from its folder, which must be known in full to be looked at.
    let whole = std::path::absolute(&path)?;
    let parsed = Settings::parse(&text, &whole.to_string_lossy());
    let (said, mistakes) = match &parsed {
        Ok(settings) => (summary(settings), unreadable(settings)),
        Err(errors) => {
            let mistake = |error: &vere_settings::ConfigError| Mistake {
                line: Some(error.line),
                key: error.key.clone(),
                text: error.problem.to_string(),
            };
            (String::new(), errors.errors().iter().map(mistake).collect())
        }
    };
    let warnings = parsed.as_ref().map(warnings).unwrap_or_default();
    let code = if mistakes.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    };
    let printed = if args.json {
        in_json(&path, &mistakes, &warnings)
    } else {
        in_text(&path, &said, &mistakes, &warnings)
    };
    Ok((printed, code))
}

fn in_json(path: &Path, mistakes: &[Mistake], warnings: &[Mistake]) -> String {
    let one = |m: &Mistake| json!({ "line": m.line, "key": m.key, "text": m.text });
    let errors: Vec<_> = mistakes.iter().map(one).collect();
    let warnings: Vec<_> = warnings.iter().map(one).collect();
    let file = path.display().to_string();
    format!(
        "{:#}\n",
        json!({ "file": file, "ok": mistakes.is_empty(), "errors": errors, "warnings": warnings })
    )
}

fn in_text(path: &Path, said: &str, mistakes: &[Mistake], warnings: &[Mistake]) -> String {
    let mut text = String::new();
    for Mistake {
        key, text: words, ..
    } in warnings
    {
        let _ = writeln!(text, "{}: warning: {key}: {words}", path.display());
    }
    if mistakes.is_empty() {
        return format!("{text}{} is right\n{said}", path.display());
    }
    for mistake in mistakes {
        let line = mistake
            .line
            .map(|line| format!("{line}:"))
            .unwrap_or_default();
        let colon = if mistake.key.is_empty() { "" } else { ": " };
        let (key, words) = (&mistake.key, &mistake.text);
        let _ = writeln!(text, "{}:{line} {key}{colon}{words}", path.display());
    }
    let count = mistakes.len();
    let _ = writeln!(
        text,
        "{count} {}",
        if count == 1 { "error" } else { "errors" }
    );
    text
}

/// Looks whether the files that must be there already can be read.
fn unreadable(settings: &Settings) -> Vec<Mistake> {
    let mut named: Vec<(String, &Path)> = Vec::new();
    if let Some(files) = &settings.tls.default {
        named.push(("tls.certificate".to_owned(), &files.certificate));
        named.push(("tls.key".to_owned(), &files.key));
    }
    for (n, sni) in settings.tls.sni.iter().enumerate() {
        named.push((
            format!("tls.sni[{}].certificate", n + 1),
            &sni.files.certificate,
        ));
        named.push((format!("tls.sni[{}].key", n + 1), &sni.files.key));
    }
    let root = settings.acme.as_ref().and_then(|acme| acme.root.as_deref());
    named.extend(root.map(|path| ("acme.root".to_owned(), path)));
    named.extend(
        settings
            .resolver
            .zone
            .as_deref()
            .map(|path| ("resolver.zone".to_owned(), path)),
    );
    named.extend(
        settings
            .delivery
            .ca
            .as_deref()
            .map(|path| ("delivery.ca".to_owned(), path)),
    );
    named.extend(
        settings
            .resolver
            .trust_anchor
            .as_deref()
            .map(|path| ("resolver.trust_anchor".to_owned(), path)),
    );
    for (n, route) in settings.routes.iter().enumerate() {
        if let Some(path) = &route.password_file {
            named.push((format!("route[{}].password_file", n + 1), path));
        }
    }
    let records = settings.records.as_ref().map(|records| &records.to);
    if let Some(RecordSink::Webhook { secret, ca, .. }) = records {
        named.push(("records.webhook_secret".to_owned(), secret));
        let ca = ca.as_deref();
        named.extend(ca.map(|path| ("records.webhook_ca".to_owned(), path)));
    }
    if let Some(tls) = &settings.spool.tls {
        named.push(("spool.tls.certificate".to_owned(), &tls.files.certificate));
        named.push(("spool.tls.key".to_owned(), &tls.files.key));
        named.push(("spool.tls.ca".to_owned(), &tls.ca));
    }
    let wrong = |(key, path): (String, &Path)| {
        let error = std::fs::File::open(path).err()?;
        Some(Mistake {
            line: None,
            key,
            text: format!("cannot read {}: {error}", path.display()),
        })
    };
    let unsaid = upgrade::look(settings).err().map(|unsaid| Mistake {
        line: None,
        key: "delivery.local".to_owned(),
        text: unsaid.to_string(),
    });
    named.into_iter().filter_map(wrong).chain(unsaid).collect()
}

/// What works and is hardly meant.
fn warnings(settings: &Settings) -> Vec<Mistake> {
    let exposed = settings.spool.exposed();
    let warning = exposed.map(|(n, node)| Mistake {
        line: None,
        key: format!("spool.node[{}].listen", n + 1),
        text: format!(
            "messages go to and from node {} in clear text: give [spool.tls], or tls = \"off\" when the network is safe",
            node.name
        ),
    });
    warning.collect()
}

/// Says in a few lines what the file amounts to.
fn summary(settings: &Settings) -> String {
    let mut text = format!("host name   {}\n", settings.hostname);
    let services = [
        ("smtp", &settings.smtp),
        ("submission", &settings.submission),
        ("submissions", &settings.submissions),
    ];
    for (name, service) in services {
        let list: Vec<String> = service.listen.iter().map(ToString::to_string).collect();
        let list = if list.is_empty() {
            "off".to_owned()
        } else {
            list.join(" ")
        };
        let _ = writeln!(text, "{name:<12}{list}");
    }
    let tls = match (&settings.tls.default, &settings.acme) {
        (Some(_), _) => "certificate from a file",
        (None, Some(_)) => "certificate by ACME",
        (None, None) => "none",
    };
    let _ = writeln!(text, "tls         {tls}");
    let networks = &settings.relay.networks;
    let networks: Vec<String> = networks.iter().map(ToString::to_string).collect();
    let relay = if networks.is_empty() {
        "own users only".to_owned()
    } else {
        networks.join(" ")
    };
    let _ = writeln!(text, "relay for   {relay}");
    let _ = writeln!(text, "data        {}", settings.data.display());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str, json: bool) -> (String, bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vere.toml");
        std::fs::write(&path, text).unwrap();
        let args = CheckConfigArgs {
            file: Some(path),
            json,
        };
        let (printed, code) = check(&args, || unreachable!()).unwrap();
        let printed = printed.replace(&folder.path().display().to_string(), "DIR");
        (
            printed,
            format!("{code:?}") == format!("{:?}", ExitCode::SUCCESS),
        )
    }

    #[test]
    fn right_file_is_summed_up() {
        let (printed, ok) = checked("version = 1\nhostname = \"mx.example.org\"\n", false);
        assert!(ok);
        assert!(printed.starts_with("DIR/vere.toml is right\nhost name   mx.example.org\n"));
        assert!(printed.contains("relay for   own users only"), "{printed}");
    }

    #[test]
    fn every_mistake_is_printed_with_its_line() {
        let text = "version = 1\nhostname = \"a b\"\nusr = \"x\"\n";
        let (printed, ok) = checked(text, false);
        assert!(!ok);
        let lines: Vec<&str> = printed.lines().collect();
        assert!(
            lines[0].starts_with("DIR/vere.toml:2: hostname: \"a b\""),
            "{printed}"
        );
        assert!(
            lines[1].ends_with("usr: unknown key, the nearest known one is user"),
            "{printed}"
        );
        assert_eq!(lines[2], "2 errors");
        let (printed, _) = checked(text, true);
        let value: serde_json::Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(value["ok"], false);
        assert_eq!(value["errors"][1]["line"], 3);
        assert_eq!(value["errors"][1]["key"], "usr");
    }

    #[test]
    fn files_that_are_named_must_be_there() {
        let text =
            "version = 1\nhostname = \"a.b\"\n[tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"\n";
        let (printed, ok) = checked(text, false);
        assert!(!ok);
        assert!(
            printed.contains("tls.key: cannot read DIR/k.pem"),
            "{printed}"
        );
        assert!(printed.ends_with("2 errors\n"), "{printed}");
    }

    #[test]
    fn nodes_in_clear_text_are_warned_of_and_no_error() {
        let text = "version = 1\nhostname = \"a.b\"\n[[spool.node]]\nname = \"n\"\nlisten = \"192.0.2.1:2600\"\n";
        let (printed, ok) = checked(text, false);
        assert!(ok, "{printed}");
        let (first, rest) = printed.split_once('\n').unwrap();
        assert!(
            first.starts_with("DIR/vere.toml: warning: spool.node[1].listen: "),
            "{first}"
        );
        assert!(rest.starts_with("DIR/vere.toml is right\n"), "{rest}");
        let (printed, _) = checked(text, true);
        let value: serde_json::Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(value["ok"], true);
        assert_eq!(value["warnings"][0]["key"], "spool.node[1].listen");
        let (printed, _) = checked("version = 1\nhostname = \"a.b\"\n", false);
        assert!(!printed.contains("warning"), "{printed}");
    }

    #[test]
    fn missing_file_is_a_failure_with_its_name() {
        let args = CheckConfigArgs {
            file: Some("/nowhere/vere.toml".into()),
            json: false,
        };
        let failure = check(&args, || unreachable!()).unwrap_err();
        assert!(failure.to_string().contains("/nowhere/vere.toml"));
    }

    #[test]
    fn reference_is_that_of_the_settings() {
        assert_eq!(
            run(&ConfigCommand::Reference { json: false }),
            vere_settings::reference()
        );
        assert!(run(&ConfigCommand::Reference { json: true }).contains("markdown"));
    }
}
