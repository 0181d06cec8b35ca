//! `vere x400 peers`

use std::fmt::Write as _;
use std::path::Path;

use vere_attach::{Ask, ClientEvent, PeerRow, PeerState};
use vere_process::failure::Failure;
use vere_settings::X400;

use crate::args::PeersArgs;
use crate::talk::Talk;

/// Asks the running MTA, and returns the text to print.
///
/// # Errors
/// When no MTA answers.
pub(crate) fn run(args: &PeersArgs, settings: &X400) -> Result<String, Failure> {
    let rows = ask(&settings.socket)?;
    if args.json {
        return Ok(format!("{}\n", serde_json::to_string_pretty(&rows)?));
    }
    Ok(table(&rows))
}

/// All peers, part by part.
fn ask(socket: &Path) -> Result<Vec<PeerRow>, Failure> {
    let mut talk = Talk::open(socket)?;
    let mut rows: Vec<PeerRow> = Vec::new();
    loop {
        talk.client.ask(Ask {
            tag: "1".to_owned(),
            peers: true,
            after: rows.last().map(|row| row.name.clone()),
        })?;
        let answer = match talk.next()? {
            ClientEvent::Answer(answer) => answer,
            other => return Err(talk.unexpected(&other)),
        };
        let part = answer.peers.unwrap_or_default();
        let more = answer.more && !part.is_empty();
        rows.extend(part);
        if !more {
            return Ok(rows);
        }
    }
}

fn table(rows: &[PeerRow]) -> String {
    if rows.is_empty() {
        return "no peers\n".to_owned();
    }
    let mut out = line([
        "PEER",
        "STATE",
        "IN",
        "OUT",
        "QUEUED",
        "OLDEST",
        "NEXT",
        "LAST FAULT",
    ]);
    for row in rows {
        let fault = match (&row.last_error, row.last_error_s) {
            (Some(error), Some(seconds)) => format!("{error} ({} ago)", age(Some(seconds))),
            (Some(error), None) => error.clone(),
            (None, _) => "-".to_owned(),
        };
        out += &line([
            &row.name,
            state(row.state),
            &row.associations_in.to_string(),
            &row.associations_out.to_string(),
            &row.queued.to_string(),
            &age(row.oldest_s),
            &age(row.next_attempt_s),
            &fault,
        ]);
    }
    out
}

fn line([name, state, inward, outward, queued, oldest, next, fault]: [&str; 8]) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{name:<24} {state:<8} {inward:>4} {outward:>4} {queued:>9} {oldest:>7} {next:>7}  {fault}"
    );
    out
}

const fn state(state: PeerState) -> &'static str {
    match state {
        PeerState::Open => "open",
        PeerState::Idle => "idle",
        PeerState::Waiting => "waiting",
        PeerState::Failing => "failing",
        PeerState::Held => "held",
        PeerState::Other => "?",
    }
}

/// A time in the largest unit of which there are two at least.
fn age(seconds: Option<u64>) -> String {
    let Some(seconds) = seconds else {
        return "-".to_owned();
    };
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::talk::tests::{agree, serve};

    #[test]
    fn all_parts_of_a_long_answer_are_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("attach.sock");
        let server = serve(UnixListener::bind(&path).unwrap(), agree);
        let rows = ask(&path).unwrap();
        let names: Vec<_> = rows.iter().map(|row| &*row.name).collect();
        assert_eq!(names, ["mta2", "mta3"]);
        server.join().unwrap();
    }

    #[test]
    fn the_table_is_for_people() {
        assert_eq!(table(&[]), "no peers\n");
        let rows = [
            PeerRow {
                name: "mta2".to_owned(),
                state: PeerState::Failing,
                queued: 12,
                oldest_s: Some(7_199),
                next_attempt_s: Some(119),
                last_error: Some("connection refused".to_owned()),
                last_error_s: Some(172_800),
                ..PeerRow::default()
            },
            PeerRow {
                name: "mta3".to_owned(),
                state: PeerState::Open,
                associations_in: 2,
                associations_out: 1,
                oldest_s: Some(7_200),
                ..PeerRow::default()
            },
        ];
        assert_eq!(
            table(&rows),
            "PEER                     STATE      IN  OUT    QUEUED  OLDEST    NEXT  LAST FAULT\n\
             mta2                     failing     0    0        12 119 min   119 s  connection refused (2 d ago)\n\
             mta3                     open        2    1         0     2 h       -  -\n"
        );
    }
}
