// The sum of the gradients of logistic losses over float32 rows, computed in double precision: see `gradient.py`. Every
// row is read once. Sums within a row or a group of rows may be reordered, and products fused with them; the bounds on
// rounding allow for it. Rows are added in blocks of a size that these bounds assume.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int64_t LANES = 8;
constexpr int64_t ROWS = 8;  // Rows processed at once: they share a load of the weights and of the sum.
constexpr int64_t HALF = 4;  // With several classes: the scores of this many rows and classes fit in registers.

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
    const double *labels;  // -1 or +1; any value for a row of zeros.
    double of_minus, of_plus;

    // The derivative of a row's loss with respect to its score.
    double slope(int64_t row, double score) const {
        const double label = labels[row];
        return -label / (1 + std::exp(label * score)) * (label > 0 ? of_plus : of_minus);
    }
};

// Sets the products of COUNT rows and VECTORS vectors.
template <int64_t COUNT, int64_t VECTORS>
inline void multiply(const float *rows, int64_t features, const double *vectors, double *products) {
    const int64_t full = features / LANES * LANES;
    Lanes parts[COUNT][VECTORS];
    for (int64_t row = 0; row < COUNT; ++row)
        for (int64_t which = 0; which < VECTORS; ++which) parts[row][which] = Lanes{};
    for (int64_t at = 0; at < full; at += LANES) {
        Lanes here[COUNT];
#pragma GCC unroll 8
        for (int64_t row = 0; row < COUNT; ++row) here[row] = widened(rows + row * features + at);
#pragma GCC unroll 8
        for (int64_t which = 0; which < VECTORS; ++which) {
            const Lanes there = load(vectors + which * features + at);
#pragma GCC unroll 8
            for (int64_t row = 0; row < COUNT; ++row) parts[row][which] += here[row] * there;
        }
    }
    for (int64_t row = 0; row < COUNT; ++row)
        for (int64_t which = 0; which < VECTORS; ++which) {
            double product = 0;
            for (int64_t lane = 0; lane < LANES; ++lane) product += parts[row][which][lane];
            for (int64_t at = full; at < features; ++at)
                product += rows[row * features + at] * vectors[which * features + at];
            products[row * VECTORS + which] = product;
        }
}

