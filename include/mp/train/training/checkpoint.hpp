// SPDX-License-Identifier: MIT
/// \file
/// Everything that a run is, in a file, so that it goes on to the same bits after it was killed; and weights
/// alone, for others.
#pragma once

#include <mp/arrays/convert/convert.hpp>
#include <mp/arrays/io/checksum.hpp>
#include <mp/arrays/io/tensor_file.hpp>
#include <mp/base/array_share.hpp>
#include <mp/base/contiguous.hpp>
#include <mp/base/device_range.hpp>
#include <mp/error.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/scaling/loss_scaler.hpp>
#include <mp/nn/scaling/state_text.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

inline constexpr std::string_view checkpoint_version_key = "mp.checkpoint";
/// Version of a checkpoint, one digit. In version 1, means of AdamW and LAMB in reduced formats were not divided
/// by their bias; up to version 2, averages of weights had no remainders.
inline constexpr std::string_view checkpoint_version = "3";
inline constexpr std::string_view checkpoint_checksum_key = "mp.checksum";

template <class Thing>
inline constexpr bool is_loss_scaler = false;
template <class Policy>
inline constexpr bool is_loss_scaler<loss_scaler<Policy>> = true;
template <class Thing>
inline constexpr bool is_matrix_view = false;
template <class Element>
inline constexpr bool is_matrix_view<matrix_view<Element>> = true;

template <class Value>
std::vector<std::size_t> shape_of(const device_range<Value>& it) {
    if (it.columns == 0) return {it.values.size()};
    return {it.values.size() / it.columns, it.columns};
}

// Concepts of their own, for nvcc finds no member of this class in a requires-expression inside it.
template <class Thing, class Visitor>
concept visits_state = requires(Thing& thing, Visitor& visitor) { thing.visit_state(visitor); };
template <class Thing, class Visitor>
concept visits_members =
    requires(Thing& thing, Visitor& visitor) { std::remove_cvref_t<Thing>::visit(thing, visitor); };
/// The loss scaler of a GPU.
template <class Thing>
concept saves_policy = requires(Thing& thing) { thing.restore(thing.saved()); };

/// Takes what is to be saved apart into arrays, by the name of the caller and of its members. Self has
/// array(name, shape, data, count), share(name, values), string(name, value), text(name, make, read, check, set)
/// and constant(name, value).
template <class Self>
class state_visitor {
public:
    /// A number, a contiguous range of numbers, a dense matrix, a string, a loss scaler, or an object with a
    /// member function template visit_state(visitor), which calls the visitor with its own members.
    template <class Thing>
    void operator()(std::string_view name, Thing&& thing) {
        using bare = std::remove_cvref_t<Thing>;
        if constexpr (Self::loads) {
            if (self().sets_strings()) {
                set_strings_of(thing);
                return;
            }
        }
        const std::string whole = prefix_ + std::string(name);
        if constexpr (tensor_element<bare>) {
            static_assert(std::is_lvalue_reference_v<Thing>, "a number that is loaded is a variable");
            self().array(whole, {}, &thing, 1);
        } else if constexpr (std::is_enum_v<bare>) {
            using number = std::underlying_type_t<bare>;
            static_assert(std::is_lvalue_reference_v<Thing>, "a value that is loaded is a variable");
            self().array(whole, {}, reinterpret_cast<number*>(&thing), 1);
        } else if constexpr (is_matrix_view<bare>) {
            const bool dense =
                thing.order == storage_order::row_major && thing.leading_dimension == thing.columns;
            if (!dense) {
                throw_argument("mp::save_checkpoint", whole, "a matrix",
                               "must be row-major and without gaps");
            }
            const auto rows = static_cast<std::size_t>(thing.rows);
            const auto columns = static_cast<std::size_t>(thing.columns);
            self().array(whole, {rows, columns}, thing.data, rows * columns);
        } else if constexpr (is_loss_scaler<bare>) {
            self().text(
                whole, [&] { return save_state(thing.state()); },
                [](std::string_view text) {
                    return load_state<std::remove_cvref_t<decltype(thing.state().policy)>>(text);
                },
                [&thing](const auto& saved) { thing.require_restorable(saved); },
                [&thing](const auto& saved) { thing.restore(saved); });
        } else if constexpr (saves_policy<Thing>) {
            self().text(
                whole, [&] { return save_state(thing.saved()); },
                [](std::string_view text) {
                    return load_state<std::remove_cvref_t<decltype(thing.policy())>>(text);
                },
                [](const auto&) {}, [&thing](const auto& saved) { thing.restore(saved); });
        } else if constexpr (std::same_as<bare, std::string>) {
            self().string(whole, thing);
        } else if constexpr (is_array_share<bare>) {
            self().share(whole, thing);
        } else if constexpr (is_device_range<bare>) {
            self().device_array(whole, thing);
        } else if constexpr (visits_state<Thing, Self>) {
            visit_within(whole, [&] { thing.visit_state(self()); });
        } else if constexpr (visits_members<Thing, Self>) {
            visit_within(whole, [&] { bare::visit(thing, self()); });
        } else {
            static_assert(
                contiguous<bare>,
                "mp::save_checkpoint: numbers, contiguous ranges and matrix_view of them, strings, loss "
                "scalers, and objects with visit_state(visitor) can be saved");
            const auto span = as_span(thing);
            static_assert(tensor_element<std::remove_const_t<contiguous_element<bare>>>,
                          "mp::save_checkpoint: the elements of a range are numbers");
            self().array(whole, {span.size()}, span.data(), span.size());
        }
    }

