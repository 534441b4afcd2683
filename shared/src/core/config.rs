//! Configuration from environment variables, read once at start. [`crate::platform`] documents each variable at its
//! part.

use std::{env, fmt::Display, str::FromStr};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("environment variable {0} is required")]
    Missing(&'static str),
    #[error("environment variable {name}: {problem}")]
    Unusable { name: &'static str, problem: String },
}

type Lookup = dyn Fn(&'static str) -> Option<String>;

/// The variables of a process. An empty variable counts as absent, because templates cannot omit one.
pub struct Environment(Box<Lookup>);

impl Environment {
    /// Variables from another source, for tests.
    pub fn new(lookup: impl Fn(&'static str) -> Option<String> + 'static) -> Self {
        Self(Box::new(lookup))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the place the rule points to")]
    pub fn of_process() -> Self {
        Self::new(|name| env::var(name).ok())
    }

    pub fn optional(&self, name: &'static str) -> Option<String> {
        (self.0)(name).filter(|value| !value.trim().is_empty())
    }

    pub fn required(&self, name: &'static str) -> Result<String, Error> {
        self.optional(name).ok_or(Error::Missing(name))
    }

    pub fn parsed<T: FromStr<Err: Display>>(&self, name: &'static str, default: T) -> Result<T, Error> {
        let Some(text) = self.optional(name) else { return Ok(default) };
        text.parse().map_err(|error: T::Err| Error::Unusable { name, problem: error.to_string() })
    }

    /// A base address without a trailing slash.
    pub fn base_url(&self, name: &'static str, default: &str) -> String {
        self.optional(name).unwrap_or_else(|| default.to_owned()).trim_end_matches('/').to_owned()
    }

    /// Hosts (`name` or `name:port`) separated by commas; none if the variable is absent.
    pub fn hosts(&self, name: &'static str) -> Vec<String> {
        self.list(name).iter().map(|host| host.to_ascii_lowercase()).collect()
    }

    /// Values separated by commas.
    pub fn list(&self, name: &'static str) -> Vec<String> {
        let values = self.optional(name).unwrap_or_default();
        values.split(',').map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned).collect()
    }
}
