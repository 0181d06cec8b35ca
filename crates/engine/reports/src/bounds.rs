//! The bounds of reports. Strangers send reports, and each bound is checked before memory is taken.

/// The most octets of a message, or of a file, that are read.
pub const MESSAGE_OCTETS_MAX: usize = 32 << 20;
/// The most octets of an archive or attachment. A report of 100,000 records has about 3 MiB in gzip.
pub const PACKED_OCTETS_MAX: usize = 16 << 20;
/// The most octets of XML or JSON after decompression, whatever the archive states.
pub const OCTETS_MAX: usize = 64 << 20;
/// The most attachments of a message that are tried.
pub const ATTACHMENTS_MAX: usize = 4;
/// The most entries of a zip archive that are inspected for a file.
pub const ZIP_ENTRIES_MAX: usize = 16;

/// The deepest nesting of XML elements. The schema of RFC 9990 has 6 levels, extensions have more.
pub const DEPTH_MAX: usize = 32;
/// The most octets of a text in a report.
pub const TEXT_OCTETS_MAX: usize = 4 * 1024;
/// The most octets of a found value that an error repeats.
pub const FOUND_OCTETS_MAX: usize = 64;

/// The most records of an aggregate report.
pub const RECORDS_MAX: usize = 100_000;
/// The most DKIM results of a record (RFC 9990: 100), and the most SPF results.
pub const RESULTS_MAX: usize = 100;
/// The most results and reasons of all records together: many empty elements must not grow to much memory.
pub const RESULTS_ALL_MAX: usize = 500_000;
/// The most reasons of a record, and the most errors of a report.
pub const REASONS_MAX: usize = 32;

/// The most octets of the JSON of a TLS report, which counts by policy and kind of failure and is small.
pub const JSON_OCTETS_MAX: usize = 8 << 20;
/// The most policies of a TLS report.
pub const POLICIES_MAX: usize = 1_000;
/// The most lines of a policy, and the most patterns of MX hosts.
pub const LINES_MAX: usize = 1_000;
/// The most kinds of failures of a TLS report's policy.
pub const FAILURES_MAX: usize = 10_000;

/// The most destinations that are read from a `rua` tag.
pub const DESTINATIONS_MAX: usize = 8;
/// The most octets of a record with a `rua` tag.
pub const RECORD_OCTETS_MAX: usize = 4 * 1024;
/// The most octets of an address (RFC 5321 section 4.5.3.1).
pub const ADDRESS_OCTETS_MAX: usize = 254;

/// The most rows of a summary: domains, pairs of domain and source, and kinds of TLS failures. What is beyond is counted
/// without a row.
pub const ROWS_MAX: usize = 20_000;
/// The most names of a kind that a row keeps, and the most octets of each.
pub const NAMES_MAX: usize = 4;
/// The most octets of a name in a row.
pub const NAME_OCTETS_MAX: usize = 255;
/// The most reports that a summary compares, to leave out repeated ones.
pub const REPORTS_MAX: usize = 1_000_000;

/// The most rows of a day of our own observations. Further messages and sessions are counted without a row.
pub const DAY_ROWS_MAX: usize = 50_000;
/// The most octets of the file of a day.
pub const DAY_OCTETS_MAX: usize = 64 << 20;
/// The most octets of a line in the file of a day.
pub const LINE_OCTETS_MAX: usize = 64 * 1024;
/// The most results of a kind, reasons, and lines of a policy of an observation; those behind are left out. Each text has at most
/// [`NAME_OCTETS_MAX`] octets, so that an observation fits into a line.
pub const SEEN_RESULTS_MAX: usize = 16;
