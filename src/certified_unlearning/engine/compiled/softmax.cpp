// The sum of the gradients of softmax losses over float32 rows, computed in double precision: see `softmax.py`. Every
// row is read once. Sums within a row or a group of rows may be reordered, and products fused with them; the bounds on
// rounding allow for it. Rows are added in blocks of a size that these bounds assume.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

#ifdef __AVX512F__
constexpr int64_t LANES = 8;
#else
constexpr int64_t LANES = 4;
#endif
constexpr int64_t ROWS = 8;     // Rows in a group: they share a load of the sum.
constexpr int64_t HALF = 4;     // Rows whose scores are computed together.
constexpr int64_t CLASSES = 5;  // Classes in a tile: HALF times this many sums are kept in registers.

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

// The scores of COUNT rows for C classes; `scores` has one row of `classes` numbers for each of them.
template <int64_t COUNT, int64_t C>
void score(const float *rows, int64_t features, int64_t classes, const double *weights, double *scores) {
    const int64_t full = features / LANES * LANES;
    Lanes sums[COUNT][C] = {};
    for (int64_t at = 0; at < full; at += LANES) {
        Lanes here[COUNT];
#pragma GCC unroll 8
        for (int64_t row = 0; row < COUNT; ++row) here[row] = widened(rows + row * features + at);
#pragma GCC unroll 8
        for (int64_t c = 0; c < C; ++c) {
            const Lanes weight = load(weights + c * features + at);
#pragma GCC unroll 8
            for (int64_t row = 0; row < COUNT; ++row) sums[row][c] += here[row] * weight;
        }
    }
    for (int64_t row = 0; row < COUNT; ++row) {
        for (int64_t c = 0; c < C; ++c) {
            double sum = 0;
            for (int64_t lane = 0; lane < LANES; ++lane) sum += sums[row][c][lane];
            for (int64_t at = full; at < features; ++at) sum += rows[row * features + at] * weights[c * features + at];
            scores[row * classes + c] = sum;
        }
    }
}

// Adds COUNT rows, each times its slope for each of C classes, to the sums of these classes.
template <int64_t COUNT, int64_t C>
void add(const float *rows, int64_t features, int64_t classes, const double *slopes, double *sums) {
    const int64_t full = features / LANES * LANES;
    for (int64_t at = 0; at < full; at += LANES) {
        Lanes here[COUNT];
#pragma GCC unroll 8
        for (int64_t row = 0; row < COUNT; ++row) here[row] = widened(rows + row * features + at);
#pragma GCC unroll 8
        for (int64_t c = 0; c < C; ++c) {
            double *sum = sums + c * features + at;
            Lanes part = load(sum);
#pragma GCC unroll 8
            for (int64_t row = 0; row < COUNT; ++row) part += here[row] * slopes[row * classes + c];
            std::memcpy(sum, &part, sizeof part);
        }
    }
    for (int64_t at = full; at < features; ++at) {
        for (int64_t c = 0; c < C; ++c) {
            for (int64_t row = 0; row < COUNT; ++row) {
                sums[c * features + at] += rows[row * features + at] * slopes[row * classes + c];
            }
        }
    }
}

// Replaces a row's scores by the derivatives of its loss with respect to them.
void softmax(int64_t classes, int64_t label, const double *class_weights, double *scores) {
    const double largest = *std::max_element(scores, scores + classes);
    double total = 0;
    for (int64_t c = 0; c < classes; ++c) total += scores[c] = std::exp(scores[c] - largest);
    for (int64_t c = 0; c < classes; ++c) scores[c] /= total;
    scores[label] -= 1;
    if (class_weights) {
        for (int64_t c = 0; c < classes; ++c) scores[c] *= class_weights[label];
    }
}

template <int64_t COUNT, int64_t C>
void score_or_add(bool adds, const float *rows, int64_t features, int64_t classes, const double *weights,
                  double *scores, double *sums) {
    if (adds) {
        add<COUNT, C>(rows, features, classes, scores, sums);
    } else if (COUNT > HALF) {
        score<HALF, C>(rows, features, classes, weights, scores);
        score<HALF, C>(rows + HALF * features, features, classes, weights, scores + HALF * classes);
    } else {
        score<COUNT, C>(rows, features, classes, weights, scores);
    }
}

// Goes through the classes, tile by tile.
template <int64_t COUNT>
void tiles(bool adds, const float *rows, int64_t features, int64_t classes, const double *weights, double *scores,
           double *sums) {
    for (int64_t first = 0; first < classes; first += CLASSES) {
        const double *some = weights + first * features;
        double *own = scores + first, *total = sums + first * features;
        switch (std::min(CLASSES, classes - first)) {
            case 1: score_or_add<COUNT, 1>(adds, rows, features, classes, some, own, total); break;
            case 2: score_or_add<COUNT, 2>(adds, rows, features, classes, some, own, total); break;
            case 3: score_or_add<COUNT, 3>(adds, rows, features, classes, some, own, total); break;
            case 4: score_or_add<COUNT, 4>(adds, rows, features, classes, some, own, total); break;
            default: score_or_add<COUNT, CLASSES>(adds, rows, features, classes, some, own, total);
        }
    }
}

struct Data {
    int64_t features, classes;
    const float *rows;
    const int64_t *labels;
    const double *class_weights, *weights;

    template <int64_t COUNT>
    void group(int64_t first, double *scores, double *sums) const {
        const float *own = rows + first * features;
        tiles<COUNT>(false, own, features, classes, weights, scores, sums);
        for (int64_t row = 0; row < COUNT; ++row) {
            softmax(classes, labels[first + row], class_weights, scores + row * classes);
        }
        tiles<COUNT>(true, own, features, classes, weights, scores, sums);
    }
};

}  // namespace

// Adds the gradients of all rows' losses to the total, block by block. Labels are from 0 to `classes` - 1;
// `class_weights` may be null.
extern "C" void softmax_gradient(int64_t n, int64_t features, int64_t classes, int64_t block, const float *rows,
                                 const int64_t *labels, const double *class_weights, const double *weights,
                                 double *total) {
    const Data data{features, classes, rows, labels, class_weights, weights};
    std::vector<double> sums(classes * features), scores(ROWS * classes);
    for (int64_t first = 0; first < n; first += block) {
        const int64_t end = std::min(n, first + block);
        std::fill(sums.begin(), sums.end(), 0.0);
        int64_t row = first;
        for (; row + ROWS <= end; row += ROWS) data.group<ROWS>(row, scores.data(), sums.data());
        for (; row < end; ++row) data.group<1>(row, scores.data(), sums.data());
        for (int64_t at = 0; at < classes * features; ++at) total[at] += sums[at];
    }
}
