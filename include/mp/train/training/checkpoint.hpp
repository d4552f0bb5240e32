// SPDX-License-Identifier: MIT
/// \file
/// Everything that a run is, in a file, so that it goes on to the same bits after it was killed; and weights
/// alone, for others.
#pragma once

#include <mp/arrays/io/tensor_file.hpp>
#include <mp/base/array_share.hpp>
#include <mp/base/contiguous.hpp>
#include <mp/base/device_range.hpp>
#include <mp/error.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/scaling/loss_scaler.hpp>
#include <mp/nn/scaling/state_text.hpp>
#include <mp/train/training/checkpoint_file.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Thing>
inline constexpr bool is_loss_scaler = false;
template <class Policy>
inline constexpr bool is_loss_scaler<loss_scaler<Policy>> = true;
template <class Thing>
inline constexpr bool is_matrix_view = false;
template <class Element>
inline constexpr bool is_matrix_view<matrix_view<Element>> = true;

/// How elements of the type are stored.
template <class Value>
inline constexpr stored_type stored_as{dtype_of<std::remove_const_t<Value>>(),
                                       format_beyond_dtype<std::remove_const_t<Value>>(), sizeof(Value)};

template <class Value>
array_shape shape_of(const device_range<Value>& it) {
    if (it.columns == 0) return array_shape::vector(it.values.size());
    return array_shape::matrix(it.values.size() / it.columns, it.columns);
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
            self().array(whole, array_shape{}, &thing, 1);
        } else if constexpr (std::is_enum_v<bare>) {
            using number = std::underlying_type_t<bare>;
            static_assert(std::is_lvalue_reference_v<Thing>, "a value that is loaded is a variable");
            self().array(whole, array_shape{}, reinterpret_cast<number*>(&thing), 1);
        } else if constexpr (is_matrix_view<bare>) {
            const bool dense =
                thing.order == storage_order::row_major && thing.leading_dimension == thing.columns;
            if (!dense) {
                throw_argument("mp::save_checkpoint", whole, "a matrix",
                               "must be row-major and without gaps");
            }
            const auto rows = static_cast<std::size_t>(thing.rows);
            const auto columns = static_cast<std::size_t>(thing.columns);
            self().array(whole, array_shape::matrix(rows, columns), thing.data, rows * columns);
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
            self().array(whole, array_shape::vector(span.size()), span.data(), span.size());
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
class state_writer : public state_visitor<state_writer>, public checkpoint_writer {
public:
    static constexpr bool loads = false;

    using checkpoint_writer::checkpoint_writer;

    template <class Function>
    void visit_object(const Function& visit) const {
        visit();
    }

    template <class Value>
    void array(const std::string& name, const array_shape& shape, const Value* data, std::size_t count) {
        add(name, stored_as<Value>, shape, data, count);
    }
    /// The elements that this rank has of an array.
    template <class Value>
    void share(const std::string& name, const array_share<Value>& it) {
        add_share(name, stored_as<Value>, it.values.data(), it.of, it.first, it.values.size(), it.shared);
    }
    /// An array of a device: as its copy on the host.
    template <class Value>
    void device_array(const std::string& name, const device_range<Value>& it) {
        const std::span<char> kept = keep(nullptr, it.values.size_bytes());
        it.copies->to_host(kept.data(), it.values.data(), kept.size());
        add(name, stored_as<Value>, shape_of(it), kept.data(), it.values.size());
    }
    void string(const std::string& name, const std::string& value) {
        add(name, stored_as<std::uint8_t>, array_shape::vector(value.size()),
            keep(value.data(), value.size()).data(), value.size());
    }
    template <class Make, class Read, class Check, class Set>
    void text(const std::string& name, Make make, Read /*read*/, Check /*check*/, Set /*set*/) {
        string(name, make());
    }
    template <class Value>
    void constant(const std::string& name, Value value) {
        add(name, stored_as<Value>, array_shape{}, keep(&value, sizeof value).data(), 1);
    }
};

/// Sees that everything is in the file as it should be, and keeps what is to be done for it, which load() does.
class state_reader : public state_visitor<state_reader>, public checkpoint_reader {
public:
    static constexpr bool loads = true;

    using checkpoint_reader::checkpoint_reader;

    /// Has load() call `function` when what was named before has its values. It must not fail: memory that it needs
    /// is allocated now.
    template <class Function>
    void when_loaded(Function function) {
        if (sets_strings()) return;
        actions_.push_back(std::make_unique<action_of<Function>>(std::move(function)));
    }

    template <class Value>
    void array(const std::string& name, const array_shape& shape, Value* data, std::size_t count) {
        static_assert(!std::is_const_v<Value>, "mp::load_checkpoint: what is loaded is not const");
        copy_later(data, require(name, stored_as<Value>, shape, count), 0, count);
    }
    /// Part of an array, whoever wrote it.
    template <class Value>
    void share(const std::string& name, const array_share<Value>& it) {
        const tensor_file::tensor& found = require(name, stored_as<Value>, array_shape::vector(it.of), it.of);
        const std::size_t count = it.values.size();
        if (it.first > it.of || count > it.of - it.first) {
            throw_count(file().path(), name, it.of, it.first + count);
        }
        copy_later(it.values.data(), found, it.first, count);
    }
    template <class Value>
    void device_array(const std::string& name, const device_range<Value>& it) {
        const tensor_file::tensor& found = require(name, stored_as<Value>, shape_of(it), it.values.size());
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
    template <class Make, class Read, class Check, class Set>
    void text(const std::string& name, Make /*make*/, Read read, Check check, Set set) {
        texts_.push_back(
            std::make_unique<text_of<decltype(read({})), Check, Set>>(read(text_at(name)), check, set));
    }
    template <class Value>
    void constant(const std::string& name, Value value) {
        require_equal(name, stored_as<Value>, &value);
    }

    /// An array of the object that is visited: for checks.
    template <class Value>
    [[nodiscard]] std::vector<Value> stored(std::string_view name, std::size_t count) const {
        const std::string path = path_of(name);
        static_cast<void>(file().require<Value>(path, count));
        std::vector<Value> values(count);
        file().read(path, std::span<Value>(values));
        return values;
    }

    /// Loads what `everything` has visited, without allocating. All scalers compare their states with those of other ranks
    /// before anything changes.
    template <class Everything>
    void load(Everything& everything) {
        for (const auto& it : texts_) it->check();
        if (begin_strings()) everything(*this);
        for (const auto& it : texts_) it->run();
        for (const auto& it : actions_) it->run();
    }

    /// Visits an object, and notes whether it names strings.
    template <class Function>
    void visit_object(const Function& visit) {
        const object_start start = begin_object();
        visit();
        end_object(start);
    }
    /// Visits an object again if it names strings.
    template <class Function>
    void visit_noted(const Function& visit) {
        const visited_object it = next_object();
        if (it.has_strings) visit();
        leave_object(it);
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
    void copy_later(Value* to, const tensor_file::tensor& found, std::size_t first, std::size_t count) {
        when_loaded([to, from = found.bytes.data() + first * sizeof(Value), count] {
            copy_little_endian(reinterpret_cast<std::byte*>(to), from, sizeof(Value), count);
        });
    }

    std::vector<std::unique_ptr<action>> texts_;
    std::vector<std::unique_ptr<action>> actions_;
};

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
