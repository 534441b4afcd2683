//! Deploys the template to the local AWS: zips to S3, the stack through `CloudFormation`.

use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, Instant},
};

use reqwest::Method;
use ring::digest;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    Error, Result,
    aws::{Aws, text_at, xml_texts},
    cors::Cors,
    programs::Package,
    progress::Step,
    workspace::Workspace,
};

pub(crate) const STACK: &str = "switchboard";
const BUCKET: &str = "switchboard-code";
const LIMIT: Duration = Duration::from_mins(5);

/// The outputs of the finished stack.
#[derive(Debug)]
pub(crate) struct Deployed {
    pub(crate) api_id: String,
    pub(crate) table_prefix: String,
    pub(crate) twilio_secret_prefix: String,
}

/// Uploads the packages and returns their key prefix.
pub(crate) async fn upload(aws: &Aws, packages: &[Package], step: &Step<'_>) -> Result<String> {
    let mut bytes = Vec::new();
    let mut digest = digest::Context::new(&digest::SHA256);
    for package in packages {
        let zip = fs::read(&package.zip).map_err(Error::file(format!("read {}", package.zip.display())))?;
        digest.update(&zip);
        bytes.push((package, zip));
    }
    // One prefix per set of programs, as in `make deploy`.
    let digest: [u8; 8] = digest.finish().as_ref().first_chunk().copied().unwrap_or_default();
    let prefix = format!("{:016x}", u64::from_be_bytes(digest));
    aws.rest("s3", Method::PUT, &format!("/{BUCKET}"), Vec::new()).await?;
    for (package, zip) in bytes {
        step.detail(&format!("uploading {}", package.function));
        aws.rest("s3", Method::PUT, &format!("/{BUCKET}/{prefix}/{}.zip", package.function), zip).await?;
    }
    Ok(prefix)
}

/// Deploys `infra/template.yaml` with `parameters` and the parameters of the code.
///
/// # Errors
/// [`Error::Stack`] names the resource that failed and the reason.
pub(crate) async fn deploy(
    aws: &Aws,
    workspace: &Workspace,
    code_prefix: &str,
    parameters: &[(&str, String)],
    step: &Step<'_>,
) -> Result<Deployed> {
    let path = workspace.path("infra/template.yaml");
    let template = fs::read(&path).map_err(Error::file(format!("read {}", path.display())))?;
    // CloudFormation takes 51,200 bytes in a request and 1 MB from a bucket.
    let key = format!("{BUCKET}/{code_prefix}/template.yaml");
    aws.rest("s3", Method::PUT, &format!("/{key}"), template).await?;
    let template = format!("{}/{key}", aws.endpoint());
    let code = [
        ("CodeBucket", BUCKET.to_owned()),
        ("CodePrefix", code_prefix.to_owned()),
        ("Architecture", if cfg!(target_arch = "aarch64") { "arm64" } else { "x86_64" }.to_owned()),
        // The local AWS is discarded at the end, so nothing needs protection.
        ("DeletionProtection", "false".to_owned()),
    ];
    let mut form = vec![
        ("StackName".to_owned(), STACK.to_owned()),
        ("TemplateURL".to_owned(), template),
        ("Capabilities.member.1".to_owned(), "CAPABILITY_IAM".to_owned()),
        ("Capabilities.member.2".to_owned(), "CAPABILITY_AUTO_EXPAND".to_owned()),
    ];
    for (number, (key, value)) in (1..).zip(code.iter().chain(parameters)) {
        form.push((format!("Parameters.member.{number}.ParameterKey"), (*key).to_owned()));
        form.push((format!("Parameters.member.{number}.ParameterValue"), value.clone()));
    }
    aws.query("cloudformation", "CreateStack", &form).await?;
    let finished = wait(aws, step).await?;
    let outputs: BTreeMap<String, String> =
        xml_texts(&finished, "OutputKey").into_iter().zip(xml_texts(&finished, "OutputValue")).collect();
    let output = |name: &'static str| {
        outputs.get(name).cloned().ok_or(Error::AwsAnswer { action: "DescribeStacks".to_owned(), field: name })
    };
    Ok(Deployed {
        api_id: output("ApiId")?,
        table_prefix: output("TablePrefix")?,
        twilio_secret_prefix: output("TwilioSecretPrefix")?,
    })
}

