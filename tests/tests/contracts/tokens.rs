//! Token verification against an issuer: accepted tokens, reasons for refusal, and key requests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::time::Duration;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::hmac;
use serde_json::{Value, json};
use shared::{
    Deadline, Error,
    clients::Jwks,
    http::{NoToken, TokenVerifier, VerifiedToken},
    models::Timestamp,
};
use tests::{
    clients::nowhere,
    issuer::{AUDIENCE, Issuer, KEYS, encoded},
};

const RESOURCE: &str = "https://api.switchboard.example/api/acme/mcp";

fn verifier(issuer: &Issuer) -> TokenVerifier {
    let keys = Jwks::new(&issuer.url, None).unwrap();
    TokenVerifier::new(issuer.url.clone(), vec![AUDIENCE.to_owned(), "another".to_owned()], keys)
}

async fn verify(verifier: &TokenVerifier, token: &str) -> Result<VerifiedToken, NoToken> {
    verifier.verify(token, &[RESOURCE], Deadline::after(Duration::from_secs(5))).await
}

#[track_caller]
fn refused(verified: Result<VerifiedToken, NoToken>) -> &'static str {
    match verified {
        Err(NoToken::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// Claims with changes; null removes a claim.
fn with(claims: &Value, changes: &Value) -> Value {
    let mut claims = claims.clone();
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    claims
}

#[tokio::test]
async fn a_token_of_each_kind_of_key_is_verified_and_the_keys_are_asked_for_once() {
    let issuer = Issuer::start().await;
    let verifier = verifier(&issuer);
    for key in KEYS {
        let token = issuer.signed(key, &issuer.claims("user|1"));
        assert_eq!(verify(&verifier, &token).await.unwrap().user().as_str(), "user|1", "{key}");
        // With another signature it is refused.
        let (message, signature) = token.rsplit_once('.').unwrap();
        let mut bytes = BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap();
        bytes[7] ^= 1;
        let forged = format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(bytes));
        assert_eq!(refused(verify(&verifier, &forged).await), "the token's signature is wrong", "{key}");
        let claims = encoded(&json!({"alg": key.to_uppercase(), "kid": key}), &issuer.claims("user|2"));
        let swapped =
            format!("{}.{}.{signature}", message.split('.').next().unwrap(), claims.split('.').nth(1).unwrap());
        assert_eq!(refused(verify(&verifier, &swapped).await), "the token's signature is wrong", "{key}");
    }
    assert_eq!(issuer.asked(), 1);
}

#[tokio::test]
async fn claims_are_held_against_time_issuer_and_audience() {
    let issuer = Issuer::start().await;
    let verifier = verifier(&issuer);
    let now = Timestamp::now().as_seconds();
    let missing = "the token lacks one of exp, iss and sub";
    let (expired, early) = ("the token has expired", "the token is not valid yet");
    let (unreadable, elsewhere) = ("the token cannot be read", "the token was made for another audience");
    for (changes, expected) in [
        (json!({}), None),
        // 60 s of clock skew are tolerated.
        (json!({"exp": now - 50}), None),
        (json!({"exp": now - 70}), Some(expired)),
        (json!({"exp": now + 50, "nbf": now + 50}), None),
        (json!({"nbf": now + 70}), Some(early)),
        (json!({"nbf": "soon"}), Some(unreadable)),
        (json!({"exp": "9999999999"}), Some(missing)),
        (json!({"exp": -1}), Some(missing)),
        (json!({"exp": null}), Some(missing)),
        (json!({"iss": null}), Some(unreadable)),
        (json!({"sub": null}), Some(unreadable)),
        (json!({"sub": 7}), Some(unreadable)),
        (json!({"sub": ""}), Some("the token names no user")),
        (json!({"iss": "https://issuer.example"}), Some("the token is of another issuer")),
        (json!({"iss": format!("{}/", issuer.url)}), Some("the token is of another issuer")),
        (json!({"iss": [issuer.url]}), Some(unreadable)),
        (json!({"aud": "another"}), None),
        (json!({"aud": ["x", AUDIENCE]}), None),
        // Issued for the resource's own address.
        (json!({"aud": RESOURCE}), None),
        (json!({"aud": [RESOURCE]}), None),
        (json!({"aud": "https://api.switchboard.example/api/other/mcp"}), Some(elsewhere)),
        (json!({"aud": "x"}), Some(elsewhere)),
        (json!({"aud": []}), Some(elsewhere)),
        (json!({"aud": ""}), Some(elsewhere)),
        (json!({"aud": 7}), Some(unreadable)),
        (json!({"aud": null}), Some(elsewhere)),
        // Cognito's access tokens have no `aud`.
        (json!({"aud": null, "client_id": AUDIENCE}), None),
        (json!({"aud": null, "client_id": "x"}), Some(elsewhere)),
        (json!({"aud": null, "client_id": RESOURCE}), Some(elsewhere)),
        (json!({"aud": "x", "client_id": AUDIENCE}), Some(elsewhere)),
    ] {
        let token = issuer.signed("es256", &with(&issuer.claims("user|1"), &changes));
        let verified = verify(&verifier, &token).await;
        match expected {
            None => assert!(verified.is_ok(), "{changes}: {verified:?}"),
            Some(expected) => assert_eq!(refused(verified), expected, "{changes}"),
        }
    }
}

#[tokio::test]
async fn the_algorithm_is_the_keys_and_nothing_in_the_header_is_believed() {
    let issuer = Issuer::start().await;
    let verifier = verifier(&issuer);
    let claims = issuer.claims("user|1");
    let unreadable = "the token cannot be read";
    let other_algorithm = "the token's algorithm is not that of its key";
    for (key, header, expected) in [
        ("es256", json!({"alg": "ES256"}), "the token does not name its key"),
        ("es256", json!({"alg": "ES256", "kid": 7}), unreadable),
        ("es256", json!({"alg": "none", "kid": "es256"}), unreadable),
        ("es256", json!({"kid": "es256"}), unreadable),
        ("es256", json!({"alg": "RS256", "kid": "es256"}), other_algorithm),
        ("es256", json!({"alg": "ES384", "kid": "es256"}), other_algorithm),
        ("rs256", json!({"alg": "RS512", "kid": "rs256"}), other_algorithm),
        ("rs256", json!({"alg": "PS256", "kid": "rs256"}), other_algorithm),
        ("es256", json!({"alg": "EdDSA", "kid": "eddsa"}), "the token's signature is wrong"),
        (
            "es256",
            json!({"alg": "ES256", "kid": "es256", "crit": ["b64"], "b64": false}),
            "the token demands extensions that are not known here",
        ),
        (
            "es256",
            json!({"alg": "ES256", "kid": "es256", "crit": []}),
            "the token demands extensions that are not known here",
        ),
        // A key within the token is not one of the issuer's.
        (
            "es256",
            json!({"alg": "ES256", "kid": "mine", "jwk": issuer.jwk("es256")}),
            "the token's key is not one of the issuer's",
        ),
    ] {
        let token = issuer.signed_as(key, &header, &claims);
        assert_eq!(refused(verify(&verifier, &token).await), expected, "{header}");
    }
    // The public key misused as a shared secret.
    for (kid, algorithm) in [("rs256", "HS256"), ("es256", "HS512")] {
        let message = encoded(&json!({"alg": algorithm, "kid": kid}), &claims);
        let jwk = issuer.jwk(kid);
        let public = BASE64_URL_SAFE_NO_PAD.decode(jwk.get("n").unwrap_or(&jwk["x"]).as_str().unwrap()).unwrap();
        let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &public), message.as_bytes());
        let token = format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature));
        assert_eq!(refused(verify(&verifier, &token).await), other_algorithm);
    }
    let unsigned = format!("{}.", encoded(&json!({"alg": "none", "kid": "es256"}), &claims));
    for token in ["", ".", "..", "a.b.c", "a.b", &unsigned, &encoded(&json!({"alg": "ES256", "kid": "es256"}), &claims)]
    {
        assert_eq!(refused(verify(&verifier, token).await), unreadable, "{token}");
    }
    assert_eq!(refused(verify(&verifier, &"a".repeat(20_000)).await), "the token is too long");
}

