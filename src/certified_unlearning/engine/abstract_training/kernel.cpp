// Sums and extremes of single records' gradients, each a product of a derivative and an input that are known up to
// intervals: formed in registers, clamped, added up, compared, and never stored. See `extremes.summed`, which does the
// same without a compiler. No sum may be contracted or reordered into something that is not a sum of rounded products,
// so that this is compiled without fast mathematics.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int64_t LANES = 8;
constexpr int64_t TILE = 2 * LANES;
constexpr int64_t BLOCK = 512;  // Records whose tile of inputs stays in a processor's cache.

typedef double Lanes __attribute__((vector_size(LANES * sizeof(double))));

inline Lanes load(const double *from) {
    Lanes values;
    std::memcpy(&values, from, sizeof values);
    return values;
}

inline void store(double *to, Lanes values) { std::memcpy(to, &values, sizeof values); }

// Comparisons with what is no number are false, so that the first argument stays if it is none.
inline Lanes least(Lanes one, Lanes two) { return two < one ? two : one; }

inline Lanes most_of(Lanes one, Lanes two) { return one < two ? two : one; }

inline bool any_below(Lanes one, Lanes two) {
    auto below = one < two;
    int64_t found = 0;
    for (int64_t lane = 0; lane < LANES; ++lane) found |= below[lane];
    return found != 0;
}

// Puts values into columns that are sorted upwards, and drops the largest.
inline void insert(double *kept, int64_t most, Lanes values) {
    if (!any_below(values, load(kept + (most - 1) * TILE))) return;
    for (int64_t place = 0; place < most; ++place) {
        const Lanes there = load(kept + place * TILE);
        store(kept + place * TILE, least(there, values));
        values = most_of(there, values);
    }
}

enum Signs { ANY, NONNEGATIVE, POINT };

template <Signs SIGNS>
inline void products(double low, double high, const double *lower, const double *upper, Lanes &least_of, Lanes &largest_of) {
    if (SIGNS == NONNEGATIVE) {
        least_of = low * load(low >= 0 ? lower : upper);
        largest_of = high * load(high >= 0 ? upper : lower);
    } else if (SIGNS == POINT) {
        const Lanes one = low * load(lower), two = high * load(lower);
        least_of = least(one, two);
        largest_of = most_of(one, two);
    } else {
        const Lanes below = load(lower), above = load(upper);
        const Lanes one = low * below, two = low * above, three = high * below, four = high * above;
        least_of = least(least(one, two), least(three, four));
        largest_of = most_of(most_of(one, two), most_of(three, four));
    }
}

// One output, one tile of inputs, one block of records. `sums` has lower and upper sums; `small` and `large` the extremes,
// those of lower bounds negated.
template <Signs SIGNS, int MOST>
void block(int64_t records, const double *low, const double *high, const double *lower, const double *upper, double bound,
           int64_t most, double *sums, double *small, double *large) {
    for (int64_t half = 0; half < TILE; half += LANES) {
        Lanes sum_low = load(sums + half), sum_high = load(sums + TILE + half);
        Lanes smallest{}, largest{};
        if (MOST == 1) smallest = load(small + half), largest = load(large + half);
        const Lanes limit = bound - Lanes{};
        for (int64_t record = 0; record < records; ++record) {
            Lanes below, above;
            products<SIGNS>(low[record], high[record], lower + record * TILE + half, upper + record * TILE + half, below, above);
            below = least(most_of(below, -limit), limit);
            above = least(most_of(above, -limit), limit);
            sum_low += below;
            sum_high += above;
            if (MOST == 1) {
                smallest = least(above, smallest);
                largest = least(-below, largest);
            } else if (MOST > 1) {
                insert(small + half, most, above);
                insert(large + half, most, -below);
            }
        }
        store(sums + half, sum_low);
        store(sums + TILE + half, sum_high);
        if (MOST == 1) store(small + half, smallest), store(large + half, largest);
    }
}

template <Signs SIGNS>
void block_of(int64_t records, const double *low, const double *high, const double *lower, const double *upper, double bound,
              int64_t most, double *sums, double *small, double *large) {
    if (most == 0) block<SIGNS, 0>(records, low, high, lower, upper, bound, most, sums, small, large);
    else if (most == 1) block<SIGNS, 1>(records, low, high, lower, upper, bound, most, sums, small, large);
    else block<SIGNS, 2>(records, low, high, lower, upper, bound, most, sums, small, large);
}

}  // namespace

// Derivatives have shape (runs, outputs, records), inputs (input_runs, records, inputs), sums (runs, outputs, inputs),
// extremes (runs, most, outputs, inputs). `signs` is 0 for inputs of any sign, 1 for none below 0, 2 for points.
extern "C" void summed(int64_t runs, int64_t records, int64_t outputs, int64_t inputs, int64_t input_runs, int64_t most,
                       int32_t signs, const double *low, const double *high, const double *lower, const double *upper,
                       const double *bounds, double *sum_low, double *sum_high, double *smallest, double *largest) {
    std::vector<double> below(BLOCK * TILE), above(BLOCK * TILE);
    std::vector<double> sums(outputs * 2 * TILE), small(outputs * most * TILE + 1), large(outputs * most * TILE + 1);
    for (int64_t run = 0; run < runs; ++run) {
        const int64_t input_run = input_runs == 1 ? 0 : run;
        for (int64_t first = 0; first < inputs; first += TILE) {
            const int64_t width = inputs - first < TILE ? inputs - first : TILE;
            std::fill(sums.begin(), sums.end(), 0.0);
            std::fill(small.begin(), small.end(), INFINITY);
            std::fill(large.begin(), large.end(), INFINITY);
            for (int64_t begin = 0; begin < records; begin += BLOCK) {
                const int64_t count = records - begin < BLOCK ? records - begin : BLOCK;
                for (int64_t record = 0; record < count; ++record) {
                    const int64_t from = (input_run * records + begin + record) * inputs + first;
                    for (int64_t lane = 0; lane < TILE; ++lane) {
                        below[record * TILE + lane] = lane < width ? lower[from + lane] : 0.0;
                        above[record * TILE + lane] = lane < width ? upper[from + lane] : 0.0;
                    }
                }
                for (int64_t output = 0; output < outputs; ++output) {
                    const int64_t at = (run * outputs + output) * records + begin;
                    double *into = sums.data() + output * 2 * TILE;
                    double *ones = small.data() + output * most * TILE, *others = large.data() + output * most * TILE;
                    if (signs == 2)
                        block_of<POINT>(count, low + at, high + at, below.data(), above.data(), bounds[run], most, into, ones, others);
                    else if (signs == 1)
                        block_of<NONNEGATIVE>(count, low + at, high + at, below.data(), above.data(), bounds[run], most, into, ones, others);
                    else
                        block_of<ANY>(count, low + at, high + at, below.data(), above.data(), bounds[run], most, into, ones, others);
                }
            }
            for (int64_t output = 0; output < outputs; ++output) {
                for (int64_t lane = 0; lane < width; ++lane) {
                    const int64_t to = (run * outputs + output) * inputs + first + lane;
                    sum_low[to] = sums[output * 2 * TILE + lane];
                    sum_high[to] = sums[output * 2 * TILE + TILE + lane];
                    for (int64_t place = 0; place < most; ++place) {
                        const int64_t there = ((run * most + place) * outputs + output) * inputs + first + lane;
                        smallest[there] = small[(output * most + place) * TILE + lane];
                        largest[there] = -large[(output * most + place) * TILE + lane];
                    }
                }
            }
        }
    }
}
