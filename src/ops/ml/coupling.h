#pragma once

// Probabilities of classes from what pairs of them say.

#include <cstddef>
#include <vector>

namespace tessera::ops::ml {

// Platt's scaling of a pair's score: the probability of the first of the two, kept off 0 and 1.
double pair_probability(double score, double a, double b);

// The probabilities of `classes` that fit those of all pairs (0 and 1, 0 and 2, ..., 1 and 2, ...)
// best: the second method of Wu, Lin and Weng, "Probability Estimates for Multi-class
// Classification by Pairwise Coupling" (JMLR 5, 2004), with at most 100 steps or as many as there
// are classes.
std::vector<double> couple(std::size_t classes, const std::vector<double>& pairs);

}  // namespace tessera::ops::ml
