//! GitHub's signature of a webhook: the header `X-Hub-Signature-256`.
//!
//! It is `sha256=` and the HMAC-SHA256 of the raw body in hex, as GitHub describes it in "Validating
//! webhook deliveries". It covers the body only, neither delivery id nor event: who has seen a signed
//! body can send it under another id. So serve webhooks over TLS.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The secret that GitHub signs with.
#[derive(Clone)]
pub struct Secret(Hmac<Sha256>);

impl Secret {
    /// Prepares it. `None`: anybody could sign with an empty one.
    #[must_use]
    pub fn new(secret: &str) -> Option<Self> {
        if secret.is_empty() {
            return None;
        }
        Hmac::new_from_slice(secret.as_bytes()).ok().map(Self)
    }

    /// Says whether this secret signed the body. The time it takes does not tell how much of the
    /// signature is right.
    #[must_use]
    pub fn has_signed(&self, body: &[u8], header: &[u8]) -> bool {
        let Some(signature) = signature(header) else {
            return false;
        };
        self.0
            .clone()
            .chain_update(body)
            .verify_slice(&signature)
            .is_ok()
    }
}

fn signature(header: &[u8]) -> Option<[u8; 32]> {
    let hex = header.strip_prefix(b"sha256=")?;
    let mut signature = [0; 32];
    hex::decode_to_slice(hex, &mut signature).ok()?;
    Some(signature)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From GitHub's "Validating webhook deliveries".
    const SECRET: &str = "It's a Secret to Everybody";
    const BODY: &[u8] = b"Hello, World!";
    const HEADER: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    fn is_taken(secret: &str, body: &[u8], header: &str) -> bool {
        let secret = Secret::new(secret).expect("it is not empty");
        secret.has_signed(body, header.as_bytes())
    }

    #[test]
    fn the_example_of_github_is_right() {
        assert!(is_taken(SECRET, BODY, HEADER));
    }

    #[test]
    fn another_body_secret_or_signature_is_wrong() {
        assert!(!is_taken(SECRET, b"Hello, World?", HEADER));
        assert!(!is_taken("It's a Secret", BODY, HEADER));
        assert!(!is_taken(SECRET, BODY, &HEADER.replace("e17", "e18")));
    }

    #[test]
    fn what_is_no_signature_is_wrong() {
        let short = &HEADER[..HEADER.len() - 2];
        let long = format!("{HEADER}00");
        let sha1 = HEADER.replace("sha256=", "sha1=");
        let no_hex = HEADER.replace("757107", "757x07");
        for header in [short, &long, &sha1, &no_hex, "", "sha256=", &HEADER[7..]] {
            assert!(!is_taken(SECRET, BODY, header), "{header}");
        }
    }

    #[test]
    fn an_empty_secret_is_none() {
        assert!(Secret::new("").is_none());
    }
}
