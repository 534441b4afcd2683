//! Names of secrets: headers, fields, arguments and query parameters, in any spelling.
//!
//! `api_key`, `X-API-Key`, `apiKey`, `api.key` and `apikey` are equal. In doubt a name counts as secret: a wrongly hidden value
//! can be found elsewhere, a shown one cannot be withdrawn.

/// Anywhere in a name, also joined to other words.
const ANYWHERE: [&str; 22] = [
    "accesskey",
    "apikey",
    "authcode",
    "authorization",
    "bearer",
    "connectionstring",
    "cookie",
    "credential",
    "jwt",
    "passcode",
    "passkey",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "securitycode",
    "sessid",
    "sessionid",
    "signature",
    "subscriptionkey",
    "token",
];
/// As a separate word; inside longer words they mean something else (`author`, `laptop`, `shipping`).
const WORDS: [&str; 13] =
    ["csrf", "cvc", "cvv", "hmac", "mfa", "otp", "pin", "pincode", "pwd", "sig", "ssn", "totp", "xsrf"];
/// As the last word (`license_key`, not `key_points`).
const LAST: [&str; 4] = ["auth", "key", "oauth", "pass"];
/// As the whole name only: a yoga class is a session, too.
const ALONE: &str = "session";
/// Destinations that begin the names of headers and of an `api_request`'s arguments.
const PREFIXES: [&str; 4] = ["body", "header", "http", "x"];

/// First or last words of measures: `token_count`, `password_length`, `token_type`, `max_tokens`.
const MEASURES: [&str; 8] = ["count", "length", "limit", "size", "total", "ttl", "type", "usage"];
const BOUNDS: [&str; 3] = ["max", "min", "total"];

/// Headers that describe the request rather than the caller.
const HARMLESS_HEADERS: [&str; 9] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "content-language",
    "content-type",
    "prefer",
    "user-agent",
];

/// Bytes; longer texts are no names.
const LONGEST: usize = 64;

pub fn is_secret(name: &str) -> bool {
    if name.len() > LONGEST {
        return false;
    }
    let words = words(name);
    let prefixes = words.iter().take_while(|word| PREFIXES.contains(&word.as_str())).count();
    let words = words.get(prefixes..).unwrap_or_default();
    let (Some(first), Some(last)) = (words.first(), words.last()) else { return false };
    if MEASURES.contains(&last.as_str()) || BOUNDS.contains(&first.as_str()) {
        return false;
    }
    let joined = words.concat().replace("secretar", "");
    ANYWHERE.iter().any(|part| joined.contains(part))
        || words.iter().any(|word| WORDS.contains(&word.as_str()))
        || LAST.contains(&last.as_str())
        || words.len() == 1 && last == ALONE
}

/// Whether a header with a fixed value is secret: services authenticate by headers of any name.
pub fn is_secret_header(name: &str) -> bool {
    !HARMLESS_HEADERS.iter().any(|harmless| name.eq_ignore_ascii_case(harmless))
}

/// The words of a name in lower case, without trailing numbers (`cvv2`).
pub fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = None;
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        // `apiKey` has two words, and so has `APIKey`.
        let ends_capitals =
            before.is_some_and(char::is_uppercase) && letters.peek().is_some_and(|it| it.is_lowercase());
        let begins = letter.is_uppercase() && (ends_capitals || before.is_some_and(|it| !it.is_uppercase()));
        if begins || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
        before = Some(letter);
    }
    let trimmed = words.iter().map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned());
    trimmed.filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_known_by_its_name_in_every_form() {
        for name in [
            "api-key",
            "x-api-key",
            "X-API-Key",
            "apikey",
            "APIKey",
            "api.key",
            "key",
            "access_token",
            "accessToken",
            "refresh_token",
            "client_secret",
            "clientSecret",
            "CLIENT_SECRET",
            "password",
            "Password1",
            "passwd",
            "pwd",
            "db_pass",
            "passcode",
            "passphrase",
            "pin",
            "PIN",
            "card_pin",
            "pinCode",
            "pin2",
            "otp",
            "otp_code",
            "OTPCode",
            "cvv",
            "cvv2",
            "cvc",
            "ssn",
            "authorization",
            "Proxy-Authorization",
            "auth",
            "basicAuth",
            "x-auth",
            "auth_code",
            "cookie",
            "Set-Cookie",
            "session",
            "x-session",
            "session_id",
            "JSESSIONID",
            "PHPSESSID",
            "session_token",
            "subscription_key",
            "Ocp-Apim-Subscription-Key",
            "private_key",
            "privateKeyId",
            "AWSAccessKeyId",
            "X-Amz-Signature",
            "x-hub-signature-256",
            "sig",
            "credential",
            "credentials",
            "bearer",
            "jwt",
            "csrf",
            "license_key",
            "webhook_secret",
            "security_code",
            "ConnectionString",
            // Arguments of an `api_request`.
            "body_pin",
            "header_X-API-Key",
            "header_cookie",
            "body_session",
        ] {
            assert!(is_secret(name), "{name}");
        }
    }

    #[test]
    fn a_harmless_name_that_resembles_a_secret_is_not_hidden() {
        for name in [
            "",
            "x",
            "text",
            "recipients",
            "pinned",
            "is_pinned",
            "shipping",
            "spinner",
            "opinion",
            "keyboard",
            "monkey",
            "turkey",
            "keywords",
            "key_points",
            "token_count",
            "max_tokens",
            "body_max_tokens",
            "token_type",
            "password_length",
            "session_length",
            "session_date",
            "yoga_session",
            "sessions",
            "author",
            "authority",
            "secretary",
            "otter",
            "laptop",
            "passenger",
            "passport_number",
            "compass",
            "bypass",
            "mission",
            "design",
            "cookbook",
            "authProvisionId",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
