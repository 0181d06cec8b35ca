use super::*;
use crate::graph::tests::made_of;

fn linked(folder: &Path) -> BTreeMap<String, Node> {
    let graph = made_of(&[
        ("pool", "", &["zstd-sys-2.0.16+zstd.1.5.7"]),
        ("zstd-sys", "", &[]),
    ]);
    let mut linked = BTreeMap::new();
    for mut node in graph.into_values() {
        if node.name == "zstd-sys" {
            node.version = "2.0.16+zstd.1.5.7".to_owned();
        }
        node.folder = folder.join(&node.name);
        node.license = "MIT/Apache-2.0".to_owned();
        fs::create_dir_all(&node.folder).unwrap();
        fs::write(
            node.folder.join("LICENSE-MIT"),
            format!("Permission\n{}", "is granted"),
        )
        .unwrap();
        linked.insert(node.title(), node);
    }
    linked
}

#[test]
fn the_bill_names_packages_and_the_c_libraries_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let sums = checksums(
        "[[package]]\nname = \"pool\"\nversion = \"1.0.0\"\nsource = \"registry\"\nchecksum = \"ab\"\n",
    );
    let bill = bill::made("vere", "0.1.0", &linked(folder.path()), &sums.unwrap());
    let names: Vec<_> = bill["components"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| &c["purl"])
        .collect();
    let expected = [
        "pkg:cargo/pool@1.0.0",
        "pkg:cargo/zstd-sys@2.0.16%2Bzstd.1.5.7",
        "pkg:generic/zstd@1.5.7",
    ];
    assert_eq!(names, expected);
    let pool = &bill["components"][0];
    assert_eq!(pool["hashes"][0]["content"], "ab");
    assert_eq!(pool["licenses"][0]["expression"], "MIT OR Apache-2.0");
    let of_zstd = &bill["dependencies"][2];
    assert_eq!(of_zstd["dependsOn"][0], "pkg:generic/zstd@1.5.7");
    assert_eq!(bill["dependencies"][1]["dependsOn"][0], expected[1]);
}

#[test]
fn equal_texts_stand_once_with_all_their_packages() {
    let folder = tempfile::tempdir().unwrap();
    let linked = linked(folder.path());
    let text = notices::made("vere", &linked).unwrap();
    assert_eq!(text.matches("Permission").count(), 1);
    assert!(
        text.contains("pool-1.0.0, zstd-sys-2.0.16+zstd.1.5.7:\n\nPermission"),
        "{text}"
    );
    let mut silent = linked;
    silent.values_mut().for_each(|node| node.license.clear());
    assert!(notices::made("vere", &silent).is_err());
}

#[test]
fn lines_of_the_tree_are_titles() {
    assert_eq!(of_tree("pool v1.2.0 (*)").as_deref(), Some("pool-1.2.0"));
    assert_eq!(of_tree("").as_deref(), None);
}
