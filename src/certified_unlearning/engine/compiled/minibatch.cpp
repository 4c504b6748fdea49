// Noisy steps of one model of two classes on mini-batches in memory; one call makes many steps: see `minibatch.py`. A
// step reads every row once, both for its score and for the gradient, and does not wait for Python. Sums may be
// reordered, and products fused with them; the bounds on rounding allow for it. No other operation may be reordered, so
// this file is compiled without fast mathematics.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int64_t LANES = 4;
constexpr double PI = 0x1.921fb54442d18p1;
constexpr int64_t ROWS = 8;  // Rows processed at once: they share a load of the weights.
constexpr int64_t LINE = 8;  // Numbers that a cache loads together.
constexpr int64_t NARROW = 128, AHEAD = 1024;  // Rows up to NARROW are prefetched AHEAD numbers ahead: a quarter faster.

typedef double Lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef int64_t Whole __attribute__((vector_size(LANES * sizeof(int64_t))));

inline Lanes load(const double *from) {
    Lanes values;
    std::memcpy(&values, from, sizeof values);
    return values;
}

inline void store(double *to, Lanes values) { std::memcpy(to, &values, sizeof values); }

// exp(x) for |x| <= 700, with an error of about two units in the last place. It is 2^k exp(r) with |r| <= log(2) / 2;
// exp(r) is a Taylor polynomial, whose remainder is below 5e-18.
inline Lanes exponential(Lanes x) {
    constexpr double SHIFT = 0x1.8p52;  // Added to a number, it leaves the nearest whole number in the last bits.
    constexpr double LOG_2_HIGH = 0x1.62e42fefa3800p-1, LOG_2_LOW = 0x1.ef35793c76730p-45;  // k times LOG_2_HIGH is exact.
    constexpr double INVERSE_FACTORIALS[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                                             1.0 / 40320,      1.0 / 5040,      1.0 / 720,      1.0 / 120,     1.0 / 24,
                                             1.0 / 6,          1.0 / 2,         1.0,            1.0};
    const Lanes shifted = x * 0x1.71547652b82fep0 + SHIFT;
    const Lanes k = shifted - SHIFT;
    const Lanes r = (x - k * LOG_2_HIGH) - k * LOG_2_LOW;
    Lanes power = INVERSE_FACTORIALS[0] + Lanes{};
    for (int at = 1; at < 14; ++at) power = power * r + INVERSE_FACTORIALS[at];
    Whole bits, exponent;
    std::memcpy(&bits, &power, sizeof bits);
    std::memcpy(&exponent, &shifted, sizeof exponent);
    bits += exponent << 52;
    std::memcpy(&power, &bits, sizeof power);
    return power;
}

// NaN stays NaN: comparisons with it are false, and its difference from itself is NaN.
inline Lanes sigmoid(Lanes scores) {
    const Lanes most = 700.0 - Lanes{};
    scores = scores < -most ? -most : scores;
    scores = scores > most ? most : scores;
    return 1.0 / (1.0 + exponential(-scores)) + (scores - scores);
}

// Weights of two classes, whose labels are -1 and +1.
struct ClassWeights {
    const int64_t *labels;  // Pointer to the label of the first row; null if both weights are 1.
    double of_minus, of_plus;

    double of(int64_t row) const { return labels[row] > 0 ? of_plus : of_minus; }
};

