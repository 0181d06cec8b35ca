//! Reads the file of rules, which keeps to a small part of YAML: fixed indentation, one key a line, expressions in one
//! line or in a literal block, annotations in double quotes. Any other line is an error.

/// An alarm.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Alarm {
    /// The line of the name.
    pub(super) line: usize,
    pub(super) group: String,
    pub(super) name: String,
    pub(super) expr: String,
    /// How long the expression holds before the alarm fires; empty for at once.
    pub(super) hold: String,
    pub(super) severity: String,
    pub(super) summary: String,
    pub(super) description: String,
    pub(super) remedy: String,
}

/// The indentation of a literal block.
const BLOCK: &str = "          ";

/// Lines without a value.
const FIXED: [&str; 4] = [
    "groups:",
    "    rules:",
    "        labels:",
    "        annotations:",
];

/// Reads all alarms in the order of the file.
///
/// # Errors
/// The number and fault of the first line that is not of the form above.
pub(super) fn read(text: &str) -> Result<Vec<Alarm>, (usize, String)> {
    let (mut alarms, mut group): (Vec<Alarm>, &str) = (Vec::new(), "");
    let mut in_block = false;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if in_block && line.starts_with(BLOCK) {
            if let Some(alarm) = alarms.last_mut() {
                alarm
                    .expr
                    .push_str(line.strip_prefix(BLOCK).unwrap_or(line));
                alarm.expr.push('\n');
            }
            continue;
        }
        in_block = false;
        if line.is_empty() || line.starts_with('#') || FIXED.contains(&line) {
            continue;
        }
        if let Some(name) = line.strip_prefix("  - name: ") {
            group = name;
        } else if let Some(name) = line.strip_prefix("      - alert: ") {
            alarms.push(Alarm {
                line: number,
                group: group.to_owned(),
                name: name.to_owned(),
                ..Alarm::default()
            });
        } else {
            let alarm = alarms
                .last_mut()
                .ok_or((number, "a key before the first alarm".to_owned()))?;
            in_block = set(alarm, line).map_err(|what| (number, what))?;
        }
    }
    for alarm in &mut alarms {
        alarm.expr.truncate(alarm.expr.trim_end().len());
    }
    Ok(alarms)
}

/// Sets the key of a line; returns whether a block of the expression follows.
fn set(alarm: &mut Alarm, line: &str) -> Result<bool, String> {
    let known =
        "expected expr, for, severity, summary, description or remedy in the form of this file";
    let (key, value) = line.split_once(": ").ok_or(known)?;
    match key {
        "        expr" if value == "|" => return Ok(true),
        "        expr" => value.clone_into(&mut alarm.expr),
        "        for" => value.clone_into(&mut alarm.hold),
        "          severity" => value.clone_into(&mut alarm.severity),
        "          summary" => alarm.summary = unquoted(value)?,
        "          description" => alarm.description = unquoted(value)?,
        "          remedy" => alarm.remedy = unquoted(value)?,
        _ => return Err(known.to_owned()),
    }
    Ok(false)
}

fn unquoted(value: &str) -> Result<String, String> {
    let inner = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let inner = inner.ok_or("expected a text in double quotes")?;
    Ok(inner.replace("\\\"", "\"").replace("\\\\", "\\"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# Alarms.
groups:
  - name: Spool
    rules:
      - alert: VereA
        expr: a > 0 and b{c="d"}
        for: 5m
        labels:
          severity: critical
        annotations:
          summary: "A is: up"
          description: "{{ $value | printf \"%.0f\" }}"
          remedy: "`x`"

      - alert: VereB
        expr: |
          a
            > 1
        labels:
          severity: info
"#;

    #[test]
    fn alarms_have_all_their_keys() {
        let alarms = read(TEXT).unwrap();
        assert_eq!(alarms.len(), 2);
        assert_eq!(alarms[0].expr, "a > 0 and b{c=\"d\"}");
        assert_eq!((alarms[0].line, alarms[0].hold.as_str()), (5, "5m"));
        assert_eq!(alarms[0].summary, "A is: up");
        assert_eq!(alarms[0].description, "{{ $value | printf \"%.0f\" }}");
        assert_eq!(alarms[1].expr, "a\n  > 1");
        assert_eq!(
            (alarms[1].hold.as_str(), alarms[1].group.as_str()),
            ("", "Spool")
        );
    }

    #[test]
    fn other_yaml_is_refused_with_its_line() {
        for (from, to, line) in [
            ("        for: 5m", "        keep_firing_for: 5m", 7),
            ("\"A is: up\"", "A", 11),
            ("        for: 5m", "\tfor: 5m", 7),
            ("      - alert: VereA", "      - record: x", 5),
        ] {
            let (at, what) = read(&TEXT.replace(from, to)).unwrap_err();
            assert_eq!(at, line, "{what}");
        }
    }
}
