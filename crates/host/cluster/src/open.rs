//! From the settings to a register.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use vere_settings::{Cluster, Register as Wanted};
use vere_units::Secret;

use crate::{
    ClientCertificate, EtcdOptions, EtcdRegister, FileRegister, Login, Register, RegisterError,
};

/// Octets of a password's file.
const PASSWORD_FILE_MAX: u64 = 4_096;

impl Register {
    /// Opens the configured register, and reads the files named in the settings. Blocks; makes no
    /// connection yet.
    ///
    /// # Errors
    ///
    /// [`RegisterError`], when a folder or a file cannot be used.
    pub fn open(settings: &Cluster) -> Result<Self, RegisterError> {
        let etcd = match &settings.register {
            Wanted::File(folder) => return FileRegister::open(folder).map(Self::File),
            Wanted::Etcd(etcd) => etcd,
        };
        let mut options = EtcdOptions::new(etcd.endpoints.clone());
        options.prefix.clone_from(&etcd.prefix);
        options.ca.clone_from(&etcd.ca);
        options.certificate = etcd.certificate.as_ref().map(|files| ClientCertificate {
            certificate: files.certificate.clone(),
            key: files.key.clone(),
        });
        if let Some((user, file)) = &etcd.login {
            options.login = Some(Login {
                user: user.clone(),
                password: password(file)?,
            });
        }
        EtcdRegister::new(options).map(Self::Etcd)
    }
}

/// The first line of a file, without the line end.
fn password(path: &Path) -> Result<Secret<String>, RegisterError> {
    let wrong = |what: &dyn std::fmt::Display| {
        RegisterError::refused(format!("password in {}: {what}", path.display()))
    };
    let mut text = String::new();
    let file = File::open(path).map_err(|error| wrong(&error))?;
    let read = file.take(PASSWORD_FILE_MAX).read_to_string(&mut text);
    read.map_err(|error| wrong(&error))?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(Secret::new(line.to_owned())),
        _ => Err(wrong(&"the first line is empty")),
    }
}

#[cfg(test)]
mod tests {
    use vere_settings::Settings;

    use super::*;

    fn open(folder: &Path, rest: &str) -> Result<Register, RegisterError> {
        let text = format!("version = 1\nhostname = \"a.test\"\ndata = \"data\"\n{rest}");
        let file = folder.join("vere.toml");
        let settings = Settings::parse(&text, &file.to_string_lossy());
        Register::open(&settings.unwrap().cluster)
    }

    #[test]
    fn the_settings_name_the_register() {
        let folder = tempfile::tempdir().unwrap();
        let files = open(folder.path(), "");
        assert!(matches!(files, Ok(Register::File(_))), "{files:?}");
        assert!(folder.path().join("data/register").is_dir());
        let etcd = |password: &str| {
            std::fs::write(folder.path().join("password"), password).unwrap();
            let text = "[cluster]\nregister = \"etcd\"\n[cluster.etcd]\n\
                endpoints = [\"http://[::1]:2379\"]\nuser = \"u\"\npassword_file = \"password\"\n";
            open(folder.path(), text)
        };
        assert!(matches!(etcd("secret\n"), Ok(Register::Etcd(_))));
        for empty in ["", "\nsecret\n"] {
            assert!(matches!(etcd(empty), Err(RegisterError::Refused { .. })));
        }
        assert_eq!(
            password(&folder.path().join("vere.toml"))
                .err()
                .map(|e| e.maybe_applied()),
            Some(false)
        );
    }
}
