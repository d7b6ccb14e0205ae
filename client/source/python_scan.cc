#include "client/source/python_scan.h"

namespace sless::source {
namespace {

/// One logical line: words and punctuation, without comments and strings; `indent` counts columns.
struct Line {
  size_t indent = 0;
  std::vector<std::string> tokens;
};

/// Splits a module into logical lines: brackets and backslashes join lines, strings and comments
/// vanish.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);
  }

  bool Next(Line& line) {
    line = {};
    Indent(line);
    int depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++at_;
        if (depth > 0) continue;
        if (!line.tokens.empty()) return true;
        line = {};
        Indent(line);
      } else if (c == '\\' && at_ + 1 < text_.size() &&
                 (text_[at_ + 1] == '\n' || text_[at_ + 1] == '\r')) {
        at_ += text_[at_ + 1] == '\r' ? 3 : 2;
      } else if (c == ';' && depth == 0) {
        ++at_;
        line.tokens.emplace_back(";");
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '"' || c == '\'') {
        String();
        line.tokens.emplace_back("\"");
      } else if (IsWord(c)) {
        Word(line);
      } else {
        depth += c == '(' || c == '[' || c == '{';
        depth -= depth > 0 && (c == ')' || c == ']' || c == '}');
        if (c != ' ' && c != '\t' && c != '\r' && c != '\f') line.tokens.emplace_back(1, c);
        ++at_;
      }
    }
    return !line.tokens.empty();
  }

 private:
  void Indent(Line& line) {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == ' ') {
        ++line.indent;
      } else if (text_[at_] == '\t') {
        line.indent = line.indent / 8 * 8 + 8;
      } else if (text_[at_] != '\f') {
        break;
      }
    }
  }
  void Word(Line& line) {
    const size_t start = at_;
    while (at_ < text_.size() && IsWord(text_[at_])) ++at_;
    // A prefix of a string (r, b, f, u and pairs) is no word. Raw or not: a backslash keeps a quote
    // from ending it.
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'') && at_ - start <= 2) return;
    line.tokens.emplace_back(text_.substr(start, at_ - start));
  }
  void String() {
    const char quote = text_[at_];
    const bool triple = text_.substr(at_, 3) == std::string(3, quote);
    at_ += triple ? 3 : 1;
    while (at_ < text_.size()) {
      if (text_[at_] == '\\') {
        at_ += 2;
      } else if (triple ? text_.substr(at_, 3) == std::string(3, quote) : text_[at_] == quote) {
        at_ += triple ? 3 : 1;
        return;
      } else if (!triple && text_[at_] == '\n') {
        return;  // a broken string ends with its line
      } else {
        ++at_;
      }
    }
    at_ = std::min(at_, text_.size());
  }

  std::string_view text_;
  size_t at_ = 0;
};

class Module {
 public:
  Names Scan(std::string_view text) {
    Lines lines(text);
    Line line;
    bool in_body = false;  // of a def or class
    size_t body_of = 0;    // its indent
    while (lines.Next(line)) {
      if (in_body && line.indent > body_of) {
        InBody(line);
        continue;
      }
      in_body = TopLevel(line);
      body_of = line.indent;
    }
    return std::move(names_);
  }

 private:
  using Tokens = std::vector<std::string>;

  /// A function may bind names of the module: "global x", or through globals().
  void InBody(const Line& line) {
    for (size_t i = 0; i < line.tokens.size(); ++i) {
      if (line.tokens[i] == "global") {
        for (size_t k = i + 1; k < line.tokens.size(); ++k) names_.other.push_back(line.tokens[k]);
      }
      Dynamic(line.tokens[i]);
    }
  }

  void Dynamic(const std::string& word) {
    for (const char* known : {"globals", "exec", "setattr", "vars", "locals", "__getattr__"}) {
      if (word == known) names_.uncertain = true;
    }
  }

  /// True if a def or class begins here.
  bool TopLevel(const Line& line) {
    const auto& t = line.tokens;
    size_t i = t[0] == "async" ? 1 : 0;
    for (const auto& word : t) Dynamic(word);
    if (i + 1 < t.size() && t[i] == "def") {
      names_.Function(t[i + 1]);
      return true;
    }
    if (t.size() > 1 && t[0] == "class") {
      names_.other.push_back(t[1]);
      return true;
    }
    if (t[0] == "from" || t[0] == "import") return Import(t), false;
    Bindings(t);
    return false;
  }

  /// Everything that an import statement names may be bound; a star may bind anything.
  void Import(const Tokens& t) {
    for (size_t i = 1; i < t.size(); ++i) {
      if (t[i] == "*") names_.uncertain = true;
      names_.other.push_back(t[i]);
    }
  }

  /// Any word that is followed by '=' or ',' before a '=', or by ':' and later '=', or comes after
  /// "as" or "for", may be bound.
  void Bindings(const Tokens& t) {
    bool binds = false;
    for (size_t i = 0; i < t.size(); ++i) {
      const bool comparison =
          i > 0 && (t[i - 1] == "=" || t[i - 1] == "!" || t[i - 1] == "<" || t[i - 1] == ">");
      const bool before_comparison = i + 1 < t.size() && t[i + 1] == "=";
      binds = binds || (t[i] == "=" && !comparison && !before_comparison) || t[i] == "as" ||
              t[i] == "for" || t[i] == "def" || t[i] == "class" || t[i] == "import";
    }
    if (!binds) return;
    // In doubt for the name: on a line that binds something every word that is not called or read
    // through '.' counts.
    for (size_t i = 0; i < t.size(); ++i) {
      const bool used = i + 1 < t.size() && (t[i + 1] == "(" || t[i + 1] == ".");
      const bool attribute = i > 0 && t[i - 1] == ".";
      const bool after_def = i > 0 && (t[i - 1] == "def" || t[i - 1] == "class");
      if (IsWordStart(t[i][0]) && !attribute && (!used || after_def)) names_.other.push_back(t[i]);
    }
  }

  Names names_;
};

}  // namespace

Names ScanPython(std::string_view text) { return Module().Scan(text); }

}  // namespace sless::source