#[tokio::test]
async fn an_unknown_key_is_asked_for_once_in_a_while_and_a_new_one_is_found() {
    let issuer = Issuer::start().await;
    issuer.publish(&json!([issuer.jwk("rs256")]));
    let pausing = |pause| {
        let keys = Jwks::new(&issuer.url, None).unwrap().pausing(pause);
        TokenVerifier::new(issuer.url.clone(), vec![AUDIENCE.to_owned()], keys)
    };
    let (within, after) = (pausing(Duration::from_hours(1)), pausing(Duration::ZERO));
    let (old, new) = (issuer.signed("rs256", &issuer.claims("u")), issuer.token("u"));
    for (verifier, asked) in [(&within, 1), (&after, 2)] {
        assert!(verify(verifier, &old).await.is_ok());
        assert_eq!(issuer.asked(), asked);
    }

    // The issuer rotates its key.
    issuer.publish(&json!([issuer.jwk("es256"), issuer.jwk("eddsa"), {"kty": "EC", "crv": "P-256"}, "no key"]));
    for _ in 0..5 {
        assert_eq!(refused(verify(&within, &new).await), "the token's key is not one of the issuer's");
    }
    assert_eq!(issuer.asked(), 2, "an unknown key costs nothing within the pause");
    assert!(verify(&after, &new).await.is_ok());
    assert_eq!(issuer.asked(), 3);
    assert_eq!(refused(verify(&after, &old).await), "the token's key is not one of the issuer's");
}