    /// A value that has to be the same when it is loaded: what the bits of the run depend on and the program
    /// sets.
    template <tensor_element Value>
    void expect(std::string_view name, Value value) {
        if constexpr (Self::loads) {
            if (self().sets_strings()) return;
        }
        self().constant(prefix_ + std::string(name), value);
    }

protected:
    [[nodiscard]] std::string path_of(std::string_view name) const { return prefix_ + std::string(name); }

private:
    Self& self() { return static_cast<Self&>(*this); }
    template <class Function>
    void visit_within(const std::string& whole, const Function& visit) {
        const std::string outer = std::exchange(prefix_, whole + ".");
        self().visit_object(visit);
        prefix_ = outer;
    }
    /// The same order of things as in operator().
    template <class Thing>
    void set_strings_of(Thing& thing) {
        using bare = std::remove_cvref_t<Thing>;
        if constexpr (std::same_as<bare, std::string>) {
            self().set_string(thing);
        } else if constexpr (!is_loss_scaler<bare> && !saves_policy<Thing&> && visits_state<Thing&, Self>) {
            self().visit_noted([&] { thing.visit_state(self()); });
        } else if constexpr (!is_loss_scaler<bare> && !saves_policy<Thing&> && visits_members<Thing&, Self>) {
            self().visit_noted([&] { bare::visit(thing, self()); });
        }
    }
    std::string prefix_;
};

/// Collects what is to be written.
class state_writer : public state_visitor<state_writer> {
public:
    static constexpr bool loads = false;

    /// \param shares  whether arrays may be shared among ranks
    /// \param run     whether a run is saved, to be continued, and not weights for other programs
    explicit state_writer(bool shares = false, bool run = true) : shares_(shares), run_(run) {}

    [[nodiscard]] bool saves_run() const noexcept { return run_; }
    template <class Function>
    void visit_object(const Function& visit) const {
        visit();
    }

