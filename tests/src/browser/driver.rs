//! A client for WebDriver (w3.org/TR/webdriver2) with ChromeDriver's extensions, limited to the tests' needs.
//!
//! A library is no option: thirtyfour enables `serde_json`'s `preserve_order` for every crate of the build, so the
//! tests would not test the deployed code.

use std::{
    env,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use reqwest::Method;
use serde_json::{Value, json};

/// The key of an element reference.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser session. Dropping it ends the browser and ChromeDriver.
pub(super) struct Session {
    http: reqwest::Client,
    /// `127.0.0.1:<port>`.
    address: String,
    /// `/session/<id>`.
    path: String,
    chromedriver: Child,
}

/// ChromeDriver's error: the protocol's kind and a message.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) kind: String,
    pub(super) message: String,
}

#[derive(Debug, Clone)]
pub(super) struct Element(String);

impl Session {
    /// Starts ChromeDriver on a free port, and a browser with these capabilities.
    pub(super) async fn start(chromedriver: PathBuf, capabilities: Value) -> Self {
        let mut command = Command::new(chromedriver);
        let mut chromedriver = command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(chromedriver.stdout.take().unwrap()).lines();
        let port = loop {
            let line = lines.next().expect("ChromeDriver says its port").unwrap();
            if let Some((_, port)) = line.split_once("started successfully on port ") {
                break port.trim_end_matches('.').to_owned();
            }
        };
        // ChromeDriver would block if nobody read its further output.
        std::thread::spawn(move || lines.for_each(drop));
        let http = shared::clients::http_client().unwrap();
        let mut session = Self { http, address: format!("127.0.0.1:{port}"), path: String::new(), chromedriver };
        let wanted = json!({"capabilities": {"alwaysMatch": capabilities}});
        let begun = session.send(Method::POST, "/session", &wanted).await.expect("Chromium starts");
        session.path = format!("/session/{}", begun["sessionId"].as_str().unwrap());
        session
    }

    pub(super) async fn get(&self, command: &str) -> Result<Value, Failure> {
        self.send(Method::GET, command, &Value::Null).await
    }

    pub(super) async fn post(&self, command: &str, parameters: &Value) -> Result<Value, Failure> {
        self.send(Method::POST, command, parameters).await
    }

    async fn send(&self, method: Method, command: &str, parameters: &Value) -> Result<Value, Failure> {
        let address = format!("http://{}{}{command}", self.address, self.path);
        let mut request = self.http.request(method, address).timeout(Duration::from_mins(1));
        if !parameters.is_null() {
            request = request.json(parameters);
        }
        let answer = async { request.send().await?.json::<Value>().await };
        let mut answer = answer.await.map_err(|error| Failure {
            kind: "no answer of ChromeDriver".to_owned(),
            message: format!("{command}: {error}"),
        })?;
        let value = answer["value"].take();
        match value.get("error").and_then(Value::as_str) {
            Some(kind) => {
                let message = value["message"].as_str().unwrap_or_default().to_owned();
                Err(Failure { kind: kind.to_owned(), message })
            }
            None => Ok(value),
        }
    }

    pub(super) async fn elements(&self, css: &str) -> Result<Vec<Element>, Failure> {
        let found = self.post("/elements", &json!({"using": "css selector", "value": css})).await?;
        let found = found.as_array().cloned().unwrap_or_default();
        Ok(found.iter().filter_map(|element| Some(Element(element[ELEMENT].as_str()?.to_owned()))).collect())
    }

    pub(super) async fn shown(&self, element: &Element) -> Result<bool, Failure> {
        Ok(self.get(&format!("/element/{}/displayed", element.0)).await? == json!(true))
    }

    pub(super) async fn click(&self, element: &Element) -> Result<(), Failure> {
        self.post(&format!("/element/{}/click", element.0), &json!({})).await.map(drop)
    }

    pub(super) async fn keys(&self, element: &Element, text: &str) -> Result<(), Failure> {
        self.post(&format!("/element/{}/value", element.0), &json!({"text": text})).await.map(drop)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Chromium outlives ChromeDriver unless its session is deleted.
        if !self.path.is_empty()
            && let Ok(mut stream) = TcpStream::connect(&self.address)
        {
            let request = format!("DELETE {} HTTP/1.1\r\nHost: {}\r\n\r\n", self.path, self.address);
            drop(stream.set_read_timeout(Some(Duration::from_secs(10))));
            drop(stream.write_all(request.as_bytes()));
            // The answer comes when the browser has ended.
            drop(stream.read(&mut [0; 64]));
        }
        drop(self.chromedriver.kill());
        drop(self.chromedriver.wait());
    }
}

/// A program on the `PATH`.
pub(super) fn program(name: &str) -> Option<PathBuf> {
    let directories = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&directories).map(|directory| directory.join(name)).find(|path| path.is_file())
}
