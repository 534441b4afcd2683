//! Bodies of requests.

use std::marker::PhantomData;

use serde_json::{Value, json};

use super::{
    body, json_body,
    openapi::Operation,
    operation::{Found, Part},
};
use crate::{
    Result,
    declared::{Body, read},
    described::{Described, Schemas},
    fields::Fields,
};

/// A request body, read when the handler asks for it: after it has found the resource in the path.
pub struct Sent<T, const REQUIRED: bool = true>(Result<Value>, PhantomData<T>);

/// An optional body; absent means `{}`.
pub type MaySend<T> = Sent<T, false>;

impl<T: Body, const REQUIRED: bool> Sent<T, REQUIRED> {
    /// # Errors
    /// [`crate::Error::Malformed`] for invalid JSON, [`crate::Error::Invalid`] with every problem.
    pub fn read(self) -> Result<T> {
        self.checked(|_, _| ())
    }

    /// Like [`Sent::read`]; `check` may add problems.
    ///
    /// # Errors
    /// As [`Sent::read`].
    pub fn checked(self, check: impl FnOnce(&mut T::Draft, &mut Fields<'_>)) -> Result<T> {
        read(&self.0?, check)
    }
}

impl<T: Described, const REQUIRED: bool> Sent<T, REQUIRED> {
    /// The raw JSON, for a body with its own reader.
    ///
    /// # Errors
    /// [`crate::Error::Malformed`] for invalid JSON.
    pub fn json(self) -> Result<Value> {
        self.0
    }
}

impl<T: Described, const REQUIRED: bool> Part for Sent<T, REQUIRED> {
    fn of(found: &Found<'_>) -> Result<Self> {
        let absent = !REQUIRED && body(found.request).iter().all(u8::is_ascii_whitespace);
        Ok(Self(if absent { Ok(json!({})) } else { json_body(found.request) }, PhantomData))
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.sends(T::schema(schemas), REQUIRED);
    }
}
