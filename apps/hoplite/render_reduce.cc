// A reduce's report as text for people and as JSON for programs.
#include <algorithm>

#include "base/bytes.h"
#include "common/json.h"
#include "common/terminal.h"
#include "render.h"

namespace hoplite {
namespace {

using Align = Table::Align;
using Source = ReduceStatus::Source;
using Slot = ReduceStatus::Slot;

constexpr std::size_t kDeepest = 24;  // a longer chain is not drawn further in: lines stay readable

std::string count_of(std::size_t n, const std::string& thing) {
  return std::to_string(n) + " " + thing + (n == 1 ? "" : "s");
}

// What people call it, with its id.
std::string shown(const ObjectId& id, const std::string& name, const std::vector<std::string>& typed) {
  if (!name.empty()) return id.to_string() + " " + shown_name(name);
  for (const std::string& text : typed)
    if (text != id.to_string() && ObjectId::from_text(text) == id) return id.to_string() + " " + shown_name(text);
  return id.to_string();
}

// In order of arrival; those that have not arrived come last.
std::string sources_text(const ReduceStatus& status, const std::vector<std::string>& typed) {
  std::vector<Source> sources = status.sources;
  std::stable_sort(sources.begin(), sources.end(), [](const Source& a, const Source& b) {
    return a.order != b.order && (b.order == 0 || (a.order != 0 && a.order < b.order));
  });
  Table table({{"ORDER", Align::kRight}, {"SOURCE", Align::kLeft}, {"STATE", Align::kLeft}, {"NODE", Align::kLeft}});
  for (const Source& source : sources)
    table.add({source.order == 0 ? "" : std::to_string(source.order), shown(source.id, source.name, typed),
               std::string(to_string(source.state)), source.node});
  return table.text();
}

// The trees, each child below its parent and further in.
class Trees {
 public:
  explicit Trees(const std::vector<Slot>& slots) : slots_(slots), children_(slots.size()), drawn_(slots.size(), false) {
    for (std::size_t i = 0; i < slots.size(); ++i)
      if (slots[i].parent) children_.at(*slots[i].parent).push_back(i);
  }

  std::string text() {
    for (std::size_t i = 0; i < slots_.size(); ++i)
      if (!slots_[i].parent) draw(i, 0);
    // Whatever does not hang on a root is shown all the same.
    for (std::size_t i = 0; i < slots_.size(); ++i) draw(i, 0);
    return table_.text();
  }

 private:
  void draw(std::size_t at, std::size_t depth) {
    if (drawn_[at]) return;
    drawn_[at] = true;
    const Slot& slot = slots_[at];
    table_.add({std::string(2 * std::min(depth, kDeepest), ' ') + slot.node, std::to_string(slot.slice),
                std::to_string(slot.sources), slot.done ? "done" : "working"});
    for (const std::size_t child : children_[at]) draw(child, depth + 1);
  }

  const std::vector<Slot>& slots_;
  std::vector<std::vector<std::size_t>> children_;
  std::vector<bool> drawn_;
  Table table_{{{"TREE", Align::kLeft}, {"SLICE", Align::kRight}, {"SOURCES", Align::kRight}, {"STATE", Align::kLeft}}};
};

std::string sources_json(const ReduceStatus& status) {
  JsonList list;
  for (const Source& source : status.sources)
    list.raw(JsonObject()
                 .add("id", source.id.to_string())
                 .add("name", source.name)
                 .add("state", to_string(source.state))
                 .add("node", source.node)
                 .add("order", source.order)
                 .text());
  return list.text();
}

std::string slots_json(const ReduceStatus& status) {
  JsonList list;
  for (const Slot& slot : status.slots)
    list.raw(JsonObject()
                 .add("node", slot.node)
                 .add("slice", slot.slice)
                 .raw("parent", slot.parent ? std::to_string(*slot.parent) : "null")
                 .add("sources", slot.sources)
                 .add("done", slot.done)
                 .text());
  return list.text();
}

}  // namespace

std::string awaited_text(const ReduceStatus& status) {
  if (status.awaited() == 0) return "";
  return "waiting for " + std::to_string(status.awaited()) + " of " + count_of(status.count, "source");
}

std::string reduce_text(const ReduceStatus& status, const std::vector<std::string>& typed) {
  const bool over = status.phase == ReducePhase::kDone || status.phase == ReducePhase::kFailed;
  const std::string awaited = over ? "" : awaited_text(status);
  const std::string named = std::to_string(status.sources.size());
  std::string text;
  text += fact_line("target", shown(status.target, status.name, typed));
  text += fact_line("reduce", std::string(to_string(status.op)) + " of " + std::string(to_string(status.type)) + ", " +
                                  (status.count == status.sources.size()
                                       ? "of " + count_of(status.count, "source")
                                       : "of the first " + std::to_string(status.count) + " of " + named + " sources"));
  text += fact_line("phase", std::string(to_string(status.phase)) + (awaited.empty() ? "" : ", " + awaited));
  if (status.error) text += fact_line("error", status.error->to_string());
  text += fact_line("coordinator", status.coordinator);
  if (status.size > 0)
    text += fact_line("reduced", format_size(status.bytes) + " of " + format_size(status.size) + " (" +
                                     percent(status.bytes, status.size) + ")");
  if (status.attempts > 0) text += fact_line("mended", count_of(status.attempts, "time"));
  if (!status.sources.empty()) text += "\n" + sources_text(status, typed);
  if (!status.slots.empty()) text += "\n" + Trees(status.slots).text();
  return text;
}

std::string reduce_json(const ReduceStatus& status) {
  JsonObject json;
  json.add("id", status.target.to_string())
      .add("name", status.name)
      .add("op", to_string(status.op))
      .add("type", to_string(status.type))
      .add("phase", to_string(status.phase));
  if (status.error)
    json.raw("error",
             JsonObject().add("code", code_name(status.error->code)).add("message", status.error->message).text());
  return json.add("coordinator", status.coordinator)
      .add("count", status.count)
      .add("awaited", status.awaited())
      .add("attempts", status.attempts)
      .add("size", status.size)
      .add("bytes", status.bytes)
      .raw("sources", sources_json(status))
      .raw("slots", slots_json(status))
      .text();
}

}  // namespace hoplite
