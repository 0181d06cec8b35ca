//! `vere trace`: a message's way, step by step.

use std::fmt::Write as _;

use clap::Args;
use vere_settings::Settings;
use vere_telemetry::trace::{EventKind, Query, Record, Trace, find};

use vere_control::{Request, ask};
use vere_process::failure::Failure;

/// Print the trace of a message with times.
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// Queue id, Message-ID, or a recipient's address.
    id: String,
    /// Show the newest messages, at most this number.
    #[arg(long, default_value_t = 10)]
    limit: usize,
    /// Print JSON: a list of objects with `id` and `events`; an event has `t`, `id`, `ev` and the facts of its kind,
    /// as docs/internals/trace.md lists them.
    #[arg(long)]
    json: bool,
}

/// Finds the message and returns the text to print.
///
/// # Errors
/// When the trace cannot be read or does not contain the message.
pub(crate) fn run(args: &TraceArgs, settings: &Settings) -> Result<String, Failure> {
    // A running gateway flushes the events in its memory; without a gateway, the files are complete.
    let _ = ask(&settings.control.socket, &Request::FlushTrace);
    let x400 = settings.x400.as_ref();
    if let Some(x400) = x400 {
        let _ = ask(&x400.control_socket(), &Request::FlushTrace);
    }
    let query = query(&args.id);
    let directory = settings.trace_directory();
    let drained = settings.drain_trace_directory();
    let look = |query: &Query| -> Result<Vec<Trace>, Failure> {
        let mut traces = find(&drained, query, args.limit)?;
        traces.extend(find(&directory, query, args.limit)?);
        if let Some(x400) = x400 {
            traces.extend(find(&x400.trace_folder(), query, args.limit)?);
        }
        traces.truncate(args.limit);
        Ok(traces)
    };
    let mut traces = look(&query)?;
    if let (true, Query::Recipient(text)) = (traces.is_empty(), query) {
        // A Message-ID without its angle brackets looks like an address.
        traces = look(&Query::MessageId(text))?;
    }
    if args.json {
        return Ok(format!("{}\n", serde_json::to_string_pretty(&traces)?));
    }
    if traces.is_empty() {
        return Err(Failure::new(format!(
            "no message {} in {}; give a queue id, a Message-ID or a recipient's address",
            args.id,
            directory.display()
        )));
    }
    Ok(traces.iter().map(render).collect::<Vec<_>>().join("\n"))
}

/// A queue id is 13 characters without `@`; an address has no angle brackets, a Message-ID may.
fn query(text: &str) -> Query {
    if let Ok(id) = text.parse() {
        return Query::TraceId(id);
    }
    if text.starts_with('<') || !text.contains('@') {
        return Query::MessageId(text.to_owned());
    }
    Query::Recipient(text.to_owned())
}

fn render(trace: &Trace) -> String {
    let mut out = format!("{}\n", trace.id);
    for event in &trace.events {
        let _ = writeln!(
            out,
            "  {}  {:<9} {}",
            event.at,
            event.kind.name(),
            describe(event)
        );
    }
    out
}

fn describe(event: &Record) -> String {
    let mut words = Vec::new();
    let mut say = |label: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("{label}{value}")));
    };
    if event.kind == EventKind::Received {
        say(
            "from ",
            event.reverse_path.as_ref().map(|path| format!("<{path}>")),
        );
        say("by ", event.peer.clone());
        say("as ", event.account.clone());
        say("", event.tls.clone());
        say("spf=", event.spf.clone());
        say("spf-helo=", event.spf_helo.clone());
        say("", event.size.map(|size| format!("{size} octets")));
        say("", event.message_id.clone());
    } else if event.kind == EventKind::Judged {
        say("", event.verdict.clone());
        say("score ", event.score.clone());
        say("", event.rules.clone());
        say("", event.reply.as_ref().map(|reply| format!("({reply})")));
    } else {
        say("", event.rcpt.as_ref().map(|rcpt| format!("<{rcpt}>")));
        say("in ", event.queue.clone());
        say("at ", event.remote.clone());
        say("over ", event.tls.clone());
        say("attempt ", event.attempt.map(|attempt| attempt.to_string()));
        say("", event.reply.as_ref().map(|reply| format!("({reply})")));
        say("see ", event.related.clone());
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use vere_units::Timestamp;

    use super::*;

    #[test]
    fn what_a_drain_did_is_found_too() {
        use vere_telemetry::trace::{Event, TraceLog, TraceOptions};
        use vere_units::TraceId;

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("vere.toml");
        let text = "version = 1\nhostname = \"a.b\"\ndata = \".\"\n";
        let settings = Settings::parse(text, &file.to_string_lossy()).unwrap();
        let (id, now) = (TraceId::new(7), Timestamp::from_millis(1_760_000_000_000));
        let drained = settings.drain_trace_directory();
        let log = TraceLog::open(TraceOptions::new(&drained)).unwrap();
        log.append(&Event {
            rcpt: Some("x@far.test"),
            ..Event::new(EventKind::Delivered, id, now)
        });
        log.close();
        let args = |wanted: &str| TraceArgs {
            id: wanted.to_owned(),
            limit: 10,
            json: false,
        };
        for wanted in [id.to_string().as_str(), "x@far.test"] {
            let text = run(&args(wanted), &settings).unwrap();
            assert!(text.contains("<x@far.test>"), "{text}");
        }
        run(&args("y@far.test"), &settings).unwrap_err();
    }

    #[test]
    fn the_three_kinds_of_id_are_told_apart() {
        assert!(matches!(query("01HXYZ0000000"), Query::TraceId(_)));
        assert!(matches!(query("<a@b>"), Query::MessageId(_)));
        assert!(matches!(query("user@example.org"), Query::Recipient(_)));
        assert!(matches!(query("something"), Query::MessageId(_)));
    }
}
