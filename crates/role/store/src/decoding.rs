//! Processes that decode texts for tests: this very test program is started again, as [`a_process`].

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use vere_mime::wire::answer;
use vere_parsing::child::{ENVIRONMENT, Limits, serve};
use vere_parsing::{Decoders, Launch};

/// Tells [`a_process`] its manner.
const MANNER: &str = "VERE_TEST_DECODER";
/// Messages with this word make the processes of [`hanging`] hang.
pub(crate) const POISON: &[u8] = b"poison";
/// No test waits so long.
const FOR_EVER: Duration = Duration::from_secs(600);

/// No test by itself: other tests start the process.
#[test]
fn a_process() {
    let Ok(manner) = std::env::var(MANNER) else {
        return;
    };
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned().unwrap());
    let other = stream.try_clone().unwrap();
    let limits = Limits::set(600, 600).unwrap();
    let served = serve(stream, limits, |request, message| {
        if manner == "hangs" && memchr::memmem::find(message, POISON).is_some() {
            // Until the other side is gone.
            io::copy(&mut &other, &mut io::sink()).unwrap();
        }
        answer(request, message)
    });
    let _ = served;
    std::process::exit(0);
}

fn launch(manner: &'static str) -> Launch {
    Launch::new(move || {
        let mut command = Command::new("/proc/self/exe");
        command
            .args(["--exact", "decoding::a_process", "--nocapture"])
            .env(MANNER, manner)
            .envs([ENVIRONMENT]);
        command
    })
}

/// Decoders whose processes answer.
pub(crate) fn decoders() -> Decoders {
    Decoders::launched_by(launch("answers"), FOR_EVER)
}

/// Decoders whose processes hang at a message with [`POISON`].
pub(crate) fn hanging() -> Decoders {
    Decoders::launched_by(launch("hangs"), Duration::from_millis(500)).never_put_off()
}
