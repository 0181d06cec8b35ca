//! Calls drawn from a seed.

use rustix::fs::RenameFlags;

/// Names in a folder. Few, so that calls meet each other's files.
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "name with blanks"];
/// Files reach at most this far.
const FAR: u64 = 1_500_000;

/// A call; paths are relative to the program's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Call {
    Write {
        path: String,
        offset: u64,
        length: usize,
        fill: u8,
    },
    Append {
        path: String,
        length: usize,
        fill: u8,
    },
    Truncate {
        path: String,
        length: u64,
    },
    Punch {
        path: String,
        offset: u64,
        length: u64,
    },
    Zero {
        path: String,
        offset: u64,
        length: u64,
    },
    CopyRange {
        from: String,
        to: String,
        offset: u64,
        length: usize,
    },
    Rename {
        from: String,
        to: String,
        flags: RenameFlags,
    },
    Link {
        from: String,
        to: String,
    },
    Symlink {
        target: String,
        path: String,
    },
    Unlink {
        path: String,
    },
    MakeFolder {
        path: String,
    },
    RemoveFolder {
        path: String,
    },
    Chmod {
        path: String,
        mode: u32,
    },
    Touch {
        path: String,
        seconds: i64,
        nanoseconds: i64,
    },
    SetXattr {
        path: String,
        name: &'static str,
        length: usize,
    },
    RemoveXattr {
        path: String,
        name: &'static str,
    },
    Read {
        path: String,
        offset: u64,
        length: usize,
    },
    List {
        path: String,
    },
    Stat {
        path: String,
    },
    Sync {
        path: String,
    },
    /// Opens a file and keeps the file open.
    Hold {
        path: String,
    },
    /// Writes to and reads from a file that is held, whatever has become of its name.
    UseHeld {
        offset: u64,
        length: usize,
        fill: u8,
    },
    /// Closes a held file.
    Release,
}

/// `SplitMix64` (Steele, Lea, Flood 2014).
#[derive(Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn size(&mut self, end: u64) -> usize {
        usize::try_from(self.below(end)).expect("64 bits")
    }

    fn fill(&mut self) -> u8 {
        u8::try_from(self.below(255) + 1).expect("an octet")
    }

    fn path(&mut self) -> String {
        let depth = 1 + self.below(3);
        let names: Vec<&str> = (0..depth)
            .map(|_| NAMES[self.size(NAMES.len() as u64)])
            .collect();
        names.join("/")
    }

    /// Mostly short, sometimes over several chunks.
    fn length(&mut self) -> usize {
        match self.below(10) {
            0 => self.size(FAR / 2),
            1..4 => self.size(70_000),
            _ => self.size(4_000),
        }
    }

    fn offset(&mut self) -> u64 {
        let end = if self.below(4) == 0 { FAR } else { 20_000 };
        self.below(end)
    }

    fn xattr(&mut self) -> &'static str {
        ["user.one", "user.two"][self.size(2)]
    }

    /// The next call.
    pub(super) fn call(&mut self) -> Call {
        match self.below(100) {
            0..18 => Call::Write {
                path: self.path(),
                offset: self.offset(),
                length: self.length(),
                fill: self.fill(),
            },
            18..22 => Call::Append {
                path: self.path(),
                length: self.length(),
                fill: self.fill(),
            },
            22..26 => Call::Truncate {
                path: self.path(),
                length: self.offset(),
            },
            26..29 => Call::Punch {
                path: self.path(),
                offset: self.offset(),
                length: self.below(100_000) + 1,
            },
            29..31 => Call::Zero {
                path: self.path(),
                offset: self.offset(),
                length: self.below(100_000) + 1,
            },
            31..35 => Call::CopyRange {
                from: self.path(),
                to: self.path(),
                offset: self.offset(),
                length: self.length(),
            },
            35..45 => Call::Rename {
                from: self.path(),
                to: self.path(),
                flags: self.flags(),
            },
            45..49 => Call::Link {
                from: self.path(),
                to: self.path(),
            },
            49..52 => Call::Symlink {
                target: self.path(),
                path: self.path(),
            },
            52..58 => Call::Unlink { path: self.path() },
            58..66 => Call::MakeFolder { path: self.path() },
            66..69 => Call::RemoveFolder { path: self.path() },
            other => self.quiet_call(other),
        }
    }

    /// Calls that leave names and contents alone, and files that are held.
    fn quiet_call(&mut self, drawn: u64) -> Call {
        match drawn {
            69..72 => {
                let mode = 0o400 + u32::try_from(self.below(0o400)).expect("a mode");
                Call::Chmod {
                    path: self.path(),
                    mode,
                }
            }
            72..74 => Call::Touch {
                path: self.path(),
                seconds: i64::try_from(self.below(2_000_000_000)).expect("a time"),
                nanoseconds: i64::try_from(self.below(1_000_000_000)).expect("a time"),
            },
            74..76 => Call::SetXattr {
                path: self.path(),
                name: self.xattr(),
                length: self.size(100),
            },
            76..77 => Call::RemoveXattr {
                path: self.path(),
                name: self.xattr(),
            },
            77..84 => Call::Read {
                path: self.path(),
                offset: self.offset(),
                length: self.length(),
            },
            84..87 => Call::List { path: self.path() },
            87..90 => Call::Stat { path: self.path() },
            90..92 => Call::Sync { path: self.path() },
            92..95 => Call::Hold { path: self.path() },
            95..99 => Call::UseHeld {
                offset: self.offset(),
                length: self.length(),
                fill: self.fill(),
            },
            _ => Call::Release,
        }
    }

    fn flags(&mut self) -> RenameFlags {
        match self.below(5) {
            0 => RenameFlags::NOREPLACE,
            1 => RenameFlags::EXCHANGE,
            _ => RenameFlags::empty(),
        }
    }
}
