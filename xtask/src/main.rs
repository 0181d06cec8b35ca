//! The checks for CI and developers: `cargo xtask check`, or a single check by name.
//!
//! Each check is a function from the [`Workspace`] to an [`Outcome`], which lists findings; each finding
//! gives the place (`file:line`) and the remedy. No check needs the network once `cargo fetch` has run.
//!
//! Reading order: [`CHECKS`] below is the table of all checks; `workspace.rs` is the input of the checks;
//! one file per check.

mod advisories;
mod architecture;
mod book;
mod cargo;
mod circles;
mod deny;
mod events;
mod finding;
mod generated;
mod graph;
mod layers;
mod links;
mod locked;
mod prose;
mod reach;
mod sbom;
mod shell;
mod sizes;
mod standards;
mod testing;
mod tools;
mod watching;
mod words;
mod workspace;

use std::process::ExitCode;
use std::time::Instant;

use finding::Outcome;
use workspace::Workspace;

/// A check: the name on the command line, the promise, and the function.
struct Check {
    name: &'static str,
    about: &'static str,
    run: fn(&Workspace) -> Outcome,
}

/// All checks, the quick checks first, the tests last: the summary of the tests ends the output.
const CHECKS: &[Check] = &[
    Check {
        name: "layers",
        about: "crates depend on lower layers only",
        run: layers::check,
    },
    Check {
        name: "reach",
        about: "inner crates reach no runtime and no socket through others",
        run: reach::check,
    },
    Check {
        name: "circles",
        about: "no circles between crates and folders, none of files beyond what is agreed",
        run: circles::check,
    },
    Check {
        name: "sizes",
        about: "no file grows beyond what is agreed",
        run: sizes::check,
    },
    Check {
        name: "standards",
        about: "every cited RFC is in docs/standards.md",
        run: standards::check,
    },
    Check {
        name: "architecture",
        about: "ARCHITECTURE.md names every crate, no other",
        run: architecture::check,
    },
    Check {
        name: "links",
        about: "links lead to pages and headings, the book has every page",
        run: links::check,
    },
    Check {
        name: "book",
        about: "the book builds (mdBook)",
        run: book::check,
    },
    Check {
        name: "words",
        about: "no machine's own paths, no conflict marks",
        run: words::check,
    },
    Check {
        name: "prose",
        about: "comments name their subjects",
        run: prose::check,
    },
    Check {
        name: "watching",
        about: "alarms and dashboards name what exists (promtool)",
        run: watching::check,
    },
    Check {
        name: "locked",
        about: "number of locked packages",
        run: locked::check,
    },
    Check {
        name: "deny",
        about: "licences, sources, bans and duplicates (cargo-deny)",
        run: deny::check,
    },
    Check {
        name: "advisories",
        about: "no locked package with a known advisory, as of the snapshot",
        run: advisories::check,
    },
    Check {
        name: "shell",
        about: "shell scripts (shellcheck)",
        run: shell::check,
    },
    Check {
        name: "fmt",
        about: "formatting",
        run: cargo::fmt,
    },
    Check {
        name: "clippy",
        about: "lints, warnings denied",
        run: cargo::clippy,
    },
    Check {
        name: "docs",
        about: "documentation builds, warnings denied",
        run: cargo::docs,
    },
    Check {
        name: "generated",
        about: "docs/reference is what program and alarms say",
        run: generated::check,
    },
    Check {
        name: "test",
        about: "all tests of the workspace",
        run: testing::check,
    },
];

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let workspace = match Workspace::find() {
        Ok(workspace) => workspace,
        Err(error) => {
            eprintln!("xtask: {error}");
            return ExitCode::FAILURE;
        }
    };
    match wanted
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["check"] => run(CHECKS.iter(), &workspace),
        ["generated", "--write"] => report("generated", &generated::write(&workspace)),
        ["sizes", "--write"] => report("sizes", &sizes::write(&workspace)),
        ["prose", "--show"] => report("prose", &prose::show(&workspace)),
        ["advisories", "--write", clone] => {
            report("advisories", &advisories::write(&workspace, clone))
        }
        ["sbom", package, folder, version] => {
            report("sbom", &sbom::write(&workspace, package, folder, version))
        }
        ["circles", "--show", folder] => report("circles", &circles::show(&workspace, folder)),
        [name] if CHECKS.iter().any(|check| check.name == *name) => run(
            CHECKS.iter().filter(|check| check.name == *name),
            &workspace,
        ),
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: cargo xtask check        everything below, in this order");
    for check in CHECKS {
        eprintln!("       cargo xtask {:<12} {}", check.name, check.about);
    }
    eprintln!("       cargo xtask advisories --write CLONE takes the snapshot anew");
    eprintln!("       cargo xtask sbom PACKAGE FOLDER VERSION writes what a program contains");
    eprintln!("       cargo xtask generated --write   writes docs/reference anew");
    eprintln!(
        "       cargo xtask circles --show CRATE prints the circles of a crate, by its folder"
    );
    eprintln!("       cargo xtask prose --show        prints the comment sentences without a noun");
    eprintln!("       cargo xtask sizes --write       lowers the numbers in xtask/sizes.txt");
    ExitCode::from(2)
}

/// Runs all given checks, so that a single run shows every violation.
fn run<'a>(checks: impl Iterator<Item = &'a Check>, workspace: &Workspace) -> ExitCode {
    let mut failed = Vec::new();
    for check in checks {
        eprintln!("== {}: {}", check.name, check.about);
        let begun = Instant::now();
        let outcome = (check.run)(workspace);
        if report(check.name, &outcome) == ExitCode::FAILURE {
            failed.push(check.name);
        }
        if check.name != "test" {
            eprintln!("   {:.1} s", begun.elapsed().as_secs_f32());
        }
    }
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("xtask: failed: {}", failed.join(", "));
    ExitCode::FAILURE
}

fn report(name: &str, outcome: &Outcome) -> ExitCode {
    match outcome {
        Outcome::Passed => ExitCode::SUCCESS,
        Outcome::Told(what) => {
            eprintln!("   {what}");
            ExitCode::SUCCESS
        }
        Outcome::Skipped(why) => {
            eprintln!("   SKIPPED {name}: {why}");
            ExitCode::SUCCESS
        }
        Outcome::Failed(findings) => {
            findings.iter().for_each(|finding| eprintln!("{finding}"));
            ExitCode::FAILURE
        }
    }
}
