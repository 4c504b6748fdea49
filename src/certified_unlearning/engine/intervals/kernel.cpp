// Two operations for which PyTorch would read the memory many times, see `kernel.py`:
// - sums and extremes of single records' gradients. Each gradient is a product of a derivative and an input, both known
//   up to intervals. Gradients are computed in registers, clamped, added and compared, and never stored;
// - products of records with few columns, and of their absolute values; each record is read once.
// Sums must stay sums of rounded products, without contraction, so this file is compiled without fast mathematics.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int64_t LANES = 8;
constexpr int64_t TILE = 2 * LANES;
constexpr int64_t MANY = 512;  // Records processed at once: every output reads a tile of their inputs from a cache.
constexpr int64_t PITCH = MANY + LANES;  // Distance from one output's records to the next; not a power of 2, which is slow.
constexpr int64_t FEW = 16;    // Records processed at once if there are few outputs, so that whole rows are read.

typedef double Lanes __attribute__((vector_size(LANES * sizeof(double))));

inline Lanes load(const double *from) {
    Lanes values;
    std::memcpy(&values, from, sizeof values);
    return values;
}

inline void store(double *to, Lanes values) { std::memcpy(to, &values, sizeof values); }

// Comparisons with NaN are false, so the result is the first argument if that is NaN.
inline Lanes least(Lanes one, Lanes two) { return two < one ? two : one; }

inline Lanes most_of(Lanes one, Lanes two) { return one < two ? two : one; }

inline bool any_below(Lanes one, Lanes two) {
    auto below = one < two;
    int64_t found = 0;
    for (int64_t lane = 0; lane < LANES; ++lane) found |= below[lane];
    return found != 0;
}

// Inserts values into columns that are sorted in ascending order, and drops the largest.
inline void insert(double *kept, int64_t most, Lanes values) {
    if (!any_below(values, load(kept + (most - 1) * TILE))) return;
    for (int64_t place = 0; place < most; ++place) {
        const Lanes there = load(kept + place * TILE);
        store(kept + place * TILE, least(there, values));
        values = most_of(there, values);
    }
}

// Signs of inputs: any; none below 0; inputs that are single numbers; inputs and derivatives that are single numbers.
enum Signs { ANY, NONNEGATIVE, POINT, POINTS };