#[tokio::test]
async fn keys_that_are_known_go_on_while_the_issuer_cannot_be_asked() {
    let issuer = Issuer::start().await;
    issuer.publish(&json!([issuer.jwk("rs256")]));
    let keys = Jwks::new(&issuer.url, None).unwrap().pausing(Duration::ZERO);
    let verifier = TokenVerifier::new(issuer.url.clone(), vec![AUDIENCE.to_owned()], keys);
    let (known, unknown) = (issuer.signed("rs256", &issuer.claims("u")), issuer.token("u"));

    issuer.breaks(true);
    let outage = verify(&verifier, &known).await;
    let Err(NoToken::Unverified(error)) = &outage else { panic!("{outage:?}") };
    assert!(matches!(error, Error::Unavailable(..)), "{error:?}");
    issuer.breaks(false);
    assert!(verify(&verifier, &known).await.is_ok());
    issuer.breaks(true);
    assert_eq!(refused(verify(&verifier, &unknown).await), "the token's key is not one of the issuer's");
    assert!(verify(&verifier, &known).await.is_ok());
    // A key set without keys counts as no answer.
    issuer.breaks(false);
    issuer.publish(&json!([]));
    assert_eq!(refused(verify(&verifier, &unknown).await), "the token's key is not one of the issuer's");
    assert!(verify(&verifier, &known).await.is_ok());
}

#[tokio::test]
async fn keys_come_from_the_issuers_own_configuration_or_from_ours() {
    let issuer = Issuer::start().await;
    let token = issuer.token("u");
    // The issuer's own keys.
    let keys = Jwks::new("https://issuer.example", Some(format!("{}/keys", issuer.url))).unwrap();
    let verifier = TokenVerifier::new(issuer.url.clone(), vec![AUDIENCE.to_owned()], keys);
    assert!(verify(&verifier, &token).await.is_ok());

    for (name, url) in [
        // Its configuration names another issuer.
        (Some("https://issuer.example"), None),
        // Plain http to another machine; no server; not an address.
        (None, Some("http://issuer.example/keys".to_owned())),
        (None, Some(format!("{}/keys", nowhere()))),
        (None, Some("keys".to_owned())),
    ] {
        issuer.name(name.unwrap_or(&issuer.url));
        let keys = Jwks::new(&issuer.url, url.clone()).unwrap();
        let verifier = TokenVerifier::new(issuer.url.clone(), vec![AUDIENCE.to_owned()], keys);
        let verified = verify(&verifier, &token).await;
        assert!(matches!(verified, Err(NoToken::Unverified(_))), "{name:?} {url:?}: {verified:?}");
    }
}

#[tokio::test]
async fn a_scope_is_there_or_not() {
    let issuer = Issuer::start().await;
    let verifier = verifier(&issuer);
    for granted in [
        json!({"scope": "openid switchboard/tools"}),
        json!({"scope": ["openid", "switchboard/tools"]}),
        // Okta.
        json!({"scp": ["openid", "switchboard/tools"]}),
        // Entra.
        json!({"scp": "openid switchboard/tools"}),
        json!({"scope": "openid", "scp": ["switchboard/tools"]}),
        json!({"scope": "switchboard/tools openid", "scp": 7}),
    ] {
        let claims = with(&issuer.claims("u"), &granted);
        let token = verify(&verifier, &issuer.signed("rs256", &claims)).await.unwrap();
        for (scopes, there) in
            [("", true), ("openid", true), ("switchboard/tools openid", true), ("openid admin", false)]
        {
            assert_eq!(token.has_scopes(scopes), there, "{granted}: {scopes}");
        }
    }
}
