//! Mounts on accounts with the limits of providers: budgets of a day, and passwords that programs print.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::harness::{assert_has, run, wait_until};
use crate::mounts::Volume;

/// Changes the description of the volume, which the user may edit.
fn edit(volume: &Volume, change: impl FnOnce(&str) -> String) {
    let file = volume.path("config/vere/fs/home.toml");
    let text = fs::read_to_string(&file).expect("a description");
    fs::write(&file, change(&text)).expect("room");
}

fn status(volume: &Volume) -> serde_json::Value {
    let said = run(&mut volume.fs(&["status", "home", "--json"]));
    serde_json::from_str(&said).expect("JSON")
}

/// Octets up in the file of the account's budget: lines `up AGE OCTETS`.
fn octets_on_disk(volume: &Volume) -> u64 {
    let budgets = fs::read_dir(volume.path("state/vere/fs/budgets"));
    let texts = budgets.into_iter().flatten().flatten();
    let texts = texts.filter_map(|of| fs::read_to_string(of.path()).ok());
    let octets = |line: &str| {
        line.strip_prefix("up ")?
            .split(' ')
            .nth(1)?
            .parse::<u64>()
            .ok()
    };
    texts
        .map(|text| text.lines().filter_map(octets).sum::<u64>())
        .sum()
}

/// A command that waits tells for how much.
fn assert_waiting_is_shown(volume: &Volume) {
    let mut sync = volume.fs(&["sync", "home", "--json"]);
    let mut sync = sync.stderr(Stdio::piped()).spawn().expect("a process");
    let lines = BufReader::new(sync.stderr.take().expect("a pipe"));
    let line = lines.lines().next().expect("a line").expect("text");
    let told: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(
        (&told["stage"], &told["unit"]),
        (&"sending".into(), &"octets".into())
    );
    assert!(told["all"].as_u64() > Some(0), "{told}");
    sync.kill().expect("alive");
    sync.wait().expect("ended");
}

#[test]
fn data_beyond_the_budget_of_a_day_wait_visibly() {
    let Some(volume) = Volume::new() else { return };
    edit(&volume, |text| {
        format!("{text}upload_per_day = \"16 MiB\"\n")
    });
    let process = volume.mount_in_foreground();
    let octets: Vec<u8> = (0..20_000_000_u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    fs::write(volume.point().join("large"), &octets).expect("the journal has room");
    let waits = |status: &serde_json::Value| status["accounts"][0]["scarce"].is_string();
    wait_until("data that wait", || waits(&status(&volume)));
    let now = status(&volume);
    let account = &now["accounts"][0];
    let used = account["upload"]["used_octets"].as_u64().expect("a number");
    assert_eq!(account["upload"]["limit_octets"], 16 << 20);
    assert!((12 << 20..16 << 20).contains(&used), "{now}");
    assert!(now["octets_waiting"].as_u64() > Some(0), "{now}");
    assert!(account["scarce_for_s"].as_u64() > Some(23 * 3_600), "{now}");
    let shown = run(&mut volume.fs(&["status", "home"]));
    assert_has(&shown, &["has space in", "up in 24 h", "wait; account 1"]);
    assert_waiting_is_shown(&volume);
    // Names and small files go on, and the data are there.
    fs::write(volume.point().join("small"), "small").expect("a file");
    assert!(fs::read(volume.point().join("large")).expect("a file") == octets);
    // A kill is no new day, and a larger budget is one.
    wait_until("the octets of the day on the disk", || {
        octets_on_disk(&volume) >= used
    });
    volume.kill(process);
    let process = volume.mount_in_foreground();
    let again = status(&volume);
    let still = again["accounts"][0]["upload"]["used_octets"].as_u64();
    assert!(still >= Some(used), "{again}");
    volume.kill(process);
    edit(&volume, |text| text.replace("16 MiB", "1 GiB"));
    volume.mount();
    run(&mut volume.fs(&["sync", "home"]));
    assert_eq!(status(&volume)["octets_waiting"], 0);
    volume.umount();
}

#[test]
fn a_program_prints_the_password_for_each_connection() {
    let Some(volume) = Volume::new() else { return };
    let runs = volume.path("runs");
    let script = format!("echo run >> {}; echo secret", runs.display());
    edit(&volume, |text| {
        let lines = text
            .lines()
            .map(|line| match line.starts_with("password_file") {
                true => format!("password_command = [\"sh\", \"-c\", {script:?}]\n"),
                false => format!("{line}\n"),
            });
        lines.collect()
    });
    volume.mount();
    fs::write(volume.point().join("a"), "content").expect("a file");
    run(&mut volume.fs(&["sync", "home"]));
    volume.umount();
    let runs = fs::read_to_string(runs).expect("runs");
    assert!(runs.lines().count() >= 2, "{runs}");
}
