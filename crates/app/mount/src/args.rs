//! The command line of `vere fs`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};
use vere_mailfs::volume::{Fingerprint, Strategy};
use vere_units::Span;

/// The commands of `vere fs`.
#[derive(Debug, Subcommand)]
pub enum FsCommand {
    /// Make a volume on mail accounts.
    ///
    /// Accounts on the command line are written into the file of the volume; without accounts the file must be there. Each account is
    /// tried first: login, room, and a test mail with every octet, which decides the encoding.
    Init(InitArgs),
    /// Mount a volume at an empty folder.
    ///
    /// The command returns as soon as the mount can be used; the process of the mount stays in the background. A machine that has
    /// mounted the volume before begins with what its disk has, and needs no account for that: files in the cache can be read,
    /// and changes wait in the journal. The comparison with the accounts follows in the background; `vere fs status` tells
    /// whether it has come. With --expect-head, or after more than keep-versions without a look at the log, the accounts are
    /// asked first. While the lead account does not answer a machine whose disk does not suffice, the volume is mounted read-only
    /// from the copy of changes and names on a further account, and the command says so.
    ///
    /// Example: vere fs mount home /home/ann/files
    Mount(MountArgs),
    /// Unmount a volume, by name or its folder.
    Umount(UmountArgs),
    /// Print the state of a mounted volume.
    ///
    /// With --json: mounted_at; mode (weak or strong); generation of the newest commit; fingerprint (of that commit, for --expect-head of `vere fs mount`); writer (this machine's number); quiet
    /// (the servers have every change); rows_waiting; octets_waiting (written, and on no server yet); octets_sending; octets_per_second (of uploads, over 10 s); seconds_left (null
    /// without uploads); commits_sending; journal_octets; cache_octets (content in memory); disk_octets (content in the cache on disk), disk_hits and
    /// disk_misses (chunks read that the cache had or lacked, since the start); octets_shared (content written that the volume had already, so that
    /// nothing was sent); copies_missing; conflicts (with other mounts, since the mount began); conflicts_latest; commits_open (of other
    /// mounts, to be merged); metadata_copies (of changes and names on further accounts), each with account, generation (up to which the
    /// account has every change, or null), commits_behind, pages_behind, is_level; unconfirmed (the mount began from the local disk, and
    /// has not reached the lead account yet); inodes and logical_octets (of files, as of the last
    /// checkpoint); stored_octets (of packs on all accounts); pack_octets, garbage_octets, collected_ms and checked_ms (of the last
    /// `vere fs gc` and `vere fs check`, or null); keep_versions_s; keep_deleted_s; slot (what to know about the key slot before the next mount, or null); read_only (the reason, or null); reopening (how the mount mends a stop without an unmount,
    /// or null); reopened (why the volume was opened anew last, or null); accounts, each
    /// with account, requests under way, failing (the reason, or null), failing_for_s, next_attempt_s, used_octets and limit_octets
    /// (null where the account tells no quota), encoding, up and down (octets a second, null where not measured), scarce (why work waits for the budget of the day, or null), scarce_for_s,
    /// upload and download (null without a budget: used_octets and limit_octets of 24 hours, room_in_s); groups, each with group, strategy, accounts, packs, octets, missing (by account).
    Status(VolumeArgs),
    /// Wait until all changes are on the servers.
    ///
    /// A bar shows how much is sent, the rate and the time left, on a terminal; with `--json`, standard error gets an object each
    /// second: stage (`sending`), unit (`octets`), done, all, per_second, seconds_left.
    Sync(VolumeArgs),
    /// Compare a volume with the mails of its accounts, and name every mail and file with a fault.
    ///
    /// The exit code is 1 where something is wrong. A volume that is not mounted is opened for the check. A bar shows the progress;
    /// with --json a line on standard error does, each second, with stage, done, all, per_second and seconds_left.
    ///
    /// Example: vere fs check --data home
    Check(CheckArgs),
    /// Remove mails without any use any more.
    ///
    /// A mail goes only when a run has found the mail needless, and a later run finds so again: content of files after the
    /// volume's `keep-versions` (7 days), all else after a day. Commits and pages go when the oldest checkpoint that is kept
    /// covers them; key slots that count no more go from accounts that missed a change of keys. Packs of which files need less
    /// than half are written anew first, and so are files in over 1,024 small pieces, such as databases. A mount collects once a
    /// day by itself, when there is nothing else to do. The exit code is 1 where an account could not be read or changed.
    ///
    /// With --json: removed, octets, history (commits and pages among the removed mails), packs_found, orphans_found,
    /// duplicates_found, packs_needed_again, packs_moved, octets_moved, files_rewritten, octets_rewritten, waiting, forged,
    /// has_more, failed; and on standard error a line for each second of the run, with stage, done, all, per_second and seconds_left.
    ///
    /// Example: vere fs gc home
    Gc(GcArgs),
    /// Change the passphrase or key file of a volume, mounted or not.
    ///
    /// Every account gets the new key slot before the volume lists it, and the old one is removed last. A file that held the old
    /// passphrase (`passphrase_file` in the volume's file) is yours to change. The volume key stays, unless --rotate begins a new
    /// one: whoever had the old passphrase and a copy of its slot can read what was written until then. With --json: removed
    /// (mails), behind (accounts that did not answer: account, reason); of --list: slot, label, method, own (this machine's).
    Passwd(PasswdArgs),
    /// Find a volume by its accounts and its secret alone, and write its file and key slot.
    ///
    /// One account of the volume is enough to begin: the key slot and the facts are in mailbox VereFS/TAG/head of each. The volume is
    /// then read and checked, and rows that name a wrong place of a mail are corrected. Without accounts those of the volume's
    /// file are taken.
    ///
    /// Example: vere fs rebuild home imaps://ann@a.example/ --password-file a.pw
    ///
    /// The exit code is 1 where something is wrong. With --json: volume, name, file, slot, accounts (number, url), key_slots (number, mail,
    /// label, state: opens, revoked, closed or untried; accounts), ignored (mails of others, or altered ones), accounts_behind (with
    /// older facts), accounts_failing, generation, fingerprint, checkpoint (the generation it covers, or null), commits (read behind
    /// the checkpoint), writer, salvaged (null without --salvage; restored_files and restored_folders have names, files have none),
    /// check (as of `vere fs check`).
    Rebuild(RebuildArgs),
    /// Print the mode of a mounted volume, or switch mode and strategy.
    ///
    /// The volume's file has the mode of later mounts (`mode`); the volume itself has the strategy, for every mount. With --json: mode and
    /// strategy. For example, `vere fs mode home strong --strategy all`.
    Mode(ModeArgs),
    /// Manage the accounts of a volume.
    Accounts {
        /// The command.
        #[command(subcommand)]
        command: AccountsCommand,
    },
}

