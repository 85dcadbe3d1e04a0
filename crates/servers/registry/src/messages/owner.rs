//! Owners of modules: `buf.registry.owner.v1`.

use super::Timestamp;

/// An owner by id or name.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct OwnerRef {
    /// Its id, or empty.
    #[prost(string, tag = "1")]
    pub id: String,
    /// Its name, or empty.
    #[prost(string, tag = "2")]
    pub name: String,
}

/// Request of `OwnerService.GetOwners`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct GetOwnersRequest {
    /// Up to 250.
    #[prost(message, repeated, tag = "1")]
    pub owner_refs: Vec<OwnerRef>,
}

/// Its answer.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct GetOwnersResponse {
    /// In the order of the request.
    #[prost(message, repeated, tag = "1")]
    pub owners: Vec<Owner>,
}

/// An owner; here always an organization.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Owner {
    /// The organization.
    #[prost(message, optional, tag = "2")]
    pub organization: Option<Organization>,
}

/// An organization.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Organization {
    /// 32 hexadecimal digits.
    #[prost(string, tag = "1")]
    pub id: String,
    /// When it was made.
    #[prost(message, optional, tag = "2")]
    pub create_time: Option<Timestamp>,
    /// When it was changed.
    #[prost(message, optional, tag = "3")]
    pub update_time: Option<Timestamp>,
    /// Its name.
    #[prost(string, tag = "4")]
    pub name: String,
}
