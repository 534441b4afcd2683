//! Signature checks by ring, as a provider for `jsonwebtoken` (docs/adr/0017-tokens-in-the-function.md).

use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey,
    crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils},
    errors::{ErrorKind, Result},
    signature::{Error, Verifier},
};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

static RING: CryptoProvider =
    CryptoProvider { signer_factory: signer, verifier_factory: verifier, key_utils: KeyUtils::new_unimplemented() };

pub(super) fn install() {
    // An error means that it is installed already.
    let _installed = RING.install_default();
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the library asks for this signature")]
fn signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(ErrorKind::InvalidAlgorithm.into())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the library asks for this signature")]
fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    // Every token is decoded by this table; unlisted algorithms are refused, above all HMAC.
    let rule = match (algorithm, key.family()) {
        (Algorithm::RS256, AlgorithmFamily::Rsa) => Rule::Rsa(&RSA_PKCS1_2048_8192_SHA256),
        (Algorithm::RS384, AlgorithmFamily::Rsa) => Rule::Rsa(&RSA_PKCS1_2048_8192_SHA384),
        (Algorithm::RS512, AlgorithmFamily::Rsa) => Rule::Rsa(&RSA_PKCS1_2048_8192_SHA512),
        (Algorithm::ES256, AlgorithmFamily::Ec) => Rule::Point(&ECDSA_P256_SHA256_FIXED),
        (Algorithm::ES384, AlgorithmFamily::Ec) => Rule::Point(&ECDSA_P384_SHA384_FIXED),
        (Algorithm::EdDSA, AlgorithmFamily::Ed) => Rule::Point(&ED25519),
        _ => return Err(ErrorKind::InvalidAlgorithm.into()),
    };
    Ok(Box::new(ByRing { algorithm: *algorithm, rule, key: key.clone() }))
}

struct ByRing {
    algorithm: Algorithm,
    rule: Rule,
    key: DecodingKey,
}

enum Rule {
    Rsa(&'static RsaParameters),
    /// A public key that is a point on a curve.
    Point(&'static dyn VerificationAlgorithm),
}

impl Verifier<Vec<u8>> for ByRing {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let verified = match (&self.rule, self.key.kind()) {
            (Rule::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Rule::Point(algorithm), DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(*algorithm, point).verify(message, signature)
            }
            _ => return Err(Error::new()),
        };
        verified.map_err(|_unspecified| Error::new())
    }
}

impl JwtVerifier for ByRing {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
