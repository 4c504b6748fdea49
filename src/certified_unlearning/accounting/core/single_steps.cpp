// Shifted interpolation of single steps that contract alike and have the same noise: the loop of `pooling.Pool.followed_by`,
// see `single_steps.py`. Signals are in units of the largest, noise in those of a step's.

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

struct Block {
    double signal, noise;  // As if the run ended with the block.
    int64_t steps;
};

// Adds the blocks of steps to `blocks`, which holds none of theirs yet. `decays[k]` is what k steps leave of a distance.
void pool(int64_t count, const double *sensitivities, double starting_distance, const double *decays, std::vector<Block> &blocks) {
    const auto none = blocks.size();
    blocks.push_back({starting_distance, 0, 0});
    for (int64_t step = 0; step < count; ++step) {
        Block later{sensitivities[step], 1, 1};
        while (blocks.size() > none) {
            const Block earlier = blocks.back();
            const double decay = decays[later.steps];
            // The earlier ratio is the smaller one, as the end of the later block sees both.
            if (earlier.signal * later.noise < later.signal * earlier.noise * decay) break;
            blocks.pop_back();
            double left = earlier.signal * decay;
            if (left < DBL_MIN && earlier.signal > 0 && decays[1] > 0) left = DBL_MIN;
            later = {later.signal + left, later.noise + earlier.noise * decay * decay, later.steps + earlier.steps};
        }
        blocks.push_back(later);
    }
}

}  // namespace

// Writes in how many records each of `count` steps from `start` on differs. Of pair p, records[p] records of batch[p] differ
// in the visits of their batch before step until[p].
extern "C" void differing(int64_t pairs, const int64_t *batch, const int64_t *records, const int64_t *until, int64_t batches,
                          int64_t start, int64_t count, double *steps) {
    std::fill(steps, steps + count, 0.0);
    for (int64_t pair = 0; pair < pairs; ++pair) {
        const int64_t end = std::min(count, until[pair] - start);
        if (end <= 0) continue;
        const int64_t first = ((batch[pair] - start) % batches + batches) % batches;
        // At its last visit; the earlier ones follow.
        if (first < end) steps[first + (end - 1 - first) / batches * batches] += static_cast<double>(records[pair]);
    }
    for (int64_t step = count - 1 - batches; step >= 0; --step) steps[step] += steps[step + batches];
}

// Returns how many blocks there are, at most count: of each its signal, its noise and how many steps it has.
extern "C" int64_t single_steps(int64_t count, const double *sensitivities, double starting_distance, const double *decays,
                                double *found) {
    std::vector<Block> blocks;
    pool(count, sensitivities, starting_distance, decays, blocks);
    for (const Block &block : blocks) {
        *found++ = block.signal;
        *found++ = block.noise;
        *found++ = static_cast<double>(block.steps);
    }
    return blocks.size();
}

// Returns mu of runs that follow each other, each counted on its own; run r lasts from step ends[r] to ends[r + 1], and the
// sensitivities are those of steps from `first` on. Of runs longer than 2 `window` the last `window` steps are counted,
// from a distance.
extern "C" double single_steps_of_all(int64_t runs, const int64_t *ends, int64_t first, const double *sensitivities,
                                      int64_t window, double distance, const double *decays) {
    std::vector<Block> blocks;
    double mu = 0;
    for (int64_t run = 0; run < runs; ++run) {
        const int64_t begin = ends[run], end = ends[run + 1];
        const bool cut = end - begin > 2 * window;
        const int64_t start = cut ? end - window : begin;
        if (start == end) continue;
        blocks.clear();
        pool(end - start, sensitivities + (start - first), cut ? distance : 0, decays, blocks);
        for (const Block &block : blocks) mu = std::hypot(mu, block.signal / std::sqrt(block.noise));  // No square underflows.
    }
    return mu;
}
