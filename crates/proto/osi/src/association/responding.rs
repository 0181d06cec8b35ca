//! Association establishment by the responder.

use bytes::Bytes;
use vere_ber::{External, Fault};

use super::opening::rtse_value;
use super::phase::{Agreement, Indicated, Phase};
use super::{
    AcceptRequest, Addresses, Association, AssociationError, Event, Mode, OpenIndication, Profile,
    RejectRequest,
};
use crate::acse::{
    Aare, Aarq, Apdu, AssociateResult, Authentication, Diagnostic, EntityTitle, UserDiagnostic,
};
use crate::names;
use crate::presentation::{
    Accept, Connect, Contexts, Negotiation, NormalAccept, NormalConnect, NormalReject, Reject,
    RejectReason, UserData,
};
use crate::rtse::{ConnectionData, DialogueMode, Rtoac, Rtorj, Rtorq, SessionConnectionIdentifier};
use crate::session::{self, Accepting, RefuseReason};
use crate::transport::Connection;

impl Association {
    /// Remembers the transport selectors for the indication.
    pub(super) fn set_addresses(&mut self, request: &Connection) {
        self.transport_addresses = (request.calling.clone(), request.called.clone());
    }

    /// S-CONNECT indication.
    pub(super) fn requested(&mut self, connect: session::Connect) {
        let Some(config) = &self.responder else {
            return self.protocol_error();
        };
        let called = connect.called.clone().unwrap_or_default();
        let known = &config.session_selectors;
        if !known.is_empty() && !known.contains(&called) {
            return self.refuse_session(RefuseReason::SelectorUnknown, Bytes::new());
        }
        let profile = config.profile.clone();
        match Connect::read(&connect.user_data) {
            Ok(Connect::X410(components)) => match Rtorq::from_components(&components) {
                Ok(rtorq) => self.indicate_x410(connect, rtorq),
                Err(_) => self.refuse_x410(crate::rtse::RefuseReason::ValidationFailure),
            },
            Ok(Connect::Normal(normal)) => self.requested_normal(connect, &profile, &normal),
            Err(_) => {
                let reject = NormalReject {
                    reason: Some(RejectReason::UserDataNotReadable),
                    ..NormalReject::default()
                };
                let reject = Reject::Normal(reject).write().into_bytes();
                self.refuse_session(RefuseReason::UserData, reject);
            }
        }
    }

    /// Refuses without a question to the host, which never learns of the association.
    fn refuse_session(&mut self, reason: RefuseReason, user_data: Bytes) {
        // The state is STA 08, so the session refuses.
        let _refused = self.session.refuse(reason, user_data);
        self.finish();
    }

    fn refuse_x410(&mut self, reason: crate::rtse::RefuseReason) {
        let rtorj = Rtorj {
            reason: Some(reason),
            user_data: None,
        };
        let reject = Reject::X410(rtorj.components()).write().into_bytes();
        self.refuse_session(RefuseReason::UserData, reject);
    }

    fn requested_normal(
        &mut self,
        connect: session::Connect,
        profile: &Profile,
        normal: &NormalConnect,
    ) {
        let mut supported = vec![names::ACSE, profile.rtse.clone()];
        supported.extend(profile.apdus.iter().cloned());
        let negotiation = Contexts::negotiate(&normal.contexts, &supported);
        match association(&negotiation, profile, normal) {
            Ok((aarq, rtorq, acse, rtse)) => {
                let indicated = Indicated {
                    mode: Mode::Normal,
                    negotiation,
                    acse,
                    rtse,
                    application_context: aarq.application_context.clone(),
                    rtorq,
                    identifier: identifier(&connect),
                    session_identifier: connect.identifier.clone(),
                    called_session: connect.called.clone(),
                };
                match aarq.application_context == profile.application_context {
                    true => self.indicate(&connect, Some((aarq, normal)), indicated),
                    false => self.refuse_context(&indicated),
                }
            }
            Err(_) => {
                let reject = NormalReject {
                    results: negotiation.results,
                    reason: Some(RejectReason::NotSpecified),
                    ..NormalReject::default()
                };
                let reject = Reject::Normal(reject).write().into_bytes();
                self.refuse_session(RefuseReason::UserData, reject);
            }
        }
    }

