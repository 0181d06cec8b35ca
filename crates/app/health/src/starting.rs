//! The commands that start a system or a node with certain settings, as parts of remedies.

use std::path::Path;

use vere_process::config;

use crate::nodes;

/// The settings of the packaged units.
pub(crate) const OF_UNITS: &str = "/etc/vere/vere.toml";

/// Starts the system; `file` has the settings, if known.
pub(crate) fn system(file: Option<&Path>) -> String {
    commands(file, "vere", "vere serve")
}

/// Starts a node alone; `file` has the settings, if known.
pub(crate) fn node(file: Option<&Path>, name: &str) -> String {
    let command = format!("vere spool serve --node {name}");
    commands(file, &nodes::unit(name), &command)
}

fn commands(file: Option<&Path>, unit: &str, command: &str) -> String {
    let found = file.and_then(|_| config::find(None).ok());
    chosen(file, found.as_deref(), unit, command)
}

/// `found` is the file that commands use without `-c`.
fn chosen(file: Option<&Path>, found: Option<&Path>, unit: &str, command: &str) -> String {
    let option = file.filter(|file| !found.is_some_and(|found| is_same(file, found)));
    let option = option.map(|file| format!(" -c {}", whole(file)));
    let command = command.to_owned() + &option.unwrap_or_default();
    // The units read a single file; with further settings a start of the unit does not help.
    match file.is_none_or(|file| is_same(file, Path::new(OF_UNITS))) {
        true => format!("systemctl start {unit}, or: {command}"),
        false => command,
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

/// The path from the root: the remedy may be used in another working directory.
fn whole(file: &Path) -> String {
    let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    whole.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_than_the_usual_one_are_named() {
        let usual = Path::new(OF_UNITS);
        let other = Path::new("/srv/mail/vere.toml");
        let told = |file, found| chosen(file, found, "vere", "vere serve");
        assert_eq!(told(None, None), "systemctl start vere, or: vere serve");
        assert_eq!(
            told(Some(usual), Some(usual)),
            "systemctl start vere, or: vere serve"
        );
        let named = "vere serve -c /srv/mail/vere.toml";
        assert_eq!(told(Some(other), Some(usual)), named);
        assert_eq!(told(Some(other), None), named);
        // VERE_CONFIG names the file.
        assert_eq!(told(Some(other), Some(other)), "vere serve");
        assert_eq!(
            node(None, "mail2"),
            "systemctl start vere-node@mail2, or: vere spool serve --node mail2"
        );
    }
}