/// The commands of `vere fs accounts`.
#[derive(Debug, Subcommand)]
pub enum AccountsCommand {
    /// List the accounts of a volume: group, encoding and server; while the volume is mounted, state and room too.
    ///
    /// With --json: number, url, group, encoding, connections_max, lead, copy (of changes and names), mounted, failing (the reason, or null), used_octets, limit_octets.
    List(VolumeArgs),
    /// Take a further account into a volume, mounted or not.
    ///
    /// The account is tried as by `vere fs init`, gets the key slots, and then a section of its own in the volume's file, whose
    /// comments and order stay. In a group of its own the account takes a share of new data; a member of a group gets a copy of
    /// all data of the group, in the background while the volume is mounted.
    Add(AddArgs),
    /// Let an account go, mounted or not.
    ///
    /// Each pack of the account must be on another account of its group too; else the command names the number of packs and
    /// changes nothing. The lead, the account with the order of all changes, has to hand over first: `vere fs accounts lead`. The mails of the volume in the account, in the
    /// folder VereFS, are left to you.
    Remove(RemoveArgs),
    /// Make another account the lead, whose log has the order of all changes, mounted or not.
    ///
    /// The account gets all changes and names first, and then a change that says so; mounts on this machine and on others go
    /// over by themselves. The former lead becomes an account as all others, and can be removed. Where the lead is gone, or out
    /// of reach for long, --force goes on from the copy of changes and names on another account. A command that was broken off
    /// is brought to its end by the next one, or by the next mount.
    ///
    /// With --json: lead, epoch (of the lead: 1 at first), copied (mails), without (the former lead, if it was out of reach, or null).
    ///
    /// Example: vere fs accounts lead home 2
    Lead(LeadArgs),
}

