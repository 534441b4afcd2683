//! Public and non-public host names and IP addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Last labels of names without public servers: reserved (RFC 6761, 6762, 7686, 8375), kept for private use by ICANN, or common
/// in private networks and therefore not delegated.
const NOT_PUBLIC: [&str; 14] = [
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "home.arpa",
    "lan",
    "invalid",
    "test",
    "onion",
    "alt",
];

/// Whether a host name may be public; only DNS tells its addresses.
pub(super) fn is_public_name(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let below = |suffix: &&str| host.strip_suffix(*suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    // A name of one label is looked up in the local network.
    host.contains('.') && !NOT_PUBLIC.iter().any(below)
}

/// False for everything reserved, private, local or translated.
pub(super) fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    !matches!(
        (a, b, c),
        (0 | 10 | 127 | 224.., _, _)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (192, 168, _)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    )
}

/// Only global unicast (`2000::/3`), without documentation, protocol assignments, Teredo and 6to4. This excludes mapped
/// (`::ffff:0:0/96`) and translated (`64:ff9b::/96`) IPv4 addresses too.
fn is_public_v6(ip: Ipv6Addr) -> bool {
    let [a, b, ..] = ip.segments();
    let global_unicast = a & 0xe000 == 0x2000;
    let assigned_to_protocols = a == 0x2001 && b < 0x0200;
    let documentation = (a == 0x2001 && b == 0x0db8) || (a == 0x3fff && b < 0x1000);
    global_unicast && !assigned_to_protocols && !documentation && a != 0x2002
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_public_server_has() {
        for private in [
            "localhost",
            "LOCALHOST",
            "localhost.",
            "api.localhost",
            "metadata.google.internal",
            "printer.local",
            "db",
            "db.",
            "",
            "intranet",
            "crm.corp",
            "nas.home.arpa",
            "router.lan",
            "x.test",
            "x.onion",
        ] {
            assert!(!is_public_name(private), "{private}");
        }
        for public in [
            "example.com",
            "local.example.com",
            "mylocalhost.com",
            "internal.example",
            "home.com",
            "a.b.c.dev",
            "x.dev.",
        ] {
            assert!(is_public_name(public), "{public}");
        }
    }

    #[test]
    fn private_and_reserved_addresses_are_not_public() {
        for private in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "ff02::1",
            "2001:db8::1",
            "::ffff:10.0.0.1",
            "::ffff:8.8.8.8",
            "64:ff9b::a00:1",
            "2002:a00:1::",
            "2001::1",
            "3fff::1",
            "fec0::1",
            "::127.0.0.1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in
            ["8.8.8.8", "93.184.216.34", "100.63.0.1", "172.32.0.1", "192.0.1.1", "2606:4700::1111", "2a00:1450::1"]
        {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }
}
