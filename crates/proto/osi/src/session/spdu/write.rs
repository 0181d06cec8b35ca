//! Writes SPDUs.

use bytes::{BufMut, Bytes, BytesMut};

use super::super::parameters::{Writer, code, put_length};
use super::super::state::Incoming;
use super::super::tokens::Tokens;
use super::{
    Accept, ActivityResume, Connect, ConnectionIdentifier, Enclosure, Item, Refuse, Spdu,
    USER_DATA_MAX,
};

impl Spdu {
    /// Writes the SPDU, and the token SPDU before one of category 2: GIVE TOKENS before what the owner of the tokens
    /// sends, PLEASE TOKENS before its answers (X.225 clause 6.3.7).
    #[must_use]
    pub fn write(&self) -> Bytes {
        let mut octets = BytesMut::new();
        match self.kind() {
            Incoming::MIA
            | Incoming::AIA
            | Incoming::ADA
            | Incoming::AEA
            | Incoming::ED
            | Incoming::ER => {
                octets.put_slice(&[2, 0]);
            }
            kind if kind.category() == 2 => octets.put_slice(&[1, 0]),
            _ => {}
        }
        let mut writer = Writer::default();
        let identifier = self.parameters(&mut writer);
        let mut length = Vec::with_capacity(3);
        put_length(&mut length, writer.0.len());
        octets.put_u8(identifier);
        octets.put_slice(&length);
        octets.put_slice(&writer.0);
        octets.freeze()
    }

    /// Writes the parameters and gives the identifier.
    fn parameters(&self, to: &mut Writer) -> u8 {
        match self {
            Self::Connect(connect) => put_connect(to, connect),
            Self::ConnectDataOverflow(data, end) => {
                to.put(code::ENCLOSURE, &[u8::from(*end) << 1]);
                to.put_user_data(code::USER_DATA, data);
                15
            }
            Self::OverflowAccept(accept) => {
                put_tsdu_maximum(to, accept.tsdu_maximum);
                to.put(code::VERSION, &[accept.versions]);
                16
            }
            Self::Accept(accept) => put_accept(to, accept),
            Self::Refuse(refuse) => put_refuse(to, refuse),
            Self::Finish(disconnect, data) => {
                to.put(code::TRANSPORT_DISCONNECT, &[*disconnect]);
                to.put_user_data(code::USER_DATA, data);
                9
            }
            Self::Disconnect(data) => {
                to.put_user_data(code::USER_DATA, data);
                10
            }
            Self::NotFinished(data) => {
                to.put_user_data(code::USER_DATA, data);
                8
            }
            Self::Abort(abort) => {
                to.put(code::TRANSPORT_DISCONNECT, &[abort.disconnect]);
                to.put_user_data(code::REFLECT, &abort.reflect);
                to.put_user_data(code::USER_DATA, &abort.user_data);
                25
            }
            Self::AbortAccept | Self::ActivityInterruptAck => 26,
            _ => self.connected_parameters(to),
        }
    }

    /// The same, of SPDUs of an established connection.
    fn connected_parameters(&self, to: &mut Writer) -> u8 {
        match self {
            Self::DataTransfer(enclosure) => {
                if *enclosure != Enclosure::WHOLE {
                    to.put(code::ENCLOSURE, &[enclosure.item()]);
                }
                1
            }
            Self::GiveTokens(tokens) => {
                put_tokens(to, *tokens);
                1
            }
            Self::PleaseTokens(tokens, data) => {
                put_tokens(to, *tokens);
                to.put_user_data(code::USER_DATA, data);
                2
            }
            Self::GiveTokensConfirm(data) => {
                to.put_user_data(code::USER_DATA, data);
                21
            }
            Self::GiveTokensAck => 22,
            Self::MinorSyncPoint(serial, explicit) => {
                if !explicit {
                    to.put(code::SYNC_TYPE, &[1]);
                }
                to.put_serial(code::SERIAL, *serial);
                49
            }
            Self::MinorSyncAck(serial) => {
                to.put_serial(code::SERIAL, *serial);
                50
            }
            Self::ActivityEnd(serial) => {
                to.put_serial(code::SERIAL, *serial);
                41
            }
            Self::ActivityEndAck(serial) => {
                to.put_serial(code::SERIAL, *serial);
                42
            }
            _ => self.activity_parameters(to),
        }
    }

