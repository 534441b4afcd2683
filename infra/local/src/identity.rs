//! The Cognito user pool whose tokens the HTTP API's authorizer accepts.

use serde_json::{Value, json};

use crate::{
    Error, Result,
    aws::{Aws, REGION, text_at},
};

/// Every user's password; the pool exists only in memory and on 127.0.0.1.
pub(crate) const PASSWORD: &str = "Local-Demo-1";

/// Cognito's maximum.
const TOKEN_HOURS: u32 = 24;

#[derive(Debug, Clone)]
pub(crate) struct UserPool {
    id: String,
    client_id: String,
}

#[derive(Debug, Clone)]
pub(crate) struct User {
    /// The token's `sub`.
    pub(crate) id: String,
    /// An id token.
    pub(crate) token: String,
}

impl UserPool {
    /// Creates a pool; pages at `pages` may sign users in by authorization code and PKCE.
    pub(crate) async fn create(aws: &Aws, pages: &[String]) -> Result<Self> {
        let created = call(aws, "CreateUserPool", &json!({"PoolName": "switchboard"})).await?;
        let id = text_at(&created, "/UserPool/Id", "CreateUserPool")?.to_owned();
        let client = json!({
            "UserPoolId": id,
            "ClientName": "dashboard",
            "ExplicitAuthFlows": ["ALLOW_ADMIN_USER_PASSWORD_AUTH", "ALLOW_REFRESH_TOKEN_AUTH"],
            "IdTokenValidity": TOKEN_HOURS,
            "TokenValidityUnits": {"IdToken": "hours"},
            // A page cannot keep a secret, so the client has none.
            "AllowedOAuthFlowsUserPoolClient": true,
            "AllowedOAuthFlows": ["code"],
            "AllowedOAuthScopes": ["openid", "email", "profile"],
            "SupportedIdentityProviders": ["COGNITO"],
            "CallbackURLs": pages,
            "LogoutURLs": pages,
        });
        let created = call(aws, "CreateUserPoolClient", &client).await?;
        let client_id = text_at(&created, "/UserPoolClient/ClientId", "CreateUserPoolClient")?.to_owned();
        Ok(Self { id, client_id })
    }

    /// The `iss` of its tokens.
    pub(crate) fn issuer(&self) -> String {
        format!("https://cognito-idp.{REGION}.amazonaws.com/{}", self.id)
    }

    /// The address of the signing keys: the issuer's own address is that of the real Cognito.
    pub(crate) fn keys(&self, endpoint: &str) -> String {
        format!("{endpoint}/{}/.well-known/jwks.json", self.id)
    }

    /// The discovery document. Its `issuer` is the real Cognito's, as in the tokens; its addresses are local.
    pub(crate) fn configuration(&self, endpoint: &str) -> String {
        format!("{endpoint}/{}/.well-known/openid-configuration", self.id)
    }

    /// The `aud` of its id tokens.
    pub(crate) fn audience(&self) -> &str {
        &self.client_id
    }

    pub(crate) async fn sign_up(&self, aws: &Aws, email: &str) -> Result<User> {
        let attributes = json!([{"Name": "email", "Value": email}, {"Name": "email_verified", "Value": "true"}]);
        let user = json!({
            "UserPoolId": self.id, "Username": email, "MessageAction": "SUPPRESS", "UserAttributes": attributes,
        });
        let created = call(aws, "AdminCreateUser", &user).await?;
        let id = created
            .pointer("/User/Attributes")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .find(|attribute| attribute.get("Name").is_some_and(|name| name == "sub"))
            .and_then(|attribute| attribute.get("Value")?.as_str())
            .ok_or(Error::AwsAnswer { action: "AdminCreateUser".to_owned(), field: "sub" })?
            .to_owned();
        let password = json!({"UserPoolId": self.id, "Username": email, "Password": PASSWORD, "Permanent": true});
        call(aws, "AdminSetUserPassword", &password).await?;
        let sign_in = json!({
            "UserPoolId": self.id,
            "ClientId": self.client_id,
            "AuthFlow": "ADMIN_USER_PASSWORD_AUTH",
            "AuthParameters": {"USERNAME": email, "PASSWORD": PASSWORD},
        });
        let signed_in = call(aws, "AdminInitiateAuth", &sign_in).await?;
        let token = text_at(&signed_in, "/AuthenticationResult/IdToken", "AdminInitiateAuth")?.to_owned();
        Ok(User { id, token })
    }
}

async fn call(aws: &Aws, action: &str, body: &Value) -> Result<Value> {
    aws.json("cognito-idp", &format!("AWSCognitoIdentityProviderService.{action}"), body).await
}
