//! The CA of the spool: a key and a certificate on the machine of one gateway.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
    PublicKeyData, SignatureAlgorithm,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use sha2::{Digest as _, Sha256};
use vere_net::tls::Leaf;
use vere_units::Timestamp;

use crate::files::{Owner, make_folder, read, write};
use crate::{EnrolmentError, is_node_name};

/// Days of a certificate's life.
pub const LIFE_DAYS: u64 = 365;
/// Days of the CA certificate's life.
const CA_LIFE_DAYS: u64 = 20 * 365;
/// How far back a certificate begins, for machines whose clocks are late.
const BACKDATED: Duration = Duration::from_secs(24 * 3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
/// The common name of the CA.
const CA_NAME: &str = "Veredarius spool CA";
/// Permissions of certificates, and of keys.
const OPEN: u32 = 0o644;
const PRIVATE: u32 = 0o600;

/// The uses of a certificate.
///
/// A node's certificate cannot connect to other nodes: a removed node is refused by them, and by gateways, whose
/// settings do not name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Gateway and nodes of a gateway's machine: connects and answers.
    Gateway,
    /// A node alone: answers.
    Node,
}

/// The files of a machine of the spool, in a directory of their own below the data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The directory.
    pub folder: PathBuf,
    /// The CA certificate.
    pub ca: PathBuf,
    /// The CA's private key, on the machine with the CA.
    pub ca_key: PathBuf,
    /// The machine's certificate.
    pub certificate: PathBuf,
    /// The machine's private key.
    pub key: PathBuf,
}

impl Machine {
    /// The usual places below a data directory.
    #[must_use]
    pub fn below(data: &Path) -> Self {
        let folder = data.join("spool-tls");
        Self {
            ca: folder.join("ca.pem"),
            ca_key: folder.join("ca.key"),
            certificate: folder.join("machine.pem"),
            key: folder.join("machine.key"),
            folder,
        }
    }

    /// Notes that a node of this name was removed: a certificate for the name may be valid for a whole life from now on.
    ///
    /// # Errors
    /// The note cannot be written.
    pub fn note_removed(&self, name: &str, owner: Owner) -> Result<(), EnrolmentError> {
        make_folder(&self.folder, owner)?;
        let end = SystemTime::now().checked_add(DAY * u32::try_from(LIFE_DAYS).unwrap_or(u32::MAX));
        let since = end.and_then(|end| end.duration_since(SystemTime::UNIX_EPOCH).ok());
        let millis = since.unwrap_or_default().as_millis();
        write(&self.removed(name), &format!("{millis}\n"), OPEN, owner)
    }

    /// The end of the last certificate for the name of a removed node, if it is still to come.
    #[must_use]
    pub fn removed_until(&self, name: &str) -> Option<Timestamp> {
        let text = read(&self.removed(name)).ok()??;
        let end = Timestamp::from_millis(text.trim().parse().ok()?);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = since.unwrap_or_default().as_millis();
        (u128::from(end.as_millis()) > now).then_some(end)
    }

    fn removed(&self, name: &str) -> PathBuf {
        self.folder.join(format!("removed-{name}"))
    }

    /// Creates the directory, readable by its owner only.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn make_folder(&self, owner: Owner) -> Result<(), EnrolmentError> {
        make_folder(&self.folder, owner)
    }
}

/// A certificate that the CA signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued {
    /// In PEM.
    pub pem: String,
    /// In DER.
    pub der: Vec<u8>,
}

/// The CA, ready to sign.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    der: Vec<u8>,
}

/// A public key on the curve P-256, the only kind that this crate makes.
struct CurveKey<'a>(&'a [u8]);

