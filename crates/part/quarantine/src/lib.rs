//! What a gateway keeps about its quarantine beside the messages: the [senders](Learned) that releases have taught, and the [mark](Mark) up to which
//! recipients were told of messages.
//!
//! Not covered: the messages, which are records of queues (`vere-delivery`), and the judgement of learned senders (`vere-judge`).

mod learned;
mod mark;

pub use learned::{Entry, Learned};
pub use mark::Mark;
