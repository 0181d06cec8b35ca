//! The log of the process, on standard error.
//!
//! [`init`] installs the only subscriber of the process: a line per event, as text for people or
//! JSON for programs, from a level that can be changed at run time. Field names are those of the
//! conventions (`peer`, `queue_id`, `reverse_path`, `rcpt`, `code`, ...).
//!
//! ```text
//! text   2026-01-31T12:00:00.000Z info gateway listening address=127.0.0.1:2525
//! json   {"t":"2026-01-31T12:00:00.000Z","level":"info","role":"gateway",
//!         "message":"listening","address":"127.0.0.1:2525"}
//! ```
//!
//! Lines about single messages and logins ([`MAIL_TARGET`]) are written together, within 50 ms.
//!
//! Values may come from a peer: they are cut at [`VALUE_OCTETS_MAX`] octets and escaped as in the
//! trace. Secrets have a type that prints as redacted; as a second line of defence the values of
//! fields whose names speak of secrets are not printed at all.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

use crate::trace::{cut, escape, is_plain};

mod level;
mod record;
mod values;
mod writer;

pub use level::LogLevel;
pub use record::{Exports, FieldValue, LogRecord, PACKET_OCTETS_MAX};
pub use values::VALUE_OCTETS_MAX;
pub use writer::{MAIL_TARGET, write_at_once};

use record::ExportLayer;
use values::{REDACTED, is_secret, now};

use writer::Lines;

/// The usual size of a line.
const LINE_OCTETS: usize = 512;
/// The environment variable with directives for parts of the program, such as
/// `info,vere_smtp=trace`; a set variable overrides the level in the settings.
pub const DIRECTIVES_VARIABLE: &str = "VERE_LOG";

/// Form of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// A line for people.
    #[default]
    Text,
    /// A JSON object for programs.
    Json,
}

/// The options of the log.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LogOptions {
    /// The least important events shown.
    pub level: LogLevel,
    /// Their form.
    pub format: LogFormat,
    /// The role of this process, shown on each line.
    pub role: Option<String>,
}

/// The log could not be set up: an error of the program or of its caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// `VERE_LOG` holds no directives; the text says why.
    #[error("{DIRECTIVES_VARIABLE} is wrong: {0}")]
    Directives(String),
    /// There is a subscriber already.
    #[error("the log was set up before")]
    Installed,
}

/// Writes the waiting lines when dropped at the end of the process.
#[derive(Debug)]
pub struct LogHandle {
    level: LevelHandle,
    lines: Lines<io::Stderr>,
    exports: Exports,
}

impl Drop for LogHandle {
    fn drop(&mut self) {
        self.lines.flush();
    }
}

impl LogHandle {
    /// The handle for changes of the level at run time.
    #[must_use]
    pub fn level(&self) -> LevelHandle {
        self.level.clone()
    }

    /// The handle by which the log goes to another process, too.
    #[must_use]
    pub fn exports(&self) -> Exports {
        self.exports.clone()
    }
}

/// Changes the level while the process runs.
#[derive(Debug, Clone)]
pub struct LevelHandle {
    /// `None` when directives from the environment apply.
    filter: Option<reload::Handle<LevelFilter, Registry>>,
}

impl LevelHandle {
    /// Shows events from `level` on from now on; says nothing to `VERE_LOG`'s directives.
    pub fn set(&self, level: LogLevel) {
        if let Some(filter) = &self.filter {
            // Fails only once the subscriber is gone, at the end of the process.
            let _ = filter.reload(level);
        }
    }
}

/// Sends all events of the process to standard error.
///
/// # Errors
/// See [`LogError`].
pub fn init(options: &LogOptions) -> Result<LogHandle, LogError> {
    let directives = std::env::var(DIRECTIVES_VARIABLE)
        .ok()
        .filter(|text| !text.is_empty());
    let lines = Lines::to(io::stderr());
    let exports = Exports::of(options.role.as_deref().unwrap_or_default());
    let layer = layer(options, lines.clone()).and_then(ExportLayer::new(&exports));
    match directives {
        Some(text) => {
            let filter = EnvFilter::try_new(text)
                .map_err(|error| LogError::Directives(error.to_string()))?;
            install(Registry::default().with(layer.with_filter(filter)))?;
            let level = LevelHandle { filter: None };
            Ok(LogHandle {
                level,
                lines,
                exports,
            })
        }
        None => {
            let (filter, handle) = reload::Layer::new(LevelFilter::from(options.level));
            install(Registry::default().with(layer.with_filter(filter)))?;
            let level = LevelHandle {
                filter: Some(handle),
            };
            Ok(LogHandle {
                level,
                lines,
                exports,
            })
        }
    }
}

