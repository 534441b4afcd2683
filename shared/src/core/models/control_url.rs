//! The control URL of a live call.

use std::str::FromStr;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};
use url::Url;

/// `https://<host>/<call id>/control`. A secret: VAPI requires nothing else to speak in the call or end it. Stored in the call's
/// row only. [`crate::clients::CallControl`] decides the allowed hosts.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct ControlUrl(SecretString);

#[derive(Debug, thiserror::Error)]
#[error("must be an address without user, query and fragment whose path ends in /control")]
pub struct NotAControlUrl;

impl ControlUrl {
    /// For the client that sends to it.
    pub(crate) fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl FromStr for ControlUrl {
    type Err = NotAControlUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = Url::parse(text.trim()).map_err(|_not_a_url| NotAControlUrl)?;
        let bare = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
            && url.has_host();
        if bare && matches!(url.scheme(), "https" | "http") && url.path().ends_with("/control") {
            Ok(Self(SecretString::from(String::from(url))))
        } else {
            Err(NotAControlUrl)
        }
    }
}

impl TryFrom<String> for ControlUrl {
    type Error = NotAControlUrl;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl Serialize for ControlUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.expose())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://phone-call-websocket.aws-us-west-2-backend-production1.vapi.ai/019cda7d/control";

    #[test]
    fn only_the_bare_address_of_a_control_endpoint_is_one() {
        assert!(URL.parse::<ControlUrl>().is_ok());
        assert!("http://127.0.0.1:4501/019cda7d/control".parse::<ControlUrl>().is_ok());
        for bad in [
            "",
            "019cda7d",
            "/019cda7d/control",
            "https:///control",
            "wss://x.vapi.ai/019cda7d/control",
            "https://x.vapi.ai/019cda7d/listen",
            "https://x.vapi.ai/019cda7d/control?to=me",
            "https://x.vapi.ai/019cda7d/listen?/control",
            "https://x.vapi.ai/019cda7d/control#x",
            "https://me@x.vapi.ai/019cda7d/control",
            "https://me:pass@x.vapi.ai/019cda7d/control",
        ] {
            assert!(bad.parse::<ControlUrl>().is_err(), "{bad}");
        }
    }

    #[test]
    fn it_stands_in_the_row_and_not_in_debug() {
        let url: ControlUrl = serde_json::from_value(serde_json::json!(URL)).unwrap();
        assert!(!format!("{url:?}").contains("019cda7d"), "{url:?}");
        assert_eq!(serde_json::to_value(&url).unwrap(), URL);
        let error = serde_json::from_value::<ControlUrl>(serde_json::json!("https://x.vapi.ai/019cda7d/listen"));
        assert!(!error.unwrap_err().to_string().contains("019cda7d"));
    }
}
