// The sum of the gradients of logistic losses over rows of float32 numbers, in double precision: see `gradient.py`.
// Every row is read once. Sums within a row, and within a group of rows, may be taken in any order and products fused
// with them, which the bounds on rounding allow for; rows are added in blocks, whose size these bounds know.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int64_t LANES = 8;
constexpr int64_t ROWS = 8;  // At once: a load of weights and of the sum serves all of them.

typedef double Lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef float Narrow __attribute__((vector_size(LANES * sizeof(float))));

inline Lanes load(const double *from) {
    Lanes values;
    std::memcpy(&values, from, sizeof values);
    return values;
}

inline Lanes widened(const float *from) {
    Narrow values;
    std::memcpy(&values, from, sizeof values);
    return __builtin_convertvector(values, Lanes);
}

struct Losses {
    const double *labels;  // -1 or +1; 0 or anything of a row of zeros.
    double of_minus, of_plus;

    // The derivative of a row's loss by its score.
    double slope(int64_t row, double score) const {
        const double label = labels[row];
        return -label / (1 + std::exp(label * score)) * (label > 0 ? of_plus : of_minus);
    }
};

// Adds the gradients of COUNT rows' losses to the sum.
template <int64_t COUNT>
inline void add(const float *rows, int64_t first, int64_t features, Losses losses, const double *weights, double *sum) {
    const int64_t full = features / LANES * LANES;
    rows += first * features;
    Lanes products[COUNT];
#pragma GCC unroll 8
    for (int64_t row = 0; row < COUNT; ++row) products[row] = Lanes{};
    for (int64_t at = 0; at < full; at += LANES) {
        const Lanes here = load(weights + at);
#pragma GCC unroll 8
        for (int64_t row = 0; row < COUNT; ++row) products[row] += widened(rows + row * features + at) * here;
    }
    double slopes[COUNT];
    for (int64_t row = 0; row < COUNT; ++row) {
        double score = 0;
        for (int64_t lane = 0; lane < LANES; ++lane) score += products[row][lane];
        for (int64_t at = full; at < features; ++at) score += rows[row * features + at] * weights[at];
        slopes[row] = losses.slope(first + row, score);
    }
    for (int64_t at = 0; at < full; at += LANES) {
        Lanes part = Lanes{};
#pragma GCC unroll 8
        for (int64_t row = 0; row < COUNT; ++row) part += widened(rows + row * features + at) * slopes[row];
        part += load(sum + at);
        std::memcpy(sum + at, &part, sizeof part);
    }
    for (int64_t at = full; at < features; ++at) {
        double part = 0;
        for (int64_t row = 0; row < COUNT; ++row) part += rows[row * features + at] * slopes[row];
        sum[at] += part;
    }
}

}  // namespace

// Adds the gradients of all rows' losses to the total, block by block.
extern "C" void logistic_gradient(int64_t n, int64_t features, int64_t block, const float *rows, const double *labels,
                                  double of_minus, double of_plus, const double *weights, double *total) {
    const Losses losses{labels, of_minus, of_plus};
    std::vector<double> sum(features);
    for (int64_t first = 0; first < n; first += block) {
        const int64_t end = first + block < n ? first + block : n;
        std::fill(sum.begin(), sum.end(), 0.0);
        int64_t row = first;
        for (; row + ROWS <= end; row += ROWS) add<ROWS>(rows, row, features, losses, weights, sum.data());
        for (; row < end; ++row) add<1>(rows, row, features, losses, weights, sum.data());
        for (int64_t at = 0; at < features; ++at) total[at] += sum[at];
    }
}