/// `vere fs accounts lead`
#[derive(Debug, Args)]
pub struct LeadArgs {
    #[command(flatten)]
    pub(crate) volume: VolumeArgs,
    /// The number of the account, as `vere fs accounts list` prints it.
    #[arg(value_name = "NUMBER")]
    pub(crate) number: u16,
    /// Go on without the lead where it does not answer.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
}

/// `vere fs accounts remove`
#[derive(Debug, Args)]
pub struct RemoveArgs {
    #[command(flatten)]
    pub(crate) volume: VolumeArgs,
    /// The number of the account, as `vere fs accounts list` prints it.
    #[arg(value_name = "NUMBER")]
    pub(crate) number: u16,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
}

/// `vere fs accounts add`
#[derive(Debug, Args)]
pub struct AddArgs {
    #[command(flatten)]
    pub(crate) volume: VolumeArgs,
    /// The account: imaps://USER@HOST/ or imap://USER@HOST/ (with STARTTLS); HOST may be HOST:PORT.
    #[arg(value_name = "ACCOUNT")]
    pub(crate) url: String,
    /// The file with the password of the account.
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: PathBuf,
    /// Trust these certificates too.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// Use an imap:// account without TLS, as with a server on this machine.
    #[arg(long)]
    pub(crate) clear: bool,
    /// Keep the same data as the accounts of this group. By default the account is a group of its own.
    #[arg(long, value_name = "N")]
    pub(crate) group: Option<u16>,
    /// Wait until the account has its copies of the group's data.
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
}

/// `vere fs passwd`
#[derive(Debug, Args)]
pub struct PasswdArgs {
    #[command(flatten)]
    pub(crate) volume: VolumeArgs,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    /// Take the new passphrase from the first line of this file.
    #[arg(long, value_name = "FILE", conflicts_with = "new_key_file")]
    pub(crate) new_passphrase_file: Option<PathBuf>,
    /// Open the volume by this key file, of 32 octets or more, from now on.
    #[arg(long, value_name = "FILE")]
    pub(crate) new_key_file: Option<PathBuf>,
    /// Add a further slot, for another passphrase or key file; the present one stays.
    #[arg(long, conflicts_with_all = ["remove", "list", "rotate"])]
    pub(crate) add: bool,
    /// The name of the slot, for people.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["remove", "list"])]
    pub(crate) label: Option<String>,
    /// Remove a slot; its passphrase or key file opens the volume no more.
    #[arg(long, value_name = "SLOT", conflicts_with_all = ["list", "rotate", "new_passphrase_file", "new_key_file"])]
    pub(crate) remove: Option<u8>,
    /// List the slots.
    #[arg(long, conflicts_with_all = ["rotate", "new_passphrase_file", "new_key_file"])]
    pub(crate) list: bool,
    /// Begin a new volume key. Earlier mails keep theirs. The passphrase stays, unless a new one is given.
    #[arg(long)]
    pub(crate) rotate: bool,
    /// With --rotate: keep another slot, whose passphrase or key file is in this file. Slots that are not kept are dropped.
    #[arg(long, value_name = "SLOT=FILE", requires = "rotate")]
    pub(crate) keep: Vec<String>,
    /// With --rotate: drop slots without a question.
    #[arg(long, requires = "rotate")]
    pub(crate) yes: bool,
}

