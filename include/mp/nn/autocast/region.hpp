// SPDX-License-Identifier: MIT
/// \file
/// Autocast at run time: a region of code, on one thread, in which ops run in a low precision.
#pragma once

#include <mp/error.hpp>
#include <mp/nn/autocast/cast_cache.hpp>
#include <mp/nn/autocast/cast_observer.hpp>
#include <mp/nn/autocast/category.hpp>
#include <mp/nn/autocast/op_list.hpp>
#include <mp/nn/autocast/precision.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mp::autocast {

/// Changes the treatment of ops while a region lasts.
struct region_rule {
    std::string op;  ///< a name of the op, also one of `known_as`; "*" for every op
    op_category category = op_category::pass_through;
    std::optional<device_kind> device{};  ///< only on this kind of device; nothing for all
    std::string layer{};                  ///< only in layers whose names match this pattern; empty for all

    friend bool operator==(const region_rule&, const region_rule&) = default;
};

/// The list that is none: ops keep their own categories, also inside a region with a list.
inline constexpr op_list own_categories{"the ops' own categories", {}, op_category::pass_through};

/// A published way to run a model: a precision and a list of ops. See <mp/frontends/compat/presets.hpp>.
struct preset {
    std::string_view name;
    precision value = precision::off;
    const op_list* ops = &own_categories;
    bool master_weights = true;  ///< whether the system keeps weights in float and casts them for the ops
    std::string_view meaning{};  ///< a readable sentence
};

}  // namespace mp::autocast

namespace mp {

/// Settings of a region. Those left out are inherited from the enclosing region.
///
///     mp::autocast_region region({.cpu = mp::precision::bf16,
///                                 .rules = {{"softmax", mp::op_category::lower_precision}},
///                                 .only_layers = {"encoder.*"}});
struct autocast_options {
    std::optional<precision> cpu{};   ///< of ops on CPUs
    std::optional<precision> cuda{};  ///< of ops on CUDA devices
    /// Of the CUDA device, such as 80, if precisions that it lacks are to be refused.
    int compute_capability = 0;
    /// Gives the categories by the names of ops; it must outlive the region.
    const autocast::op_list* list = nullptr;
    /// Come before those of the regions around; the first that fits wins.
    std::vector<autocast::region_rule> rules{};
    std::vector<std::string> only_ops{};     ///< cast only in ops with these names
    std::vector<std::string> only_layers{};  ///< cast only in layers whose names match one of these patterns
    std::shared_ptr<autocast::cast_cache> cache{};  ///< keeps casts of cached() arguments
    bool keep_cache = false;  ///< leave `cache` as it is when the region ends, for the next one
    /// Whether there is a cache at all, here and in regions inside. Not for a step that is captured into a
    /// graph, whose casts are made anew each time: without a cache they take as much workspace before the
    /// capture as in it.
    bool keep_casts = true;
    /// A cast_ledger, or another observer; it must outlive the region and its tokens.
    autocast::cast_observer* ledger = nullptr;
};

namespace detail {

/// The settings in effect on this thread. Lives in the region, or in the token that the region was made from.
struct autocast_state {
    std::array<precision, device_kind_count> precisions{};
    const autocast::op_list* list = &autocast::own_categories;
    std::vector<autocast::region_rule> rules{};
    std::vector<std::string> only_ops{};
    std::vector<std::string> only_layers{};
    std::shared_ptr<autocast::cast_cache> cache{};
    bool keep_casts = true;
    autocast::cast_observer* ledger = nullptr;
    const autocast_state* outer = nullptr;  ///< where rules go on

