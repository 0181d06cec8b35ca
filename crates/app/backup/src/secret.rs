//! The passphrase or key file of encrypted backups.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use vere_process::failure::Failure;
use vere_units::Secret;

use crate::fault::at;

/// Octets of a key file that count.
const KEY_FILE_MAX: u64 = 64 * 1024;
/// The bit of a mode that lets every user read.
const OTHERS_READ: u32 = 0o004;
/// Octets that a passphrase or key file has at least.
const SECRET_MIN: usize = 8;

/// The secret of an encrypted place, asked for when needed.
pub(crate) type Ask<'a> = &'a dyn Fn() -> Result<Option<Secret<Vec<u8>>>, Failure>;

/// How backups are encrypted.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct SecretArgs {
    /// The file whose content encrypts the backups, of at least 8 bytes. Without the file the backups cannot be read:
    /// keep a copy elsewhere.
    #[arg(long, value_name = "FILE", conflicts_with = "passphrase")]
    key_file: Option<PathBuf>,
    /// Ask at the terminal for the passphrase that encrypts the backups.
    #[arg(long)]
    passphrase: bool,
}

impl SecretArgs {
    /// The secret; `None` without encryption.
    ///
    /// # Errors
    /// When the file cannot be read, there is no terminal, or the secret is too short.
    pub(crate) fn get(&self) -> Result<Option<Secret<Vec<u8>>>, Failure> {
        let secret = match &self.key_file {
            Some(path) => {
                let mut octets = Vec::new();
                let file = File::open(path).map_err(at(path))?;
                let mode = file.metadata().map_err(at(path))?.permissions().mode();
                if mode & OTHERS_READ != 0 {
                    let path = path.display();
                    tracing::warn!("every user can read the key of the backups: chmod 600 {path}");
                }
                file.take(KEY_FILE_MAX)
                    .read_to_end(&mut octets)
                    .map_err(at(path))?;
                octets
            }
            None if self.passphrase => asked()?,
            None => return Ok(None),
        };
        if secret.len() < SECRET_MIN {
            return Err(Failure::new(format!(
                "expected a passphrase or key file of at least {SECRET_MIN} bytes; found {}",
                secret.len()
            )));
        }
        Ok(Some(Secret::new(secret)))
    }
}

fn asked() -> Result<Vec<u8>, Failure> {
    let text = rpassword::prompt_password("passphrase of the backups: ").map_err(|error| {
        Failure::new(format!(
            "there is no terminal to ask for the passphrase at ({error}); --key-file names a file"
        ))
    })?;
    Ok(text.into_bytes())
}