    template <class Value>
    void array(const std::string& name, std::vector<std::size_t> shape, const Value* data,
               std::size_t count) {
        using value = std::remove_const_t<Value>;
        if (!names_.insert(name).second || name == "__metadata__") {
            throw_argument("mp::save_checkpoint", "name", name,
                           "must be another one: there is one of this name");
        }
        entries_.push_back({name, dtype_of<value>(), std::move(shape), data, sizeof(value), count});
        if constexpr (!format_beyond_dtype<value>().empty()) {
            metadata_.emplace_back("format." + name, std::string(format_beyond_dtype<value>()));
        }
    }
    /// The elements that this rank has of an array.
    template <class Value>
    void share(const std::string& name, const array_share<Value>& it) {
        array(name, {it.of}, it.values.data(), it.of);
        entries_.back().first = it.first;
        entries_.back().held = it.values.size();
        entries_.back().shared = it.shared;
        if (!shares_ && it.values.size() != it.of) {
            throw_joined<state_error>({"mp::save_checkpoint: ", quoted_excerpt(name),
                                       " is shared among ranks; save it by mp::save_checkpoint(ranks, path, "
                                       "everything)"});
        }
    }
    /// An array of a device: as its copy on the host.
    template <class Value>
    void device_array(const std::string& name, const device_range<Value>& it) {
        std::string& kept = texts_.emplace_back(it.values.size_bytes(), '\0');
        it.copies->to_host(kept.data(), it.values.data(), kept.size());
        array(name, shape_of(it), reinterpret_cast<const Value*>(kept.data()), it.values.size());
    }
    void string(const std::string& name, const std::string& value) {
        const std::string& kept = texts_.emplace_back(value);
        array(name, {kept.size()}, reinterpret_cast<const std::uint8_t*>(kept.data()), kept.size());
    }
    template <class Make, class Read, class Check, class Set>
    void text(const std::string& name, Make make, Read /*read*/, Check /*check*/, Set /*set*/) {
        string(name, make());
    }
    template <class Value>
    void constant(const std::string& name, Value value) {
        std::string& kept = texts_.emplace_back(sizeof(Value), '\0');
        std::memcpy(kept.data(), &value, sizeof value);
        array(name, {}, reinterpret_cast<const Value*>(kept.data()), 1);
    }

    void metadata(std::string key, std::string value) {
        metadata_.emplace_back(std::move(key), std::move(value));
    }

    /// The arrays in the order of the file.
    [[nodiscard]] std::span<const file_entry> entries() const noexcept { return entries_; }

    /// Ends the list: the header of the file, with zeros for the checksum if there is to be one.
    [[nodiscard]] std::string finish(bool with_checksum) {
        // Larger elements first, so that all are aligned in a file that is mapped.
        std::stable_sort(entries_.begin(), entries_.end(), [](const file_entry& a, const file_entry& b) {
            return a.element_size > b.element_size;
        });
        if (with_checksum) {
            metadata_.emplace(metadata_.begin(), checkpoint_version_key, checkpoint_version);
            metadata_.emplace(metadata_.begin(), checkpoint_checksum_key, no_checksum);
        }
        return tensor_header(entries_, metadata_);
    }
    /// Puts the checksum into a header.
    static void set_checksum(std::string& header, std::uint64_t checksum) {
        header.replace(header.find(no_checksum), no_checksum.size(), checksum_text(checksum));
    }

    /// Writes the file, with a checksum if that is wanted.
    void write(const std::string& path, bool with_checksum) {
        std::string header = finish(with_checksum);
        if (with_checksum) {
            crc64_stream checksum;
            checksum.add(header);
            for (const file_entry& it : entries_) {
                for_file_bytes(it, [&](std::string_view bytes) { checksum.add(bytes); });
            }
            set_checksum(header, checksum.value());
        }
        file_replacement file(path);
        file.write(header);
        for (const file_entry& it : entries_) {
            for_file_bytes(it, [&](std::string_view bytes) { file.write(bytes); });
        }
        file.commit();
    }

private:
    static constexpr std::string_view no_checksum = "0000000000000000";

    bool shares_;
    bool run_;
    std::vector<file_entry> entries_;
    std::vector<std::pair<std::string, std::string>> metadata_;
    std::set<std::string, std::less<>> names_;
    std::deque<std::string> texts_;  // whose elements stay in place
};

/// Sees that everything is in the file as it should be, and keeps what is to be done for it, which load() does.
class state_reader : public state_visitor<state_reader> {
public:
    static constexpr bool loads = true;