    /// The application context is not served here.
    fn refuse_context(&mut self, indicated: &Indicated) {
        let request = RejectRequest {
            diagnostic: UserDiagnostic::ApplicationContextNotSupported,
            transient: false,
            ..RejectRequest::because(crate::rtse::RefuseReason::ValidationFailure)
        };
        let reject = reject(indicated, &request).write().into_bytes();
        self.refuse_session(RefuseReason::UserData, reject);
    }

    fn indicate_x410(&mut self, connect: session::Connect, rtorq: Rtorq) {
        // The protocol of the first recommendation is that of X.410 requests that name none.
        let protocol = rtorq.application_protocol.unwrap_or(1);
        let indicated = Indicated {
            mode: Mode::X410(protocol),
            negotiation: Contexts::negotiate(&[], &[]),
            acse: 0,
            rtse: 0,
            application_context: names::MTS_TRANSFER,
            rtorq,
            identifier: identifier(&connect),
            session_identifier: connect.identifier.clone(),
            called_session: connect.called.clone(),
        };
        self.indicate(&connect, None, indicated);
    }

    fn indicate(
        &mut self,
        connect: &session::Connect,
        normal: Option<(Aarq, &NormalConnect)>,
        indicated: Indicated,
    ) {
        let (calling, called) = self.transport_addresses.clone();
        let presentation = normal
            .as_ref()
            .map(|(_, normal)| (normal.calling.clone(), normal.called.clone()));
        let (calling_presentation, called_presentation) = presentation.unwrap_or_default();
        let titles = normal.map(|(aarq, _)| (aarq.calling, aarq.called, aarq.authentication));
        let (calling_title, called_title, authentication): (
            EntityTitle,
            EntityTitle,
            Authentication,
        ) = titles.unwrap_or_default();
        let rtorq = &indicated.rtorq;
        let indication = OpenIndication {
            mode: indicated.mode,
            calling: Addresses {
                transport: calling,
                session: connect.calling.clone(),
                presentation: calling_presentation,
            },
            called: Addresses {
                transport: called,
                session: connect.called.clone(),
                presentation: called_presentation,
            },
            calling_title,
            called_title,
            authentication,
            identifier: SessionConnectionIdentifier::from_session(&connect.identifier),
            dialogue_mode: rtorq.dialogue_mode,
            turn: connect
                .item
                .token_setting
                .is_some_and(|setting| setting & 0x01 != 0),
            checkpoint_size: rtorq.checkpoint_size,
            window_size: rtorq.window_size,
            data: rtorq.connection_data.clone(),
        };
        self.phase = Phase::Indicated(Box::new(indicated));
        self.tell(Event::OpenIndication(Box::new(indication)));
    }

    /// RT-OPEN response, accepted: the association is open.
    ///
    /// # Errors
    ///
    /// [`AssociationError`] without an indication, and for user data that do not fit the session.
    pub fn accept(&mut self, request: AcceptRequest) -> Result<(), AssociationError> {
        let Phase::Indicated(indicated) = &self.phase else {
            return Err(AssociationError::Phase("RT-OPEN response"));
        };
        let rtoac = rtoac(&indicated.rtorq, &request);
        let agreement = Agreement {
            mode: indicated.mode,
            contexts: indicated.negotiation.contexts.clone(),
            acse: indicated.acse,
            rtse: indicated.rtse,
            monologue: indicated.rtorq.dialogue_mode == DialogueMode::Monologue,
            segment: u64::from(rtoac.checkpoint_size).saturating_mul(1024),
            window: rtoac.window_size,
            identifier: indicated.identifier.clone(),
        };
        let accepting = Accepting {
            identifier: indicated.session_identifier.clone(),
            responding: indicated.called_session.clone(),
            user_data: accept(indicated, request, &rtoac).write().into_bytes(),
        };
        self.session.accept(accepting)?;
        self.phase = Phase::Open(Box::new(agreement));
        Ok(())
    }

