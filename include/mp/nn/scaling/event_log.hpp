// SPDX-License-Identifier: MIT
/// \file
/// The last events of a loss scaler and counts of all of them, and events as readable lines and as a table.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/scale_event.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if MP_CORE_BODIES
#include <mp/arrays/io/csv.hpp>
#include <mp/base/bits.hpp>
#include <mp/base/number_text.hpp>

#include <array>
#endif

namespace mp { inline namespace MP_CORE_NAMESPACE {

/// One line about an iteration, without an end of line, such as
/// "iteration 1832: 65536 -> 32768 backed off, 3 infinities, first in 'layer4.weight'[17]".
/// Control characters in a name are written as `\xNN`.
[[nodiscard]] MP_CORE_FUNCTION std::string to_string(const scale_event& event);

}}  // namespace mp

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Returns events as lines, those of `older` first; after `dropped` that are not kept.
[[nodiscard]] MP_CORE_FUNCTION std::string event_lines(std::uint64_t dropped,
                                                       std::span<const scale_event> older,
                                                       std::span<const scale_event> newer);

}}  // namespace mp::detail

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// By bits, so that NaN is the same scale as NaN.
constexpr bool same_scale(float a, float b) noexcept {
    return bit_cast<std::uint32_t>(a) == bit_cast<std::uint32_t>(b);
}

/// Whether an iteration was clean and nothing became of it, so that a line for many of them says all.
constexpr bool is_quiet(const scale_event& event) noexcept {
    return event.change.kind == scale_change_kind::unchanged && !event.seen.non_finite() &&
           event.skipped == 0 && same_scale(event.change.before, event.change.after);
}

inline std::string flushed_words(std::uint64_t flushed, std::uint64_t values) {
    return flushed == 0 ? std::string()
                        : ", " + error_text(flushed) + " of " + error_text(values) + " values flushed";
}

/// The line of several quiet iterations in a row.
class quiet_run {
public:
    [[nodiscard]] bool continues_with(const scale_event& event) const noexcept {
        return count_ != 0 && event.iteration == last_ + 1 && same_scale(event.change.before, scale_);
    }
    void add(const scale_event& event) noexcept {
        if (count_ == 0) {
            first_ = event.iteration;
            scale_ = event.change.before;
        }
        last_ = event.iteration;
        flushed_ += event.seen.flushed;
        values_ += event.seen.values;
        ++count_;
    }
    /// Appends the line, if there is anything to say, and begins anew.
    void end(std::string& to) {
        if (count_ == 1) to += "iteration " + error_text(first_);
        if (count_ > 1) to += "iterations " + error_text(first_) + " to " + error_text(last_);
        if (count_ != 0)
            to += ": " + error_text(scale_) + " unchanged" + flushed_words(flushed_, values_) + "\n";
        *this = {};
    }

private:
    std::uint64_t count_ = 0;
    std::uint64_t first_ = 0;
    std::uint64_t last_ = 0;
    std::uint64_t flushed_ = 0;
    std::uint64_t values_ = 0;
    float scale_ = 0.0F;
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION std::string to_string(const scale_event& event) {
    std::string line = "iteration " + detail::error_text(event.iteration) + ": ";
    line += detail::error_text(event.change.before);
    if (!detail::same_scale(event.change.before, event.change.after)) {
        line += " -> " + detail::error_text(event.change.after);
    }
    line += " " + detail::scale_change_words(event.change.kind);
    if (event.seen.infinities != 0) {
        line += ", " + detail::counted(event.seen.infinities, "infinity", "infinities");
    }
    if (event.seen.nans != 0) line += ", " + detail::counted(event.seen.nans, "NaN", "NaNs");
    // That a step with infinities or NaNs was skipped goes without saying; that only some were, or none, not.
    if (event.applied != 0 && (event.skipped != 0 || event.seen.non_finite())) {
        line += ", " + detail::counted(event.applied, "optimizer", "optimizers") + " stepped";
        if (event.skipped != 0) line += " and " + detail::error_text(event.skipped) + " skipped";
    }
    if (event.applied == 0 && event.skipped != 0 && !event.seen.non_finite()) {
        line += ", " + detail::counted(event.skipped, "optimizer", "optimizers") +
                " skipped: gradients too large for its states or weights";
    }
    line += detail::flushed_words(event.seen.flushed, event.seen.values);
    if (event.parameter != ~0ULL) {
        line += ", first in ";
        line += event.parameter_name.empty() ? "parameter " + detail::error_text(event.parameter)
                                             : "'" + detail::printable(event.parameter_name.view()) + "'";
        if (event.element != ~0ULL) line += "[" + detail::error_text(event.element) + "]";
    }
    return line;
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION std::string event_lines(std::uint64_t dropped, std::span<const scale_event> older,
                                         std::span<const scale_event> newer) {
    std::string text;
    if (dropped != 0) {
        text += "(" + counted(dropped, "earlier iteration is", "earlier iterations are") + " not kept)\n";
    }
    quiet_run run;
    for (const std::span<const scale_event> part : {older, newer}) {
        for (const scale_event& event : part) {
            const bool quiet = is_quiet(event);
            if (!quiet || !run.continues_with(event)) run.end(text);
            if (quiet) {
                run.add(event);
            } else {
                text += to_string(event) + "\n";
            }
        }
    }
    run.end(text);
    return text;
}

}}  // namespace mp::detail
#endif

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Returns the table of events, those of `older` first.
[[nodiscard]] MP_CORE_FUNCTION std::string event_csv(std::span<const scale_event> older,
                                                     std::span<const scale_event> newer);

