//! Options of a volume on mail accounts (`vere fs`), in a file of its own.

use super::row::Fallback::{Is, Nothing, Required};
use super::row::{GIB, HOUR, MIB, MINUTE, SECOND, TIB};
use crate::kind::Kind::{Account, Choice, Command, Integer, Path, SecretFile, Size, Span, Version};

sections! {
    "" Always, "Keys before the first section." {
        fixed version: Version, Required("version = 1"),
            "The version of this file's format: a later program can still read an older file, or refuse the file with an error.";
        fixed lead: Integer(1, 65_535), Nothing("the first account"),
            "The number of the account whose mailbox `log` decides the order of changes. Its server must show mails in the order of their UIDs.";
        fixed metadata_accounts: Integer(1, 16), Is("2"),
            "Accounts that keep changes and names: the lead, and the accounts with the lowest numbers besides. Each account behind the lead gets a copy of every change, behind the programs that wait; with `sync_copies` above 1, `fsync` waits for a copy. While the lead does not answer, the volume is mounted read-only from a copy.";
        fixed lead_patience: Span(0, 30 * 24 * HOUR), Is("\"5m\""),
            "How long the lead of a mounted volume may be out of reach before a further account with a copy of every change becomes the lead. `0s` leaves the change to `vere fs accounts lead`.";
        fixed mode: Choice(&["weak", "strong"]), Is("\"weak\""),
            "What closing a file and changing names wait for: `weak` for the journal on this machine, `strong` for the servers. `fsync` waits for the servers in both.";
        fixed flush_interval: Span(100, HOUR), Is("\"5s\""),
            "The longest time for which a change waits for its commit.";
        fixed refresh: Span(SECOND, HOUR), Is("\"30s\""),
            "How often the log is listed for changes of other mounts. A server with IDLE tells of changes at once.";
        fixed journal_sync: Span(10, MINUTE), Is("\"1s\""),
            "The longest time for which a change without `fsync` is not on this machine's disk. A power cut loses so much at most.";
        fixed call_timeout: Span(SECOND, HOUR), Is("\"60s\""),
            "The longest time for which a program waits for the servers; then its call fails with EIO. The time of a program that waits for its changes to be sent begins anew with everything that the servers take. Changes stay in the journal and are still sent.";
        fixed sync_copies: Integer(1, 16), Is("1"),
            "Accounts of a group that keep data before `fsync` returns, and accounts that keep the change itself (at most `metadata_accounts`); further accounts get their copies later.";
        fixed unsent_max: Size(16 * MIB, TIB), Is("\"1 GiB\""),
            "Written octets that no server has yet. More of them block the programs that write.";
        fixed cache_memory: Size(MIB, 16 * GIB), Is("\"64 MiB\""),
            "Memory for content that was read.";
        fixed cache_max: Size(0, 16 * TIB), Is("\"4 GiB\""),
            "Content that was read, sealed, on the local disk (`~/.cache/vere/fs`): the cache survives the mount and serves reads before the accounts, also when no account answers. Half of the disk's free room is the bound where that is less; `0 B` is no cache.";
        fixed ahead_max: Integer(1, 1_000), Is("32"),
            "Chunks of files read ahead of need at the same time.";
        fixed passphrase_file: SecretFile, Nothing("the passphrase is asked for"),
            "A file whose first line is the passphrase.";
        fixed key_file: SecretFile, Nothing("the volume has a passphrase"),
            "A file of at least 32 random octets in place of a passphrase.";
    }

    "account" Repeated, "A mail account that keeps the volume." {
        fixed number: Integer(1, 65_535), Required("number = 1"),
            "The account's number in the volume. The number stays, whatever becomes of the other accounts.";
        fixed url: Account, Required("url = \"imaps://bob@mail.example.org/\""),
            "User and server. `imap://` begins with STARTTLS.";
        fixed password_file: SecretFile, Nothing("`password_command` or `token_command`"),
            "A file whose first line is the password.";
        fixed password_command: Command, Nothing("`password_file` or `token_command`"),
            "A program that prints the password, run for each connection, for 30 seconds at most. No shell takes part; the first line of the output counts.";
        fixed token_command: Command, Nothing("`password_file` or `password_command`"),
            "A program that prints an access token of OAuth 2.0 (XOAUTH2, OAUTHBEARER), run for each connection, since tokens expire, and once more when the server refuses the token. Otherwise as `password_command`.";
        fixed ca: Path, Nothing("the system's certificates only"),
            "A file with further certificates to trust.";
        fixed tls: Choice(&["required", "off"]), Is("\"required\""),
            "With `off`, the whole connection of an `imap://` account is readable on the way, the password too: for servers on this machine.";
        fixed connections_max: Integer(1, 64), Nothing("what is known of the provider; 4 elsewhere"),
            "Connections to the account at the same time.";
        fixed upload_per_day: Size(16 * MIB, 1_024 * TIB), Nothing("what is known of the provider; no limit elsewhere"),
            "The most bytes to the account in any 24 hours. Less urgent work stops earlier: copies and garbage at a half, data in the background at seven eighths, so that `fsync` and changes of names still go. Data that wait stay in the journal, and `vere fs status` prints the time until there is space. Providers with limits lock accounts that exceed them.";
        fixed download_per_day: Size(16 * MIB, 1_024 * TIB), Nothing("what is known of the provider; no limit elsewhere"),
            "The most bytes from the account in any 24 hours. A read without space uses another account of the group, or fails with EIO.";
        fixed encoding: Choice(&["8bit", "base64"]), Is("\"8bit\""),
            "The form of mails: `8bit` costs 1.5 % and needs a server that keeps every octet and long lines; `base64` costs 37 % and suits every server.";
        fixed compress: Choice(&["auto", "yes", "no"]), Is("\"auto\""),
            "Whether octets travel compressed where the server has COMPRESS=DEFLATE. `auto` compresses for an account with `base64` that is not on this machine: such mails shrink by a quarter on the way, sealed octets in `8bit` do not.";
        fixed group: Integer(1, 65_535), Nothing("a group of its own, with the account's number"),
            "The group of accounts that keep equal data.";
    }
}
