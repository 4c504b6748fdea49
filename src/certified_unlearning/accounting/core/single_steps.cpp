// Shifted interpolation of single steps with equal contraction and equal noise: the loop of `pooling.Pool.followed_by`,
// see `single_steps.py`. The unit of signals is the largest signal, and that of noise is a step's noise.

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

// Appends the blocks of steps to `blocks`. `decays[k]` is the factor by which k steps shrink a distance.
void pool(int64_t count, const double *sensitivities, double starting_distance, const double *decays, std::vector<Block> &blocks) {
    const auto none = blocks.size();
    blocks.push_back({starting_distance, 0, 0});
    for (int64_t step = 0; step < count; ++step) {
        Block later{sensitivities[step], 1, 1};
        while (blocks.size() > none) {
            const Block earlier = blocks.back();
            const double decay = decays[later.steps];
            // Seen from the end of the later block, the earlier ratio is the smaller one.
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

// Writes the number of records in which the two runs differ, for each of `count` steps from `start` on. Because of pair p,
// records[p] records of batch[p] differ whenever that batch is visited before step until[p].
extern "C" void differing(int64_t pairs, const int64_t *batch, const int64_t *records, const int64_t *until, int64_t batches,
                          int64_t start, int64_t count, double *steps) {
    std::fill(steps, steps + count, 0.0);
    for (int64_t pair = 0; pair < pairs; ++pair) {
        const int64_t end = std::min(count, until[pair] - start);
        if (end <= 0) continue;
        const int64_t first = ((batch[pair] - start) % batches + batches) % batches;
        // Only the batch's last visit is counted here. The loop below adds the earlier visits.
        if (first < end) steps[first + (end - 1 - first) / batches * batches] += static_cast<double>(records[pair]);
    }
    for (int64_t step = count - 1 - batches; step >= 0; --step) steps[step] += steps[step + batches];
}

// Returns the number of blocks, at most `count`, and writes each block's signal, noise and number of steps to `found`.
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

// Returns mu of successive runs, each counted on its own. Run r lasts from step ends[r] to ends[r + 1], and `sensitivities`
// begins with step `first`. In a run longer than 2 `window`, only the last `window` steps are counted, from a starting
// distance.
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
