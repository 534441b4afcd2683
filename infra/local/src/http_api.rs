//! Serves the HTTP API under a plain address; the local AWS selects APIs by host name.
//!
//! Enforces the HTTP API's limits: 10 MB per request, 30 s per answer. Answers preflights and sets the CORS headers
//! from the API's `corsConfiguration`: the local AWS would keep a function's own CORS headers beside its own, and
//! browsers refuse duplicates. The API's own 401 and 404 carry no CORS headers.

use std::{net::TcpListener, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use tokio::task::JoinHandle;

use crate::{Error, Result, cors::Cors};

const LARGEST_BODY: usize = 10 * 1024 * 1024;
const LONGEST_ANSWER: Duration = Duration::from_secs(30);

/// A running HTTP API; it closes on drop.
#[derive(Debug)]
pub struct HttpApi {
    task: JoinHandle<()>,
}

#[derive(Clone)]
struct Behind {
    http: reqwest::Client,
    /// `http://127.0.0.1:<port>`.
    endpoint: String,
    /// The API's host name at the local AWS.
    host: String,
    cors: Option<Cors>,
}

impl HttpApi {
    /// Serves the HTTP API `api_id` of the AWS at `endpoint` on `listener`; `cors` is the API's CORS configuration.
    ///
    /// # Errors
    /// If `listener` cannot be listened on.
    pub fn open(
        listener: TcpListener,
        http: reqwest::Client,
        endpoint: &str,
        api_id: &str,
        cors: Option<Cors>,
    ) -> Result<Self> {
        let listen = move || {
            listener.set_nonblocking(true)?;
            tokio::net::TcpListener::from_std(listener)
        };
        let listener = listen().map_err(Error::file("listen for the API"))?;
        let port = endpoint.rsplit(':').next().unwrap_or_default();
        let host = format!("{api_id}.execute-api.localhost:{port}");
        let behind = Behind { http, endpoint: endpoint.to_owned(), host, cors };
        let router = Router::new().fallback(receive).with_state(behind);
        let task = tokio::spawn(async move {
            // The server runs until it is aborted; a broken connection is the caller's problem.
            let _ended = axum::serve(listener, router).await;
        });
        Ok(Self { task })
    }
}

impl Drop for HttpApi {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn receive(State(behind): State<Behind>, request: Request) -> Response {
    let Some(cors) = &behind.cors else { return pass_on(&behind, request).await };
    if request.method() == Method::OPTIONS {
        let mut answer = cors.preflight(request.headers());
        *answer.status_mut() = StatusCode::NO_CONTENT;
        return answer;
    }
    let asked = request.headers().clone();
    let mut answer = pass_on(&behind, request).await;
    // Only a function's answer has this header, set by the function or by the local AWS.
    if answer.headers().contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN) {
        cors.answered_instead(&asked, answer.headers_mut());
    }
    answer
}

async fn pass_on(behind: &Behind, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, LARGEST_BODY).await else {
        return refusal(StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large");
    };
    match forward(behind, parts.method, &parts.uri, &parts.headers, body).await {
        Ok(answer) => answer,
        Err(error) if error.is_timeout() => refusal(StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable"),
        Err(_gone) => refusal(StatusCode::BAD_GATEWAY, "the local AWS does not answer; see ministack.log"),
    }
}

async fn forward(
    behind: &Behind,
    method: Method,
    uri: &Uri,
    headers: &HeaderMap,
    body: Bytes,
) -> reqwest::Result<Response> {
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let answer = behind
        .http
        .request(method, format!("{}{target}", behind.endpoint))
        .headers(end_to_end(headers))
        .header(header::HOST, &behind.host)
        .timeout(LONGEST_ANSWER)
        .body(body)
        .send()
        .await?;
    let (status, headers) = (answer.status(), end_to_end(answer.headers()));
    let mut response = Response::new(Body::from(answer.bytes().await?));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// The headers without hop-by-hop headers, host and length.
pub(crate) fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    const OF_ONE_HOP: [HeaderName; 6] = [
        header::HOST,
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        header::EXPECT,
    ];
    let mut kept = headers.clone();
    for name in OF_ONE_HOP {
        kept.remove(name);
    }
    kept
}

/// An error in the HTTP API's own format.
fn refusal(status: StatusCode, message: &str) -> Response {
    (status, axum::Json(serde_json::json!({"message": message}))).into_response()
}

#[cfg(test)]
mod tests {
    use axum::routing::any;

    use super::*;
    use crate::ports;

    async fn api_to(router: Router) -> (HttpApi, String) {
        let behind = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", behind.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(behind, router).await });
        let listener = ports::listen(0, "the API").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        (HttpApi::open(listener, shared::clients::http_client().unwrap(), &endpoint, "abc123", None).unwrap(), url)
    }

    #[tokio::test]
    async fn a_request_goes_through_whole_and_under_the_apis_name() {
        async fn echo(method: Method, uri: Uri, headers: HeaderMap, body: String) -> Response {
            let of = |name: &str| headers.get(name).unwrap().to_str().unwrap().to_owned();
            let host = of("host");
            let text = format!("{method} {uri} {} {} {body}", host.split(':').next().unwrap(), of("authorization"));
            (StatusCode::IM_A_TEAPOT, [("x-answer", "yes")], text).into_response()
        }
        let (_api, url) = api_to(Router::new().fallback(any(echo))).await;
        let answer = shared::clients::http_client()
            .unwrap()
            .put(format!("{url}/api/a%20b/tools?limit=2"))
            .header("authorization", "Bearer t")
            .body("{}")
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), StatusCode::IM_A_TEAPOT);
        assert_eq!(answer.headers()["x-answer"], "yes");
        let text = answer.text().await.unwrap();
        assert_eq!(text, "PUT /api/a%20b/tools?limit=2 abc123.execute-api.localhost Bearer t {}");
    }

    #[tokio::test]
    async fn an_unreachable_aws_is_reported() {
        let listener = ports::listen(0, "the API").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let nobody = format!("http://127.0.0.1:{}", ports::free(0, "nobody").unwrap());
        let http = shared::clients::http_client().unwrap();
        let _api = HttpApi::open(listener, http.clone(), &nobody, "abc123", None).unwrap();
        let answer = http.get(url).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::BAD_GATEWAY);
        assert!(answer.text().await.unwrap().contains("ministack.log"));
    }
}
