#include "provider/plugin/auto_mtls.h"

#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <chrono>
#include <memory>
#include <optional>

#include "provider/plugin/der.h"

namespace sless::plugin {
namespace {

using namespace std::literals;
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
using DigestPtr = std::unique_ptr<EVP_MD_CTX, Freer<EVP_MD_CTX_free>>;
using NumberPtr = std::unique_ptr<BIGNUM, Freer<BN_clear_free>>;
using BioPtr = std::unique_ptr<BIO, Freer<BIO_free_all>>;

// The certificate is written here and not by the library's X509 functions: those take the key apart
// and put it together again through its encoders and decoders, which costs more time than
// everything else at the start of a provider.

// Whole elements: object identifiers, and the value TRUE.
constexpr std::string_view kEcPublicKey =
    "\x06\x07\x2a\x86\x48\xce\x3d\x02\x01"sv;  // 1.2.840.10045.2.1
constexpr std::string_view kPrime256v1 =
    "\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07"sv;  // 1.2.840.10045.3.1.7
constexpr std::string_view kEcdsaSha256 =
    "\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02"sv;                         // 1.2.840.10045.4.3.2
constexpr std::string_view kOrganization = "\x06\x03\x55\x04\x0a"sv;      // 2.5.4.10
constexpr std::string_view kCommonName = "\x06\x03\x55\x04\x03"sv;        // 2.5.4.3
constexpr std::string_view kSubjectAltName = "\x06\x03\x55\x1d\x11"sv;    // 2.5.29.17
constexpr std::string_view kKeyUsage = "\x06\x03\x55\x1d\x0f"sv;          // 2.5.29.15
constexpr std::string_view kExtendedKeyUsage = "\x06\x03\x55\x1d\x25"sv;  // 2.5.29.37
constexpr std::string_view kBasicConstraints = "\x06\x03\x55\x1d\x13"sv;  // 2.5.29.19
constexpr std::string_view kServerAuth =
    "\x06\x08\x2b\x06\x01\x05\x05\x07\x03\x01"sv;  // 1.3.6.1.5.5.7.3.1
constexpr std::string_view kClientAuth =
    "\x06\x08\x2b\x06\x01\x05\x05\x07\x03\x02"sv;  // 1.3.6.1.5.5.7.3.2
constexpr std::string_view kTrue = "\x01\x01\xff"sv;

tl::unexpected<base::Error> Failed(std::string_view what) {
  char reason[256] = "no reason given";
  if (const unsigned long code = ERR_get_error(); code != 0)
    ERR_error_string_n(code, reason, sizeof reason);
  ERR_clear_error();
  return Err(Code::kInternal, fmt::format("automatic TLS: cannot {}: {}", what, reason));
}

std::string Name() {
  return der::Sequence(
      der::Join(der::Set(der::Sequence(der::Join(kOrganization, der::Utf8("terraform provider")))),
                der::Set(der::Sequence(der::Join(kCommonName, der::Utf8("localhost"))))));
}

std::string Extensions() {
  const auto extension = [](std::string_view id, std::string_view critical,
                            std::string_view content) {
    return der::Sequence(der::Join(id, critical, der::OctetString(content)));
  };
  // Hosts check the name "localhost" against this list alone.
  const std::string names = der::Sequence(der::Element(0x82, "localhost"));
  // digitalSignature, keyAgreement, keyCertSign: bits 0, 4 and 5.
  const std::string usage = der::BitString("\x8c"sv, 2);
  const std::string purposes = der::Sequence(der::Join(kServerAuth, kClientAuth));
  return der::Tagged(
      3, der::Sequence(der::Join(extension(kSubjectAltName, "", names),
                                 extension(kKeyUsage, kTrue, usage),
                                 extension(kExtendedKeyUsage, "", purposes),
                                 extension(kBasicConstraints, kTrue, der::Sequence(kTrue)))));
}

// What is signed. `point` is the public key, uncompressed.
std::string ToBeSigned(std::string_view serial, base::TimePoint now, std::string_view point) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const std::string validity =
      der::Sequence(der::Time(seconds - 60) + der::Time(seconds + 366 * 86400));
  const std::string algorithm = der::Sequence(der::Join(kEcPublicKey, kPrime256v1));
  const std::string public_key = der::Sequence(der::Join(algorithm, der::BitString(point)));
  return der::Sequence(der::Join(der::Tagged(0, der::Integer("\x02"sv)), der::Integer(serial),
                                 der::Sequence(kEcdsaSha256), Name(), validity, Name(), public_key,
                                 Extensions()));
}

// The form of RFC 5915.
std::string PrivateKey(std::string_view scalar, std::string_view point) {
  return der::Sequence(der::Join(der::Integer("\x01"sv), der::OctetString(scalar),
                                 der::Tagged(0, kPrime256v1),
                                 der::Tagged(1, der::BitString(point))));
}

std::optional<std::string> Point(EVP_PKEY* key) {
  unsigned char* bytes = nullptr;
  const size_t size = EVP_PKEY_get1_encoded_public_key(key, &bytes);
  if (size == 0) return std::nullopt;
  std::string point(reinterpret_cast<const char*>(bytes), size);
  OPENSSL_free(bytes);
  return point;
}

std::optional<std::string> Scalar(EVP_PKEY* key) {
  BIGNUM* number = nullptr;
  if (EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_PRIV_KEY, &number) != 1) return std::nullopt;
  const NumberPtr owner(number);
  std::string scalar(32, '\0');
  if (BN_bn2binpad(number, reinterpret_cast<unsigned char*>(scalar.data()), 32) != 32)
    return std::nullopt;
  return scalar;
}

