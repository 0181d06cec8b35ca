//! A private network of a test: the test's thread is on one machine, `far` is the other machine, and two cables lie
//! between both, each with addresses of its own.

use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::geteuid;

use super::{output_of, program, run, run_with_input, skip, test_name};

/// Two network namespaces and two cables between them.
pub(crate) struct Network {
    far: String,
}

impl Network {
    /// Runs a test in a private network, if the machine can create one. All children of the test's thread are in the
    /// network as well.
    pub(crate) fn with(test: impl FnOnce(&Self) + Send + 'static) {
        let name = test_name();
        // The thread ends with the test, and its network with the thread.
        let thread =
            std::thread::Builder::new()
                .name(name.clone())
                .spawn(move || match Self::make() {
                    Ok(network) => test(&network),
                    Err(why) => skip(&name, &why),
                });
        if let Err(panic) = thread.expect("a thread").join() {
            resume_unwind(panic);
        }
    }

    fn make() -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if !geteuid().is_root() {
            return Err("only root may make networks".to_owned());
        }
        if program("ip").is_none() || program("nft").is_none() {
            return Err("ip or nft is missing".to_owned());
        }
        unshare(CloneFlags::CLONE_NEWNET).map_err(|error| format!("no own network: {error}"))?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let far = format!("vere-{}-{number}", std::process::id());
        tried("ip", &["netns", "add", &far])?;
        let network = Self { far };
        network.lay_cables()?;
        network.heal();
        // A missing kernel module is noticed now.
        tried("nft", &["list", "table", "inet", "faults"])?;
        Ok(network)
    }

    fn lay_cables(&self) -> Result<(), String> {
        let far = self.far.as_str();
        tried("ip", &["link", "set", "lo", "up"])?;
        tried("ip", &["-n", far, "link", "set", "lo", "up"])?;
        for cable in 1..=2 {
            let (near_end, far_end) = (format!("near{cable}"), format!("far{cable}"));
            let add = ["link", "add", &near_end, "type", "veth", "peer", "name"];
            tried("ip", &[&add[..], &[&far_end, "netns", far]].concat())?;
            let address = |machine| format!("10.77.{cable}.{machine}/24");
            tried("ip", &["address", "add", &address(1), "dev", &near_end])?;
            tried("ip", &["link", "set", &near_end, "up"])?;
            tried(
                "ip",
                &["-n", far, "address", "add", &address(2), "dev", &far_end],
            )?;
            tried("ip", &["-n", far, "link", "set", &far_end, "up"])?;
        }
        Ok(())
    }

    /// An address of the other machine, by its cable: 1 or 2.
    pub(crate) fn far_address(&self, cable: u8) -> SocketAddr {
        ([10, 77, cable, 2], 2600).into()
    }

    /// A command that runs on the other machine.
    pub(crate) fn on_far(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.far, program]);
        command
    }

    /// Cuts a cable in both directions, without a notice to either side.
    pub(crate) fn cut(&self, cable: u8) {
        self.drop_near(&format!("iifname near{cable} drop"));
        self.drop_far(&format!("iifname far{cable} drop"));
    }

    /// Drops the octets from the other machine; octets to the other machine arrive.
    pub(crate) fn cut_towards_here(&self) {
        self.drop_near("iifname \"near*\" drop");
    }

    /// Both cables lose a percentage of all packets, in both directions.
    pub(crate) fn lose(&self, percent: u8) {
        let lose = format!("numgen random mod 100 < {percent} drop");
        self.drop_near(&format!("iifname \"near*\" {lose}"));
        self.drop_far(&format!("iifname \"far*\" {lose}"));
    }

    /// Everything arrives again.
    pub(crate) fn heal(&self) {
        const EMPTY: &str = "table inet faults\ndelete table inet faults\ntable inet faults {\n\
                             chain input {\ntype filter hook input priority 0;\n}\n}\n";
        run_with_input(Command::new("nft").args(["-f", "-"]), EMPTY);
        run_with_input(self.on_far("nft").args(["-f", "-"]), EMPTY);
    }

    fn drop_near(&self, rule: &str) {
        run(Command::new("nft").arg(format!("add rule inet faults input {rule}")));
    }

    fn drop_far(&self, rule: &str) {
        run(self
            .on_far("nft")
            .arg(format!("add rule inet faults input {rule}")));
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // The other machine's processes are gone by now; the cables go with the network.
        let _ = Command::new("ip")
            .args(["netns", "del", &self.far])
            .status();
    }
}

fn tried(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = output_of(Command::new(program).args(arguments), "");
    let error = String::from_utf8_lossy(&output.stderr);
    let done = output.status.success();
    done.then_some(())
        .ok_or_else(|| format!("{program} {}: {error}", arguments.join(" ")))
}