fn install(subscriber: impl Into<tracing::Dispatch>) -> Result<(), LogError> {
    subscriber.try_init().map_err(|_| LogError::Installed)
}

fn layer<S, W>(options: &LogOptions, writer: W) -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let line = Line {
        format: options.format,
        role: options.role.clone(),
    };
    tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .fmt_fields(Fields(options.format))
        .event_format(line)
        .with_writer(writer)
}

const fn level_name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

/// Writes one event.
struct Line {
    format: LogFormat,
    role: Option<String>,
}

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Collected::new(self.format);
        event.record(&mut fields);
        if let Some(scope) = context.event_scope() {
            for span in scope.from_root() {
                if let Some(own) = span
                    .extensions()
                    .get::<tracing_subscriber::fmt::FormattedFields<N>>()
                {
                    fields.rest.push_str(&own.fields);
                }
            }
        }
        let (level, Collected { message, rest, .. }) =
            (level_name(*event.metadata().level()), fields);
        match self.format {
            LogFormat::Text => {
                write!(writer, "{}", now())?;
                let parts = [Some(level), self.role.as_deref(), message.as_deref()];
                for part in parts.into_iter().flatten() {
                    writer.write_char(' ')?;
                    writer.write_str(part)?;
                }
                writer.write_str(&rest)?;
                writer.write_char('\n')
            }
            LogFormat::Json => {
                write!(writer, "{{\"t\":\"{}\",\"level\":\"{level}\"", now())?;
                if let Some(role) = &self.role {
                    write!(writer, ",\"role\":\"{}\"", escaped(role))?;
                }
                if let Some(message) = message {
                    write!(writer, ",\"message\":\"{message}\"")?;
                }
                writeln!(writer, "{rest}}}")
            }
        }
    }
}

/// Writes the fields of a span, to be shown with each event in it.
struct Fields(LogFormat);

impl<'writer> FormatFields<'writer> for Fields {
    fn format_fields<R: tracing_subscriber::field::RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> fmt::Result {
        let mut collected = Collected::new(self.0);
        fields.record(&mut collected);
        writer.write_str(&collected.rest)
    }
}

/// The fields of an event or span: the message, and the other fields ready to be appended to a
/// line.
struct Collected {
    format: LogFormat,
    message: Option<String>,
    rest: String,
    /// The buffer for a value before its inspection.
    scratch: String,
}

impl Collected {
    fn new(format: LogFormat) -> Self {
        Self {
            format,
            message: None,
            rest: String::with_capacity(LINE_OCTETS),
            scratch: String::new(),
        }
    }

    fn text(&mut self, field: &Field, value: &str) {
        let name = field.name();
        if name == "message" {
            self.message = Some(escaped(value).into_owned());
            return;
        }
        let value = if is_secret(name) {
            Cow::Borrowed(REDACTED)
        } else {
            escaped(value)
        };
        self.name(name);
        let quoted = self.format == LogFormat::Json || needs_quotes(&value);
        let quote = if quoted { "\"" } else { "" };
        for part in [quote, &value, quote] {
            self.rest.push_str(part);
        }
    }

    fn plain(&mut self, field: &Field, value: impl fmt::Display) {
        if is_secret(field.name()) {
            return self.text(field, REDACTED);
        }
        self.name(field.name());
        // Writing to a string cannot fail.
        let _ = write!(self.rest, "{value}");
    }

    /// Appends the name of a field with its separators.
    fn name(&mut self, name: &str) {
        let (before, behind) = match self.format {
            LogFormat::Json => (",\"", "\":"),
            LogFormat::Text => (" ", "="),
        };
        for part in [before, name, behind] {
            self.rest.push_str(part);
        }
    }
}

impl Visit for Collected {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = std::mem::take(&mut self.scratch);
        text.clear();
        let _ = write!(text, "{value:?}");
        self.text(field, &text);
        self.scratch = text;
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.text(field, &value.to_string());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.plain(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.plain(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.plain(field, value);
    }
}

fn escaped(value: &str) -> Cow<'_, str> {
    let value = cut(value, VALUE_OCTETS_MAX);
    if is_plain(value) {
        return Cow::Borrowed(value);
    }
    let mut out = Vec::with_capacity(value.len());
    escape(&mut out, value);
    // Escaping text gives text.
    Cow::Owned(String::from_utf8(out).unwrap_or_default())
}

fn needs_quotes(value: &str) -> bool {
    let quoted = |octet: u8| matches!(octet, b' ' | b'"' | b'=' | b'\\');
    value.is_empty() || value.bytes().fold(false, |any, octet| any | quoted(octet))
}

#[cfg(test)]
mod tests;
