#include "client/source/node_scan.h"

namespace sless::source {
namespace {

/// A word, a piece of punctuation, or a string ('"' and its text).
struct Token {
  std::string text;
  bool string = false;
  int depth = 0;  // of brackets around it
};

/// Splits JavaScript into tokens; comments, template literals and regular expressions vanish.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {
    if (text_.starts_with("#!")) at_ = std::min(text_.find('\n'), text_.size());
  }

  std::vector<Token> Run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '/' && Peek(1) == '/') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '/' && Peek(1) == '*') {
        const size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else if (c == '"' || c == '\'') {
        String(c);
      } else if (c == '`') {
        Template();
      } else if (c == '/' && RegexMayStart()) {
        Regex();
      } else if (IsWord(c)) {
        const size_t start = at_;
        while (at_ < text_.size() && IsWord(text_[at_])) ++at_;
        Add(std::string(text_.substr(start, at_ - start)));
      } else {
        Punctuation(c);
      }
    }
    return std::move(tokens_);
  }

 private:
  char Peek(size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void Add(std::string text, bool string = false) {
    tokens_.push_back({std::move(text), string, depth_});
  }

  void Punctuation(char c) {
    ++at_;
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') return;
    if (c == '}' && !templates_.empty() && templates_.back() == depth_) {
      templates_.pop_back();
      --depth_;
      TemplateRest();
      return;
    }
    if (c == ')' || c == ']' || c == '}') depth_ -= depth_ > 0;
    Add(std::string(1, c));
    if (c == '(' || c == '[' || c == '{') ++depth_;
  }

  void String(char quote) {
    const size_t start = ++at_;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n')
      at_ += text_[at_] == '\\' ? 2 : 1;
    at_ = std::min(at_, text_.size());
    Add(std::string(text_.substr(start, at_ - start)), true);
    if (at_ < text_.size()) ++at_;
  }

  void Template() {
    ++at_;
    Add("`", true);
    TemplateRest();
  }
  /// Up to the end of the literal or the next ${.
  void TemplateRest() {
    while (at_ < text_.size()) {
      if (text_[at_] == '\\') {
        at_ += 2;
      } else if (text_[at_] == '`') {
        ++at_;
        return;
      } else if (text_[at_] == '$' && Peek(1) == '{') {
        at_ += 2;
        templates_.push_back(++depth_);
        return;
      } else {
        ++at_;
      }
    }
    at_ = std::min(at_, text_.size());
  }

  /// A '/' divides after a value and starts a regular expression after anything else.
  bool RegexMayStart() const {
    if (tokens_.empty()) return true;
    const auto& last = tokens_.back();
    if (last.string) return false;
    for (const char* word : {"return", "typeof", "case", "in", "of", "delete", "void", "throw",
                             "new", "else", "do", "await", "yield"}) {
      if (last.text == word) return true;
    }
    return !IsWord(last.text[0]) && last.text != ")" && last.text != "]" && last.text != "}";
  }
  void Regex() {
    bool in_class = false;
    for (++at_; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == '[') {
        in_class = true;
      } else if (text_[at_] == ']') {
        in_class = false;
      } else if (text_[at_] == '/' && !in_class) {
        ++at_;
        break;
      }
    }
    at_ = std::min(at_, text_.size());
    Add("/regex/", true);
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  std::vector<int> templates_;  // depth inside of each open ${
  std::vector<Token> tokens_;
};

class Module {
 public:
  explicit Module(std::vector<Token> tokens) : t_(std::move(tokens)) {}

  Names Scan() {
    for (size_t i = 0; i < t_.size(); ++i) {
      if (t_[i].string) continue;
      const auto& word = t_[i].text;
      if (word == "export" && t_[i].depth == 0 && !Is(i - 1, ".") && !Is(i + 1, ":")) Export(i + 1);
      if (word == "exports" && !(Is(i - 1, ".") && !Is(i - 2, "module"))) Exports(i);
      if (word == "module" && !Is(i - 1, ".") && !Is(i + 1, "."))
        names_.uncertain = names_.uncertain || !Is(i + 1, ":");
      if (word == "this" && t_[i].depth == 0 && Is(i + 1, ".") && Is(i + 3, "="))
        names_.other.push_back(Text(i + 2));
    }
    return std::move(names_);
  }

 private:
  std::string Text(size_t i) const { return i < t_.size() ? t_[i].text : ""; }
  bool Is(size_t i, std::string_view text) const {
    return i < t_.size() && !t_[i].string && t_[i].text == text;
  }