    explicit state_reader(const tensor_file& file) : file_(file) {}
    /// Returns the version of the file.
    [[nodiscard]] int version() const {
        const auto found = file_.metadata().find(checkpoint_version_key);
        return (found != file_.metadata().end() ? found->second : checkpoint_version)[0] - '0';
    }
    /// Has load() call `function` when what was named before has its values. It must not fail: memory that it needs
    /// is allocated now.
    template <class Function>
    void when_loaded(Function function) {
        if (sets_strings_) return;
        actions_.push_back(std::make_unique<action_of<Function>>(std::move(function)));
    }

    template <class Value>
    void array(const std::string& name, const std::vector<std::size_t>& shape, Value* data,
               std::size_t count) {
        static_assert(!std::is_const_v<Value>, "mp::load_checkpoint: what is loaded is not const");
        copy_later(data, require<Value>(name, shape, count), 0, count);
    }
    /// Part of an array, whoever wrote it.
    template <class Value>
    void share(const std::string& name, const array_share<Value>& it) {
        const tensor_file::tensor& found = require<Value>(name, {it.of}, it.of);
        const std::size_t count = it.values.size();
        if (it.first > it.of || count > it.of - it.first) {
            throw_count(file_.path(), name, it.of, it.first + count);
        }
        copy_later(it.values.data(), found, it.first, count);
    }
    template <class Value>
    void device_array(const std::string& name, const device_range<Value>& it) {
        const tensor_file::tensor& found = require<Value>(name, shape_of(it), it.values.size());
        if constexpr (std::endian::native == std::endian::little) {
            when_loaded([it, from = found.bytes] {
                it.copies->to_device(it.values.data(), from.data(), from.size());
            });
        } else {
            std::vector<std::byte> values(found.bytes.size());
            copy_little_endian(values.data(), found.bytes.data(), sizeof(Value), it.values.size());
            when_loaded([it, values = std::move(values)] {
                it.copies->to_device(it.values.data(), values.data(), values.size());
            });
        }
    }
    /// Keeps a string for set_string(), since it may be a variable of the function that visits.
    void string(const std::string& name, const std::string& /*value*/) {
        strings_.emplace_back(text_at(name));
    }
    template <class Make, class Read, class Check, class Set>
    void text(const std::string& name, Make /*make*/, Read read, Check check, Set set) {
        texts_.push_back(
            std::make_unique<text_of<decltype(read({})), Check, Set>>(read(text_at(name)), check, set));
    }
    template <class Value>
    void constant(const std::string& name, Value value) {
        Value found{};
        static_cast<void>(file_.require<Value>(name, 1));
        file_.read(name, std::span<Value>(&found, 1));
        if (std::memcmp(&found, &value, sizeof value) != 0) {
            throw_file(file_.path(), quoted_excerpt(name) + " was another one when the run was saved");
        }
        used_.insert(name);
    }

    /// An array of the object that is visited: for checks.
    template <class Value>
    [[nodiscard]] std::vector<Value> stored(std::string_view name, std::size_t count) const {
        const std::string path = path_of(name);
        static_cast<void>(file_.require<Value>(path, count));
        std::vector<Value> values(count);
        file_.read(path, std::span<Value>(values));
        return values;
    }

    /// Throws if there is something in the file that was not asked for: the run would not be the same without
    /// it.
    void require_all() const {
        for (const auto& [name, tensor] : file_.tensors()) {
            if (!used_.contains(name)) {
                throw_file(file_.path(),
                           "there is " + quoted_excerpt(name) + ", which the program does not load");
            }
        }
    }

    /// Loads what `everything` has visited, without allocating. All scalers compare their states with those of other ranks
    /// before anything changes.
    template <class Everything>
    void load(Everything& everything) {
        for (const auto& it : texts_) it->check();
        if (!strings_.empty()) {
            sets_strings_ = true;
            everything(*this);
        }
        for (const auto& it : texts_) it->run();
        for (const auto& it : actions_) it->run();
    }

