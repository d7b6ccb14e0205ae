#include "provider/plugin/testing/fake_host.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "client/base/strings.h"

namespace sless::plugin::testing {
namespace {

using namespace std::chrono_literals;

std::string Take(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<size_t>(size));
  BIO_free_all(bio);
  return text;
}

void Extend(X509* certificate, int nid, const char* value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

std::string DerToPem(const std::string& der) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  X509* certificate = d2i_X509(nullptr, &at, static_cast<long>(der.size()));
  if (certificate == nullptr) return "";
  BIO* out = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(out, certificate);
  X509_free(certificate);
  return Take(out);
}

// Reads from `fd` until `stop` says so, the end, or the limit.
template <class Stop>
std::string ReadUntil(int fd, std::chrono::milliseconds limit, Stop stop) {
  const auto end = std::chrono::steady_clock::now() + limit;
  std::string text;
  while (!stop(text)) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd wait{fd, POLLIN, 0};
    if (left <= 0ms || poll(&wait, 1, static_cast<int>(left.count())) <= 0) break;
    char byte = 0;
    if (read(fd, &byte, 1) != 1) break;
    text += byte;
  }
  return text;
}

}  // namespace

HostIdentity MakeHostIdentity() {
  EVP_PKEY* key = EVP_EC_gen("P-521");
  X509* certificate = X509_new();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 4711);
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("Host"), -1, -1, 0);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -30);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
  X509_set_pubkey(certificate, key);
  Extend(certificate, NID_subject_alt_name, "DNS:localhost");
  Extend(certificate, NID_key_usage,
         "critical,digitalSignature,keyEncipherment,keyAgreement,keyCertSign");
  Extend(certificate, NID_ext_key_usage, "clientAuth,serverAuth");
  Extend(certificate, NID_basic_constraints, "critical,CA:TRUE");
  X509_sign(certificate, key, EVP_sha512());

  HostIdentity identity;
  BIO* key_out = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(key_out, key, nullptr, nullptr, 0, nullptr, nullptr);
  identity.key_pem = Take(key_out);
  BIO* certificate_out = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(certificate_out, certificate);
  identity.certificate_pem = Take(certificate_out);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return identity;
}

std::shared_ptr<grpc::Channel> Connect(const std::string& target, const HostIdentity* identity,
                                       const std::string& server_der) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(256 << 20);
  // Each test sees a connection of its own.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (identity == nullptr)
    return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = DerToPem(server_der);
  tls.pem_private_key = identity->key_pem;
  tls.pem_cert_chain = identity->certificate_pem;
  arguments.SetSslTargetNameOverride("localhost");
  return grpc::CreateCustomChannel(target, grpc::SslCredentials(tls), arguments);
}

base::Result<Handshake> ParseHandshake(const std::string& line) {
  if (!line.ends_with('\n'))
    return base::Err(base::Code::kInvalidArgument, "no newline at the end: " + line);
  Handshake result;
  result.fields = base::Split(line.substr(0, line.size() - 1), '|');
  if (result.fields.size() < 6 || result.fields[0] != "1" || result.fields[1] != "6" ||
      result.fields[4] != "grpc") {
    return base::Err(base::Code::kInvalidArgument, "unexpected fields: " + line);
  }
  result.network = result.fields[2];
  result.address = result.fields[3];
  std::string certificate = result.fields[5];
  if (base::Contains(certificate, '=')) {
    return base::Err(base::Code::kInvalidArgument, "the certificate is padded: " + line);
  }
  while (certificate.size() % 4 != 0) certificate += '=';
  ASSIGN_OR_RETURN(result.certificate_der, base::Base64Decode(certificate));
  return result;
}

base::Result<std::unique_ptr<Child>> Child::Start(const std::string& program,
                                                  const std::vector<std::string>& arguments,
                                                  const Variables& variables) {
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
    return base::Err(base::Code::kInternal, "no pipes");
  }
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::vector<char*> envp;
  for (auto& variable : environment) envp.push_back(variable.data());
  envp.push_back(nullptr);

  std::unique_ptr<Child> child(new Child);
  child->pid_ = fork();
  if (child->pid_ == 0) {
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(out[1], 1);
    dup2(err[1], 2);
    close_range(3, ~0U, 0);  // what this process inherited itself
    execve(program.c_str(), argv.data(), envp.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  child->stdout_ = out[0];
  child->stderr_ = err[0];
  return child;
}

Child::~Child() {
  int status = 0;
  if (!Wait(0ms, &status)) {
    kill(pid_, SIGKILL);
    waitpid(pid_, &status, 0);
  }
  close(stdout_);
  close(stderr_);
}

std::string Child::ReadLine(std::chrono::milliseconds limit) {
  return ReadUntil(stdout_, limit, [](const std::string& text) { return text.ends_with('\n'); });
}
std::string Child::ReadStdout(std::chrono::milliseconds limit) {
  return ReadUntil(stdout_, limit, [](const std::string&) { return false; });
}
std::string Child::ReadStderr(std::chrono::milliseconds limit) {
  return ReadUntil(stderr_, limit, [](const std::string&) { return false; });
}

bool Child::Wait(std::chrono::milliseconds limit, int* status) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!ended_) {
    if (waitpid(pid_, &status_, WNOHANG) == pid_) ended_ = true;
    if (ended_ || std::chrono::steady_clock::now() >= end) break;
    std::this_thread::sleep_for(2ms);
  }
  *status = status_;
  return ended_;
}

void Child::Signal(int signal) const { kill(pid_, signal); }

}  // namespace sless::plugin::testing
