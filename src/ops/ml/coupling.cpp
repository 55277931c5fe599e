#include "ops/ml/coupling.h"

#include <algorithm>
#include <cmath>

namespace tessera::ops::ml {
namespace {

// The quadratic form that the probabilities make least: for each class the sum of the squares of
// what others have against it, and products of what two have against one another.
std::vector<double> form_of(std::size_t classes, const std::vector<double>& pairs) {
  std::vector<double> form(classes * classes, 0);
  std::size_t pair = 0;
  for (std::size_t i = 0; i < classes; ++i) {
    for (std::size_t j = i + 1; j < classes; ++j) {
      const double first = pairs[pair++];
      const double second = 1 - first;
      form[i * classes + i] += second * second;
      form[j * classes + j] += first * first;
      form[i * classes + j] = form[j * classes + i] = -first * second;
    }
  }
  return form;
}

}  // namespace

double pair_probability(double score, double a, double b) {
  constexpr double kEdge = 1e-7;
  const double power = score * a + b;
  const double probability =
      power >= 0 ? std::exp(-power) / (1 + std::exp(-power)) : 1 / (1 + std::exp(power));
  return std::clamp(probability, kEdge, 1 - kEdge);
}

std::vector<double> couple(std::size_t classes, const std::vector<double>& pairs) {
  const std::vector<double> form = form_of(classes, pairs);
  const double precision = 0.005 / static_cast<double>(classes);
  std::vector<double> p(classes, 1 / static_cast<double>(classes));
  std::vector<double> product(classes);  // of the form and p
  for (std::size_t step = 0; step < std::max<std::size_t>(100, classes); ++step) {
    double value = 0;  // of the form at p
    for (std::size_t i = 0; i < classes; ++i) {
      product[i] = 0;
      for (std::size_t j = 0; j < classes; ++j) product[i] += form[i * classes + j] * p[j];
      value += p[i] * product[i];
    }
    double off = 0;
    for (const double one : product) off = std::max(off, std::fabs(one - value));
    if (off < precision) break;
    // One coordinate after another, each time back to a sum of 1.
    for (std::size_t i = 0; i < classes; ++i) {
      const double change = (value - product[i]) / form[i * classes + i];
      const double sum = 1 + change;
      p[i] += change;
      value = (value + change * (change * form[i * classes + i] + 2 * product[i])) / (sum * sum);
      for (std::size_t j = 0; j < classes; ++j) {
        product[j] = (product[j] + change * form[i * classes + j]) / sum;
        p[j] /= sum;
      }
    }
  }
  return p;
}

}  // namespace tessera::ops::ml