    /// Whether strings are set now, and nothing else is to be visited.
    [[nodiscard]] bool sets_strings() const noexcept { return sets_strings_; }
    /// Sets the next one of the strings. If there are more than before, they stay as they are.
    void set_string(std::string& value) noexcept {
        if (next_string_ < strings_.size()) value.swap(strings_[next_string_++]);
    }
    /// Visits an object, and notes whether it names strings.
    template <class Function>
    void visit_object(const Function& visit) {
        const std::size_t place = visited_.size();
        const std::size_t before = strings_.size();
        visited_.push_back({});
        visit();
        visited_[place] = {visited_.size(), strings_.size() != before};
    }
    /// Visits an object again if it names strings.
    template <class Function>
    void visit_noted(const Function& visit) {
        if (next_visited_ >= visited_.size()) return;
        const visited_object it = visited_[next_visited_];
        if (it.has_strings) {
            ++next_visited_;
            visit();
        }
        next_visited_ = it.end;
    }

private:
    class action {
    public:
        virtual ~action() = default;
        virtual void check() {}
        virtual void run() = 0;
    };
    template <class Value, class Check, class Set>
    class text_of final : public action {
    public:
        text_of(Value value, Check check, Set set)
            : value_(std::move(value)), check_(std::move(check)), set_(std::move(set)) {}
        void check() override { check_(value_); }
        void run() override { set_(value_); }

    private:
        Value value_;
        Check check_;
        Set set_;
    };
    template <class Function>
    class action_of final : public action {
    public:
        explicit action_of(Function function) : function_(std::move(function)) {}
        void run() override { function_(); }

    private:
        Function function_;
    };

    template <class Value>
    const tensor_file::tensor& require(const std::string& name, const std::vector<std::size_t>& shape,
                                       std::size_t count) {
        const tensor_file::tensor& found = file_.require<Value>(name, count);
        // A matrix is as good as its elements in a row.
        if (shape.size() == 2 && found.shape.size() == 2 && shape != found.shape) {
            throw_file(file_.path(), quoted_excerpt(name) + " is a matrix of another shape");
        }
        used_.insert(name);
        return found;
    }
    std::string_view text_at(const std::string& name) {
        const tensor_file::tensor& found = file_.at(name);
        if (found.dtype != dtype_of<std::uint8_t>())
            throw_file(file_.path(), quoted_excerpt(name) + " is no text");
        used_.insert(name);
        return {reinterpret_cast<const char*>(found.bytes.data()), found.bytes.size()};
    }
    template <class Value>
    void copy_later(Value* to, const tensor_file::tensor& found, std::size_t first, std::size_t count) {
        when_loaded([to, from = found.bytes.data() + first * sizeof(Value), count] {
            copy_little_endian(reinterpret_cast<std::byte*>(to), from, sizeof(Value), count);
        });
    }

    const tensor_file& file_;
    std::set<std::string, std::less<>> used_;
    std::vector<std::unique_ptr<action>> texts_;
    std::vector<std::unique_ptr<action>> actions_;
    /// An object that was visited: the place among them of the first one that is not within it.
    struct visited_object {
        std::size_t end = 0;
        bool has_strings = false;
    };
    std::vector<std::string> strings_;
    std::vector<visited_object> visited_;
    std::size_t next_string_ = 0;
    std::size_t next_visited_ = 0;
    bool sets_strings_ = false;
};

