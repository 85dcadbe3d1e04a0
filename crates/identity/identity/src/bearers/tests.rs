use super::*;

#[test]
fn own_tokens_and_gateways_without_issuers_are_not_concerned() {
    let bearers = Bearers::new(Arc::default());
    assert!(!bearers.concerns("a.b.c") && !bearers.concerns("pm_x") && !bearers.concerns(""));
    assert!(
        bearers
            .identify(Presented::from(Some("a.b.c")), None)
            .is_none()
    );
}
