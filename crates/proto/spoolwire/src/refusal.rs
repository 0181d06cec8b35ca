//! Why a node did not do as asked: per request ([`NodeRefusal`]) or for the whole connection
//! ([`CloseReason`]).

use std::fmt;

macro_rules! codes {
    (
        $(#[$doc:meta])* $name:ident: $inner:ty {
            $($(#[$vdoc:meta])* $variant:ident = $code:literal, $text:literal;)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$vdoc])* $variant,)*
        }

        impl $name {
            /// Every variant, in the order of the codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code on the wire.
            #[must_use]
            pub const fn code(self) -> $inner {
                match self {
                    $(Self::$variant => $code,)*
                }
            }

            /// Decodes a code; `None` for a code unknown to this version.
            #[must_use]
            pub const fn from_code(code: $inner) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$variant => $text,)*
                })
            }
        }
    };
}

codes! {
    /// The reason why a request changed no state. The request consumed its transaction number all
    /// the same.
    NodeRefusal: u32 {
        /// The queue has as many records or octets as it was created for. Passes when records go.
        QueueFull = 1, "queue is full";
        /// The node has no memory or disk left for new records. Passes when records go.
        NodeFull = 2, "node is full";
        /// No queue has this number.
        NoQueue = 3, "no such queue";
        /// The record does not exist in the queue.
        NoRecord = 4, "no such record";
        /// The record's number is not above all earlier numbers of the queue.
        RecordOrder = 5, "record number is not above the last one";
        /// The queue number is in use under another name, or the name under another number.
        QueueTaken = 6, "queue number or name is taken";
        /// The group has as many queues as the node allows.
        TooManyQueues = 7, "group has too many queues";
        /// A batch names a record twice.
        BatchConflict = 8, "batch names a record twice";
        /// The queue still holds records and cannot be dropped without purging them.
        QueueNotEmpty = 9, "queue is not empty";
        /// The group has as many octets as it was made for. Passes when records go.
        GroupFull = 10, "group is full";
    }
}

impl NodeRefusal {
    /// Whether the same request may succeed later, when records or queues have gone.
    #[must_use]
    pub const fn is_temporary(self) -> bool {
        matches!(
            self,
            Self::QueueFull | Self::NodeFull | Self::GroupFull | Self::TooManyQueues
        )
    }
}

codes! {
    /// Why a node ends a connection.
    CloseReason: u32 {
        /// Another connection of the same owner took over.
        TakenOver = 1, "taken over by another connection";
        /// The proof does not match the challenge.
        NotAuthenticated = 2, "authentication failed";
        /// The protocol version is not served here.
        Version = 3, "protocol version is not served";
        /// A frame breaks the protocol: length, operation, layout.
        Malformed = 4, "malformed frame";
        /// A frame's checksum is wrong: it was damaged on the way.
        Checksum = 5, "frame checksum is wrong";
        /// A transaction number is not the successor of the last number.
        TxnGap = 6, "transaction number leaves a gap";
        /// A frame is longer than the node accepts.
        TooLong = 7, "frame is too long";
        /// No frame arrived in time.
        Timeout = 8, "timed out";
        /// The number of connections to the node is at the limit.
        TooMany = 9, "too many connections";
        /// The node's log failed; the node sends no further acknowledgements.
        LogFailed = 10, "log failed";
        /// The node is stopping.
        ShuttingDown = 11, "node is shutting down";
        /// A reader asked for an unknown group.
        NoGroup = 12, "no such group";
        /// The node's log has no room left, not even for ending records. Passes when there is.
        LogFull = 13, "no room left for the log";
        /// An owner of a later epoch has the group, or had it.
        Fenced = 14, "fenced by a later owner";
        /// The node keeps no logs.
        NoLog = 15, "node keeps no logs";
        /// There is no room for what is being copied to the node. Passes when records go.
        NoRoom = 16, "no room for what is copied";
        /// The peer's account is not allowed to create groups on this node.
        MayNotMake = 17, "the account may not make groups there";
        /// The peer's account did not make the group, and may not adopt it.
        MayNotOwn = 18, "the account may not own the group";
        /// The peer's account did not make the group, and may not read it.
        MayNotRead = 19, "the account may not read the group";
        /// The peer's account is not among the readers of the queue.
        MayNotReadQueue = 20, "the account may not read the queue";
        /// The number of groups is at the limit of the node, or of the account.
        TooManyGroups = 21, "the node has as many groups as it may, or as one account may make there";
        /// The group was ended.
        Ended = 22, "the group was ended";
        /// The group to be ended holds records.
        NotEmpty = 23, "the group holds records";
    }
}

impl CloseReason {
    /// Whether the refusal concerns the rights of the peer's account.
    #[must_use]
    pub const fn is_denial(self) -> bool {
        matches!(
            self,
            Self::MayNotMake | Self::MayNotOwn | Self::MayNotRead | Self::MayNotReadQueue
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_back() {
        for &refusal in NodeRefusal::ALL {
            assert_eq!(NodeRefusal::from_code(refusal.code()), Some(refusal));
        }
        for &reason in CloseReason::ALL {
            assert_eq!(CloseReason::from_code(reason.code()), Some(reason));
        }
        assert_eq!(NodeRefusal::from_code(0), None);
        assert_eq!(CloseReason::from_code(99), None);
    }
}
