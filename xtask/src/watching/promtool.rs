//! promtool of Prometheus, where installed, or as `scripts/install-test-tools.sh` unpacks it.

use std::process::Command;

use crate::finding::{Finding, Outcome};
use crate::tools;
use crate::workspace::Workspace;

/// The unpacked program below the folder of such programs.
const UNPACKED: &str = "prometheus/usr/bin/promtool";

/// Checks the syntax of a file of rules, and runs the tests of the rules.
pub(super) fn run(workspace: &Workspace, rules: &str, tests: &[&str]) -> Outcome {
    let Some(program) = tools::find(workspace, "promtool", UNPACKED) else {
        return Outcome::Skipped(
            "names are right; promtool, which checks syntax and tests of the rules, is not installed \
             (apt-get install prometheus)"
                .to_owned(),
        );
    };
    let mut findings = Vec::new();
    for (verb, files) in [("check", &[rules][..]), ("test", tests)] {
        let output = Command::new(&program)
            .args([verb, "rules"])
            .args(files)
            .current_dir(&workspace.root)
            .output();
        let fault = match output {
            Ok(output) if output.status.success() => continue,
            Ok(output) => {
                let said = [output.stdout, output.stderr].concat();
                format!("promtool {verb} rules: {}", String::from_utf8_lossy(&said))
            }
            Err(error) => error.to_string(),
        };
        findings.push(Finding::new(rules, 0, fault));
    }
    findings.into()
}
