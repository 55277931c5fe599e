#pragma once

// What a run of random models has exercised, held against what the op table has.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "random_models/evaluate.h"

namespace tessera::random_models {

class Coverage {
 public:
  void add(const Model& model, const Evaluation& evaluation);

  // Shares in [0, 1]: of the operators with a recipe; of the pairs of operator and dtype that
  // recipes can make; of the attributes of those operators.
  [[nodiscard]] double operators() const;
  [[nodiscard]] double dtypes() const;
  [[nodiscard]] double attributes() const;
  [[nodiscard]] std::vector<std::string> missing() const;  // "Conv/fp64", "Pad.mode"

  // Each operator with its nodes, dtypes and attributes; then the shares and what is missing.
  [[nodiscard]] std::string to_string() const;

 private:
  struct Seen {
    std::size_t nodes = 0;
    std::map<DType, std::size_t> dtypes;
    std::map<std::string, std::size_t> attributes;  // "mode=reflect" for words, else the name
  };
  [[nodiscard]] bool has_attribute(std::string_view op, std::string_view name) const;

  std::map<std::string, Seen, std::less<>> operators_;
};

}  // namespace tessera::random_models
