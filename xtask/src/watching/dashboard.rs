//! The dashboards: expressions of existing metrics, and the form that Grafana needs to show every panel.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::expression::Usage;
use super::known::Metrics;
use crate::finding::Finding;
use crate::workspace::Workspace;

/// The folder of the dashboards, relative to the root.
const DASHBOARDS: &str = "packaging/grafana";

/// Columns of a dashboard.
const COLUMNS: u64 = 24;

/// The data source of every panel: the variable, so that an import asks for the data source.
const SOURCE: &str = "${datasource}";

/// Checks every dashboard.
pub(super) fn check_all(workspace: &Workspace, metrics: &Metrics) -> Vec<Finding> {
    let files = workspace.with_extension(&["json"]);
    files
        .filter(|file| file.starts_with(DASHBOARDS))
        .flat_map(|file| {
            let faults = faults(&workspace.text(file), metrics);
            findings(file, faults)
        })
        .collect()
}

fn findings(file: &Path, faults: Vec<String>) -> Vec<Finding> {
    let finding = |what| Finding::new(file, 0, what);
    faults.into_iter().map(finding).collect()
}

fn faults(text: &str, metrics: &Metrics) -> Vec<String> {
    let dashboard: Value = match serde_json::from_str(text) {
        Ok(dashboard) => dashboard,
        Err(error) => return vec![error.to_string()],
    };
    let mut faults = Vec::new();
    for key in ["uid", "title", "schemaVersion", "templating"] {
        if dashboard.get(key).is_none() {
            faults.push(format!("there is no {key}"));
        }
    }
    let variables = array(&dashboard, "/templating/list");
    let names: BTreeSet<&str> = variables
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    for variable in ["datasource", "instance"] {
        if !names.contains(variable) {
            faults.push(format!("there is no variable {variable}"));
        }
    }
    for query in variables
        .iter()
        .filter_map(|one| one.pointer("/query/query")?.as_str())
    {
        faults.extend(metrics.faults(&Usage::of(query)));
    }
    let panels = array(&dashboard, "/panels");
    if panels.is_empty() {
        faults.push("there are no panels".to_owned());
    }
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in panels {
        let title = panel["title"].as_str().unwrap_or_default();
        if title.is_empty() || !ids.insert(panel["id"].as_u64()) {
            faults.push(format!(
                "panel \"{title}\": a title and an id of its own are needed"
            ));
        }
        let own = placed(panel, &mut taken)
            .into_iter()
            .chain(shown(panel, metrics));
        faults.extend(own.map(|what| format!("panel \"{title}\": {what}")));
    }
    faults
}

/// Faults of a panel's place; marks the place as taken.
fn placed(panel: &Value, taken: &mut BTreeSet<(u64, u64)>) -> Option<String> {
    let part = |key| panel["gridPos"][key].as_u64();
    let (Some(x), Some(y), Some(w), Some(h)) = (part("x"), part("y"), part("w"), part("h")) else {
        return Some("gridPos needs x, y, w and h".to_owned());
    };
    if w == 0 || h == 0 || x + w > COLUMNS {
        return Some(format!("is not within {COLUMNS} columns"));
    }
    let mut is_free = true;
    for cell in (y..y + h).flat_map(|row| (x..x + w).map(move |column| (column, row))) {
        is_free &= taken.insert(cell);
    }
    (!is_free).then(|| "overlaps another panel".to_owned())
}

