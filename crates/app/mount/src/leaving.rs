//! `vere fs accounts remove`: an account leaves a volume.

use serde_json::Value;
use vere_process::failure::Failure;
use vere_process::wording::counted;
use vere_settings::Volume as Described;

use crate::args::RemoveArgs;
use crate::change::{LeaveOrder, check_lead};
use crate::control::Request;
use crate::folders::Description;
use crate::passwd::behind;
use crate::session::{self, Session};

pub(crate) fn run(args: &RemoveArgs) -> Result<String, Failure> {
    let description = Description::named(&args.volume.name)?;
    let described = description.read()?;
    let number = args.number;
    let shown = description.file.display().to_string();
    let text = description.text()?;
    check_lead(&described, number).map_err(Failure::new)?;
    let is_described = described.accounts.iter().any(|of| of.number == number);
    // An account that has left already is looked at again.
    let text = match is_described {
        true => without_section(&text, number),
        false => text,
    };
    let after = Described::parse(&text, &shown)?;
    let left = after.accounts.len().saturating_add(is_described.into());
    if left != described.accounts.len() {
        return Err(Failure::new(format!(
            "{shown}: expected a section [[account]] with a line number = {number}; found another form"
        )));
    }
    let session = Session::begin(&description, &described, || {
        session::opener(&args.secret, &described)
    })?;
    if !is_described && !has_left(&session, number)? {
        session.end();
        return Err(Failure::new(format!(
            "{shown}: expected an account with the number {number}; found none"
        )));
    }
    let done = session.ask(&Request::Leave(LeaveOrder { number, text }));
    session.end();
    let done = done?;
    if args.volume.json {
        return Ok(format!("{done:#}\n"));
    }
    Ok(left_text(number, &done))
}

/// Whether the volume says that an account has left.
fn has_left(session: &Session, number: u16) -> Result<bool, Failure> {
    let facts = session.ask(&Request::Facts)?;
    let mut accounts = facts["accounts"].as_array().into_iter().flatten();
    Ok(accounts.any(|row| row["account"] == number && row["gone"] == true))
}

/// The end for people. The folder of an account is named as needless only when no pack lies there alone.
fn left_text(number: u16, done: &Value) -> String {
    let hint = match (done["packs_named"].as_u64(), done["late"].as_str()) {
        (Some(0), _) => "Its folder VereFS is yours to remove as soon as every other machine with the volume has been connected since.".to_owned(),
        (Some(packs), _) => format!(
            "Keep its folder VereFS: other machines have placed {} there meanwhile, without a copy on another account. `vere fs accounts remove` with the same number looks again.",
            counted(packs, "pack", "packs")
        ),
        (None, late) => format!(
            "Keep its folder VereFS, since packs of other machines may still lie there: {}. `vere fs accounts remove` with the same number looks again.",
            late.unwrap_or("no answer")
        ),
    };
    format!(
        "Account {number} is no account of the volume any more. {hint}\n{}",
        behind(done)
    )
}

/// The text without the section of an account. Comments before the next section stay.
fn without_section(text: &str, number: u16) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let plain = |line: &str| {
        let line = line.split('#').next().unwrap_or_default();
        line.split_whitespace().collect::<String>()
    };
    let of_account = plain(&format!("number = {number}"));
    let is_between = |line: &&&str| line.trim().is_empty() || line.trim().starts_with('#');
    let mut kept: Vec<&str> = Vec::new();
    let mut rest = lines.as_slice();
    while let Some((first, behind)) = rest.split_first() {
        let mut headers = behind.iter();
        let end = headers.position(|line| line.trim_start().starts_with('['));
        let (body, next) = behind.split_at(end.unwrap_or(behind.len()));
        let is_gone =
            plain(first) == "[[account]]" && body.iter().any(|line| plain(line) == of_account);
        if is_gone {
            let comments = body.iter().rev().take_while(is_between).count();
            let from = body.len().saturating_sub(comments);
            kept.extend(body.get(from..).unwrap_or_default());
        } else {
            kept.push(first);
            kept.extend(body);
        }
        rest = next;
    }
    let mut text = kept.join("\n");
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::{left_text, without_section};
    use serde_json::json;

    #[test]
    fn a_folder_with_packs_is_not_named_as_needless() {
        let text = left_text(2, &json!({ "packs_named": 0 }));
        assert!(text.contains("yours to remove"), "{text}");
        for done in [
            json!({ "packs_named": 3 }),
            json!({ "late": "no answer" }),
            json!({}),
        ] {
            let text = left_text(2, &done);
            assert!(text.contains("Keep its folder"), "{text}");
            assert!(!text.contains("yours to remove"), "{text}");
        }
    }

    #[test]
    fn a_section_goes_and_all_else_stays() {
        let text = "# Mine\nversion = 1\n\n[[account]]  # one\nnumber = 1\nurl = \"a\"\n\n\
            # the second\n[[ account ]]\nnumber=2 # two\nurl = \"b\"\n\n# the third\n[[account]]\nnumber = 3\nurl = \"c\"\n";
        let second = without_section(text, 2);
        assert_eq!(
            second,
            "# Mine\nversion = 1\n\n[[account]]  # one\nnumber = 1\nurl = \"a\"\n\n\
            # the second\n\n# the third\n[[account]]\nnumber = 3\nurl = \"c\"\n"
        );
        assert!(without_section(text, 3).ends_with("url = \"b\"\n\n# the third\n"));
        assert_eq!(without_section(text, 4), text);
    }
}
