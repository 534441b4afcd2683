//! The ports of 127.0.0.1 that the stack uses.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use crate::{Error, Result};

/// One port per part; 0 means any free port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    pub api: u16,
    pub vapi: u16,
    pub twilio: u16,
    pub pipedream: u16,
    pub llm: u16,
    pub crm: u16,
    pub site: u16,
    pub stream: u16,
    pub google: u16,
    pub aws: u16,
}

impl Ports {
    /// `base` for the API, the next six for the stand-ins, then one for streamed answers and one for Google's
    /// stand-in, `base + 66` for AWS. If `base` is 0, every port is any free one.
    pub fn from_base(base: u16) -> Option<Self> {
        let port = |offset: u16| if base == 0 { Some(0) } else { base.checked_add(offset) };
        Some(Self {
            api: port(0)?,
            vapi: port(1)?,
            twilio: port(2)?,
            pipedream: port(3)?,
            llm: port(4)?,
            crm: port(5)?,
            site: port(6)?,
            stream: port(7)?,
            google: port(8)?,
            aws: port(66)?,
        })
    }

    pub fn free() -> Self {
        Self { api: 0, vapi: 0, twilio: 0, pipedream: 0, llm: 0, crm: 0, site: 0, stream: 0, google: 0, aws: 0 }
    }
}

pub(crate) fn address(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

pub(crate) fn listen(port: u16, service: &'static str) -> Result<TcpListener> {
    TcpListener::bind(address(port)).map_err(|_in_use| Error::PortTaken { port, service })
}

/// A currently free port for a program that binds it itself: `port`, or any if `port` is 0.
pub(crate) fn free(port: u16, service: &'static str) -> Result<u16> {
    let listener = listen(port, service)?;
    Ok(listener.local_addr().map_err(Error::file("find a free port"))?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_gives_a_port_to_each_part() {
        let ports = Ports::from_base(4500).unwrap();
        assert_eq!(
            (ports.api, ports.vapi, ports.llm, ports.stream, ports.google, ports.aws),
            (4500, 4501, 4504, 4507, 4508, 4566)
        );
        assert_eq!(Ports::from_base(0), Some(Ports::free()));
        assert_eq!(Ports::from_base(65500), None);
    }

    #[test]
    fn a_taken_port_is_told_with_its_number() {
        let taken = listen(0, "the API").unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = free(port, "the API").unwrap_err().to_string();
        assert!(error.contains(&port.to_string()) && error.contains("the API"), "{error}");
    }
}
