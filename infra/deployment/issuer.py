"""Checks the issuer of the users' tokens; API Gateway itself asks it only at the first request, which is too late."""

import http.client
import json
import os
import re
import urllib.error
import urllib.request

SECONDS = 10
LARGEST = 1024 * 1024
COGNITO = re.compile(r"https://cognito-idp\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/")


class Unfit(Exception):
    """The reason why an address has no usable document."""


def problems(values):
    """Problems of JwtIssuer and of the addresses of its configuration and keys."""
    issuer = values["JwtIssuer"]
    # API Gateway asks the issuer itself, regardless of the other two addresses.
    parameter = "OidcConfigurationUrl" if values.get("OidcConfigurationUrl") else "JwtIssuer"
    url = values.get("OidcConfigurationUrl") or issuer.rstrip("/") + "/.well-known/openid-configuration"
    try:
        configuration = _json(url)
    except Unfit as error:
        return [
            f"{parameter}: {url} {error}. The issuer is the address that tokens have as `iss`, at Cognito "
            "https://cognito-idp.<region>.amazonaws.com/<pool id>; what it answers there must be its OpenID Connect configuration"
        ]
    named = configuration.get("issuer")
    if named != issuer:
        slash = " (mind the slash at the end)" if isinstance(named, str) and named.rstrip("/") == issuer.rstrip("/") else ""
        return [f"JwtIssuer is '{issuer}', but {url} names '{named}'{slash}: write it exactly so, tokens are compared with it"]
    keys_parameter = "JwksUrl" if values.get("JwksUrl") else parameter
    keys_url = values.get("JwksUrl") or configuration.get("jwks_uri")
    if not isinstance(keys_url, str):
        return [f"{parameter}: {url} has no `jwks_uri`, so nobody can check this issuer's tokens: is it an OpenID Connect issuer?"]
    try:
        keys = _json(keys_url).get("keys")
    except Unfit as error:
        return [f"{keys_parameter}: the issuer's keys cannot be read: {keys_url} {error}"]
    if not any(isinstance(key, dict) and key.get("kty") == "RSA" for key in keys if isinstance(keys, list)):
        return [f"{keys_parameter}: {keys_url} has no RSA key, and API Gateway takes no other: let the issuer sign with RS256"]
    return []


def _json(url):
    """The JSON object at an address; raises Unfit."""
    local = os.environ.get("AWS_ENDPOINT_URL_COGNITO_IDP") or os.environ.get("AWS_ENDPOINT_URL")
    # A local AWS serves the user pool under its own address.
    asked = COGNITO.sub(local.rstrip("/") + "/", url) if local else url
    try:
        request = urllib.request.Request(asked, headers={"Accept": "application/json", "User-Agent": "switchboard-deploy"})
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            found = json.loads(answer.read(LARGEST))
    except urllib.error.HTTPError as error:
        raise Unfit(f"answers {error.code}") from None
    except (OSError, http.client.HTTPException) as error:
        raise Unfit(f"does not answer ({getattr(error, 'reason', None) or error})") from None
    except ValueError:
        raise Unfit("is no address, or answers no JSON") from None
    if not isinstance(found, dict):
        raise Unfit("answers JSON that is no object")
    return found
