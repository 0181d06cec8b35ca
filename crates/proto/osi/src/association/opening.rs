//! Association establishment by the initiator.

use bytes::Bytes;
use vere_ber::{External, Fault};

use super::phase::{Agreement, Phase};
use super::{
    AbortCause, Association, AssociationError, Event, Mode, OpenRequest, Opened, Rejected,
    Rejection,
};
use crate::acse::{Aare, Aarq, Apdu, AssociateResult, Diagnostic};
use crate::names;
use crate::presentation::{
    Accept, Connect, ContextDefinition, Contexts, NormalConnect, Reject, UserData,
};
use crate::rtse::{AbortReason, ConnectionData, DialogueMode, Rtoac, Rtorj, Rtorq};
use crate::session::{self, Connecting, RefuseReason};
use crate::transport::TransportError;

/// The first presentation contexts: ACSE, RTSE; those of the APDUs follow, odd as X.226 has those of the initiator.
pub(super) const ACSE_CONTEXT: i64 = 1;
pub(super) const RTSE_CONTEXT: i64 = 3;
const APDU_CONTEXT: i64 = 5;

impl Association {
    /// RT-OPEN request. `Opened`, `Rejected` or `Aborted` follows.
    ///
    /// # Errors
    ///
    /// [`AssociationError`] for an association that was opened before, and for user data that do not fit the session.
    pub fn open(&mut self, request: OpenRequest) -> Result<(), AssociationError> {
        if !matches!(self.phase, Phase::Idle) || self.responder.is_some() {
            return Err(AssociationError::Phase("RT-OPEN request"));
        }
        let contexts = contexts(&request);
        self.session.offer_versions(match request.mode {
            Mode::Normal => request.session_versions,
            Mode::X410(_) => session::version::ONE,
        });
        let connecting = Connecting {
            identifier: request
                .identifier
                .to_session(matches!(request.mode, Mode::X410(_))),
            calling: request.calling.session.clone(),
            called: request.called.session.clone(),
            responder_has_tokens: request.responder_has_turn,
            user_data: connect(&request, &contexts).write().into_bytes(),
        };
        self.session.connect(connecting)?;
        let transport = (&request.calling.transport, &request.called.transport);
        self.transport
            .connect(transport.0.clone(), transport.1.clone());
        self.phase = Phase::Opening(Box::new(request), contexts);
        Ok(())
    }

    /// S-CONNECT confirm.
    pub(super) fn confirmed(&mut self, accept: &session::Accept) {
        let phase = std::mem::replace(&mut self.phase, Phase::Ended);
        let Phase::Opening(request, contexts) = phase else {
            return self.protocol_error();
        };
        match opened(&request, &contexts, &accept.user_data) {
            Ok((agreement, mut opened)) => {
                opened.turn = self.session.has_tokens();
                self.phase = Phase::Open(Box::new(agreement));
                self.tell(Event::Opened(Box::new(opened)));
            }
            Err(_) => {
                self.phase = Phase::Opening(request, contexts);
                self.session.abort(Bytes::new());
                self.end(AbortCause::Ours(AbortReason::ProtocolError));
            }
        }
    }

    /// S-CONNECT confirm, refused.
    pub(super) fn refused(&mut self, refuse: session::Refuse) {
        let phase = std::mem::replace(&mut self.phase, Phase::Ended);
        let Phase::Opening(request, _) = phase else {
            return;
        };
        let transient = matches!(
            refuse.reason,
            RefuseReason::UserCongestion | RefuseReason::ProviderCongestion
        );
        let said = match refuse.user_data.is_empty() {
            true => None,
            false => rejected(&request, &refuse.user_data).ok(),
        };
        self.finish();
        self.tell(Event::Rejected(said.unwrap_or(Rejected {
            by: Rejection::Session(refuse.reason),
            transient,
            user_data: None,
        })));
    }

    /// The transport connection has ended before the association was open.
    pub(super) fn reject_locally(&mut self, error: TransportError) {
        self.finish();
        self.tell(Event::Rejected(Rejected {
            by: Rejection::Transport(error),
            transient: true,
            user_data: None,
        }));
    }
}

fn contexts(request: &OpenRequest) -> Vec<ContextDefinition> {
    let profile = &request.profile;
    let mut contexts = vec![
        ContextDefinition::basic(ACSE_CONTEXT, names::ACSE),
        ContextDefinition::basic(RTSE_CONTEXT, profile.rtse.clone()),
    ];
    let others = profile
        .apdus
        .iter()
        .filter(|syntax| **syntax != profile.rtse);
    for (syntax, identifier) in others.zip((APDU_CONTEXT..).step_by(2)) {
        contexts.push(ContextDefinition::basic(identifier, syntax.clone()));
    }
    contexts
}

fn connect(request: &OpenRequest, contexts: &[ContextDefinition]) -> Connect {
    let rtorq = Rtorq {
        checkpoint_size: request.checkpoint_size,
        window_size: request.window_size,
        dialogue_mode: request.dialogue_mode,
        connection_data: request.data.clone(),
        application_protocol: match request.mode {
            Mode::Normal => None,
            Mode::X410(protocol) => Some(protocol),
        },
    };
    if let Mode::X410(_) = request.mode {
        return Connect::X410(rtorq.components());
    }
    let aarq = Apdu::Aarq(Aarq {
        application_context: request.profile.application_context.clone(),
        called: request.called_title.clone(),
        calling: request.calling_title.clone(),
        authentication: request.authentication.clone(),
        user_information: vec![External::of_context(RTSE_CONTEXT, rtorq.write())],
    });
    Connect::Normal(NormalConnect {
        calling: request.calling.presentation.clone(),
        called: request.called.presentation.clone(),
        contexts: contexts.to_vec(),
        user_data: Some(UserData::one(ACSE_CONTEXT, aarq.write().into_bytes())),
    })
}