template <Signs SIGNS>
inline void products(double low, double high, const double *lower, const double *upper, Lanes &least_of, Lanes &largest_of) {
    if (SIGNS == POINTS) {
        least_of = largest_of = low * load(lower);
    } else if (SIGNS == NONNEGATIVE) {
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

// The results for one output and one tile of inputs, one tile each: sums of lower bounds, of upper bounds and of
// magnitudes; then the smallest upper bounds; then the largest lower bounds, negated.
constexpr int64_t SUMS = 3;

template <Signs SIGNS, int MOST, bool CLAMPS>
void block(int64_t records, const double *low, const double *high, const double *lower, const double *upper, double bound,
           int64_t most, double *kept) {
    const Lanes limit = bound - Lanes{};
    for (int64_t half = 0; half < TILE; half += LANES) {
        double *sums = kept + half, *small = sums + SUMS * TILE, *large = small + most * TILE;
        Lanes sum_low = load(sums), sum_high = load(sums + TILE), size = load(sums + 2 * TILE);
        Lanes smallest{}, largest{};
        if (MOST == 1) smallest = load(small), largest = load(large);
        for (int64_t record = 0; record < records; ++record) {
            Lanes below, above;
            products<SIGNS>(low[record], high[record], lower + record * TILE + half, upper + record * TILE + half, below, above);
            if (CLAMPS) {
                below = least(most_of(below, -limit), limit);
                above = SIGNS == POINTS ? below : least(most_of(above, -limit), limit);
            }
            const Lanes turned = -below;
            sum_low += below;
            if (SIGNS != POINTS) sum_high += above;
            size += most_of(above, turned);
            if (MOST == 1) {
                smallest = least(above, smallest);
                largest = least(turned, largest);
            } else if (MOST > 1) {
                insert(small, most, above);
                insert(large, most, turned);
            }
        }
        store(sums, sum_low);
        store(sums + TILE, SIGNS == POINTS ? sum_low : sum_high);
        store(sums + 2 * TILE, size);
        if (MOST == 1) store(small, smallest), store(large, largest);
    }
}

typedef void (*Block)(int64_t, const double *, const double *, const double *, const double *, double, int64_t, double *);

template <Signs SIGNS, bool CLAMPS>
Block block_keeping(int64_t most) {
    return most == 0 ? block<SIGNS, 0, CLAMPS> : most == 1 ? block<SIGNS, 1, CLAMPS> : block<SIGNS, 2, CLAMPS>;
}

template <bool CLAMPS>
Block block_of(int32_t signs, int64_t most) {
    switch (signs) {
        case NONNEGATIVE: return block_keeping<NONNEGATIVE, CLAMPS>(most);
        case POINT: return block_keeping<POINT, CLAMPS>(most);
        case POINTS: return block_keeping<POINTS, CLAMPS>(most);
        default: return block_keeping<ANY, CLAMPS>(most);
    }
}

// Copies a tile of some records' inputs, and fills the rest with zeros. Returns 0, or NaN if an input is not finite.
Lanes copied(int64_t records, int64_t inputs, int64_t width, const double *from, double *to) {
    Lanes probe{};
    for (int64_t record = 0; record < records; ++record, from += inputs, to += TILE) {
        if (width < TILE) {
            std::fill(to, to + TILE, 0.0);
            std::memcpy(to, from, width * sizeof(double));
        } else {
            store(to, load(from));
            store(to + LANES, load(from + LANES));
        }
        probe += load(to) * 0.0;
        probe += load(to + LANES) * 0.0;
    }
    return probe;
}

// Copies some records' derivatives, transposed so that records come last; returns 0, or NaN, as `copied` does.
double turned(int64_t records, int64_t outputs, const double *from, double *to) {
    for (int64_t record = 0; record < records; ++record)
        for (int64_t output = 0; output < outputs; ++output) to[output * PITCH + record] = from[record * outputs + output];
    double probe = 0, probes[LANES] = {};
    int64_t at = 0;
    for (; at + LANES <= records * outputs; at += LANES)
        for (int64_t lane = 0; lane < LANES; ++lane) probes[lane] += from[at + lane] * 0.0;
    for (; at < records * outputs; ++at) probe += from[at] * 0.0;
    for (int64_t lane = 0; lane < LANES; ++lane) probe += probes[lane];
    return probe;
}

inline Lanes magnitude(Lanes values) { return most_of(values, -values); }

inline double total(Lanes values) {
    double sum = 0;
    for (int64_t lane = 0; lane < LANES; ++lane) sum += values[lane];
    return sum;
}

}  // namespace

// Shapes: `left` (rows, inner), `middle` and `radius` (outputs, inner), `centre` and `spread` (rows, outputs).
extern "C" void centre_and_spread(int64_t rows, int64_t inner, int64_t outputs, const double *left, const double *middle,
                                  const double *radius, double *centre, double *spread) {
    constexpr int64_t AT_ONCE = 4;  // Number of sums that are computed independently of each other.
    for (int64_t row = 0; row < rows; ++row, left += inner)
        for (int64_t output = 0; output < outputs; ++output) {
            const double *by = middle + output * inner, *wide = radius + output * inner;
            Lanes first[AT_ONCE] = {}, second[AT_ONCE] = {};
            int64_t at = 0;
            for (; at + AT_ONCE * LANES <= inner; at += AT_ONCE * LANES)
                for (int64_t each = 0; each < AT_ONCE; ++each) {
                    const Lanes values = load(left + at + each * LANES);
                    first[each] += values * load(by + at + each * LANES);
                    second[each] += magnitude(values) * load(wide + at + each * LANES);
                }
            double one = total(first[0] + first[1] + first[2] + first[3]);
            double two = total(second[0] + second[1] + second[2] + second[3]);
            for (; at < inner; ++at) {
                one += left[at] * by[at];
                two += std::fabs(left[at]) * wide[at];
            }
            centre[row * outputs + output] = one;
            spread[row * outputs + output] = two;
        }
}

// Shapes: derivatives (runs, records, outputs), inputs (input_runs, records, inputs), sums (runs, outputs, inputs),
// extremes (runs, most, outputs, inputs). `signs` is one of `Signs`. If the values are single numbers, the pointers to
// both ends are the same. Returns whether all derivatives and inputs are finite. If not, the results are meaningless,
// because comparisons ignore NaN.
extern "C" int32_t summed(int64_t runs, int64_t records, int64_t outputs, int64_t inputs, int64_t input_runs, int64_t most,
                          int32_t signs, const double *low, const double *high, const double *lower, const double *upper,
                          const double *bounds, double *sum_low, double *sum_high, double *sizes, double *smallest,
                          double *largest) {
    const int64_t tiles = (inputs + TILE - 1) / TILE, keeps = (SUMS + 2 * most) * TILE;
    const int64_t step = outputs <= 2 ? FEW : MANY;
    std::vector<double> below(MANY * TILE), above(lower == upper ? 0 : MANY * TILE), kept(tiles * outputs * keeps);
    std::vector<double> lows(outputs * PITCH), highs(low == high ? 0 : outputs * PITCH);
    const double *tile_high = lower == upper ? below.data() : above.data(), *turned_high = low == high ? lows.data() : highs.data();
    for (int64_t run = 0; run < runs; ++run) {
        const Block add = std::isinf(bounds[run]) ? block_of<false>(signs, most) : block_of<true>(signs, most);
        for (int64_t at = 0; at < tiles * outputs; ++at) {
            std::fill_n(kept.data() + at * keeps, SUMS * TILE, 0.0);
            std::fill_n(kept.data() + at * keeps + SUMS * TILE, 2 * most * TILE, INFINITY);
        }
        for (int64_t begin = 0; begin < records; begin += step) {
            const int64_t count = std::min(records - begin, step);
            const int64_t from = (run * records + begin) * outputs, row = ((input_runs == 1 ? 0 : run) * records + begin) * inputs;
            double probe = turned(count, outputs, low + from, lows.data());
            if (low != high) probe += turned(count, outputs, high + from, highs.data());
            for (int64_t tile = 0; tile < tiles; ++tile) {
                const int64_t first = tile * TILE, width = std::min(inputs - first, TILE);
                Lanes probes = copied(count, inputs, width, lower + row + first, below.data());
                if (lower != upper) probes += copied(count, inputs, width, upper + row + first, above.data());
                for (int64_t lane = 0; lane < LANES; ++lane) probe += probes[lane];
                for (int64_t output = 0; output < outputs; ++output)
                    add(count, lows.data() + output * PITCH, turned_high + output * PITCH, below.data(), tile_high, bounds[run],
                        most, kept.data() + (tile * outputs + output) * keeps);
            }
            if (probe != 0) return 0;
        }
        for (int64_t output = 0; output < outputs; ++output)
            for (int64_t input = 0; input < inputs; ++input) {
                const double *found = kept.data() + (input / TILE * outputs + output) * keeps + input % TILE;
                const int64_t to = (run * outputs + output) * inputs + input;
                sum_low[to] = found[0];
                sum_high[to] = found[TILE];
                sizes[to] = found[2 * TILE];
                for (int64_t place = 0; place < most; ++place) {
                    const int64_t there = ((run * most + place) * outputs + output) * inputs + input;
                    smallest[there] = found[(SUMS + place) * TILE];
                    largest[there] = -found[(SUMS + most + place) * TILE];
                }
            }
    }
    return 1;
}
