#include "client/transport/tls.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

namespace sless::transport {
namespace {

using base::Code;
using base::Err;

// OpenSSL's own socket BIO uses write(2), which raises SIGPIPE on a closed connection; a library
// must not touch the process's signal handling, so this one uses send(2) with MSG_NOSIGNAL.
int FdOf(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }

int BioWrite(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t n = send(FdOf(bio), data, static_cast<size_t>(size), MSG_NOSIGNAL);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
    BIO_set_retry_write(bio);
  return static_cast<int>(n);
}
int BioRead(BIO* bio, char* out, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t n = recv(FdOf(bio), out, static_cast<size_t>(size), 0);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_read(bio);
  if (n == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(n);
}
long BioControl(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
  return 0;
}

BIO_METHOD* SocketMethod() {
  static BIO_METHOD* const method = [] {  // a constant table, made once
    BIO_METHOD* made =
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket without SIGPIPE");
    if (made == nullptr) return made;
    BIO_meth_set_write(made, BioWrite);
    BIO_meth_set_read(made, BioRead);
    BIO_meth_set_ctrl(made, BioControl);
    return made;
  }();
  return method;
}

bool IsIpAddress(const std::string& host) {
  unsigned char buffer[16];
  return inet_pton(AF_INET, host.c_str(), buffer) == 1 ||
         inet_pton(AF_INET6, host.c_str(), buffer) == 1;
}

/// A statically linked OpenSSL looks where its own distribution keeps CAs; others keep them
/// elsewhere.
void LoadSystemRoots(SSL_CTX* context) {
  SSL_CTX_set_default_verify_paths(context);
  for (const char* file : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    if (access(file, R_OK) == 0 && SSL_CTX_load_verify_locations(context, file, nullptr) == 1)
      break;
  }
  ERR_clear_error();
}

/// The names that the certificate is for, at most ten.
std::string NamesOf(X509* certificate) {
  std::vector<std::string> names;
  auto* list = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; list != nullptr && i < sk_GENERAL_NAME_num(list) && names.size() < 10; ++i) {
    const auto* name = sk_GENERAL_NAME_value(list, i);
    if (name->type == GEN_DNS) {
      names.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                         static_cast<size_t>(ASN1_STRING_length(name->d.dNSName)));
    } else if (name->type == GEN_IPADD) {
      const int family = ASN1_STRING_length(name->d.iPAddress) == 4 ? AF_INET : AF_INET6;
      char text[INET6_ADDRSTRLEN] = "";
      if (ASN1_STRING_length(name->d.iPAddress) == 4 ||
          ASN1_STRING_length(name->d.iPAddress) == 16) {
        inet_ntop(family, ASN1_STRING_get0_data(name->d.iPAddress), text, sizeof text);
        names.emplace_back(text);
      }
    }
  }
  GENERAL_NAMES_free(list);
  return names.empty() ? "no name" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

TlsSettings::~TlsSettings() { SSL_CTX_free(context_); }

base::Result<SSL_CTX*> TlsSettings::Get() {
  std::lock_guard lock(mutex_);
  if (context_ != nullptr) return context_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> made(SSL_CTX_new(TLS_client_method()),
                                                         &SSL_CTX_free);
  if (!made)
    return Err(Code::kInternal, fmt::format("OpenSSL cannot be set up: {}", TlsErrorText()));
  SSL_CTX_set_min_proto_version(made.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(made.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(made.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (ca_file_.empty()) {
    LoadSystemRoots(made.get());
  } else {
    ERR_clear_error();
    if (SSL_CTX_load_verify_locations(made.get(), ca_file_.c_str(), nullptr) != 1) {
      return Err(
          Code::kFailedPrecondition,
          fmt::format("ca_file \"{}\" cannot be used, want a PEM file with CA certificates: {}",
                      ca_file_, TlsErrorText()));
    }
  }
  context_ = made.release();
  return context_;
}

base::Result<SSL*> NewClientSsl(SSL_CTX* context, int fd, const std::string& host) {
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context), &SSL_free);
  BIO* const bio = SocketMethod() == nullptr ? nullptr : BIO_new(SocketMethod());
  if (!ssl || bio == nullptr) {
    BIO_free(bio);
    return Err(Code::kInternal, "no memory for a TLS connection");
  }
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl.get(), bio, bio);
  if (!IsIpAddress(host) && SSL_set_tlsext_host_name(ssl.get(), host.c_str()) != 1)
    return Err(Code::kInternal, "the host's name cannot be used with TLS");
  return ssl.release();
}

std::string CertificateNameProblem(SSL* ssl, const std::string& host) {
  X509* const certificate = SSL_get0_peer_certificate(ssl);
  if (certificate == nullptr) return "certificate: the server has none";
  const int match = IsIpAddress(host)
                        ? X509_check_ip_asc(certificate, host.c_str(), 0)
                        : X509_check_host(certificate, host.data(), host.size(), 0, nullptr);
  return match == 1
             ? ""
             : fmt::format("certificate: it is for {}, not for {}", NamesOf(certificate), host);
}

std::string CertificateProblem(SSL* ssl) {
  const long problem = SSL_get_verify_result(ssl);
  if (problem == X509_V_OK) return "";
  const bool unknown_ca = problem == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
                          problem == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
                          problem == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
                          problem == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE;
  return fmt::format(
      "certificate: {}{}", X509_verify_cert_error_string(problem),
      unknown_ca ? "; if it is signed by a CA of your own, name that CA's certificate in ca_file"
                 : "");
}

std::string TlsErrorText() {
  const unsigned long error = ERR_peek_last_error();
  if (error == 0) return "no reason given";
  const char* const reason = ERR_reason_error_string(error);
  const std::string text = reason == nullptr ? fmt::format("OpenSSL error {:#x}", error) : reason;
  if (ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == SSL_R_WRONG_VERSION_NUMBER) {
    return text + "; the server does not speak TLS there, is the URL an http:// one?";
  }
  return text;
}

}  // namespace sless::transport