/// Waits until the stack is created; returns its last description, in XML.
async fn wait(aws: &Aws, step: &Step<'_>) -> Result<String> {
    let begun = Instant::now();
    let stack = [("StackName".to_owned(), STACK.to_owned())];
    while begun.elapsed() < LIMIT {
        let description = aws.query("cloudformation", "DescribeStacks", &stack).await?;
        match xml_texts(&description, "StackStatus").first().map(String::as_str) {
            Some("CREATE_COMPLETE") => return Ok(description),
            Some("CREATE_IN_PROGRESS" | "ROLLBACK_IN_PROGRESS") => {}
            other => {
                let events = aws.query("cloudformation", "DescribeStackEvents", &stack).await?;
                let ended = other.unwrap_or("it is unknown").to_owned();
                return Err(Error::Stack(first_failure(&events).unwrap_or(ended)));
            }
        }
        step.detail("CloudFormation is creating resources");
        sleep(Duration::from_millis(100)).await;
    }
    Err(Error::StackSlow(LIMIT.as_secs()))
}

/// Resource and reason of the first failure; later failures follow from it.
fn first_failure(events: &str) -> Option<String> {
    // Newest first.
    let failed = xml_texts(events, "member")
        .into_iter()
        .rfind(|event| xml_texts(event, "ResourceStatus").iter().any(|status| status.ends_with("_FAILED")))?;
    let text = |tag| xml_texts(&failed, tag).into_iter().next();
    Some(format!("{}: {}", text("LogicalResourceId")?, text("ResourceStatusReason")?))
}

/// The CORS configuration of the deployed HTTP API, if it has one.
///
/// # Errors
/// Also if API Gateway would reject the configuration.
pub(crate) async fn cors(aws: &Aws, api_id: &str) -> Result<Option<Cors>> {
    let text = aws.rest("apigateway", Method::GET, &format!("/v2/apis/{api_id}"), Vec::new()).await?;
    let api: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    let cors = api.get("corsConfiguration").map(Cors::of_api).transpose();
    cors.map_err(|refused| Error::Stack(format!("Api: {refused}")))
}

/// The environment variables of all functions, to run one of them outside of Lambda.
pub(crate) async fn environment(aws: &Aws, packages: &[Package]) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for package in packages {
        let path = format!("/2015-03-31/functions/{STACK}-{}/configuration", package.function);
        let text = aws.rest("lambda", Method::GET, &path, Vec::new()).await?;
        let configuration: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        all.extend(variables(&configuration));
    }
    Ok(all)
}

pub(crate) fn variables(configuration: &Value) -> BTreeMap<String, String> {
    let variables = configuration.pointer("/Environment/Variables").and_then(Value::as_object);
    let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    variables.into_iter().flatten().filter_map(text).collect()
}

/// Creates a secret and returns its ARN.
pub(crate) async fn create_secret(aws: &Aws, name: &str, value: &Value) -> Result<String> {
    let action = "secretsmanager.CreateSecret";
    let created = aws.json("secretsmanager", action, &json!({"Name": name, "SecretString": value.to_string()})).await?;
    Ok(text_at(&created, "/ARN", action)?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_is_the_oldest() {
        let event = |resource: &str, status: &str, reason: &str| {
            format!(
                "<member><LogicalResourceId>{resource}</LogicalResourceId><ResourceStatus>{status}</ResourceStatus>\
                 <ResourceStatusReason>{reason}</ResourceStatusReason></member>"
            )
        };
        let events = [
            event("switchboard", "ROLLBACK_COMPLETE", ""),
            event("ListFunction", "CREATE_FAILED", "cancelled"),
            event("CreateRole", "CREATE_FAILED", "no such table"),
            event("Api", "CREATE_COMPLETE", ""),
        ]
        .concat();
        assert_eq!(first_failure(&events).as_deref(), Some("CreateRole: no such table"));
        assert_eq!(first_failure(&event("Api", "CREATE_COMPLETE", "")), None);
    }
}