/// Reads a table. Throws argument_error in the name of `function`.
[[nodiscard]] MP_CORE_FUNCTION std::vector<scale_event> read_event_csv(std::string_view function,
                                                                       std::string_view text);

}}  // namespace mp::detail

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

inline constexpr std::array<std::string_view, 18> event_columns{
    "iteration", "scale_before", "scale_after", "kind",       "infinities", "nans",
    "values",    "zeros",        "flushed",     "subnormals", "overflows",  "large",
    "largest",   "applied",      "skipped",     "parameter",  "element",    "parameter_name"};

/// Calls visitor(column, member) for the members that are whole numbers.
template <class Event, class Visitor>
void visit_event_counts(Event& event, Visitor&& visitor) {
    visitor(0, event.iteration);
    visitor(4, event.seen.infinities);
    visitor(5, event.seen.nans);
    visitor(6, event.seen.values);
    visitor(7, event.seen.zeros);
    visitor(8, event.seen.flushed);
    visitor(9, event.seen.subnormals);
    visitor(10, event.seen.overflows);
    visitor(11, event.seen.large);
    visitor(13, event.applied);
    visitor(14, event.skipped);
    visitor(15, event.parameter);
    visitor(16, event.element);
}

inline std::string event_csv_header() {
    std::string line;
    for (const std::string_view name : event_columns) line.append(line.empty() ? "" : ",").append(name);
    return line + "\n";
}

inline void append_event_csv(std::string& to, const scale_event& event) {
    std::array<std::string, event_columns.size()> cells;
    visit_event_counts(event, [&](std::size_t column, const auto& member) {
        const bool may_be_absent = column == 15 || column == 16;
        if (!may_be_absent || member != ~0ULL) append_csv_number(cells[column], member);
    });
    append_csv_number(cells[1], event.change.before);
    append_csv_number(cells[2], event.change.after);
    cells[3] = to_string(event.change.kind);
    append_csv_number(cells[12], event.seen.largest);
    append_csv_text(cells[17], event.parameter_name.view());
    for (std::size_t i = 0; i < cells.size(); ++i) to.append(i == 0 ? "" : ",").append(cells[i]);
    to += '\n';
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION std::string event_csv(std::span<const scale_event> older,
                                       std::span<const scale_event> newer) {
    std::string text = event_csv_header();
    for (const scale_event& event : older) append_event_csv(text, event);
    for (const scale_event& event : newer) append_event_csv(text, event);
    return text;
}

MP_CORE_FUNCTION std::vector<scale_event> read_event_csv(std::string_view function, std::string_view text) {
    csv_reader reader(function, text);
    reader.read_header();
    for (std::size_t i = 0; i < event_columns.size(); ++i) {
        if (i >= reader.names().size() || reader.names()[i] != event_columns[i] ||
            reader.names().size() > event_columns.size()) {
            throw_argument(
                function, "line 1", printable(text.substr(0, text.find('\n'))),
                "must name the columns of an event log: " + event_csv_header().substr(0, 40) + "...");
        }
    }
    std::vector<scale_event> events;
    while (reader.next()) {
        scale_event event;
        visit_event_counts(event, [&]<class Member>(std::size_t column, Member& member) {
            const bool may_be_absent = column == 15 || column == 16;
            if (may_be_absent && reader.cell(column).empty()) return;
            member = reader.number<Member>(column, sizeof(Member) == 8
                                                       ? "must be a whole number from 0 to 2^64 - 1"
                                                       : "must be a whole number from 0 to 2^32 - 1");
        });
        event.change.before = reader.number<float>(1, "must be a number within the range of float");
        event.change.after = reader.number<float>(2, "must be a number within the range of float");
        const auto kind = scale_change_kind_named(reader.cell(3));
        if (!kind) reader.refuse(3, "must be the name of a kind of change, such as backed_off");
        event.change.kind = *kind;
        event.seen.largest = reader.number<double>(12, "must be a number within the range of double");
        if (reader.cell(17).size() > short_name::capacity) {
            reader.refuse(17, "must have at most " + error_text(short_name::capacity) + " bytes");
        }
        event.parameter_name = short_name(reader.cell(17));
        events.push_back(event);
    }
    return events;
}

}}  // namespace mp::detail
#endif

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Whether a policy decided to raise the scale, as far as a ceiling let it. A lagged policy's decision shows
/// in the scale one iteration later, so the kind counts.
constexpr bool is_growth(const scale_change& change) noexcept {
    return change.kind == scale_change_kind::grown ||
           (change.kind == scale_change_kind::at_ceiling && change.after > change.before);
}

