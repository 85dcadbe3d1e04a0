//! Calls of one participant side by side: with a static token, and with an access token of an
//! issuer whose scopes narrow what the participant may do.

use crate::calls::{self, Variant, variant};
use crate::flags::Flags;
use crate::signers::{Signers, publish};
use crate::stage::{Server, Stage, stdio_table};

const GATEWAY_PORT: u16 = 19_040;
const ISSUER_PORT: u16 = 19_041;

/// Labels of the rows that the others are compared with.
const STATIC: &str = "floor: a static token";
const STATIC_LONG: &str = "floor: a static token, as long as a JWT";

/// A gateway, and one token of each kind for it.
struct Cast {
    gateway: Server,
    long: String,
    jwt: String,
}

/// Measures and prints. A modern caller has one link for all its requests, so that whatever a
/// request holds on to makes the other requests of the same participant wait.
pub fn run(stage: &Stage, flags: &Flags) {
    let cast = cast(stage);
    let bases = [("static", STATIC), ("static, long", STATIC_LONG)];
    calls::table(stage, flags, bases, &|| variants(&cast));
}

fn cast(stage: &Stage) -> Cast {
    let signers = Signers::new();
    let issuer = publish(ISSUER_PORT, signers.keys());
    let public = format!("http://127.0.0.1:{GATEWAY_PORT}");
    let jwt = signers.token("ES256", &issuer, &format!("{public}/mcp"), "ann");
    // The bytes of a token are read too: a static one that is as long tells them apart.
    let long = "t".repeat(jwt.len());
    std::fs::write(stage.home.join("long.token"), &long).expect("a token");
    std::fs::write(stage.home.join("short.token"), SHORT).expect("a token");
    let upstream = stdio_table("s", &stage.stdio_echo(&["modern"]), "era = \"modern\"");
    let participants: String = ["short", "long"]
        .map(|name| {
            format!(
                "[participants.{name}]\ntoken_file = \"{name}.token\"\ncapabilities = [\"mcp/*\"]\n"
            )
        })
        .concat();
    let config = format!(
        "public_url = \"{public}\"\n[audit]\nenabled = false\n{upstream}{participants}\
         [profiles.all]\ncapabilities = [\"mcp/*\"]\n\
         [issuers.corp]\nissuer = \"{issuer}\"\njwks_url = \"{issuer}/keys\"\nunknown = \"all\"\n\
         [scopes.\"mcp:read\"]\ncapabilities = [\"mcp/request:tools/call:*\"]\n"
    );
    let gateway = stage.gateway(GATEWAY_PORT, &config);
    stage.ready(GATEWAY_PORT, "modern", &format!("s_echo --bearer {SHORT}"));
    Cast { gateway, long, jwt }
}

/// A static token as users have them.
const SHORT: &str = "a-static-token-of-a-bench";

fn variants(cast: &Cast) -> Vec<Variant> {
    let call = |label, bearer: &str| {
        let words = format!("--era modern --tool s_echo --bearer {bearer}");
        variant(label, &cast.gateway, &words)
    };
    vec![
        call(STATIC, SHORT),
        call(STATIC_LONG, &cast.long),
        call("an access token with scopes", &cast.jwt),
    ]
}
