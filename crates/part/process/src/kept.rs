//! Where copies lie of the certificates and keys that could be used: roles make them, and the supervisor removes
//! those that no setting names any more.

use std::path::PathBuf;

use vere_settings::{CertificateFiles, Settings};

use super::settings::ACCEPTED_SETTINGS;

/// Name of the folder under the data directory.
pub const FOLDER: &str = "accepted";

/// What a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// `[tls]`.
    Default,
    /// A section `[[tls.sni]]`, from 0 on.
    Sni(usize),
    /// `[spool.tls]`.
    Spool,
}

impl Kept {
    /// Where its copy lies.
    pub fn path(self, settings: &Settings) -> PathBuf {
        let name = match self {
            Self::Default => "default.pem".to_owned(),
            Self::Sni(place) => format!("sni-{}.pem", place + 1),
            Self::Spool => "spool.pem".to_owned(),
        };
        settings.data.join(FOLDER).join(name)
    }

    /// All that the settings name.
    pub fn all(settings: &Settings) -> impl Iterator<Item = Self> {
        let sni = (0..settings.tls.sni.len()).map(Self::Sni);
        let all = [Self::Default, Self::Spool].into_iter().chain(sni);
        all.filter(|kept| kept.files(settings).is_some())
    }

    /// The files that the settings name, and for whom.
    pub fn files(self, settings: &Settings) -> Option<(&str, &CertificateFiles)> {
        match self {
            Self::Default => settings.tls.default.as_ref().map(|files| ("", files)),
            Self::Sni(place) => {
                let sni = settings.tls.sni.get(place)?;
                Some((&sni.name, &sni.files))
            }
            Self::Spool => settings.spool.tls.as_ref().map(|tls| ("", &tls.files)),
        }
    }

    /// What the setting of this key is about.
    pub fn of_key(key: &str) -> Option<Self> {
        let (section, of) = key.rsplit_once('.')?;
        if !matches!(of, "certificate" | "key") {
            return None;
        }
        match section {
            "tls" => Some(Self::Default),
            "spool.tls" => Some(Self::Spool),
            _ => {
                let number = section.strip_prefix("tls.sni[")?.strip_suffix(']')?;
                Some(Self::Sni(number.parse::<usize>().ok()?.checked_sub(1)?))
            }
        }
    }
}

/// Where a role keeps a copy of a certificate and its key that could be used: restarted while the files
/// are broken it takes those. Nowhere for a role started by hand, or a command.
pub fn kept_certificate(settings: &Settings, of: Kept) -> Option<PathBuf> {
    std::env::var_os(ACCEPTED_SETTINGS)?;
    Some(of.path(settings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_faults_name_copies() {
        for (key, kept) in [
            ("tls.key", Some(Kept::Default)),
            ("tls.sni[2].certificate", Some(Kept::Sni(1))),
            ("spool.tls.certificate", Some(Kept::Spool)),
            ("spool.tls.ca", None),
            ("tls.sni[0].key", None),
            ("delivery.ca", None),
            ("route[1].password_file", None),
        ] {
            assert_eq!(Kept::of_key(key), kept, "{key}");
        }
    }
}
