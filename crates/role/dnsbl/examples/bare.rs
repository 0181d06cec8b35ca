//! The server alone, from a file of settings: for measurements without the rest of the program.

use std::process::ExitCode;
use std::sync::Arc;

use vere_settings::Settings;

fn main() -> ExitCode {
    let path = std::env::args().nth(1).unwrap_or_default();
    let read = std::fs::read_to_string(&path).map_err(|error| error.to_string());
    let settings =
        read.and_then(|text| Settings::parse(&text, &path).map_err(|errors| errors.to_string()));
    let ran = settings.and_then(|settings| {
        let _log =
            vere_process::log::start(&settings, "dnsbl").map_err(|error| error.to_string())?;
        vere_role_dnsbl::run(&Arc::new(settings), None).map_err(|error| error.to_string())
    });
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "server ended");
            ExitCode::FAILURE
        }
    }
}
