//! The public settings of the console's page.

use crate::config::{Environment, Error};

/// Addresses have no trailing slash, except the issuer, which is as tokens name it.
#[derive(Debug, Clone)]
pub struct ConsoleSettings {
    /// `JWT_ISSUER`.
    pub issuer: String,
    /// The address of the issuer's configuration: `OIDC_CONFIGURATION_URL`, or the standard path below the issuer.
    pub openid_configuration: String,
    /// `CONSOLE_CLIENT_ID`, or the first of `JWT_AUDIENCE`.
    pub client_id: String,
    /// `CONSOLE_SCOPES`, separated by blanks; `openid email` unless set.
    pub scopes: String,
    /// The streaming endpoint: `STREAM_URL`.
    pub stream_url: Option<String>,
    /// Further origins that the page may connect to, for an issuer that gives tokens on another host:
    /// `CONSOLE_CONNECT_ORIGINS`, separated by commas.
    pub connect_origins: Vec<String>,
}

impl ConsoleSettings {
    pub(super) fn read(environment: &Environment) -> Result<Self, Error> {
        let issuer = environment.required("JWT_ISSUER")?;
        let audiences = environment.required("JWT_AUDIENCE")?;
        let first = audiences.split(',').next().unwrap_or_default().trim().to_owned();
        let discovered = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let origins = environment.optional("CONSOLE_CONNECT_ORIGINS").unwrap_or_default();
        let origins = origins.split(',').map(str::trim).filter(|origin| !origin.is_empty()).map(str::to_owned);
        Ok(Self {
            issuer,
            openid_configuration: environment.optional("OIDC_CONFIGURATION_URL").unwrap_or(discovered),
            client_id: environment.optional("CONSOLE_CLIENT_ID").unwrap_or(first),
            scopes: environment.optional("CONSOLE_SCOPES").unwrap_or_else(|| "openid email".to_owned()),
            stream_url: environment.optional("STREAM_URL").map(|url| url.trim_end_matches('/').to_owned()),
            connect_origins: origins.collect(),
        })
    }
}
