//! The layers of a sandbox, and which of them hold.

use std::fmt;

use nix::errno::Errno;

/// A layer of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Layer {
    /// No dump of memory, no further process, a number of descriptors (setrlimit(2)).
    Limits = 0,
    /// A user that owns nothing. Only root can change its user.
    User = 1,
    /// No privilege by executing a file (`PR_SET_NO_NEW_PRIVS`).
    Privileges = 2,
    /// No file can be opened, made or removed (landlock(7), Linux 5.13).
    Files = 3,
    /// No TCP port can be bound or connected to (landlock(7), Linux 6.7).
    Ports = 4,
    /// No process outside can be signalled or reached by an abstract socket (landlock(7), Linux 6.12).
    Scope = 5,
    /// No system call outside the list (seccomp(2)).
    Calls = 6,
}

impl Layer {
    /// All layers, from the outermost.
    pub const ALL: [Self; 7] = [
        Self::Limits,
        Self::User,
        Self::Privileges,
        Self::Files,
        Self::Ports,
        Self::Scope,
        Self::Calls,
    ];

    /// The name in logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Limits => "limits",
            Self::User => "user",
            Self::Privileges => "privileges",
            Self::Files => "files",
            Self::Ports => "ports",
            Self::Scope => "scope",
            Self::Calls => "calls",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layers(u8);

impl Layers {
    /// The layers of an octet that [`Layers::octet`] returned. Unknown bits are ignored.
    #[must_use]
    pub fn of_octet(octet: u8) -> Self {
        Layer::ALL
            .into_iter()
            .filter(|layer| octet & layer.bit() != 0)
            .collect()
    }

    /// A bit for each layer, in the order of [`Layer::ALL`], from the lowest.
    #[must_use]
    pub const fn octet(self) -> u8 {
        self.0
    }

    /// Whether the set has a layer.
    #[must_use]
    pub const fn contains(self, layer: Layer) -> bool {
        self.0 & layer.bit() != 0
    }

    /// The number of layers.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether all layers are there that an ordinary user can have: all but another user.
    #[must_use]
    pub fn is_whole(self) -> bool {
        let missing = self.missing();
        missing.count() == u32::from(missing.contains(Layer::User))
    }

    /// The layers that the set lacks.
    #[must_use]
    pub fn missing(self) -> Self {
        Layer::ALL
            .into_iter()
            .filter(|layer| !self.contains(*layer))
            .collect()
    }
}

impl FromIterator<Layer> for Layers {
    fn from_iter<I: IntoIterator<Item = Layer>>(layers: I) -> Self {
        Self(layers.into_iter().fold(0, |bits, layer| bits | layer.bit()))
    }
}

/// The names, with commas between; `none` for the empty set.
impl fmt::Display for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = Layer::ALL.into_iter().filter(|layer| self.contains(*layer));
        let names: Vec<_> = held.map(Layer::name).collect();
        match names.is_empty() {
            true => f.write_str("none"),
            false => f.write_str(&names.join(", ")),
        }
    }
}

/// Why a layer is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// The kernel refused.
    Refused(Errno),
    /// The kernel lacks the layer, or the part of landlock that the layer needs.
    Unsupported,
    /// Only root can change its user.
    NotRoot,
    /// The library that prepares the layer failed.
    Failed(String),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(errno) => write!(f, "the kernel refused: {}", errno.desc()),
            Self::Unsupported => f.write_str("the kernel does not support it"),
            Self::NotRoot => f.write_str("only root can change its user"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

/// Which layers hold, and why the others do not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    /// The layers that hold.
    pub held: Layers,
    /// The others, each with a reason.
    pub missing: Vec<(Layer, Missing)>,
}

impl Standing {
    /// Whether all layers hold that an ordinary user can have.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.held.is_whole()
    }

    /// Records whether a layer holds.
    pub(super) fn note(&mut self, layer: Layer, result: Result<(), Missing>) {
        match result {
            Ok(()) => self.held.0 |= layer.bit(),
            Err(why) => self.missing.push((layer, why)),
        }
    }
}

/// `held: limits, files; missing: calls (the kernel does not support it)`
impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "held: {}", self.held)?;
        for (number, (layer, why)) in self.missing.iter().enumerate() {
            let before = if number == 0 { "; missing:" } else { "," };
            write!(f, "{before} {} ({why})", layer.name())?;
        }
        Ok(())
    }
}
