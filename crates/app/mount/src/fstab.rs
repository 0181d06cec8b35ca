//! `mount.verefs`: the command line with which mount(8) calls a helper, and so a line of /etc/fstab.
//!
//! ```text
//! home  /home/bob/mail  verefs  noauto,user=bob,_netdev  0  0
//! ```

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use nix::unistd::User;
use vere_process::failure::Failure;

/// The name of the program as mount(8) calls the program.
const NAME: &str = "mount.verefs";
/// The exit code of mount(8) for a failed mount.
const FAILED: u8 = 32;
/// The exit code of mount(8) for a wrong command line.
const USAGE: u8 = 1;

/// The synopsis.
pub const SYNOPSIS: &str = "mount.verefs VOLUME FOLDER [-sfnv] [-o OPTION,...]";

/// Options of `-o` with their meanings.
pub const OPTIONS: [(&str, &str); 11] = [
    ("ro, rw", "take no changes; take changes"),
    ("allow_other", "let other users use the mount"),
    (
        "suid, nosuid",
        "honour set-id bits of programs, or not (default)",
    ),
    ("dev, nodev", "let device nodes work, or not (default)"),
    ("mode=weak, mode=strong", "what closing a file waits for"),
    ("passphrase_file=FILE", "the file with the passphrase"),
    ("key_file=FILE", "the key file"),
    (
        "user=NAME",
        "mount as this user, whose configuration has the volume; as root only",
    ),
    ("config=FILE", "the file of the volume, in place of VOLUME"),
    (
        "_netdev, auto, noauto, nofail, user, users, owner, x-*",
        "for mount(8) and systemd; ignored here",
    ),
    (
        "defaults, exec, noexec, sync, async, atime, noatime, relatime, diratime, nodiratime",
        "ignored",
    ),
];

/// What the command line wants.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    volume: String,
    folder: OsString,
    /// Words for `vere fs mount`.
    words: Vec<OsString>,
    user: Option<String>,
    /// `-f`: everything but the mount.
    fake: bool,
}

/// Whether the program is called as the helper of mount(8). Gives the words behind the name.
#[must_use]
pub fn called(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let (program, words) = arguments.split_first()?;
    let name = Path::new(program).file_name()?;
    (name == NAME).then(|| words.to_vec())
}

/// Mounts as mount(8) asks for.
#[must_use]
pub fn run(words: &[OsString]) -> ExitCode {
    match parse(words) {
        Ok(wanted) if wanted.fake => ExitCode::SUCCESS,
        Ok(wanted) => match start(&wanted) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("{NAME}: {failure}");
                ExitCode::from(FAILED)
            }
        },
        Err(failure) => {
            eprintln!("{NAME}: {failure}\nusage: {SYNOPSIS}");
            ExitCode::from(USAGE)
        }
    }
}

fn parse(words: &[OsString]) -> Result<Wanted, Failure> {
    let mut wanted = Wanted::default();
    let mut places = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("-o") => {
                let options = words.next().and_then(|options| options.to_str());
                let options =
                    options.ok_or_else(|| Failure::new("-o: expected options; found none"))?;
                for option in options.split(',').filter(|option| !option.is_empty()) {
                    wanted.option(option)?;
                }
            }
            Some("-t") => {
                // The type is this program's name.
                let _kind = words.next();
            }
            Some(flags) if flags.len() > 1 && flags.starts_with('-') => {
                for flag in flags.chars().skip(1) {
                    match flag {
                        'f' => wanted.fake = true,
                        's' | 'n' | 'v' => {}
                        _ => {
                            return Err(Failure::new(format!("expected an option; found -{flag}")));
                        }
                    }
                }
            }
            _ => places.push(word),
        }
    }
    let [volume, folder] = places.as_slice() else {
        return Err(Failure::new(format!(
            "expected a volume and a folder; found {} words",
            places.len()
        )));
    };
    let named = volume
        .to_str()
        .ok_or_else(|| Failure::new("expected a volume of UTF-8; found other octets"))?;
    if wanted.volume.is_empty() {
        named.clone_into(&mut wanted.volume);
    }
    wanted.folder.clone_from(folder);
    Ok(wanted)
}

