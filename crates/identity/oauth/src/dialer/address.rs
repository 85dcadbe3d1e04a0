//! Classes of addresses, and which of them a fetch may reach.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use url::{Host, Url};

/// A class of addresses, from the special-purpose registries of IANA (RFC 6890).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Addresses of the internet.
    Public,
    /// This machine: `127.0.0.0/8`, `::1`.
    Loopback,
    /// Private networks: RFC 1918, RFC 6598 (shared), RFC 4193 (unique local), RFC 3879
    /// (site-local).
    Private,
    /// One link, where clouds serve credentials to machines: `169.254.0.0/16`, `fe80::/10`.
    LinkLocal,
    /// Everything else: unspecified, multicast, reserved, documentation, benchmarks, tunnels.
    Special,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "a public address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Special => "a special-purpose address",
        })
    }
}

/// The class of an address. An IPv6 address with an IPv4 address inside (mapped, NAT64, 6to4,
/// compatible) has that one's, except that only a mapped one counts as loopback or private: the
/// others would travel.
#[must_use]
pub fn class(address: IpAddr) -> Class {
    match address {
        IpAddr::V4(address) => class_v4(address),
        IpAddr::V6(address) => class_v6(address),
    }
}

fn class_v4(address: Ipv4Addr) -> Class {
    match address.octets() {
        [127, ..] => Class::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Class::Private,
        [169, 254, ..] => Class::LinkLocal,
        [0 | 224..=255, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => Class::Special,
        _ => Class::Public,
    }
}

fn class_v6(address: Ipv6Addr) -> Class {
    if address == Ipv6Addr::LOCALHOST {
        return Class::Loopback;
    }
    if let Some(inside) = address.to_ipv4_mapped() {
        return class_v4(inside);
    }
    let [a, b, c, d, e, f, ..] = address.segments();
    let inside = match (a, b) {
        (0x2002, _) => Some(Ipv4Addr::from(u32::from(b) << 16 | u32::from(c))),
        (0x64, 0xff9b) if [c, d, e, f] == [0; 4] => {
            let [.., high, low] = address.segments();
            Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
        }
        _ => None,
    };
    if let Some(inside) = inside {
        return if class_v4(inside) == Class::Public {
            Class::Public
        } else {
            Class::Special
        };
    }
    match (a, b) {
        (0xfc00..=0xfdff | 0xfec0..=0xfeff, _) => Class::Private,
        (0xfe80..=0xfebf, _) => Class::LinkLocal,
        // Teredo, benchmarks, ORCHID; documentation.
        (0x2001, 0 | 2 | 0x10..=0x2f | 0xdb8) | (0x3fff, 0..=0xfff) => Class::Special,
        // Global unicast is what is left of 2000::/3; the rest is unassigned, multicast, or has no
        // meaning beyond a host.
        (0x2000..=0x3fff, _) => Class::Public,
        _ => Class::Special,
    }
}

/// A range of addresses, as `10.1.0.0/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subnet {
    base: IpAddr,
    bits: u8,
}

/// A text is no range of addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no range of addresses such as 10.1.0.0/16")]
pub struct SubnetError(String);

impl Subnet {
    /// Whether the address is in the range. An IPv4 address that is mapped into IPv6 is the IPv4
    /// address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.base, address.to_canonical()) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                base.to_bits() & mask == address.to_bits() & mask
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                let mask = u128::MAX
                    .checked_shl(128 - u32::from(self.bits))
                    .unwrap_or(0);
                base.to_bits() & mask == address.to_bits() & mask
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for Subnet {
    type Err = SubnetError;

    fn from_str(text: &str) -> Result<Self, SubnetError> {
        let wrong = || SubnetError(text.chars().take(60).collect());
        let (base, bits) = text
            .split_once('/')
            .map_or((text, None), |(base, bits)| (base, Some(bits)));
        let base: IpAddr = base.parse().map_err(|_| wrong())?;
        let most = if base.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => bits
                .parse::<u8>()
                .ok()
                .filter(|bits| *bits <= most)
                .ok_or_else(wrong)?,
            None => most,
        };
        Ok(Self { base, bits })
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.bits)
    }
}

/// Which addresses a fetch may reach: public ones, those of the class of the address that the
/// operator configured, and ranges that the operator allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedAddresses {
    class: Class,
    plain: bool,
    allowed: Vec<Subnet>,
}

impl AllowedAddresses {
    /// Public addresses alone, over `https`.
    #[must_use]
    pub fn public() -> Self {
        Self {
            class: Class::Public,
            plain: false,
            allowed: Vec::new(),
        }
    }

    /// Addresses that a peer at this configured URL may name: a peer on a loopback or private
    /// *address* (or `localhost`) may name others of the same class, and plain `http` there if it
    /// is plain itself. A name that merely resolves to a private address widens nothing, as its
    /// owner decides what it resolves to:
    /// `allowed` is for those.
    #[must_use]
    pub fn of(configured: &Url, allowed: &[Subnet]) -> Self {
        let class = match configured.host() {
            Some(Host::Ipv4(address)) => class_v4(address),
            Some(Host::Ipv6(address)) => class_v6(address),
            Some(Host::Domain(name)) if is_localhost(name) => Class::Loopback,
            Some(Host::Domain(_)) | None => Class::Public,
        };
        let class = match class {
            Class::Loopback | Class::Private => class,
            Class::Public | Class::LinkLocal | Class::Special => Class::Public,
        };
        Self {
            class,
            plain: configured.scheme() == "http",
            allowed: allowed.to_vec(),
        }
    }

    /// Whether the address may be dialed.
    #[must_use]
    pub fn covers(&self, address: IpAddr) -> bool {
        let class = class(address);
        class == Class::Public
            || class == self.class
            || self.allowed.iter().any(|range| range.contains(address))
    }

    /// Whether an address that a document names may be dialed without TLS, before it is dialed.
    pub(crate) fn plain_for(&self, address: IpAddr) -> bool {
        self.allows_plain(address)
    }

    /// Whether a name may be dialed without TLS: only `localhost` is known to be this machine.
    pub(crate) fn plain_for_name(&self, name: &str) -> bool {
        is_localhost(name) && self.allows_plain(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    /// Whether the address may be dialed without TLS.
    pub(super) fn allows_plain(&self, address: IpAddr) -> bool {
        self.plain && self.covers(address) && class(address) != Class::Public
    }

    /// The class of a name that is refused without resolving it.
    pub(super) fn refused_name(&self, name: &str) -> Option<Class> {
        let bare = name.strip_suffix('.').unwrap_or(name);
        if is_localhost(bare) {
            let here = [
                IpAddr::V4(Ipv4Addr::LOCALHOST),
                IpAddr::V6(Ipv6Addr::LOCALHOST),
            ];
            return (!here.into_iter().any(|address| self.covers(address)))
                .then_some(Class::Loopback);
        }
        const METADATA: [&str; 5] = [
            "metadata",
            "metadata.google.internal",
            "metadata.goog",
            "metadata.azure.internal",
            "instance-data",
        ];
        let is_metadata = METADATA
            .iter()
            .any(|known| bare.eq_ignore_ascii_case(known));
        // RFC 7686: such a name is not asked of the DNS.
        let is_onion = bare.to_ascii_lowercase().ends_with(".onion");
        (is_metadata || is_onion).then_some(if is_onion {
            Class::Special
        } else {
            Class::LinkLocal
        })
    }
}

/// `localhost` and all names below it (RFC 6761).
fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    matches!(
        name.as_str(),
        "localhost" | "localhost.localdomain" | "ip6-localhost" | "ip6-loopback"
    ) || name.ends_with(".localhost")
}