    /// RT-OPEN response, rejected.
    ///
    /// # Errors
    ///
    /// [`AssociationError`] without an indication.
    pub fn reject(&mut self, request: &RejectRequest) -> Result<(), AssociationError> {
        let Phase::Indicated(indicated) = &self.phase else {
            return Err(AssociationError::Phase("RT-OPEN response"));
        };
        let user_data = reject(indicated, request).write().into_bytes();
        self.session.refuse(RefuseReason::UserData, user_data)?;
        self.finish();
        Ok(())
    }
}

fn identifier(connect: &session::Connect) -> SessionConnectionIdentifier {
    SessionConnectionIdentifier::from_session(&connect.identifier).unwrap_or_default()
}

/// AARQ and RTORQ of a connection, and the contexts of ACSE and RTSE.
fn association(
    negotiation: &Negotiation,
    profile: &Profile,
    connect: &NormalConnect,
) -> Result<(Aarq, Rtorq, i64, i64), Fault> {
    let contexts = &negotiation.contexts;
    let acse = contexts.of(&names::ACSE);
    let both = acse.zip(contexts.of(&profile.rtse));
    let (acse, rtse) = both.ok_or(Fault::Invalid("the contexts of ACSE and RTSE"))?;
    let value = connect
        .user_data
        .as_ref()
        .and_then(|data| data.value(acse, contexts.single()));
    let value = value.ok_or(Fault::Invalid("a value of ACSE"))?;
    let Apdu::Aarq(aarq) = Apdu::read(&value)? else {
        return Err(Fault::Invalid("an AARQ"));
    };
    let rtorq = Rtorq::read(&rtse_value(&aarq.user_information, rtse)?)?;
    Ok((aarq, rtorq, acse, rtse))
}

/// The answer of the responder: no value is larger than its proposal. A proposed checkpoint size of 0 leaves the size to the
/// responder.
fn rtoac(rtorq: &Rtorq, request: &AcceptRequest) -> Rtoac {
    let checkpoint_size = match rtorq.checkpoint_size {
        0 => request.checkpoint_size,
        proposed => request.checkpoint_size.min(proposed),
    };
    Rtoac {
        checkpoint_size,
        window_size: request.window_size.min(rtorq.window_size).max(1),
        connection_data: match &rtorq.connection_data {
            ConnectionData::Open(_) => ConnectionData::Open(request.user_data.clone()),
            recover @ ConnectionData::Recover(_) => recover.clone(),
        },
    }
}

fn accept(indicated: &Indicated, request: AcceptRequest, rtoac: &Rtoac) -> Accept {
    if let Mode::X410(_) = indicated.mode {
        return Accept::X410(rtoac.components(true));
    }
    let aare = Apdu::Aare(Aare {
        application_context: indicated.application_context.clone(),
        result: AssociateResult::Accepted,
        diagnostic: Diagnostic::User(UserDiagnostic::Null),
        responding: request.title,
        authentication: request.authentication,
        user_information: vec![External::of_context(indicated.rtse, rtoac.write())],
    });
    Accept::Normal(NormalAccept {
        responding: request.presentation,
        results: indicated.negotiation.results.clone(),
        user_data: Some(UserData::one(indicated.acse, aare.write().into_bytes())),
    })
}

fn reject(indicated: &Indicated, request: &RejectRequest) -> Reject {
    if let Mode::X410(_) = indicated.mode {
        let rtorj = Rtorj {
            reason: Some(request.reason),
            user_data: None,
        };
        return Reject::X410(rtorj.components());
    }
    let rtorj = Rtorj {
        reason: None,
        user_data: request.user_data.clone(),
    };
    let aare = Apdu::Aare(Aare {
        application_context: indicated.application_context.clone(),
        result: match request.transient {
            true => AssociateResult::RejectedTransient,
            false => AssociateResult::RejectedPermanent,
        },
        diagnostic: Diagnostic::User(request.diagnostic),
        responding: EntityTitle::default(),
        authentication: Authentication::default(),
        user_information: vec![External::of_context(indicated.rtse, rtorj.write())],
    });
    Reject::Normal(NormalReject {
        responding: None,
        results: indicated.negotiation.results.clone(),
        reason: None,
        user_data: Some(UserData::one(indicated.acse, aare.write().into_bytes())),
    })
}
