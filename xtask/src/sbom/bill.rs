//! The bill of materials.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::graph::Node;

/// Makes the document. Equal inputs make equal documents, without time and serial number.
pub(super) fn made(
    package: &str,
    version: &str,
    linked: &BTreeMap<String, Node>,
    sums: &BTreeMap<String, String>,
) -> Value {
    let mut components: Vec<Value> = Vec::new();
    let mut dependencies = vec![json!({
        "ref": package,
        "dependsOn": linked.values().map(reference).collect::<Vec<_>>(),
    })];
    for (title, node) in linked {
        let brought = brought(node);
        let mut links: Vec<String> = node
            .links
            .iter()
            .filter_map(|link| linked.get(link))
            .map(reference)
            .collect();
        links.extend(brought.iter().map(|library| text(&library["bom-ref"])));
        components.push(component(node, sums.get(title)));
        components.extend(brought);
        dependencies.push(json!({"ref": reference(node), "dependsOn": links}));
    }
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {
            "type": "application",
            "bom-ref": package,
            "name": package,
            "version": version,
            "licenses": [{"expression": "MIT OR Apache-2.0"}],
        }},
        "components": components,
        "dependencies": dependencies,
    })
}

fn component(node: &Node, sum: Option<&String>) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(node),
        "name": node.name,
        "version": node.version,
        "purl": reference(node),
        "scope": "required",
    });
    if !node.license.is_empty() {
        component["licenses"] = json!([{"expression": expression(&node.license)}]);
    }
    if let Some(sum) = sum {
        component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
    }
    if !node.repository.is_empty() {
        component["externalReferences"] = json!([{"type": "vcs", "url": node.repository}]);
    }
    component
}

/// The package URL. The name of a version behind `+` is a part of the version.
fn reference(node: &Node) -> String {
    format!(
        "pkg:cargo/{}@{}",
        node.name,
        node.version.replace('+', "%2B")
    )
}

/// Old packages write `MIT/Apache-2.0`.
fn expression(license: &str) -> String {
    license.replace('/', " OR ")
}

/// C libraries whose sources a package brings: SQLite, and libraries in the version of the package
/// (`zstd-sys 2.0.16+zstd.1.5.7`). Scanners know the names of the libraries, not the names of the packages.
fn brought(node: &Node) -> Vec<Value> {
    let named = node.version.split_once('+').map(|(_, behind)| behind);
    let library = match named.and_then(|named| named.split_once('.')) {
        _ if node.name == "libsqlite3-sys" => {
            sqlite(node).map(|version| ("sqlite".to_owned(), version))
        }
        Some((name, version)) if node.name.ends_with("-sys") => {
            Some((name.to_owned(), version.to_owned()))
        }
        _ => None,
    };
    let value = |(name, version): (String, String)| {
        let url = format!("pkg:generic/{name}@{version}");
        let mut value = json!({
            "type": "library", "bom-ref": url, "name": name, "version": version, "purl": url,
            "description": format!("compiled from the sources in {}", node.title()),
        });
        if name == "sqlite" {
            value["cpe"] = json!(format!("cpe:2.3:a:sqlite:sqlite:{version}:*:*:*:*:*:*:*"));
        }
        value
    };
    library.map(value).into_iter().collect()
}

/// The version in the header of SQLite.
fn sqlite(node: &Node) -> Option<String> {
    let header = fs::read_to_string(node.folder.join("sqlite3/sqlite3.h")).ok()?;
    let line = header
        .lines()
        .find_map(|line| line.strip_prefix("#define SQLITE_VERSION "))?;
    Some(line.trim().trim_matches('"').to_owned())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
