//! Tokens of OAuth 2.0 instead of passwords: OAUTHBEARER (RFC 7628), and XOAUTH2, the earlier form of Google and
//! Microsoft.

use vere_units::Secret;

use super::ExchangeError;

/// A mechanism for tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BearerMechanism {
    /// `OAUTHBEARER` (RFC 7628).
    OAuthBearer,
    /// `XOAUTH2`.
    XOAuth2,
}

impl BearerMechanism {
    /// Both, the registered mechanism first.
    pub const ALL: [Self; 2] = [Self::OAuthBearer, Self::XOAuth2];

    /// Returns the name in the server's offer.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OAuthBearer => "OAUTHBEARER",
            Self::XOAuth2 => "XOAUTH2",
        }
    }

    /// The response to the server's error (RFC 7628 section 3.2.3).
    pub(super) const fn end_of_error(self) -> &'static [u8] {
        match self {
            Self::OAuthBearer => b"\x01",
            Self::XOAuth2 => b"",
        }
    }
}

/// A user with a token.
#[derive(Clone, Debug)]
pub struct Bearer {
    /// The user.
    pub username: String,
    /// The access token.
    pub token: Secret<String>,
    /// The server's name, as the client knows it.
    pub host: String,
    /// The server's port.
    pub port: u16,
}

impl Bearer {
    pub(super) fn initial(&self, mechanism: BearerMechanism) -> Result<Vec<u8>, ExchangeError> {
        let token = self.token.expose();
        let fields = [&self.username, token, &self.host];
        if fields
            .into_iter()
            .any(|field| field.is_empty() || field.chars().any(char::is_control))
        {
            return Err(ExchangeError::Credentials);
        }
        let message = match mechanism {
            BearerMechanism::OAuthBearer => {
                // RFC 7628 section 3.1: `,` and `=` of the name are escaped in the GS2 header.
                let name = self.username.replace('=', "=3D").replace(',', "=2C");
                let (host, port) = (&self.host, self.port);
                format!("n,a={name},\x01host={host}\x01port={port}\x01auth=Bearer {token}\x01\x01")
            }
            BearerMechanism::XOAuth2 => {
                format!("user={}\x01auth=Bearer {token}\x01\x01", self.username)
            }
        };
        Ok(message.into_bytes())
    }
}