/// A volume, and the form of the output.
#[derive(Debug, Args)]
pub struct VolumeArgs {
    /// The name of the volume, or the path of its file.
    #[arg(value_name = "VOLUME")]
    pub(crate) name: String,
    /// Print JSON: an object, or a list, with the fields that the description of the command names.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The secret of a volume.
#[derive(Debug, Args)]
pub struct SecretArgs {
    /// Take the passphrase from the first line of this file.
    #[arg(long, value_name = "FILE", conflicts_with = "key_file")]
    pub(crate) passphrase_file: Option<PathBuf>,
    /// Open the volume by this key file.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
}

/// Accounts on the command line.
#[derive(Debug, Args)]
pub struct AccountArgs {
    /// Accounts of the volume: imaps://USER@HOST/, imap://USER@HOST/ (with STARTTLS); HOST may be HOST:PORT.
    #[arg(value_name = "ACCOUNT")]
    pub(crate) accounts: Vec<String>,
    /// The file with the password, once for all accounts or once for each.
    #[arg(long = "password-file", value_name = "FILE")]
    pub(crate) password_files: Vec<PathBuf>,
    /// Trust these certificates too.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// Use imap:// accounts without TLS, as with a server on this machine.
    #[arg(long)]
    pub(crate) clear: bool,
}

/// `vere fs init`
#[derive(Debug, Args)]
pub struct InitArgs {
    /// The name of the volume, or the path of its file.
    #[arg(value_name = "VOLUME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) given: AccountArgs,
    /// Keep all data on so many accounts each: the accounts form groups of this number, in their order.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=255), conflicts_with = "groups", requires = "accounts")]
    pub(crate) replicas: Option<u16>,
    /// Accounts that keep equal data, by their places on the command line, such as 1,2; once for each group.
    #[arg(long = "group", value_name = "N,N", requires = "accounts")]
    pub(crate) groups: Vec<String>,
    /// How groups of accounts read and write; `vere fs mode` changes it.
    #[arg(
        long,
        value_name = "STRATEGY",
        default_value = "one",
        requires = "accounts"
    )]
    pub(crate) strategy: StrategyWord,
    /// Keep the content that files had for so long, such as 7d or 30d.
    #[arg(long, value_name = "TIME", default_value = "7d")]
    pub(crate) keep_versions: Span,
    /// Keep a file readable for so long that is open on one machine and removed on another.
    #[arg(long, value_name = "TIME", default_value = "7d")]
    pub(crate) keep_deleted: Span,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
}

/// `vere fs rebuild`
#[derive(Debug, Args)]
pub struct RebuildArgs {
    /// The name of the volume on this machine, or the path of its file.
    #[arg(value_name = "VOLUME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) given: AccountArgs,
    /// The tag of the volume, where the accounts have several.
    #[arg(long = "volume", value_name = "TAG")]
    pub(crate) tag: Option<String>,
    /// Where the log is beyond use, bring files back by surviving pages, commits and packs.
    ///
    /// Every page, pack and commit is read and verified. Where the tree is empty, files and folders of the newest complete checkpoint
    /// go back to their places, with the changes of later commits; else what the tree lacks goes to lost+found/tree. Content without
    /// a name goes to lost+found, named by its inode. Where the log can be read, nothing is salvaged.
    #[arg(long)]
    pub(crate) salvage: bool,
    /// Print JSON: an object, or a list, with the fields that the description of the command names.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
}

