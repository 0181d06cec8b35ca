//! `vere account quota`.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};
use vere_control::supervision::{Accepted, SupervisorRequest, ask_supervisor, supervisor_socket};
use vere_login::directory::open;
use vere_ports::directory::AccountName;
use vere_process::failure::Failure;
use vere_process::json::printed;
use vere_role_store::maintenance::accounts;
use vere_settings::{AccountQuota, Settings};
use vere_units::ByteSize;

use super::records::existing;
use super::show;
use crate::difference::difference;
use crate::settings_file::SettingsFile;

/// How long a running system may take to accept the settings.
const PATIENCE: Duration = Duration::from_secs(30);

/// Print the quota of an account and its use, or set the quota in the settings file and put it in force.
///
/// The section `[[quota.account]]` of the account is written; comments and order of the file stay.
#[derive(Debug, Args)]
pub(crate) struct QuotaArgs {
    /// The address.
    address: String,
    /// Bytes of all messages, such as `5 GiB`.
    #[arg(long, value_name = "SIZE")]
    size: Option<ByteSize>,
    /// Messages.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4_000_000_000))]
    messages: Option<u32>,
    /// Use the quota of all accounts again.
    #[arg(long, conflicts_with_all = ["size", "messages"])]
    default: bool,
    /// Print the change of the settings file, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON: an object with `account`, `quota` (`bytes`, `messages`), `used` (`mailboxes`, `messages`, `bytes`; null
    /// where no store runs), `changed` and `in_force`.
    #[arg(long)]
    json: bool,
}

/// Prints or sets the quota.
///
/// # Errors
/// When the account is unknown, the settings file cannot be changed, or the running system refuses the settings.
pub(super) fn run(args: &QuotaArgs, file: &Path, settings: &Settings) -> Result<String, Failure> {
    let name = AccountName::parse(&args.address)?;
    existing(&open(settings)?, &name)?;
    if !args.default && args.size.is_none() && args.messages.is_none() {
        return Ok(shown(args, &name, settings, None));
    }
    let file = SettingsFile::read(file)?;
    let text = changed(&file.text, &name, args)?;
    let settings = file.parse(&text)?;
    let lines = difference(&file.text, &text);
    if args.dry_run {
        return Ok(format!("{} would change:\n\n{lines}", file.path.display()));
    }
    let mut in_force = false;
    if text != file.text {
        file.write(&text)?;
        let reload = SupervisorRequest::Reload;
        let accepted = ask_supervisor::<Accepted>(&supervisor_socket(&settings), reload, PATIENCE);
        in_force = accepted?.is_some();
    }
    let change = (text != file.text).then_some((lines.as_str(), in_force));
    Ok(shown(args, &name, &settings, change))
}

/// The quota and its use; the changed lines, and whether a running system has them.
fn shown(
    args: &QuotaArgs,
    name: &AccountName,
    settings: &Settings,
    change: Option<(&str, bool)>,
) -> String {
    let quota = show::quota(name, settings);
    let used = accounts::mail_of(settings, name);
    let value = json!({
        "account": name.to_string(),
        "quota": { "bytes": quota.size.map(|size| size.as_u64()), "messages": quota.messages },
        "used": used.as_ref().map(|row| {
            json!({ "mailboxes": row.mailboxes, "messages": row.messages, "bytes": row.octets })
        }),
        "changed": change.is_some(),
        "in_force": change.is_some_and(|(_, in_force)| in_force),
    });
    let mut text = format!("{name}\n  quota    {}\n", show::quota_text(&quota));
    if let Some(row) = &used {
        let _ = writeln!(
            text,
            "  used     {}{}",
            accounts::amount(row),
            share(&quota, row.octets)
        );
    }
    match change {
        Some((lines, true)) => {
            let _ = writeln!(text, "{lines}the running system has the new quota");
        }
        Some((lines, false)) => {
            let _ = writeln!(
                text,
                "{lines}no system runs; the next start has the new quota"
            );
        }
        None => {}
    }
    printed(args.json, value, text)
}

