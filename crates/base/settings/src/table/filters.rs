//! Options for content filters.

use super::row::Fallback::{Is, Nothing, Required};
use super::row::{GIB, KIB, MINUTE};
use crate::kind::Kind::{Choice, FilterAddress, Integer, Name, SecretFile, Size, Span};

sections! {
    "filter" Repeated, "A content filter (docs/guides/filters.md). The gateway shows each message to all filters for its kind of `mail` at the end of DATA, in the order of the file; a milter sees the changes of those before. At most 16 filters, whose timeouts add up to at most 5 minutes. `[judging]` decides about received mail by their answers, `[[judging.filter]]` says how a filter counts. `vere filter test` asks about a file." {
        live name: Name, Required("name = \"rspamd\""),
            "The name in settings, log, metrics and explanations: at most 64 letters, digits, dots, hyphens and underscores.";
        live kind: Choice(&["rspamd", "clamd", "milter"]), Required("kind = \"rspamd\""),
            "The protocol: `rspamd` for the worker \"normal\" of rspamd by HTTP, `clamd` for ClamAV, `milter` for every filter of Sendmail and Postfix.";
        live address: FilterAddress, Required("address = \"127.0.0.1:11333\""),
            "Where the filter listens. A host name is looked up by the system's resolver at each connection.";
        live mail: Choice(&["received", "submitted", "all"]), Is("\"received\""),
            "The mail that the filter is asked about: `received` for mail of strangers at port 25 (needs `[judging]` and `[front]`), `submitted` for mail of accounts, of local programs and of clients in `relay.networks`, `all` for both. The filter's action decides about submitted mail, no score.";
        live timeout: Span(100, 5 * MINUTE), Nothing("10 s for rspamd, 30 s for clamd and milters"),
            "Longest wait for an answer: for a free connection, the connection and the talk together.";
        live size_max: Size(KIB, GIB), Is("\"20 MiB\""),
            "Longest message that the filter is shown; a longer one goes on without this filter. The filter needs at least this bound itself (`StreamMaxLength` of clamd, `max_message` of rspamd).";
        live connections_max: Integer(1, 1_000), Is("16"),
            "Connections at once; further messages wait for a free one.";
        live when_unavailable: Choice(&["defer", "accept"]), Is("\"defer\""),
            "Treatment of a message while the filter gives no answer that can be used: `defer` answers 450 4.7.1, `accept` lets the message go on without this filter.";
        live password_file: SecretFile, Nothing("no password"),
            "File with the password of rspamd, for workers that ask for one (`password` and `enable_password`).";
        live learn_address: FilterAddress, Nothing("rspamd is not taught"),
            "Where rspamd learns: the address of its worker \"controller\".";
    }
}
