//! `vere check-config` and `vere config`: the content of a configuration file, and the allowed settings.

pub(super) mod memory;
mod summary;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use vere_settings::{File, KeyLines, Settings};

use super::config_arg::ConfigArg;
use vere_health::surroundings;
use vere_process::failure::Failure;
use vere_supervisor::named::{self, Fault};
use vere_supervisor::roles::memory_bounds;

/// Check a configuration file and print every error, with lines.
#[derive(Debug, Args)]
pub(crate) struct CheckConfigArgs {
    /// The file; by default, the file that `vere serve` would use.
    file: Option<PathBuf>,
    /// Print JSON: an object with `file`, `ok`, `errors` and `warnings`, each with `line`, `key` and `text`, and
    /// `memory`, the bounds of all roles in `bytes`.
    #[arg(long)]
    json: bool,
}

/// Print facts about the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the reference of all settings as Markdown.
    Reference {
        /// Of the file of a volume on mail accounts (`vere fs`), in place of `vere.toml`.
        #[arg(long)]
        volume: bool,
        /// Print JSON: an object with `markdown`.
        #[arg(long)]
        json: bool,
    },
    /// Print the memory bound of each role, and the limit that follows.
    Memory {
        #[command(flatten)]
        config: ConfigArg,
        /// Print a drop-in for systemd that sets `MemoryMax` of the service.
        #[arg(long, conflicts_with = "json")]
        systemd: bool,
        /// Print JSON: an object with `bytes`, `limit_bytes` and `roles`, each with a `parts`.
        #[arg(long)]
        json: bool,
    },
}

/// Runs `vere config` and returns the text to print.
///
/// # Errors
/// When the requested settings cannot be read.
pub(crate) fn run(command: &ConfigCommand) -> Result<String, Failure> {
    Ok(match command {
        ConfigCommand::Reference { volume, json } => {
            let text = vere_settings::reference(match volume {
                true => File::Volume,
                false => File::System,
            });
            match json {
                true => format!("{:#}\n", json!({ "markdown": text })),
                false => text,
            }
        }
        ConfigCommand::Memory {
            config,
            systemd,
            json,
        } => {
            let (path, settings) = config.load()?;
            memory::print(&settings, &path, *systemd, *json)
        }
    })
}

/// An error of a file or of an object named in the file.
struct Mistake {
    line: Option<usize>,
    key: String,
    text: String,
}

/// Runs `vere check-config`: returns the text to print, and the exit code, 1 for a faulty file. `option` is the file
/// of `-c`, `usual` the default file.
///
/// # Errors
/// When no file is found, two files are named, or the file cannot be read.
pub(crate) fn check(
    args: &CheckConfigArgs,
    option: Option<&Path>,
    usual: impl FnOnce() -> Result<PathBuf, Failure>,
) -> Result<(String, ExitCode), Failure> {
    let path = match (&args.file, option) {
        (Some(file), Some(option)) => {
            return Err(Failure::new(format!(
                "{} and {}: name one file, behind -c or without",
                option.display(),
                file.display()
            )));
        }
        (Some(file), None) => file.clone(),
        (None, _) => usual()?,
    };
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
    // Paths in the file are relative to the directory of the file, whose full path the inspection needs.
    let whole = std::path::absolute(&path)?;
    let parsed = Settings::parse(&text, &whole.to_string_lossy());
    let lines = KeyLines::of(&text);
    let at_line = |fault: Fault| Mistake {
        line: lines.at(&fault.key),
        key: fault.key,
        text: fault.text,
    };
    let (said, mistakes) = match &parsed {
        Ok(settings) => {
            let faults = named::faults(settings).into_iter();
            let around = surroundings::faults(settings);
            (
                summary::of(settings),
                faults.chain(around).map(at_line).collect::<Vec<_>>(),
            )
        }
        Err(errors) => {
            let mistake = |error: &vere_settings::ConfigError| Mistake {
                line: Some(error.line),
                key: error.key.clone(),
                text: error.problem.to_string(),
            };
            (String::new(), errors.errors().iter().map(mistake).collect())
        }
    };
    let warnings = parsed.as_ref().map(surroundings::warnings);
    let warnings: Vec<Mistake> = warnings
        .unwrap_or_default()
        .into_iter()
        .map(at_line)
        .collect();
    let code = if mistakes.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    };
    let printed = if args.json {
        let memory = parsed.as_ref().ok().map(memory_bounds);
        in_json(
            &path,
            &mistakes,
            &warnings,
            memory.as_ref().map(memory::json),
        )
    } else {
        in_text(&path, &said, &mistakes, &warnings)
    };
    Ok((printed, code))
}