/// `vere fs mount`
#[derive(Debug, Args)]
pub struct MountArgs {
    /// The name of the volume, or the path of its file.
    #[arg(value_name = "VOLUME")]
    pub(crate) name: String,
    /// The empty folder to mount at.
    #[arg(value_name = "FOLDER")]
    pub(crate) point: PathBuf,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    /// What closing a file waits for: weak for the journal on this machine, strong for the servers. By default as in the volume's file.
    #[arg(long)]
    pub(crate) mode: Option<Mode>,
    /// Stay in the foreground until the unmount.
    #[arg(long)]
    pub(crate) foreground: bool,
    /// Let other users use the mount, within the files' permissions.
    #[arg(long)]
    pub(crate) allow_other: bool,
    /// Take no changes.
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Refuse accounts that were set back: the volume must have the commit whose fingerprint `vere fs status` printed, here or elsewhere.
    #[arg(long, value_name = "FINGERPRINT")]
    pub(crate) expect_head: Option<Fingerprint>,
    /// Honour set-id bits of programs.
    #[arg(long)]
    pub(crate) suid: bool,
    /// Let device nodes work.
    #[arg(long)]
    pub(crate) dev: bool,
    /// The process in the background: the secret comes on standard input, the outcome goes to standard output.
    #[arg(long, hide = true, conflicts_with_all = ["foreground", "passphrase_file", "key_file"])]
    pub(crate) background: bool,
}

/// `vere fs check`
#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub(crate) volume: VolumeArgs,
    /// Read every pack and every commit, and verify every octet.
    #[arg(long)]
    pub(crate) data: bool,
    /// Correct what rows say about mails, and make copies again from replicas.
    #[arg(long)]
    pub(crate) repair: bool,
    /// Where the accounts lack commits that this machine has seen, accept their older state.
    ///
    /// Changes of this machine that no server had are brought in: what the older state cannot take becomes conflict copies. Commits
    /// of the state that is left leave the copies on further accounts.
    #[arg(long)]
    pub(crate) accept_rollback: bool,
    /// Where this machine was away for longer than the volume keeps versions, go on without its unsent changes.
    ///
    /// The journal of this machine, with changes that no server had, is set aside in the state folder.
    #[arg(long)]
    pub(crate) set_journal_aside: bool,
    /// Bring in the changes of a journal that was set aside: a folder, or its name in the state folder.
    ///
    /// The volume must not be mounted. What the newest state cannot take becomes conflict copies, or goes into a folder of recovered files.
    /// A journal that is damaged, or of another volume or machine, is refused before anything changes. After an interruption, the same
    /// command goes on.
    ///
    /// Example: vere fs check home --bring-in journal.set-aside-1
    #[arg(long, value_name = "JOURNAL", conflicts_with = "set_journal_aside")]
    pub(crate) bring_in: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
}

/// `vere fs gc`
#[derive(Debug, Args)]
pub struct GcArgs {
    #[command(flatten)]
    pub(crate) volume: VolumeArgs,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
}

/// What closing a file and changing names wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// The journal on this machine.
    Weak,
    /// The servers.
    Strong,
}

impl Mode {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Weak => "weak",
            Self::Strong => "strong",
        }
    }
}

/// How groups of accounts read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StrategyWord {
    /// A write waits for `sync_copies` accounts of a group, the least busy ones; the others get their copies later.
    One,
    /// A write waits for every account of the group that can be reached.
    All,
    /// As one, with the fastest account for each read and each write.
    Fast,
}

impl StrategyWord {
    pub(crate) const fn strategy(self) -> Strategy {
        match self {
            Self::One => Strategy::One,
            Self::All => Strategy::All,
            Self::Fast => Strategy::Fast,
        }
    }
}

/// `vere fs mode`
#[derive(Debug, Args)]
pub struct ModeArgs {
    #[command(flatten)]
    pub(crate) volume: VolumeArgs,
    /// The new mode.
    #[arg(value_name = "MODE")]
    pub(crate) mode: Option<Mode>,
    /// How groups of accounts read and write, from now on.
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) strategy: Option<StrategyWord>,
}

/// `vere fs umount`
#[derive(Debug, Args)]
pub struct UmountArgs {
    /// The name of the volume, or the folder of the mount with a `/`.
    #[arg(value_name = "VOLUME|FOLDER")]
    pub(crate) what: String,
    /// End calls and open files of programs, also where the servers do not answer.
    #[arg(long)]
    pub(crate) force: bool,
}