// Adds the gradients of COUNT rows' losses to the sum. If there is a second vector after the weights, `farthest`
// becomes the largest absolute product with it, if that is larger.
template <int64_t COUNT, int64_t VECTORS>
inline void add(const float *rows, int64_t first, int64_t features, Losses losses, const double *weights, double *sum,
                double *farthest) {
    const int64_t full = features / LANES * LANES;
    rows += first * features;
    constexpr int64_t PART = COUNT * VECTORS > ROWS ? COUNT / VECTORS : COUNT;
    double products[COUNT * VECTORS], slopes[COUNT];
    for (int64_t row = 0; row < COUNT; row += PART)
        multiply<PART, VECTORS>(rows + row * features, features, weights, products + row * VECTORS);
    for (int64_t row = 0; row < COUNT; ++row) {
        slopes[row] = losses.slope(first + row, products[row * VECTORS]);
        if (VECTORS > 1) *farthest = std::max(*farthest, std::fabs(products[row * VECTORS + VECTORS - 1]));
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

// The losses of some classes, each against all others.
struct ClassLosses {
    const int64_t *numbers, *positives;
    const double *of_class;  // Null if all weights are 1.

    // The derivative of a row's loss for one class, with respect to its score for that class.
    double slope(int64_t row, int64_t which, double score) const {
        const double label = numbers[row] == positives[which] ? 1.0 : -1.0;
        return -label / (1 + std::exp(label * score)) * (of_class ? of_class[numbers[row]] : 1.0);
    }
};

// Sets the derivatives of COUNT rows' losses with respect to their scores of CLASSES classes.
template <int64_t COUNT, int64_t CLASSES>
inline void slopes_of(const float *rows, int64_t first, int64_t features, ClassLosses losses, int64_t from,
                      const double *weights, double *slopes) {
    double scores[COUNT * CLASSES];
    multiply<COUNT, CLASSES>(rows + first * features, features, weights + from * features, scores);
    for (int64_t row = 0; row < COUNT; ++row)
        for (int64_t which = 0; which < CLASSES; ++which)
            slopes[row * CLASSES + which] = losses.slope(first + row, from + which, scores[row * CLASSES + which]);
}

// Adds the gradients of COUNT rows' losses for CLASSES successive classes to the sums of these classes.
template <int64_t COUNT, int64_t CLASSES>
inline void add_classes(const float *rows, int64_t first, int64_t features, ClassLosses losses, int64_t from,
                        const double *weights, double *sums) {
    const int64_t full = features / LANES * LANES;
    double slopes[COUNT * CLASSES];
    constexpr int64_t PART = COUNT < HALF ? COUNT : HALF;
    for (int64_t row = 0; row < COUNT; row += PART)
        slopes_of<PART, CLASSES>(rows, first + row, features, losses, from, weights, slopes + row * CLASSES);
    rows += first * features;
    sums += from * features;
    for (int64_t at = 0; at < full; at += LANES) {
        Lanes parts[CLASSES];
#pragma GCC unroll 8
        for (int64_t which = 0; which < CLASSES; ++which) parts[which] = Lanes{};
#pragma GCC unroll 8
        for (int64_t row = 0; row < COUNT; ++row) {
            const Lanes here = widened(rows + row * features + at);
#pragma GCC unroll 8
            for (int64_t which = 0; which < CLASSES; ++which) parts[which] += here * slopes[row * CLASSES + which];
        }
#pragma GCC unroll 8
        for (int64_t which = 0; which < CLASSES; ++which) {
            parts[which] += load(sums + which * features + at);
            std::memcpy(sums + which * features + at, &parts[which], sizeof parts[which]);
        }
    }
    for (int64_t at = full; at < features; ++at)
        for (int64_t which = 0; which < CLASSES; ++which) {
            double part = 0;
            for (int64_t row = 0; row < COUNT; ++row)
                part += rows[row * features + at] * slopes[row * CLASSES + which];
            sums[which * features + at] += part;
        }
}

// Adds the gradients of COUNT rows' losses for all given classes to their sums, in groups of equal size.
template <int64_t COUNT>
void add_all(const float *rows, int64_t first, int64_t features, ClassLosses losses, int64_t classes,
             const double *weights, double *sums) {
    const int64_t groups = (classes + HALF - 1) / HALF;
    for (int64_t from = 0, group = 0; group < groups; ++group) {
        const int64_t to = classes * (group + 1) / groups;
        switch (to - from) {
            case 1: add_classes<COUNT, 1>(rows, first, features, losses, from, weights, sums); break;
            case 2: add_classes<COUNT, 2>(rows, first, features, losses, from, weights, sums); break;
            case 3: add_classes<COUNT, 3>(rows, first, features, losses, from, weights, sums); break;
            default: add_classes<COUNT, HALF>(rows, first, features, losses, from, weights, sums);
        }
        from = to;
    }
}

}  // namespace

// Adds the gradients of all rows' losses, for some classes against all others, to their totals, block by block.
extern "C" void class_gradients(int64_t n, int64_t features, int64_t block, int64_t classes, const float *rows,
                                const int64_t *numbers, const int64_t *positives, const double *of_class,
                                const double *weights, double *totals) {
    const ClassLosses losses{numbers, positives, of_class};
    std::vector<double> sums(classes * features);
    for (int64_t first = 0; first < n; first += block) {
        const int64_t end = first + block < n ? first + block : n;
        std::fill(sums.begin(), sums.end(), 0.0);
        int64_t row = first;
        for (; row + ROWS <= end; row += ROWS) add_all<ROWS>(rows, row, features, losses, classes, weights, sums.data());
        for (; row < end; ++row) add_all<1>(rows, row, features, losses, classes, weights, sums.data());
        for (int64_t at = 0; at < classes * features; ++at) totals[at] += sums[at];
    }
}

// Adds the gradients of all rows' losses to the total, block by block; see `add`.
template <int64_t VECTORS>
void add_blocks(int64_t n, int64_t features, int64_t block, const float *rows, Losses losses, const double *weights,
                double *total, double *farthest) {
    std::vector<double> sum(features);
    for (int64_t first = 0; first < n; first += block) {
        const int64_t end = first + block < n ? first + block : n;
        std::fill(sum.begin(), sum.end(), 0.0);
        int64_t row = first;
        for (; row + ROWS <= end; row += ROWS)
            add<ROWS, VECTORS>(rows, row, features, losses, weights, sum.data(), farthest);
        for (; row < end; ++row) add<1, VECTORS>(rows, row, features, losses, weights, sum.data(), farthest);
        for (int64_t at = 0; at < features; ++at) total[at] += sum[at];
    }
}

// Adds the gradients of all rows' losses to the total. Unless `farthest` is null, a second vector follows the weights,
// and `farthest` is set to the largest absolute product of a row with it.
extern "C" void logistic_gradient(int64_t n, int64_t features, int64_t block, const float *rows, const double *labels,
                                  double of_minus, double of_plus, const double *weights, double *total,
                                  double *farthest) {
    const Losses losses{labels, of_minus, of_plus};
    if (farthest)
        add_blocks<2>(n, features, block, rows, losses, weights, total, farthest);
    else
        add_blocks<1>(n, features, block, rows, losses, weights, total, farthest);
}
