//! Checked values, before they become parts of the settings.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use vere_units::{ByteSize, Score, Secret, Span};

use crate::answers::AnswerPattern;
use crate::directory_store::DirectoryStore;
use crate::filters::FilterAddress;
use crate::judging::Threshold;
use crate::network::IpNetwork;
use crate::outgoing::{NextHop, Rate, RoutePattern};

/// A value that passed the check of its kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Texts(Vec<String>),
    Choice(&'static str),
    Integer(u64),
    Signed(i64),
    Score(Score),
    Threshold(Threshold),
    Size(ByteSize),
    Span(Span),
    Spans(Vec<Span>),
    Ip(IpAddr),
    Address(SocketAddr),
    Addresses(Vec<SocketAddr>),
    FilterAddress(FilterAddress),
    Networks(Vec<IpNetwork>),
    Answers(Vec<AnswerPattern>),
    Path(PathBuf),
    Secret(Secret<String>),
    Pattern(RoutePattern),
    /// A port of 0 stands for the default port.
    NextHop(NextHop),
    Rate(Rate),
    Store(DirectoryStore),
}

/// A type to which a value can be converted.
pub(crate) trait FromValue: Sized {
    /// Returns the value if the type fits.
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! from_value {
    ($($variant:ident => $type:ty),* $(,)?) => {$(
        impl FromValue for $type {
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::$variant(inner) => Some(inner.clone()),
                    _ => None,
                }
            }
        }
    )*};
}

from_value! {
    Text => String,
    Texts => Vec<String>,
    Choice => &'static str,
    Integer => u64,
    Signed => i64,
    Score => Score,
    Threshold => Threshold,
    Size => ByteSize,
    Span => Span,
    Spans => Vec<Span>,
    Ip => IpAddr,
    Address => SocketAddr,
    Addresses => Vec<SocketAddr>,
    FilterAddress => FilterAddress,
    Networks => Vec<IpNetwork>,
    Answers => Vec<AnswerPattern>,
    Path => PathBuf,
    Secret => Secret<String>,
    Pattern => RoutePattern,
    NextHop => NextHop,
    Rate => Rate,
    Store => DirectoryStore,
}

impl FromValue for u32 {
    fn from_value(value: &Value) -> Option<Self> {
        u64::from_value(value)?.try_into().ok()
    }
}

impl FromValue for i32 {
    fn from_value(value: &Value) -> Option<Self> {
        i64::from_value(value)?.try_into().ok()
    }
}

impl FromValue for i16 {
    fn from_value(value: &Value) -> Option<Self> {
        i64::from_value(value)?.try_into().ok()
    }
}

impl FromValue for u16 {
    fn from_value(value: &Value) -> Option<Self> {
        u64::from_value(value)?.try_into().ok()
    }
}