  /// Behind the word export of an ES module.
  void Export(size_t i) {
    if (Is(i, "default")) {
      names_.other.push_back("default");
      // Whether members of the default export count is the worker's choice: it takes them.
      if (Is(i + 1, "{")) {
        Object(i + 1);
      } else {
        names_.uncertain = names_.uncertain ||
                           !(Is(i + 1, "function") || Is(i + 1, "async") || Is(i + 1, "class"));
      }
    } else if (Is(i, "*")) {
      names_.uncertain = true;
    } else if (Is(i, "{")) {
      for (size_t k = i + 1; k < t_.size() && !Is(k, "}"); ++k) {
        if (Is(k + 1, ",") || Is(k + 1, "}")) names_.Function(Text(k));
      }
    } else {
      if (Is(i, "async")) ++i;
      if (Is(i, "function")) {
        names_.Function(Text(Is(i + 1, "*") ? i + 2 : i + 1));
      } else {
        Declared(i);
      }
    }
  }

  /// "class X", "const a = …, {b, c} = …": every word up to the end of the statement's first line
  /// of names.
  void Declared(size_t i) {
    const int depth = i < t_.size() ? t_[i].depth : 0;
    for (size_t k = i + 1; k < t_.size() && !(t_[k].depth == depth &&
                                              (Is(k, ";") || Is(k, "export") || Is(k, "function")));
         ++k) {
      if (t_[k].string || !IsWordStart(t_[k].text[0]) || t_[k].depth > depth + 2 || Is(k - 1, "."))
        continue;
      if (k == i + 1 && Is(k + 1, "=")) {
        names_.Function(Text(k));
      } else {
        names_.other.push_back(Text(k));
      }
    }
  }

  /// `exports` or `module.exports` at i.
  void Exports(size_t i) {
    if (Is(i + 1, ".")) {
      if (Is(i + 3, "=")) return names_.Function(Text(i + 2));
      return names_.other.push_back(Text(i + 2));  // exports.a.b = …, or a use
    }
    if (Is(i + 1, "[") && i + 2 < t_.size() && t_[i + 2].string && t_[i + 2].text != "`" &&
        Is(i + 3, "]")) {
      return names_.Function(Text(i + 2));
    }
    if (Is(i + 1, "=") && Is(i + 2, "{")) return Object(i + 2);
    if (Is(i + 1, "=") && Is(i + 2, "exports"))
      return;  // exports = … of "module.exports = exports = {…}": seen at the next word
    if (Is(i + 1, "=") && (Is(i + 2, "module") && Is(i + 4, "exports"))) return;
    names_.uncertain = true;  // handed around, or given a computed value
  }

  /// The keys of an object literal whose '{' is at i.
  void Object(size_t i) {
    const int inside = t_[i].depth + 1;
    bool key = true;  // at the start of a member
    for (size_t k = i + 1; k < t_.size() && t_[k].depth >= inside; ++k) {
      if (++steps_ > 20 * t_.size()) {  // literals nested in literals, on purpose
        names_.uncertain = true;
        return;
      }
      if (t_[k].depth > inside) continue;
      if (Is(k, ",")) {
        key = true;
        continue;
      }
      if (!key) continue;
      if (Is(k, ".") || Is(k, "[")) names_.uncertain = true;  // a spread or a computed key
      if (Is(k, "async") && !Is(k + 1, ":") && !Is(k + 1, ",") && !Is(k + 1, "(")) continue;
      if (Is(k, "get") && k + 1 < t_.size() && IsWordStart(t_[k + 1].text[0])) continue;
      if (Is(k, "*")) continue;
      key = false;
      if (t_[k].string || IsWordStart(t_[k].text[0])) names_.Function(Text(k));
    }
  }

  const std::vector<Token> t_;
  Names names_;
  size_t steps_ = 0;
};

}  // namespace

Names ScanNode(std::string_view text) { return Module(Lexer(text).Run()).Scan(); }

bool HasModuleSyntax(std::string_view text) {
  const auto tokens = Lexer(text).Run();
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].string || tokens[i].depth != 0) continue;
    const bool member = i > 0 && !tokens[i - 1].string && tokens[i - 1].text == ".";
    const auto next = i + 1 < tokens.size() ? tokens[i + 1].text : std::string();
    if (member || next == ":" || next == "=") continue;
    if (tokens[i].text == "export") return true;
    if (tokens[i].text == "import" && next != "(" && next != ".") return true;
  }
  return false;
}

}  // namespace sless::source
