//! The states in which each command may run, and the commands that need no host.

use crate::command::Command;

use super::question::{MailboxChange, Question};
use super::{About, Phase, Server, Session};

/// The least session state that a command needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// The client has not logged in.
    Stranger,
    Login,
    Mailbox,
}

fn needs(command: &Command) -> Needs {
    match command {
        Command::Capability | Command::Noop | Command::Logout | Command::Id(_) => Needs::Nothing,
        Command::StartTls | Command::Authenticate { .. } | Command::Login { .. } => Needs::Stranger,
        Command::Check
        | Command::Close
        | Command::Unselect
        | Command::Expunge(_)
        | Command::Search(_)
        | Command::Fetch(_)
        | Command::Store(_)
        | Command::Copy { .. } => Needs::Mailbox,
        _ => Needs::Login,
    }
}

impl Server {
    pub(super) fn command(&mut self, tag: String, command: Command, text: Vec<u8>, more: bool) {
        let refused = match (needs(&command), &self.session) {
            (Needs::Nothing, _)
            | (Needs::Stranger, Session::NotAuthenticated)
            | (Needs::Login, Session::Authenticated { .. } | Session::Selected { .. })
            | (Needs::Mailbox, Session::Selected { .. }) => None,
            (Needs::Stranger, _) => Some("already logged in"),
            (_, Session::NotAuthenticated) => Some("log in first"),
            _ => Some("select a mailbox first"),
        };
        match refused {
            Some(why) => self.bad(Some(&tag), why),
            None => self.allowed(tag, command, text, more),
        }
    }

    fn allowed(&mut self, tag: String, command: Command, text: Vec<u8>, more: bool) {
        match command {
            Command::Capability => {
                let line = format!("* CAPABILITY {}", self.capabilities());
                self.output.line(&line);
                self.complete(tag, "OK done");
            }
            Command::Noop | Command::Check => {
                // NOOP reports every earlier change, including changes that this session has not heard of yet.
                if let Session::Selected { mailbox, .. } = &mut self.session {
                    mailbox.dirty = true;
                }
                self.complete(tag, "OK done");
            }
            Command::Logout => self.logout(&tag),
            Command::Id(_) => {
                self.output.line("* ID (\"name\" \"Veredarius\")");
                self.complete(tag, "OK done");
            }
            Command::StartTls => self.starttls(&tag, more),
            Command::Authenticate { mechanism, initial } => {
                self.authenticate(tag, &mechanism, initial.as_ref());
            }
            Command::Login { user, password } => self.login(tag, user, password),
            Command::Enable(names) => self.enable(tag, &names),
            Command::Namespace => {
                self.output.line("* NAMESPACE ((\"\" \"/\")) NIL NIL");
                self.complete(tag, "OK done");
            }
            Command::Idle => {
                self.output.line("+ idling");
                // Earlier changes are reported now: the client does not ask again.
                self.idle(tag);
            }
            Command::Append(append) => self.append(tag, append, text),
            Command::SetQuota => {
                self.complete(tag, "NO [NOPERM] quotas are set by the administrator")
            }
            Command::GetQuota(root) if root.is_empty() => {
                self.ask(Question::Quota, About::Quota { tag, mailbox: None });
            }
            Command::GetQuota(_) => self.complete(tag, "NO [NONEXISTENT] no such quota root"),
            Command::GetQuotaRoot(mailbox) => {
                let mailbox = Some(mailbox);
                self.ask(Question::Quota, About::Quota { tag, mailbox });
            }
            other => self.of_mailboxes(tag, other),
        }
    }

    fn of_mailboxes(&mut self, tag: String, command: Command) {
        let change = |change: MailboxChange| Question::Change(change);
        match command {
            Command::Select(select) => self.select(tag, select),
            Command::Create {
                mailbox,
                special_use,
            } => {
                let special_use = special_use.into_iter().next();
                let question = change(MailboxChange::Create {
                    mailbox,
                    special_use,
                });
                self.ask(
                    question,
                    About::Change {
                        tag,
                        name: "created",
                    },
                );
            }
            Command::Delete(mailbox) => {
                let question = change(MailboxChange::Delete(mailbox));
                self.ask(
                    question,
                    About::Change {
                        tag,
                        name: "deleted",
                    },
                );
            }
            Command::Rename { from, to } => {
                let question = change(MailboxChange::Rename { from, to });
                self.ask(
                    question,
                    About::Change {
                        tag,
                        name: "renamed",
                    },
                );
            }
            Command::Subscribe(mailbox) => self.subscribe(tag, mailbox, true),
            Command::Unsubscribe(mailbox) => self.subscribe(tag, mailbox, false),
            Command::List(list) => self.list(tag, list),
            Command::Lsub { reference, pattern } => self.lsub(tag, &reference, &pattern),
            Command::Status { mailbox, items } => self.status(tag, mailbox, items),
            other => self.of_messages(tag, other),
        }
    }

    fn subscribe(&mut self, tag: String, mailbox: String, subscribed: bool) {
        let question = Question::Change(MailboxChange::Subscribe {
            mailbox,
            subscribed,
        });
        self.ask(question, About::Change { tag, name: "done" });
    }

    fn of_messages(&mut self, tag: String, command: Command) {
        match command {
            Command::Close => self.close_mailbox(tag),
            Command::Unselect => {
                self.deselect();
                self.complete(tag, "OK mailbox closed");
            }
            Command::Expunge(set) => self.expunge(tag, set.as_ref()),
            Command::Search(search) => self.search(tag, *search),
            Command::Fetch(fetch) => self.fetch(tag, fetch),
            Command::Store(store) => self.store(tag, store),
            Command::Copy {
                uid,
                set,
                mailbox,
                remove,
            } => {
                self.copy(tag, uid, &set, mailbox, remove);
            }
            _ => self.bad(Some(&tag), "unknown command"),
        }
    }

    fn logout(&mut self, tag: &str) {
        self.output.line("* BYE logging out");
        self.output.line(&format!("{tag} OK goodbye"));
        self.close();
    }

    fn starttls(&mut self, tag: &str, more: bool) {
        if self.peer.tls || !self.peer.tls_available {
            return self.bad(Some(tag), "TLS cannot start here");
        }
        if more {
            return self.bye("no command may follow STARTTLS");
        }
        self.output.line(&format!("{tag} OK begin TLS"));
        self.phase = Phase::StartTls;
    }

    /// RFC 5161; RFC 9051 section 6.3.1.
    fn enable(&mut self, tag: String, names: &[String]) {
        let mut line = String::from("* ENABLED");
        for name in names {
            match name.as_str() {
                "IMAP4REV2" => self.enabled.rev2 = true,
                "CONDSTORE" => self.want_mod_seqs(),
                "QRESYNC" => {
                    self.enabled.qresync = true;
                    self.want_mod_seqs();
                }
                _ => continue,
            }
            line.push(' ');
            line.push_str(if name == "IMAP4REV2" {
                "IMAP4rev2"
            } else {
                name
            });
        }
        self.output.line(&line);
        self.complete(tag, "OK done");
    }

    /// Enables reports of mod-sequences; the client gets the present mod-sequence of the open mailbox (RFC 7162
    /// section 3.1).
    pub(super) fn want_mod_seqs(&mut self) {
        let before = std::mem::replace(&mut self.enabled.condstore, true);
        if let Some(number) = self
            .selected()
            .map(|selected| selected.mod_seq)
            .filter(|_| !before)
        {
            self.output
                .line(&format!("* OK [HIGHESTMODSEQ {number}] the last change"));
        }
    }
}