/// Faults of what a panel shows.
fn shown(panel: &Value, metrics: &Metrics) -> Vec<String> {
    let mut faults = Vec::new();
    let kind = panel["type"].as_str().unwrap_or_default();
    if matches!(kind, "row" | "alertlist") {
        return faults;
    }
    if panel["datasource"]["uid"] != SOURCE {
        faults.push(format!("the data source is not {SOURCE}"));
    }
    let targets = array(panel, "/targets");
    if targets.is_empty() {
        faults.push("there is no target".to_owned());
    }
    let mut references = BTreeSet::new();
    for target in targets {
        let reference = target["refId"].as_str().unwrap_or_default();
        if reference.is_empty() || !references.insert(reference) {
            faults.push(format!("refId \"{reference}\" is missing or stands twice"));
        }
        let usage = Usage::of(target["expr"].as_str().unwrap_or_default());
        if usage.selected.is_empty() && target["expr"] != "up{job=\"vere\",instance=~\"$instance\"}"
        {
            faults.push("an expression without a metric of ours".to_owned());
        }
        faults.extend(metrics.faults(&usage));
        let legend = target["legendFormat"].as_str().unwrap_or_default();
        let labels = legend
            .split("{{")
            .skip(1)
            .filter_map(|rest| rest.split("}}").next());
        for label in labels
            .map(str::trim)
            .filter(|label| !metrics.has_label(&usage, label))
        {
            faults.push(format!(
                "the legend has the label {label}, which no metric has"
            ));
        }
    }
    faults
}

fn array<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found.map_or(&[][..], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::made_of;

    fn found(from: &str, to: &str) -> Vec<String> {
        let dashboard = r#"{"uid": "u", "title": "t", "schemaVersion": 39,
            "templating": {"list": [{"name": "datasource"},
                {"name": "instance", "query": {"query": "label_values(vere_a, instance)"}}]},
            "panels": [
                {"id": 1, "type": "row", "title": "R", "gridPos": {"x": 0, "y": 0, "w": 24, "h": 1}},
                {"id": 2, "type": "stat", "title": "P", "gridPos": {"x": 0, "y": 1, "w": 8, "h": 4},
                 "datasource": {"uid": "${datasource}"},
                 "targets": [{"refId": "A", "expr": "sum(vere_a{instance=~\"$instance\"})", "legendFormat": "{{node}}"}]},
                {"id": 3, "type": "stat", "title": "Q", "gridPos": {"x": 8, "y": 1, "w": 8, "h": 4},
                 "datasource": {"uid": "${datasource}"}, "targets": [{"refId": "A", "expr": "vere_a"}]}]}"#;
        assert!(dashboard.contains(from), "{from}");
        let list = "| `vere_a` | gauge | `node`: name in the settings | A |\n";
        let (_folder, workspace) = made_of(&[("docs/internals/metrics.md", list)]);
        faults(&dashboard.replacen(from, to, 1), &Metrics::read(&workspace))
    }

    #[test]
    fn a_dashboard_in_order_passes() {
        assert_eq!(found("", ""), [""; 0]);
    }

    #[test]
    fn each_fault_is_found() {
        for (from, to, fault) in [
            ("\"uid\": \"u\", ", "", "no uid"),
            ("\"instance\", ", "\"other\", ", "no variable instance"),
            (
                "label_values(vere_a",
                "label_values(vere_b",
                "no metric vere_b",
            ),
            ("\"id\": 3", "\"id\": 2", "an id of its own"),
            ("\"x\": 8", "\"x\": 4", "overlaps"),
            ("\"x\": 8", "\"x\": 20", "not within 24"),
            (
                "\"expr\": \"vere_a\"",
                "\"expr\": \"vere_c\"",
                "no metric vere_c",
            ),
            (
                "\"expr\": \"vere_a\"",
                "\"expr\": \"1\"",
                "without a metric",
            ),
            ("{{node}}", "{{peer}}", "the label peer"),
            (
                "{\"uid\": \"${datasource}\"}",
                "{\"uid\": \"x\"}",
                "data source",
            ),
            ("\"refId\": \"A\"", "\"refId\": \"\"", "refId"),
        ] {
            let faults = found(from, to);
            assert_eq!(faults.len(), 1, "{from}: {faults:?}");
            assert!(faults[0].contains(fault), "{from}: {faults:?}");
        }
    }
}
