#include "render.h"

#include "base/bytes.h"
#include "base/printable.h"
#include "base/time.h"
#include "cli.h"
#include "common/json.h"
#include "common/terminal.h"

namespace hoplite {
namespace {

using Align = Table::Align;

Duration to_duration(std::chrono::nanoseconds time) { return {time.count()}; }

std::string held_text(const ObjectStatus& object) {
  if (object.state == CopyState::kKnows) return "";
  return object.primary ? "primary" : "copy";
}

}  // namespace

std::string fact_line(const std::string& key, const std::string& value) {
  return key + std::string(12 - std::min<std::size_t>(key.size(), 11), ' ') + printable(value) + "\n";
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "0 %"
                    : std::to_string(
                          static_cast<std::uint64_t>(static_cast<double>(part) * 100 / static_cast<double>(whole))) +
                          " %";
}

std::string array_text(const ArrayType& array) {
  if (array == ArrayType{}) return "";
  std::string text(to_string(array.type));
  for (std::size_t i = 0; i < array.shape.size(); ++i) text += (i == 0 ? " " : "x") + std::to_string(array.shape[i]);
  return text;
}

std::string shown_name(const std::string& name, std::size_t columns) {
  return shorten_to_columns(printable(name), columns);
}

std::string phase_text(const ObjectStatus& object) {
  const std::string name(to_string(object.state));
  if (object.failure && object.state == CopyState::kComplete) return "failed";
  if (object.state != CopyState::kGrowing && object.state != CopyState::kWriting) return name;
  return name + " " + percent(object.bytes, object.size);
}

namespace {

std::string why_joining(const StoreStatus& s) { return s.join_problems.empty() ? "" : ": " + s.join_problems; }

}  // namespace

std::string status_text(const StoreStatus& s) {
  std::string text;
  text += fact_line("node", s.node + " (incarnation " + std::to_string(s.incarnation) + ")");
  text += fact_line("address", s.address);
  text += fact_line("pid", std::to_string(s.pid));
  text += fact_line("version", s.software);
  text += fact_line("up", format_duration(to_duration(s.uptime)));
  text += fact_line("memory", format_size(s.used_bytes) + " of " + format_size(s.capacity_bytes) + " used (" +
                                  percent(s.used_bytes, s.capacity_bytes) + "), " + format_size(s.pinned_bytes) +
                                  " pinned");
  text += fact_line("objects", std::to_string(s.objects) + " complete, " + std::to_string(s.growing) + " growing");
  text += fact_line("directory", std::to_string(s.directory_entries) + " entries");
  text += fact_line("clients", std::to_string(s.clients) + ", " + std::to_string(s.waiting) + " requests waiting");
  for (const HolderStatus& holder : s.holders)
    text += fact_line("held", format_size(holder.bytes) + " by pid " + std::to_string(holder.pid) + " in " +
                                  std::to_string(holder.views) + (holder.views == 1 ? " view" : " views") +
                                  (holder.attached ? "" : ", without a connection"));
  text += fact_line("members", std::to_string(s.members) + (s.joining ? " (joining" + why_joining(s) + ")" : ""));
  text += fact_line("received", format_size(s.bytes_in));
  text +=
      fact_line("sent", format_size(s.bytes_out) +
                            (s.max_rate == 0 ? "" : " (limit " + format_rate(static_cast<double>(s.max_rate)) + ")"));
  return text;
}

std::string status_json(const StoreStatus& s) {
  JsonList holders;
  for (const HolderStatus& holder : s.holders)
    holders.raw(JsonObject()
                    .add("pid", holder.pid)
                    .add("bytes", holder.bytes)
                    .add("views", holder.views)
                    .add("attached", holder.attached)
                    .text());
  return JsonObject()
      .add("node", s.node)
      .add("incarnation", s.incarnation)
      .add("address", s.address)
      .add("pid", s.pid)
      .add("version", s.software)
      .add("uptime_ms", s.uptime.count())
      .add("capacity_bytes", s.capacity_bytes)
      .add("used_bytes", s.used_bytes)
      .add("pinned_bytes", s.pinned_bytes)
      .add("objects", s.objects)
      .add("growing", s.growing)
      .add("directory_entries", s.directory_entries)
      .add("clients", s.clients)
      .add("waiting", s.waiting)
      .add("members", s.members)
      .add("joining", s.joining)
      .add("join_problems", s.join_problems)
      .add("bytes_in", s.bytes_in)
      .add("bytes_out", s.bytes_out)
      .add("max_rate", s.max_rate)
      .raw("holders", holders.text())
      .text();
}

std::string nodes_text(const std::vector<NodeStatus>& nodes) {
  Table table({{"NODE", Align::kLeft},
               {"ADDRESS", Align::kLeft},
               {"STATE", Align::kLeft},
               {"RTT", Align::kRight},
               {"RATE", Align::kRight}});
  for (const NodeStatus& node : nodes)
    table.add({node.node, node.address,
               std::string(node.joining ? "joining"
                           : node.alive ? "alive"
                                        : "dead") +
                   (node.self ? ", this one" : ""),
               node.rtt.count() == 0 ? "" : format_duration(to_duration(node.rtt)),
               node.rate == 0 ? "" : format_rate(static_cast<double>(node.rate))});
  return table.text();
}

std::string nodes_json(const std::vector<NodeStatus>& nodes) {
  JsonList list;
  for (const NodeStatus& node : nodes)
    list.raw(JsonObject()
                 .add("node", node.node)
                 .add("incarnation", node.incarnation)
                 .add("address", node.address)
                 .add("alive", node.alive)
                 .add("joining", node.joining)
                 .add("self", node.self)
                 .add("rtt_us", node.rtt.count())
                 .add("rate", node.rate)
                 .text());
  return list.text();
}

std::string objects_text(const ObjectList& list) {
  Table table({{"ID", Align::kLeft},
               {"NAME", Align::kLeft},
               {"SIZE", Align::kRight},
               {"TYPE", Align::kLeft},
               {"STATE", Align::kLeft},
               {"HELD AS", Align::kLeft},
               {"VIEWS", Align::kRight},
               {"SENDING TO", Align::kRight}});
  for (const ObjectStatus& object : list)
    table.add({object.id.to_string(), shown_name(object.name), format_size(object.size), array_text(object.array),
               phase_text(object), held_text(object), std::to_string(object.views), std::to_string(object.receivers)});
  return table.text() + (list.truncated ? "... and more\n" : "");
}

std::string objects_json(const ObjectList& list) {
  JsonList objects;
  for (const ObjectStatus& object : list) {
    JsonList shape;
    for (const std::uint64_t extent : object.array.shape) shape.raw(std::to_string(extent));
    objects.raw(JsonObject()
                    .add("id", object.id.to_string())
                    .add("name", object.name)
                    .add("size", object.size)
                    .add("bytes", object.bytes)
                    .add("state", to_string(object.state))
                    .add("failure", object.failure)
                    .add("primary", object.primary)
                    .add("views", object.views)
                    .add("receivers", object.receivers)
                    .add("parent", object.parent)
                    .add("home", object.home)
                    .add("metadata", object.metadata)
                    .add("type", to_string(object.array.type))
                    .raw("shape", shape.text())
                    .text());
  }
  return JsonObject().raw("objects", objects.text()).add("truncated", list.truncated).text();
}

}  // namespace hoplite
