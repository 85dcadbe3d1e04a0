//! Services with which clients look around: health, and reflection of proto-mcp's contract. They
//! say nothing of this gateway.

use axum::Router;
use http::{Request, Response};
use platform::Taken;
use tokio::sync::OnceCell;
use tonic::Status;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};
use tonic_reflection::pb;
use tower::ServiceExt as _;

use super::super::body::Body;
use super::super::metered::{Placed, Questions};
use super::reflect::Reflection;

/// The longest question, in bytes.
const QUESTION_BYTES_MAX: usize = 4 * 1024;
/// The services that are served.
const SERVED: [&str; 2] = ["", "buf.mcp.v1.MCPService"];

/// Serves a request that is not for proto-mcp's service.
pub(super) async fn serve(request: Request<Questions>, place: Taken) -> Response<Body> {
    static SERVICES: OnceCell<Router> = OnceCell::const_new();
    let services = SERVICES.get_or_init(services).await.clone();
    match services.oneshot(request.map(axum::body::Body::new)).await {
        Ok(response) => response.map(|body| {
            let body = axum::body::Body::new(Placed {
                body,
                _place: place,
            });
            Body::Page(body, None)
        }),
        Err(never) => match never {},
    }
}

async fn services() -> Router {
    let reporter = HealthReporter::new();
    for service in SERVED {
        reporter
            .set_service_status(service, ServingStatus::Serving)
            .await;
    }
    let health = HealthServer::new(HealthService::from_health_reporter(reporter))
        .max_decoding_message_size(QUESTION_BYTES_MAX);
    let mut services = Router::new()
        .route_service("/grpc.health.v1.Health/{method}", health)
        .fallback(async || {
            Status::unimplemented("no such service").into_http::<axum::body::Body>()
        });
    let files = [(
        wire::proto::CONTRACT_PATH.to_owned(),
        wire::proto::CONTRACT.to_owned(),
    )];
    let set = match schema::compile(&files) {
        Ok(set) => set,
        Err(error) => {
            tracing::error!(%error, "the contract has no reflection");
            Vec::new()
        }
    };
    match Reflection::of(&[
        &set,
        pb::v1::FILE_DESCRIPTOR_SET,
        pb::v1alpha::FILE_DESCRIPTOR_SET,
    ]) {
        Ok(reflection) => {
            let v1 =
                pb::v1::server_reflection_server::ServerReflectionServer::new(reflection.clone());
            let v1alpha =
                pb::v1alpha::server_reflection_server::ServerReflectionServer::new(reflection);
            services = services
                .route_service(
                    "/grpc.reflection.v1.ServerReflection/{method}",
                    v1.max_decoding_message_size(QUESTION_BYTES_MAX),
                )
                .route_service(
                    "/grpc.reflection.v1alpha.ServerReflection/{method}",
                    v1alpha.max_decoding_message_size(QUESTION_BYTES_MAX),
                );
        }
        Err(error) => tracing::error!(%error, "there is no reflection"),
    }
    services.layer(tonic_web::GrpcWebLayer::new())
}
