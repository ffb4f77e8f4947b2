#include "sim/trace.h"
#include "base/type_name.h"

#include <iomanip>

namespace hoplite::sim {
namespace {

template <typename... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <typename... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

std::string number(std::uint64_t n) { return std::to_string(n); }
// Versions are random: four digits tell two of them apart well enough to read.
std::string version(Version v) { return v == 0 ? "none" : "v" + hex64(v).substr(12); }
std::string code(Code c) { return std::string(code_name(c)); }

std::string timeout(std::int64_t ns) { return ns == kNoTimeout ? "" : ", at most " + format_duration(Duration{ns}); }

const char* state_name(CopyState state) {
  switch (state) {
    case CopyState::kKnows: return "knows";
    case CopyState::kGrowing: return "growing";
    case CopyState::kWriting: return "writing";
    case CopyState::kComplete: return "complete";
  }
  return "?";
}

const char* drop_name(DropReason reason) {
  switch (reason) {
    case DropReason::kDeleted: return "deleted";
    case DropReason::kConflict: return "conflict";
    case DropReason::kReset: return "reset";
  }
  return "?";
}

std::string news(const std::vector<MemberNews>& items, Names& names) {
  std::string text;
  for (const MemberNews& item : items) text += " " + names.node(item.ref) + (item.life == Life::kDead ? " dead" : "");
  return text;
}

std::string facts(const Announce& m, Names& names) {
  std::string text = m.round == 0 ? "" : " for round " + number(m.round);
  for (const Fact& fact : m.facts)
    text += " [" + names.object(fact.id) + " " + version(fact.version) + " " + state_name(fact.state) +
            (fact.committed ? " committed" : "") + (fact.primary ? " primary" : "") + "]";
  for (const Tombstone& stone : m.tombstones) text += " [" + names.object(stone.id) + " deleted]";
  return text;
}

std::string want(const Want& m, Names& names) {
  std::string text = names.object(m.id) + (m.mode == WantMode::kNotify ? " (tell me)" : "");
  if (m.have_version != 0) text += ", has some of " + version(m.have_version);
  for (const SliceWant& s : m.slices)
    text += ", slice " + number(s.slice) + " from " + number(s.have_bytes) + (s.has_children ? " with children" : "");
  if (m.wait_if_lost) text += ", waits if lost";
  for (const NodeId& node : m.avoid) text += ", not from " + names.node(node);
  return text;
}

std::string assign(const Assign& m, Names& names) {
  std::string text = names.object(m.id) + " " + version(m.version) + ", " + number(m.size) + " B" +
                     (m.committed ? "" : ", not committed") + ", from";
  for (const NodeRef& parent : m.parents) text += " " + names.node(parent);
  return text;
}

std::string ids(const std::vector<ObjectId>& list, Names& names) {
  std::string text;
  for (const ObjectId& id : list) text += " " + names.object(id);
  return text;
}

std::string slice(std::uint32_t index, std::uint32_t of) {
  return of == 1 ? "" : " slice " + number(index) + "/" + number(of);
}

std::string reduce(const ReduceSpec& spec, Names& names) {
  return names.object(spec.target) + " = " + std::string(to_string(spec.op)) + " of the first " + number(spec.count) +
         " of" + ids(spec.sources, names) + slice(spec.part, spec.parts) + timeout(spec.timeout_ns) +
         (spec.wait_if_lost ? ", waits if lost" : "");
}

std::string report(const ReduceReport& m, Names& names) {
  static constexpr const char* kPhases[] = {"waits", "runs", "is done", "has failed"};
  std::string text = names.object(m.target) + " " + kPhases[static_cast<int>(m.phase)];
  if (m.phase == ReducePhase::kFailed) text += ", " + code(m.code) + ": " + m.text;
  text += ", " + number(m.bytes) + " of " + number(m.size) + " B, used:";
  for (const SourceReport& source : m.sources)
    if (source.state == SourceState::kUsed) text += " " + names.object(source.id);
  return text;
}

const char* role_name(SlotRole role) {
  switch (role) {
    case SlotRole::kKeep: return "keeps";
    case SlotRole::kInner: return "makes";
    case SlotRole::kRoot: return "makes the target as";
  }
  return "?";
}

const char* slot_state_name(SlotState state) {
  switch (state) {
    case SlotState::kAccepted: return "accepted";
    case SlotState::kDone: return "done";
    case SlotState::kEnded: return "has ended";
    case SlotState::kRefused: return "refused";
  }
  return "?";
}

std::string order(const SlotOrder& m, Names& names) {
  std::string text = "slot " + number(m.slot) + " of " + names.object(m.target) + " " + role_name(m.role) + " " +
                     version(m.version) + slice(m.slice, m.slices);
  if (m.role == SlotRole::kRoot) text += ", into the target's" + slice(m.target_slice, m.target_slices);
  text += ", own:";
  for (const SlotSource& own : m.own) text += " " + names.object(own.id) + " " + version(own.version);
  text += ", from:";
  for (const SlotInput& in : m.inputs)
    text += " " + names.node(in.node) + " " + names.object(in.id) + " " + version(in.version);
  return text;
}

std::string update(const SlotUpdate& m, Names& names) {
  std::string text = "slot " + number(m.slot) + " of " + names.object(m.target) + " " + version(m.version) + ": " +
                     slot_state_name(m.state);
  if (m.state != SlotState::kRefused) return text;
  text += ", " + code(m.code);
  if (!m.culprit.is_nil()) text += ", because of " + names.object(m.culprit);
  return m.text.empty() ? text : text + ": " + m.text;
}

std::string combine(const effect::Combine& e) {
  std::string text = "combines";
  for (const effect::Combine::Input& input : e.inputs)
    text += " copy " + number(input.copy) + " from byte " + number(input.begin) + ",";
  return text + " into slice " + number(e.slice) + " of copy " + number(e.out);
}

std::string pull(const PullRequest& p, Names& names) {
  return "pull " + number(p.transfer) + " of " + names.object(p.id) + " " + version(p.version) + " slice " +
         number(p.slice) + "/" + number(p.slices) + " from byte " + number(p.offset) +
         (p.has_children ? ", has children" : "");
}

const char* end_name(PullEnd how) {
  switch (how) {
    case PullEnd::kComplete: return "complete";
    case PullEnd::kRefused: return "refused";
    case PullEnd::kAborted: return "aborted by the parent";
    case PullEnd::kConnectionLost: return "connection lost";
    case PullEnd::kCancelled: return "cancelled";
  }
  return "?";
}

std::string fields(const Message& message, Names& names) {
  const auto object = [&](const ObjectId& id) { return names.object(id); };
  return std::visit(
      Overloaded{
          [&](const Ping& m) { return news(m.news, names); },
          [&](const Ack& m) { return news(m.news, names); },
          [&](const PingRequest& m) { return " of " + names.node(m.target) + news(m.news, names); },
          [&](const News& m) { return news(m.news, names); },
          [&](const Sync& m) { return news(m.members, names); },
          [&](const PutRequest& m) {
            return " " + object(m.id) + " " + version(m.version) + ", " + number(m.size) + " B" +
                   (m.sealed ? ", sealed" : "");
          },
          [&](const PutReply& m) { return " " + object(m.id) + ": " + code(m.code); },
          [&](const Want& m) { return " " + want(m, names); },
          [&](const Assign& m) { return " " + assign(m, names); },
          [&](const InlineObject& m) { return " " + object(m.id) + " " + version(m.version); },
          [&](const PassOn& m) {
            return " " + object(m.id) + " " + version(m.version) + " to " + names.node(m.receiver);
          },
          [&](const Found& m) { return " " + object(m.id) + " " + version(m.version); },
          [&](const Waiting& m) { return " " + object(m.id); },
          [&](const WantFailed& m) { return " " + object(m.id) + ": " + code(m.code); },
          [&](const Unwant& m) { return " " + object(m.id); },
          [&](const Announce& m) { return facts(m, names); },
          [&](const Withdraw& m) { return " " + object(m.id) + " " + version(m.version); },
          [&](const EvictRequest& m) { return " " + object(m.id) + " " + version(m.version); },
          [&](const EvictReply& m) { return " " + object(m.id) + (m.granted ? ": granted" : ": not granted"); },
          [&](const DeleteRequest& m) { return " " + object(m.id); },
          [&](const DeleteReply& m) { return " " + object(m.id) + (m.existed ? ": existed" : ": nobody knew it"); },
          [&](const Drop& m) { return " " + object(m.id) + " " + version(m.version) + ": " + drop_name(m.reason); },
          [&](const SetPrimary& m) { return " " + object(m.id) + " " + version(m.version); },
          [&](const RecoverQuery& m) { return " round " + number(m.round); },
          [&](const RecoverReply& m) { return " round " + number(m.round) + ", " + number(m.facts) + " facts"; },
          [&](const NotHome& m) { return " " + object(m.id); },
          [&](const Relay& m) { return " from " + names.node(m.from) + " to " + names.node(m.to); },
          [&](const ReduceRequest& m) { return " " + reduce(m.spec, names); },
          [&](const AddSources& m) { return " " + object(m.target) + ":" + ids(m.sources, names); },
          [&](const ReduceReply& m) {
            return " " + object(m.target) + ": " + code(m.code) + (m.text.empty() ? "" : ", " + m.text);
          },
          [&](const ReduceQuery& m) { return " " + object(m.target); },
          [&](const ReduceAnswer& m) { return " " + report(m.report, names); },
          [&](const SlotOrder& m) { return " " + order(m, names); },
          [&](const SlotUpdate& m) { return " " + update(m, names); },
          [&](const SlotEnd& m) {
            return " slot " + number(m.slot) + " of " + object(m.target) + " " + version(m.version) +
                   (m.commit ? ": committed" : "");
          },
          [](const auto&) { return std::string(); },
      },
      message);
}

}  // namespace

void Names::add_node(NodeId id, NodeIndex node, std::uint32_t start) {
  nodes_[id] = node_name(node) + std::string(start - 1, '\'');
}

std::string Names::node(NodeId id) const {
  const auto it = nodes_.find(id);
  return it == nodes_.end() ? id.to_string() : it->second;
}

std::string Names::node(const NodeRef& ref) const {
  return ref.incarnation == 0 ? node(ref.id) : node(ref.id) + "#" + number(ref.incarnation);
}

std::string Names::object(const ObjectId& id) {
  if (id.is_nil()) return "a new object";
  const auto it = objects_.find(id);
  if (it != objects_.end()) return it->second;
  return objects_[id] = "o" + number(++unnamed_);
}

void Trace::say(Time now, const std::string& who, const std::string& text) {
  if (!on()) return;
  *out_ << std::fixed << std::setprecision(6) << std::setw(11) << static_cast<double>(now.ns) * 1e-9 << "  "
        << std::left << std::setw(5) << who << std::right << " " << text << "\n";
}

std::string node_name(NodeIndex node) { return "n" + number(node + 1); }

std::string describe(const Message& message, Names& names) { return type_name(message) + fields(message, names); }

std::string describe(const ipc::Request& request, Names& names) {
  return std::visit(
      Overloaded{
          [&](const ipc::Put& m) { return "puts " + names.object(m.id) + timeout(m.timeout_ns); },
          [&](const ipc::Create& m) {
            return "creates " + names.object(m.id) + ", " + number(m.size) + " B" + timeout(m.timeout_ns);
          },
          [&](const ipc::Advance& m) { return "has written " + number(m.bytes) + " B of copy " + number(m.copy); },
          [&](const ipc::Seal& m) { return "seals copy " + number(m.copy) + timeout(m.timeout_ns); },
          [&](const ipc::Abort& m) { return "gives up copy " + number(m.copy); },
          [&](const ipc::Get& m) {
            return (m.follow ? "follows " : "gets ") + names.object(m.id) + timeout(m.timeout_ns) +
                   (m.wait_if_lost ? ", waits if lost" : "");
          },
          [&](const ipc::Cancel& m) { return "cancels request " + number(m.target); },
          [&](const ipc::Release& m) {
            std::string text = "releases copies";
            for (const CopyKey copy : m.copies) text += " " + number(copy);
            return text;
          },
          [&](const ipc::Wait& m) {
            return "waits for " + number(m.count) + " of" + ids(m.ids, names) + timeout(m.timeout_ns);
          },
          [&](const ipc::Remove& m) { return "removes " + names.object(m.id) + timeout(m.timeout_ns); },
          [&](const ipc::Reduce& m) { return "reduces " + reduce(m.spec, names); },
          [&](const ipc::AddSources& m) { return "adds" + ids(m.sources, names) + " to " + names.object(m.target); },
          [&](const ipc::GetReduce& m) { return "asks how far " + names.object(m.target) + " is"; },
          [](const auto&) { return std::string("asks for facts"); },
      },
      request);
}

std::string describe(const ipc::Reply& reply, Names& names) {
  return std::visit(
      Overloaded{
          [&](const ipc::Failed& m) { return "failed, " + code(m.code) + ": " + m.message; },
          [&](const ipc::PutDone& m) { return "put done, " + names.object(m.id); },
          [&](const ipc::UseCreate&) { return std::string("no room now, use create"); },
          [&](const ipc::Created& m) { return "created " + names.object(m.id) + " as copy " + number(m.copy); },
          [&](const ipc::View& m) {
            return "view of " + version(m.version) + ", " + number(m.size) + " B, copy " + number(m.copy);
          },
          [&](const ipc::Opened& m) {
            return "opened " + version(m.version) + ", " + number(m.bytes) + " of " + number(m.size) + " B, copy " +
                   number(m.copy);
          },
          [&](const ipc::Grown& m) { return "grown to " + number(m.bytes) + " B"; },
          [&](const ipc::Reset&) { return std::string("reset"); },
          [&](const ipc::WaitDone& m) { return "ready:" + ids(m.ready, names); },
          [&](const ipc::Removed& m) { return std::string(m.existed ? "removed" : "removed, nobody knew it"); },
          [&](const ipc::Reducing& m) { return "reducing " + names.object(m.target); },
          [&](const ipc::Reported& m) { return report(m.report, names); },
          [](const auto&) { return std::string("facts"); },
      },
      reply);
}

std::string describe(const Event& event, Names& names) {
  return std::visit(
      Overloaded{
          [&](const event::PullAsked& e) { return names.node(e.peer) + " asks for " + pull(e.pull, names); },
          [&](const event::PullAccepted& e) { return "pull " + number(e.transfer) + " is accepted"; },
          [&](const event::PullSilent& e) { return "pull " + number(e.transfer) + " is silent"; },
          [&](const event::PullEnded& e) {
            return "pull " + number(e.transfer) + " ended at byte " + number(e.valid.front()) + ": " + end_name(e.how);
          },
          [&](const event::ServeEnded& e) { return "serve " + number(e.serve) + " ended"; },
          [&](const event::CopyClosed& e) { return "copy " + number(e.copy) + " is closed"; },
          [&](const event::Combined& e) {
            return "slice " + number(e.slice) + " of copy " + number(e.out) + " is combined";
          },
          [](const auto&) { return std::string(); },
      },
      event);
}

std::string describe(const Effect& effect, Names& names) {
  return std::visit(
      Overloaded{
          [&](const effect::Disconnect& e) { return "closes its connections with " + names.node(e.node); },
          [&](const effect::OpenCopy& e) {
            return "opens copy " + number(e.copy) + ", " + number(e.extent.size) + " B at " + number(e.extent.offset) +
                   (e.only == kAllSlices ? "" : ", only slice " + number(e.only) + "/" + number(e.slices));
          },
          [&](const effect::SealCopy& e) {
            return "seals " + (e.slice == kAllSlices ? "" : "slice " + number(e.slice) + " of ") + "copy " +
                   number(e.copy);
          },
          [&](const effect::Combine& e) { return combine(e); },
          [&](const effect::CloseCopy& e) { return "closes copy " + number(e.copy); },
          [&](const effect::StartPull& e) {
            return "starts " + pull(e.pull, names) + " from " + names.node(e.parent) + " into copy " + number(e.copy);
          },
          [&](const effect::CancelPull& e) { return "cancels pull " + number(e.transfer); },
          [&](const effect::AcceptPull& e) {
            return "accepts " + pull(e.pull, names) + " as serve " + number(e.serve) + " from copy " + number(e.copy);
          },
          [&](const effect::RefusePull& e) { return "refuses pull " + number(e.transfer) + ": " + code(e.code); },
          [&](const effect::Log& e) { return "says: " + e.text; },
          [](const auto&) { return std::string(); },
      },
      effect);
}

}  // namespace hoplite::sim