/// The used part of the bytes.
fn share(quota: &AccountQuota, used: u64) -> String {
    let size = quota.size.map_or(0, |size| size.as_u64());
    match size {
        0 => String::new(),
        size => format!(", {} %", u128::from(used) * 100 / u128::from(size)),
    }
}

/// The settings file with the quota.
fn changed(text: &str, name: &AccountName, args: &QuotaArgs) -> Result<String, Failure> {
    let unknown = || {
        Failure::new(
            "expected [quota] and [[quota.account]] as sections of the settings file; found another form: edit the file by hand",
        )
    };
    let mut document = text.parse::<DocumentMut>()?;
    let implicit = || {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    };
    let quota = document.entry("quota").or_insert_with(implicit);
    let quota = quota.as_table_mut().ok_or_else(unknown)?;
    let sections = quota
        .entry("account")
        .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    let sections = sections.as_array_of_tables_mut().ok_or_else(unknown)?;
    let is_it = |section: &Table| {
        let of = section.get("name").and_then(Item::as_str);
        of.is_some_and(|of| of.eq_ignore_ascii_case(&name.to_string()))
    };
    if args.default {
        sections.retain(|section| !is_it(section));
        return Ok(document.to_string());
    }
    // The last one of a name holds.
    let of_name = sections
        .iter()
        .enumerate()
        .filter(|(_, section)| is_it(section));
    let place = of_name.last().map(|(place, _)| place);
    if place.is_none() {
        let mut section = Table::new();
        section.insert("name", value(name.to_string()));
        sections.push(section);
    }
    let place = place.unwrap_or(sections.len() - 1);
    let section = sections.get_mut(place).ok_or_else(unknown)?;
    if let Some(size) = args.size {
        section.insert("size_max", value(size.to_string()));
    }
    if let Some(messages) = args.messages {
        section.insert("messages_max", value(i64::from(messages)));
    }
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: QuotaArgs,
    }

    fn with(text: &str, line: &str) -> String {
        let words = format!("quota ann@example.org {line}");
        let line = Line::try_parse_from(words.split_whitespace()).unwrap();
        let name = AccountName::parse("ann@example.org").unwrap();
        changed(text, &name, &line.args).unwrap()
    }

    #[test]
    fn a_section_is_added_changed_and_removed() {
        let before = "version = 1 # mine\n\n[quota]\nwarn_at = 80\n";
        let added = with(before, "--size 5GiB");
        assert!(added.starts_with(before), "{added}");
        assert!(
            added.contains("[[quota.account]]\nname = \"ann@example.org\"\nsize_max = \"5 GiB\"\n")
        );
        let both = with(&added, "--messages 7");
        assert!(
            both.contains("size_max = \"5 GiB\"\nmessages_max = 7\n"),
            "{both}"
        );
        assert_eq!(both.matches("ann@example.org").count(), 1);
        assert_eq!(with(&both, "--default").trim_end(), before.trim_end());
    }

    #[test]
    fn sections_of_others_stay() {
        let before = "[[quota.account]]\nname = \"bob@example.org\"\nmessages_max = 3\n\n\
                      [[quota.account]]\nname = \"Ann@example.org\"\nmessages_max = 4\n";
        let after = with(before, "--messages 5");
        assert_eq!(after, before.replace("= 4", "= 5"));
        let gone = with(before, "--default");
        assert!(gone.contains("bob") && !gone.contains("Ann"), "{gone}");
    }

    #[test]
    fn another_form_is_left_to_the_operator() {
        let name = AccountName::parse("ann@example.org").unwrap();
        let line = Line::try_parse_from(["quota", "ann@example.org", "--messages", "5"]).unwrap();
        let refused = changed("quota = { warn_at = 3 }\n", &name, &line.args);
        assert!(refused.unwrap_err().to_string().contains("by hand"));
    }
}
