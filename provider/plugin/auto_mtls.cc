#include "provider/plugin/auto_mtls.h"

#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <chrono>
#include <memory>

namespace sless::plugin {
namespace {

using base::Code;
using base::Err;

template <auto kFree>
struct Freer {
  template <class T>
  void operator()(T* p) const {
    kFree(p);
  }
};
using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, Freer<X509_free>>;
using NumberPtr = std::unique_ptr<BIGNUM, Freer<BN_free>>;
using BioPtr = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>>;

tl::unexpected<base::Error> Failed(std::string_view what) {
  char reason[256] = "no reason given";
  if (const unsigned long code = ERR_get_error(); code != 0) ERR_error_string_n(code, reason, sizeof reason);
  ERR_clear_error();
  return Err(Code::kInternal, fmt::format("automatic TLS: cannot {}: {}", what, reason));
}

// 127 random bits: positive, at most 16 bytes.
bool SetSerial(X509* certificate) {
  NumberPtr number(BN_new());
  return number && BN_rand(number.get(), 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool SetName(X509* certificate) {
  X509_NAME* name = X509_get_subject_name(certificate);
  const auto add = [name](const char* field, const char* text) {
    return X509_NAME_add_entry_by_txt(name, field, MBSTRING_ASC, reinterpret_cast<const unsigned char*>(text), -1, -1,
                                      0) == 1;
  };
  return add("O", "terraform provider") && add("CN", "localhost") && X509_set_issuer_name(certificate, name) == 1;
}

bool SetValidity(X509* certificate, base::TimePoint now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  return ASN1_TIME_adj(X509_getm_notBefore(certificate), seconds, 0, -60) != nullptr &&
         ASN1_TIME_adj(X509_getm_notAfter(certificate), seconds, 366, 0) != nullptr;
}

bool AddExtension(X509* certificate, int nid, const char* text) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, text));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

std::string Text(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : std::string();
}

}  // namespace

base::Result<ServerIdentity> MakeServerIdentity(base::TimePoint now) {
  ERR_clear_error();
  // P-256: every host takes it, and it is made in well under a millisecond (RSA: 100 and more).
  KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) return Failed("make a P-256 key");

  CertificatePtr certificate(X509_new());
  if (!certificate || X509_set_version(certificate.get(), X509_VERSION_3) != 1) return Failed("make a certificate");
  if (!SetSerial(certificate.get())) return Failed("set the serial number");
  if (!SetName(certificate.get())) return Failed("set the subject");
  if (!SetValidity(certificate.get(), now)) return Failed("set the validity");
  if (X509_set_pubkey(certificate.get(), key.get()) != 1) return Failed("set the public key");
  // The host checks the name "localhost" against this list alone.
  if (!AddExtension(certificate.get(), NID_subject_alt_name, "DNS:localhost") ||
      !AddExtension(certificate.get(), NID_key_usage, "critical,digitalSignature,keyAgreement,keyCertSign") ||
      !AddExtension(certificate.get(), NID_ext_key_usage, "serverAuth,clientAuth") ||
      !AddExtension(certificate.get(), NID_basic_constraints, "critical,CA:TRUE")) {
    return Failed("add the extensions");
  }
  if (X509_sign(certificate.get(), key.get(), EVP_sha256()) <= 0) return Failed("sign the certificate");

  ServerIdentity identity;
  BioPtr key_out(BIO_new(BIO_s_secmem()));
  if (!key_out || PEM_write_bio_PrivateKey(key_out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return Failed("write the key");
  }
  identity.key_pem = base::Secret(Text(key_out.get()));
  BioPtr certificate_out(BIO_new(BIO_s_mem()));
  if (!certificate_out || PEM_write_bio_X509(certificate_out.get(), certificate.get()) != 1) {
    return Failed("write the certificate");
  }
  identity.certificate_pem = Text(certificate_out.get());
  unsigned char* der = nullptr;
  const int size = i2d_X509(certificate.get(), &der);
  if (size <= 0) return Failed("encode the certificate");
  identity.certificate_der.assign(reinterpret_cast<const char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return identity;
}

base::Status CheckCertificate(const std::string& pem) {
  BioPtr in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  CertificatePtr certificate(in ? PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr) : nullptr);
  ERR_clear_error();
  if (certificate) return base::Ok();
  return Err(Code::kInvalidArgument,
             fmt::format("PLUGIN_CLIENT_CERT wants one certificate in PEM form, got {} bytes that hold none; "
                         "it is set by the program that starts the plugin",
                         pem.size()));
}

}  // namespace sless::plugin
