//! The states of a session protocol machine (X.225 Annex A, Table A.2).

/// The states. Those of functional units that are not supported, and of reuse (STA 01A), are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// STA 01: idle, no transport connection.
    Sta01,
    /// STA 01B: waits for the T-CONNECT confirm.
    Sta01B,
    /// STA 01C: idle, transport connected.
    Sta01C,
    /// STA 01D: waits for the CONNECT DATA OVERFLOW SPDU.
    Sta01D,
    /// STA 02A: waits for the ACCEPT SPDU.
    Sta02A,
    /// STA 02B: waits for the OVERFLOW ACCEPT SPDU.
    Sta02B,
    /// STA 03: waits for the DISCONNECT SPDU.
    Sta03,
    /// STA 04B: waits for the ACTIVITY END ACK SPDU.
    Sta04B,
    /// STA 05B: waits for the ACTIVITY INTERRUPT ACK SPDU.
    Sta05B,
    /// STA 05C: waits for the ACTIVITY DISCARD ACK SPDU.
    Sta05C,
    /// STA 08: waits for the S-CONNECT response.
    Sta08,
    /// STA 09: waits for the S-RELEASE response.
    Sta09,
    /// STA 10B: waits for the S-ACTIVITY-END response.
    Sta10B,
    /// STA 11B: waits for the S-ACTIVITY-INTERRUPT response.
    Sta11B,
    /// STA 11C: waits for the S-ACTIVITY-DISCARD response.
    Sta11C,
    /// STA 16: waits for the T-DISCONNECT indication.
    Sta16,
    /// STA 18: waits for the GIVE TOKENS ACK SPDU.
    Sta18,
    /// STA 19: waits for a recovery request or SPDU, after an EXCEPTION DATA SPDU was sent.
    Sta19,
    /// STA 20: waits for a recovery SPDU or request, after an exception was reported.
    Sta20,
    /// STA 713: data transfer.
    Sta713,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 20] = [
        Self::Sta01,
        Self::Sta01B,
        Self::Sta01C,
        Self::Sta01D,
        Self::Sta02A,
        Self::Sta02B,
        Self::Sta03,
        Self::Sta04B,
        Self::Sta05B,
        Self::Sta05C,
        Self::Sta08,
        Self::Sta09,
        Self::Sta10B,
        Self::Sta11B,
        Self::Sta11C,
        Self::Sta16,
        Self::Sta18,
        Self::Sta19,
        Self::Sta20,
        Self::Sta713,
    ];

    /// Whether a session connection is established: user data and tokens have a meaning.
    #[must_use]
    pub const fn is_connected(self) -> bool {
        matches!(
            self,
            Self::Sta03
                | Self::Sta04B
                | Self::Sta05B
                | Self::Sta05C
                | Self::Sta09
                | Self::Sta10B
                | Self::Sta11B
                | Self::Sta11C
                | Self::Sta18
                | Self::Sta19
                | Self::Sta20
                | Self::Sta713
        )
    }
}

/// The kinds of SPDUs as X.225 abbreviates them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(
    clippy::upper_case_acronyms,
    reason = "the abbreviations of X.225 Table A.1"
)]
pub enum Incoming {
    /// CONNECT.
    CN,
    /// CONNECT DATA OVERFLOW.
    CDO,
    /// OVERFLOW ACCEPT.
    OA,
    /// ACCEPT.
    AC,
    /// REFUSE.
    RF,
    /// FINISH.
    FN,
    /// DISCONNECT.
    DN,
    /// NOT FINISHED.
    NF,
    /// ABORT.
    AB,
    /// ABORT ACCEPT.
    AA,
    /// DATA TRANSFER.
    DT,
    /// GIVE TOKENS with a token item.
    GT,
    /// PLEASE TOKENS with a token item.
    PT,
    /// GIVE TOKENS CONFIRM.
    GTC,
    /// GIVE TOKENS ACK.
    GTA,
    /// MINOR SYNC POINT.
    MIP,
    /// MINOR SYNC ACK.
    MIA,
    /// ACTIVITY START.
    AS,
    /// ACTIVITY RESUME.
    AR,
    /// ACTIVITY INTERRUPT.
    AI,
    /// ACTIVITY INTERRUPT ACK.
    AIA,
    /// ACTIVITY DISCARD.
    AD,
    /// ACTIVITY DISCARD ACK.
    ADA,
    /// ACTIVITY END.
    AE,
    /// ACTIVITY END ACK.
    AEA,
    /// EXCEPTION REPORT.
    ER,
    /// EXCEPTION DATA.
    ED,
}

impl Incoming {
    /// Category 0 may stand before one SPDU of category 2, category 1 stands alone, category 2 never does
    /// (X.225 clause 6.3.7).
    #[must_use]
    pub const fn category(self) -> u8 {
        match self {
            Self::GT | Self::PT => 0,
            Self::CN
            | Self::CDO
            | Self::OA
            | Self::AC
            | Self::RF
            | Self::FN
            | Self::DN
            | Self::NF
            | Self::AB
            | Self::AA
            | Self::GTC
            | Self::GTA => 1,
            _ => 2,
        }
    }
}
