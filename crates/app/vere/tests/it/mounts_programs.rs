//! Programs that people use, and suites that judge file systems, on a mounted volume (`vere fs`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{run, skip};
use crate::mounts::Volume;

/// Tries of a case that races with the start of a program.
const RACES: usize = 10;

/// Operations of fsx in a run.
const FSX_OPERATIONS: &str = "2000";

fn is_there(program: &str) -> bool {
    let said = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output();
    let is_there = said.is_ok_and(|said| said.status.success());
    if !is_there {
        skip(
            program,
            "not installed (scripts/install-test-tools.sh installs it)",
        );
    }
    is_there
}

/// Where the install script puts what it builds.
const BUILT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../target/test-tools/bin"
);

/// A suite that the install script builds.
fn suite(program: &str) -> Option<PathBuf> {
    let path = Path::new(BUILT).join(program);
    if !path.exists() {
        skip(
            program,
            "not built (scripts/install-test-tools.sh builds it)",
        );
        return None;
    }
    Some(path)
}

/// Everything goes to the servers, and the state folder is lost.
fn lose_everything_local(volume: &Volume) {
    run(&mut volume.fs(&["sync", "home"]));
    volume.umount();
    fs::remove_dir_all(volume.path("state")).expect("the state");
    volume.mount();
}

fn sh(folder: &Path, script: &str) -> String {
    run(Command::new("sh")
        .args(["-euc", script])
        .current_dir(folder))
}

