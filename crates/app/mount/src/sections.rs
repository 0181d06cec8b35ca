//! Sections of a description: written for new accounts, while the user's own lines stay.

use std::fmt::Write as _;
use std::path::PathBuf;

use vere_process::failure::Failure;
use vere_settings::AccountSecret;

use crate::args::AccountArgs;

/// An account in a description.
pub(crate) struct Section {
    pub(crate) number: usize,
    pub(crate) url: String,
    pub(crate) secret: AccountSecret,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) clear: bool,
    pub(crate) base64: bool,
    pub(crate) group: usize,
}

impl Section {
    /// Strings of Rust and TOML agree on quotes, backslashes and control characters as far as paths and URLs have any.
    pub(crate) fn write(&self, text: &mut String) {
        // Writing into a text does not fail.
        let _written = writeln!(
            text,
            "\n[[account]]\nnumber = {}\nurl = {:?}",
            self.number, self.url
        );
        let _written = match &self.secret {
            AccountSecret::PasswordFile(file) => {
                writeln!(text, "password_file = {:?}", file.display().to_string())
            }
            AccountSecret::PasswordCommand(words) => writeln!(text, "password_command = {words:?}"),
            AccountSecret::TokenCommand(words) => writeln!(text, "token_command = {words:?}"),
        };
        if let Some(ca) = &self.ca {
            let _written = writeln!(text, "ca = {:?}", ca.display().to_string());
        }
        if self.clear {
            text.push_str("tls = \"off\"\n");
        }
        if self.base64 {
            text.push_str("encoding = \"base64\"\n");
        }
        if self.group != self.number {
            let _written = writeln!(text, "group = {}", self.group);
        }
    }
}

/// The accounts of a command line, each a group of its own.
pub(crate) fn sections(args: &AccountArgs) -> Result<Vec<Section>, Failure> {
    let files = &args.password_files;
    if files.len() != 1 && files.len() != args.accounts.len() {
        return Err(Failure::new(format!(
            "expected --password-file once, or once for each of {} accounts; found {}",
            args.accounts.len(),
            files.len()
        )));
    }
    let section = |(at, url): (usize, &String)| {
        let file = files.get(at).or_else(|| files.first());
        let file = file.map(std::path::absolute).transpose()?;
        let number = at.saturating_add(1);
        Ok(Section {
            number,
            url: url.clone(),
            secret: AccountSecret::PasswordFile(file.unwrap_or_default()),
            ca: args.ca.as_ref().map(std::path::absolute).transpose()?,
            clear: args.clear,
            base64: false,
            group: number,
        })
    };
    args.accounts.iter().enumerate().map(section).collect()
}

/// The text with a further section at the end; the user's own lines stay.
pub(crate) fn with_section(text: &str, section: &str) -> String {
    let text = text.trim_end_matches('\n');
    format!("{text}\n\n{section}")
}

#[cfg(test)]
mod tests {
    use super::with_section;
    use vere_settings::Volume;

    #[test]
    fn a_section_leaves_the_rest_as_it_was() {
        let text = "# My volume\nversion = 1\nmode = \"strong\"   # sure is sure\n\n\
            [[account]]   # the old one\nnumber = 1\nurl = \"imaps://a@one.example/\"\npassword_file = \"p\"\n\n\n";
        let section = "[[account]]\nnumber = 2\nurl = \"imaps://a@two.example/\"\npassword_file = \"p\"\ngroup = 1\n";
        let new = with_section(text, section);
        assert!(new.starts_with(text.trim_end()), "{new}");
        let volume = Volume::parse(&new, "home.toml").unwrap();
        assert!(volume.strong);
        assert_eq!(volume.accounts.len(), 2);
        assert_eq!(volume.accounts[1].group, 1);
    }
}
