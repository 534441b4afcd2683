//! A real LLM in the stand-in's place.

use std::fmt;

/// Address and key of the platform's LLM.
#[derive(Clone, PartialEq, Eq)]
pub struct LlmService {
    pub api_key: String,
    /// Without a trailing slash.
    pub url: String,
    pub model: Option<String>,
}

impl LlmService {
    /// Reads `LLM_API_KEY`, `LLM_URL` (an earlier name is `LLM_BASE_URL`; default: OpenRouter) and `LLM_MODEL`; `None`
    /// without a key. Empty variables count as absent.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let given = |name| variable(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let url = given("LLM_URL").or_else(|| given("LLM_BASE_URL"));
        let url = url.unwrap_or_else(|| shared::clients::llm::OPENROUTER.to_owned());
        Some(Self {
            api_key: given("LLM_API_KEY")?,
            url: url.trim_end_matches('/').to_owned(),
            model: given("LLM_MODEL"),
        })
    }
}

impl fmt::Debug for LlmService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { api_key: _, url, model } = self;
        f.debug_struct("LlmService").field("url", url).field("model", model).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Option<LlmService> {
        LlmService::of(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn a_key_alone_is_openrouters() {
        let service = of(&[("LLM_API_KEY", " sk-1\n")]).unwrap();
        let expected = ("sk-1", shared::clients::llm::OPENROUTER, None);
        assert_eq!((service.api_key.as_str(), service.url.as_str(), service.model.as_deref()), expected);
        assert!(!format!("{service:?}").contains("sk-1"));
        let elsewhere = [("LLM_API_KEY", "k"), ("LLM_URL", "https://llm.example.com/v1/"), ("LLM_MODEL", "small")];
        let service = of(&elsewhere).unwrap();
        assert_eq!((service.url.as_str(), service.model.as_deref()), ("https://llm.example.com/v1", Some("small")));
    }

    #[test]
    fn a_gateways_key_goes_to_the_gateway_under_either_name_of_its_address() {
        let at = |addresses: &[(&str, &str)]| of(&[&[("LLM_API_KEY", "k")][..], addresses].concat()).unwrap().url;
        assert_eq!(at(&[("LLM_BASE_URL", "https://old.example.com")]), "https://old.example.com");
        let both = [("LLM_BASE_URL", "https://old.example.com"), ("LLM_URL", "https://llm.example.com/v1")];
        assert_eq!(at(&both), "https://llm.example.com/v1");
    }

    #[test]
    fn without_a_key_the_stand_in_answers() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("LLM_API_KEY", ""), ("LLM_URL", "https://llm.example.com")]), None);
    }
}
