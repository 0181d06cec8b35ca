//! One folder, several processes, which are killed.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use vere_cluster::{FileRegister, Register, RegisterError, Swap};

use crate::contract;
use crate::counter::{KEY, increment, number};
use crate::skip;

/// Of a child: where the register lies, and how often it increments.
const FOLDER: &str = "VERE_TEST_REGISTER";
const TIMES: &str = "VERE_TEST_TIMES";

fn open(folder: &Path) -> Register {
    let file = FileRegister::open(folder).unwrap();
    Register::File(file.with_timeout(Duration::from_secs(60)))
}

/// Another process: this program again, running `test` only.
fn child(test: &str, folder: &Path, times: u64) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--ignored", "--exact", "--nocapture", test])
        .env(FOLDER, folder)
        .env(TIMES, times.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

#[tokio::test]
#[ignore = "is run by other tests"]
async fn child_that_increments() {
    let folder = std::env::var_os(FOLDER).expect("run by its parent");
    let times = std::env::var(TIMES).expect("run by its parent");
    let register = open(Path::new(&folder));
    for _ in 0..times.parse::<u64>().unwrap() {
        let (version, number) = increment(&register).await.unwrap();
        println!("done {version} {number}");
    }
}

/// The numbers of the next line in which a child says that a swap was done.
fn next_done(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> Option<(u64, u64)> {
    let line = lines
        .map(Result::unwrap)
        .find(|line| line.contains("done "))?;
    let (_, numbers) = line.split_once("done ").unwrap();
    let (version, number) = numbers.split_once(' ').unwrap();
    Some((version.parse().unwrap(), number.parse().unwrap()))
}

fn lines(child: &mut Child) -> impl Iterator<Item = std::io::Result<String>> + use<> {
    BufReader::new(child.stdout.take().unwrap()).lines()
}

#[tokio::test]
async fn files_keep_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    contract::check(&open(folder.path())).await;
}

#[tokio::test]
async fn processes_increment_a_number_each_exactly_once() {
    const PROCESSES: u64 = 3;
    const TIMES: u64 = 40;
    let folder = tempfile::tempdir().unwrap();
    let start = |_| child("file::child_that_increments", folder.path(), TIMES).spawn();
    let children: Vec<Child> = (0..PROCESSES).map(|n| start(n).unwrap()).collect();
    let mut seen = Vec::new();
    for mut child in children {
        let mut lines = lines(&mut child);
        while let Some(done) = next_done(&mut lines) {
            seen.push(done);
        }
        assert!(child.wait().unwrap().success());
    }
    seen.sort_unstable();
    let all: Vec<(u64, u64)> = (1..=PROCESSES * TIMES).map(|n| (n, n)).collect();
    assert_eq!(seen, all);
    let there = open(folder.path()).read(KEY).await.unwrap().unwrap();
    assert_eq!(
        (there.version, number(Some(&there))),
        (all.len() as u64, all.len() as u64)
    );
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let register = open(folder.path());
    let mut last = 0;
    for round in 0..25 {
        let mut child = child("file::child_that_increments", folder.path(), u64::MAX)
            .spawn()
            .unwrap();
        let mut lines = lines(&mut child);
        // Not before it works; then wherever it is.
        for _ in 0..=round % 3 {
            let done = next_done(&mut lines).expect("an increment");
            assert_eq!(done, (last + 1, last + 1));
            last += 1;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        while let Some((_, number)) = next_done(&mut lines) {
            last = number;
        }
        let there = register.read(KEY).await.unwrap().unwrap();
        assert_eq!(there.version, number(Some(&there)));
        assert!(
            [last, last + 1].contains(&there.version),
            "{last} {there:?}"
        );
        last = there.version;
    }
}

#[tokio::test]
#[ignore = "is run by a_full_disk_leaves_the_old_value"]
async fn child_on_a_full_disk() {
    let folder = std::env::var_os(FOLDER).expect("run by its parent");
    let folder = Path::new(&folder);
    let register = open(&folder.join("register"));
    let value = vec![1; vere_cluster::VALUE_MAX];
    assert_eq!(register.swap(KEY, None, b"old").await, Ok(Swap::Done(1)));
    // Until it is full.
    let filler = std::fs::write(folder.join("filler"), vec![0; 4 << 20]);
    assert!(filler.is_err());
    let error = register.swap(KEY, Some(1), &value).await.unwrap_err();
    assert!(
        matches!(error, RegisterError::Unreachable { .. }),
        "{error}"
    );
    assert!(!error.maybe_applied(), "{error}");
    let there = register.read(KEY).await.unwrap().unwrap();
    assert_eq!((there.version, there.value), (1, b"old".to_vec()));
    std::fs::remove_file(folder.join("filler")).unwrap();
    assert_eq!(register.swap(KEY, Some(1), &value).await, Ok(Swap::Done(2)));
}

/// On a file system of one MiB, in a name space of its own.
#[test]
fn a_full_disk_leaves_the_old_value() {
    let folder = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=1m none \"$VERE_TEST_REGISTER\"";
    let namespace = |script: &str| {
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
            .env(FOLDER, folder.path())
            .stdin(Stdio::null());
        command
    };
    if !namespace(mount)
        .output()
        .is_ok_and(|out| out.status.success())
    {
        skip(
            "a full disk",
            "no file system can be mounted in a name space here",
        );
        return;
    }
    let script = format!("{mount} && exec \"$0\" --ignored --exact file::child_on_a_full_disk");
    let output = namespace(&script)
        .arg(std::env::current_exe().unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{output:?}"
    );
}