/// The value of RTSE among the user information: that of the context of RTSE, or the first if none names the context.
pub(super) fn rtse_value(information: &[External], context: i64) -> Result<Bytes, Fault> {
    let named = |external: &&External| external.indirect_reference == Some(context);
    let external = information.iter().find(named).or(information.first());
    let value = external.and_then(|external| external.encoding.value());
    value
        .cloned()
        .ok_or(Fault::Invalid("user information of RTSE"))
}

fn aare(user_data: Option<&UserData>) -> Result<Aare, Fault> {
    let value = user_data.and_then(|data| data.value(ACSE_CONTEXT, Some(ACSE_CONTEXT)));
    match Apdu::read(&value.ok_or(Fault::Invalid("a value of ACSE"))?)? {
        Apdu::Aare(aare) => Ok(aare),
        _ => Err(Fault::Invalid("an AARE")),
    }
}

fn opened(
    request: &OpenRequest,
    offered: &[ContextDefinition],
    user_data: &Bytes,
) -> Result<(Agreement, Opened), Fault> {
    let (contexts, aare, rtoac) = match (request.mode, Accept::read(user_data)?) {
        (Mode::X410(_), Accept::X410(components)) => (
            Contexts::default(),
            None,
            Rtoac::from_components(&components)?,
        ),
        (Mode::Normal, Accept::Normal(accept)) => {
            let contexts = Contexts::confirmed(offered, &accept.results)?;
            let aare = aare(accept.user_data.as_ref())?;
            if aare.result != AssociateResult::Accepted {
                return Err(Fault::Invalid("a result that accepts"));
            }
            let rtoac = Rtoac::read(&rtse_value(&aare.user_information, RTSE_CONTEXT)?)?;
            (contexts, Some(aare), rtoac)
        }
        _ => return Err(Fault::Invalid("the mode of the request")),
    };
    let both = contexts
        .of(&names::ACSE)
        .zip(contexts.of(&request.profile.rtse));
    if request.mode == Mode::Normal && both.is_none() {
        return Err(Fault::Invalid("the contexts of ACSE and RTSE"));
    }
    let (acse, rtse) = both.unwrap_or((0, 0));
    let agreement = Agreement {
        mode: request.mode,
        contexts,
        acse,
        rtse,
        monologue: request.dialogue_mode == DialogueMode::Monologue,
        segment: u64::from(rtoac.checkpoint_size).saturating_mul(1024),
        window: rtoac.window_size.max(1),
        identifier: request.identifier.clone(),
    };
    Ok((agreement, confirm(rtoac, aare)))
}

fn confirm(rtoac: Rtoac, aare: Option<Aare>) -> Opened {
    let (recovered, user_data) = match rtoac.connection_data {
        ConnectionData::Open(user_data) => (false, user_data),
        ConnectionData::Recover(_) => (true, None),
    };
    let (title, authentication) = aare
        .map(|aare| (aare.responding, aare.authentication))
        .unwrap_or_default();
    Opened {
        turn: false,
        checkpoint_size: rtoac.checkpoint_size,
        window_size: rtoac.window_size,
        title,
        authentication,
        recovered,
        user_data,
    }
}

fn rejected(request: &OpenRequest, user_data: &Bytes) -> Result<Rejected, Fault> {
    match (request.mode, Reject::read(user_data)?) {
        (Mode::X410(_), Reject::X410(components)) => {
            let rtorj = Rtorj::from_components(&components)?;
            let reason = rtorj.reason.unwrap_or(crate::rtse::RefuseReason::RtsBusy);
            Ok(Rejected {
                by: Rejection::ReliableTransfer(reason),
                transient: reason == crate::rtse::RefuseReason::RtsBusy,
                user_data: None,
            })
        }
        (Mode::Normal, Reject::Normal(reject)) => match (reject.reason, reject.user_data) {
            (Some(reason), None) => Ok(Rejected {
                by: Rejection::Presentation(reason),
                transient: reason == crate::presentation::RejectReason::TemporaryCongestion,
                user_data: None,
            }),
            (_, user_data) => rejected_by_association(&aare(user_data.as_ref())?),
        },
        _ => Err(Fault::Invalid("the mode of the request")),
    }
}

fn rejected_by_association(aare: &Aare) -> Result<Rejected, Fault> {
    let user_data = match rtse_value(&aare.user_information, RTSE_CONTEXT) {
        Ok(value) => Rtorj::read(&value)?.user_data,
        Err(_) => None,
    };
    Ok(Rejected {
        by: Rejection::Association(match aare.diagnostic {
            Diagnostic::User(diagnostic) => Diagnostic::User(diagnostic),
            provider @ Diagnostic::Provider(_) => provider,
        }),
        transient: aare.result == AssociateResult::RejectedTransient,
        user_data,
    })
}