/// Throws unless the file is a checkpoint of this version, as it was written.
inline void require_checkpoint(const tensor_file& file, std::span<const std::byte> all) {
    const auto version = file.metadata().find(checkpoint_version_key);
    const auto found = file.metadata().find(checkpoint_checksum_key);
    if (version == file.metadata().end() || found == file.metadata().end()) {
        throw_file(file.path(), "is no checkpoint");
    }
    if (version->second.size() != 1 || version->second < "1" || version->second > checkpoint_version) {
        throw_file(file.path(), "is a checkpoint of version " + quoted_excerpt(version->second) +
                                    ", and this library reads versions up to " +
                                    std::string(checkpoint_version));
    }
    const std::size_t length = all.size() - file.data().size();
    std::string header(reinterpret_cast<const char*>(all.data()), length);
    const std::string in_header = "\"" + std::string(checkpoint_checksum_key) + "\":\"";
    const std::size_t at = header.find(in_header);
    const bool whole = at != std::string::npos && at + in_header.size() + 16 <= header.size();
    if (whole) header.replace(at + in_header.size(), 16, std::string(16, '0'));
    crc64_stream checksum;
    checksum.add(header);
    checksum.add({reinterpret_cast<const char*>(file.data().data()), file.data().size()});
    if (!whole || checksum_text(checksum.value()) != found->second) {
        throw_file(file.path(), "the checksum is not that of the content: the file is damaged");
    }
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Saves everything that a run needs to go on. `everything` names it, once for saving and loading:
///
///     const auto everything = [&](auto& visit) {
///         visit("optimizer", optimizer);   // weights, masters, moments, counts, rates
///         visit("scaler", scaler);
///         visit("average", average);
///         visit("history", amax_history);
///         visit("step", step);             // schedules are functions of it
///         visit("random", random_offset);  // of dropout and the reader, for example
///     };
///     if (resume) mp::load_checkpoint("run.ckpt", everything);
///     ...
///     mp::save_checkpoint("run.ckpt", everything);
///
/// The file is in the safetensors format, with a checksum over all of it. It is written beside and takes the
/// name when it is on the disk: a program that is killed at any time leaves the old one or the new one. Save
/// between iterations, and not while an average of the weights is applied.
///
/// \throws file_error      the file cannot be written; the old one is as before
/// \throws argument_error  a name is there twice
/// \throws state_error     an optimizer's gradients are unscaled: the iteration is not over; or weights are temporary:
///                         an average is applied
template <class Everything>
void save_checkpoint(const std::string& path, Everything&& everything) {
    detail::state_writer writer;
    everything(writer);
    writer.write(path, true);
}

/// Loads from a file that is open, or in memory, as the overload for a path.
template <class Everything>
void load_checkpoint(const tensor_file& file, Everything&& everything) {
    detail::require_checkpoint(file, file.all());
    detail::state_reader reader(file);
    everything(reader);
    reader.require_all();
    reader.load(everything);
}
/// Loads what save_checkpoint has saved, into objects of the same types and sizes. Everything is checked
/// before anything is changed; what `everything` names is set when it has returned, so it has to be there until this
/// returns, as for save_checkpoint. If there are strings, `everything` is called a second time, which sets them and
/// nothing else: so it may have a string of its own and make something else of it, such as an engine of random
/// numbers. A class whose member function template visit_state(visitor) names its members may call
/// `visitor.when_loaded(function)` where Visitor::loads: `function()` is called when they are set.
///
/// \param access  whether the file is mapped, or read into memory
///
/// \throws file_error      there is no such file; it is damaged; something is missing, of another type or
///                         size, or in the file and not asked for; an option that the bits depend on was
///                         another one. Nothing has changed, as after any other exception, such as std::bad_alloc
/// \throws argument_error  the state of a loss scaler is not one
/// \throws rank_error      the scaler's ranks load other states, see loss_scaler::set_reducer
template <class Everything>
void load_checkpoint(const std::string& path, Everything&& everything,
                     file_access access = file_access::map) {
    load_checkpoint(tensor_file(path, access), everything);
}

/// Writes arrays, usually weights, as a safetensors file for other programs: numbers, ranges, and dense
/// matrices with their shapes, named as for save_checkpoint.
///
///     mp::save_safetensors("model.safetensors", [&](auto& visit) {
///         visit("fc.weight", mp::row_major(w.data(), out, in));
///         visit("fc.bias", bias);
///     });
///
/// \throws file_error      the file cannot be written; an old one is as before
/// \throws argument_error  a name is there twice
template <class Everything>
void save_safetensors(const std::string& path, Everything&& everything) {
    detail::state_writer writer(false, false);
    everything(writer);
    writer.write(path, false);
}

}}  // namespace mp
