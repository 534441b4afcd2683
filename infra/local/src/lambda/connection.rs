//! Connections that send and acknowledge small pieces without delay.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use axum::serve::Listener;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
};

/// A listener whose connections send and acknowledge at once.
pub(super) struct Prompt(pub(super) TcpListener);

impl Listener for Prompt {
    type Io = PromptStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (PromptStream, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        // A socket that refuses the option is slower, not wrong.
        let _slower = stream.set_nodelay(true);
        (PromptStream(stream), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

pub(super) struct PromptStream(TcpStream);

impl PromptStream {
    /// Acknowledges the last piece at once; must be called after each piece. The function's runtime holds a small
    /// piece back until the previous one is acknowledged, and Linux delays an acknowledgement without data by 40 ms.
    fn acknowledge(&self) {
        #[cfg(target_os = "linux")]
        let _slower = self.0.set_quickack(true);
    }
}

impl AsyncRead for PromptStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.0).poll_read(context, into);
        if read.is_ready() {
            self.acknowledge();
        }
        read
    }
}

impl AsyncWrite for PromptStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
