//! Participants that came with access tokens: known from their first token until long after their
//! last.

use std::collections::HashMap;
use std::sync::Arc;

use auth::Participant;
use auth::jwt::{Claims, SubjectClaim};
use model::ParticipantId;
use platform::Mutex;

use super::refused::TokenRefused;

/// The most participants that are known by their access tokens.
pub const PEOPLE_MAX: usize = 10_000;
/// Time that a participant is known after its last token has ended: its sessions, tasks and
/// proposals go on.
const KNOWN_MS: u64 = 24 * 3_600_000;

struct Person {
    issuer: String,
    subject: String,
    named_by: SubjectClaim,
    /// Its claims as JSON, for another configuration.
    claims: Box<str>,
    participant: Arc<Participant>,
    until_ms: u64,
}

/// All of them, by name.
#[derive(Default)]
pub(super) struct People(Mutex<HashMap<ParticipantId, Person>>);

impl People {
    /// Enters the participant of a token, or renews it.
    ///
    /// # Errors
    /// Another subject has its name.
    pub(super) fn enter(
        &self,
        issuer: &str,
        claims: &Claims,
        participant: &Arc<Participant>,
        ends_ms: u64,
        now_ms: u64,
    ) -> Result<(), TokenRefused> {
        let mut people = self.0.lock();
        let mut until_ms = ends_ms
            .min(now_ms.saturating_add(KNOWN_MS))
            .saturating_add(KNOWN_MS);
        if let Some(known) = people
            .get(&participant.id)
            .filter(|known| known.until_ms > now_ms)
        {
            let is_same = known.issuer == issuer && known.subject == claims.subject;
            if !is_same || known.named_by != claims.named_by {
                let why = format!(
                    "the name `{}` belongs to another subject of the issuer",
                    participant.id
                );
                return Err(TokenRefused::NoPlace(why));
            }
            until_ms = until_ms.max(known.until_ms);
        } else if people.len() >= PEOPLE_MAX {
            people.retain(|_, known| known.until_ms > now_ms);
            if people.len() >= PEOPLE_MAX {
                let first = people
                    .iter()
                    .min_by_key(|(_, known)| known.until_ms)
                    .map(|(id, _)| id.clone());
                first.map(|first| people.remove(&first));
            }
        }
        let text = serde_json::to_string(&claims.all).unwrap_or_default();
        let issuer = issuer.to_owned();
        let subject = claims.subject.clone();
        let participant = Arc::clone(participant);
        let id = participant.id.clone();
        let named_by = claims.named_by;
        let claims = text.into();
        people.insert(
            id,
            Person {
                issuer,
                subject,
                named_by,
                claims,
                participant,
                until_ms,
            },
        );
        Ok(())
    }

    /// One of them.
    pub(super) fn find(&self, id: &ParticipantId, now_ms: u64) -> Option<Arc<Participant>> {
        let people = self.0.lock();
        people
            .get(id)
            .filter(|known| known.until_ms > now_ms)
            .map(|known| Arc::clone(&known.participant))
    }

    /// All of them.
    pub(super) fn all(&self, now_ms: u64) -> Vec<Arc<Participant>> {
        let people = self.0.lock();
        people
            .values()
            .filter(|known| known.until_ms > now_ms)
            .map(|known| Arc::clone(&known.participant))
            .collect()
    }

    /// Looks anew at each of them. Those without a place, or with another name, are forgotten.
    pub(super) fn renew(
        &self,
        now_ms: u64,
        now: impl Fn(&str, &Claims) -> Option<Arc<Participant>>,
    ) {
        self.0.lock().retain(|id, known| {
            let all = serde_json::from_str(&known.claims).unwrap_or_default();
            let claims = Claims {
                subject: known.subject.clone(),
                named_by: known.named_by,
                audiences: Vec::new(),
                scopes: Vec::new(),
                expires_ms: None,
                all,
            };
            let renewed =
                now(&known.issuer, &claims).filter(|one| one.id == *id && known.until_ms > now_ms);
            renewed.map(|one| known.participant = one).is_some()
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims(subject: &str) -> Claims {
        let all = json!({"active": true, "sub": subject})
            .as_object()
            .unwrap()
            .clone();
        Claims::of_answer(all, "", false, (0, 0)).unwrap()
    }

    fn participant(name: &str) -> Arc<Participant> {
        Arc::new(Participant::new(
            ParticipantId::new(name).unwrap(),
            Arc::default(),
            Vec::new(),
        ))
    }

    #[test]
    fn a_name_belongs_to_its_first_subject_for_a_day_after_its_last_token() {
        let people = People::default();
        let ann = participant("corp:ann");
        let enter = |issuer: &str, subject: &str, now_ms| {
            people.enter(issuer, &claims(subject), &ann, now_ms + 10, now_ms)
        };
        assert!(enter("corp", "1", 0).is_ok() && enter("corp", "1", 5).is_ok());
        assert!(
            matches!(enter("corp", "2", 6), Err(TokenRefused::NoPlace(why)) if why.contains("corp:ann"))
        );
        assert!(enter("other", "1", 6).is_err());
        let end_ms = 15 + KNOWN_MS;
        assert!(
            people.find(&ann.id, end_ms - 1).is_some() && people.find(&ann.id, end_ms).is_none()
        );
        assert!(enter("corp", "2", end_ms).is_ok());
        people.renew(end_ms, |issuer, claims| {
            (issuer == "corp" && claims.subject == "2").then(|| participant("corp:ann"))
        });
        assert_eq!(people.all(end_ms).len(), 1);
        people.renew(end_ms, |_, _| Some(participant("corp:other")));
        assert!(people.all(end_ms).is_empty());
    }

    #[test]
    fn a_person_with_the_username_of_a_client_is_another_subject() {
        let people = People::default();
        let ann = participant("corp:ann");
        let claims = |answer: serde_json::Value| {
            Claims::of_answer(answer.as_object().unwrap().clone(), "", false, (0, 0)).unwrap()
        };
        let machine = claims(json!({"active": true, "client_id": "ann"}));
        let person = claims(json!({"active": true, "client_id": "app", "username": "ann"}));
        assert_eq!(machine.subject, person.subject);
        assert!(people.enter("corp", &machine, &ann, 10, 0).is_ok());
        assert!(matches!(
            people.enter("corp", &person, &ann, 10, 0),
            Err(TokenRefused::NoPlace(_))
        ));
        assert!(people.enter("corp", &machine, &ann, 10, 0).is_ok());
    }

    #[test]
    fn people_have_a_bound() {
        let people = People::default();
        for number in 0..PEOPLE_MAX as u64 + 100 {
            let name = format!("corp:{number}");
            people
                .enter(
                    "corp",
                    &claims(&name),
                    &participant(&name),
                    1_000 + number,
                    0,
                )
                .unwrap();
        }
        assert_eq!(people.all(0).len(), PEOPLE_MAX);
        assert!(people.find(&participant("corp:0").id, 0).is_none());
    }
}
