// SPDX-License-Identifier: MIT
/// \file
/// Tensor maps that are kept, so that the driver encodes each of them once.
#pragma once

#include <mp/device/simt/tensor_map.hpp>

#include <cstddef>
#include <map>

namespace mp::simt {

/// Tensor maps by what they describe. A map follows from its description alone, the address included, and says nothing
/// of what memory holds; so one that is found is right, whatever became of the memory meanwhile. At most 4096
/// of them: then all are forgotten. For one thread at a time, and one device.
class tensor_map_cache {
public:
    static constexpr std::size_t most = 4096;

    /// The map of these tiles, by make() where it is not known.
    template <class Make>
    [[nodiscard]] tensor_map find(const tensor_tiles& tiles, Make make) {
        const auto known = maps_.find(tiles);
        if (known != maps_.end()) return known->second;
        const tensor_map map = make();
        if (maps_.size() == most) maps_.clear();
        maps_.emplace(tiles, map);
        return map;
    }
    /// Number of maps.
    [[nodiscard]] std::size_t size() const noexcept { return maps_.size(); }

private:
    std::map<tensor_tiles, tensor_map> maps_;
};

}  // namespace mp::simt