// Adds the gradients of COUNT rows' losses to the sum.
template <int64_t COUNT, bool WEIGHTED>
inline void add(const double *rows, int64_t first, int64_t features, ClassWeights classes, const double *weights, double *sum) {
    const int64_t full = features / LANES * LANES;
    rows += first * features;
    // This loop is unrolled, so that its values stay in registers.
    Lanes products[COUNT];
#pragma GCC unroll 8
    for (int64_t row = 0; row < COUNT; ++row) products[row] = Lanes{};
    const bool fetches = COUNT == ROWS && features <= NARROW;
    for (int64_t at = 0; at < full; at += LANES) {
        const Lanes here = load(weights + at);
        if (fetches)
            for (int64_t line = 0; line < COUNT * LANES; line += LINE) __builtin_prefetch(rows + AHEAD + at * COUNT + line);
#pragma GCC unroll 8
        for (int64_t row = 0; row < COUNT; ++row) products[row] += load(rows + row * features + at) * here;
    }
    double derivatives[ROWS] = {};
#pragma GCC unroll 8
    for (int64_t row = 0; row < COUNT; ++row)
        derivatives[row] = (products[row][0] + products[row][1]) + (products[row][2] + products[row][3]);
    for (int64_t at = full; at < features; ++at)
#pragma GCC unroll 8
        for (int64_t row = 0; row < COUNT; ++row) derivatives[row] += rows[row * features + at] * weights[at];
    for (int64_t at = 0; at < COUNT; at += LANES) store(derivatives + at, sigmoid(load(derivatives + at)));
    if (WEIGHTED)
        for (int64_t row = 0; row < COUNT; ++row) derivatives[row] *= classes.of(first + row);
    for (int64_t at = 0; at < full; at += LANES) {
        Lanes more = load(rows + at) * derivatives[0];
        for (int64_t row = 1; row < COUNT; ++row) more += load(rows + row * features + at) * derivatives[row];
        store(sum + at, load(sum + at) + more);
    }
    for (int64_t at = full; at < features; ++at) {
        double more = 0;
#pragma GCC unroll 8
        for (int64_t row = 0; row < COUNT; ++row) more += rows[row * features + at] * derivatives[row];
        sum[at] += more;
    }
}

// Whether a random integer gives a radius with enough precision: see `randomness.FINE_FROM`.
inline bool is_fine(int64_t bits, double low, double high) {
    const double size = std::fabs(static_cast<double>(bits));
    return low <= size && size <= high;
}

}  // namespace

// Computes the noise of `randomness` from blocks of random integers, for `count` steps from `first` on; shape (count,
// features). Returns 0 if a radius of one of the blocks needs more bits. The computed noise must then be discarded.
extern "C" int32_t normal_numbers(int64_t features, int64_t block_steps, int64_t first, int64_t count, double low,
                                  double high, const int64_t *bits, double *numbers) {
    const int64_t half = (features + 1) / 2, pairs = block_steps * half;
    for (int64_t step = first; step < first + count; ++step, numbers += features) {
        const int64_t of_block = step % block_steps;
        const int64_t *block = bits + step / block_steps * 2 * pairs, *radii = block + of_block * half, *angles = radii + pairs;
        if (of_block == 0 || step == first)
            for (int64_t at = 0; at < pairs; ++at)
                if (!is_fine(block[at], low, high)) return 0;
        for (int64_t at = 0; at < half; ++at) {
            const double size = std::fabs(static_cast<double>(radii[at]));
            const double radius = std::sqrt(-2 * std::log(size / 0x1p63));
            const double angle = static_cast<double>(angles[at]) * (PI / 0x1p63);
            numbers[at] = radius * std::cos(angle);
            if (half + at < features) numbers[half + at] = radius * std::sin(angle);
        }
    }
    return 1;
}

// Applies `count` steps to the weights, shape (features,), in place. The noise has shape (count, features) and unit
// standard deviation; it may be null.
extern "C" void noisy_steps(int64_t n, int64_t features, int64_t batch_size, int64_t batch, int64_t count, const double *rows,
                            const int64_t *labels, double of_minus, double of_plus, double strong_convexity,
                            double step_size, const double *noise, double noise_std, double *weights) {
    const int64_t batches = (n + batch_size - 1) / batch_size;
    const double shrunk = 1 - step_size * strong_convexity, scale = -step_size / static_cast<double>(batch_size);
    const auto many = labels ? add<ROWS, true> : add<ROWS, false>, one = labels ? add<1, true> : add<1, false>;
    std::vector<double> sum(features);
    for (int64_t step = 0; step < count; ++step, batch = (batch + 1) % batches) {
        std::fill(sum.begin(), sum.end(), 0.0);
        const int64_t end = std::min(n, (batch + 1) * batch_size);
        const ClassWeights classes{labels, of_minus, of_plus};
        int64_t row = batch * batch_size;
        for (; row + ROWS <= end; row += ROWS) many(rows, row, features, classes, weights, sum.data());
        for (; row < end; ++row) one(rows, row, features, classes, weights, sum.data());
        for (int64_t at = 0; at < features; ++at) {
            weights[at] = weights[at] * shrunk + sum[at] * scale;
            if (noise) weights[at] += noise[step * features + at] * noise_std;
        }
    }
}