#[test]
fn pjdfstest_finds_no_fault() {
    let (Some(suite), Some(volume)) = (suite("pjdfstest"), Volume::new()) else {
        return;
    };
    // Other users and devices are part of the suite.
    volume.mount_with(&["--allow-other", "--dev", "--suid"]);
    let config = volume.path("pjdfstest.toml");
    fs::write(&config, include_str!("mounts_programs/pjdfstest.toml")).expect("room");
    let judge = |only: &[&str]| {
        let mut judge = Command::new(&suite);
        judge.arg("-c").arg(&config).arg("-p").arg(volume.point());
        let output = judge.args(only).output().expect("pjdfstest");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let said = judge(&[]);
    let failed: Vec<&str> = said
        .lines()
        .filter_map(|line| Some(line.strip_suffix("FAILED")?.trim()))
        .collect();
    for case in &failed {
        // The suite may open the program before the kernel has begun to run it from FUSE: another try decides.
        let mut tries = (0..RACES).map(|_| judge(&[case]));
        let is_race =
            case.ends_with("::etxtbsy") && tries.any(|said| said.contains("Summary: 0 failed"));
        assert!(is_race, "{case}: {said}");
    }
    let summary = said
        .lines()
        .rev()
        .find(|line| line.starts_with("Summary: "));
    let summary = summary.expect("a summary");
    let passed: u32 = summary
        .split(", ")
        .find_map(|part| part.strip_suffix(" passed")?.parse().ok())
        .expect("a number");
    // A read-only file system (13 cases) and a second one (2) are not given; a file may have 65,000 names and more.
    assert!(passed + failed.len() as u32 >= 380, "{said}");
    volume.umount();
}

#[test]
fn fsx_finds_no_fault() {
    let (Some(suite), Some(volume)) = (suite("fsx"), Volume::new()) else {
        return;
    };
    volume.mount();
    for seed in ["1", "2"] {
        let file = volume.point().join(seed);
        let args = ["-q", "-S", seed, "-N", FSX_OPERATIONS, "-P"];
        let artifacts = volume.path("");
        run(Command::new(&suite).args(args).arg(artifacts).arg(&file));
    }
    let sums = sh(&volume.point(), "sha256sum 1 2");
    lose_everything_local(&volume);
    assert_eq!(sh(&volume.point(), "sha256sum 1 2"), sums);
    volume.umount();
}

#[test]
fn a_repository_is_cloned_and_whole() {
    let Some(volume) = Volume::new().filter(|_| is_there("git")) else {
        return;
    };
    let source = volume.path("source");
    fs::create_dir(&source).expect("a folder");
    let make = "git init -q . && git config user.email a@example.org && git config user.name a
        for number in $(seq 40); do
            mkdir -p folder$number && seq $number 500 > folder$number/file
            git add . && git commit -qm \"number $number\"
        done && git gc -q";
    sh(&source, make);
    volume.mount();
    let clone = format!("git clone -q --no-local {} clone", source.display());
    sh(&volume.point(), &clone);
    let check = "git -c safe.directory=* fsck --strict && test -z \"$(git -c safe.directory=* status --porcelain)\"";
    sh(&volume.point().join("clone"), check);
    lose_everything_local(&volume);
    sh(&volume.point().join("clone"), check);
    volume.umount();
}

#[test]
fn a_database_is_whole_after_a_kill() {
    let Some(volume) = Volume::new().filter(|_| is_there("sqlite3")) else {
        return;
    };
    let process = volume.mount_in_foreground();
    let script = "sqlite3 d.db 'create table t(a integer, b text)'
        for number in $(seq 20); do
            sqlite3 d.db \"insert into t values($number, 'row $number')\"
        done
        sqlite3 d.db 'pragma journal_mode=wal' 'insert into t values(21, 21)' >/dev/null";
    sh(&volume.point(), script);
    volume.kill(process);
    volume.mount();
    let look = "sqlite3 d.db 'pragma integrity_check' 'select count(*) from t'";
    assert_eq!(sh(&volume.point(), look), "ok\n21\n");
    lose_everything_local(&volume);
    assert_eq!(sh(&volume.point(), look), "ok\n21\n");
    volume.umount();
}

#[test]
fn files_are_copied_and_compiled() {
    let present = is_there("rsync") && is_there("cc");
    let Some(volume) = Volume::new().filter(|_| present) else {
        return;
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    volume.mount();
    let copy = format!(
        "rsync -aHX {0}/ copy && diff -r {0} copy && rsync -aHXn --itemize-changes {0}/ copy",
        source.display()
    );
    assert_eq!(sh(&volume.point(), &copy), "");
    let build = "mkdir c && cd c
        for number in $(seq 20); do echo \"int f$number(void) { return $number; }\" > f$number.c; done
        { seq -f 'int f%g(void);' 20; echo 'int main(void) { return f20() - 20; }'; } > main.c
        cc -c *.c && cc -o program *.o && ./program";
    sh(&volume.point(), build);
    lose_everything_local(&volume);
    sh(&volume.point(), "./c/program");
    volume.umount();
}

/// LibreOffice saves through a lock file, a file beside the document, and a rename.
#[test]
fn a_document_is_saved_in_place() {
    // The module of Debian's Python; a Python from elsewhere lacks it.
    let python = Command::new("/usr/bin/python3")
        .args(["-c", "import uno"])
        .output();
    if !python.is_ok_and(|python| python.status.success()) {
        skip(
            "python3-uno",
            "not installed (scripts/install-test-tools.sh installs it)",
        );
        return;
    }
    let Some(volume) = Volume::new().filter(|_| is_there("soffice")) else {
        return;
    };
    volume.mount();
    let pipe = format!("veretest{}", std::process::id());
    let (profile, edit) = (volume.path("profile"), volume.path("edit.py"));
    fs::write(&edit, include_str!("mounts_programs/edit.py")).expect("room");
    let office = format!(
        "soffice -env:UserInstallation=file://{} --headless --norestore",
        profile.display()
    );
    let point = volume.point();
    let save = format!(
        "printf 'one\\n' > letter.txt
        {office} --convert-to odt letter.txt
        for line in two three; do
            {office} '--accept=pipe,name={pipe};urp;' &
            /usr/bin/python3 {} {pipe} {}/letter.odt $line
            wait
        done
        test ! -e .~lock.letter.odt#",
        edit.display(),
        point.display()
    );
    sh(&point, &save);
    lose_everything_local(&volume);
    sh(
        &point,
        &format!("{office} --convert-to txt:Text letter.odt"),
    );
    let text = fs::read_to_string(point.join("letter.txt")).expect("a text");
    assert!(text.contains("onetwothree"), "{text:?}");
    volume.umount();
}
