//! A minimal HTTP/1.1 server with a thread per connection, so that handlers may block.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: Vec<u8>,
}

pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn new(status: u16, body: impl Into<String>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }
}

/// Serves until dropped; open connections end with their clients.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stopped: Arc<AtomicBool>,
}

impl Server {
    pub(crate) fn start(handle: impl Fn(&Request) -> Response + Send + Sync + 'static) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let stopped = Arc::new(AtomicBool::new(false));
        let (stop, handle) = (stopped.clone(), Arc::new(handle));
        thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let handle = handle.clone();
                // A client that hangs up ends its connection; there is nobody to tell.
                thread::spawn(move || stream.and_then(|stream| connection(stream, &*handle)));
            }
        });
        Ok(Self { address, stopped })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        // Wakes the listener so that it stops.
        drop(TcpStream::connect(self.address));
    }
}

fn connection(stream: TcpStream, handle: &impl Fn(&Request) -> Response) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader)? {
        let Response { status, headers, body } = handle(&request);
        let length = body.len();
        let mut answer =
            format!("HTTP/1.1 {status} \r\ncontent-type: application/json\r\ncontent-length: {length}\r\n");
        for (name, value) in headers {
            answer.extend([name, ": ", &value, "\r\n"]);
        }
        answer.extend(["\r\n", &body]);
        reader.get_mut().write_all(answer.as_bytes())?;
    }
    Ok(())
}

/// The next request; `None` if the client is done.
fn read(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(io::Error::other)?;
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(io::Error::other("bodies in chunks are not read here"));
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Request { method, path, body }))
}
