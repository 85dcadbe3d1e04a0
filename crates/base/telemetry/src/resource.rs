//! The attributes of what is measured: of this gateway among others.

use percent_encoding::percent_decode_str;

/// The attribute that names the service.
const SERVICE_NAME: &str = "service.name";
/// The name of the service if no other is configured.
const OWN_NAME: &str = "portmoot";
/// The most attributes.
const RESOURCE_ATTRIBUTES_MAX: usize = 64;
/// The longest name or value of an attribute, in bytes.
const ATTRIBUTE_BYTES_MAX: usize = 1024;

/// An attribute of a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceAttribute {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// The attributes by which a collector knows a gateway among its sources. Names are unique.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetryResource(Vec<ResourceAttribute>);

/// Why a text is no list of attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AttributesError {
    /// An entry is not of this form.
    #[error("it must be `name=value,name=value`, with other characters as %XX")]
    Form,
    /// There are too many entries, or one is too long.
    #[error(
        "it has more than {RESOURCE_ATTRIBUTES_MAX} entries, or one of more than {ATTRIBUTE_BYTES_MAX} bytes"
    )]
    Long,
}

impl ResourceAttribute {
    /// Parses `name=value,name=value`, with percent-encoded values: the form of
    /// `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_EXPORTER_OTLP_HEADERS`.
    ///
    /// # Errors
    /// [`AttributesError`].
    pub fn list(text: &str) -> Result<Vec<Self>, AttributesError> {
        let mut list = Vec::new();
        for entry in text.split(',').filter(|entry| !entry.trim().is_empty()) {
            let (name, value) = entry.split_once('=').ok_or(AttributesError::Form)?;
            let (name, value) = (name.trim(), value.trim());
            let value = percent_decode_str(value).decode_utf8();
            let value = value.map_err(|_| AttributesError::Form)?;
            if name.is_empty() {
                return Err(AttributesError::Form);
            }
            let longest = name.len().max(value.len());
            if longest > ATTRIBUTE_BYTES_MAX || list.len() == RESOURCE_ATTRIBUTES_MAX {
                return Err(AttributesError::Long);
            }
            list.push(Self {
                name: name.to_owned(),
                value: value.into_owned(),
            });
        }
        Ok(list)
    }
}

impl Default for TelemetryResource {
    fn default() -> Self {
        Self::new(Vec::new(), None)
    }
}

impl TelemetryResource {
    /// These attributes, the last one of a name, and the name of the service.
    #[must_use]
    pub fn new(attributes: Vec<ResourceAttribute>, service_name: Option<&str>) -> Self {
        let mut resource = Self(Vec::new());
        resource.set(SERVICE_NAME, OWN_NAME);
        for one in &attributes {
            resource.set(&one.name, &one.value);
        }
        if let Some(name) = service_name {
            resource.set(SERVICE_NAME, name);
        }
        resource
    }

    fn set(&mut self, name: &str, value: &str) {
        match self.0.iter_mut().find(|known| known.name == name) {
            Some(known) => value.clone_into(&mut known.value),
            None => self.0.push(ResourceAttribute {
                name: name.to_owned(),
                value: value.to_owned(),
            }),
        }
    }

    /// This resource with an attribute more, unless it has one of this name.
    #[must_use]
    pub fn or(mut self, name: &str, value: &str) -> Self {
        if !self.0.iter().any(|known| known.name == name) {
            self.set(name, value);
        }
        self
    }

    /// The attributes.
    #[must_use]
    pub fn attributes(&self) -> &[ResourceAttribute] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(resource: &TelemetryResource) -> Vec<String> {
        let all = resource.attributes().iter();
        all.map(|one| format!("{}={}", one.name, one.value))
            .collect()
    }

    #[test]
    fn attributes_are_read_as_the_specification_writes_them() {
        let list =
            ResourceAttribute::list("deployment.environment=prod%2Ceu, team = a=b ,").unwrap();
        let resource = TelemetryResource::new(list, None)
            .or("service.version", "1")
            .or("team", "x");
        assert_eq!(
            shown(&resource),
            [
                "service.name=portmoot",
                "deployment.environment=prod,eu",
                "team=a=b",
                "service.version=1"
            ]
        );
        let many = "a=1,".repeat(RESOURCE_ATTRIBUTES_MAX + 1);
        let long = format!("a={}", "x".repeat(ATTRIBUTE_BYTES_MAX + 1));
        let cases = [
            ("novalue", AttributesError::Form),
            ("=x", AttributesError::Form),
            ("a=%FF", AttributesError::Form),
            (&*many, AttributesError::Long),
            (&*long, AttributesError::Long),
        ];
        for (text, error) in cases {
            assert_eq!(ResourceAttribute::list(text), Err(error), "{text}");
        }
    }

    #[test]
    fn the_name_of_the_service_comes_before_the_attribute() {
        let list = || ResourceAttribute::list("service.name=x,service.name=y").unwrap();
        assert_eq!(
            shown(&TelemetryResource::new(list(), None)),
            ["service.name=y"]
        );
        let named = TelemetryResource::new(list(), Some("gw"));
        assert_eq!(shown(&named), ["service.name=gw"]);
    }
}