/// Whether a policy decided to lower the scale, as far as a floor let it.
constexpr bool is_backoff(const scale_change& change) noexcept {
    return change.kind == scale_change_kind::backed_off || change.kind == scale_change_kind::vanished ||
           (change.kind == scale_change_kind::at_floor && change.after < change.before);
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Counts over any number of iterations.
struct scale_event_totals {
    std::uint64_t iterations = 0;       ///< events
    std::uint64_t skips = 0;            ///< iterations in which at least one optimizer skipped its step
    std::uint64_t with_infinities = 0;  ///< iterations with infinities, with or without NaNs
    std::uint64_t with_nans_only = 0;   ///< iterations with NaNs and no infinity
    std::uint64_t growths = 0;          ///< the policy raised the scale, a rise up to the ceiling included
    std::uint64_t backoffs = 0;         ///< the policy lowered the scale, a fall down to the floor included
    std::uint64_t absorbed = 0;         ///< overflows that hysteresis let pass
    std::uint64_t at_floor = 0;         ///< the floor held the scale
    std::uint64_t at_ceiling = 0;       ///< the ceiling held the scale
    std::uint64_t replaced = 0;         ///< the caller set the scale
    std::uint64_t flushed = 0;          ///< measured values that became zero
    std::uint64_t nonzero = 0;          ///< measured values that were not zero before

    constexpr scale_event_totals& operator+=(const scale_event& event) noexcept {
        const auto add = [](std::uint64_t& count, bool when) { count += when ? 1U : 0U; };
        ++iterations;
        add(skips, event.skipped != 0);
        add(with_infinities, event.seen.infinities != 0);
        add(with_nans_only, event.seen.infinities == 0 && event.seen.nans != 0);
        add(growths, detail::is_growth(event.change));
        add(backoffs, detail::is_backoff(event.change));
        add(absorbed, event.change.kind == scale_change_kind::absorbed);
        add(at_floor, event.change.kind == scale_change_kind::at_floor);
        add(at_ceiling, event.change.kind == scale_change_kind::at_ceiling);
        add(replaced, event.change.kind == scale_change_kind::replaced);
        flushed += event.seen.flushed;
        nonzero += event.seen.values > event.seen.zeros ? event.seen.values - event.seen.zeros : 0;
        return *this;
    }

    friend constexpr bool operator==(const scale_event_totals&, const scale_event_totals&) = default;
};

/// Keeps the last `capacity` events of a scaler, and counts of all that it ever saw. It is a listener:
///
///     mp::scale_event_log log(10000);
///     scaler.set_listener(log);            // the log must outlive the scaler
///     ...                                  // train
///     std::puts(log.to_text().c_str());
///
/// The memory, some 170 bytes an event, is taken when the log is made; logging allocates nothing and throws
/// nothing. Not synchronised: log and read from one thread at a time.
class scale_event_log {
public:
    /// Goes from the oldest event that is kept to the newest. Logging makes iterators invalid.
    class const_iterator {
    public:
        using iterator_category = std::forward_iterator_tag;
        using value_type = scale_event;
        using difference_type = std::ptrdiff_t;
        using pointer = const scale_event*;
        using reference = const scale_event&;

        const_iterator() = default;
        reference operator*() const noexcept { return (*log_)[index_]; }
        pointer operator->() const noexcept { return &(*log_)[index_]; }
        const_iterator& operator++() noexcept {
            ++index_;
            return *this;
        }
        const_iterator operator++(int) noexcept {
            const const_iterator old = *this;
            ++index_;
            return old;
        }
        friend bool operator==(const const_iterator&, const const_iterator&) = default;

    private:
        friend class scale_event_log;
        const_iterator(const scale_event_log* log, std::size_t index) noexcept : log_(log), index_(index) {}
        const scale_event_log* log_ = nullptr;
        std::size_t index_ = 0;
    };

    /// \param capacity  how many events are kept; at least 1, else argument_error
    explicit scale_event_log(std::size_t capacity) : events_(checked(capacity)) {}
    scale_event_log(const scale_event_log&) = default;
    scale_event_log& operator=(const scale_event_log&) = default;
    /// The other log keeps no events, and counts from zero.
    scale_event_log(scale_event_log&& other) noexcept
        : events_(std::move(other.events_)),
          first_(other.first_),
          size_(other.size_),
          totals_(other.totals_) {
        other.clear();
    }
    scale_event_log& operator=(scale_event_log&& other) noexcept {
        if (this == &other) return *this;
        events_ = std::move(other.events_);
        first_ = other.first_;
        size_ = other.size_;
        totals_ = other.totals_;
        other.clear();
        return *this;
    }
    ~scale_event_log() = default;

    /// Logs an event, in the place of the oldest if the log is full.
    void operator()(const scale_event& event) noexcept {
        if (events_.empty()) {
            totals_ += event;
            return;
        }
        events_[(first_ + size_) % events_.size()] = event;
        if (size_ < events_.size()) {
            ++size_;
        } else {
            first_ = (first_ + 1) % events_.size();
        }
        totals_ += event;
    }

    [[nodiscard]] std::size_t capacity() const noexcept { return events_.size(); }
    /// Events that are kept.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    /// Events that were seen and are no longer kept.
    [[nodiscard]] std::uint64_t dropped() const noexcept { return totals_.iterations - size_; }
    /// Counts of all events that were seen, those dropped included.
    [[nodiscard]] const scale_event_totals& totals() const noexcept { return totals_; }

    /// The kept event of that age, 0 for the oldest; `index` must be less than size().
    [[nodiscard]] const scale_event& operator[](std::size_t index) const noexcept {
        return events_[(first_ + index) % events_.size()];
    }
    [[nodiscard]] const_iterator begin() const noexcept { return {this, 0}; }
    [[nodiscard]] const_iterator end() const noexcept { return {this, size_}; }

    /// Forgets all events and counts; the memory stays.
    void clear() noexcept {
        first_ = 0;
        size_ = 0;
        totals_ = {};
    }

    /// The kept events as readable lines, see to_string(scale_event); clean iterations in a row without any
    /// change have one line together. If events were dropped, the first line says how many.
    [[nodiscard]] std::string to_text() const { return detail::event_lines(dropped(), older(), newer()); }

    /// The kept events as a table for programs, one line an event after a line with the names of the columns:
    ///
    ///     iteration,scale_before,scale_after,kind,infinities,nans,values,zeros,flushed,subnormals,overflows,large,
    ///     largest,applied,skipped,parameter,element,parameter_name
    ///
    /// in one line. Cells are the members of scale_event by their names, kinds by to_string; `parameter` and `element`
    /// are empty where there is none. read_csv gives the same events back; only of a NaN (a policy's scale that went
    /// wrong) the payload is lost.
    [[nodiscard]] std::string to_csv() const { return detail::event_csv(older(), newer()); }

    /// The events of a table that to_csv wrote; lines may end as in Unix or as RFC 4180 has it.
    ///
    /// \throws argument_error  naming line and column: a cell or the header is not as to_csv writes it
    [[nodiscard]] static std::vector<scale_event> read_csv(std::string_view text) {
        return detail::read_event_csv("mp::scale_event_log::read_csv", text);
    }

private:
    /// The kept events up to the end of the memory, and those from its begin.
    [[nodiscard]] std::span<const scale_event> older() const noexcept {
        return {events_.data() + first_, (std::min)(size_, events_.size() - first_)};
    }
    [[nodiscard]] std::span<const scale_event> newer() const noexcept {
        return {events_.data(), size_ - older().size()};
    }

    static std::size_t checked(std::size_t capacity) {
        constexpr std::size_t most = static_cast<std::size_t>(PTRDIFF_MAX) / sizeof(scale_event);
        if (capacity < 1 || capacity > most) {
            detail::throw_argument("mp::scale_event_log", "capacity", capacity,
                                   "must be at least 1 and fit into memory");
        }
        return capacity;
    }

    std::vector<scale_event> events_;
    std::size_t first_ = 0;  ///< the oldest
    std::size_t size_ = 0;
    scale_event_totals totals_;
};

}}  // namespace mp