fn in_json(
    path: &Path,
    mistakes: &[Mistake],
    warnings: &[Mistake],
    memory: Option<Value>,
) -> String {
    let one = |m: &Mistake| json!({ "line": m.line, "key": m.key, "text": m.text });
    let errors: Vec<_> = mistakes.iter().map(one).collect();
    let warnings: Vec<_> = warnings.iter().map(one).collect();
    let file = path.display().to_string();
    format!(
        "{:#}\n",
        json!({
            "file": file,
            "ok": mistakes.is_empty(),
            "errors": errors,
            "warnings": warnings,
            "memory": memory,
        })
    )
}

fn in_text(path: &Path, said: &str, mistakes: &[Mistake], warnings: &[Mistake]) -> String {
    let mut text = String::new();
    for Mistake {
        line,
        key,
        text: words,
    } in warnings
    {
        let line = line.map(|line| format!("{line}:")).unwrap_or_default();
        let _ = writeln!(text, "{}:{line} warning: {key}: {words}", path.display());
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
        let (printed, code) = check(&args, None, || unreachable!()).unwrap();
        let printed = printed.replace(&folder.path().display().to_string(), "DIR");
        (
            printed,
            format!("{code:?}") == format!("{:?}", ExitCode::SUCCESS),
        )
    }

    fn checked_json(text: &str) -> Value {
        serde_json::from_str(&checked(text, true).0).unwrap()
    }

    #[test]
    fn right_file_is_summed_up() {
        let (printed, ok) = checked("version = 1\nhostname = \"mx.example.org\"\n", false);
        assert!(ok);
        assert!(printed.starts_with("DIR/vere.toml is right\nhost name   mx.example.org\n"));
        assert!(printed.contains("relay for   own users only"), "{printed}");
        assert!(printed.contains("\nmemory      "), "{printed}");
        let value = checked_json("version = 1\nhostname = \"mx.example.org\"\n");
        assert!(value["memory"]["bytes"].as_u64() > Some(0), "{value}");
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
        let value = checked_json(text);
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
            printed.contains("DIR/vere.toml:4: tls.certificate: cannot read DIR/c.pem"),
            "{printed}"
        );
        assert!(printed.ends_with("1 error\n"), "{printed}");
    }

    #[test]
    fn a_file_that_is_named_twice_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vere.toml");
        std::fs::write(&path, "version = 1\nhostname = \"a.b\"\n").unwrap();
        let args = CheckConfigArgs {
            file: Some(path.clone()),
            json: false,
        };
        let failure = check(&args, Some(&path), || unreachable!()).unwrap_err();
        assert!(failure.to_string().contains("name one file"), "{failure}");
    }

    #[test]
    fn nodes_in_clear_text_are_warned_of_and_no_error() {
        let text = "version = 1\nhostname = \"a.b\"\n[[spool.node]]\nname = \"n\"\nlisten = \"192.0.2.1:2600\"\n";
        let (printed, ok) = checked(text, false);
        assert!(ok, "{printed}");
        let (first, rest) = printed.split_once('\n').unwrap();
        assert!(
            first.starts_with("DIR/vere.toml:5: warning: spool.node[1].listen: "),
            "{first}"
        );
        assert!(rest.starts_with("DIR/vere.toml is right\n"), "{rest}");
        let value = checked_json(text);
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
        let failure = check(&args, None, || unreachable!()).unwrap_err();
        assert!(failure.to_string().contains("/nowhere/vere.toml"));
    }

    fn reference(volume: bool, json: bool) -> String {
        run(&ConfigCommand::Reference { volume, json }).unwrap()
    }

    #[test]
    fn reference_is_that_of_the_settings() {
        assert_eq!(
            reference(false, false),
            vere_settings::reference(File::System)
        );
        assert_eq!(
            reference(true, false),
            vere_settings::reference(File::Volume)
        );
        let json = reference(false, true);
        assert!(json.contains("markdown"));
    }
}