impl Wanted {
    fn option(&mut self, option: &str) -> Result<(), Failure> {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        let mut add = |words: &[&str]| self.words.extend(words.iter().map(OsString::from));
        match (name, value) {
            ("ro", None) => add(&["--read-only"]),
            ("allow_other", None) => add(&["--allow-other"]),
            ("suid", None) => add(&["--suid"]),
            ("dev", None) => add(&["--dev"]),
            ("mode", Some(mode)) => add(&["--mode", mode]),
            ("passphrase_file", Some(file)) => add(&["--passphrase-file", file]),
            ("key_file", Some(file)) => add(&["--key-file", file]),
            ("user", Some(user)) => self.user = Some(user.to_owned()),
            ("config", Some(file)) => file.clone_into(&mut self.volume),
            (
                "rw" | "nosuid" | "nodev" | "_netdev" | "auto" | "noauto" | "nofail" | "user"
                | "users" | "nouser" | "owner" | "group" | "defaults" | "exec" | "noexec" | "sync"
                | "async" | "atime" | "noatime" | "relatime" | "norelatime" | "strictatime"
                | "lazytime" | "diratime" | "nodiratime",
                None,
            ) => {}
            (name, _) if name.starts_with("x-") || name.starts_with("X-") => {}
            ("comment", Some(_)) => {}
            _ => {
                return Err(Failure::new(format!(
                    "-o {option}: expected a known option; found another one"
                )));
            }
        }
        Ok(())
    }
}

/// Runs `vere fs mount`, as another user if asked for. At the start of a machine nobody answers a question, so the passphrase
/// comes from a file.
fn start(wanted: &Wanted) -> Result<(), Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    // By the program's own name, whatever the path of this process was.
    command
        .arg0("vere")
        .args(["fs", "mount"])
        .args(&wanted.words);
    command.arg("--").arg(&wanted.volume).arg(&wanted.folder);
    if let Some(name) = &wanted.user {
        let user = User::from_name(name)
            .ok()
            .flatten()
            .ok_or_else(|| Failure::new(format!("user={name}: expected a user; found none")))?;
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
        command.env("HOME", &user.dir).env("USER", name);
        for variable in ["XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
            command.env_remove(variable);
        }
    } else if std::env::var_os("HOME").is_none() {
        // systemd starts helpers without HOME.
        let user = User::from_uid(nix::unistd::geteuid()).ok().flatten();
        if let Some(user) = user {
            command.env("HOME", user.dir);
        }
    }
    let status = command.status()?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{}: expected a mount; found a failure, as printed above",
        wanted.volume
    )))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::{called, parse};

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn the_name_decides() {
        let behind = called(&words("/sbin/mount.verefs home /mnt")).unwrap();
        assert_eq!(behind, words("home /mnt"));
        assert_eq!(called(&words("/usr/bin/vere home /mnt")), None);
        assert_eq!(called(&[]), None);
    }

    #[test]
    fn the_line_of_mount() {
        let line = "home /mnt -sv -o rw,noauto,_netdev,user=bob,mode=strong,x-systemd.automount,passphrase_file=/p";
        let wanted = parse(&words(line)).unwrap();
        assert_eq!(
            (wanted.volume.as_str(), wanted.folder.as_os_str()),
            ("home", "/mnt".as_ref())
        );
        assert_eq!(wanted.user.as_deref(), Some("bob"));
        assert_eq!(wanted.words, words("--mode strong --passphrase-file /p"));
        let wanted = parse(&words("home /mnt -f -o ro,user,config=/etc/home.toml")).unwrap();
        assert_eq!(wanted.volume, "/etc/home.toml");
        assert!(wanted.fake && wanted.user.is_none());
        assert_eq!(wanted.words, words("--read-only"));
    }

    #[test]
    fn wrong_lines_are_named() {
        for (line, text) in [
            ("home", "a volume and a folder"),
            ("home /mnt -o", "expected options"),
            ("home /mnt -o what", "-o what: expected a known option"),
            ("home /mnt -x", "found -x"),
        ] {
            let found = parse(&words(line)).unwrap_err().to_string();
            assert!(found.contains(text), "{found}");
        }
    }
}
