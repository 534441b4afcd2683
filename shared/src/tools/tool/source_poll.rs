//! A poll of a source: a conditional request, if an earlier answer can be told apart from a changed one.

use std::sync::{Mutex, PoisonError};

use reqwest::header::{ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};

use crate::models::Validators;

/// Bytes of a validator that is kept.
const LONGEST_VALIDATOR: usize = 500;
const NOT_MODIFIED: u16 = 304;

#[derive(Debug)]
pub struct SourcePoll {
    name: String,
    /// Hash of the request.
    of: String,
    earlier: Option<Validators>,
    told: Mutex<Told>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Told {
    #[default]
    Nothing,
    Unchanged,
    Validators(Validators),
}

impl SourcePoll {
    /// `earlier` counts only if it is of the same request.
    pub fn new(name: String, of: String, earlier: Option<&Validators>) -> Self {
        let earlier = earlier.filter(|earlier| earlier.of == of).cloned();
        Self { name, of, earlier, told: Mutex::default() }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds the conditions, unless the tool has its own.
    pub fn ask_for_changes(&self, headers: &mut HeaderMap) {
        let Some(earlier) = &self.earlier else { return };
        for (name, validator) in [(IF_NONE_MATCH, &earlier.etag), (IF_MODIFIED_SINCE, &earlier.last_modified)] {
            if let Some(value) = validator.as_ref().and_then(|text| HeaderValue::from_str(text).ok())
                && !headers.contains_key(&name)
            {
                headers.insert(name, value);
            }
        }
    }

    /// Notes the answer. True if it says that nothing has changed.
    pub fn took(&self, status: u16, headers: &HeaderMap) -> bool {
        let unchanged = status == NOT_MODIFIED && self.earlier.is_some();
        let validator = |name: HeaderName| {
            let text = headers.get(name)?.to_str().ok()?;
            (!text.is_empty() && text.len() <= LONGEST_VALIDATOR).then(|| text.to_owned())
        };
        let (etag, last_modified) = (validator(ETAG), validator(LAST_MODIFIED));
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = match status {
            _ if unchanged => Told::Unchanged,
            200 if etag.is_some() || last_modified.is_some() => {
                Told::Validators(Validators { of: self.of.clone(), etag, last_modified })
            }
            _ => Told::Nothing,
        };
        unchanged
    }

    pub fn is_unchanged(&self) -> bool {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) == Told::Unchanged
    }

    /// For the next poll.
    pub fn validators(&self) -> Option<Validators> {
        match &*self.told.lock().unwrap_or_else(PoisonError::into_inner) {
            Told::Validators(validators) => Some(validators.clone()),
            Told::Nothing | Told::Unchanged => None,
        }
    }
}

impl PartialEq for SourcePoll {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for SourcePoll {}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(HeaderName, &'static str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn the_next_poll_asks_with_the_validators_of_the_same_request() {
        let first = SourcePoll::new("1".into(), "a".into(), None);
        let mut none = HeaderMap::new();
        first.ask_for_changes(&mut none);
        assert!(none.is_empty());
        assert!(!first.took(304, &none), "nobody asked for that");
        assert!(!first.took(200, &headers(&[(ETAG, "\"x\""), (LAST_MODIFIED, "Mon")])));
        let told = first.validators().unwrap();

        let second = SourcePoll::new("2".into(), "a".into(), Some(&told));
        let mut own = headers(&[(IF_MODIFIED_SINCE, "Sun")]);
        second.ask_for_changes(&mut own);
        assert_eq!(own, headers(&[(IF_MODIFIED_SINCE, "Sun"), (IF_NONE_MATCH, "\"x\"")]));
        assert!(second.took(304, &none) && second.is_unchanged() && second.validators().is_none());

        let other = SourcePoll::new("3".into(), "b".into(), Some(&told));
        other.ask_for_changes(&mut none);
        assert!(none.is_empty(), "of another address");
        assert!(!other.took(206, &headers(&[(ETAG, "\"part\"")])) && other.validators().is_none());
    }
}
