// Shifted interpolation of single steps that contract alike and have the same noise: the loop of `pooling.Pool.followed_by`,
// see `single_steps.py`. Signals are in units of the largest, noise in those of a step's.

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

// Returns how many blocks there are, at most count: their signals and noises, and how many steps each has.
extern "C" int64_t single_steps(int64_t count, const double *sensitivities, double starting_distance, const double *decays,
                                double *signals, double *noises, int64_t *steps) {
    std::vector<Block> blocks;
    pool(count, sensitivities, starting_distance, decays, blocks);
    int64_t number = 0;
    for (const Block &block : blocks) {
        signals[number] = block.signal;
        noises[number] = block.noise;
        steps[number++] = block.steps;
    }
    return number;
}

// Returns mu of runs that follow each other, each counted on its own; run r begins with step firsts[r].
extern "C" double single_steps_of_all(int64_t runs, const int64_t *firsts, int64_t count, const double *sensitivities,
                                      const double *starting_distances, const double *decays) {
    std::vector<Block> blocks;
    double mu = 0;
    for (int64_t run = 0; run < runs; ++run) {
        const int64_t end = run + 1 < runs ? firsts[run + 1] : count;
        blocks.clear();
        pool(end - firsts[run], sensitivities + firsts[run], starting_distances[run], decays, blocks);
        for (const Block &block : blocks) mu = std::hypot(mu, block.signal / std::sqrt(block.noise));  // No square underflows.
    }
    return mu;
}