    bool active() const {
        for (const precision value : precisions) {
            if (value != precision::off) return true;
        }
        return false;
    }
};

/// With detail::write_watch the only mutable state outside of objects in the library. Threads start with
/// autocast off.
struct autocast_thread_state {
    const autocast_state* state = nullptr;  ///< of the innermost region
    const std::string* layer = nullptr;     ///< the names of the layers that the thread is in
};
inline constinit thread_local autocast_thread_state autocast_thread{};

/// Turns autocast off as long as it lives, if it excludes: what the kernel of an op that is cast calls is not cast
/// again.
class [[nodiscard]] autocast_excluded {
public:
    [[nodiscard]] explicit autocast_excluded(bool excludes = true) noexcept : outer_(autocast_thread.state) {
        if (excludes) autocast_thread.state = nullptr;
    }
    ~autocast_excluded() { autocast_thread.state = outer_; }
    autocast_excluded(const autocast_excluded&) = delete;
    autocast_excluded& operator=(const autocast_excluded&) = delete;

private:
    const autocast_state* outer_;
};

}  // namespace detail

/// The precision of ops on this kind of device in the innermost region that the calling thread is in;
/// precision::off outside of all.
inline precision autocast_precision(device_kind device = device_kind::cpu) noexcept {
    const detail::autocast_state* state = detail::autocast_thread.state;
    return state == nullptr ? precision::off : state->precisions[static_cast<std::size_t>(device)];
}

/// Whether ops that the calling thread dispatches now on this kind of device are cast.
inline bool autocast_active(device_kind device = device_kind::cpu) noexcept {
    return autocast_precision(device) != precision::off;
}

/// The cache of the region that the calling thread is in, to be looked at; null outside of regions.
inline std::shared_ptr<autocast::cast_cache> autocast_cache() noexcept {
    const detail::autocast_state* state = detail::autocast_thread.state;
    return state == nullptr ? nullptr : state->cache;
}

/// The autocast state of a thread, to be carried to another thread or to a later time, such as the backward
/// pass. A default-constructed token is "off". Copies share what they carry, and may be used by several
/// threads at once. Cache, ledger and layer names go along.
class autocast_token {
public:
    autocast_token() = default;

    /// The precision that a region made from this token has.
    precision value(device_kind device = device_kind::cpu) const noexcept {
        return carried_ == nullptr ? precision::off
                                   : carried_->state.precisions[static_cast<std::size_t>(device)];
    }

    /// Whether both were copied from one capture.
    friend bool operator==(const autocast_token&, const autocast_token&) = default;

    /// Whether the calling thread is in the state that the token carries, so that there is no need to capture
    /// it again. Allocates nothing.
    [[nodiscard]] bool is_current() const noexcept;

private:
    friend autocast_token capture_autocast();
    friend class autocast_region;

    struct carried {
        detail::autocast_state state;
        std::string layer;
    };
    std::shared_ptr<const carried> carried_;
};

/// Takes the calling thread's autocast state along. New threads start with autocast off; a worker that should
/// run like its creator opens a region from the creator's token:
///
///     const auto token = mp::capture_autocast();
///     std::thread worker([token] { mp::autocast_region region(token); forward(); });
MP_CORE_FUNCTION autocast_token capture_autocast();

/// While the object lives, ops that its thread dispatches run in the given precision. Regions nest: the
/// innermost one decides, and leaving it, also by an exception, restores the one around it.
///
///     mp::autocast_region region(mp::precision::fp16);
///     mp::ops::linear(exec, x, w, b, y);                          // in half
///     {
///         mp::autocast_region exact(mp::precision::fp16, false);  // the same as mp::precision::off
///         mp::ops::linear(exec, x, w, b, y);                      // in the formats of x and w
///     }
///
/// Arrays keep their formats: what was written inside a region is not cast back when the region ends. An
/// object must be destroyed on the thread that made it, in the reverse order of construction, as automatic
/// variables are. An outermost region that is on has a cache for casts of cached() arguments, which ends with
/// it.
class [[nodiscard]] autocast_region {
public:
    /// Enters a region of this precision on every device, or one without autocast where `enabled` is false.
    /// Throws argument_error for a value that is no enumerator of mp::precision.
    [[nodiscard]] explicit autocast_region(precision value, bool enabled = true)
        : autocast_region(enabled ? value : checked_off(value), nullptr, MP_CHECK_KEPT_CASTS != 0) {}

    /// Enters a region with a precision and the categories of a list, such as
    /// mp::autocast::lists::tensorflow.
    [[nodiscard]] autocast_region(precision value, const autocast::op_list& list)
        : autocast_region(value, &list, MP_CHECK_KEPT_CASTS != 0) {}

