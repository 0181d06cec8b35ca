//! Tokens (X.225 clause 8.3; X.215 clause 7.6): who may send, synchronize and begin activities.

/// A token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// The data token.
    Data,
    /// The synchronize-minor token.
    SynchronizeMinor,
    /// The major/activity token.
    MajorActivity,
    /// The release token.
    Release,
}

impl Token {
    /// The place of the token in a token item.
    const fn bit(self) -> u8 {
        match self {
            Self::Data => 0x01,
            Self::SynchronizeMinor => 0x04,
            Self::MajorActivity => 0x10,
            Self::Release => 0x40,
        }
    }
}

/// A set of tokens, as in a token item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens(u8);

impl Tokens {
    /// No token.
    pub const NONE: Self = Self(0);
    /// The data token.
    pub const DATA: Self = Self(Token::Data.bit());
    /// The tokens that half-duplex, minor synchronize and activity management have.
    pub const TURN: Self = Self(0x15);

    /// The tokens of a token item.
    #[must_use]
    pub const fn from_item(item: u8) -> Self {
        Self(item & 0x55)
    }

    /// The token item.
    #[must_use]
    pub const fn item(self) -> u8 {
        self.0
    }

    /// Whether the token is in the set.
    #[must_use]
    pub const fn has(self, token: Token) -> bool {
        self.0 & token.bit() != 0
    }

    /// Whether all tokens of `other` are in the set.
    #[must_use]
    pub const fn has_all(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether there is no token.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    pub(super) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// The tokens of a session as one side sees them: X.225 Annex A clause A.5.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Position {
    /// Tokens that the functional units have: AV.
    pub(super) available: Tokens,
    /// Available tokens on this side: OWNED.
    pub(super) owned: Tokens,
}

impl Position {
    /// I(tk): the token is here, or does not exist.
    pub(super) const fn may(self, token: Token) -> bool {
        !self.available.has(token) || self.owned.has(token)
    }

    /// A(tk): the token is there, or does not exist.
    pub(super) const fn peer_may(self, token: Token) -> bool {
        !self.available.has(token) || !self.owned.has(token)
    }

    /// II(tk): the token exists and is here.
    pub(super) const fn holds(self, token: Token) -> bool {
        self.available.has(token) && self.owned.has(token)
    }

    /// AA(tk): the token exists and is there.
    pub(super) const fn peer_holds(self, token: Token) -> bool {
        self.available.has(token) && !self.owned.has(token)
    }

    /// ALL(I, tk-dom): every token is here.
    pub(super) const fn all_here(self) -> bool {
        self.owned.has_all(self.available)
    }

    /// ALL(A, tk-dom): every token is there.
    pub(super) const fn all_there(self) -> bool {
        self.owned.is_none()
    }
}