    /// The same, of activities and exceptions.
    fn activity_parameters(&self, to: &mut Writer) -> u8 {
        match self {
            Self::ActivityStart(activity) => {
                to.put(code::ACTIVITY, activity);
                45
            }
            Self::ActivityResume(resume) => put_resume(to, resume),
            Self::ActivityInterrupt(reason) => {
                to.put(code::REASON, &[reason.code()]);
                25
            }
            Self::ActivityDiscard(reason) => {
                to.put(code::REASON, &[reason.code()]);
                57
            }
            Self::ActivityDiscardAck => 58,
            Self::ExceptionData(reason, data) => {
                to.put(code::REASON, &[reason.code()]);
                to.put_user_data(code::USER_DATA, data);
                48
            }
            Self::ExceptionReport(reflect) => {
                to.put_user_data(code::REFLECT, reflect);
                0
            }
            // Every other SPDU has been written.
            _ => 0,
        }
    }
}

fn put_tokens(to: &mut Writer, tokens: Tokens) {
    if !tokens.is_none() {
        to.put(code::TOKEN_ITEM, &[tokens.item()]);
    }
}

fn put_tsdu_maximum(to: &mut Writer, (to_responder, to_initiator): (u16, u16)) {
    if (to_responder, to_initiator) != (0, 0) {
        let sizes = (u32::from(to_responder) << 16) | u32::from(to_initiator);
        to.put(code::TSDU_MAXIMUM, &sizes.to_be_bytes());
    }
}

fn put_identifier(to: &mut Writer, reference: u8, identifier: &ConnectionIdentifier) {
    let mut group = Writer::default();
    group.put_some(reference, identifier.user.as_deref());
    group.put_some(code::COMMON_REFERENCE, identifier.common.as_deref());
    group.put_some(code::ADDITIONAL_REFERENCE, identifier.additional.as_deref());
    to.put_group(code::CONNECTION_IDENTIFIER, &group);
}

fn put_item(to: &mut Writer, item: &Item) {
    let mut group = Writer::default();
    group.put(code::PROTOCOL_OPTIONS, &[item.options]);
    put_tsdu_maximum(&mut group, item.tsdu_maximum);
    group.put(code::VERSION, &[item.versions]);
    if let Some(serial) = item.initial_serial {
        group.put_serial(code::INITIAL_SERIAL, serial);
    }
    if let Some(setting) = item.token_setting {
        group.put(code::TOKEN_SETTING, &[setting]);
    }
    to.put_group(code::CONNECT_ACCEPT_ITEM, &group);
}

fn put_connect(to: &mut Writer, connect: &Connect) -> u8 {
    put_identifier(to, code::CALLING_REFERENCE, &connect.identifier);
    put_item(to, &connect.item);
    to.put(code::USER_REQUIREMENTS, &connect.requirements.to_be_bytes());
    to.put_some(code::CALLING_SELECTOR, connect.calling.as_deref());
    to.put_some(code::CALLED_SELECTOR, connect.called.as_deref());
    if connect.overflow {
        to.put(code::DATA_OVERFLOW, &[1]);
    }
    match connect.user_data.len() {
        0..=USER_DATA_MAX => to.put_user_data(code::USER_DATA, &connect.user_data),
        _ => to.put(code::EXTENDED_USER_DATA, &connect.user_data),
    }
    13
}

fn put_accept(to: &mut Writer, accept: &Accept) -> u8 {
    put_identifier(to, code::CALLED_REFERENCE, &accept.identifier);
    put_item(to, &accept.item);
    put_tokens(to, accept.please);
    to.put(code::USER_REQUIREMENTS, &accept.requirements.to_be_bytes());
    to.put_some(code::CALLED_SELECTOR, accept.responding.as_deref());
    to.put_user_data(code::USER_DATA, &accept.user_data);
    14
}

fn put_refuse(to: &mut Writer, refuse: &Refuse) -> u8 {
    put_identifier(to, code::CALLED_REFERENCE, &refuse.identifier);
    to.put(code::TRANSPORT_DISCONNECT, &[refuse.disconnect]);
    if let Some(requirements) = refuse.requirements {
        to.put(code::USER_REQUIREMENTS, &requirements.to_be_bytes());
    }
    if let Some(versions) = refuse.versions {
        to.put(code::VERSION, &[versions]);
    }
    let mut reason = vec![refuse.reason.code()];
    reason.extend_from_slice(&refuse.user_data);
    to.put(code::REASON, &reason);
    12
}

fn put_resume(to: &mut Writer, resume: &ActivityResume) -> u8 {
    let mut linking = Writer::default();
    linking.put_some(code::CALLED_REFERENCE, resume.called.as_deref());
    let old = &resume.connection;
    linking.put_some(code::CALLING_REFERENCE, old.user.as_deref());
    linking.put_some(code::COMMON_REFERENCE, old.common.as_deref());
    linking.put_some(code::ADDITIONAL_REFERENCE, old.additional.as_deref());
    linking.put(code::ACTIVITY, &resume.old_activity);
    linking.put_serial(code::SERIAL, resume.serial);
    to.put_group(code::LINKING, &linking);
    to.put(code::ACTIVITY, &resume.activity);
    29
}