    /// Enters a region that runs ops as a published system does.
    [[nodiscard]] explicit autocast_region(const autocast::preset& preset)
        : autocast_region(preset.value, preset.ops, MP_CHECK_KEPT_CASTS != 0) {}

    /// Enters a region with these options. Throws argument_error for values that are no enumerators, a
    /// precision that the CUDA device does not have, and names or patterns that are empty.
    [[nodiscard]] explicit autocast_region(autocast_options options)
        : autocast_region(std::move(options), MP_CHECK_KEPT_CASTS != 0) {}

    /// Enters a region with the state that the token has captured.
    [[nodiscard]] explicit autocast_region(const autocast_token& token) noexcept;

    ~autocast_region();

    autocast_region(const autocast_region&) = delete;
    autocast_region& operator=(const autocast_region&) = delete;

private:
    /// Enters a region whose cache, where it makes one, compares kept casts or does not.
    autocast_region(autocast_options&& options, bool compares);
    autocast_region(precision value, const autocast::op_list* list, bool compares);

    static precision checked_off(precision value);
    static void check_precision(std::string_view name, precision value);

    static void check(const autocast_options& options);

    std::shared_ptr<const autocast_token::carried> carried_;
    detail::autocast_thread_state outer_;
    detail::autocast_state state_;
    bool clears_cache_ = false;
};

#if MP_CORE_BODIES
MP_CORE_FUNCTION autocast_token capture_autocast() {
    autocast_token token;
    const detail::autocast_thread_state& thread = detail::autocast_thread;
    if (thread.state == nullptr) return token;
    const auto carried = std::make_shared<autocast_token::carried>();
    carried->state = *thread.state;
    carried->state.outer = nullptr;
    for (const detail::autocast_state* it = thread.state->outer; it != nullptr; it = it->outer) {
        for (const autocast::region_rule& rule : it->rules) carried->state.rules.push_back(rule);
    }
    if (thread.layer != nullptr) carried->layer = *thread.layer;
    token.carried_ = carried;
    return token;
}

MP_CORE_FUNCTION bool autocast_token::is_current() const noexcept {
    const detail::autocast_thread_state& thread = detail::autocast_thread;
    if (carried_ == nullptr || thread.state == nullptr) return carried_ == nullptr && thread.state == nullptr;
    const detail::autocast_state& a = carried_->state;
    const detail::autocast_state& b = *thread.state;
    std::size_t matched = 0;  // rules
    for (const detail::autocast_state* it = &b; it != nullptr; it = it->outer) {
        if (it->rules.size() > a.rules.size() - matched) return false;
        for (const autocast::region_rule& rule : it->rules) {
            if (!(a.rules[matched++] == rule)) return false;
        }
    }
    const std::string_view layer = thread.layer == nullptr ? std::string_view() : *thread.layer;
    return matched == a.rules.size() && a.precisions == b.precisions && a.list == b.list &&
           a.only_ops == b.only_ops && a.only_layers == b.only_layers && a.cache == b.cache &&
           a.ledger == b.ledger && carried_->layer == layer;
}

MP_CORE_FUNCTION autocast_region::autocast_region(precision value, const autocast::op_list* list,
                                                  bool compares)
    : autocast_region(autocast_options{.cpu = value, .cuda = value, .list = list}, compares) {}

MP_CORE_FUNCTION autocast_region::autocast_region(const autocast_token& token) noexcept
    : carried_(token.carried_), outer_(detail::autocast_thread) {
    detail::autocast_thread.state = carried_ == nullptr ? &state_ : &carried_->state;
    if (carried_ != nullptr) detail::autocast_thread.layer = &carried_->layer;
}

MP_CORE_FUNCTION autocast_region::~autocast_region() {
    detail::autocast_thread = outer_;
    if (clears_cache_) state_.cache->clear();
}

MP_CORE_FUNCTION precision autocast_region::checked_off(precision value) {
    check_precision("value", value);
    return precision::off;
}

MP_CORE_FUNCTION void autocast_region::check_precision(std::string_view name, precision value) {
    if (value > precision::fp8) {
        detail::throw_argument("mp::autocast_region", name, static_cast<unsigned>(value),
                               "must be an enumerator of mp::precision");
    }
}

MP_CORE_FUNCTION autocast_region::autocast_region(autocast_options&& options, bool compares)
    : outer_(detail::autocast_thread) {
    check(options);
    const detail::autocast_state* around = outer_.state;
    if (around != nullptr) {
        state_.precisions = around->precisions;
        state_.list = around->list;
        state_.only_ops = around->only_ops;
        state_.only_layers = around->only_layers;
        state_.cache = around->cache;
        state_.keep_casts = around->keep_casts;
        state_.ledger = around->ledger;
        state_.outer = around;
    }
    if (options.cpu) state_.precisions[0] = *options.cpu;
    if (options.cuda) state_.precisions[1] = *options.cuda;
    if (options.list != nullptr) state_.list = options.list;
    if (!options.only_ops.empty()) state_.only_ops = std::move(options.only_ops);
    if (!options.only_layers.empty()) state_.only_layers = std::move(options.only_layers);
    if (options.ledger != nullptr) state_.ledger = options.ledger;
    state_.rules = std::move(options.rules);
    state_.keep_casts = state_.keep_casts && options.keep_casts;
    if (!state_.keep_casts) {
        state_.cache = nullptr;
    } else if (options.cache != nullptr) {
        clears_cache_ = !options.keep_cache && (around == nullptr || around->cache != options.cache);
        state_.cache = std::move(options.cache);
    } else if (state_.cache == nullptr && state_.active()) {
        state_.cache =
            std::make_shared<autocast::cast_cache>(autocast::cast_cache::default_max_bytes, compares);
        clears_cache_ = true;
    }
    detail::autocast_thread.state = &state_;
}

MP_CORE_FUNCTION void autocast_region::check(const autocast_options& options) {
    constexpr std::string_view function = "mp::autocast_region";
    if (options.cpu) check_precision("value", *options.cpu);
    if (options.cuda) {
        check_precision("cuda", *options.cuda);
        if (!supports(device_kind::cuda, *options.cuda, options.compute_capability)) {
            detail::throw_argument(function, "cuda", std::string(name_of(*options.cuda)),
                                   "must be a precision that CUDA devices of compute capability " +
                                       detail::error_text(options.compute_capability) + " have");
        }
    }
    for (const autocast::region_rule& rule : options.rules) {
        if (rule.op.empty()) {
            detail::throw_argument(function, "rules[].op", rule.op, "must be the name of an op or '*'");
        }
        if (rule.category > op_category::banned) {
            detail::throw_argument(function, "rules[].category", static_cast<unsigned>(rule.category),
                                   "must be an enumerator of mp::op_category");
        }
    }
    for (const std::string& name : options.only_ops) {
        if (name.empty()) detail::throw_argument(function, "only_ops[]", name, "must be the name of an op");
    }
    for (const std::string& name : options.only_layers) {
        if (name.empty()) {
            detail::throw_argument(function, "only_layers[]", name,
                                   "must be the name of a layer or a pattern");
        }
    }
}
#endif

/// Names the part of a model that the calling thread is in while the object lives, so that rules and
/// `only_layers` can choose it and the ledger can say where it was. Names of layers within layers are joined
/// by dots.
///
///     mp::autocast_layer encoder("encoder");
///     {
///         mp::autocast_layer attention("attention");  // "encoder.attention"
///     }
class [[nodiscard]] autocast_layer {
public:
    /// The name of a layer within those that the thread is in.
    [[nodiscard]] explicit autocast_layer(std::string_view name) : outer_(detail::autocast_thread.layer) {
        if (outer_ != nullptr && !outer_->empty()) path_.append(*outer_).append(".");
        path_.append(name);
        detail::autocast_thread.layer = &path_;
    }
    ~autocast_layer() { detail::autocast_thread.layer = outer_; }
    autocast_layer(const autocast_layer&) = delete;
    autocast_layer& operator=(const autocast_layer&) = delete;

private:
    const std::string* outer_;
    std::string path_;
};

/// The names of the layers that the calling thread is in, joined by dots; empty outside of all.
inline std::string_view autocast_layer_path() noexcept {
    const std::string* path = detail::autocast_thread.layer;
    return path == nullptr ? std::string_view() : std::string_view(*path);
}

}  // namespace mp