std::optional<std::string> Sign(EVP_PKEY* key, std::string_view text) {
  const DigestPtr context(EVP_MD_CTX_new());
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  unsigned char signature[128];
  size_t size = sizeof signature;
  if (!context || EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key) != 1 ||
      EVP_DigestSign(context.get(), signature, &size, bytes, text.size()) != 1) {
    return std::nullopt;
  }
  return std::string(reinterpret_cast<const char*>(signature), size);
}

}  // namespace

base::Result<ServerIdentity> MakeServerIdentity(base::TimePoint now) {
  ERR_clear_error();
  // P-256: every host takes it, and it is made in well under a millisecond (RSA: 100 and more).
  const KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) return Failed("make a P-256 key");
  const auto point = Point(key.get());
  const auto scalar = Scalar(key.get());
  if (!point || !scalar) return Failed("read the key");

  unsigned char serial[16];
  if (RAND_bytes(serial, sizeof serial) != 1) return Failed("make a serial number");
  serial[0] = (serial[0] & 0x7f) | 0x40;  // positive, and of full length
  const std::string to_be_signed =
      ToBeSigned({reinterpret_cast<const char*>(serial), sizeof serial}, now, *point);
  const auto signature = Sign(key.get(), to_be_signed);
  if (!signature) return Failed("sign the certificate");

  ServerIdentity identity;
  identity.certificate_der = der::Sequence(
      der::Join(to_be_signed, der::Sequence(kEcdsaSha256), der::BitString(*signature)));
  identity.certificate_pem = der::Pem("CERTIFICATE", identity.certificate_der);
  identity.key_pem = base::Secret(der::Pem("EC PRIVATE KEY", PrivateKey(*scalar, *point)));
  return identity;
}

base::Status CheckCertificate(const std::string& pem) {
  const BioPtr in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  char* name = nullptr;
  char* header = nullptr;
  unsigned char* bytes = nullptr;
  long size = 0;
  const bool read = in && PEM_read_bio(in.get(), &name, &header, &bytes, &size) == 1;
  // A certificate is a DER SEQUENCE.
  const bool good =
      read && name == std::string_view(PEM_STRING_X509) && size > 0 && bytes[0] == 0x30;
  OPENSSL_free(name);
  OPENSSL_free(header);
  OPENSSL_free(bytes);
  ERR_clear_error();
  if (good) return base::Ok();
  return Err(
      Code::kInvalidArgument,
      fmt::format(
          "PLUGIN_CLIENT_CERT wants one certificate in PEM form, got {} bytes that hold none; "
          "it is set by the program that starts the plugin",
          pem.size()));
}

}  // namespace sless::plugin