impl PublicKeyData for CurveKey<'_> {
    fn der_bytes(&self) -> &[u8] {
        self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

impl Authority {
    /// Opens the CA of these files.
    ///
    /// # Errors
    /// A file is missing or damaged, or key and certificate do not belong together.
    pub fn open(ca: &Path, ca_key: &Path) -> Result<Self, EnrolmentError> {
        let missing = |path: &Path| EnrolmentError::Unusable {
            path: path.to_owned(),
            problem: "expected the CA's file; found none".to_owned(),
        };
        let pem = read(ca)?.ok_or_else(|| missing(ca))?;
        let key = read(ca_key)?.ok_or_else(|| missing(ca_key))?;
        Self::of(ca, pem, &key)
    }

    fn of(ca: &Path, pem: String, key: &str) -> Result<Self, EnrolmentError> {
        let key =
            KeyPair::from_pem(key).map_err(EnrolmentError::certificate("read the CA's key"))?;
        let unusable = |problem: &str| EnrolmentError::Unusable {
            path: ca.to_owned(),
            problem: problem.to_owned(),
        };
        let der = CertificateDer::from_pem_slice(pem.as_bytes());
        let der = der.map_err(|_| unusable("expected a certificate in PEM"))?;
        let leaf = Leaf::of(&der).ok_or_else(|| unusable("expected a certificate"))?;
        if leaf.public_key != key.der_bytes() {
            return Err(unusable(
                "the certificate belongs to another key than `spool.tls.ca_key`",
            ));
        }
        let issuer = Issuer::from_ca_cert_der(&der, key);
        Ok(Self {
            issuer: issuer.map_err(EnrolmentError::certificate("read the CA certificate"))?,
            der: der.to_vec(),
            pem,
        })
    }

    /// Opens the CA of a machine, or creates it. The key is written first: killed at any point, the next call goes on
    /// with the same key.
    ///
    /// # Errors
    /// Files cannot be written, or are damaged.
    pub fn open_or_create(machine: &Machine, owner: Owner) -> Result<Self, EnrolmentError> {
        machine.make_folder(owner)?;
        let key = match read(&machine.ca_key)? {
            Some(pem) => pem,
            None => {
                let key = KeyPair::generate().map_err(EnrolmentError::certificate("make a key"))?;
                let pem = key.serialize_pem();
                write(&machine.ca_key, &pem, PRIVATE, owner)?;
                pem
            }
        };
        if !machine.ca.exists() {
            let pair = KeyPair::from_pem(&key);
            let pair = pair.map_err(EnrolmentError::certificate("read the CA's key"))?;
            let signed = ca_params().self_signed(&pair);
            let signed = signed.map_err(EnrolmentError::certificate("make the CA certificate"))?;
            write(&machine.ca, &signed.pem(), OPEN, owner)?;
        }
        Self::open(&machine.ca, &machine.ca_key)
    }

    /// The CA certificate in PEM.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The CA certificate in DER.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The SHA-256 of the CA certificate.
    #[must_use]
    pub fn pin(&self) -> [u8; 32] {
        Sha256::digest(&self.der).into()
    }

    /// Signs a certificate with these DNS names for the key of a certificate request. Of the request only the key is
    /// used; the signature proves the possession of the private half.
    ///
    /// # Errors
    /// The request is damaged or wrongly signed.
    pub fn sign_request(
        &self,
        names: &[String],
        purpose: Purpose,
        request: &str,
    ) -> Result<Issued, EnrolmentError> {
        let request = CertificateSigningRequestParams::from_pem(request)
            .map_err(EnrolmentError::certificate("read the certificate request"))?;
        self.sign(names, purpose, &request.public_key)
    }

    /// Signs the next certificate for the names and the key of a certificate.
    ///
    /// # Errors
    /// The key is not on the curve P-256, as keys of certificates made by other means may be.
    pub fn sign_successor(&self, of: &Leaf, purpose: Purpose) -> Result<Issued, EnrolmentError> {
        let key = match of.public_key.as_slice() {
            // An uncompressed point (SEC 1 section 2.3.3).
            key @ [4, ..] if key.len() == 65 => CurveKey(key),
            _ => {
                let text = "expected a key on the curve P-256; found another kind: renew by hand";
                return Err(EnrolmentError::Refused(text.to_owned()));
            }
        };
        self.sign(&of.names, purpose, &key)
    }

    /// Signs a certificate with these DNS names for a key.
    ///
    /// # Errors
    /// A name is no DNS name.
    pub fn sign(
        &self,
        names: &[String],
        purpose: Purpose,
        key: &impl PublicKeyData,
    ) -> Result<Issued, EnrolmentError> {
        let failed = || EnrolmentError::certificate("make a certificate");
        let mut params = CertificateParams::new(names.to_vec()).map_err(failed())?;
        let first = names.first().map_or("machine", String::as_str);
        params.distinguished_name.push(DnType::CommonName, first);
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = match purpose {
            Purpose::Node => vec![ExtendedKeyUsagePurpose::ServerAuth],
            Purpose::Gateway => vec![
                ExtendedKeyUsagePurpose::ServerAuth,
                ExtendedKeyUsagePurpose::ClientAuth,
            ],
        };
        params.use_authority_key_identifier_extension = true;
        set_life(&mut params, LIFE_DAYS);
        let signed = params.signed_by(key, &self.issuer).map_err(failed())?;
        Ok(Issued {
            pem: signed.pem(),
            der: signed.der().to_vec(),
        })
    }

    /// Makes key and certificate of the gateway's own machine, unless both are there and belong together. Returns
    /// whether a certificate was made.
    ///
    /// # Errors
    /// Files cannot be read or written.
    pub fn certify_own(
        &self,
        machine: &Machine,
        names: &[String],
        owner: Owner,
    ) -> Result<bool, EnrolmentError> {
        let key = match read(&machine.key)? {
            Some(pem) => KeyPair::from_pem(&pem)
                .map_err(EnrolmentError::certificate("read the key of this machine"))?,
            None => {
                let key = KeyPair::generate().map_err(EnrolmentError::certificate("make a key"))?;
                write(&machine.key, &key.serialize_pem(), PRIVATE, owner)?;
                key
            }
        };
        let names: Vec<String> = names
            .iter()
            .filter(|name| is_node_name(name))
            .cloned()
            .collect();
        if let Ok(leaf) = Leaf::of_file(&machine.certificate)
            && leaf.public_key == key.der_bytes()
            && leaf.validity.contains(SystemTime::now())
        {
            return Ok(false);
        }
        let issued = self.sign(&names, Purpose::Gateway, &key)?;
        write(&machine.certificate, &issued.pem, OPEN, owner)?;
        Ok(true)
    }
}

fn ca_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, CA_NAME);
    set_life(&mut params, CA_LIFE_DAYS);
    params
}

/// Sets the period of validity, from now on.
fn set_life(params: &mut CertificateParams, days: u64) {
    let now = SystemTime::now();
    let days = u32::try_from(days).unwrap_or(u32::MAX);
    params.not_before = now.checked_sub(BACKDATED).unwrap_or(now).into();
    params.not_after = now.checked_add(DAY * days).unwrap_or(now).into();
}
